//! What is asked of batches.

use std::collections::HashSet;

use arrow_schema::Schema;

use crate::copy::CopyPolicy;
use crate::error::Error;
use crate::export::ExportOptions;
use crate::names;

/// How to make batches. Later options will have defaults that change nothing.
///
/// ```
/// use arrow_dlpack::ExportOptions;
/// use arrow_dlpack::batches::BatchOptions;
/// use arrow_dlpack::ffi::DLDataType;
///
/// let options = BatchOptions::default()
///     .with_batch_size(1024)
///     .with_label("price")
///     .with_matrix(true)
///     .with_export(ExportOptions::default().with_dtype(DLDataType::FLOAT32))
///     .with_shuffle(10_000, 42)
///     .with_prefetch(2);
/// assert_eq!(options.label.as_deref(), Some("price"));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BatchOptions {
    /// Rows of a batch, of which the last may have fewer; `None` for the batches of the reader. Rows within one
    /// batch of the reader are shared, those across an edge copied once.
    pub batch_size: Option<usize>,
    /// Whether a last batch of fewer rows is left out.
    pub drop_last: bool,
    /// The features by their names, in the order of the result; `None` for all columns but the label and
    /// [an index of pandas's](crate::pandas::index_columns).
    pub columns: Option<Vec<String>>,
    /// The column to predict. It is none of the features.
    pub label: Option<String>,
    /// Whether the features are one matrix (rows, columns), and not a tensor for each.
    pub matrix: bool,
    /// How columns become tensors. `dtype` and `order` are for the features: the label keeps its own dtype.
    ///
    /// With `physical`, codes of dictionaries are int32, and a code stands for one value in all batches.
    pub export: ExportOptions,
    /// (rows, seed): rows are drawn at random from a buffer of at least so many, which holds up to twice as many.
    /// The same seed draws the same rows, whatever the batches of the reader.
    pub shuffle: Option<(usize, u64)>,
    /// (index, count): every count-th batch from that index on. Of several readers of the same data, each has
    /// its part; where they shuffle, give each a seed of its own.
    pub shard: (usize, usize),
    /// So many batches are made ahead, by a thread. 0 for none: batches are made when they are asked for.
    pub prefetch: usize,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self {
            batch_size: None,
            drop_last: false,
            columns: None,
            label: None,
            matrix: false,
            export: ExportOptions::default(),
            shuffle: None,
            shard: (0, 1),
            prefetch: 0,
        }
    }
}

impl BatchOptions {
    /// These options with another [`batch_size`](Self::batch_size).
    #[must_use]
    pub fn with_batch_size(mut self, rows: impl Into<Option<usize>>) -> Self {
        self.batch_size = rows.into();
        self
    }

    /// These options with another [`drop_last`](Self::drop_last).
    #[must_use]
    pub fn with_drop_last(mut self, drop_last: bool) -> Self {
        self.drop_last = drop_last;
        self
    }

    /// These options with other [`columns`](Self::columns).
    #[must_use]
    pub fn with_columns(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// These options with another [`label`](Self::label).
    #[must_use]
    pub fn with_label(mut self, name: impl Into<String>) -> Self {
        self.label = Some(name.into());
        self
    }

    /// These options with another [`matrix`](Self::matrix).
    #[must_use]
    pub fn with_matrix(mut self, matrix: bool) -> Self {
        self.matrix = matrix;
        self
    }

    /// These options with other [`export`](Self::export) options.
    #[must_use]
    pub fn with_export(mut self, export: ExportOptions) -> Self {
        self.export = export;
        self
    }

    /// These options with another [`shuffle`](Self::shuffle).
    #[must_use]
    pub fn with_shuffle(mut self, rows: usize, seed: u64) -> Self {
        self.shuffle = Some((rows, seed));
        self
    }

    /// These options with another [`shard`](Self::shard).
    #[must_use]
    pub fn with_shard(mut self, index: usize, count: usize) -> Self {
        self.shard = (index, count);
        self
    }

    /// These options with another [`prefetch`](Self::prefetch).
    #[must_use]
    pub fn with_prefetch(mut self, batches: usize) -> Self {
        self.prefetch = batches;
        self
    }

    /// An error for what does not go together.
    pub(super) fn check(&self) -> Result<(), Error> {
        let (index, count) = self.shard;
        Err(Error::InvalidOptions(match self {
            Self { batch_size: Some(0), .. } => "batches of no rows never end",
            Self { batch_size: None, drop_last: true, .. } => "drop_last needs a batch_size",
            Self { batch_size: None, shuffle: Some(_), .. } => "shuffle needs a batch_size",
            Self { shuffle: Some(_), export, .. } if export.copy == CopyPolicy::Never => {
                "shuffle copies each row, and copying was forbidden"
            }
            _ if index >= count => "a shard is (index, count) with an index below the count",
            _ => return Ok(()),
        }))
    }

    /// The names of features, and behind them that of the label; `None` for all columns.
    pub(crate) fn wanted(&self) -> Option<Vec<&str>> {
        let label = self.label.as_deref();
        let features = self.columns.as_ref()?.iter().map(String::as_str);
        Some(features.filter(|&feature| Some(feature) != label).chain(label).collect())
    }

    /// Where the features are in a table, and behind them the label.
    pub(super) fn positions(&self, schema: &Schema) -> Result<Vec<usize>, Error> {
        let label = self.label.as_deref();
        let positions = match self.wanted() {
            // All names that there are not are in one error, the label's too.
            Some(wanted) => names::columns(schema, &wanted)?,
            None => {
                let mut positions = names::features(schema);
                positions.retain(|&at| Some(schema.field(at).name().as_str()) != label);
                positions.extend(names::columns(schema, label.as_slice())?);
                positions
            }
        };
        let features = &positions[..positions.len() - usize::from(label.is_some())];
        let name = |at: &usize| schema.field(*at).name();
        let mut names = HashSet::new();
        match features.iter().find(|&at| !names.insert(name(at))) {
            Some(at) if !self.matrix => {
                Err(Error::SeveralColumns { name: name(at).clone(), count: 2 })
            }
            _ if self.matrix && features.is_empty() => Err(Error::NoColumns),
            _ => Ok(positions),
        }
    }
}
