//! `live()` counts what is open in the whole process: a file with one test, so that nothing else
//! runs beside it.

use std::sync::{Arc, Barrier};
use std::thread;

use arrow_array::{Array, Int32Array, RecordBatchIterator, record_batch};
use arrow_dlpack::batches::{BatchOptions, Batches};
use arrow_dlpack::ffi::DLPackVersion;
use arrow_dlpack::{CopyPolicy, Live, export, import, live};
use arrow_schema::{DataType, Field};

use support::{Abi, Producer};

mod support;

#[test]
fn the_counts_return_to_where_they_were() {
    let start = live();
    let open = |exported, imported| {
        let Live { exported: e, imported: i } = start;
        assert_eq!(live(), Live { exported: e + exported, imported: i + imported });
    };
    let array = Int32Array::from(vec![1, 2, 3]);

    // Exported, until the deleter has run; who holds the pointer makes no difference.
    let tensor = export::array(&array).unwrap();
    open(1, 0);
    let legacy = tensor.into_raw_legacy().unwrap();
    open(1, 0);
    support::delete_legacy(legacy);
    open(0, 0);
    let raw = export::array(&array).unwrap().into_raw();
    open(1, 0);
    support::delete(raw);
    open(0, 0);

    // Imported, until the deleter has been called.
    for abi in Abi::BOTH {
        let (tensor, watch) = Producer::vector(&[1i32, 2]).tensor(abi);
        let tensor = tensor.unwrap();
        open(0, 1);
        let adopted = import::array(tensor).unwrap();
        open(0, 1);
        let slice = adopted.slice(1, 1);
        drop(adopted);
        open(0, 1);
        drop(slice);
        open(0, 0);
        watch.released_once();

        let (tensor, watch) = Producer::vector(&[1i32, 2]).tensor(abi);
        let tensor = Arc::new(tensor.unwrap());
        let shares: Vec<_> = (0..3).map(|_| tensor.share()).collect();
        drop(tensor);
        open(3, 1);
        drop(shares);
        open(0, 0);
        watch.released_once();

        // Copied: nothing of the producer's is kept.
        let (array, watch) = Producer::vector(&[1i32, 2]).array(abi, CopyPolicy::Always);
        open(0, 0);
        drop(array.unwrap());
        watch.released_once();
    }

    // Handed on as it came: another's again.
    let (tensor, watch) = Producer::vector(&[1i32]).tensor(Abi::Versioned);
    let raw = tensor.unwrap().into_raw();
    open(0, 0);
    support::delete(raw);
    watch.released_once();

    // Through our own pointers: both, until the array goes.
    let back = import::array(export::array(&array).unwrap()).unwrap();
    open(1, 0);
    drop(back);
    open(0, 0);

    // Failures leave nothing behind.
    for abi in Abi::BOTH {
        let (tensor, watch) = Producer { ndim: -1, ..Producer::vector(&[1i32]) }.tensor(abi);
        assert!(tensor.is_err());
        watch.released_once();
        assert!(support::null_tensor(abi).is_err());
    }
    let version = DLPackVersion { major: 2, minor: 0 };
    let (tensor, watch) = Producer { version, ..Producer::vector(&[1i32]) }.tensor(Abi::Versioned);
    assert!(tensor.is_err());
    watch.released_once();
    let nulls = Int32Array::from(vec![None, Some(1)]);
    assert!(export::array(&nulls).is_err());
    let field = Field::new("", DataType::Int32, true);
    assert!(export::into_tensor_with_field(Arc::new(array.clone()), &field).is_err());
    open(0, 0);

    // Batches, whenever they are let go of, and with those that have been made ahead.
    let batch =
        record_batch!(("x", Int32, [1, 2, 3, 4, 5]), ("y", Int32, [1, 2, 3, 4, 5])).unwrap();
    for (taken, prefetch) in (0..4).flat_map(|taken| [(taken, 0), (taken, 1), (taken, 9)]) {
        let reader = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
        let options = BatchOptions::default().with_batch_size(2).with_prefetch(prefetch);
        let mut batches = Batches::try_new(reader, &options).unwrap();
        let kept: Vec<_> = batches.by_ref().take(taken).map(Result::unwrap).collect();
        drop(batches);
        open(2 * kept.len(), 0);
        drop(kept);
        open(0, 0);
    }

    // Many threads at once: none has ended when another begins, which would synchronise them.
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    drop(import::array(export::array(&array).unwrap()).unwrap());
                    barrier.wait();
                }
            });
        }
    });
    open(0, 0);
}
