//~ Option<DLDataType>

use arrow_dlpack::ExportOptions;

pub fn mistake() {
    let _ = ExportOptions::default().with_dtype("float32");
}

fn main() {}
