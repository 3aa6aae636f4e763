//! The ids of a drive's parts, pages and requests.

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
    };
}

id!(
    /// Logical page number.
    Lpn
);
id!(
    /// Physical page number, counted over the whole drive.
    Ppn
);
id!(
    /// Number of a block, counted over the whole drive.
    BlockId
);
id!(
    /// Number of a plane, counted over the whole drive.
    PlaneId
);
id!(
    /// Number of a die, counted over the whole drive.
    DieId
);

id!(
    /// Slot of an outstanding host request; reused after the request's completion.
    RequestId
);
id!(
    /// Slot of the write cache.
    CacheSlot
);
id!(
    /// Number of a translation page of the demand map.
    Tvpn
);
id!(
    /// Slot of a page that waits for its own read of a translation page of the demand map.
    MissId
);
