//! A unit in the write cache: which of its sectors are cached and dirty, and what waits for it.

use crate::base::geometry::Lpn;
use crate::base::list::Link;
use crate::base::state::value;
use crate::core::Queue;

/// The stage of a unit's write-back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteBack {
    /// The unit is not being written back.
    #[default]
    None,
    /// The unit waits for its map entry, for the sectors that are not in the cache, or for a free
    /// physical unit.
    Scheduled,
    /// The program is queued or under way.
    Program,
}

/// A cached unit.
#[derive(Clone, Debug)]
pub struct CachedUnit {
    /// The unit's LPN.
    pub lpn: Lpn,
    /// Sectors that are in the cache, one bit each.
    pub valid: u64,
    /// Sectors whose data is neither in flash nor in the program under way, one bit each.
    pub dirty: u64,
    /// Sequence number of the newest write in the unit, or of the physical unit that it was read from.
    pub sequence: u64,
    /// The stage of the unit's write-back.
    pub write_back: WriteBack,
    /// Whether the missing sectors are being read from flash.
    pub is_being_fetched: bool,
    /// Whether the slot has been taken for a read that missed, and the unit is still being read from flash.
    pub is_read_miss: bool,
    /// Whether the unit has been evicted or deallocated: its slot is freed as soon as nothing is under way for the
    /// unit.
    pub is_leaving: bool,
    /// Sectors that are lost, one bit each: flash could not return their data, and they have not been written since.
    pub lost: u64,
    /// Whether neither a read from flash nor a host write has put data into the unit yet.
    pub is_blank: bool,
    /// Whether the unit has been deallocated: a lookup no longer finds it.
    pub is_dropped: bool,
    /// Sequence number of the newest acknowledged write among the dirty sectors; 0: none.
    pub acknowledged: u64,
    /// Sequence number of the newest acknowledged write in the program under way; 0: none.
    pub placed_acknowledged: u64,
    /// The flush epoch that waits for the dirty sectors.
    pub epoch: u64,
    /// The flush epoch that waits for the program under way.
    pub placed_epoch: u64,
    /// Host units that wait for this unit: reads wait for the fetch, writes for the fetch or the end of the write-back.
    pub waiting: Queue,
    /// Write-throughs whose data is in the dirty sectors: each is completed when its data is in flash.
    pub awaiting_flash: Queue,
    /// Write-throughs whose data is in the program under way: they are completed when the program ends.
    pub awaiting_program: Queue,
    pub(super) recency: Recency,
    pub(super) used: Link,
    pub(super) dirty_used: Link,
}

/// The list of the order of use that an entry is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recency {
    /// In neither list: the unit is leaving.
    Out,
    /// Used more recently than the cold units.
    Warm,
    /// Among the least recently used units, a share `cold_share` of the cache.
    Cold,
}

impl CachedUnit {
    /// Whether the unit counts as dirty: it has data that is not in flash yet, or is being written back.
    #[inline(always)]
    pub fn is_dirty(&self) -> bool {
        self.dirty != 0 || self.write_back != WriteBack::None
    }

    /// Sequence number of the newest acknowledged write that is not in flash yet; 0: none. Power loss must not destroy
    /// this write.
    #[inline(always)]
    pub fn unflushed(&self) -> u64 {
        self.acknowledged.max(self.placed_acknowledged)
    }

    /// Whether no fetch and no write-back of the unit is under way.
    #[inline(always)]
    pub(super) fn is_idle(&self) -> bool {
        self.write_back == WriteBack::None && !self.is_being_fetched
    }
}

value! { WriteBack enum { None, Scheduled, Program } }
value! { Recency enum { Out, Warm, Cold } }
value! {
    CachedUnit {
        lpn,
        valid,
        dirty,
        sequence,
        write_back,
        is_being_fetched,
        is_read_miss,
        is_leaving,
        lost,
        is_blank,
        is_dropped,
        acknowledged,
        placed_acknowledged,
        epoch,
        placed_epoch,
        waiting,
        awaiting_flash,
        awaiting_program,
        recency,
        used,
        dirty_used,
    }
}
