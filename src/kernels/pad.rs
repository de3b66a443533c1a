//! Rows of different lengths as rows of one length, and back.

use crate::{Error, alloc::Fresh, task::Steps};

use super::fill::FillBytes;

/// Bytes of padding that are copied at once.
const BLOCK: usize = 1024;

/// The side of a row on which its padding is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// After the values.
    #[default]
    Right,
    /// Before the values, as for models that go on writing where the row ends.
    Left,
}

/// Rows that follow one another as rows of one length. Sizes are in bytes, lengths in values.
pub(crate) struct Padding {
    pub(crate) rows: usize,
    /// Length of each padded row; longer rows lose their last values.
    pub(crate) width: usize,
    /// Size of a value, which may be several cells.
    pub(crate) value: usize,
    /// Size of a cell: 1, 2, 4, 8 or 16.
    pub(crate) cell: usize,
    /// The cell that rows are padded with.
    pub(crate) fill: FillBytes,
    pub(crate) side: Side,
}

impl Padding {
    /// Size of the result.
    ///
    /// # Errors
    ///
    /// `Overflow`.
    pub(crate) fn nbytes(&self) -> Result<usize, Error> {
        let nbytes = self.row()?.checked_mul(self.rows);
        nbytes.ok_or(Error::Overflow("size in bytes"))
    }

    fn row(&self) -> Result<usize, Error> {
        self.width.checked_mul(self.value).ok_or(Error::Overflow("size in bytes"))
    }

    /// The padded rows. Each byte is written once.
    ///
    /// # Errors
    ///
    /// `Overflow`, `OutOfMemory`; `InvalidArray` if there are fewer values than the rows have; those of
    /// [`task::check`](crate::task::check).
    pub(crate) fn pad(
        &self,
        mut values: &[u8],
        lengths: impl Iterator<Item = usize>,
    ) -> Result<Fresh, Error> {
        let row = self.row()?;
        let mut block = [0; BLOCK];
        let item = &self.fill[..self.cell.min(self.fill.len())];
        block.chunks_exact_mut(item.len().max(1)).for_each(|cell| cell.copy_from_slice(item));
        let mut steps = Steps::default();
        Fresh::try_build::<u8>(self.nbytes()?, |out| {
            for length in lengths.take(self.rows) {
                let own = length.checked_mul(self.value);
                let (own, rest) = own
                    .and_then(|own| values.split_at_checked(own))
                    .ok_or_else(Error::offsets_changed)?;
                values = rest;
                let kept = &own[..own.len().min(row)];
                if self.side == Side::Left {
                    repeat(out, &block, row - kept.len(), &mut steps)?;
                }
                out.extend_from_slice(kept);
                steps.done(kept.len())?;
                if self.side == Side::Right {
                    repeat(out, &block, row - kept.len(), &mut steps)?;
                }
            }
            Ok(())
        })
    }

    /// The values of each padded row without its padding, one row after the other.
    ///
    /// # Errors
    ///
    /// `OutOfMemory`; `InvalidArray` if a length exceeds the width; those of [`task::check`](crate::task::check).
    pub(crate) fn unpad(&self, padded: &[u8], lengths: &[usize]) -> Result<Fresh, Error> {
        let row = self.row()?;
        let sum = lengths.iter().fold(0_usize, |sum, &length| sum.saturating_add(length));
        let mut steps = Steps::default();
        Fresh::try_build::<u8>(sum.saturating_mul(self.value), |out| {
            for (index, length) in lengths.iter().enumerate() {
                let own = length * self.value;
                let before = match self.side {
                    Side::Right => 0,
                    Side::Left => row.saturating_sub(own),
                };
                let own = padded.get(index * row..).and_then(|row| row.get(before..before + own));
                let own = own.ok_or_else(Error::offsets_changed)?;
                out.extend_from_slice(own);
                steps.done(own.len().max(size_of::<usize>()))?;
            }
            Ok(())
        })
    }
}

/// Appends this many bytes of padding.
fn repeat(
    out: &mut Vec<u8>,
    block: &[u8; BLOCK],
    mut nbytes: usize,
    steps: &mut Steps,
) -> Result<(), Error> {
    while nbytes > 0 {
        let some = nbytes.min(BLOCK);
        out.extend_from_slice(&block[..some]);
        steps.done(some)?;
        nbytes -= some;
    }
    Ok(())
}
