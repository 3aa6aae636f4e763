//! The schemes: mechanisms that take part in background jobs and in recovery. What one scheme needs of another is in
//! `together.rs`.

use super::spec::Spec;
use crate::base::geometry::Ppn;
use crate::copyback::Migration;
use crate::core::Core;
use crate::probe::Probe;
use crate::refresh::Refreshing;

/// The schemes of a drive.
#[derive(Debug)]
pub(super) struct Schemes {
    pub(super) copyback: Migration,
    pub(super) refreshing: Refreshing,
}

impl Schemes {
    /// The schemes that the spec names.
    pub(super) fn new<P: Probe>(spec: &Spec, core: &Core<P>) -> Self {
        Self {
            copyback: Migration::new(&spec.migration),
            refreshing: Refreshing::new(&spec.refresh, spec.seed, core),
        }
    }

    /// A page has been sensed at a read level and counted as a read of its block. The read may fail to decode and be
    /// tried again.
    #[inline(always)]
    pub(super) fn on_read<P: Probe>(&mut self, _core: &mut Core<P>, _page: Ppn, _level: u8) {}

    /// Power is lost: drops all state kept in RAM.
    pub(super) fn forget<P: Probe>(&mut self, core: &mut Core<P>) {
        self.refreshing.forget(core);
    }
}
