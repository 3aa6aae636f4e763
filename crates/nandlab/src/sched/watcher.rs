//! `Watcher`: the trait by which a probe observes the operations of the dies.

use super::device::Phase;
use super::transaction::Transaction;
use crate::base::geometry::DieId;
use crate::base::units::Time;

/// Observes which transactions the dies start, and when each phase runs. A method that is not overridden does nothing.
///
/// `die` is the number of a die; for a read of planes that read independently (`timing.plane_reads`) it is the number of
/// their station, behind those of all dies, and [`Transaction::die`] is the die.
pub trait Watcher {
    /// Whether the watcher observes phases. If not, the device may work them out before they begin. The answer never
    /// changes.
    #[inline(always)]
    fn sees_phases(&self) -> bool {
        true
    }

    /// A die has started a transaction, or the program of a copyback after its sense (`migration.copyback = "split"`).
    #[inline(always)]
    fn on_issue(&mut self, _now: Time, _die: DieId, _transaction: &Transaction) {}

    /// `transaction` is a partner of `first`, which the die has just started: the same operation in another plane.
    #[inline(always)]
    fn on_joined(&mut self, _now: Time, _die: DieId, _first: &Transaction, _transaction: &Transaction) {}

    /// A phase runs from `start` to `end`: on the die for `Phase::Array`, else on the die's channel. For a transfer out
    /// `transaction` is the read whose page is transferred; in every other phase it is the first transaction of the
    /// operation.
    #[inline(always)]
    fn on_phase(
        &mut self,
        _start: Time,
        _end: Time,
        _die: DieId,
        _channel: u32,
        _phase: Phase,
        _transaction: &Transaction,
    ) {
    }

    /// A die suspends its program or erase, and is ready for host reads at `ready`. The array phase that was reported
    /// to run longer ends at `ready`.
    #[inline(always)]
    fn on_suspend(&mut self, _now: Time, _ready: Time, _die: DieId) {}

    /// A die takes its suspended operation up again. The array phase of what is left of the operation follows.
    #[inline(always)]
    fn on_resume(&mut self, _now: Time, _die: DieId) {}
}
