//! Reports what a conversion would copy, and why.

use pyo3::prelude::*;

use crate::{Plan, Step};

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
