//! Capsules with Arrow's C structures in them.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.
#![expect(unsafe_code, reason = "moves C structures out of capsules")]

use std::ptr;

use arrow_schema::{DataType, FieldRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::{prelude::*, sync::critical_section::with_critical_section, types::PyCapsule};

use super::gather::row_width;
use super::import::array_from;
use super::imported::Imported;
use super::matrix;
use super::schema::field_from;
use super::select::{field_of, wanted_of};
use super::structs::{ArrowArray, ArrowSchema, Structure};
use super::validate::TypedArray;
use crate::python::describe::{described, type_name};
use crate::python::runtime::unlocked;
use crate::{ExportOptions, ManagedTensor};

/// The field that an `arrow_schema` capsule describes. The capsule keeps its structure.
pub(in crate::python) fn schema_of(capsule: &Bound<'_, PyCapsule>) -> PyResult<FieldRef> {
    read(capsule, field_from)?.map_err(PyValueError::new_err)
}

/// The same, for a table only with the columns of these names, if any are given.
pub(in crate::python) fn table_schema_of(
    capsule: &Bound<'_, PyCapsule>,
    wanted: Option<&[String]>,
) -> PyResult<FieldRef> {
    Ok(read(capsule, |schema| field_of(schema, wanted))??.0)
}

/// The capsules that `__arrow_c_array__` returned: by the interface, the schema says what the array is (S3).
pub(in crate::python) struct Pair<'py> {
    schema: Bound<'py, PyCapsule>,
    array: Bound<'py, PyCapsule>,
}

impl<'py> Pair<'py> {
    /// The answer of an object's `__arrow_c_array__`.
    pub(in crate::python) fn of(
        object: &Bound<'py, PyAny>,
        answer: &Bound<'py, PyAny>,
    ) -> PyResult<Self> {
        let Ok((schema, array)) = answer.extract() else {
            return Err(PyTypeError::new_err(format!(
                "{}.__arrow_c_array__ returned {}, not a pair of capsules",
                type_name(object),
                described(answer)
            )));
        };
        Ok(Self { schema, array })
    }

    /// The matrix of plain numbers of a table, with [`ExportOptions::are_of_a_copied_matrix`]; else the array.
    pub(in crate::python) fn matrix(
        &self,
        wanted: Option<&[String]>,
        options: &ExportOptions,
    ) -> PyResult<Result<ManagedTensor, Imported>> {
        let columns = read(&self.schema, |schema| matrix::columns_of(schema, wanted))?;
        let Some(columns) = columns else { return self.import(wanted).map(Err) };
        let array = moved(&self.array)?;
        let work = most_work(&array, &DataType::Float64).saturating_mul(columns.columns.len());
        // SAFETY: S3, of this pair.
        let table = unsafe { TypedArray::new(array, columns) };
        match unlocked(self.array.py(), work, || matrix::make(table, options))? {
            Ok(matrix) => Ok(Ok(matrix)),
            Err(array) => self.import_as(wanted, || Ok(array)).map(Err),
        }
    }

    /// The array.
    pub(in crate::python) fn import(&self, wanted: Option<&[String]>) -> PyResult<Imported> {
        self.import_as(wanted, || moved(&self.array))
    }

    /// The array of this pair, which is moved out of its capsule once its type is known.
    fn import_as(
        &self,
        wanted: Option<&[String]>,
        array: impl FnOnce() -> PyResult<ArrowArray>,
    ) -> PyResult<Imported> {
        let (field, pick) = read(&self.schema, |schema| field_of(schema, wanted))??;
        let array = wanted_of(pick.as_ref(), array()?).map_err(PyValueError::new_err)?;
        let work = most_work(&array, field.data_type());
        // SAFETY: S3, of this pair: `pick` left the same columns out of both.
        let array = unsafe { TypedArray::new(array, FieldRef::clone(&field)) };
        let array = unlocked(self.array.py(), work, || array_from(array, None));
        let (array, moved) = array?;
        Ok(Imported { chunks: vec![array], field, moved, gathered: (0, 0) })
    }
}

/// About how many bytes an import reads or moves at most, computed before the array has been checked.
fn most_work(array: &ArrowArray, data_type: &DataType) -> usize {
    let rows = usize::try_from(array.length().max(array.offset())).unwrap_or(usize::MAX);
    // What refers to other memory may have any number of bytes.
    let width = row_width(data_type).unwrap_or(usize::MAX);
    rows.max(1).saturating_mul(width.saturating_mul(2))
}

/// Reads the structure in an `arrow_schema` capsule, which keeps it.
///
/// `describe` runs no Python code, which could move the structure out of the capsule meanwhile: the callers here pass what
/// makes fields of schemas, and that asks Python for nothing.
fn read<T>(
    capsule: &Bound<'_, PyCapsule>,
    describe: impl FnOnce(&ArrowSchema) -> T,
) -> PyResult<T> {
    with_critical_section(capsule, || {
        let schema = pointer::<ArrowSchema>(capsule)?;
        // SAFETY: S1: the caller's reference keeps the capsule, and the section other threads from moving the structure
        // out of it, where there is no GIL; the thread stays attached, so that it keeps either.
        let schema = unsafe { &*schema };
        schema.check_live().map_err(PyValueError::new_err)?;
        Ok(describe(schema))
    })
}

/// A capsule with one of the interface's names holds a pointer to a structure of that name that meets
/// S1 for as long as the capsule lives and no consumer moves it. That much of the interface cannot be checked.
fn pointer<T: Structure>(capsule: &Bound<'_, PyCapsule>) -> PyResult<*mut T> {
    let name = T::CAPSULE;
    let pointer = capsule.pointer_checked(Some(name)).map_err(|_| {
        PyTypeError::new_err(format!("expected an {name:?} capsule, got {}", described(capsule)))
    })?;
    let pointer = pointer.cast::<T>();
    if !pointer.is_aligned() {
        return Err(PyValueError::new_err(format!("the {name:?} structure is misaligned")));
    }
    Ok(pointer.as_ptr())
}

/// The structure in a capsule, moved out of it.
pub(in crate::python) fn moved<T: Structure>(capsule: &Bound<'_, PyCapsule>) -> PyResult<T> {
    let structure = with_critical_section(capsule, || {
        let structure = pointer::<T>(capsule)?;
        // SAFETY: S1, and the capsule's structure is its holder's to move. A released one is left behind, as the
        // interface asks; the section keeps other threads from moving or reading it, where there is no GIL.
        PyResult::Ok(unsafe { ptr::replace(structure, T::released()) })
    })?;
    structure.live().map_err(PyValueError::new_err)
}
