//! The ids of a drive's parts, units and requests. `base::geometry::Geometry` of the crate `nandlab` says how the ids
//! of the parts and units follow from each other.

use super::state::value;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an array index.
            #[inline(always)]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        value! { $name { ..tuple number } }
    };
}

id!(
    /// LPN: the number of a logical unit. The units that the host can address have the numbers from 0 on, in the order
    /// of their addresses. The numbers after them are those of the translation pages of the demand map, then those of
    /// the combination pages of partial refresh: each is the data of one unit. The number 2^32 - 1 (`DEAD_LPN` of the
    /// crate `nandlab`) stands for no LPN: the unit has no data.
    Lpn
);
id!(
    /// PPN: the number of a physical unit, over the whole drive, from 0 on. The units of a superblock have consecutive
    /// numbers, in the order in which they are filled; superblocks follow each other in the order of their ids.
    UnitId
);
id!(
    /// Number of a superblock, over the whole drive, from 0 on. The superblocks of a lane have consecutive numbers;
    /// lanes follow each other in the order of their ids. If bad blocks cost the lane superblocks, the last numbers of
    /// the lane are those of superblocks that do not exist.
    SuperblockId
);
id!(
    /// Number of a lane, over the whole drive, from 0 on. The lanes of a die have consecutive numbers; dies follow each
    /// other in the order of their ids. If superblocks are on all dies (`ftl.superblock = "drive"`), so is the only
    /// lane, number 0.
    LaneId
);
id!(
    /// Number of a die, over the whole drive, from 0 on. The dies of a chip have consecutive numbers, and so have those
    /// of a channel.
    DieId
);

id!(
    /// Slot of an outstanding host request, from 0 on; reused after the request's completion.
    RequestId
);
id!(
    /// Slot of the write cache, from 0 on. A slot has the data of one unit.
    CacheSlot
);
id!(
    /// Number of a translation page of the demand map, from 0 on, in the order of the LPNs whose entries it has.
    Tvpn
);
id!(
    /// Slot of a unit that waits for its own read of a translation page of the demand map, from 0 on; reused.
    MissId
);
