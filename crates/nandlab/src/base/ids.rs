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
    /// Block, counted over the whole drive.
    BlockId
);
id!(
    /// Plane, counted over the whole drive.
    PlaneId
);
id!(
    /// Die, counted over the whole drive.
    DieId
);

id!(
    /// Slot of a host request under way; the slot is reused once the request is over.
    RequestId
);
id!(
    /// Slot of the write cache.
    CacheSlot
);
id!(
    /// Translation page of the demand map.
    Tvpn
);
