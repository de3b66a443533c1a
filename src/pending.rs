//! What memory needs of the interpreter when other code releases it.
//!
//! CPython drops a call's arguments after the call has raised. If one of them owns foreign memory, its deleter runs
//! then, and if that is Python code, the pending exception makes it fail, or it clears the exception. Code that
//! releases foreign memory sets the exception aside here.
#![expect(unsafe_code, reason = "asks the interpreter")]

use std::ffi::{CStr, c_char, c_void};
use std::{mem, ptr, sync::OnceLock};

use pyo3::{Python, ffi};

/// A pending exception, which is restored on the same thread when this is dropped.
pub(crate) struct PendingException([*mut ffi::PyObject; 3]);

/// Does work that must not see an exception in flight. On a thread that is not attached to Python, or where that is
/// unknown, there is none.
pub(crate) fn without_exception<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: attached, and still so after the work: what it calls attaches and detaches in pairs.
    let _pending = is_attached().then(|| unsafe { PendingException::set_aside_attached() });
    work()
}

impl PendingException {
    /// On a thread that is attached.
    ///
    /// # Safety
    ///
    /// The thread must be attached to Python from here until the value is dropped.
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
    #[allow(deprecated, reason = "its successor is not in the limited API of Python 3.11")]
    fn drop(&mut self) {
        let [kind, value, traceback] = self.0;
        // SAFETY: still attached; the three references are the fetched ones. If there are none, this drops an
        // exception that was raised meanwhile.
        unsafe {
            if !kind.is_null() || !ffi::PyErr_Occurred().is_null() {
                ffi::PyErr_Restore(kind, value, traceback);
            }
        }
    }
}

/// Attaches this thread for work that any code calls; `None` where there is no interpreter.
///
/// PyO3 counts its own calls, and takes a thread for attached below one of them. Code of others that such a call runs may have
/// detached it, as PyTorch and pyarrow do while they release memory.
pub(crate) fn attached<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    struct Ensured(ffi::PyGILState_STATE);

    impl Drop for Ensured {
        fn drop(&mut self) {
            // SAFETY: on the same thread, for the state that was ensured.
            unsafe { ffi::PyGILState_Release(self.0) };
        }
    }

    // SAFETY: it may be called on any thread at any time.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return None;
    }
    // SAFETY: there is an interpreter.
    let _ensured = (!is_attached()).then(|| Ensured(unsafe { ffi::PyGILState_Ensure() }));
    Python::try_attach(work)
}

/// Whether this thread is attached to Python. Attaching in order to find out could deadlock with a thread that waits
/// for this one.
///
/// The limited API has no function for this, so that it is looked up by name. Before Python 3.12 it may return
/// another thread's state; after finalisation, no thread is attached.
fn is_attached() -> bool {
    type Current = unsafe extern "C" fn() -> *mut ffi::PyThreadState;
    static CURRENT: OnceLock<Option<Current>> = OnceLock::new();

    let current = CURRENT.get_or_init(|| {
        let names = [c"PyThreadState_GetUnchecked", c"_PyThreadState_UncheckedGet"];
        // SAFETY: functions of these names have always had this signature.
        names.into_iter().find_map(|name| unsafe { function(name) })
    });
    current.is_some_and(|current| {
        // SAFETY: both may be called on any thread at any time.
        let (own, current) = unsafe { (ffi::PyGILState_GetThisThreadState(), current()) };
        !own.is_null() && own == current
    })
}

/// A function of the interpreter that the limited API lacks, looked up by name; `None` if the interpreter lacks it too.
///
/// # Safety
///
/// `F` is a pointer to a function, with the signature of the one of this name.
pub(crate) unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "a pointer to a function") };
    let address = symbol(name);
    // SAFETY: it is not NULL, and `F` is such a pointer.
    (!address.is_null()).then(|| unsafe { mem::transmute_copy::<*mut c_void, F>(&address) })
}

/// The address of a function of the interpreter; NULL if there is none.
#[cfg(unix)]
fn symbol(name: &CStr) -> *mut c_void {
    /// The handle that means all loaded modules.
    const ALL: *mut c_void = ptr::without_provenance_mut(if cfg!(target_vendor = "apple") {
        usize::MAX - 1 // -2
    } else {
        0
    });
    unsafe extern "C" {
        fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    // SAFETY: the handle is the system's own, and the name ends with a 0.
    unsafe { dlsym(ALL, name.as_ptr()) }
}

/// Windows looks up a name in one module. That of the interpreter, python311.dll and so on, is the one that an exception of
/// its lies in; python3.dll, which extensions link with, has the limited API only.
#[cfg(windows)]
fn symbol(name: &CStr) -> *mut c_void {
    const FROM_ADDRESS: u32 = 4;
    const UNCHANGED_REFCOUNT: u32 = 2;
    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GetModuleHandleExW(flags: u32, address: *const c_void, module: *mut *mut c_void) -> i32;
        fn GetProcAddress(module: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    let mut module = ptr::null_mut();
    // SAFETY: the address is that of an object which is never freed, the result is written to a variable, and the name
    // ends with a 0. The interpreter's module stays loaded.
    unsafe {
        let found = GetModuleHandleExW(
            FROM_ADDRESS | UNCHANGED_REFCOUNT,
            ffi::PyExc_BaseException.cast(),
            &raw mut module,
        );
        if found == 0 { ptr::null_mut() } else { GetProcAddress(module, name.as_ptr()) }
    }
}

#[cfg(not(any(unix, windows)))]
fn symbol(_name: &CStr) -> *mut c_void {
    ptr::null_mut()
}
