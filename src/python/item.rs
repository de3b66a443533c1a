//! Element types as Python spells them: formats of the buffer protocol, typestrs of the array
//! interfaces.
//!
//! Sources: <https://docs.python.org/3/library/struct.html#format-strings>,
//! <https://peps.python.org/pep-3118/#additions-to-the-struct-string-syntax> and
//! <https://numpy.org/doc/stable/reference/arrays.interface.html>. A tensor's element is one number in
//! the machine's own byte order; this module refuses all other spellings, with a remedy.

use std::ffi::{c_int, c_long, c_short};

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use super::error::unsupported;
use crate::ffi::{DLDataType, DLDataTypeCode};

/// A number as the struct module spells it.
struct Item {
    spelling: &'static str,
    code: DLDataTypeCode,
    /// Bytes it takes here, by the C compiler's say.
    native: usize,
    /// Bytes it takes everywhere, once a byte order has been given; `None` if it cannot be given.
    standard: Option<usize>,
}

const fn item(
    spelling: &'static str,
    code: DLDataTypeCode,
    native: usize,
    standard: Option<usize>,
) -> Item {
    Item { spelling, code, native, standard }
}

/// `F` and `D` are Python 3.14's complex numbers, and NumPy's; `Z` is PEP 3118's.
const ITEMS: &[Item] = &[
    item("b", DLDataTypeCode::INT, 1, Some(1)),
    item("h", DLDataTypeCode::INT, size_of::<c_short>(), Some(2)),
    item("i", DLDataTypeCode::INT, size_of::<c_int>(), Some(4)),
    item("l", DLDataTypeCode::INT, size_of::<c_long>(), Some(4)),
    item("q", DLDataTypeCode::INT, 8, Some(8)),
    item("n", DLDataTypeCode::INT, size_of::<isize>(), None),
    item("B", DLDataTypeCode::UINT, 1, Some(1)),
    item("c", DLDataTypeCode::UINT, 1, Some(1)),
    item("H", DLDataTypeCode::UINT, size_of::<c_short>(), Some(2)),
    item("I", DLDataTypeCode::UINT, size_of::<c_int>(), Some(4)),
    item("L", DLDataTypeCode::UINT, size_of::<c_long>(), Some(4)),
    item("Q", DLDataTypeCode::UINT, 8, Some(8)),
    item("N", DLDataTypeCode::UINT, size_of::<usize>(), None),
    item("e", DLDataTypeCode::FLOAT, 2, Some(2)),
    item("f", DLDataTypeCode::FLOAT, 4, Some(4)),
    item("d", DLDataTypeCode::FLOAT, 8, Some(8)),
    item("?", DLDataTypeCode::BOOL, 1, Some(1)),
    item("Ze", DLDataTypeCode::COMPLEX, 4, Some(4)),
    item("Zf", DLDataTypeCode::COMPLEX, 8, Some(8)),
    item("Zd", DLDataTypeCode::COMPLEX, 16, Some(16)),
    item("F", DLDataTypeCode::COMPLEX, 8, Some(8)),
    item("D", DLDataTypeCode::COMPLEX, 16, Some(16)),
];

/// The dtype of a buffer of this format, whose items take `itemsize` bytes. An `itemsize` of 0, which
/// exporters of nothing have, fits any format.
pub(super) fn of_format(format: &str, itemsize: usize) -> PyResult<DLDataType> {
    let refuse = |way_out: &str| Err(refusal("buffer format", format, way_out));
    let order = format.chars().next().filter(|order| "@^=<>!".contains(*order));
    let spelling = format.get(order.map_or(0, char::len_utf8)..).unwrap_or_default();
    let Some(item) = ITEMS.iter().find(|item| item.spelling == spelling) else {
        return refuse(way_out_of(spelling));
    };
    let size = match order {
        None | Some('@' | '^') => Some(item.native),
        Some(_) => item.standard,
    };
    let Some(size) = size else { return refuse("it has no size of its own in a byte order") };
    if is_swapped(order) && size > 1 {
        return refuse(&swap(item.code, size));
    }
    if itemsize != 0 && itemsize != size {
        return Err(PyBufferError::new_err(format!(
            "buffer format {format:?} is {size} bytes, but the buffer's items have {itemsize}"
        )));
    }
    number(item.code, size).map_or_else(|| refuse("no dtype has its size"), Ok)
}

/// The dtype of a typestr, such as `<f4`.
pub(super) fn of_typestr(typestr: &str) -> PyResult<DLDataType> {
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
        'i' => DLDataTypeCode::INT,
        'u' => DLDataTypeCode::UINT,
        'f' => DLDataTypeCode::FLOAT,
        'c' => DLDataTypeCode::COMPLEX,
        'b' => DLDataTypeCode::BOOL,
        'm' | 'M' => {
            return refuse("it is a time: numpy.asarray(x).view(\"int64\") has its numbers");
        }
        'O' => return refuse(OBJECTS),
        'S' | 'U' | 'a' => {
            return refuse("it is text: numpy.asarray(x).view(\"uint8\") has its bytes");
        }
        't' => return refuse("it is bits: numpy.unpackbits makes bytes of them"),
        'V' => return refuse(STRUCTURED),
        _ => return refuse("its kind is not known"),
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

/// A number in the byte order that is not this machine's.
pub(super) struct OtherOrder;

/// The dtype of NumPy's code for it, such as `f4`, `<f4` or `d`; `None` for what is no code of a number.
pub(super) fn of_code(code: &str) -> Option<Result<DLDataType, OtherOrder>> {
    let order = code.chars().next().filter(|order| "<>=|".contains(*order));
    let rest = code.get(order.map_or(0, char::len_utf8)..).unwrap_or_default();
    let (kind, digits) = rest.split_at_checked(1)?;
    let dtype = match (kind, digits) {
        // What `c` and `b1` are elsewhere: a text, and an integer.
        ("c", "") => None,
        (_, "") => {
            let item = ITEMS.iter().find(|item| item.spelling == kind)?;
            number(item.code, item.native)
        }
        _ if !digits.bytes().all(|digit| digit.is_ascii_digit()) => None,
        ("b", "1") => Some(DLDataType::BOOL),
        _ => {
            let code = match kind {
                "i" => DLDataTypeCode::INT,
                "u" => DLDataTypeCode::UINT,
                "f" => DLDataTypeCode::FLOAT,
                "c" => DLDataTypeCode::COMPLEX,
                _ => return None,
            };
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

/// What to do about a spelling that is not one number.
fn way_out_of(spelling: &str) -> &'static str {
    let counted = spelling.trim_start_matches(|digit: char| digit.is_ascii_digit());
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
            Some(_) if ITEMS.iter().any(|item| counted.starts_with(item.spelling)) => STRUCTURED,
            _ => "it is not a format that the struct module knows",
        },
    }
}

/// Whether the bytes of a number come in the order that is not this machine's.
fn is_swapped(order: Option<char>) -> bool {
    match order {
        Some('>' | '!') => cfg!(target_endian = "little"),
        Some('<') => cfg!(target_endian = "big"),
        _ => false,
    }
}

/// How to have them in the machine's order.
fn swap(code: DLDataTypeCode, size: usize) -> String {
    let order = if cfg!(target_endian = "little") { '<' } else { '>' };
    let kind = match code {
        DLDataTypeCode::INT => 'i',
        DLDataTypeCode::UINT => 'u',
        DLDataTypeCode::COMPLEX => 'c',
        _ => 'f',
    };
    format!(
        "its bytes are in the other order than this machine's: swap them, with \
         numpy.asarray(x).astype(\"{order}{kind}{size}\")"
    )
}

/// The dtype of numbers of this many bytes, if machines have them. (DLPack could say `int128` too, and
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
