//! The order that a seed gives, and the batches of a rank: written down, so that every loader gets the same.
//!
//! - **Random numbers** are those of SplitMix64 (Steele, Lea and Flood, 2014). Number `n` of seed `s`, from 1 on, is
//!   `mix(s + n * 0x9E3779B97F4A7C15)` in wrapping arithmetic. They are not for cryptography.
//! - **A number below `end`** is the upper half of the product, of 128 bits, of `end` and a random number. If the lower
//!   half is less than `2^64 mod end`, the next random number takes its place, so that all are equally likely (Lemire,
//!   2019).
//! - **An order** of `count` things is Fisher and Yates's: from the last place down to place 1, the thing in it changes
//!   places with that in a random place up to it.
//! - **The seed of an epoch** is the seed itself for epoch 0, so that [`Shuffle`](super::Shuffle) has the order of the
//!   first epoch; for epoch `n` it is number `n` of the seed, less its 11 lowest bits: a float holds it, and so JSON.
//! - **The seed of a part**, of readers that draw side by side, is the epoch's own for part 0, and for part `n` number `n`
//!   of the complement of it. Part `n` is worker `n / world` of rank `n % world`. Python's `Loader` draws the order of row
//!   groups by that of part `2^64 - 1`, and then divides them, so that it tells nothing of the rows that a part draws.
//! - **The batches of a rank and worker** are those of [`Share::range`], or of [`Share::turns`].
//!
//! ```
//! use arrow_dlpack::batches::epoch::{order, seed_of_epoch, seed_of_part};
//!
//! let epochs = [0, 1, 2].map(|epoch| seed_of_epoch(42, epoch));
//! assert_eq!(epochs, [42, 6_679_422_623_415_661, 1_440_344_771_546_334]);
//! let parts = [0, 1, 2].map(|part| seed_of_part(42, part));
//! assert_eq!(parts, [42, 279_565_198_475_132_803, 15_618_775_350_480_714_937]);
//! assert_eq!(order(8, 42)?, [4, 3, 2, 0, 7, 6, 1, 5]);
//! # Ok::<(), arrow_dlpack::Error>(())
//! ```

use std::ops::Range;

use crate::{Error, alloc, task::Steps};

/// SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

    #[inline]
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::STEP);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// Number `n` of a seed, from 1 on.
    fn number(seed: u64, n: u64) -> u64 {
        Self(seed.wrapping_add(n.wrapping_sub(1).wrapping_mul(Self::STEP))).next()
    }

    /// A number below `end`, all of them equally likely; 0 if there is none.
    #[inline] // it is called for each row
    pub(super) fn below(&mut self, end: usize) -> usize {
        let Ok(end) = u64::try_from(end) else { return 0 };
        let (mut high, mut low) = self.scaled(end);
        // What is drawn again is below `end`, so that the remainder is rarely needed.
        if low < end {
            let least = end.wrapping_neg() % end;
            while low < least {
                (high, low) = self.scaled(end);
            }
        }
        usize::try_from(high).unwrap_or(0)
    }

    /// The halves of the product of the next number and `end`.
    #[inline]
    fn scaled(&mut self, end: u64) -> (u64, u64) {
        let product = u128::from(self.next()) * u128::from(end);
        let low = product & u128::from(u64::MAX);
        (u64::try_from(product >> 64).unwrap_or(0), u64::try_from(low).unwrap_or(0))
    }
}

/// The seed of an epoch of a loader with this seed.
///
/// ```
/// use arrow_dlpack::batches::epoch::seed_of_epoch;
/// assert_eq!(seed_of_epoch(42, 0), 42);
/// assert_ne!(seed_of_epoch(42, 1), seed_of_epoch(42, 2));
/// ```
#[must_use]
pub fn seed_of_epoch(seed: u64, epoch: u64) -> u64 {
    if epoch == 0 { seed } else { Random::number(seed, epoch) >> 11 }
}

/// The seed of one of several readers of an epoch with this seed, which are to draw differently.
///
/// ```
/// use arrow_dlpack::batches::epoch::seed_of_part;
/// assert_eq!(seed_of_part(42, 0), 42);
/// assert_ne!(seed_of_part(42, 1), seed_of_part(42, 2));
/// ```
#[must_use]
pub fn seed_of_part(seed: u64, part: u64) -> u64 {
    if part == 0 { seed } else { Random::number(!seed, part) }
}

/// The numbers below `count` in the order of a seed, such as that of row groups.
///
/// ```
/// use arrow_dlpack::batches::epoch::order;
/// let mut groups = order(5, 42)?;
/// assert_eq!(groups, order(5, 42)?);
/// groups.sort_unstable();
/// assert_eq!(groups, [0, 1, 2, 3, 4]);
/// # Ok::<(), arrow_dlpack::Error>(())
/// ```
///
/// # Errors
///
/// `OutOfMemory`.
pub fn order(count: usize, seed: u64) -> Result<Vec<u64>, Error> {
    let mut order = alloc::reserved(count)?;
    order.extend((0..).take(count));
    let (mut random, mut steps) = (Random(seed), Steps::default());
    for last in (1..count).rev() {
        order.swap(last, random.below(last + 1));
        steps.done(size_of::<u64>())?;
    }
    Ok(order)
}

/// A worker of a rank, to which batches of a source are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The number of the rank, from 0.
    pub rank: u64,
    /// The number of ranks.
    pub world: u64,
    /// The number of the worker within its rank, from 0.
    pub worker: u64,
    /// The number of workers that each rank has.
    pub workers: u64,
}

/// What to do where ranks would not have equally many batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Uneven {
    /// The last batches are left out.
    Drop,
    /// The first batches are made a second time, by other ranks; each of them more often if there are fewer than ranks.
    Repeat,
    /// The first ranks have one batch more.
    Allow,
}

/// The numbers of the batches that one worker makes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Numbers {
    /// Batches that no other worker makes, unless it does so again: every `step`-th of these.
    pub once: Range<u64>,
    /// At least 1.
    pub step: u64,
    /// Batches that this worker makes again, after those, so that its rank has as many as others.
    pub again: Range<u64>,
}

const TOO_MANY: Error = Error::InvalidOptions("64 bits do not count these batches or workers");

impl Share {
    /// Batches that follow each other, of `total`, for sources whose rows are read from any row on. Ranks follow each
    /// other, and within a rank its workers.
    ///
    /// ```
    /// use arrow_dlpack::batches::epoch::{Share, Uneven};
    ///
    /// let last = Share { rank: 3, world: 4, worker: 0, workers: 1 };
    /// let numbers = last.range(10, Uneven::Repeat)?;
    /// assert_eq!((numbers.once, numbers.again), (9..10, 0..2));
    /// assert_eq!(last.range(10, Uneven::Drop)?.once, 6..8);
    /// assert_eq!(last.range(10, Uneven::Allow)?.once, 8..10);
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `InvalidOptions` for a rank or worker that is not below their number, and for more of them, or of batches, than 64
    /// bits count.
    pub fn range(self, total: u64, uneven: Uneven) -> Result<Numbers, Error> {
        let all = self.batches_of_all(total, uneven)?;
        let Self { rank, world, worker, workers } = self;
        let (each, rest) = (all / world, all % world);
        let first = each * rank + rest.min(rank);
        let ours = each + u64::from(rank < rest);
        let start_of = |worker| first + portion(ours, worker, workers);
        Ok(Numbers::new(start_of(worker)..start_of(worker + 1), 1, total))
    }

    /// Batches by turns, of `total`, for sources that are read from their start, as by [`Shard`](super::Shard): ranks take
    /// turns, and within a rank its workers, so that a rank has the same batches for any number of workers.
    ///
    /// ```
    /// use arrow_dlpack::batches::epoch::{Share, Uneven};
    ///
    /// let share = Share { rank: 1, world: 2, worker: 1, workers: 2 };
    /// let numbers = share.turns(11, Uneven::Repeat)?;
    /// assert_eq!(numbers.once.step_by(4).collect::<Vec<_>>(), [3, 7]);
    /// assert_eq!(numbers.again, 0..1);
    /// # Ok::<(), arrow_dlpack::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`range`](Self::range).
    pub fn turns(self, total: u64, uneven: Uneven) -> Result<Numbers, Error> {
        let all = self.batches_of_all(total, uneven)?;
        let step = self.world.checked_mul(self.workers).ok_or(TOO_MANY)?;
        let index = self.worker * self.world + self.rank;
        Ok(Numbers::new(index.min(all)..all, step, total))
    }

    /// How many batches all ranks make together.
    fn batches_of_all(self, total: u64, uneven: Uneven) -> Result<u64, Error> {
        if self.rank >= self.world || self.worker >= self.workers {
            let why = "a rank is below the number of ranks, and a worker below that of workers";
            return Err(Error::InvalidOptions(why));
        }
        let rest = total % self.world;
        match uneven {
            Uneven::Allow => Ok(total),
            Uneven::Repeat if rest > 0 && total > 0 => {
                (total - rest).checked_add(self.world).ok_or(TOO_MANY)
            }
            Uneven::Repeat | Uneven::Drop => Ok(total - rest),
        }
    }
}

impl Numbers {
    /// Numbers from `total` on stand for the batches from the first one on.
    fn new(all: Range<u64>, step: u64, total: u64) -> Self {
        let once = all.start..all.end.min(total).max(all.start);
        // These are fewer than ranks, and one at most if there are fewer batches than ranks: they follow each other.
        let count = (once.end - once.start).div_ceil(step);
        let next = all.start.saturating_add(count.saturating_mul(step));
        let more = all.end.saturating_sub(next).div_ceil(step);
        let first = next.checked_rem(total).unwrap_or(0);
        Self { once, step, again: first..first + more }
    }
}

/// `number * part / parts`, for a part of at most `parts`.
fn portion(number: u64, part: u64, parts: u64) -> u64 {
    let scaled = u128::from(number) * u128::from(part) / u128::from(parts);
    u64::try_from(scaled).unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of the reference implementation in C, by Sebastiano Vigna.
    #[test]
    fn random_numbers_are_those_of_splitmix64() {
        let mut random = Random(1_234_567);
        let known = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        for (n, known) in (1..).zip(known) {
            assert_eq!((random.next(), Random::number(1_234_567, n)), (known, known));
        }
    }

    /// Those below 3 are drawn again where the lower half of the product is 0, which random number 0 has.
    #[test]
    fn numbers_below_an_end_are_equally_likely() {
        // The state before the one that gives random number 0.
        let mut random = Random(0_u64.wrapping_sub(Random::STEP));
        assert_eq!(Random(random.0).next(), 0);
        let second = Random::number(random.0, 2);
        assert_eq!(random.below(3), usize::try_from((u128::from(second) * 3) >> 64).unwrap());
        assert_eq!(random.0, Random::STEP);
        assert_eq!((Random(7).below(0), Random(7).below(1)), (0, 0));
        let mut counts = [0; 5];
        let mut random = Random(3);
        (0..50_000).for_each(|_| counts[random.below(5)] += 1);
        assert!(counts.iter().all(|count| (9_700..10_300).contains(count)), "{counts:?}");
    }

    #[test]
    fn an_order_is_a_permutation_that_its_seed_repeats() {
        for count in [0, 1, 2, 3, 100, 70_000] {
            let found = order(count, 5).unwrap();
            assert_eq!(found, order(count, 5).unwrap());
            assert!(count < 3 || found != order(count, 6).unwrap());
            let mut sorted = found;
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq((0..).take(count)));
        }
        let mut seen = [0; 6];
        for seed in 0..6_000 {
            let found = order(3, seed).unwrap();
            let at = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
            seen[at.iter().position(|one| found == one).unwrap()] += 1;
        }
        assert!(seen.iter().all(|count| (880..1_120).contains(count)), "{seen:?}");
    }

    #[test]
    fn an_order_of_more_than_memory_holds_is_an_error() {
        for count in [1 << (usize::BITS - 2), usize::MAX] {
            assert!(matches!(order(count, 1), Err(Error::OutOfMemory { .. })));
        }
    }

    #[test]
    fn seeds_of_epochs_and_parts_differ() {
        let mut seeds = Vec::new();
        for epoch in 0..20 {
            let seed = seed_of_epoch(9, epoch);
            assert!(seed < 1 << 53);
            seeds.extend((0..20).map(|part| seed_of_part(seed, part)));
        }
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 400);
    }

    const UNEVEN: [Uneven; 3] = [Uneven::Drop, Uneven::Repeat, Uneven::Allow];

    /// What each worker of a rank makes.
    fn of_rank(
        (rank, world, workers): (u64, u64, u64),
        numbers: impl Fn(Share) -> Result<Numbers, Error>,
    ) -> Vec<Numbers> {
        let share = |worker| Share { rank, world, worker, workers };
        (0..workers).map(|worker| numbers(share(worker)).unwrap()).collect()
    }

    #[test]
    fn ranks_have_each_batch_once_and_equally_many() {
        let sizes = (0..14).flat_map(|total| (1..6).map(move |world| (total, world)));
        let sizes = sizes.flat_map(|(total, world)| (1..4).map(move |count| (total, world, count)));
        for ((total, world, workers), uneven) in
            sizes.flat_map(|size| UNEVEN.map(|uneven| (size, uneven)))
        {
            for in_turns in [false, true] {
                let numbers = |share: Share| match in_turns {
                    true => share.turns(total, uneven),
                    false => share.range(total, uneven),
                };
                let (mut once, mut counts) = (Vec::new(), Vec::new());
                for rank in 0..world {
                    let mut count = 0;
                    for found in of_rank((rank, world, workers), numbers) {
                        let step = usize::try_from(found.step).unwrap();
                        let own: Vec<u64> = found.once.step_by(step).collect();
                        assert!(found.again.clone().all(|number| number < total));
                        count += own.len() + found.again.count();
                        once.extend(own);
                    }
                    counts.push(count);
                }
                once.sort_unstable();
                let kept = if uneven == Uneven::Drop { total - total % world } else { total };
                let what = format!("{total}, {world} x {workers}, {uneven:?}, {in_turns}");
                assert!(once.into_iter().eq(0..kept), "{what}");
                let most = counts.iter().max().unwrap() - counts.iter().min().unwrap();
                assert!(most <= usize::from(uneven == Uneven::Allow), "{what}: {counts:?}");
            }
        }
    }

    #[test]
    fn any_numbers_end_in_a_share_or_an_error() {
        let large = [0, 1, 7, 1 << 32, 1 << 63, u64::MAX - 1, u64::MAX];
        for (rank, world) in large.iter().flat_map(|&rank| large.map(|world| (rank, world))) {
            for (worker, workers) in [(0, 0), (0, 1), (6, 7), (u64::MAX - 1, u64::MAX)] {
                let share = Share { rank, world, worker, workers };
                for uneven in UNEVEN {
                    for total in large {
                        let _range = share.range(total, uneven);
                        let _turns = share.turns(total, uneven);
                    }
                    let is_known = rank < world && worker < workers;
                    assert_eq!(share.range(5, Uneven::Drop).is_ok(), is_known, "{share:?}");
                }
            }
        }
    }
}
