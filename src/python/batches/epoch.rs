//! The order of an epoch and the batches of a rank, for `Loader`: [`crate::batches::epoch`] says what they are.

use std::ops::Range;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::ManagedTensor;
use crate::batches::epoch::{self, Share, Uneven};
use crate::python::runtime::unlocked;
use crate::python::tensor::PyTensor;

/// Start, stop and step of a `range` of Python.
type RangeArgs = (u64, u64, u64);

#[pyfunction]
pub(in crate::python) fn _seed_of_epoch(seed: u64, epoch: u64) -> u64 {
    epoch::seed_of_epoch(seed, epoch)
}

#[pyfunction]
pub(in crate::python) fn _seed_of_part(seed: u64, part: u64) -> u64 {
    epoch::seed_of_part(seed, part)
}

/// The numbers below `count` in the order of a seed.
#[pyfunction]
pub(in crate::python) fn _order(py: Python<'_>, count: usize, seed: u64) -> PyResult<PyTensor> {
    let order = unlocked(py, count.saturating_mul(size_of::<u64>()), || epoch::order(count, seed))?;
    Ok(PyTensor::from(ManagedTensor::from_vec(order, &[count])?))
}

/// The arguments of two ranges: the batches that a worker makes once, and those that it makes again after them.
///
/// share: rank, ranks, worker and workers of each rank. uneven: "drop", "repeat" or "allow".
#[pyfunction]
pub(in crate::python) fn _numbers(
    total: &Bound<'_, PyAny>,
    share: (u64, u64, u64, u64),
    uneven: &str,
    in_turns: bool,
) -> PyResult<(RangeArgs, RangeArgs)> {
    // Files may claim more rows than there are numbers for.
    let total: u64 = total.extract().map_err(|_| {
        PyOverflowError::new_err(format!(
            "the source claims {total} batches, which 64 bits do not count"
        ))
    })?;
    let (rank, world, worker, workers) = share;
    let share = Share { rank, world, worker, workers };
    let uneven = match uneven {
        "repeat" => Uneven::Repeat,
        "allow" => Uneven::Allow,
        _ => Uneven::Drop,
    };
    let found = if in_turns { share.turns(total, uneven) } else { share.range(total, uneven) }?;
    let args = |range: Range<u64>, step| (range.start, range.end, step);
    Ok((args(found.once, found.step), args(found.again, 1)))
}
