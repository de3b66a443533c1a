//! The example, `lib.rs`, and beside it all else that extensions can call, for the tests.

#[path = "lib.rs"]
mod example;
mod rest;
