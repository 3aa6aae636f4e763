//! `fdp.json`: the logs of NVMe's Flexible Data Placement.

use super::placement::PlacementSummary;
use crate::base::units::SECTOR;
use crate::core::placement::{Event, EventKind};
use crate::drive::Drive;
use crate::drive::spec::Isolation;
use crate::probe::Probe;
use serde_json::{Value, json};

/// Of the configuration's attributes: the drive has a volatile write cache.
const VOLATILE: u16 = 1 << 4;
/// Of the configuration's attributes: it is valid.
const VALID: u16 = 1 << 7;
/// Of an event's flags: it states a placement identifier, a namespace, a location.
const IDENTIFIER: u8 = 1;
const NAMESPACE: u8 = 1 << 1;
const LOCATION: u8 = 1 << 2;
/// The handles are those that the host has asked for when it made the namespace.
const HOST_SPECIFIED: u8 = 1;
/// The only namespace.
const NSID: u32 = 1;

/// `fdp.json`: the log pages 20h to 23h and the status of the handles, with the names of fields that nvme-cli gives them in
/// JSON; `None` on a drive without placement handles. A logical block has 512 bytes. The drive is one endurance group with
/// one namespace, which has all handles.
pub fn fdp<P: Probe>(drive: &Drive<P>) -> Option<Value> {
    let stats = drive.stats();
    let placed = stats.placement.as_ref()?;
    let summary = PlacementSummary::of(drive)?;
    let (spec, geometry) = (drive.spec(), drive.geometry());
    let placement = &spec.placement;
    let unit_bytes = u64::from(geometry.unit_bytes);
    let has_cache = spec.cache.size_bytes > 0 || spec.ftl.buffer_bytes > 0;
    let is_volatile = has_cache && drive.capacitor().is_none();
    let attributes = VALID | if is_volatile { VOLATILE } else { 0 } | placement.group_bits() as u16;
    let isolations: Vec<Value> = (0..placement.handles)
        .map(|handle| match placement.isolation_of(handle) {
            Isolation::Initial => json!({ "ruht": 1 }),
            Isolation::Persistent => json!({ "ruht": 2 }),
        })
        .collect();
    let lanes = u64::from(geometry.lanes) / u64::from(placement.groups);
    let superblock_bytes = u64::from(geometry.units_per_superblock) * unit_bytes;
    let used = vec![json!({ "ruha": HOST_SPECIFIED }); placement.handles.into()];
    let states: Vec<Value> = drive
        .ftl()
        .placements
        .places()
        .map(|place| {
            let identifier = placement.identifier(place);
            json!({
                "pid": identifier,
                "ruhid": place.handle,
                "earutr": 0,
                "ruamw": drive.available_media_writes(identifier).unwrap_or(0) / SECTOR,
            })
        })
        .collect();
    let events = |of_host: bool| {
        let events = placed.recent.iter().filter(|event| event.kind.is_of_host() == of_host);
        let events: Vec<Value> = events.map(|of| event(drive, of)).collect();
        json!({ "n": events.len(), "events": events })
    };
    Some(json!({
        "configs": {
            "n": 1,
            "configs": [{
                "fdpa": attributes,
                "vss": 0,
                "nrg": placement.groups,
                "nruh": placement.handles,
                "nnss": 1,
                "runs": lanes * u64::from(placement.reclaim_unit) * superblock_bytes,
                "erutl": 0,
                "ruhs": isolations,
            }],
        },
        "usage": { "nruh": placement.handles, "ruhus": used },
        "stats": {
            "hbmw": summary.hbmw,
            "mbmw": summary.mbmw,
            "mbe": summary.mbe,
        },
        "events": events(false),
        "host_events": events(true),
        "status": { "nruhsd": states.len(), "ruhss": states },
    }))
}

/// An event as the log has it.
fn event<P: Probe>(drive: &Drive<P>, of: &Event) -> Value {
    let place = drive.spec().placement.find(of.identifier);
    let unit_bytes = u64::from(drive.geometry().unit_bytes);
    let mut event = json!({
        "type": of.kind.number(),
        "fdpef": IDENTIFIER | NAMESPACE | if place.is_some() { LOCATION } else { 0 },
        "pid": of.identifier,
        "timestamp": of.at.ns() / 1_000_000,
        "nsid": NSID,
    });
    if of.kind == EventKind::MediaReallocated {
        // A field of 16 bits: more are FFFFh.
        event["nlbam"] = (of.units * unit_bytes / SECTOR).min(0xffff).into();
        event["lba"] = (u64::from(of.lpn) * unit_bytes / SECTOR).into();
    }
    if let Some(place) = place {
        event["rgid"] = place.group.into();
        event["ruhid"] = place.handle.into();
    }
    event
}
