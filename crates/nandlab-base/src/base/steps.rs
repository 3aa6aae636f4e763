//! Steps of work, counted in debug builds: tests compare the steps of an operation on a unit at two queue depths, so
//! that no cost grows with a backlog.
//!
//! A step is an access to a value in a slab or in the write cache, an event, a wake, a comparison of clocks, or one round
//! of a loop over a collection whose length may grow with the load. A new loop of the last kind calls [`step`].

#[cfg(debug_assertions)]
use std::cell::Cell;

#[cfg(debug_assertions)]
thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Counts a step. Does nothing in release builds.
#[inline(always)]
pub fn step() {
    #[cfg(debug_assertions)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// The steps of this thread so far; `None` in release builds.
#[doc(hidden)]
pub fn taken() -> Option<u64> {
    #[cfg(debug_assertions)]
    return Some(STEPS.with(Cell::get));
    #[cfg(not(debug_assertions))]
    None
}
