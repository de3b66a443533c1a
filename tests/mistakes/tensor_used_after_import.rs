//~ value moved here

use arrow_dlpack::{ManagedTensor, import};

pub fn mistake(x: ManagedTensor) {
    let _ = import::array(x);
    let _ = x.shape();
}

fn main() {}
