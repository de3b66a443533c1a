//! Arrow's C structures, mirrored. Their fields are read and changed here, which arrow-rs no longer lets others do
//! with its own (from 60 on they are private).
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface.html> and `CStreamInterface.html` there.
//!
//! **A1** The structures of arrow-rs have the same fields at the same places, because they mirror the same C
//! declarations (`repr(C)`, "ABI-compatible" in its documentation): one can be read as the other.
#![expect(unsafe_code, reason = "releases C structures, and reads them as arrow-rs's")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::{collections::HashMap, mem, ptr};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::{ArrowError, ffi::Flags};

/// A type; released when it is dropped, as the other structures are.
#[repr(C)]
pub(in crate::python) struct ArrowSchema {
    pub(in crate::python) format: *const c_char,
    pub(in crate::python) name: *const c_char,
    pub(in crate::python) metadata: *const c_char,
    pub(in crate::python) flags: i64,
    pub(in crate::python) n_children: i64,
    pub(in crate::python) children: *mut *mut ArrowSchema,
    pub(in crate::python) dictionary: *mut ArrowSchema,
    pub(in crate::python) release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    pub(in crate::python) private_data: *mut c_void,
}

/// An array.
#[repr(C)]
pub(in crate::python) struct ArrowArray {
    pub(in crate::python) length: i64,
    pub(in crate::python) null_count: i64,
    pub(in crate::python) offset: i64,
    pub(in crate::python) n_buffers: i64,
    pub(in crate::python) n_children: i64,
    pub(in crate::python) buffers: *mut *const c_void,
    pub(in crate::python) children: *mut *mut ArrowArray,
    pub(in crate::python) dictionary: *mut ArrowArray,
    pub(in crate::python) release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    pub(in crate::python) private_data: *mut c_void,
}

/// A stream of arrays.
#[repr(C)]
pub(in crate::python) struct ArrowArrayStream {
    pub(in crate::python) get_schema:
        Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    pub(in crate::python) get_next:
        Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    pub(in crate::python) get_last_error:
        Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    pub(in crate::python) release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    pub(in crate::python) private_data: *mut c_void,
}

/// What all of them have.
///
/// # Safety
///
/// A capsule named [`Self::CAPSULE`] holds such a structure, by the interface. [`Self::released`] is one that may be
/// left where a live one was.
pub(in crate::python) unsafe trait Structure: Sized {
    /// The name of a capsule with one.
    const CAPSULE: &'static CStr;
    /// What messages call it.
    const WORD: &'static str;

    /// One that has been released, for a callback to fill or to leave behind.
    fn released() -> Self;

    fn is_released(&self) -> bool;
}

/// The size is that of arrow-rs's structure, as A1 has it.
macro_rules! structure {
    ($name:ident, $theirs:ty, $capsule:literal, $word:literal) => {
        const _: () = assert!(
            size_of::<$name>() == size_of::<$theirs>()
                && align_of::<$name>() == align_of::<$theirs>()
        );

        // SAFETY: the name is the interface's for this structure (A1), and one without callbacks is released.
        unsafe impl Structure for $name {
            const CAPSULE: &'static CStr = $capsule;
            const WORD: &'static str = $word;

            fn released() -> Self {
                // SAFETY: NULL pointers, and no callbacks.
                unsafe { mem::zeroed() }
            }

            fn is_released(&self) -> bool {
                self.release.is_none()
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: S1, the callback is called once, with its structure, which its owner lets go of.
                    unsafe { release(self) };
                }
            }
        }
    };
}
structure!(ArrowSchema, FFI_ArrowSchema, c"arrow_schema", "schema");
structure!(ArrowArray, FFI_ArrowArray, c"arrow_array", "array");
structure!(ArrowArrayStream, FFI_ArrowArrayStream, c"arrow_array_stream", "stream");

// SAFETY: the interface lets a structure be read by and moved to any thread, and released there.
unsafe impl Send for ArrowArray {}
// SAFETY: as above; nothing changes a shared one.
unsafe impl Sync for ArrowArray {}
// SAFETY: as for arrays; a stream's callbacks are called one after the other.
unsafe impl Send for ArrowArrayStream {}

impl ArrowSchema {
    /// The same structure as arrow-rs's.
    pub(in crate::python) fn theirs(&self) -> &FFI_ArrowSchema {
        // SAFETY: A1.
        unsafe { &*ptr::from_ref(self).cast::<FFI_ArrowSchema>() }
    }
}

impl ArrowArray {
    /// The rows, of an array that has been checked.
    pub(in crate::python) fn len(&self) -> usize {
        usize::try_from(self.length).unwrap_or(0)
    }

    /// The rows before the first one, of an array that has been checked.
    pub(in crate::python) fn offset(&self) -> usize {
        usize::try_from(self.offset).unwrap_or(0)
    }

    /// # Safety
    ///
    /// The array meets S1, has been checked, and has such a child.
    pub(in crate::python) unsafe fn child(&self, index: usize) -> &Self {
        // SAFETY: the caller's promise; children live as long as their parent.
        unsafe { &*self.children.add(index).read() }
    }
}

/// A schema structure with all that such a structure can say.
pub(in crate::python) fn schema(
    format: &str,
    name: &str,
    flags: i64,
    metadata: HashMap<String, String>,
    children: Vec<FFI_ArrowSchema>,
    dictionary: Option<FFI_ArrowSchema>,
) -> Result<FFI_ArrowSchema, ArrowError> {
    type WithMetadata =
        unsafe fn(FFI_ArrowSchema, HashMap<String, String>) -> Result<FFI_ArrowSchema, ArrowError>;
    // Safe in arrow 59, unsafe in 60: of this type it is the same in both.
    let with_metadata: WithMetadata = FFI_ArrowSchema::with_metadata;
    let schema = FFI_ArrowSchema::try_new(format, children, dictionary)?
        .with_name(name)?
        .with_flags(Flags::from_bits_truncate(flags))?;
    // SAFETY: arrow-rs itself has just made the structure, and what is behind its `private_data`.
    unsafe { with_metadata(schema, metadata) }
}
