//! The device at power failure.

use super::{Device, Phase, count};
use crate::base::geometry::DieId;
use crate::base::slab::Fifo;
use crate::base::units::{Span, Time};
use crate::sched::pick::Turns;
use crate::sched::{Class, Slot, Transactions};
use std::iter::successors;

impl Device {
    /// Whether power failure tears the program or erase of a die: the operation has begun in the array and has not
    /// ended, or is suspended.
    pub fn is_torn_now(&self, die: DieId) -> bool {
        let is_sensing = self.is_sensing(die);
        self.phase(die) == Phase::Array && !is_sensing || self.suspended(die).is_some()
    }

    /// The operations that are queued, under way, held or suspended, each by its first transaction.
    pub fn operations<'a>(&'a self, pool: &'a Transactions) -> impl Iterator<Item = Slot> + 'a {
        let lists = self.dies.iter().zip(0..).flat_map(|(die, id)| {
            let apart = [die.held, self.suspended(DieId(id))];
            die.queues.iter().chain([&die.batch]).map(Fifo::first).chain(apart)
        });
        lists.flat_map(|first| std::iter::successors(first, |&slot| pool[slot].next))
    }

    /// Whether a program with a submission number below `order` is queued or under way. The first call with an `order`
    /// takes time with the number of operations.
    pub fn has_program_before(&mut self, pool: &Transactions, order: u64) -> bool {
        if self.before.0 != order {
            let is_before = |&slot: &Slot| pool[slot].kind.programs() && pool[slot].order < order;
            self.before = (order, self.operations(pool).filter(is_before).count() as u32);
        }
        self.before.1 > 0
    }

    /// The number of programs in a batch that [`Device::has_program_before`] counts.
    #[cold]
    pub(super) fn count_programs_before(&self, pool: &Transactions, first: Slot) -> u32 {
        let batch = successors(Some(first), |&slot| pool[slot].next);
        batch.map(|slot| u32::from(pool[slot].kind.programs() && pool[slot].order < self.before.0)).sum()
    }

    /// Checks the count of [`Device::has_program_before`].
    pub fn audit(&self, pool: &Transactions) -> Result<(), String> {
        let (order, counted) = self.before;
        let is_before = |&slot: &Slot| pool[slot].kind.programs() && pool[slot].order < order;
        let found = self.operations(pool).filter(is_before).count();
        if found != counted as usize {
            return Err(format!("{found} programs with numbers below {order} found, {counted} counted"));
        }
        Ok(())
    }

    /// At power failure, drops all queued transactions and all urgency. Operations under way continue.
    pub fn drop_queues(&mut self, pool: &Transactions) {
        for (die, id) in self.dies.iter_mut().zip(0..) {
            let suspended = self.suspender.as_ref().and_then(|suspender| suspender.suspended(DieId(id)));
            die.queues = [Fifo::default(); Class::ALL.len()];
            (die.promoted, die.turns, die.cleanings) = (0, Turns::default(), 0);
            die.load =
                count(pool, die.batch.first()) + count(pool, suspended) + u32::from(die.held.is_some());
        }
        self.count_reads_of_stations();
        if let Some(planes) = &mut self.planes {
            planes.forget_waits();
        }
        if let Some(partners) = &mut self.partners {
            partners.clear();
        }
        self.before = (0, 0);
    }

    /// At power-off, drops all operations: those under way, and those of an emergency flush that have not begun.
    pub fn stop(&mut self, now: Time) {
        for die in (0..self.cleaning_order.len() as u32).map(DieId) {
            let reads_since = self.planes.as_ref().and_then(|planes| planes.busy_since(die));
            self.dies[die.index()].busy_ns += reads_since.map_or(Span::ZERO, |since| now - since);
        }
        if let Some(planes) = &mut self.planes {
            planes.stop();
        }
        for (die, id) in self.dies.iter_mut().zip(0..) {
            if die.phase != Phase::Idle {
                die.busy_ns += now - die.since;
            }
            die.queues = [Fifo::default(); Class::ALL.len()];
            (die.phase, die.batch, die.load) = (Phase::Idle, Fifo::default(), 0);
            (die.held, die.is_sensed) = (None, false);
            if let Some(suspender) = &mut self.suspender
                && (id as usize) < self.cleaning_order.len()
            {
                suspender.end(DieId(id));
            }
        }
        for channel in &mut self.channels {
            channel.free(now);
            channel.waiting = None;
        }
        self.off_chip_free_at = self.off_chip_free_at.map(|free_at| free_at.min(now));
    }
}
