//! `count WHAT N`: so many exports or imports of a column, each dropped at once, for valgrind to count the
//! instructions of; see `../count.py`.
#![expect(unsafe_code, reason = "passes a tensor through a raw pointer, as C does")]

use std::hint::black_box;

use arrow_array::Float32Array;
use arrow_dlpack::ffi::DLManagedTensorVersioned;
use arrow_dlpack::{ExportOptions, ImportOptions, ManagedTensor, export, from_dlpack, to_dlpack};
use arrow_schema::{DataType, Field};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().expect("what");
    let count: usize = arguments.next().and_then(|count| count.parse().ok()).expect("how many");

    let array = Float32Array::from(vec![0.0; 1000]);
    let field = Field::new("column", DataType::Float32, false);
    let raw = export::array(&array).expect("numbers").into_raw();
    // SAFETY: made just now, and no other code uses it.
    unsafe { (*raw).deleter = Some(keep) };
    for _ in 0..count {
        match what.as_str() {
            "export" => {
                let tensor =
                    to_dlpack(black_box(&array), black_box(&field), &ExportOptions::default());
                drop(black_box(tensor));
            }
            "export-by-type" => {
                drop(black_box(ManagedTensor::try_from(black_box(&array))));
            }
            "import" => {
                // SAFETY: a true tensor, and its deleter leaves it as it is.
                let tensor = unsafe { ManagedTensor::from_raw(raw) }.expect("a true tensor");
                drop(black_box(from_dlpack(tensor, black_box(&ImportOptions::default()))));
            }
            "import-by-type" => {
                // SAFETY: as above.
                let tensor = unsafe { ManagedTensor::from_raw(raw) }.expect("a true tensor");
                drop(black_box(Float32Array::try_from(tensor)));
            }
            other => panic!("what is {other}?"),
        }
    }
}

unsafe extern "C" fn keep(_: *mut DLManagedTensorVersioned) {}
