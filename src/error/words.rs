//! Formatting of error messages.

use core::fmt;

use arrow_schema::{DataType, Field};

use crate::ffi::{DLDataType, DLDataTypeCode};

/// The first errors, each cut to a few lines, and the number of the others.
pub(super) struct OnePerLine<'a, E>(pub(super) &'a [E]);

impl<E: fmt::Display> fmt::Display for OnePerLine<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 20;
        const LONGEST: usize = 300;
        for error in self.0.iter().take(SHOWN) {
            let text = error.to_string();
            let end = text.char_indices().nth(LONGEST).map_or(text.len(), |(end, _)| end);
            let more = if end < text.len() { "..." } else { "" };
            write!(f, "\n  {}{more}", &text[..end])?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

/// The first names, each cut to its beginning, and the number of the others.
pub(crate) struct Names<'a, N>(pub(crate) &'a [N]);

impl<N: AsRef<str>> fmt::Display for Names<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 30;
        const LONGEST: usize = 100;
        for (at, name) in self.0.iter().map(AsRef::as_ref).take(SHOWN).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            match name.char_indices().nth(LONGEST) {
                Some((end, _)) => write!(f, "{comma}{:?}...", &name[..end])?,
                None => write!(f, "{comma}{name:?}")?,
            }
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

/// A count of things, whose name gets an s for the plural.
pub(crate) struct Count(pub(crate) usize, pub(crate) &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count, name) = self;
        write!(f, "{count} {name}{}", if *count == 1 { "" } else { "s" })
    }
}

/// More advice for a type that is not just a number.
pub(super) fn or_floats(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Decimal32(..) | DataType::Decimal64(..) => {
            ", or ask for dtype float64 for the numbers that they stand for"
        }
        _ => "",
    }
}

/// Advice for the storage of an extension type.
pub(super) fn of_storage(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => {
            "use export::ragged, with ExportOptions::with_physical, for its storage"
        }
        DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => {
            "convert the children of its storage one by one"
        }
        _ => "use ExportOptions::with_physical for its storage",
    }
}

/// Advice for an unknown dtype: the name that was probably meant, or the libraries whose names are known.
pub(super) fn known(name: &str) -> String {
    match DLDataType::named_like(name) {
        Some(meant) => format!("did you mean {:?}?", meant.to_string()),
        None => "use a name of NumPy or ml_dtypes, such as \"float32\"".to_owned(),
    }
}

/// Advice for a conversion between dtypes that does not exist.
pub(super) fn instead(from: DLDataType, to: DLDataType) -> &'static str {
    use DLDataTypeCode as Code;
    let is_small = |dtype: DLDataType| dtype.code == Code::BFLOAT || dtype.code.0 > Code::BOOL.0;
    match to.code {
        Code::BOOL => "compare it with 0 first",
        _ if is_small(from) => "ask for float32 or float64, which hold its values",
        _ if from.code == Code::COMPLEX || to.code == Code::COMPLEX => {
            "convert it in the framework, which defines what happens to the imaginary part"
        }
        _ if is_small(to) => {
            "ask for float32 and let the framework round it, as PyTorch's x.to(torch.float8_e5m2) does"
        }
        _ => "ask for an integer of 8 to 64 bits or a float of 16 to 64",
    }
}

/// A field's type, with its extension type if it has one.
pub(super) struct Described<'a>(pub(super) &'a Field);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let storage = self.0.data_type();
        match self.0.extension_type_name() {
            None => storage.fmt(f),
            Some(name) => {
                let metadata = self.0.extension_type_metadata().unwrap_or_default();
                write!(f, "{name}{metadata} stored as {storage}")
            }
        }
    }
}
