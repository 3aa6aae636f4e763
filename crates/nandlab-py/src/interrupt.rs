//! Runs long work, and serves Ctrl-C and all other signals with a handler in Python meanwhile.

use pyo3::prelude::*;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A request to the work to stop.
#[derive(Default)]
pub(crate) struct Stop(AtomicBool);

impl Stop {
    pub(crate) fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn check(&self) -> io::Result<()> {
        if self.is_requested() { Err(io::Error::other("interrupted")) } else { Ok(()) }
    }
}

/// Runs `work` on a thread of its own while the calling thread serves signals. If a signal handler raises an exception,
/// requests the work to stop, waits for its end, and returns the exception.
pub(crate) fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(&Stop) -> T + Send) -> PyResult<T> {
    let stop = Stop::default();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| work(&stop));
        let mut signals = Ok(());
        while !thread.is_finished() {
            pause(py, || thread.is_finished());
            if signals.is_ok() {
                signals = py.check_signals();
                stop.0.store(signals.is_err(), Ordering::Relaxed);
            }
        }
        let done = thread.join();
        signals?;
        done.or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Waits until a thread has finished. If a signal handler raises an exception meanwhile, returns the exception at once.
pub(crate) fn wait<T>(py: Python<'_>, thread: &JoinHandle<T>) -> PyResult<()> {
    while !thread.is_finished() {
        pause(py, || thread.is_finished());
        py.check_signals()?;
    }
    Ok(())
}

/// Waits until `is_over` returns true, but at most 26 ms, so that the caller can check for signals.
fn pause(py: Python<'_>, is_over: impl Fn() -> bool + Send + Sync) {
    py.detach(|| {
        for wait in (0..8).map(|power| Duration::from_micros(100 << power)) {
            if is_over() {
                break;
            }
            std::thread::sleep(wait);
        }
    });
}

/// A file whose reads and writes fail once the work has been requested to stop.
pub(crate) struct Interruptible<'a, T>(pub(crate) T, pub(crate) &'a Stop);

impl<R: Read> Read for Interruptible<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1.check()?;
        self.0.read(buffer)
    }
}

impl<W: Write> Write for Interruptible<'_, W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.1.check()?;
        self.0.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
