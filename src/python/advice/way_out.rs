//! A way out of an error: its words, and what it makes.

use std::borrow::Cow;
use std::fmt;

use pyo3::PyResult;

/// What to do with an object that is something else than was expected.
pub(in crate::python) struct WayOut {
    pub(super) words: Cow<'static, str>,
    /// What makes an array, where the words tell that.
    pub(super) made: Option<Made>,
}

/// An expression of Python's.
pub(super) enum Made {
    /// Values of which pyarrow makes an array.
    Of(Cow<'static, str>),
    Array(Cow<'static, str>),
    /// Of values, or of batches: nothing is read of what may be read but once.
    OfIterable,
    /// `from_dlpack` makes it of a tensor.
    OfTensor,
}

impl Made {
    pub(super) fn array(&self) -> Cow<'_, str> {
        match self {
            Self::Of(values) => format!("pyarrow.array({values})").into(),
            Self::Array(array) => array.as_ref().into(),
            Self::OfIterable => "pyarrow.array(x)".into(),
            Self::OfTensor => "from_dlpack(x)".into(),
        }
    }

    /// How to make a table of it.
    pub(super) fn table(&self) -> String {
        match self {
            Self::Of(column) | Self::Array(column) => {
                format!("pyarrow.table({{\"x\": {column}}}) makes a table of values")
            }
            Self::OfIterable => {
                "list(x) is a list of its batches, and iter(x) goes through them once; pyarrow.table({\"x\": x}) makes a \
                 table of values"
                    .to_owned()
            }
            Self::OfTensor => {
                "arrow_dlpack.record_batch({\"x\": x}) makes a table of it".to_owned()
            }
        }
    }
}

impl WayOut {
    pub(super) fn made(made: Made, what: &str) -> Self {
        Self { words: format!("{} makes {what}", made.array()).into(), made: Some(made) }
    }

    /// pyarrow makes an array of these values.
    pub(super) fn values(values: impl Into<Cow<'static, str>>, what: &str) -> Self {
        Self::made(Made::Of(values.into()), what)
    }

    /// An expression that makes an array.
    pub(super) fn array(array: impl Into<Cow<'static, str>>, what: &str) -> Self {
        Self::made(Made::Array(array.into()), what)
    }

    /// The same words, and more of them.
    pub(super) fn and(mut self, more: &str) -> Self {
        self.words.to_mut().push_str(more);
        self
    }
}

impl From<&'static str> for WayOut {
    fn from(words: &'static str) -> Self {
        Self { words: words.into(), made: None }
    }
}

impl From<String> for WayOut {
    fn from(words: String) -> Self {
        Self { words: words.into(), made: None }
    }
}

impl fmt::Display for WayOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

/// What is said of values of which no way makes Arrow data.
pub(super) const OF_OBJECTS: &str =
    "pyarrow makes no array of its values: make numbers or texts of them";

pub(super) type Found = PyResult<Option<WayOut>>;
