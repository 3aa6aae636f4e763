//! Work that takes more than a moment hears Ctrl-C, and every other signal that Python has a handler for.

use pyo3::prelude::*;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Told to work that is to end.
#[derive(Default)]
pub(crate) struct Stop(AtomicBool);

impl Stop {
    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn error(&self) -> io::Result<()> {
        if self.is_asked() { Err(io::Error::other("interrupted")) } else { Ok(()) }
    }
}

/// Does `work` on a thread of its own while this one hears signals. Where a handler raises, the work is told to stop and
/// waited for, and the handler's exception is the result.
pub(crate) fn heard<T: Send>(py: Python<'_>, work: impl FnOnce(&Stop) -> T + Send) -> PyResult<T> {
    let stop = Stop::default();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| work(&stop));
        let mut heard = Ok(());
        while !thread.is_finished() {
            pause(py, || thread.is_finished());
            if heard.is_ok() {
                heard = py.check_signals();
                stop.0.store(heard.is_err(), Ordering::Relaxed);
            }
        }
        let done = thread.join();
        heard?;
        done.or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Waits for a thread, or for a signal whose handler raises.
pub(crate) fn wait<T>(py: Python<'_>, thread: &JoinHandle<T>) -> PyResult<()> {
    while !thread.is_finished() {
        pause(py, || thread.is_finished());
        py.check_signals()?;
    }
    Ok(())
}

/// Waits until something is over, but not longer than it may take to hear a signal.
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

/// A file that ends when the work is to stop.
pub(crate) struct Heard<'a, T>(pub(crate) T, pub(crate) &'a Stop);

impl<R: Read> Read for Heard<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1.error()?;
        self.0.read(buffer)
    }
}

impl<W: Write> Write for Heard<'_, W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.1.error()?;
        self.0.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
