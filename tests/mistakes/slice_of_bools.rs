//~ booleans are read by `as_bool_bytes`

use arrow_dlpack::ManagedTensor;

pub fn mistake(x: &ManagedTensor) {
    let _ = x.as_slice::<bool>();
}

fn main() {}
