//! Laws of the table of types.

use std::convert::Infallible;
use std::sync::Arc;

use loom::thread;

use super::append_only::AppendOnlyTable;
use crate::in_every_order;
use crate::sync::OnceLock;

/// A table of names, which all belong into the first slot.
type Names = AppendOnlyTable<&'static str, 3>;

fn names() -> Arc<Names> {
    Arc::new(AppendOnlyTable(std::array::from_fn(|_| OnceLock::new())))
}

fn find(names: &Names, name: &'static str) -> Option<&'static str> {
    let found = names.find(0, |found| *found == name, || Ok::<_, Infallible>(Some(name)));
    found.unwrap_or_else(|never| match never {}).copied()
}

fn entries(names: &Names) -> Vec<&'static str> {
    names.0.iter().filter_map(|slot| slot.get().copied()).collect()
}

#[test]
fn what_is_found_is_what_was_looked_for_and_is_there_once() {
    in_every_order(None, || {
        let names = names();
        let others = ["a", "b"].map(|name| {
            let names = Arc::clone(&names);
            thread::spawn(move || {
                assert!(find(&names, name).is_none_or(|found| found == name));
                assert!(find(&names, name).is_none_or(|found| found == name));
            })
        });
        assert!(find(&names, "a").is_none_or(|found| found == "a"));
        for other in others {
            other.join().expect("no panic");
        }
        assert_eq!((find(&names, "a"), find(&names, "b")), (Some("a"), Some("b")));
        let mut entries = entries(&names);
        entries.sort_unstable();
        assert_eq!(entries, ["a", "b"]);
    });
}

#[test]
fn a_full_table_keeps_what_it_has() {
    in_every_order(None, || {
        let names = names();
        for name in ["a", "b"] {
            assert_eq!(find(&names, name), Some(name));
        }
        let others = ["c", "d"].map(|name| {
            let names = Arc::clone(&names);
            thread::spawn(move || assert!(find(&names, name).is_none_or(|found| found == name)))
        });
        for other in others {
            other.join().expect("no panic");
        }
        let last = entries(&names)[2];
        assert!(["c", "d"].contains(&last));
        assert_eq!(find(&names, "a"), Some("a"));
        assert_eq!(find(&names, "e"), None);
    });
}
