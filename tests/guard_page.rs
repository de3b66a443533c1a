//! Memory that must not be touched lies on inaccessible pages: an access ends this process.
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "maps pages, and plays the other side of a C ABI")]

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use arrow_array::{Array, ArrayRef};
use arrow_dlpack::ffi::{DLManagedTensorVersioned, DLPackVersion};
use arrow_dlpack::{CopyPolicy, Error, ManagedTensor, from_dlpack};

use support::{Data, Producer, Random, dtype, import};

mod support;

/// Some memory, with a page on either side that can be neither read nor written.
struct Fenced {
    map: *mut u8,
    page: usize,
    len: usize,
}

impl Fenced {
    fn new() -> Self {
        // SAFETY: asks for a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).expect("a size");
        let len = 4 * page;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory, at an address that the system chooses.
        let map =
            unsafe { libc::mmap(ptr::null_mut(), len + 2 * page, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(map, libc::MAP_FAILED);
        let fenced = Self { map: map.cast(), page, len };
        fenced.protect(libc::PROT_READ | libc::PROT_WRITE);
        fenced
    }

    /// Says what may be done with the memory between the fences.
    fn protect(&self, protection: i32) {
        // SAFETY: what is between our own fences.
        let done = unsafe { libc::mprotect(self.start().cast(), self.len, protection) };
        assert_eq!(done, 0);
    }

    fn start(&self) -> *mut u8 {
        self.map.wrapping_add(self.page)
    }

    /// Where so many bytes begin that end at the fence.
    fn last(&self, len: usize) -> *mut u8 {
        self.start().wrapping_add(self.len - len)
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`.
        unsafe { libc::munmap(self.map.cast(), self.len + 2 * self.page) };
    }
}

static DELETED: AtomicPtr<DLManagedTensorVersioned> = AtomicPtr::new(ptr::null_mut());
static DELETIONS: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn delete(tensor: *mut DLManagedTensorVersioned) {
    DELETED.store(tensor, Ordering::SeqCst);
    DELETIONS.fetch_add(1, Ordering::SeqCst);
}

/// The struct ends with its deleter, where the page does, and may be read but not written.
#[test]
#[cfg_attr(miri, ignore = "Miri maps no pages without access")]
fn of_another_major_version_only_the_version_and_the_deleter_are_touched() {
    let fenced = Fenced::new();
    let head = std::mem::offset_of!(DLManagedTensorVersioned, flags);
    let raw = fenced.last(head).cast::<DLManagedTensorVersioned>();
    for (major, deleter) in
        [(0, true), (2, true), (3, true), (u32::MAX, true), (2, false), (u32::MAX, false)]
    {
        fenced.protect(libc::PROT_READ | libc::PROT_WRITE);
        let deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)> =
            deleter.then_some(delete);
        // SAFETY: each field is between the fences, and aligned.
        unsafe {
            (&raw mut (*raw).version).write(DLPackVersion { major, minor: u32::MAX });
            (&raw mut (*raw).manager_ctx).write(ptr::without_provenance_mut(1));
            (&raw mut (*raw).deleter).write(deleter);
        }
        fenced.protect(libc::PROT_READ);
        let before = DELETIONS.load(Ordering::SeqCst);
        // SAFETY: of another major version, and so with a truthful version and deleter.
        let refused = unsafe { ManagedTensor::from_raw(raw) };
        assert_eq!(refused.unwrap_err(), Error::UnsupportedVersion { major });
        let deletions = usize::from(deleter.is_some());
        assert_eq!(DELETIONS.load(Ordering::SeqCst), before + deletions);
        if deleter.is_some() {
            assert_eq!(DELETED.swap(ptr::null_mut(), Ordering::SeqCst), raw);
        }
    }
}

/// The lowest element begins at a fence, or the highest ends at one.
#[test]
#[cfg_attr(miri, ignore = "Miri maps no pages without access")]
fn no_byte_beside_the_elements_is_read() {
    let fenced = Fenced::new();
    // Bytes, words, booleans, floats that are widened, elements that share bytes.
    let dtypes = [
        (dtype(1, 8, 1), 8),
        (dtype(0, 16, 1), 16),
        (dtype(2, 32, 1), 32),
        (dtype(0, 64, 1), 64),
        (dtype(5, 128, 1), 128),
        (dtype(6, 8, 1), 8),
        (dtype(4, 16, 1), 16),
        (dtype(10, 8, 1), 8),
        (dtype(17, 4, 1), 4),
        (dtype(15, 6, 1), 6),
        (dtype(1, 1, 1), 1),
    ];
    for (dtype, bits) in dtypes {
        for (shape, strides) in layouts() {
            let reach = |(extent, stride): (&i64, &i64)| (extent - 1) * stride;
            let reaches = shape.iter().zip(&strides).map(reach);
            let below: i64 = reaches.clone().filter(|&reach| reach < 0).sum();
            let above: i64 = reaches.filter(|&reach| reach > 0).sum();
            if bits < 8 && below < 0 {
                // Before an element that shares its byte there may be half of another.
                continue;
            }
            let len = |elements: i64| usize::try_from(elements * bits).expect("few").div_ceil(8);
            let (before, nbytes) = (len(-below), len(1 + above - below));
            let bytes = Random(u64::from(dtype.bits)).bytes(nbytes);
            for start in [fenced.start(), fenced.last(nbytes)] {
                // SAFETY: between the fences.
                unsafe { start.copy_from_nonoverlapping(bytes.as_ptr(), nbytes) };
                let data = Data::Address(start.addr() + before);
                let tensor = |copy| {
                    start.expose_provenance();
                    let producer = Producer::bytes(dtype, &[], &shape, &strides);
                    let (tensor, watch) =
                        Producer { data: data.clone(), ..producer }.tensor(support::Abi::Versioned);
                    let outcome = tensor.and_then(|tensor| {
                        drop(tensor.copied());
                        from_dlpack(tensor, &import(copy))
                    });
                    let array = outcome.map(|(array, _)| read(&array));
                    watch.released_once();
                    array
                };
                let copies = [tensor(CopyPolicy::IfNeeded), tensor(CopyPolicy::Always)];
                assert!(copies[0].is_ok(), "{dtype} {shape:?} {strides:?}: {copies:?}");
                assert_eq!(copies[0], copies[1], "{dtype} {shape:?} {strides:?}");
            }
        }
    }
}

/// Shapes and strides whose elements are one behind the other, apart, backwards, across and repeated.
fn layouts() -> Vec<(Vec<i64>, Vec<i64>)> {
    let mut layouts = vec![(vec![], vec![])];
    for extent in [1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100] {
        for stride in [1, 2, 3, -1, -2, 0] {
            layouts.push((vec![extent], vec![stride]));
        }
        layouts.push((vec![3, extent], vec![extent, 1]));
        layouts.push((vec![3, extent], vec![1, 3]));
        layouts.push((vec![extent, 5], vec![1, extent]));
        layouts.push((vec![extent, 2], vec![3, -1]));
    }
    layouts
}

/// The bytes of the values, so that what was adopted is read as well.
fn read(array: &ArrayRef) -> Vec<u8> {
    let mut data = array.to_data();
    while let [child] = data.child_data() {
        data = child.clone();
    }
    data.buffers()[0].to_vec()
}
