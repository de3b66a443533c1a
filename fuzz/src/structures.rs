//! Arrow C structures that say anything, over memory that is there wherever they could be believed.

use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arbitrary::{Result, Unstructured};

use crate::draw::{self, rarely};

/// `ArrowSchema` of the C data interface.
#[repr(C)]
pub(crate) struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// `ArrowArray` of the C data interface.
#[repr(C)]
pub(crate) struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// The holder of a structure that is handed to nobody releases it.
macro_rules! released_when_dropped {
    ($name:ident) => {
        impl Drop for $name {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: the callback is this file's, and is called once.
                    unsafe { release(self) };
                }
            }
        }
    };
}
released_when_dropped!(ArrowSchema);
released_when_dropped!(ArrowArray);

/// How often the structures of one pair have been released.
#[derive(Debug, Default)]
pub(crate) struct Releases {
    pub(crate) schema: AtomicUsize,
    pub(crate) array: AtomicUsize,
}

/// A pair as an object hands it out, its memory and what became of it.
pub(crate) struct Pair {
    pub(crate) schema: ArrowSchema,
    pub(crate) array: ArrowArray,
    pub(crate) releases: Arc<Releases>,
}

/// What either structure points to: it goes when both have been released.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "pointers to them are handed out")]
struct Arena {
    bytes: Vec<Box<[u64]>>,
    texts: Vec<CString>,
    schemas: Vec<Box<ArrowSchema>>,
    arrays: Vec<Box<ArrowArray>>,
    schema_lists: Vec<Box<[*mut ArrowSchema]>>,
    array_lists: Vec<Box<[*mut ArrowArray]>>,
    buffer_lists: Vec<Box<[*const c_void]>>,
}

struct Private {
    _arena: Arc<Arena>,
    releases: Arc<Releases>,
}

// SAFETY: nothing in it changes until it is dropped.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the interface calls this once, with the structure or where it was moved to.
    unsafe {
        let private = Box::from_raw((*schema).private_data.cast::<Private>());
        private.releases.schema.fetch_add(1, Ordering::SeqCst);
        (*schema).release = None;
    }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: as above.
    unsafe {
        let private = Box::from_raw((*array).private_data.cast::<Private>());
        private.releases.array.fetch_add(1, Ordering::SeqCst);
        (*array).release = None;
    }
}

/// Children belong to their parent, which frees them.
unsafe extern "C" fn release_child_schema(schema: *mut ArrowSchema) {
    // SAFETY: as above.
    unsafe { (*schema).release = None }
}

unsafe extern "C" fn release_child_array(array: *mut ArrowArray) {
    // SAFETY: as above.
    unsafe { (*array).release = None }
}

/// Format, buffers besides the validity and the bytes of a value in the first of them, children.
struct Kind(&'static str, usize, usize, usize);

const KINDS: [Kind; 42] = [
    Kind("c", 1, 1, 0),
    Kind("C", 1, 1, 0),
    Kind("s", 1, 2, 0),
    Kind("S", 1, 2, 0),
    Kind("i", 1, 4, 0),
    Kind("I", 1, 4, 0),
    Kind("l", 1, 8, 0),
    Kind("L", 1, 8, 0),
    Kind("e", 1, 2, 0),
    Kind("f", 1, 4, 0),
    Kind("g", 1, 8, 0),
    Kind("b", 1, 1, 0),
    Kind("n", 0, 0, 0),
    Kind("w:3", 1, 3, 0),
    Kind("w:0", 1, 0, 0),
    Kind("u", 2, 4, 0),
    Kind("z", 2, 4, 0),
    Kind("U", 2, 8, 0),
    Kind("Z", 2, 8, 0),
    Kind("vu", 1, 16, 0),
    Kind("vz", 1, 16, 0),
    Kind("tdD", 1, 4, 0),
    Kind("tdm", 1, 8, 0),
    Kind("tsu:UTC", 1, 8, 0),
    Kind("ttn", 1, 8, 0),
    Kind("tin", 1, 16, 0),
    Kind("d:5,2", 1, 16, 0),
    Kind("d:5,2,32", 1, 4, 0),
    Kind("+l", 1, 4, 1),
    Kind("+L", 1, 8, 1),
    Kind("+vl", 2, 4, 1),
    Kind("+vL", 2, 8, 1),
    Kind("+w:2", 0, 0, 1),
    Kind("+w:0", 0, 0, 1),
    Kind("+w:1", 0, 0, 1),
    Kind("+s", 0, 0, 2),
    Kind("+s", 0, 0, 0),
    Kind("+m", 1, 4, 1),
    Kind("+ud:0,1", 2, 1, 2),
    Kind("+us:0,1", 1, 1, 2),
    Kind("+r", 0, 0, 2),
    Kind("+l", 1, 4, 1),
];

const GARBAGE: [&str; 10] =
    ["", "x", "w:-1", "+w:-2", "w:99999999999", "d:", "+ud:", "tsX", "+w:", "+ud:0,0"];

/// Bytes behind offsets, whatever they say.
const TEXT: usize = 512;

impl Pair {
    pub(crate) fn draw(u: &mut Unstructured<'_>) -> Result<Self> {
        let mut arena = Arena::default();
        let (mut schema, mut array) = arena.node(u, 3)?;
        let (arena, releases) = (Arc::new(arena), Arc::new(Releases::default()));
        let private = || {
            let private = Private { _arena: Arc::clone(&arena), releases: Arc::clone(&releases) };
            Box::into_raw(Box::new(private)).cast::<c_void>()
        };
        schema.private_data = private();
        schema.release = Some(release_schema);
        array.private_data = private();
        array.release = Some(release_array);
        Ok(Self { schema, array, releases })
    }
}

impl Arena {
    fn text(&mut self, text: &[u8]) -> *const c_char {
        let text = CString::new(text).expect("no NUL");
        let at = text.as_ptr();
        self.texts.push(text);
        at
    }

    /// So many bytes, which say something of this width: small numbers, zeros, or anything.
    fn buffer(&mut self, u: &mut Unstructured<'_>, len: usize, width: usize) -> Result<*mut u8> {
        let mut bytes = match u.int_in_range(0..=7)? {
            0 => vec![0; len],
            1 => draw::bytes(u.arbitrary()?, len, 0xFF),
            _ => {
                let seed = draw::bytes(u.arbitrary()?, len, 3);
                let low = seed.iter().enumerate();
                low.map(|(at, &byte)| if at % width.max(1) == 0 { byte } else { 0 }).collect()
            }
        };
        if rarely(u, 2)? {
            // Numbers that rise, as offsets do.
            for (index, number) in bytes.chunks_exact_mut(width.max(1)).enumerate() {
                number.fill(0);
                number[0] = u8::try_from(index).unwrap_or(u8::MAX);
            }
        }
        let mut words = vec![0u64; len / 8 + 2].into_boxed_slice();
        // At the end of the block, so that what lies behind is the sanitizer's.
        let block = words.as_mut_ptr().cast::<u8>();
        let at = if len.is_multiple_of(8) { (len / 8 + 2) * 8 - len } else { 0 };
        let misalign = usize::from(rarely(u, 16)? && at > 0);
        let start = block.wrapping_add(at - misalign);
        // SAFETY: all of them fit the block from there on.
        unsafe { start.copy_from_nonoverlapping(bytes.as_ptr(), len) };
        self.bytes.push(words);
        Ok(start)
    }

    fn node(
        &mut self,
        u: &mut Unstructured<'_>,
        depth: usize,
    ) -> Result<(ArrowSchema, ArrowArray)> {
        let Kind(format, others, width, n_children) = loop {
            let kind = u.choose_iter(KINDS.iter())?;
            if kind.3 == 0 || depth > 0 {
                break kind;
            }
            if u.is_empty() {
                break &KINDS[0];
            }
        };
        let is_spoilt = rarely(u, 8)?;
        let mut length = u.int_in_range(0..=12)?;
        let mut offset = if rarely(u, 3)? { u.int_in_range(0..=5)? } else { 0 };
        // What has no buffers may be as long as it likes.
        let (no_memory, mut end) = (*others == 0 || *width == 0, length + offset);
        let mut is_huge = false;
        if is_spoilt && rarely(u, 3)? {
            let wrong = [-1, i64::MIN, i64::MAX];
            let long = [1 << 40, 1 << 62, i64::MAX - 1, i64::MAX, -1];
            let value = *u.choose(if no_memory { &long[..] } else { &wrong[..] })?;
            is_huge = true;
            if u.ratio(1, 4)? {
                offset = value
            } else {
                length = value
            }
            if !no_memory {
                end = 12;
            }
        }
        let end = usize::try_from(end).unwrap_or_default().min(32);

        let mut children = Vec::new();
        for _ in 0..*n_children {
            children.push(self.node(u, depth - 1)?);
        }
        let mut dictionary = None;
        if matches!(*format, "c" | "s" | "i" | "L") && depth > 0 && rarely(u, 6)? {
            dictionary = Some(self.node(u, 0)?);
        }

        let mut buffers: Vec<*const c_void> = Vec::new();
        let has_validity = !format.starts_with("+u") && !matches!(*format, "n" | "+r");
        let mut null_count = 0;
        if has_validity {
            let has_nulls = !is_huge && rarely(u, 3)?;
            buffers.push(if has_nulls {
                null_count = *u.choose(&[-1, 0, 1, length.max(0)])?;
                self.buffer(u, end.div_ceil(8), 1)?.cast_const().cast()
            } else {
                ptr::null()
            });
        }
        for index in 0..*others {
            let buffer = match (*format, index) {
                ("u" | "z" | "U" | "Z", 0) => {
                    let start = self.buffer(u, (end + 1) * width, *width)?;
                    // What the last one says is believed: it is true, or obviously not.
                    let last =
                        if rarely(u, 16)? { -1i64 } else { u.int_in_range(0..=TEXT)? as i64 };
                    let last = last.to_le_bytes();
                    // SAFETY: the buffer has `end + 1` of them.
                    unsafe {
                        start.add(end * width).copy_from_nonoverlapping(last.as_ptr(), *width)
                    };
                    start
                }
                ("u" | "z" | "U" | "Z", _) => self.buffer(u, TEXT, 1)?,
                ("b", _) => self.buffer(u, end.div_ceil(8), 1)?,
                ("+l" | "+L" | "+m", _) => self.buffer(u, (end + 1) * width, *width)?,
                ("+ud:0,1", 1) => self.buffer(u, end * 4, 4)?,
                _ => self.buffer(u, end * width, *width)?,
            };
            buffers.push(buffer.cast_const().cast());
        }
        if format.starts_with('v') {
            let count = u.int_in_range(0..=2)?;
            let mut sizes = Vec::new();
            for _ in 0..count {
                let size = u.int_in_range(0..=40)?;
                buffers.push(self.buffer(u, size, 1)?.cast_const().cast());
                sizes.push(if rarely(u, 8)? { -1 } else { size as i64 });
            }
            let words: Box<[u64]> = sizes.iter().map(|&size| size as u64).collect();
            buffers.push(if sizes.is_empty() { ptr::null() } else { words.as_ptr().cast() });
            self.bytes.push(words);
        }
        let mut n_buffers = buffers.len() as i64;
        if is_spoilt {
            match u.int_in_range(0..=7)? {
                0 => n_buffers = *u.choose(&[-1, 0, 1, 2, 3, 4, i64::MAX, i64::MIN])?,
                1 => null_count = u.arbitrary()?,
                2 if !buffers.is_empty() => {
                    let index = u.choose_index(buffers.len())?;
                    buffers[index] = ptr::null();
                }
                _ => {}
            }
            if n_buffers > buffers.len() as i64 && format.starts_with('v') {
                // It cannot be distinguished from more buffers.
                n_buffers = buffers.len() as i64;
            }
        }

        let (schemas, arrays): (Vec<_>, Vec<_>) = children.into_iter().unzip();
        let mut schemas: Box<[*mut ArrowSchema]> =
            schemas.into_iter().map(|schema| self.keep_schema(schema)).collect();
        let mut arrays: Box<[*mut ArrowArray]> =
            arrays.into_iter().map(|array| self.keep_array(array)).collect();
        let (mut n_schemas, mut n_arrays) = (schemas.len() as i64, arrays.len() as i64);
        let (mut schema_list, mut array_list) = (schemas.as_mut_ptr(), arrays.as_mut_ptr());
        let mut name = self.text(b"x");
        let mut garbage = None;
        if is_spoilt {
            match u.int_in_range(0..=11)? {
                0 => n_schemas = *u.choose(&[-1, 0, i64::MIN, n_schemas.min(1)])?,
                1 => n_arrays = *u.choose(&[-1, 0, 1, 2, 3, i64::MAX])?,
                2 => schema_list = ptr::null_mut(),
                3 => array_list = ptr::null_mut(),
                4 if !schemas.is_empty() => schemas[0] = ptr::null_mut(),
                5 if !arrays.is_empty() => arrays[0] = ptr::null_mut(),
                6 => name = self.text(b"\xFF\xFE"),
                7 => name = ptr::null(),
                8 | 9 => garbage = Some(*u.choose(&GARBAGE)?),
                _ => {}
            }
        }
        let mut buffers = buffers.into_boxed_slice();
        let mut buffer_list = buffers.as_mut_ptr();
        if is_spoilt && rarely(u, 8)? {
            buffer_list = ptr::null_mut();
        }
        let metadata = self.metadata(u)?;
        let dictionary =
            dictionary.map(|(schema, array)| (self.keep_schema(schema), self.keep_array(array)));
        let (mut dictionary_schema, mut dictionary_array) =
            dictionary.unwrap_or((ptr::null_mut(), ptr::null_mut()));
        if is_spoilt && rarely(u, 8)? {
            if u.ratio(1, 2)? {
                dictionary_schema = ptr::null_mut()
            } else {
                dictionary_array = ptr::null_mut()
            }
        }
        let format = self.text(garbage.unwrap_or(format).as_bytes());
        self.schema_lists.push(schemas);
        self.array_lists.push(arrays);
        self.buffer_lists.push(buffers);
        let schema = ArrowSchema {
            format,
            name,
            metadata,
            flags: if rarely(u, 8)? { u.arbitrary()? } else { 2 },
            n_children: n_schemas,
            children: schema_list,
            dictionary: dictionary_schema,
            release: if is_spoilt && rarely(u, 8)? { None } else { Some(release_child_schema) },
            private_data: ptr::null_mut(),
        };
        let array = ArrowArray {
            length,
            null_count,
            offset,
            n_buffers,
            n_children: n_arrays,
            buffers: buffer_list,
            children: array_list,
            dictionary: dictionary_array,
            release: Some(release_child_array),
            private_data: ptr::null_mut(),
        };
        Ok((schema, array))
    }

    fn keep_schema(&mut self, schema: ArrowSchema) -> *mut ArrowSchema {
        let mut schema = Box::new(schema);
        let at = &raw mut *schema;
        self.schemas.push(schema);
        at
    }

    fn keep_array(&mut self, array: ArrowArray) -> *mut ArrowArray {
        let mut array = Box::new(array);
        let at = &raw mut *array;
        self.arrays.push(array);
        at
    }

    /// Pairs of texts, each behind its length: an extension type, or a lie that shows.
    fn metadata(&mut self, u: &mut Unstructured<'_>) -> Result<*const c_char> {
        if !rarely(u, 6)? {
            return Ok(ptr::null());
        }
        let mut bytes = Vec::new();
        match u.int_in_range(0..=5)? {
            0 => bytes.extend((-1i32).to_le_bytes()),
            1 => bytes.extend([1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]),
            _ => {
                let &(name, text) = u.choose(&[
                    ("arrow.bool8", ""),
                    ("arrow.fixed_shape_tensor", r#"{"shape":[2]}"#),
                    ("arrow.fixed_shape_tensor", r#"{"shape":[1,2],"permutation":[1,0]}"#),
                    ("arrow.fixed_shape_tensor", r#"{"shape":[-1]}"#),
                    ("arrow.opaque", r#"{"type_name":"bfloat16","vendor_name":"dlpack"}"#),
                    ("arrow.variable_shape_tensor", "{}"),
                    ("someone.else", "{"),
                ])?;
                let pairs = [("ARROW:extension:name", name), ("ARROW:extension:metadata", text)];
                bytes.extend(2i32.to_le_bytes());
                for text in pairs.into_iter().flat_map(|(key, value)| [key, value]) {
                    bytes.extend((text.len() as i32).to_le_bytes());
                    bytes.extend_from_slice(text.as_bytes());
                }
            }
        }
        let mut words = vec![0u64; bytes.len() / 8 + 1].into_boxed_slice();
        // SAFETY: they fit the block.
        unsafe {
            words.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
        };
        let at = words.as_ptr().cast();
        self.bytes.push(words);
        Ok(at)
    }
}
