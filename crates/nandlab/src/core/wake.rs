//! What has to be looked at again. Nothing calls back to who called it: it leaves a wake, and the event loop serves the
//! wakes in their order before the next event, at the same simulated time.

use super::Waiter;
use crate::base::geometry::{BlockId, CacheSlot, PlaneId};
use crate::sched::Transaction;
use std::collections::VecDeque;

/// What happened, for whoever looks at it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wake {
    /// A block of the plane has been opened or closed, or a write has found no room: GC may have to begin.
    Space(PlaneId),
    /// Writes wait for the plane that have waited for another one.
    Resume(PlaneId),
    /// Nothing needs the block any more that the job of the plane empties.
    Emptied(PlaneId),
    /// Nothing needs the block any more, and no job has emptied it.
    Dead(BlockId),
    /// A page of the job of the plane is done: it has been refreshed where it is, or was not needed any more.
    PageDone(PlaneId),
    /// A page that the job of the plane has read has to be written elsewhere.
    WriteElsewhere { plane: PlaneId, read: Transaction },
    /// All that was taken of a block that is refreshed partially is in flash.
    Refreshed(BlockId),
    /// The job of the plane is over, and its block stays.
    JobOver(PlaneId),
    /// A block of the plane is due for refresh.
    Due(PlaneId),
    /// The grace of a block that is due for refresh is running out.
    Hurry(BlockId),
    /// The map entry that a page has waited for is at hand, or lost with its translation page.
    MapEntry { waiter: Waiter, is_lost: bool },
    /// All sectors of a page of the write cache are there, or lost; `sequence` says which write flash had of the page, if
    /// it had the page.
    SectorsArrived { slot: CacheSlot, sequence: Option<u64>, is_lost: bool },
    /// The write-back of a page of the write cache is over, or not needed any more.
    WriteBackEnded(CacheSlot),
    /// The write cache may have a slot, or room in its budget, for pages that wait.
    CacheRoom,
    /// Power is to fail at the next event.
    CutPower,
    /// The stage of a detection may be over.
    Detection,
}

/// Wakes that have not been served, in their order. One that says no more than another one before it is left out.
#[derive(Debug)]
pub(crate) struct Wakes {
    queue: VecDeque<Wake>,
    /// By plane: a [`Wake::Space`] is in the queue.
    space: Box<[bool]>,
    cache_room: bool,
    detection: bool,
}

impl Wakes {
    pub(crate) fn new(planes: u32) -> Self {
        let space = vec![false; planes as usize].into();
        Self { queue: VecDeque::new(), space, cache_room: false, detection: false }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether a wake that is told once is in the queue.
    fn told(&mut self, wake: &Wake) -> Option<&mut bool> {
        match *wake {
            Wake::Space(plane) => Some(&mut self.space[plane.index()]),
            Wake::CacheRoom => Some(&mut self.cache_room),
            Wake::Detection => Some(&mut self.detection),
            _ => None,
        }
    }

    pub(crate) fn push(&mut self, wake: Wake) {
        if !self.told(&wake).is_some_and(|told| std::mem::replace(told, true)) {
            self.queue.push_back(wake);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Wake> {
        let wake = self.queue.pop_front()?;
        if let Some(told) = self.told(&wake) {
            *told = false;
        }
        Some(wake)
    }

    /// Power is gone, and all that would have been looked at.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.space.len() as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(wakes: &mut Wakes) -> Vec<String> {
        std::iter::from_fn(|| wakes.pop()).map(|wake| format!("{wake:?}")).collect()
    }

    #[test]
    fn wakes_are_served_in_their_order_and_one_that_says_no_more_is_left_out() {
        let mut wakes = Wakes::new(2);
        let (a, b) = (PlaneId(0), PlaneId(1));
        for wake in [Wake::Space(a), Wake::CacheRoom, Wake::Space(b), Wake::Space(a), Wake::CacheRoom] {
            wakes.push(wake);
        }
        assert_eq!(all(&mut wakes), ["Space(PlaneId(0))", "CacheRoom", "Space(PlaneId(1))"]);
        // Each page that is done counts.
        for _ in 0..2 {
            wakes.push(Wake::PageDone(a));
        }
        assert_eq!(all(&mut wakes).len(), 2);
    }

    #[test]
    fn what_has_been_served_can_be_told_again() {
        let mut wakes = Wakes::new(1);
        for _ in 0..3 {
            for wake in [Wake::Space(PlaneId(0)), Wake::Detection, Wake::CacheRoom] {
                wakes.push(wake);
            }
            assert_eq!(all(&mut wakes).len(), 3);
        }
        wakes.push(Wake::Detection);
        wakes.clear();
        assert!(wakes.is_empty());
        wakes.push(Wake::Detection);
        assert_eq!(all(&mut wakes), ["Detection"], "what was cleared can be told again too");
    }
}
