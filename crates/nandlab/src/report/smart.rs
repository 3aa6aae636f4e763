//! `smart.json`.

use crate::base::geometry::LaneId;
use crate::base::numbers::ratio;
use crate::drive::Drive;
use crate::flash::{Superblock, SuperblockState};
use crate::host::Op;
use crate::probe::Probe;
use serde_json::{Map, Value, json};

/// `avail_spare`: the spare superblocks of a lane, in percent of its spare superblocks when no superblock was worn. The
/// worst lane counts, because GC moves data only within a lane. The spare superblocks are those beyond the valid units
/// and the needs of the mechanisms. Only superblocks that an erase makes usable again count, not those that the next
/// erase retires.
fn spare_left<P: Probe>(drive: &Drive<P>) -> u64 {
    let geometry = drive.geometry();
    let needs = &drive.ftl().needs;
    let units = u64::from(drive.array().shapes().first().units);
    let needed = needs.valid_units().div_ceil(units) + needs.free() + needs.open();
    let endurance = drive.spec().drive.endurance;
    let reusable = |lane: u32| {
        let superblocks = &drive.array().superblocks[geometry.superblocks_of(LaneId(lane))];
        let can_be_used =
            |superblock: &&Superblock| superblock.state.is_usable() && superblock.pe_cycles + 1 < endurance;
        (superblocks.iter().filter(can_be_used).count() as u64).saturating_sub(needed)
    };
    let at_first = u64::from(geometry.fewest_superblocks()).saturating_sub(needed).max(1);
    (0..geometry.lanes).map(reusable).min().unwrap_or(0).min(at_first) * 100 / at_first
}

/// `smart.json`: the NVMe health log, with the names that nvme-cli prints, and the attributes of the OCP log (C0h) that
/// this drive models.
pub fn smart<P: Probe>(drive: &Drive<P>) -> Value {
    let (stats, superblocks) = (drive.stats(), drive.array().good_superblocks());
    let endurance = f64::from(drive.spec().drive.endurance);
    let good = f64::from(drive.geometry().good_superblocks());
    let mean_pe = ratio(superblocks.clone().map(|s| f64::from(s.pe_cycles)).sum(), good);
    let retired = superblocks.clone().filter(|s| s.state == SuperblockState::Retired).count() as u64;
    let spare = spare_left(drive);
    // NVMe data units are thousands of 512 bytes, rounded up.
    let units = |op: Op| stats.host[op as usize].bytes.div_ceil(512_000);
    let pe = |f: fn(u32, u32) -> u32| superblocks.clone().map(|s| s.pe_cycles).reduce(f).unwrap_or(0);
    const SPARE_THRESHOLD: u64 = 10;
    let losses = &stats.power.losses;
    let incomplete = losses.iter().filter(|loss| loss.has_lost()).count();
    let started = losses.iter().filter(|loss| loss.energy_j > 0.0).count();
    let capacitor = drive.capacitor();
    let has_no_backup = capacitor.is_some_and(|capacitor| capacitor.is_worn_out);
    let is_failing = stats.counters.failed_pages + stats.counters.media_errors > 0;
    let attributes: Map<String, Value> =
        stats.smart().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let mut log = json!({
        "nvme_smart_log": {
            "critical_warning": u8::from(spare < SPARE_THRESHOLD) | u8::from(is_failing) << 3 | u8::from(has_no_backup) << 4,
            "avail_spare": spare,
            "spare_thresh": SPARE_THRESHOLD,
            "percent_used": (ratio(100.0 * mean_pe, endurance) as u64).min(255),
            "data_units_read": units(Op::Read),
            "data_units_written": units(Op::Write),
            "host_read_commands": stats.host[Op::Read as usize].count,
            "host_write_commands": stats.host[Op::Write as usize].count,
            "controller_busy_time": drive.measured().ns() / 60_000_000_000,
            "power_cycles": 1 + losses.len(),
            "power_on_hours": drive.measured().ns() / 3_600_000_000_000,
            "unsafe_shutdowns": losses.len(),
            "media_errors": stats.counters.failed_pages + stats.counters.media_errors,
            "num_err_log_entries": stats.failed[..2].iter().sum::<u64>(),
        },
        "ocp_smart_log": {
            "Physical media units written":
                stats.bytes_programmed(),
            "Bad user nand blocks - Raw": retired,
            "Max User data erase counts": pe(u32::max),
            "Min User data erase counts": pe(u32::min),
            "Percent free blocks": (100.0 * ratio(
                drive.ftl().lanes.iter().map(|lane| f64::from(lane.free.len())).sum(),
                good,
            )) as u64,
            "RefreshCount": attributes["RefreshCount"],
            "SoftECCErrorCount": stats.ecc.soft_reads(),
            "Uncorrectable read error count": attributes["Uncorrectable read error count"],
            "UnalignedIO": attributes["UnalignedIO"],
            // Percent of the rated capacitance; 0xFFFF without a capacitor.
            "CapacitorHealth": capacitor.map_or(0xFFFF, |c| (100.0 * (1.0 - c.loss_share) + 1e-9) as u64),
            "PLPStartCount": started,
            "IncompleteShutdownCount": incomplete,
        },
    });
    // Declared attributes without a place above come last.
    let ocp = log["ocp_smart_log"].as_object_mut().expect("the OCP log is an object");
    for (name, value) in attributes {
        ocp.entry(name).or_insert(value);
    }
    log
}
