//! A Python exception in flight, put aside while memory is given back.
//!
//! CPython drops a call's arguments after the call has raised. If one of them owns foreign memory, its
//! deleter runs then, and if that is Python code, the exception makes it fail, or it clears the exception.
//! Code that returns memory to foreign owners sets the exception aside here.
#![expect(unsafe_code, reason = "asks the interpreter")]

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::OnceLock;

use pyo3::ffi;

/// An exception in flight, put back when this goes, on the same thread.
pub(crate) struct PendingException([*mut ffi::PyObject; 3]);

impl PendingException {
    /// `None` on a thread that is not attached to Python, or cannot be known to be: it has none.
    pub(crate) fn set_aside() -> Option<Self> {
        // SAFETY: attached; code that is called meanwhile attaches and detaches in pairs.
        is_attached().then(|| unsafe { Self::set_aside_attached() })
    }

    /// The same where it is known.
    ///
    /// # Safety
    ///
    /// Attached to Python, from here until the value is dropped.
    #[allow(deprecated, reason = "its successor is not in the limited API of Python 3.11")]
    pub(crate) unsafe fn set_aside_attached() -> Self {
        let [mut kind, mut value, mut traceback] = [ptr::null_mut(); 3];
        // SAFETY: the caller is attached.
        unsafe {
            if !ffi::PyErr_Occurred().is_null() {
                ffi::PyErr_Fetch(&raw mut kind, &raw mut value, &raw mut traceback);
            }
        }
        Self([kind, value, traceback])
    }
}

impl Drop for PendingException {
    #[allow(deprecated, reason = "as above")]
    fn drop(&mut self) {
        let [kind, value, traceback] = self.0;
        // SAFETY: still attached; the three references are the ones that were fetched. Without them, what
        // happened meanwhile is dropped.
        unsafe {
            if !kind.is_null() || !ffi::PyErr_Occurred().is_null() {
                ffi::PyErr_Restore(kind, value, traceback);
            }
        }
    }
}

/// Whether this thread is attached to Python. To attach in order to find out could wait for ever for one
/// that waits for us.
///
/// The limited API has no such question, so the function is asked for by name. What it answers before
/// Python 3.12 may be another thread's state; and after the interpreter is gone, no thread has one.
fn is_attached() -> bool {
    type Current = unsafe extern "C" fn() -> *mut ffi::PyThreadState;
    static CURRENT: OnceLock<Option<Current>> = OnceLock::new();

    let names = || [c"PyThreadState_GetUnchecked", c"_PyThreadState_UncheckedGet"];
    let current = CURRENT.get_or_init(|| {
        let address = names().map(symbol).into_iter().find(|address| !address.is_null())?;
        // SAFETY: functions of these names have had this signature since there are any.
        Some(unsafe { std::mem::transmute::<*mut c_void, Current>(address) })
    });
    current.is_some_and(|current| {
        // SAFETY: both may be called on any thread at any time.
        let (own, current) = unsafe { (ffi::PyGILState_GetThisThreadState(), current()) };
        !own.is_null() && own == current
    })
}

/// The address of a function of the interpreter, NULL if there is none.
#[cfg(target_os = "linux")]
pub(crate) fn symbol(name: &CStr) -> *mut c_void {
    unsafe extern "C" {
        fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    // SAFETY: NULL is the program and all that it has loaded, and the name ends with a 0.
    unsafe { dlsym(ptr::null_mut(), name.as_ptr()) }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn symbol(_name: &CStr) -> *mut c_void {
    ptr::null_mut()
}
