//! `Watcher`: the trait by which a probe observes the operations of the dies.

use super::device::Phase;
use super::transaction::Transaction;
use crate::base::geometry::DieId;
use crate::base::units::Time;

/// Observes which transactions the dies start, and when each phase runs. A method that is not overridden does nothing.
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

/// Two watchers that observe the same operations.
impl<A: Watcher, B: Watcher> Watcher for (A, B) {
    fn sees_phases(&self) -> bool {
        self.0.sees_phases() || self.1.sees_phases()
    }

    fn on_issue(&mut self, now: Time, die: DieId, transaction: &Transaction) {
        self.0.on_issue(now, die, transaction);
        self.1.on_issue(now, die, transaction);
    }

    fn on_joined(&mut self, now: Time, die: DieId, first: &Transaction, transaction: &Transaction) {
        self.0.on_joined(now, die, first, transaction);
        self.1.on_joined(now, die, first, transaction);
    }

    fn on_phase(&mut self, start: Time, end: Time, die: DieId, channel: u32, phase: Phase, t: &Transaction) {
        self.0.on_phase(start, end, die, channel, phase, t);
        self.1.on_phase(start, end, die, channel, phase, t);
    }

    fn on_suspend(&mut self, now: Time, ready: Time, die: DieId) {
        self.0.on_suspend(now, ready, die);
        self.1.on_suspend(now, ready, die);
    }

    fn on_resume(&mut self, now: Time, die: DieId) {
        self.0.on_resume(now, die);
        self.1.on_resume(now, die);
    }
}
