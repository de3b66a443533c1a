//! Element types as Python spells them: formats of the buffer protocol, typestrs of the array
//! interfaces.
//!
//! Sources: <https://docs.python.org/3/library/struct.html#format-strings>,
//! <https://peps.python.org/pep-3118/#additions-to-the-struct-string-syntax> and
//! <https://numpy.org/doc/stable/reference/arrays.interface.html>. A tensor's element is one number in
//! the machine's own byte order; this module refuses all other spellings, with a remedy.

use std::ffi::{CStr, c_int, c_long, c_short};

use pyo3::{exceptions::PyBufferError, prelude::*};

use crate::ffi::{DLDataType, DLDataTypeCode};
use crate::python::errors::unsupported;

/// A number's format code in the struct module: its spelling, its kind, its size in bytes on this platform, as the C
/// compiler has it, and its standard size, for formats with a byte order; `None` if it is only native.
type FormatCode = (&'static CStr, DLDataTypeCode, usize, Option<usize>);

/// `F` and `D` are Python 3.14's complex numbers, and NumPy's; `Z` is PEP 3118's.
const FORMAT_CODES: &[FormatCode] = &[
    (c"b", DLDataTypeCode::INT, 1, Some(1)),
    (c"h", DLDataTypeCode::INT, size_of::<c_short>(), Some(2)),
    (c"l", DLDataTypeCode::INT, size_of::<c_long>(), Some(4)),
    (c"i", DLDataTypeCode::INT, size_of::<c_int>(), Some(4)),
    (c"q", DLDataTypeCode::INT, 8, Some(8)),
    (c"n", DLDataTypeCode::INT, size_of::<isize>(), None),
    (c"B", DLDataTypeCode::UINT, 1, Some(1)),
    (c"c", DLDataTypeCode::UINT, 1, Some(1)),
    (c"H", DLDataTypeCode::UINT, size_of::<c_short>(), Some(2)),
    (c"L", DLDataTypeCode::UINT, size_of::<c_long>(), Some(4)),
    (c"I", DLDataTypeCode::UINT, size_of::<c_int>(), Some(4)),
    (c"Q", DLDataTypeCode::UINT, 8, Some(8)),
    (c"N", DLDataTypeCode::UINT, size_of::<usize>(), None),
    (c"e", DLDataTypeCode::FLOAT, 2, Some(2)),
    (c"f", DLDataTypeCode::FLOAT, 4, Some(4)),
    (c"d", DLDataTypeCode::FLOAT, 8, Some(8)),
    (c"?", DLDataTypeCode::BOOL, 1, Some(1)),
    (c"Ze", DLDataTypeCode::COMPLEX, 4, Some(4)),
    (c"Zf", DLDataTypeCode::COMPLEX, 8, Some(8)),
    (c"Zd", DLDataTypeCode::COMPLEX, 16, Some(16)),
    (c"F", DLDataTypeCode::COMPLEX, 8, Some(8)),
    (c"D", DLDataTypeCode::COMPLEX, 16, Some(16)),
];

/// The dtype of a buffer of this format, whose items take `itemsize` bytes. An `itemsize` of 0, which empty
/// exporters have, fits any format.
pub(in crate::python) fn of_format(format: &str, itemsize: usize) -> PyResult<DLDataType> {
    let refuse = |way_out: &str| Err(refusal("buffer format", format, way_out));
    let order = format.chars().next().filter(|order| "@^=<>!".contains(*order));
    let spelling = format.get(order.map_or(0, char::len_utf8)..).unwrap_or_default();
    let Some(&(_, code, native, standard)) = code_of(spelling) else {
        return refuse(way_out_of(spelling));
    };
    let size = match order {
        None | Some('@' | '^') => Some(native),
        Some(_) => standard,
    };
    let Some(size) = size else { return refuse("it has no size of its own in a byte order") };
    if is_swapped(order) && size > 1 {
        return refuse(&swap(code, size));
    }
    if itemsize != 0 && itemsize != size {
        return Err(PyBufferError::new_err(format!(
            "buffer format {format:?} is {size} bytes, but the buffer's items have {itemsize}"
        )));
    }
    number(code, size).map_or_else(|| refuse("no dtype has its size"), Ok)
}

fn code_of(spelling: &str) -> Option<&'static FormatCode> {
    FORMAT_CODES.iter().find(|(known, ..)| known.to_bytes() == spelling.as_bytes())
}

/// The format of a dtype's items.
pub(in crate::python) fn format_of(dtype: DLDataType) -> Option<&'static CStr> {
    // NumPy has a type for each of C's, and its int64 is C's long where that has 64 bits, its int32 where it has 32, so
    // that "l" comes first: "q" would be numpy.longlong, "i" numpy.intc, which equal them and are other classes. No
    // consumer knows "Ze".
    let is = |&&(known, code, native, _): &&FormatCode| {
        known != c"Ze" && number(code, native) == Some(dtype)
    };
    FORMAT_CODES.iter().find(is).map(|(known, ..)| *known)
}

/// NumPy's letters for numbers of any size.
const KINDS: [(char, DLDataTypeCode); 4] = [
    ('i', DLDataTypeCode::INT),
    ('u', DLDataTypeCode::UINT),
    ('f', DLDataTypeCode::FLOAT),
    ('c', DLDataTypeCode::COMPLEX),
];

/// The dtype of a typestr, such as `<f4`.
pub(in crate::python) fn of_typestr(typestr: &str) -> PyResult<DLDataType> {
    let refuse = |way_out: &str| Err(refusal("typestr", typestr, way_out));
    let malformed = || {
        Err(PyBufferError::new_err(format!(
            "{typestr:?} is not a typestr, which is a byte order, a kind and a size, such as \"<f4\""
        )))
    };
    let mut rest = typestr.chars();
    let (Some(order @ ('<' | '>' | '=' | '|')), Some(kind)) = (rest.next(), rest.next()) else {
        return malformed();
    };
    let code = match kind {
        'b' => DLDataTypeCode::BOOL,
        'm' | 'M' if is_swapped(Some(order)) => {
            return refuse(
                "it is a time in the other byte order than this machine's: with a = numpy.asarray(x), \
                 a.astype(a.dtype.newbyteorder(\"=\")).view(\"int64\") has its numbers",
            );
        }
        'm' | 'M' => {
            return refuse("it is a time: numpy.asarray(x).view(\"int64\") has its numbers");
        }
        'O' => return refuse(OBJECTS),
        'S' | 'U' | 'a' => {
            return refuse("it is text: numpy.asarray(x).view(\"uint8\") has its bytes");
        }
        't' => return refuse("it is bits: numpy.unpackbits makes bytes of them"),
        'V' => return refuse(STRUCTURED),
        kind => match KINDS.iter().find(|(known, _)| *known == kind) {
            Some(&(_, code)) => code,
            None => return refuse("its kind is not known"),
        },
    };
    // `parse` alone would take a sign.
    let size = rest.as_str();
    let digits = size.bytes().all(|digit| digit.is_ascii_digit());
    let (true, Ok(size)) = (digits, size.parse::<usize>()) else { return malformed() };
    match number(code, size) {
        Some(_) if is_swapped(Some(order)) && size > 1 => refuse(&swap(code, size)),
        Some(dtype) => Ok(dtype),
        None if kind == 'f' => refuse(LONG_DOUBLE),
        None if kind == 'c' => refuse(LONG_COMPLEX),
        None => refuse("no dtype has its size"),
    }
}

/// A number in the other byte order than this machine's.
pub(in crate::python) struct OtherOrder;

/// The dtype of NumPy's code for it, such as `f4`, `<f4` or `d`; `None` for other texts.
pub(in crate::python) fn of_code(code: &str) -> Option<Result<DLDataType, OtherOrder>> {
    let order = code.chars().next().filter(|order| "<>=|".contains(*order));
    let rest = code.get(order.map_or(0, char::len_utf8)..).unwrap_or_default();
    let (kind, digits) = rest.split_at_checked(1)?;
    let dtype = match (kind, digits) {
        // In NumPy `c` is a text, and `b1` a boolean although `b` is an integer.
        ("c", "") => None,
        (_, "") => {
            let &(_, code, native, _) = code_of(kind)?;
            number(code, native)
        }
        _ if !digits.bytes().all(|digit| digit.is_ascii_digit()) => None,
        ("b", "1") => Some(DLDataType::BOOL),
        _ => {
            let &(_, code) = KINDS.iter().find(|(known, _)| kind.starts_with(*known))?;
            number(code, digits.parse().ok()?)
        }
    }?;
    Some(if is_swapped(order) && dtype.bits > 8 { Err(OtherOrder) } else { Ok(dtype) })
}

const OBJECTS: &str =
    "it is Python objects: make numbers of them, with numpy.asarray(x).astype(\"float64\")";
const LONG_DOUBLE: &str = "convert it, with numpy.asarray(x).astype(\"float64\")";
const LONG_COMPLEX: &str = "convert it, with numpy.asarray(x).astype(\"complex128\")";
const POINTERS: &str = "it is pointers: numpy.frombuffer(x, \"uintp\") has their addresses";
const STRUCTURED: &str = "an element is not one number: take a field of it, such as \
                          numpy.asarray(x)[\"name\"], or its bytes, with \
                          numpy.asarray(x).view(\"uint8\")";

fn refusal(what: &str, spelling: &str, way_out: &str) -> PyErr {
    unsupported(format!("{what} {spelling:?} has no tensor form: {way_out}"))
}

/// The remedy for a format that is not a single number.
fn way_out_of(spelling: &str) -> &'static str {
    let counted = spelling.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let is_first = |(known, ..): &FormatCode| counted.as_bytes().starts_with(known.to_bytes());
    match counted {
        "O" => OBJECTS,
        "s" | "p" | "u" | "w" => "it is text: numpy.frombuffer(x, \"uint8\") has its bytes",
        "g" => LONG_DOUBLE,
        "Zg" | "G" => LONG_COMPLEX,
        "P" => POINTERS,
        "x" => "it is padding: numpy.frombuffer(x, \"uint8\") has its bytes",
        _ => match counted.chars().next() {
            Some('&' | 'X') => POINTERS,
            Some('(' | 'T') => STRUCTURED,
            Some(_) if FORMAT_CODES.iter().any(is_first) => STRUCTURED,
            _ => "it is not a format that the struct module knows",
        },
    }
}

/// Whether a byte order is not this machine's, which is little-endian, as the crate demands.
fn is_swapped(order: Option<char>) -> bool {
    matches!(order, Some('>' | '!'))
}

/// The remedy for the other byte order.
fn swap(code: DLDataTypeCode, size: usize) -> String {
    let kind = KINDS.iter().find(|(_, known)| *known == code).map_or('f', |&(kind, _)| kind);
    format!(
        "its bytes are in the other order than this machine's: swap them, with \
         numpy.asarray(x).astype(\"<{kind}{size}\")"
    )
}

/// The dtype of numbers of this size in bytes, if there is one. (DLPack could say `int128` too, and
/// 16 bytes of `float` are not IEEE's on most.)
fn number(code: DLDataTypeCode, size: usize) -> Option<DLDataType> {
    let sizes: &[usize] = match code {
        DLDataTypeCode::BOOL => &[1],
        DLDataTypeCode::FLOAT => &[2, 4, 8],
        DLDataTypeCode::COMPLEX => &[4, 8, 16],
        _ => &[1, 2, 4, 8],
    };
    let bits = sizes.contains(&size).then(|| u8::try_from(size * 8).ok())??;
    Some(DLDataType::scalar(code, bits))
}
