//! The device at power failure.

use super::{Device, Phase, count};
use crate::base::slab::Fifo;
use crate::base::units::Time;
use crate::sched::pick::Turns;
use crate::sched::{Class, Transactions};

impl Device {
    /// Whether a program with a submission number below `order` is queued or under way.
    pub fn has_program_before(&self, pool: &Transactions, order: u64) -> bool {
        self.dies.iter().any(|die| {
            let held = die.held;
            die.queues.iter().chain([&die.batch]).map(Fifo::first).chain([held]).any(|first| {
                let mut rest = first;
                while let Some(slot) = rest {
                    if pool[slot].kind.programs() && pool[slot].order < order {
                        return true;
                    }
                    rest = pool[slot].next;
                }
                false
            })
        })
    }

    /// At power failure, drops all queued transactions and all urgency. Operations under way continue.
    pub fn drop_queues(&mut self, pool: &Transactions) {
        for die in &mut self.dies {
            die.queues = [Fifo::default(); Class::ALL.len()];
            (die.promoted, die.turns, die.cleanings) = (0, Turns::default(), 0);
            die.load = count(pool, die.batch.first()) + u32::from(die.held.is_some());
        }
        if let Some(partners) = &mut self.partners {
            partners.clear();
        }
    }

    /// At power-off, ends all operations under way.
    pub fn stop(&mut self, now: Time) {
        for die in &mut self.dies {
            if die.phase != Phase::Idle {
                die.busy_ns += now - die.since;
            }
            (die.phase, die.batch, die.load) = (Phase::Idle, Fifo::default(), 0);
            (die.held, die.is_sensed) = (None, false);
        }
        for channel in &mut self.channels {
            channel.free(now);
            channel.waiting = None;
        }
        self.off_chip_free_at = self.off_chip_free_at.map(|free_at| free_at.min(now));
    }
}
