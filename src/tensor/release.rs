//! Releases what is foreign: the only functions that call deleters, with a bound on the recursion, and the count of open tensors.
//!
//! Tensors that libraries exchange several times form a chain of owners of any length, and so do arrays. Each
//! release calls the next one, and the stack is finite: from some depth on, further releases are postponed
//! until the outermost one has returned.
//!
//! So every owner of a foreign object releases it here: a tensor ([`super::ManagedTensor`]), an Arrow
//! structure or stream, a capsule, a Python object.
#![expect(unsafe_code, reason = "calls deleters")]

use std::cell::{Cell, RefCell};
use std::mem::{self, ManuallyDrop};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicIsize, Ordering};

use crate::fence::{self, calling};
use crate::ffi::{DLManagedTensor, DLManagedTensorVersioned};
use crate::pending::without_exception;

/// The depth of nested releases from which on they are postponed: more than programs have, and few enough for
/// the smallest stacks of threads, 128 KiB, with the frames of other libraries in between.
const DEEPEST: usize = 16;

type Work = Box<dyn FnOnce()>;

/// The releases that a thread has begun.
struct Releases {
    /// How many are nested in one another.
    open: Cell<usize>,
    /// Empty and unallocated unless one is running, so that it needs no drop and can be used until the thread ends.
    postponed: ManuallyDrop<RefCell<Vec<Work>>>,
}

thread_local! {
    static RELEASES: Releases = const {
        Releases { open: Cell::new(0), postponed: ManuallyDrop::new(RefCell::new(Vec::new())) }
    };
}

/// Runs a release, now or before the outermost release on this thread ends. A panic is caught here, because it
/// must not cross C and no caller could handle it.
#[inline]
pub(super) fn release(work: impl FnOnce() + 'static) {
    RELEASES.with(|releases| {
        let open = releases.open.get();
        if open >= DEEPEST {
            return releases.postpone(Box::new(work));
        }
        releases.open.set(open + 1);
        let _ = fence::fenced(work);
        if open == 0 && !releases.postponed.borrow().is_empty() {
            releases.drain();
        }
        releases.open.set(open);
    });
}

/// [`release`] of a foreign object. That may run Python code, which must not see an exception in flight.
pub(crate) fn release_foreign(work: impl FnOnce() + 'static) {
    release(|| without_exception(work));
}

/// [`release_foreign`] of a tensor that was taken over, which counts no longer.
pub(super) fn release_imported(work: impl FnOnce() + 'static) {
    count_imported(-1);
    release_foreign(work);
}

impl Releases {
    #[cold]
    fn postpone(&self, work: Work) {
        self.postponed.borrow_mut().push(work);
    }

    /// Runs the postponed releases, and those that are postponed meanwhile.
    #[cold]
    fn drain(&self) {
        while let Some(work) = { self.postponed.borrow_mut().pop() } {
            let _ = fence::fenced(work);
        }
        drop(mem::take(&mut *self.postponed.borrow_mut()));
    }
}

/// A tensor on its way to C: its deleter is called unless somebody takes the pointer.
pub(crate) struct Outgoing(NonNull<DLManagedTensorVersioned>);

impl Outgoing {
    /// # Safety
    ///
    /// The tensor meets I1, and is the caller's to give up.
    #[inline(always)]
    pub(super) unsafe fn new(tensor: NonNull<DLManagedTensorVersioned>) -> Self {
        Self(tensor)
    }

    /// The consumer's pointer.
    #[inline(always)]
    pub(crate) fn into_raw(self) -> *mut DLManagedTensorVersioned {
        ManuallyDrop::new(self).0.as_ptr()
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        let tensor = self.0;
        release_foreign(move || {
            // SAFETY: I1, and no caller took it.
            unsafe { call_deleter(tensor.as_ptr()) };
        });
    }
}

type Deleter<T> = unsafe extern "C" fn(*mut T);

/// The same with unwinding: a deleter may be Python code, or wait for the interpreter, whose end unwinds it.
type MayUnwind<T> = unsafe extern "C-unwind" fn(*mut T);

/// Calls the deleter, if there is one. No other field is read but the deleter, because the major version may differ.
///
/// # Safety
///
/// I1, and the tensor is not used again.
pub(crate) unsafe fn call_deleter(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: I1: the header is valid, and its deleter has not been called.
    unsafe { delete(tensor, (&raw const (*tensor).deleter).read()) };
}

/// [`call_deleter`] for the legacy ABI.
///
/// # Safety
///
/// I1, and the tensor is not used again.
pub(crate) unsafe fn call_legacy_deleter(tensor: *mut DLManagedTensor) {
    // SAFETY: I1: the header is valid, and its deleter has not been called.
    unsafe { delete(tensor, (&raw const (*tensor).deleter).read()) };
}

/// # Safety
///
/// It is the tensor's deleter, which has not been called; the tensor is not used again.
unsafe fn delete<T>(tensor: *mut T, deleter: Option<Deleter<T>>) {
    let Some(deleter) = deleter else { return };
    // SAFETY: the two types differ only in the ABI's unwinding.
    let deleter = unsafe { mem::transmute::<Deleter<T>, MayUnwind<T>>(deleter) };
    // SAFETY: it is the tensor's, and called once.
    calling(|| unsafe { deleter(tensor) });
}

/// Tensors that this library holds open, for leak tests; see [`live`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Exported tensors whose deleter has not run yet.
    pub exported: usize,
    /// Tensors taken over from a producer whose deleter has not been called yet.
    pub imported: usize,
}

/// A count with a cache line to itself: threads that only export and threads that only import do not meet.
#[repr(align(64))]
struct Counter(AtomicIsize);

static EXPORTED: Counter = Counter(AtomicIsize::new(0));
static IMPORTED: Counter = Counter(AtomicIsize::new(0));

/// The number of open tensors in this process. Both counts return to their earlier values when all tensors made
/// since have been dropped.
///
/// ```standalone_crate
/// use arrow_dlpack::{Live, ManagedTensor, live};
///
/// let tensor = ManagedTensor::from(vec![1.5_f32, 2.5]);
/// assert_eq!(live(), Live { exported: 1, imported: 0 });
/// drop(tensor);
/// assert_eq!(live(), Live::default());
/// ```
#[must_use]
pub fn live() -> Live {
    let open = |count: &Counter| usize::try_from(count.0.load(Ordering::Relaxed)).unwrap_or(0);
    Live { exported: open(&EXPORTED), imported: open(&IMPORTED) }
}

/// A tensor was exported (1), or its deleter has run (-1).
#[inline]
pub(super) fn count_exported(by: isize) {
    EXPORTED.0.fetch_add(by, Ordering::Relaxed);
}

/// A tensor was taken over (1), or its deleter has been called (-1).
#[inline]
pub(super) fn count_imported(by: isize) {
    IMPORTED.0.fetch_add(by, Ordering::Relaxed);
}
