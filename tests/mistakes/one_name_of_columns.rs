//~ is not an iterator

use arrow_dlpack::batches;

pub fn mistake() {
    let _ = batches::BatchOptions::default().with_columns("x");
}

fn main() {}
