//! Detection of re-entry: in debug builds, entering a part of the controller that is at work panics.

use super::Core;
use crate::probe::Probe;
#[cfg(debug_assertions)]
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// The parts of the controller that must not be entered while they are at work.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Component {
    Program,
    Background,
    Migration,
    DemandMap,
    WriteCache,
    Refresh,
    PartialRefresh,
    Capacitor,
}

/// The parts at work, one bit each. Nothing is recorded in release builds.
#[derive(Debug, Default)]
pub(crate) struct Inside {
    #[cfg(debug_assertions)]
    parts: Arc<AtomicU32>,
}

/// Marks a part as at work until this value is dropped.
#[derive(Debug)]
pub(crate) struct Entered {
    #[cfg(debug_assertions)]
    of: (Arc<AtomicU32>, u32),
}

impl Inside {
    /// Marks a part as at work.
    ///
    /// # Panics
    /// In debug builds, if the part is at work already.
    #[inline(always)]
    pub(super) fn enter(&self, _part: Component) -> Entered {
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

impl<P: Probe> Core<P> {
    /// Marks a part of the controller as at work until the result is dropped.
    ///
    /// # Panics
    /// In debug builds, if the part is at work already.
    #[inline(always)]
    pub(crate) fn enter(&self, part: Component) -> Entered {
        self.inside.enter(part)
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn different_parts_may_be_at_work_at_once_and_a_part_may_be_entered_again_after_it_ended() {
        let inside = Inside::default();
        for _ in 0..2 {
            let _cache = inside.enter(Component::WriteCache);
            let _map = inside.enter(Component::DemandMap);
        }
    }

    #[test]
    #[should_panic(expected = "WriteCache is entered again while it is at work")]
    fn a_part_that_is_entered_again_while_it_is_at_work_panics() {
        let inside = Inside::default();
        let _cache = inside.enter(Component::WriteCache);
        let _map = inside.enter(Component::DemandMap);
        let _again = inside.enter(Component::WriteCache);
    }
}
