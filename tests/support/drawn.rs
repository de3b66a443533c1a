//! For tests whose cases proptest draws. In a file of its own for the crates that use `support` without
//! proptest.

use proptest::test_runner::{Config, FileFailurePersistence};

/// How many cases are drawn: 256, or `PROPTEST_CASES`. Those that fail are kept beside the test.
pub(crate) fn cases() -> Config {
    if cfg!(miri) {
        return Config { failure_persistence: None, ..Config::with_cases(4) };
    }
    let regressions = FileFailurePersistence::WithSource("regressions");
    Config { failure_persistence: Some(Box::new(regressions)), ..Config::default() }
}
