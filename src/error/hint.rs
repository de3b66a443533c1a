//! What an error advises, as data: Rust's words for it are here, those of Python in `src/python/errors.rs`.

use std::fmt;

use arrow_schema::DataType;

use super::Error;
use crate::{CopyReason, arrow_types::is_variable_list, ffi::DLDataType};

/// What to do instead: the end of an error's message, in Rust's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// This text, which is the same in every language.
    Text(&'static str),

    // Nulls.
    /// Choose what the nulls become.
    Nulls,
    /// Choose what the nulls within ragged rows become, which a mask of the rows cannot express.
    NullsInRows,
    /// Ask for a dtype that holds the fill value.
    WiderThanFill,
    /// Ask for a dtype that holds what rows are padded with.
    WiderThanPad,

    // Types without a tensor form, by what they are.
    /// Texts differ in length.
    Texts,
    /// Binaries differ in length.
    Binaries,
    /// Lists may differ in length.
    Lists,
    /// A struct has fields.
    Fields,
    /// A map has keys and items.
    Entries,
    /// An interval has several numbers.
    Interval,
    /// A decimal of more than 64 bits.
    Decimal,
    /// A decimal of more than 64 bits becomes floats, and another dtype was asked for.
    DecimalAsFloats,
    /// Runs have a value for several rows.
    Runs,
    /// A dictionary has texts, binaries or lists as its values.
    DictionaryValues,
    /// A name stands for one column.
    OneName,
    /// All values are null.
    AllNull,
    /// Tensors of different shapes are taken row by row.
    RowByRow,

    // Rows.
    /// Rows of different lengths are ragged or padded.
    RaggedOrPadded,
    /// Rows of one length are a tensor.
    Tensor,
    /// Rows of one length, of which the physical values are a tensor.
    PhysicalTensor,
    /// Rows of one length, of which the numbers as floats are a tensor.
    FloatTensor,
    /// The items of rows are structs.
    FlattenStructs,
    /// The items of rows are lists.
    FlattenLists,
    /// The items of rows are texts or binaries.
    FlattenTexts,
    /// The items of lists of one length are ragged.
    FlattenToRagged,
    /// The items of rows are maps, or of an extension type whose storage alone has a form.
    FlattenExtensions,
    /// A type of rows is one of lists, texts or binaries.
    TypeOfRows,
    /// A type has the elements of the tensor, and its shape after the first axis.
    TypeOfElements,
    /// A dictionary is made of codes and of its values.
    CodesAlone,
    /// Offsets need 64 bits.
    LongOffsets,
    /// Values that are none of the categories can have a code.
    Unknown,

    // Numbers with a meaning.
    /// Ask for the physical values, of this dtype.
    Physical(DLDataType),
    /// Ask for the physical values, of this dtype, or for the numbers that decimals stand for.
    PhysicalOrFloats(DLDataType),
    /// Ask for the codes of a dictionary, of this dtype, or for its values, which are numbers too.
    PhysicalOrNumbers(DLDataType),
    /// Ask for float64.
    Float64,

    // Storage of an extension type.
    /// The storage is ragged.
    RaggedStorage,
    /// The storage has children.
    ChildrenOfStorage,
    /// The storage has a tensor form.
    PhysicalStorage,

    // Tensors.
    /// A field with a permutation keeps the order of axes.
    Permuted,
    /// A field with an extension type keeps booleans as bytes.
    KeptBooleans,
    /// A field with an extension type keeps elements that Arrow has no type for.
    KeptElements,
    /// A contiguous copy has whole strides.
    Contiguous,
    /// The versioned ABI has the flag.
    Versioned,
}

impl Hint {
    /// What an extension type of this storage allows.
    fn of_storage(data_type: &DataType) -> Self {
        match data_type {
            DataType::FixedSizeBinary(_) => Self::PhysicalStorage,
            text if text.is_string() || text.is_binary() => Self::RaggedStorage,
            DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => {
                Self::ChildrenOfStorage
            }
            _ => Self::PhysicalStorage,
        }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text(text) => text,
            Self::Nulls => {
                "drop them, or choose a fill value, NaN or a mask by ExportOptions::with_nulls"
            }
            Self::NullsInRows => {
                "drop them, or choose a fill value or NaN by ExportOptions::with_nulls (a mask is of the rows)"
            }
            Self::WiderThanFill => "ask for a dtype that does, or convert the column by itself",
            Self::WiderThanPad => "ask for a dtype that does",
            Self::Texts | Self::Binaries => {
                "its rows differ in length: use export::ragged, for all values and where each row begins, or in batches \
                 ColumnOptions::with_form; words as codes are a dictionary, exported with ExportOptions::with_physical"
            }
            Self::Lists => {
                "its rows may differ in length: use export::ragged, or cast it to a fixed-size list if they do not"
            }
            Self::Fields => "export its fields one by one, or all of them as a RecordBatch",
            Self::Entries => "export its keys and its items one by one",
            Self::Interval => "split it into numeric columns first",
            Self::Decimal => {
                "ask for dtype float64, if that is exact enough, or cast it to a decimal of up to 64 bits"
            }
            Self::DecimalAsFloats => {
                "decimals become floats: ask for dtype float64, or cast it to integers first, if it has no fractions"
            }
            Self::OneName => "rename all but one, or select columns without them",
            Self::DictionaryValues => "cast it to its values first",
            Self::Runs => "decode it first, as arrow-cast's cast to the type of its values does",
            Self::AllNull => {
                "cast it to the type you mean, or ask for a dtype and say what its nulls become by ExportOptions::with_nulls"
            }
            Self::RowByRow => {
                "its rows differ in shape: take the tensors one by one, with Source::Row"
            }
            Self::RaggedOrPadded => "use export::ragged, or export::padded to pad them",
            Self::Tensor => "use export::tensor",
            Self::PhysicalTensor => {
                "use export::tensor, with ExportOptions::with_physical for its integers"
            }
            Self::FloatTensor => "use export::tensor, with dtype float64",
            Self::FlattenStructs => {
                "the rows' items are structs: flatten one level first, for a table of them"
            }
            Self::FlattenLists => "the rows' items are lists themselves: flatten one level first",
            Self::FlattenTexts => {
                "as items of lists such values have none: flatten the lists first, and use export::ragged of that"
            }
            Self::FlattenToRagged => "flatten the lists first, whose items alone are ragged",
            Self::FlattenExtensions => {
                "flatten the lists first, and export their items by what such values allow alone"
            }
            Self::TypeOfRows => {
                "ask for List or LargeList of the items' type, or for a text or binary type"
            }
            Self::TypeOfElements => {
                "ask for a type of the same elements and the same shape after the first axis, or ManagedTensor::cast \
                 and reshape it first"
            }
            Self::CodesAlone => {
                "import the codes as integers, and make a DictionaryArray of them and of the values, as Exported has them"
            }
            Self::LongOffsets => "ask for int64 offsets",
            Self::Unknown => "Categories::with_unknown gives others a code",
            Self::Physical(dtype) => {
                return write!(f, "use ExportOptions::with_physical for its {dtype} values");
            }
            Self::PhysicalOrFloats(dtype) => {
                return write!(
                    f,
                    "{}, or ask for dtype float64 for the numbers that they stand for",
                    Self::Physical(*dtype)
                );
            }
            Self::PhysicalOrNumbers(dtype) => {
                return write!(
                    f,
                    "{}, or cast it to its values, which are numbers",
                    Self::Physical(*dtype)
                );
            }
            Self::Float64 => "ask for dtype float64",
            Self::RaggedStorage => {
                "use export::ragged, with ExportOptions::with_physical, for its storage"
            }
            Self::ChildrenOfStorage => {
                "export its array with a field without the extension type, and of that the children one by one"
            }
            Self::PhysicalStorage => "use ExportOptions::with_physical for its storage",
            Self::Permuted => {
                "Representation::Permuted, or a field with a permutation (of the extension type of its elements, if \
                 they have one), keeps that order"
            }
            Self::KeptBooleans => "Representation::Bool8 keeps them as bytes",
            Self::KeptElements => "Representation::Opaque keeps the elements",
            Self::Contiguous => "copy it first",
            Self::Versioned => "use into_raw",
        })
    }
}

impl Error {
    /// What the message advises at its end, if it advises anything that depends on the language.
    ///
    /// ```
    /// use arrow_array::Int32Array;
    /// use arrow_dlpack::{Hint, export};
    ///
    /// let refused = export::array(&Int32Array::from(vec![Some(1), None])).unwrap_err();
    /// assert_eq!(refused.hint(), Some(Hint::Nulls));
    /// assert!(refused.to_string().ends_with(&Hint::Nulls.to_string()));
    /// ```
    #[must_use]
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::UnsupportedType { hint, .. }
            | Self::NotRagged { hint, .. }
            | Self::UnsupportedDtype { hint, .. } => *hint,
            Self::Nulls { .. } => Hint::Nulls,
            Self::NullsInRows { .. } => Hint::NullsInRows,
            Self::FillDoesNotFit { .. } => Hint::WiderThanFill,
            Self::PadDoesNotFit { .. } => Hint::WiderThanPad,
            Self::UnsupportedExtension { data_type, in_rows: true, .. }
                if is_variable_list(data_type)
                    || Hint::of_storage(data_type) != Hint::PhysicalStorage =>
            {
                Hint::FlattenExtensions
            }
            Self::UnsupportedExtension { data_type, .. } => Hint::of_storage(data_type),
            Self::NotJustNumbers { data_type, dtype } => match data_type {
                DataType::Decimal32(..) | DataType::Decimal64(..) => Hint::PhysicalOrFloats(*dtype),
                DataType::Dictionary(_, values) if DLDataType::from_arrow(values).is_some() => {
                    Hint::PhysicalOrNumbers(*dtype)
                }
                _ => Hint::Physical(*dtype),
            },
            Self::RowLength { .. } => Hint::RaggedOrPadded,
            Self::NotACategory { .. } => Hint::Unknown,
            Self::OffsetDoesNotFit { .. } => Hint::LongOffsets,
            Self::NotRows { .. } => Hint::TypeOfRows,
            Self::CannotBecome { field, .. } => match field.data_type() {
                DataType::Dictionary(..) => Hint::CodesAlone,
                _ => Hint::TypeOfElements,
            },
            Self::CopyForbidden { reason: CopyReason::Permuted, .. } => Hint::Permuted,
            Self::CopyForbidden { reason: CopyReason::Stored { to, .. }, .. } => match to {
                Some(_) => Hint::KeptElements,
                None => Hint::KeptBooleans,
            },
            Self::SeveralColumns { .. } => Hint::OneName,
            Self::LegacyCannotPad(_) => Hint::Versioned,
            Self::FractionalStride { .. } => Hint::Contiguous,
            _ => return None,
        })
    }

    /// The end of the message: the hint, or nothing.
    pub(super) fn advice(&self) -> String {
        self.hint().map_or_else(String::new, |hint| hint.to_string())
    }

    /// The message without its hint, for one in another language.
    #[cfg(feature = "pyo3")]
    pub(crate) fn fact(&self) -> String {
        let (message, advice) = (self.to_string(), self.advice());
        message.strip_suffix(&advice).unwrap_or(&message).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_ends_with_its_hint() {
        let data_type = DataType::Date32;
        let (dtype, field) =
            (DLDataType::INT32, arrow_schema::Field::new("x", data_type.clone(), true));
        let codes =
            arrow_schema::Field::new_dictionary("x", DataType::Int32, data_type.clone(), true);
        let with_hints = [
            Error::UnsupportedType { data_type: data_type.clone(), hint: Hint::Fields },
            Error::NotRagged { extension: None, data_type: data_type.clone(), hint: Hint::Tensor },
            Error::UnsupportedDtype { dtype, hint: Hint::Text("view it first") },
            Error::Nulls { data_type: data_type.clone(), null_count: 1, len: 2 },
            Error::NullsInRows { data_type: data_type.clone(), null_count: 1, len: 2 },
            Error::FillDoesNotFit { value: crate::Number::Float(0.5), dtype },
            Error::PadDoesNotFit { value: crate::Number::Float(0.5), dtype },
            Error::UnsupportedExtension {
                name: "a.b".to_owned(),
                data_type: data_type.clone(),
                in_rows: false,
            },
            Error::NotJustNumbers { data_type, dtype },
            Error::NotJustNumbers { data_type: DataType::Decimal32(9, 2), dtype },
            Error::RowLength { row: 1, length: 2, expected: 3 },
            Error::OffsetDoesNotFit { offset: 1 << 40, dtype },
            Error::NotACategory { value: "red".to_owned(), row: 0, more: 1, categories: 2 },
            Error::NotRows { field: field.clone().into() },
            Error::CannotBecome { dtype, shape: vec![2], field: field.into() },
            Error::CannotBecome { dtype, shape: vec![2], field: codes.into() },
            Error::CopyForbidden { reason: CopyReason::Permuted, nbytes: 8 },
            Error::CopyForbidden {
                reason: CopyReason::Stored { from: dtype, to: None },
                nbytes: 8,
            },
            Error::SeveralColumns { name: "x".to_owned(), count: 2 },
            Error::LegacyCannotPad(dtype),
            Error::FractionalStride { axis: 0, stride: 3, itemsize: 2 },
        ];
        for error in with_hints {
            let hint = error.hint().unwrap().to_string();
            assert!(error.to_string().ends_with(&hint), "{error}");
        }
    }
}
