//! Handles Ctrl-C while a long operation runs without the interpreter.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// The time between two checks for signals.
const PATIENCE: Duration = Duration::from_millis(50);

/// Checks for signals at intervals. Reading the clock costs time too, so with short steps it is read only after
/// several of them.
pub(super) struct Interrupt {
    asked: Instant,
    looked: Instant,
    /// Steps between two readings of the clock, and how many of these remain.
    steps: u32,
    left: u32,
}

impl Interrupt {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { asked: now, looked: now, steps: 1, left: 1 }
    }

    /// The exception of a pending signal, such as `KeyboardInterrupt`. For threads that are not attached.
    pub(super) fn step(&mut self) -> PyResult<()> {
        self.left -= 1;
        if self.left > 0 {
            return Ok(());
        }
        let now = Instant::now();
        let is_fast = now - self.looked < PATIENCE / 50;
        self.steps = if is_fast { (self.steps * 2).min(1024) } else { (self.steps / 2).max(1) };
        (self.looked, self.left) = (now, self.steps);
        if now - self.asked < PATIENCE {
            return Ok(());
        }
        self.asked = now;
        Python::attach(|py| py.check_signals())
    }
}
