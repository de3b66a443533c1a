//! A copy of a strided tensor holds what the strides say: compared with reading the same memory one
//! index at a time.
#![expect(unsafe_code, reason = "writes through a tensor as its consumer may")]

use arrow_dlpack::ffi::{DLDataType, DLPackFlags};
use arrow_dlpack::{Error, ManagedTensor};

use support::{Abi, Data, Ints, Producer, Random, bytes_of, dtype, strided};

mod support;

/// Memory, and a way to walk through it.
#[derive(Debug)]
struct Layout {
    dtype: DLDataType,
    itemsize: usize,
    shape: Vec<i64>,
    strides: Vec<i64>,
    bytes: Vec<u8>,
    origin: usize,
    misalign: usize,
}

/// Element types of 1, 2, 4, 8 and 16 bytes, and of sizes that no machine has a word for.
fn dtypes() -> [(DLDataType, usize); 9] {
    [
        (dtype(1, 8, 1), 1),
        (dtype(2, 16, 1), 2),
        (dtype(2, 32, 1), 4),
        (dtype(0, 64, 1), 8),
        (dtype(5, 128, 1), 16),
        (dtype(1, 8, 3), 3),
        (dtype(2, 32, 3), 12),
        (dtype(99, 20, 1), 3),
        (dtype(0, 64, 4), 32),
    ]
}

impl Layout {
    /// Axes in any memory order, with gaps, backwards, broadcast, of extent 1 and 0.
    fn random(random: &mut Random) -> Self {
        let (dtype, itemsize) = dtypes()[random.below(dtypes().len())];
        let rank = random.below(6);
        let extents = [1, 2, 2, 3, 3, 4, 5];
        let mut shape: Vec<i64> = (0..rank).map(|_| extents[random.below(7)]).collect();
        if rank > 0 && random.below(20) == 0 {
            shape[random.below(rank)] = 0;
        }
        let mut order: Vec<usize> = (0..rank).collect();
        for last in (1..rank).rev() {
            order.swap(last, random.below(last + 1));
        }
        // Half of the layouts are dense in some order of axes, the others have gaps.
        let gaps = random.below(2);
        let mut strides = vec![0; rank];
        let (mut step, mut before, mut after) = (1i64, 0i64, 0i64);
        for axis in order {
            let extent = shape[axis].max(1);
            strides[axis] = match random.below(8) {
                0 => 0,
                1 | 2 => -step,
                _ => step,
            };
            let reach = (extent - 1) * strides[axis];
            before -= reach.min(0);
            after += reach.max(0);
            if strides[axis] != 0 {
                let gap = i64::try_from(random.below(3) * gaps).expect("small");
                step = step * extent + gap;
            }
            if extent == 1 && random.below(2) == 0 {
                strides[axis] = [i64::MIN, -1, 0, 77, i64::MAX][random.below(5)];
            }
        }
        let elements = usize::try_from(before + after + 1).expect("small");
        Self {
            dtype,
            itemsize,
            shape,
            strides,
            bytes: random.bytes(elements * itemsize),
            origin: usize::try_from(before).expect("small") * itemsize,
            misalign: random.below(3),
        }
    }

    fn producer(&self) -> Producer {
        Producer {
            data: Data::Bytes {
                bytes: self.bytes.clone(),
                origin: self.origin,
                misalign: self.misalign,
            },
            ..Producer::bytes(self.dtype, &[], &self.shape, &self.strides)
        }
    }

    fn elements(&self) -> Vec<u8> {
        // Strides of axes of one element or none mean nothing, so that here they may be 0.
        let steps = self.shape.iter().zip(&self.strides);
        let steps: Vec<i64> =
            steps.map(|(&extent, &stride)| if extent <= 1 { 0 } else { stride }).collect();
        strided(&self.bytes, self.origin, &self.shape, &steps, self.itemsize)
    }
}

/// Copies a tensor, asserts the laws of every copy, and returns the copy's bytes.
#[track_caller]
fn copied(tensor: &ManagedTensor) -> Vec<u8> {
    let copy = tensor.copied().expect("memory that the CPU can read");
    assert_eq!(copy.shape(), tensor.shape());
    assert_eq!((copy.dtype(), copy.nbytes()), (tensor.dtype(), tensor.nbytes()));
    assert!(copy.is_contiguous());
    assert_eq!(copy.device().to_string(), "cpu");
    assert_eq!(copy.byte_offset(), 0);
    assert!(copy.flags().contains(DLPackFlags::IS_COPIED));
    assert!(!copy.is_read_only());
    if copy.size() == 0 {
        assert!(copy.as_ptr().is_null());
    } else {
        assert_eq!(copy.as_ptr().addr() % 64, 0, "aligned to 64 bytes");
        assert_ne!(copy.as_ptr(), tensor.as_ptr());
    }
    bytes_of(&copy)
}

#[test]
fn any_layout_is_gathered_as_its_strides_say() {
    let mut random = Random(0x5EED);
    for case in 0..if cfg!(miri) { 60 } else { 2000 } {
        let layout = Layout::random(&mut random);
        let (tensor, watch) = layout.producer().tensor(Abi::BOTH[case % 2]);
        let tensor = tensor.unwrap_or_else(|error| panic!("case {case}: {error}: {layout:?}"));
        assert_eq!(copied(&tensor), layout.elements(), "case {case}: {layout:?}");
        drop(tensor);
        watch.released_once();
    }
}

#[test]
fn column_major_becomes_row_major() {
    for (dtype, itemsize) in dtypes() {
        let bytes = Random(5).bytes(2 * 3 * 4 * itemsize);
        let fortran = Producer::bytes(dtype, &bytes, &[2, 3, 4], &[1, 2, 6]);
        let (tensor, watch) = fortran.tensor(Abi::Versioned);
        let tensor = tensor.unwrap();
        assert!(!tensor.is_contiguous());
        let mut expected = Vec::new();
        for i in 0..2 {
            for j in 0..3 {
                for k in 0..4 {
                    let at = (i + 2 * j + 6 * k) * itemsize;
                    expected.extend_from_slice(&bytes[at..at + itemsize]);
                }
            }
        }
        assert_eq!(copied(&tensor), expected);
        drop(tensor);
        watch.released_once();
    }
}

#[test]
fn memory_may_run_along_any_axis_for_any_length() {
    // Longer than whatever is done at once, and not a multiple of it.
    for (shape, strides) in [
        (vec![19, 300], vec![1, 19]),
        (vec![300, 19], vec![1, 300]),
        (vec![2, 300], vec![1, 2]),
        (vec![2, 7, 130], vec![910, 1, 7]),
        (vec![19, 300], vec![1, 23]),
        (vec![19, 300], vec![1, -19]),
        (vec![19, 300], vec![1, 0]),
        (vec![3, 19, 130], vec![2500, 1, 19]),
        (vec![3, 19, 130], vec![-2500, 1, 19]),
        (vec![19, 3, 130], vec![1, 19, 60]),
        (vec![17, 3, 130], vec![1, 17 * 130, 17]),
        (vec![9, 10, 11], vec![1, 9, 90]),
        (vec![2, 9, 4, 10], vec![40, 80, 1, 4]),
    ] {
        // Miri takes minutes for those of many bytes.
        for (dtype, itemsize) in dtypes().into_iter().take(if cfg!(miri) { 1 } else { 9 }) {
            let axes = || shape.iter().zip(&strides);
            let reach = |sign: i64| -> i64 {
                let steps = axes().map(|(&extent, &stride)| (extent - 1) * stride);
                steps.map(|step| (step * sign).max(0)).sum()
            };
            let [before, after] = [-1, 1].map(|sign| usize::try_from(reach(sign)).unwrap());
            let layout = Layout {
                dtype,
                itemsize,
                shape: shape.clone(),
                strides: strides.clone(),
                bytes: Random(7).bytes((before + after + 1) * itemsize),
                origin: before * itemsize,
                misalign: 1,
            };
            let (tensor, watch) = layout.producer().tensor(Abi::Versioned);
            let tensor = tensor.unwrap();
            assert!(copied(&tensor) == layout.elements(), "{dtype} {shape:?} {strides:?}");
            drop(tensor);
            watch.released_once();
        }
    }
}

#[test]
fn row_major_is_copied_as_it_is() {
    for (dtype, itemsize) in dtypes() {
        let bytes = Random(6).bytes(2 * 3 * itemsize);
        for strides in [Ints::from([3, 1]), Ints::Null] {
            let rows = Producer { strides, ..Producer::bytes(dtype, &bytes, &[2, 3], &[]) };
            let (tensor, watch) = rows.tensor(Abi::Legacy);
            let tensor = tensor.unwrap();
            assert!(tensor.is_contiguous());
            assert_eq!(copied(&tensor), bytes);
            drop(tensor);
            watch.released_once();
        }
    }
}

#[test]
fn a_scalar_is_copied() {
    for (dtype, itemsize) in dtypes() {
        let bytes = Random(8).bytes(itemsize);
        let (tensor, watch) = Producer::bytes(dtype, &bytes, &[], &[]).tensor(Abi::Versioned);
        let tensor = tensor.unwrap();
        assert_eq!(copied(&tensor), bytes);
        drop(tensor);
        watch.released_once();
    }
}

#[test]
fn nothing_is_copied_of_nothing() {
    for shape in [vec![0], vec![3, 0, 2], vec![0, i64::MAX, i64::MAX]] {
        let strides = vec![-5; shape.len()];
        let none = Producer::bytes(dtype(2, 32, 1), &[], &shape, &strides);
        for data in [Data::Null, Data::Address(3)] {
            let (tensor, watch) = Producer { data, ..none.clone() }.tensor(Abi::Versioned);
            let tensor = tensor.unwrap();
            assert!(copied(&tensor).is_empty());
            drop(tensor);
            watch.released_once();
        }
    }
}

#[test]
fn overlapping_windows_repeat_their_elements() {
    let windows = Producer::bytes(dtype(1, 8, 1), b"abcde", &[3, 3], &[1, 1]);
    let (tensor, watch) = windows.tensor(Abi::Versioned);
    let tensor = tensor.unwrap();
    assert_eq!(copied(&tensor), b"abcbcdcde");
    drop(tensor);
    watch.released_once();
}

#[test]
fn a_copy_is_neither_its_sources_fate_nor_its_owner() {
    let (tensor, watch) = Producer::vector(&[1i32, 2, 3]).tensor(Abi::Versioned);
    let tensor = tensor.unwrap();
    let mut copy = tensor.copied().unwrap();
    drop(tensor);
    assert_eq!(watch.deletions(), 1);
    // SAFETY: 12 bytes of the copy's own, which has no other holder.
    unsafe { copy.as_mut_ptr().write_bytes(0xFF, 12) };
    assert_eq!(bytes_of(&copy), [0xFF; 12]);
    // The watch asserts that the producer's memory was not written to.
    watch.released_once();
}

#[test]
fn flags_of_the_source_do_not_stick_but_padding_does() {
    let all = DLPackFlags(u64::MAX);
    let nibbles = Producer::bytes(dtype(17, 4, 1), &[1, 2, 3, 4, 5], &[5], &[1]);
    let (tensor, watch) = Producer { flags: all, ..nibbles }.tensor(Abi::Versioned);
    let tensor = tensor.unwrap();
    let copy = tensor.copied().unwrap();
    let expected = DLPackFlags::IS_COPIED.union(DLPackFlags::IS_SUBBYTE_TYPE_PADDED);
    assert_eq!(copy.flags(), expected);
    assert_eq!(bytes_of(&copy), [1, 2, 3, 4, 5]);
    drop((tensor, copy));
    watch.released_once();
}

#[test]
fn padded_elements_below_a_byte_have_strides() {
    let flags = DLPackFlags::IS_SUBBYTE_TYPE_PADDED;
    let nibbles = Producer::bytes(dtype(1, 4, 1), &[1, 2, 3, 4, 5], &[3], &[2]);
    let (tensor, watch) = Producer { flags, ..nibbles }.tensor(Abi::Versioned);
    let tensor = tensor.unwrap();
    assert_eq!(copied(&tensor), [1, 3, 5]);
    drop(tensor);
    watch.released_once();
}

#[test]
fn packed_elements_are_copied_in_order_or_not_at_all() {
    let nibbles = Producer::bytes(dtype(1, 4, 1), &[0x21, 0x43, 0x65], &[5], &[1]);
    let (tensor, watch) = nibbles.clone().tensor(Abi::Legacy);
    let tensor = tensor.unwrap();
    assert_eq!(copied(&tensor), [0x21, 0x43, 0x65]);
    drop(tensor);
    watch.released_once();

    for strides in [[2], [-1], [0]] {
        let producer = Producer { shape: [2].into(), strides: strides.into(), ..nibbles.clone() };
        let Data::Bytes { bytes, misalign, .. } = producer.data else { unreachable!("as made") };
        let producer = Producer { data: Data::Bytes { bytes, origin: 1, misalign }, ..producer };
        let (tensor, watch) = producer.tensor(Abi::Legacy);
        let tensor = tensor.unwrap();
        let refused = Error::PackedStrides { dtype: dtype(1, 4, 1) };
        assert_eq!(tensor.copied().unwrap_err(), refused);
        drop(tensor);
        watch.released_once();
    }
}
