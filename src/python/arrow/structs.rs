//! Arrow's C structures, mirrored. Their fields are read and changed here, which arrow-rs no longer lets others do
//! with its own (from 60 on they are private).
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface.html> and `CStreamInterface.html` there.
//!
//! **A1** The structures of arrow-rs have the same fields at the same places, because they mirror the same C
//! declarations (`repr(C)`, "ABI-compatible" in its documentation): one can be read as the other.
//!
//! **S1** A structure is [`Structure::released`], or valid for as long as its owner lives, as the interface says:
//!
//! - its texts end with a NUL, its metadata have the lengths that they give, its arrays of pointers those given in it,
//!   and what these point to meets S1 too;
//! - of an array with rows, a buffer that is not NULL is readable for as many bytes as its type, which the schema beside
//!   it says, its length and its offset ask for, or the last of its offsets, or the sizes in its last buffer;
//! - none of that changes, and bytes are not written to while they are borrowed. Where other code breaks that, by writing
//!   to memory that it shared, as little as can be follows from it: a number that decides on an access is read once, and
//!   what was checked is used;
//! - a stream's callbacks may be called, one after the other.
//!
//! Every value of a type here meets S1 and owns what it points to; every reference borrows one that does. It comes from
//! a capsule or from a callback, whose word that is, and which may have released it already, so that both ask first: the
//! other fields of a structure that a producer has released may say anything. Nothing but this file has the pointers, so
//! that what reads a structure is safe.
#![expect(unsafe_code, reason = "follows the pointers of C structures, and releases them")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::{self, ManuallyDrop};
use std::{collections::HashMap, ptr};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::{ArrowError, ffi::Flags};

use crate::fence::{self, calling};

/// A result whose error describes what is wrong with a structure.
pub(in crate::python) type Checked<T = ()> = Result<T, String>;

/// The code for an argument that is wrong, which pyarrow raises as a `ValueError`.
pub(super) const EINVAL: c_int = 22;

/// A type; released when it is dropped, as the other structures are.
#[repr(C)]
pub(in crate::python) struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C-unwind" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// An array.
#[repr(C)]
pub(in crate::python) struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C-unwind" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// A stream of arrays.
#[repr(C)]
pub(in crate::python) struct ArrowArrayStream {
    get_schema: Option<GetSchema>,
    get_next: Option<GetNext>,
    get_last_error: Option<GetLastError>,
    release: Option<ReleaseStream>,
    private_data: *mut c_void,
}

// With unwinding, because a callback may be Python code, or wait for the interpreter, whose end unwinds it.
type GetSchema = unsafe extern "C-unwind" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int;
type GetNext = unsafe extern "C-unwind" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int;
type GetLastError = unsafe extern "C-unwind" fn(*mut ArrowArrayStream) -> *const c_char;
type ReleaseStream = unsafe extern "C-unwind" fn(*mut ArrowArrayStream);

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

    /// One that has been released, for a callback to fill or to leave behind. It has no rows, and points to nothing.
    fn released() -> Self;

    fn is_released(&self) -> bool;

    /// What a producer left, which must not be followed if it is released.
    fn live(self) -> Checked<Self> {
        self.check_live()?;
        Ok(self)
    }

    fn check_live(&self) -> Checked {
        match self.is_released() {
            true => Err(format!("the Arrow {} has been released already", Self::WORD)),
            false => Ok(()),
        }
    }
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
                    calling(|| unsafe { release(self) });
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
// SAFETY: by S1 nothing changes a shared one, and any thread may read it.
unsafe impl Sync for ArrowArray {}
// SAFETY: as for arrays; a stream's callbacks are called one after the other.
unsafe impl Send for ArrowArrayStream {}

/// What is below a structure, in fields of the same names.
macro_rules! tree {
    ($name:ident) => {
        impl $name {
            pub(super) fn n_children(&self) -> i64 {
                self.n_children
            }

            pub(super) fn children(&self) -> Checked<impl Iterator<Item = Checked<&Self>>> {
                Ok((0..self.child_count()?).map(|at| self.child(at)))
            }

            pub(super) fn child(&self, at: usize) -> Checked<&Self> {
                // SAFETY: S1: the pointer is to a structure below this one.
                unsafe { below(self.child_pointer(at)?) }
            }

            fn child_pointer(&self, at: usize) -> Checked<*mut Self> {
                if at >= self.child_count()? {
                    return Err(format!("an Arrow structure has no child {at}"));
                }
                // SAFETY: S1: there is a pointer to each child.
                Ok(unsafe { self.children.add(at).read() })
            }

            /// How many children there are, and pointers to them.
            fn child_count(&self) -> Checked<usize> {
                let said = self.n_children;
                let refuse = |what| Err(format!("an Arrow structure has {said} children{what}"));
                let Ok(count) = usize::try_from(said) else { return refuse("") };
                match count > 0 && (self.children.is_null() || !self.children.is_aligned()) {
                    true => refuse(", but no pointer to them"),
                    false => Ok(count),
                }
            }

            pub(super) fn dictionary(&self) -> Option<Checked<&Self>> {
                // SAFETY: S1.
                (!self.dictionary.is_null()).then(|| unsafe { below(self.dictionary) })
            }
        }
    };
}
tree!(ArrowSchema);
tree!(ArrowArray);

impl ArrowSchema {
    /// The same structure as arrow-rs's.
    pub(super) fn as_arrow_rs(&self) -> &FFI_ArrowSchema {
        // SAFETY: A1.
        unsafe { &*ptr::from_ref(self).cast::<FFI_ArrowSchema>() }
    }

    pub(super) fn format(&self) -> Option<&CStr> {
        // SAFETY: S1.
        unsafe { text(self.format) }
    }

    pub(super) fn name(&self) -> Option<&CStr> {
        // SAFETY: S1.
        unsafe { text(self.name) }
    }

    pub(super) fn has_metadata(&self) -> bool {
        !self.metadata.is_null()
    }

    /// Checks metadata entry by entry: arrow-rs allocates for as many as it claims before it reads them.
    pub(super) fn check_metadata(&self) -> Checked {
        if !self.has_metadata() {
            return Ok(());
        }
        let mut at = self.metadata.cast::<i32>();
        // SAFETY: S1, the number of entries comes first, not aligned; an entry is two texts.
        let entries = unsafe { at.read_unaligned() };
        for _ in 0..2 * i64::from(entries) {
            // SAFETY: S1, behind what came before there is a length, and behind that a text of it.
            let length = unsafe {
                at = at.add(1);
                at.read_unaligned()
            };
            let Ok(bytes) = usize::try_from(length) else {
                return Err(format!("the Arrow schema's metadata has a text of length {length}"));
            };
            // SAFETY: S1, the text is there.
            at = unsafe { at.byte_add(bytes) };
        }
        Ok(())
    }
}

impl ArrowArray {
    pub(in crate::python) fn length(&self) -> i64 {
        self.length
    }

    pub(in crate::python) fn offset(&self) -> i64 {
        self.offset
    }

    pub(super) fn null_count(&self) -> i64 {
        self.null_count
    }

    pub(super) fn n_buffers(&self) -> i64 {
        self.n_buffers
    }

    /// A buffer, which may be NULL; `None` if there is none.
    pub(super) fn buffer(&self, index: usize) -> Option<*const u8> {
        let is_there = !self.buffers.is_null()
            && self.buffers.is_aligned()
            && usize::try_from(self.n_buffers).is_ok_and(|count| index < count);
        // SAFETY: S1, there are as many pointers as buffers.
        is_there.then(|| unsafe { self.buffers.add(index).read() }.cast())
    }

    /// A structure with the children at these positions and no others, which owns all of them.
    pub(super) fn into_part(self, positions: &[usize]) -> Checked<Self> {
        self.child_count()?;
        let kept = positions.iter().map(|&position| self.child_pointer(position));
        let mut kept = kept.collect::<Checked<Vec<_>>>()?;
        let n_children = i64::try_from(kept.len()).unwrap_or(i64::MAX);
        let children = kept.as_mut_ptr();
        // SAFETY: of the two only the whole one is released as its producer wants it: nothing fails from here on.
        let mut part = unsafe { ptr::from_ref(&self).read() };
        (part.n_children, part.children) = (n_children, children);
        part.release = Some(release_part);
        part.private_data = Box::into_raw(Box::new(Whole { array: self, kept })).cast();
        Ok(part)
    }
}

/// What a part of a structure stands for.
#[expect(dead_code, reason = "owns what the part points to")]
struct Whole {
    array: ArrowArray,
    kept: Vec<*mut ArrowArray>,
}

/// Releases the whole structure. Its producer releases the children with it, these and all others.
unsafe extern "C-unwind" fn release_part(part: *mut ArrowArray) {
    // SAFETY: called once, by the interface, with a structure that `into_part` has made.
    unsafe {
        drop(Box::from_raw((*part).private_data.cast::<Whole>()));
        (*part).release = None;
    }
}

impl ArrowArrayStream {
    /// # Safety
    ///
    /// The callbacks meet S1, with this `private_data`.
    pub(super) unsafe fn new(
        get_schema: GetSchema,
        get_next: GetNext,
        get_last_error: GetLastError,
        release: ReleaseStream,
        private_data: *mut c_void,
    ) -> Self {
        Self {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release),
            private_data,
        }
    }

    pub(super) fn private_data(&self) -> *mut c_void {
        self.private_data
    }

    /// Marks it as released, for the callback that releases it, which gets what it is to free.
    pub(super) fn forget(&mut self) -> *mut c_void {
        ManuallyDrop::new(mem::replace(self, Self::released())).private_data
    }

    /// That it can be read.
    pub(super) fn check(&self) -> Checked {
        match (self.get_schema, self.get_next) {
            (Some(_), Some(_)) => Ok(()),
            _ => Err("the Arrow stream has no get_schema or no get_next".to_owned()),
        }
    }

    /// The type of the arrays.
    pub(super) fn schema(&mut self) -> Result<ArrowSchema, Failure<'_>> {
        let get_schema = self.get_schema.ok_or(Failure::UNCALLED)?;
        let mut schema = ArrowSchema::released();
        // SAFETY: S1, and the stream is borrowed mutably, so that no other callback runs.
        match calling(|| unsafe { get_schema(self, &raw mut schema) }) {
            0 if schema.is_released() => {
                let words = Some(c"the Arrow schema has been released already");
                Err(Failure { words, ..Failure::UNCALLED })
            }
            0 => Ok(schema),
            code => Err(self.failed(code)),
        }
    }

    /// The next array, `None` after the last one.
    pub(super) fn next(&mut self) -> Result<Option<ArrowArray>, Failure<'_>> {
        let get_next = self.get_next.ok_or(Failure::UNCALLED)?;
        let mut array = ArrowArray::released();
        // SAFETY: S1, and the stream is borrowed mutably, so that no other callback runs.
        match calling(|| unsafe { get_next(self, &raw mut array) }) {
            0 => Ok(Some(array).filter(|array| !array.is_released())),
            code => Err(self.failed(code)),
        }
    }

    /// What the stream says of the call before, which failed with this code: only then it may be asked.
    fn failed(&mut self, code: c_int) -> Failure<'_> {
        let words = self.get_last_error.and_then(|get_last_error| {
            // SAFETY: S1, and the text is valid until the next call of the stream, which is borrowed.
            calling(|| unsafe { text(get_last_error(self)) })
        });
        Failure { code, words }
    }
}

/// Why a stream has not returned what it was asked for.
pub(super) struct Failure<'a> {
    pub(super) code: c_int,
    pub(super) words: Option<&'a CStr>,
}

impl Failure<'_> {
    /// It has no such function.
    const UNCALLED: Self = Self { code: EINVAL, words: None };
}

/// # Safety
///
/// S1: NULL, or a text that lives as long as the structure that has it, which `'a` borrows.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: S1: it ends with a NUL, and lives during `'a`.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// A structure below another one.
///
/// # Safety
///
/// S1: a structure's pointer to one below it; `'a` borrows it.
unsafe fn below<'a, T: Structure>(structure: *const T) -> Checked<&'a T> {
    if structure.is_null() || !structure.is_aligned() {
        return Err(format!("the Arrow {} has a child that is not there", T::WORD));
    }
    // SAFETY: S1: it is a structure that lives during `'a`.
    let structure = unsafe { &*structure };
    match structure.is_released() {
        true => Err(format!("the Arrow {} has a child that has been released already", T::WORD)),
        false => Ok(structure),
    }
}

/// Turns a panic of arrow-rs, which asserts some of what it imports, into an error.
pub(in crate::python) fn fenced<T>(work: impl FnOnce() -> Result<T, ArrowError>) -> Checked<T> {
    fence::fenced(work)
        .map_err(|_| "the Arrow structure is malformed".to_owned())?
        .map_err(|error| error.to_string())
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
    if format.contains('\0') || name.contains('\0') {
        return Err(ArrowError::CDataInterface("a format or a name has a NUL".to_owned()));
    }
    let schema = FFI_ArrowSchema::try_new(format, children, dictionary)?
        .with_name(name)?
        .with_flags(Flags::from_bits_truncate(flags))?;
    // SAFETY: arrow-rs itself has just made the structure, and what is behind its `private_data`.
    unsafe { with_metadata(schema, metadata) }
}
