//! Refuses objects whose `__dlpack__` omits part of their values: masked elements, units, a pending negation. A
//! tensor cannot describe these, so a consumer would get other values than the object has.

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::python::advice::{is_mask, of_dtype, of_masked};
use crate::python::describe::type_name;
use crate::python::dlpack::exchange::{is_builtin, unless_it_raises};
use crate::python::errors::unsupported;

/// An error if the object has an attribute by which a library marks such values.
///
/// Static types that are written in C, such as NumPy's own array, have no such attributes.
pub(in crate::python) fn refuse(x: &Bound<'_, PyAny>) -> PyResult<()> {
    // A named tuple is no tensor, whatever its fields are called: it is refused as what it is.
    if is_builtin(x) || x.is_instance_of::<PyTuple>() {
        return Ok(());
    }
    let get = |name: &str| {
        let found = unless_it_raises(x.py(), x.getattr(PyString::intern(x.py(), name)))?;
        PyResult::Ok(found.filter(|found| !found.is_none()))
    };
    // NumPy's and astropy's masked arrays; PyTorch's MaskedTensor.
    let way_out = if get("mask")?.is_some_and(|mask| is_mask(&mask)) {
        let of_numbers = || format!("{} does", of_masked("x")).into();
        Some(of_dtype(x, "x").ok().flatten().unwrap_or_else(of_numbers))
    } else if get("get_mask")?.is_some_and(|method| method.is_callable()) {
        Some("from_dlpack(x.get_data(), mask=x.get_mask()) does".into())
    } else {
        None
    };
    if let Some(way_out) = way_out {
        return Err(unsupported(format!(
            "{} has a mask, which a tensor has no place for: fill what it hides, or make nulls of it: \
             {way_out}",
            type_name(x)
        )));
    }
    // astropy's and unyt's quantities, and pint's.
    for name in ["unit", "units"] {
        let Some(unit) = get(name)?.filter(|unit| !unit.is_callable()) else { continue };
        let unit = unit.str()?.to_string();
        if !matches!(unit.as_str(), "" | "dimensionless") {
            // Those of pandas's times; what they call a value is nanoseconds, whatever the unit.
            let way_out = if get("asi8")?.is_some() {
                "x.asi8, or pyarrow.array(x), which has times and nulls"
            } else if get("to_numpy")?.is_some() {
                "x.to_numpy().view(\"int64\")"
            } else {
                "x.value or (pint's) x.magnitude"
            };
            return Err(unsupported(format!(
                "{} has the unit {unit:?}, which a tensor has no place for: take its bare numbers, {way_out}",
                type_name(x)
            )));
        }
    }
    // PyTorch's lazily negated views, such as x.conj().imag, have the memory of x.
    let is_negated = match get("is_neg")?.filter(|method| method.is_callable()) {
        Some(method) => unless_it_raises(x.py(), method.call0())?,
        None => None,
    };
    if is_negated.is_some_and(|is| is.is_truthy().is_ok_and(|is| is)) {
        return Err(unsupported(format!(
            "{} is a view whose elements are yet to be negated: from_dlpack(x.resolve_neg()) has their \
             signs",
            type_name(x)
        )));
    }
    Ok(())
}
