//! Reports what a conversion would copy, and why.

use pyo3::prelude::*;

use super::advice::Expected;
use super::args::{
    self, ColumnsArg, DtypeArg, LengthArg, NullsArg, OrderArg, PadArg, PhysicalArg, RaggedArg,
    TypeArg,
};
use super::array::PyArray;
use super::data::Data;
use super::dlpack::request::{CopyArg, DeviceArg};
use super::protocols::{is_arrow, is_tensor};
use super::{data, read_once};
use crate::{ExportOptions, Order, Plan, Step};

/// What a conversion would copy, and why; explain(obj) makes it.
///
/// >>> import arrow_dlpack, pyarrow as pa
/// >>> arrow_dlpack.explain(pa.array([1, 2, 3]))
/// <arrow_dlpack.Plan zero-copy>
/// >>> arrow_dlpack.explain(pa.array([True, False]))
/// <arrow_dlpack.Plan copies 2 bytes: Arrow stores booleans as bits>
#[pyclass(name = "Plan", module = "arrow_dlpack", frozen, eq)]
#[derive(Debug, PartialEq)]
pub struct PyPlan(pub(super) Plan);

/// One allocation that a conversion would make and fill.
#[pyclass(name = "Step", module = "arrow_dlpack", frozen, eq)]
#[derive(Debug, PartialEq)]
pub struct PyStep(Step);

#[pymethods]
impl PyPlan {
    /// Whether the result would share the existing memory.
    #[getter]
    fn zero_copy(&self) -> bool {
        self.0.is_zero_copy()
    }

    /// Bytes that would be written.
    #[getter]
    fn bytes_copied(&self) -> usize {
        self.0.bytes_copied()
    }

    /// The allocations that would be made, in order: a list of Step.
    #[getter]
    fn steps(&self) -> Vec<PyStep> {
        self.0.steps.iter().cloned().map(PyStep).collect()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<arrow_dlpack.Plan {}>", self.0)
    }
}

#[pymethods]
impl PyStep {
    /// Its size in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.nbytes
    }

    /// Why the existing memory cannot be used: a list of at least one text.
    #[getter]
    fn reasons(&self) -> Vec<String> {
        self.0.reasons.iter().map(ToString::to_string).collect()
    }

    fn __repr__(&self) -> String {
        format!("<arrow_dlpack.Step {}>", self.0)
    }
}

/// explain(obj, /, *, dtype=None, nulls='error', order='C', copy=None, columns=None, physical=False, ragged=False, offset_type=None, type=None, device=None, mask=None, pad=None, max_length=None)
/// --
///
/// What a conversion would copy with these options, and why: a Plan. For Arrow data the conversion is to_tensor,
/// with pad and max_length too, or ragged with ragged=True, which takes offset_type; for tensors it is from_dlpack,
/// with copy, type, device and mask. The result is a Tensor: there are no framework, writable and threads. A conversion
/// with framework="torch" or "jax" copies everything, unless writable=False; copy=True explains that copy.
///
/// It raises what the conversion would raise, except errors for values that do not fit the dtype, and for nulls of a
/// mask in a field that is not nullable, or in some bytes of a binary. An object that can be read only once, such as a reader, is refused, because
/// explain would consume it; a capsule is used up.
/// Copies that the other library makes while it exports, as polars does for categoricals, are not counted.
///
/// >>> import arrow_dlpack, pyarrow as pa
/// >>> plan = arrow_dlpack.explain(pa.table({"x": [1.5, 2.5], "y": [1, 2]}))
/// >>> plan.zero_copy, plan.bytes_copied
/// (False, 32)
/// >>> plan.steps[0].reasons
/// ['int64 becomes float64', '2 columns are put side by side']
#[pyfunction]
#[pyo3(signature = (obj, /, *, dtype=None, nulls=NullsArg::default(), order=OrderArg::default(), copy=None, columns=None, physical=PhysicalArg(false), ragged=RaggedArg(false), offset_type=None, r#type=None, device=None, mask=None, pad=None, max_length=None), text_signature = None)]
#[expect(clippy::too_many_arguments, reason = "keywords")]
pub(super) fn explain(
    obj: &Bound<'_, PyAny>,
    dtype: Option<DtypeArg>,
    nulls: NullsArg,
    order: OrderArg,
    copy: Option<CopyArg>,
    columns: Option<ColumnsArg>,
    physical: PhysicalArg,
    ragged: RaggedArg,
    offset_type: Option<DtypeArg>,
    r#type: Option<TypeArg>,
    device: Option<DeviceArg>,
    mask: Option<&Bound<'_, PyAny>>,
    pad: Option<PadArg>,
    max_length: Option<LengthArg>,
) -> PyResult<PyPlan> {
    let RaggedArg(ragged) = ragged;
    let pad = args::padding(pad, max_length)?;
    if is_arrow(obj)? {
        if r#type.is_some() || device.is_some() || mask.is_some() {
            return Err(args::pointless(
                "type, device and mask",
                "are for tensors, and this is Arrow data",
            ));
        }
        if ragged && order.0 != Order::default() {
            return Err(args::pointless("order", "is not for ragged=True"));
        }
        if !ragged && offset_type.is_some() {
            return Err(args::pointless("offset_type", "is for ragged=True"));
        }
        read_once::refuse_read_once(obj)?;
        let options = args::export_options(copy, nulls, dtype, order, physical);
        let columns = columns.map(|columns| columns.0);
        data::refuse_none(columns.as_deref())?;
        let data = Data::read(obj, columns)?;
        let (py, offset_type) = (obj.py(), offset_type.map(|dtype| dtype.0));
        return Ok(PyPlan(match (ragged, pad) {
            (true, None) => data.plan(data.ragged(obj, &options, offset_type)?.plan()),
            (true, Some(_)) => return Err(args::pointless("pad", "is not for ragged=True")),
            (false, Some(pad)) => data.plan(data.padded(obj, &options, &pad)?.plan()),
            (false, None) => data.explain(py, &options)?,
        }));
    }
    if !is_tensor(obj)? {
        return Err(Expected::Either.got(obj));
    }
    if args::export_options(None, nulls, dtype, order, physical) != ExportOptions::default()
        || columns.is_some()
        || ragged
        || offset_type.is_some()
        || pad.is_some()
    {
        return Err(args::pointless(
            "dtype, nulls, order, columns, physical, ragged, offset_type and pad",
            "are for Arrow data, and this is a tensor",
        ));
    }
    let (device, copy) = (device.map(|device| device.0), copy.map(|copy| copy.0));
    PyArray::explain(obj, device, copy, r#type, mask).map(PyPlan)
}
