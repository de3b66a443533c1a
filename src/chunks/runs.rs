//! Run-end encoded arrays: their values, and the run of a row. Other code may write to the ends.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::ArrowNativeType;
use arrow_data::ArrayData;
use arrow_schema::DataType;

/// The runs that the rows of an array are in.
pub(crate) struct Runs {
    /// A value for each of them.
    pub(crate) values: ArrayRef,
    ends: ArrayData,
    rows: Range<usize>,
}

impl Runs {
    /// `None` for other arrays.
    pub(crate) fn of(array: &dyn Array) -> Option<Self> {
        let DataType::RunEndEncoded(..) = array.data_type() else { return None };
        let data = array.to_data();
        let rows = data.offset()..data.offset() + data.len();
        let [ends, values] = data.child_data() else { return None };
        let runs = runs_of(ends, rows.start, rows.len());
        let values = make_array(values.clone()).slice(runs.start, runs.len());
        Some(Self { values, ends: ends.slice(runs.start, runs.len()), rows })
    }

    /// The run of each row.
    pub(crate) fn of_rows(&self) -> impl ExactSizeIterator<Item = usize> {
        let (last, mut run) = (self.values.len().saturating_sub(1), 0);
        self.rows.clone().map(move |row| {
            while run < last && end(&self.ends, run) <= row {
                run += 1;
            }
            run
        })
    }
}

/// The runs that rows are in, by the ends of all runs; any runs, if the ends do not rise.
pub(crate) fn runs_of(ends: &ArrayData, start: usize, rows: usize) -> Range<usize> {
    // A first run without rows stays, so that the check of the ends refuses it.
    let first = if start == 0 { 0 } else { ended(ends, start) };
    let last = if rows == 0 { first } else { ended(ends, start + rows - 1) + 1 };
    first..last.clamp(first, ends.len())
}

/// How many runs end at this row or before it.
fn ended(ends: &ArrayData, row: usize) -> usize {
    fn of<T: ArrowNativeType>(ends: &ArrayData, row: usize) -> usize {
        typed::<T>(ends).partition_point(|end| end.as_usize() <= row)
    }
    match ends.data_type() {
        DataType::Int16 => of::<i16>(ends, row),
        DataType::Int32 => of::<i32>(ends, row),
        _ => of::<i64>(ends, row),
    }
}

/// Where a run ends.
fn end(ends: &ArrayData, run: usize) -> usize {
    match ends.data_type() {
        DataType::Int16 => typed::<i16>(ends)[run].as_usize(),
        DataType::Int32 => typed::<i32>(ends)[run].as_usize(),
        _ => typed::<i64>(ends)[run].as_usize(),
    }
}

fn typed<T: ArrowNativeType>(ends: &ArrayData) -> &[T] {
    &ends.buffers()[0].typed_data::<T>()[ends.offset()..][..ends.len()]
}
