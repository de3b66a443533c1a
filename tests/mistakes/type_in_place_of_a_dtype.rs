//~ Option<DLDataType>

use arrow_dlpack::ExportOptions;
use arrow_dlpack::arrow_schema::DataType;

pub fn mistake() {
    let _ = ExportOptions::default().with_dtype(DataType::Float32);
}

fn main() {}
