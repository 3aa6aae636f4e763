//! The streams of a drive: each mechanism declares its own.

use crate::ftl::streams::StreamSpec;
use crate::{background, demand_map, migration, refresh};

/// The settings on which the streams depend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamSettings {
    /// The number of placements that the host may name.
    pub(crate) placements: u16,
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
}

impl StreamSettings {
    /// The streams of a drive with these settings, in the order in which results and errors list their needs.
    pub(crate) fn streams(&self) -> Vec<StreamSpec> {
        let mut streams = vec![StreamSpec::host(0), StreamSpec::gc(self.shares_first_superblock)];
        streams.extend(self.levels_wear.then(background::spec::wear_stream));
        streams.extend(self.has_demand_map.then(|| demand_map::spec::stream(self.unit_bytes)));
        streams.extend((1..=self.copybacks_max).map(migration::spec::stream));
        streams.extend(self.has_combinations.then(refresh::partial::spec::stream));
        streams.extend((1..self.placements).map(StreamSpec::host));
        streams.extend(self.slc.map(|fixed| StreamSpec::slc(fixed, self.has_demand_map)));
        streams
    }
}
