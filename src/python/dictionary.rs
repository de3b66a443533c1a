//! One dictionary for all chunks of a column, so that a code stands for the same value in each of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::{fmt, process};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int32Array, make_array, new_empty_array};
use arrow_schema::DataType;
use arrow_select::take::take;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use super::distinct::Distinct;
use super::ffi_validate::fenced;
use super::settled;
use crate::copy::{CopyPolicy, CopyReason};
use crate::error::Error;
use crate::ffi::DLDataType;
use crate::{export, memory};

/// The dictionary of a stream: it grows as chunks are read, and only at its end.
pub(super) struct Dictionary {
    state: Mutex<State>,
    /// A process that was forked off has the lock, but maybe not the thread that holds it.
    process: u32,
}

struct State {
    values: Values,
    /// The chunks' dictionary that came last, and the codes of its values.
    last: Option<(ArrayRef, Codes)>,
    /// The values, as they were handed out last.
    made: Option<ArrayRef>,
}

enum Values {
    Distinct(Distinct),
    /// Of values that are not told apart there is one dictionary, that of the first chunk; until then none.
    Whole(ArrayRef),
}

/// What the codes of a chunk become.
#[derive(Clone)]
struct Codes {
    codes: Int32Array,
    /// Whether each stays what it is.
    is_same: bool,
}

impl From<Int32Array> for Codes {
    fn from(codes: Int32Array) -> Self {
        let is_same =
            codes.null_count() == 0 && (0..).zip(codes.values()).all(|(at, &code)| at == code);
        Self { codes, is_same }
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary").finish_non_exhaustive()
    }
}

impl Dictionary {
    pub(super) fn new(values: &DataType) -> PyResult<Self> {
        let values = match Distinct::new(values) {
            Some(distinct) => Values::Distinct(distinct),
            None => {
                let none = fenced(|| Ok(new_empty_array(values)));
                Values::Whole(none.map_err(PyValueError::new_err)?)
            }
        };
        let state = State { values, last: None, made: None };
        Ok(Self { state: Mutex::new(state), process: process::id() })
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, State>> {
        if self.process == process::id() {
            return Ok(self.state.lock().unwrap_or_else(PoisonError::into_inner));
        }
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(state)) => Ok(state.into_inner()),
            Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
                "this dictionary grew while the process was forked: ask for it before that",
            )),
        }
    }

    /// How many values there are by now.
    pub(super) fn len(&self) -> PyResult<usize> {
        Ok(match &self.lock()?.values {
            Values::Distinct(values) => values.len(),
            Values::Whole(values) => values.len(),
        })
    }

    /// The first so many of them.
    pub(super) fn array(&self, len: usize) -> PyResult<ArrayRef> {
        let mut state = self.lock()?;
        let State { values, made, .. } = &mut *state;
        let made = match (values, made) {
            (_, Some(made)) if made.len() >= len => made,
            (Values::Whole(values), _) => values,
            // All together can be too much for offsets of the type.
            (Values::Distinct(values), made) => {
                let all = values.array(values.len()).or_else(|_| values.array(len))?;
                made.insert(all)
            }
        };
        Ok(made.slice(0, len))
    }

    /// The codes of these values, the dictionary of a chunk of the type; values that are new come in.
    pub(super) fn of_values(
        &self,
        values: &ArrayRef,
        data_type: &DataType,
    ) -> PyResult<Int32Array> {
        Ok(self.lock()?.codes(values, data_type)?.codes)
    }

    /// The codes of a chunk as those of this dictionary, which grows by values that are new.
    pub(super) fn codes(&self, chunk: &dyn Array, copy: CopyPolicy) -> PyResult<ArrayRef> {
        let chunk = chunk.as_any_dictionary();
        let of_values = self.lock()?.codes(chunk.values(), chunk.data_type())?;
        if of_values.is_same && chunk.keys().data_type() == &DataType::Int32 {
            return Ok(make_array(chunk.keys().to_data()));
        }
        if copy == CopyPolicy::Never {
            let nbytes = chunk.keys().len().saturating_mul(size_of::<i32>());
            let reason = match DLDataType::from_arrow(chunk.keys().data_type()) {
                Some(from) if of_values.is_same => CopyReason::Cast { from, to: DLDataType::INT32 },
                _ => CopyReason::Dictionaries,
            };
            return Err(Error::CopyForbidden { reason, nbytes }.into());
        }
        recoded(chunk.keys(), &of_values.codes)
    }
}

impl State {
    fn codes(&mut self, values: &ArrayRef, data_type: &DataType) -> PyResult<Codes> {
        if let Some((last, codes)) = &self.last {
            if last.to_data().ptr_eq(&values.to_data()) {
                return Ok(codes.clone());
            }
        }
        // Somebody may have written to what says where the values are.
        let own = &settled::addresses(values).map_err(PyValueError::new_err)?;
        let codes = Codes::from(match &mut self.values {
            Values::Distinct(distinct) => distinct.codes(own)?,
            Values::Whole(whole) => {
                if whole.is_empty() {
                    *whole = Arc::clone(own);
                }
                if !export::same_values(whole, own) {
                    return Err(
                        Error::DifferentDictionaries { data_type: data_type.clone() }.into()
                    );
                }
                let len = i32::try_from(values.len()).map_err(|_| Error::Overflow("length"))?;
                memory::probe_alloc(values.len().saturating_mul(size_of::<i32>()))?;
                Int32Array::new((0..len).collect(), values.logical_nulls())
            }
        });
        self.last = Some((Arc::clone(values), codes.clone()));
        Ok(codes)
    }
}

/// For each key the one that takes its place, or null.
pub(super) fn recoded(keys: &dyn Array, codes: &dyn Array) -> PyResult<ArrayRef> {
    let width = codes.data_type().primitive_width().unwrap_or(8);
    memory::probe_alloc(keys.len().saturating_mul(width))?;
    fenced(|| take(codes, keys, None)).map_err(PyValueError::new_err)
}

/// What the codes of a tensor stand for.
#[derive(Clone, Debug)]
pub(super) enum Meaning {
    Array(ArrayRef),
    /// So many values of a dictionary that may have more by now.
    Growing(Arc<Dictionary>, usize),
}

impl Meaning {
    /// That of an array's codes, if it has any: its own, or in its lists.
    pub(super) fn of(array: &ArrayRef) -> Option<Self> {
        dictionary_of(array).map(Self::Array)
    }

    pub(super) fn array(&self) -> PyResult<ArrayRef> {
        match self {
            Self::Array(values) => Ok(Arc::clone(values)),
            Self::Growing(values, len) => values.array(*len),
        }
    }
}

/// The values of the dictionary that an array has, itself or in its lists.
pub(super) fn dictionary_of(array: &ArrayRef) -> Option<ArrayRef> {
    let values = match array.data_type() {
        DataType::FixedSizeList(..) => array.as_fixed_size_list().values(),
        DataType::List(_) => array.as_list::<i32>().values(),
        DataType::LargeList(_) => array.as_list::<i64>().values(),
        DataType::ListView(_) => array.as_list_view::<i32>().values(),
        DataType::LargeListView(_) => array.as_list_view::<i64>().values(),
        _ => return Some(Arc::clone(array.as_any_dictionary_opt()?.values())),
    };
    dictionary_of(values)
}
