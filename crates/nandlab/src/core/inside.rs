//! Who is at work: in debug builds a mechanism that is entered while it is at work panics.

#[cfg(debug_assertions)]
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// What must not be entered again while it is at work.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Program,
    Background,
    Copyback,
    DemandMap,
    WriteCache,
    Refresh,
    PartialRefresh,
    Capacitor,
}

/// The parts at work, one bit each. Costs nothing in release builds.
#[derive(Debug, Default)]
pub(crate) struct Inside {
    #[cfg(debug_assertions)]
    parts: Arc<AtomicU32>,
}

/// A part is at work until this is dropped.
#[derive(Debug)]
pub(crate) struct Entered {
    #[cfg(debug_assertions)]
    of: (Arc<AtomicU32>, u32),
}

impl Inside {
    /// Marks a part as at work.
    ///
    /// # Panics
    /// In debug builds, when it is at work already.
    #[inline(always)]
    pub(crate) fn enter(&self, _part: Part) -> Entered {
        Entered {
            #[cfg(debug_assertions)]
            of: {
                let bit = 1 << _part as u32;
                let before = self.parts.fetch_or(bit, Ordering::Relaxed);
                assert!(before & bit == 0, "{_part:?} is entered again while it is at work");
                (self.parts.clone(), bit)
            },
        }
    }
}

#[cfg(debug_assertions)]
impl Drop for Entered {
    fn drop(&mut self) {
        self.of.0.fetch_and(!self.of.1, Ordering::Relaxed);
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn parts_may_be_at_work_for_one_another_and_again_later() {
        let inside = Inside::default();
        for _ in 0..2 {
            let _cache = inside.enter(Part::WriteCache);
            let _map = inside.enter(Part::DemandMap);
        }
    }

    #[test]
    #[should_panic(expected = "WriteCache is entered again while it is at work")]
    fn a_part_that_is_entered_again_while_it_is_at_work_panics() {
        let inside = Inside::default();
        let _cache = inside.enter(Part::WriteCache);
        let _map = inside.enter(Part::DemandMap);
        let _again = inside.enter(Part::WriteCache);
    }
}
