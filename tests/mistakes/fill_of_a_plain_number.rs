//~ Number::Int(0)

use arrow_dlpack::NullPolicy;

pub fn mistake() {
    let _ = NullPolicy::Fill(0);
}

fn main() {}
