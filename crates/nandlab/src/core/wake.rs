//! Wakes: messages to a mechanism about a change to which it has to react. A mechanism does not call back its caller
//! but queues a wake. The event loop serves the wakes in order before the next event, at the same simulated time.
//!
//! | wake | pushed by | served by |
//! |---|---|---|
//! | `Space(lane)` | an opened or closed superblock, a write or translation page without room, the end of a detection, recovery | GC, `Slc` |
//! | `Emptied(lane)` | the last unpin of a job's victim, or of the victim before | the job: the erase |
//! | `Dead(superblock)` | the last unpin, or the last invalidated unit, of a full superblock | its erase, beside the lane's job |
//! | `Resume(lane)` | waiting writes that were moved to the list of another lane; a job that has taken fewer units than the host had left to it | the writes, then GC |
//! | `UnitDone(lane)`, `WriteElsewhere { lane, read }` | partial refresh, when a unit that waited for room in the VSM is done or has to be written elsewhere | the job of the lane |
//! | `JobOver(lane)` | a job whose superblock stays, or whose victim is emptied | `PowerBackup`, waiting translation pages and writes, the next job |
//! | `Due(lane)` | the refresh clock, `Drive::hurry`, `Reclaim`, `Slc` | the next job of the lane, if the lane has none |
//! | `Hurry(superblock)` | the refresh clock | `Drive::hurry`: the VSM is programmed, or the job is promoted |
//! | `Refreshed(superblock)` | partial refresh, when all susceptible bits of the superblock are in flash | `Refresh`: the superblock's next interval begins |
//! | `MapEntry { waiter, is_lost }` | the demand map, when a translation page has been read or the entry is cached | the unit that waited for the entry |
//! | `ReadMiss(slot)` | the write cache, for a read that missed and has a slot and its map entry | `Drive::read_into_cache`: the read of flash |
//! | `SectorsArrived { .. }` | the write cache, for sectors that need no flash read | the write cache |
//! | `WriteBackEnded(slot)` | a write-back that is no longer needed, or failed because of wear | the write cache |
//! | `CacheRoom` | a freed slot, a changed budget, a TRIM | the write cache: waiting writes and reads |
//! | `Detection` | programs while the capacitor is not charged, ended write-backs, TRIMs of cached units | `PowerBackup`, which may begin the next stage |
//! | `Results` | the last request of the warm-up (`workload.warm_up`) | the statistics begin again, after all other wakes |
//! | `CutPower` | the request after which power fails (`power.cut_after_requests`) | the power clock |
//! | `PolicyFailed(fault)` | a policy that has failed, or whose decision cannot be carried out | the drive, which fails |

use super::Waiter;
use crate::base::geometry::{CacheSlot, LaneId, SuperblockId};
use crate::base::policy::PolicyFault;
use crate::base::state::state;
use crate::base::steps::step;
use crate::sched::Transaction;
use std::collections::VecDeque;

/// The change to which a mechanism reacts.
#[derive(Debug)]
pub(crate) enum Wake {
    /// The space of the lane may have changed (a superblock has been opened or closed), or a write has found no room:
    /// GC may have to begin.
    Space(LaneId),
    /// Writes that waited for room in another lane now wait for room in this lane.
    Resume(LaneId),
    /// The last pin of the victim of the lane's job, or of the victim before, has been removed.
    Emptied(LaneId),
    /// A full superblock is dead: it has neither valid units nor pins any more.
    Dead(SuperblockId),
    /// The lane's job has finished with a unit: the unit has been refreshed in place, or is no longer valid.
    UnitDone(LaneId),
    /// A unit that the lane's job has read has to be written to another superblock. The transaction is boxed: wakes are
    /// pushed and popped often, this one rarely.
    WriteElsewhere { lane: LaneId, read: Box<Transaction> },
    /// All susceptible bits of a partially refreshed superblock are in flash.
    Refreshed(SuperblockId),
    /// The lane's job has ended, and its superblock stays or waits for its erase.
    JobOver(LaneId),
    /// A superblock of the lane is due for refresh.
    Due(LaneId),
    /// Half of the grace of an overdue superblock is over.
    Hurry(SuperblockId),
    /// The map entry for which a unit has waited is in RAM, or its translation page is lost.
    MapEntry { waiter: Waiter, is_lost: bool },
    /// A read has missed the write cache, and the map entry of its unit is in RAM: the unit is to be read from flash
    /// into the slot taken for it.
    ReadMiss(CacheSlot),
    /// All sectors of a unit of the write cache are in RAM, or those from flash are lost. `sequence`: the sequence
    /// number of the unit's data in flash; `None` if the unit was not in flash.
    SectorsArrived { slot: CacheSlot, sequence: Option<u64>, is_lost: bool },
    /// The write-back of a unit of the write cache has ended, or is no longer needed.
    WriteBackEnded(CacheSlot),
    /// The write cache may have a free slot, or room in its dirty budget, for waiting units.
    CacheRoom,
    /// The last request of the warm-up has completed: the results begin.
    Results,
    /// Power fails at the next event.
    CutPower,
    /// The present stage of a capacitor detection may be over.
    Detection,
    /// A policy has failed, or has made a decision that cannot be carried out: the drive fails.
    PolicyFailed(Box<PolicyFault>),
}

/// Wakes that have not been served, in order. `Space`, `CacheRoom` and `Detection` are not queued again while they are
/// in the queue.
#[derive(Debug)]
pub(crate) struct Wakes {
    queue: VecDeque<Wake>,
    /// By lane, whether a [`Wake::Space`] is in the queue.
    space: Box<[bool]>,
    cache_room: bool,
    detection: bool,
}

impl Wakes {
    pub(crate) fn new(lanes: u32) -> Self {
        let space = vec![false; lanes as usize].into();
        Self { queue: VecDeque::new(), space, cache_room: false, detection: false }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// For a wake that is in the queue at most once: the flag that is set while the wake is in the queue.
    fn queued_flag(&mut self, wake: &Wake) -> Option<&mut bool> {
        match *wake {
            Wake::Space(lane) => Some(&mut self.space[lane.index()]),
            Wake::CacheRoom => Some(&mut self.cache_room),
            Wake::Detection => Some(&mut self.detection),
            _ => None,
        }
    }

    // Not inlined: many places of the event loop push a wake, most of them rarely.
    #[inline(never)]
    pub(crate) fn push(&mut self, wake: Wake) {
        if !self.queued_flag(&wake).is_some_and(|is_queued| std::mem::replace(is_queued, true)) {
            self.queue.push_back(wake);
        }
    }

    /// Pushes [`Wake::Space`], which every write that finds no room does.
    #[inline(never)]
    pub(super) fn push_space(&mut self, lane: LaneId) {
        if !std::mem::replace(&mut self.space[lane.index()], true) {
            self.queue.push_back(Wake::Space(lane));
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Wake> {
        let wake = self.queue.pop_front()?;
        step();
        if let Some(is_queued) = self.queued_flag(&wake) {
            *is_queued = false;
        }
        Some(wake)
    }

    /// Drops all wakes at power loss.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.space.len() as u32);
    }
}

// The queue is empty whenever a drive is not at work on an event.
state! { Wakes { space, cache_room, detection } fixed { queue } }

#[cfg(test)]
mod tests {
    use super::*;

    fn all(wakes: &mut Wakes) -> Vec<String> {
        std::iter::from_fn(|| wakes.pop()).map(|wake| format!("{wake:?}")).collect()
    }

    #[test]
    fn wakes_are_served_in_order_and_a_wake_already_in_the_queue_is_not_added() {
        let mut wakes = Wakes::new(2);
        let (a, b) = (LaneId(0), LaneId(1));
        for wake in [Wake::Space(a), Wake::CacheRoom, Wake::Space(b), Wake::Space(a), Wake::CacheRoom] {
            wakes.push(wake);
        }
        assert_eq!(all(&mut wakes), ["Space(LaneId(0))", "CacheRoom", "Space(LaneId(1))"]);
        // Every finished unit has a wake of its own.
        for _ in 0..2 {
            wakes.push(Wake::UnitDone(a));
        }
        assert_eq!(all(&mut wakes).len(), 2);
    }

    #[test]
    fn a_wake_can_be_queued_again_after_it_was_served() {
        let mut wakes = Wakes::new(1);
        for _ in 0..3 {
            for wake in [Wake::Space(LaneId(0)), Wake::Detection, Wake::CacheRoom] {
                wakes.push(wake);
            }
            assert_eq!(all(&mut wakes).len(), 3);
        }
        wakes.push(Wake::Detection);
        wakes.clear();
        assert!(wakes.is_empty());
        wakes.push(Wake::Detection);
        assert_eq!(all(&mut wakes), ["Detection"], "a cleared wake can be queued again");
    }
}
