//~ argument #2 of type `&BatchOptions` is missing

use arrow_dlpack::arrow_array::RecordBatchReader;
use arrow_dlpack::batches;

pub fn mistake(x: Box<dyn RecordBatchReader + Send>) {
    let _ = batches::Batches::try_new(x);
}

fn main() {}
