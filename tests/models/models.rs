//! What threads do to each other with the atomics of this library, in every order that the memory model of
//! Rust allows: `make models`.
//!
//! The files under test are the library's own, with loom's atomics and locks in place of those of `std`, which
//! they know as `crate::sync`. What they guard is a `Cell` of loom's, which finds two threads that touch it
//! without one of them knowing of the other.
#![cfg(test)]

mod sync;

mod alloc {
    mod huge_pages {
        pub(super) const PAGE: usize = 2 << 20;
    }

    mod retaining {
        #[path = "../../../../src/alloc/retaining/slots.rs"]
        mod slots;

        mod test_slots;
    }
}

mod exchange {
    #[path = "../../../src/python/dlpack/exchange/append_only.rs"]
    mod append_only;

    mod test_table;
}

/// Runs a model in every order of its steps, with at most `preemptions` of them at which a thread is stopped
/// that could have gone on, and says how many there were.
fn in_every_order(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    let executions = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&executions);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    println!("{name}: {} executions", executions.load(Ordering::Relaxed));
}
