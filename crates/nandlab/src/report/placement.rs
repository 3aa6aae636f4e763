//! `placement` of `summary.json`: what was written and erased by placement handle.

use crate::base::geometry::Geometry;
use crate::base::numbers::{number, ratio};
use crate::core::placement::EventKind;
use crate::drive::Drive;
use crate::host::Op;
use crate::probe::Probe;
use crate::sched::{Cause, FlashOp};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Data written with placement handles (NVMe FDP), with the quantities of NVMe's log page 22h.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlacementSummary {
    /// Host Bytes with Metadata Written: bytes of the host writes that completed without failure.
    #[schemars(extend("unit" = "bytes"))]
    pub hbmw: u64,
    /// Media Bytes with Metadata Written: bytes of user data programmed, for the host and by copies of it. Padding and
    /// translation pages are not user data.
    #[schemars(extend("unit" = "bytes"))]
    pub mbmw: u64,
    /// Media Bytes Erased: bytes of the blocks erased.
    #[schemars(extend("unit" = "bytes"))]
    pub mbe: u64,
    /// Write amplification as FDP has it: MBMW over HBMW; null if no host write completed. `waf` of the summary counts
    /// padding and translation pages too.
    pub waf: Option<f64>,
    /// Bytes of programs to superblocks of user data that no unit fills.
    #[schemars(extend("unit" = "bytes"))]
    pub padding_bytes: u64,
    /// Bytes of translation pages programmed.
    #[schemars(extend("unit" = "bytes"))]
    pub map_bytes: u64,
    /// Events of the handles and reclaim units, by type.
    pub events: PlacementEvents,
    /// By placement identifier.
    pub handles: BTreeMap<u16, HandleSummary>,
    /// By reclaim group: the superblocks in which GC mixes the data of initially isolated handles.
    pub mixed: BTreeMap<u16, MixedSummary>,
}

/// Events of placement handles and reclaim units, by type (NVMe's log page 23h).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlacementEvents {
    /// Reclaim units that the host left before they were full (type 0h).
    #[schemars(extend("unit" = "events"))]
    pub unit_not_full: u64,
    /// Reclaim units that were open for too long (type 1h).
    #[schemars(extend("unit" = "events"))]
    pub time_limit: u64,
    /// Handles that went on in another reclaim unit after a power loss (type 2h).
    #[schemars(extend("unit" = "events"))]
    pub controller_reset: u64,
    /// Host writes with a placement identifier that the drive does not have; they go to identifier 0 (type 3h).
    #[schemars(extend("unit" = "events"))]
    pub invalid_identifier: u64,
    /// Moves of data from one reclaim unit to another (type 80h).
    #[schemars(extend("unit" = "events"))]
    pub media_reallocated: u64,
    /// Handles that the drive let go on in another reclaim unit (type 81h).
    #[schemars(extend("unit" = "events"))]
    pub handle_modified: u64,
}

/// Data written with one placement identifier.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HandleSummary {
    /// The reclaim group.
    pub group: u16,
    /// The reclaim unit handle.
    pub handle: u16,
    /// What GC does with the data of the handle: `initial` or `persistent`.
    pub isolation: &'static str,
    /// Bytes of the units programmed for the host. A write that is overwritten in the write buffer or cache is not
    /// programmed.
    #[schemars(extend("unit" = "bytes"))]
    pub host_bytes: u64,
    /// Bytes of the units of this data that were programmed again, because GC or another mechanism moved them.
    #[schemars(extend("unit" = "bytes"))]
    pub copied_bytes: u64,
    /// Write amplification of the handle's data: units programmed per unit programmed for the host; null if none was.
    pub waf: Option<f64>,
    /// The handle's share of all copied bytes of the drive.
    #[schemars(extend("unit" = "share"))]
    pub copied_share: f64,
    /// Bytes of programs to superblocks with data of this handle alone that no unit fills.
    #[schemars(extend("unit" = "bytes"))]
    pub padding_bytes: u64,
    /// Superblocks erased that had data of this handle alone.
    #[schemars(extend("unit" = "blocks"))]
    pub erases: u64,
    /// Reclaim units that the host has begun to fill, in each lane.
    pub reclaim_units: u64,
}

/// Superblocks of a reclaim group in which GC mixes the data of initially isolated handles.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MixedSummary {
    /// Bytes of the units moved out of such superblocks; they count with their handles too.
    #[schemars(extend("unit" = "bytes"))]
    pub copied_bytes: u64,
    /// Bytes of programs to such superblocks that no unit fills.
    #[schemars(extend("unit" = "bytes"))]
    pub padding_bytes: u64,
    /// Such superblocks erased.
    #[schemars(extend("unit" = "blocks"))]
    pub erases: u64,
}

impl PlacementSummary {
    /// The summary of a drive; `None` without placement handles.
    pub(super) fn of<P: Probe>(drive: &Drive<P>) -> Option<Self> {
        let (stats, spec, geometry) = (drive.stats(), drive.spec(), drive.geometry());
        let placed = stats.placement.as_ref()?;
        let bytes = |units: u64| units * u64::from(geometry.unit_bytes);
        let copied: u64 = placed.by_place.iter().map(|of| of.copied_units).sum();
        let places = drive.ftl().placements.places();
        let handles = places.zip(&placed.by_place).map(|(place, of)| {
            let summary = HandleSummary {
                group: place.group,
                handle: place.handle,
                isolation: spec.placement.isolation_of(place.handle).name(),
                host_bytes: bytes(of.host_units),
                copied_bytes: bytes(of.copied_units),
                waf: waf(of.host_units + of.copied_units, of.host_units),
                copied_share: number(ratio(of.copied_units as f64, copied as f64)),
                padding_bytes: bytes(of.padding_units),
                erases: of.erases,
                reclaim_units: of.reclaim_units,
            };
            (spec.placement.identifier(place), summary)
        });
        let mixed = placed.mixed.iter().zip(0..).map(|(of, group)| {
            let summary = MixedSummary {
                copied_bytes: bytes(of.copied_units),
                padding_bytes: bytes(of.padding_units),
                erases: of.erases,
            };
            (group, summary)
        });
        let padding = placed.by_place.iter().map(|of| of.padding_units);
        let padding = padding.chain(placed.mixed.iter().map(|of| of.padding_units)).sum();
        let (hbmw, mbmw) = (stats.host[Op::Write as usize].bytes, bytes(placed.media_units()));
        let map_pages = stats.flash[FlashOp::Program as usize][Cause::Mapping as usize];
        let count = |kind| placed.count(kind);
        Some(Self {
            hbmw,
            mbmw,
            mbe: stats.flash_total(FlashOp::Erase) * block_bytes(geometry),
            waf: waf(mbmw, hbmw),
            padding_bytes: bytes(padding),
            map_bytes: map_pages * u64::from(geometry.page_bytes()),
            events: PlacementEvents {
                unit_not_full: count(EventKind::UnitNotFull),
                time_limit: count(EventKind::TimeLimit),
                controller_reset: count(EventKind::ControllerReset),
                invalid_identifier: count(EventKind::InvalidIdentifier),
                media_reallocated: count(EventKind::MediaReallocated),
                handle_modified: count(EventKind::HandleModified),
            },
            handles: handles.collect(),
            mixed: mixed.collect(),
        })
    }
}

/// The bytes of a block of one plane.
fn block_bytes(geometry: &Geometry) -> u64 {
    geometry.raw_bytes() / u64::from(geometry.blocks())
}

fn waf(programmed: u64, host: u64) -> Option<f64> {
    (host > 0).then(|| number(programmed as f64 / host as f64))
}
