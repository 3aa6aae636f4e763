//! `migration.copyback = "split"`: host reads between the sense and the program of a copyback.

use super::Device;
use crate::base::geometry::DieId;
use crate::base::slab::Fifo;
use crate::base::units::Time;
use crate::sched::{Agenda, FlashOp, Slot, Transactions, Watcher};

/// The host reads that a die may serve between the sense and the program of a copyback
/// (`migration.copyback = "split"`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopybackGap {
    /// Reads of other planes: the register of the copyback's plane holds its data.
    OtherPlanes,
    /// Reads of all planes: each plane has a second register.
    AllPlanes,
}

impl Device {
    /// Continues a copyback, whose pages have been sensed, with its program.
    #[inline(never)]
    pub(super) fn program_held<W: Watcher>(
        &mut self,
        pool: &mut Transactions,
        agenda: &mut Agenda,
        watcher: &mut W,
        now: Time,
        id: DieId,
        held: Slot,
    ) {
        let die = &mut self.dies[id.index()];
        die.held = None;
        die.batch = Fifo::of(pool, held);
        (die.kind, die.since) = (FlashOp::Copyback, now);
        watcher.on_issue(now, id, &pool[held]);
        self.start_array(pool, agenda, watcher, now, id);
    }
}
