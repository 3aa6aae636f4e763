//! Power loss: what is under way ends or tears, the capacitor saves what it can, and when power is back the drive is rebuilt from
//! flash. `drive/power_loss.rs` and `drive/recovery.rs` say in which order.
//!
//! C. Gao et al., "Aging capacitor supported cache management scheme for solid-state drives", IEEE TCAD 39(10), 2020 (Section IV-C:
//! the emergency flush).

mod flush;
pub(crate) mod notes;
mod recovery;
pub(crate) mod spec;
mod stats;
#[cfg(test)]
mod tests;

pub(crate) use flush::{Dirty, Means, under_way};
pub(crate) use recovery::Return;
pub use stats::{LossCounts, PowerLoss, Recovery};

use crate::base::geometry::{BlockId, Lpn, Ppn};
use crate::base::units::Span;
use crate::core::Core;
use crate::ftl::AllocatedPage;
use crate::probe::Probe;
use crate::sched::Transaction;

/// What other mechanisms have to know of what happens while power is off, and to save.
pub(crate) trait Schemes<P: Probe> {
    /// The first page of a block is programmed.
    fn on_first_program(&mut self, core: &mut Core<P>, block: BlockId);

    /// A copyback from a block has ended.
    fn on_copied_back(&mut self, to: BlockId, from: BlockId);

    /// A copyback has ended, that many in a row.
    fn count_copyback(&mut self, in_a_row: u8);

    /// A block has been erased.
    fn on_erased(&mut self, core: &mut Core<P>, block: BlockId);

    /// The data of a page is elsewhere, or nowhere.
    fn on_page_obsolete(&mut self, core: &mut Core<P>, page: Ppn);

    /// Pages from `first` to before `end` have not been programmed after all.
    fn on_blank(&mut self, first: Ppn, end: Ppn);

    /// The combination pages that are in RAM alone, `under_way` being what the dies have taken up.
    fn lines(&mut self, under_way: &[Transaction]) -> Vec<Lpn>;

    /// A place for one of them, on a die that is free.
    fn place_line(&mut self, core: &mut Core<P>) -> Option<AllocatedPage>;

    /// A combination page will be at `to`.
    fn stage(&mut self, lpn: Lpn, to: Ppn);
}

/// The power losses of a drive.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// In order.
    pub(crate) list: Vec<PowerLoss>,
    /// Time without power and until the drive was ready again.
    pub(crate) down_ns: Span,
    /// Power is off now.
    pub(crate) is_off: bool,
    /// Blocks whose erase power loss has interrupted, until power is back.
    pub(crate) torn_erases: Vec<BlockId>,
}

/// Power fails, and what the dies have taken up is still there.
pub(crate) struct Outage<'a, P: Probe, S> {
    pub(crate) core: &'a mut Core<P>,
    pub(crate) schemes: &'a mut S,
}
