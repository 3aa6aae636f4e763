//! The streams of a drive: each mechanism declares its own.

use crate::ftl::streams::StreamSpec;
use crate::host::{self, AddedStreams};
use crate::migration::spec::MigrationPolicySpec;
use crate::spec::{Check, FromVal};
use crate::{background, demand_map, migration, refresh};

/// The settings on which the streams depend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamSettings {
    /// Placement handles.
    pub(crate) handles: u16,
    /// One bit for each persistently isolated handle.
    pub(crate) persistent: u16,
    /// Whether GC moves units to the open superblock of the host (`migration.first_block = "shared"`).
    pub(crate) shares_first_superblock: bool,
    /// Whether static wear levelling is on.
    pub(crate) levels_wear: bool,
    /// Whether the map is in flash.
    pub(crate) has_demand_map: bool,
    /// Bytes of a unit.
    pub(crate) unit_bytes: u32,
    /// The largest number of consecutive copybacks.
    pub(crate) copybacks_max: u8,
    /// Whether partial refresh writes combination pages.
    pub(crate) has_combinations: bool,
    /// Superblocks of the static part of the SLC cache in every lane; `None` without an SLC cache.
    pub(crate) slc: Option<u64>,
    /// The streams that `ftl.streams` adds.
    pub(crate) added: AddedStreams,
}

impl StreamSettings {
    /// The settings by values that are not checked yet, with units of `unit_bytes` bytes. `None` if a value could not be
    /// read.
    pub(super) fn of_check(check: &Check<'_>, unit_bytes: u32) -> Option<Self> {
        let placement = super::placement::section(check)?;
        let migration = check.get("migration.policy").map(MigrationPolicySpec::from_val);
        Some(Self {
            handles: placement.handles,
            persistent: placement.persistent_bits(),
            shares_first_superblock: check.is("migration.first_block", "shared"),
            levels_wear: check.is("ftl.wear_levelling", "static"),
            has_demand_map: check.is("ftl.map", "demand"),
            unit_bytes,
            copybacks_max: migration.map_or(0, |migration| migration.copybacks_max()),
            has_combinations: check.is("refresh.policy", "partial"),
            slc: crate::slc::spec::has_mode(check).then_some(0),
            added: check.get("ftl.streams").map_or_else(AddedStreams::default, host::spec::added),
        })
    }

    /// The streams of a drive with these settings, in the order in which results and errors list their needs.
    pub(crate) fn streams(&self) -> Vec<StreamSpec> {
        let mut streams =
            vec![StreamSpec::host(0, self.handles > 1), StreamSpec::gc(self.shares_first_superblock)];
        streams.extend(self.levels_wear.then(background::spec::wear_stream));
        streams.extend(self.has_demand_map.then(|| demand_map::spec::stream(self.unit_bytes)));
        streams.extend((1..=self.copybacks_max).map(migration::spec::stream));
        streams.extend(self.has_combinations.then(refresh::partial::spec::stream));
        streams.extend((1..self.handles).map(|handle| StreamSpec::host(handle, true)));
        let own = (0..self.handles).filter(|handle| self.persistent >> handle & 1 != 0);
        // If GC mixes the data of no handles, its first stream is that of handle 0.
        let is_mixed = self.handles == 1 || self.persistent.count_ones() < self.handles.into();
        streams.extend(own.filter(|&handle| is_mixed || handle > 0).map(StreamSpec::gc_of));
        streams.extend(self.slc.map(|fixed| StreamSpec::slc(fixed, self.has_demand_map)));
        streams.extend((1..=self.added.classes).map(StreamSpec::class));
        streams.extend(self.added.has_gc.then(StreamSpec::gc_of_class));
        streams
    }
}
