//! Laws of the counts.

use std::sync::Arc;

use loom::thread;

use super::counts::Counts;
use crate::in_every_order;

/// What a thread of the library does: it counts in its slot, and then gives it back.
fn count(counts: &Counts, by: isize) {
    let slot = counts.lease();
    slot.count(|slot| &slot.exported, 1);
    slot.count(|slot| &slot.exported, by);
    counts.give_back(slot);
}

#[test]
fn nothing_is_lost_when_a_slot_changes_hands() {
    in_every_order(None, || {
        let counts = Arc::new(Counts::default());
        let others = [1, -2].map(|by| {
            let counts = Arc::clone(&counts);
            thread::spawn(move || count(&counts, by))
        });
        count(&counts, 3);
        for other in others {
            other.join().expect("no panic");
        }
        assert_eq!(counts.sum(|slot| &slot.exported), 5);
        assert_eq!(counts.sum(|slot| &slot.imported), 0);
    });
}

#[test]
fn threads_that_are_ending_share_one_slot() {
    in_every_order(None, || {
        let counts = Arc::new(Counts::default());
        let others = [2, 3].map(|by| {
            let counts = Arc::clone(&counts);
            thread::spawn(move || {
                counts.shared.count_with_others(|slot| &slot.imported, by);
                count(&counts, -1);
            })
        });
        counts.shared.count_with_others(|slot| &slot.imported, 4);
        for other in others {
            other.join().expect("no panic");
        }
        assert_eq!(counts.sum(|slot| &slot.imported), 9);
        assert_eq!(counts.sum(|slot| &slot.exported), 0);
    });
}

#[test]
fn who_asks_meanwhile_gets_a_sum_of_what_some_have_counted() {
    in_every_order(None, || {
        let counts = Arc::new(Counts::default());
        let others = [10, 100].map(|by| {
            let counts = Arc::clone(&counts);
            thread::spawn(move || count(&counts, by - 1))
        });
        let sum = counts.sum(|slot| &slot.exported);
        assert!([0, 1, 2, 10, 11, 100, 101, 110].contains(&sum), "{sum}");
        for other in others {
            other.join().expect("no panic");
        }
        assert_eq!(counts.sum(|slot| &slot.exported), 110);
    });
}
