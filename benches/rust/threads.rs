//! Exports from several threads at once. Each thread has an array of its own, so whatever slows them
//! down is ours; "one array" has them share one, whose reference count they then pass around.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::Float32Array;
use arrow_dlpack::export;
use criterion::{BenchmarkId, Criterion};

const THREADS: [usize; 3] = [1, 2, 4];

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1200))
        .sample_size(30)
        .without_plots()
        .configure_from_args();
    let mut group = criterion.benchmark_group("threads");
    for threads in THREADS {
        let own: Vec<_> = (0..threads).map(|_| Float32Array::from(vec![0.0; 1000])).collect();
        let one = vec![own[0].clone(); threads];
        for (name, arrays) in [("own array", own), ("one array", one)] {
            group.bench_function(BenchmarkId::new(name, threads), |bencher| {
                bencher.iter_custom(|exports| at_once(&arrays, exports));
            });
        }
    }
    group.finish();
    criterion.final_summary();
}

/// How long it takes from when the first thread begins until the last has exported its array this often.
fn at_once(arrays: &[Float32Array], exports: u64) -> Duration {
    let barrier = Barrier::new(arrays.len());
    let run = |array: &Float32Array| {
        barrier.wait();
        let start = Instant::now();
        for _ in 0..exports {
            drop(black_box(export::array(black_box(array))));
        }
        (start, Instant::now())
    };
    let times: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = arrays.iter().map(|array| scope.spawn(|| run(array))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let first = times.iter().map(|(start, _)| *start).min().expect("a thread");
    let last = times.iter().map(|(_, end)| *end).max().expect("a thread");
    last - first
}
