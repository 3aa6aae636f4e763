//! `Watcher`: the trait by which a probe follows the operations of the dies.

use super::device::Phase;
use super::transaction::Transaction;
use crate::base::geometry::DieId;
use crate::base::units::Time;

/// Is told which transactions the dies take up, and when each phase runs. Every method does nothing unless overridden.
pub trait Watcher {
    /// A die has taken up a transaction.
    #[inline(always)]
    fn on_issue(&mut self, _now: Time, _die: DieId, _transaction: &Transaction) {}

    /// `transaction` goes along with `first`, which the die has just taken up: the same operation in another plane.
    #[inline(always)]
    fn on_joined(&mut self, _now: Time, _die: DieId, _first: &Transaction, _transaction: &Transaction) {}

    /// A phase of a transaction runs from `start` to `end`: on the die for `Phase::Array`, else on the die's channel.
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
}

/// Two watchers at once.
impl<A: Watcher, B: Watcher> Watcher for (A, B) {
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
}
