//! Rules on capacity: the drive must have room for its logical units, for the needs of its mechanisms, and for the
//! units that preconditioning fills.
//!
//! The errors are written for the default drive: they call a lane a plane, a superblock a block, and a unit a page. A
//! lane has as many superblocks, those included that bad blocks cost, as a plane has blocks.

use super::geometry::{BLOCKS_MAX, CAPACITY};
use super::least;
use super::streams::StreamSettings;
use crate::base::geometry::{Cell, logical_units};
use crate::ftl::needs::{Demands, GAIN_SUPERBLOCKS, Need, SuperblockNeeds};
use crate::spec::{Check, FromVal, Resolved, Rule, Val, show_size};
use nandlab_base::clients::ClientSpan;

/// The largest number of units of a drive. A PPN has 32 bits; the two highest values are no PPNs, so that PPN + 1, as
/// in a map entry, has 32 bits too.
const UNITS_MAX: u64 = (1 << 32) - 2;

pub(super) const RULES: &[Rule] = &[blocks, capacity];

/// The least `drive.blocks_per_plane` at which the drive has the logical size `drive.capacity`; one more than the largest
/// number of blocks if no number is enough. `None` if a value on which the size depends could not be read.
pub(super) fn blocks_for_capacity(values: &Resolved) -> Option<Val> {
    let int = |key: &str| values.get(key).map(Val::int);
    let wanted = int(CAPACITY.path)?;
    let page_bytes = int("drive.page_size")?;
    let units_per_page = super::units::units_per_page(page_bytes, values.get(super::units::PATH)?);
    let counts = ["pages_per_block", "channels", "chips_per_channel", "dies_per_chip", "planes_per_die"];
    let counts = counts.iter().map(|name| int(&format!("drive.{name}")));
    let units: u64 = counts.product::<Option<u64>>()?.checked_mul(units_per_page)?;
    let (op, unit_bytes) = (values.get("drive.op")?.num(), page_bytes / units_per_page);
    let is_enough = |blocks: u64| {
        let logical = logical_units(blocks.saturating_mul(units), op);
        u128::from(logical) * u128::from(unit_bytes) >= u128::from(wanted)
    };
    Some(Val::Int(least(1, BLOCKS_MAX, is_enough).unwrap_or(BLOCKS_MAX + 1)))
}

/// Only a number that follows from `drive.capacity` may be above the range of `drive.blocks_per_plane`.
fn blocks(check: &mut Check<'_>) -> Option<()> {
    if check.int("drive.blocks_per_plane")? > BLOCKS_MAX {
        let message = format!("drive.capacity needs more than {BLOCKS_MAX} blocks per plane");
        let remedy = "set more planes (drive.channels, chips_per_channel, dies_per_chip, planes_per_die), or larger \
                      blocks (drive.pages_per_block, drive.page_size)";
        check.error(&["drive.blocks_per_plane"], message, remedy);
    }
    Some(())
}

fn capacity(check: &mut Check<'_>) -> Option<()> {
    let capacity = units_fit(check)?;
    reserve(check, &capacity);
    precondition(check, &capacity);
    requests_fit(check, &capacity);
    clients_fit(check, &capacity);
    super::placement::ranges(check, capacity.logical_units * capacity.unit_bytes);
    Some(())
}

/// The sizes of a drive and of its lanes with which the rules compare.
struct Capacity {
    /// Superblocks of a lane, those included that bad blocks cost: `drive.blocks_per_plane`.
    superblocks_per_lane: u64,
    /// Superblocks of the lane that has the fewest, without those that bad blocks cost.
    fewest_superblocks: u64,
    units_per_superblock: u64,
    /// Units of the drive, those of the superblocks included that bad blocks cost.
    units: u64,
    /// Logical units of the drive.
    logical_units: u64,
    unit_bytes: u64,
    /// `drive.op`.
    op: f64,
    /// The properties of the spec on which the needs of the mechanisms depend.
    demands: Demands,
}

impl Capacity {
    /// The needs of each lane if the drive had `blocks_per_plane` blocks per plane and the over-provisioning `op`.
    fn needs(&self, blocks_per_plane: u64, op: f64) -> SuperblockNeeds {
        SuperblockNeeds::new(&self.demands.at(blocks_per_plane, op))
    }

    /// [`Capacity::fewest_superblocks`] if the drive had `blocks_per_plane` blocks per plane.
    fn fewest(&self, blocks_per_plane: u64) -> u64 {
        blocks_per_plane - u64::from(self.demands.bad(blocks_per_plane).most_missing)
    }

    /// The lane with the fewest superblocks in the words of an error, with the number of its superblocks if bad blocks
    /// cost some.
    fn lane_text(&self) -> String {
        let &Demands { bad_blocks, seed, .. } = &self.demands;
        if bad_blocks == 0.0 {
            return "a plane".into();
        }
        let (superblocks, of) = (self.fewest_superblocks, self.superblocks_per_lane);
        format!("a plane ({superblocks} of {of} blocks by drive.bad_blocks = {bad_blocks}, seed = {seed})")
    }
}

/// Checks that every unit has a PPN. Returns `None` if not, because later rules would only repeat the error.
fn units_fit(check: &mut Check<'_>) -> Option<Capacity> {
    const COUNTS: [&str; 6] = [
        "drive.blocks_per_plane",
        "drive.pages_per_block",
        "drive.channels",
        "drive.chips_per_channel",
        "drive.dies_per_chip",
        "drive.planes_per_die",
    ];
    let mut counts = [0; 6];
    for (count, path) in counts.iter_mut().zip(COUNTS) {
        *count = check.int(path)?;
    }
    let layout = super::units::layout(check)?;
    // From here on the counts are the superblocks of a lane, the units of a superblock, channels, chips, dies, and the
    // lanes of a die. Their product remains the number of units of the drive.
    counts[1] *= layout.units_per_page * layout.planes_per_lane * layout.dies_per_lane;
    counts[5] /= layout.planes_per_lane;
    if layout.dies_per_lane > 1 {
        // A lane of several dies is on all dies, which the units of a superblock count already.
        (counts[2], counts[3], counts[4]) = (1, 1, 1);
    }
    let [superblocks_per_lane, units_per_superblock, lane_counts @ ..] = counts;
    let (op, unit_bytes) = (check.num("drive.op")?, check.int("drive.page_size")? / layout.units_per_page);
    let units: u128 = counts.iter().map(|&count| u128::from(count)).product();
    let Some(units) = u64::try_from(units).ok().filter(|&units| units <= UNITS_MAX) else {
        let message = format!("expected at most {UNITS_MAX} pages (PPNs have 32 bits), found {units}");
        check.error(&COUNTS, message, "set fewer or larger pages");
        return None;
    };
    let lanes: u64 = lane_counts.iter().product();
    let bits = u64::from(Cell::from_val(check.get("drive.cell")?).bits());
    let is_striped = layout.dies_per_lane > 1 && check.is("drive.program_order", "one-shot");
    let pages_per_block = check.int("drive.pages_per_block")?;
    let slc_rows = crate::slc::spec::rows_of(pages_per_block, bits, is_striped);
    let slc_units = units_per_superblock / pages_per_block.max(1) * slc_rows;
    let flushes_in_slc_mode = check.is("capacitor.flush_mode", "slc");
    let placement = super::placement::section(check)?;
    if !lanes.is_multiple_of(placement.groups.into()) {
        return None; // An error of `placement.groups`.
    }
    let slc = crate::slc::spec::fixed_of(check, lanes, slc_units, unit_bytes);
    let settings = StreamSettings { slc, ..StreamSettings::of_check(check, unit_bytes as u32)? };
    let mut capacity = Capacity {
        superblocks_per_lane,
        fewest_superblocks: superblocks_per_lane,
        units_per_superblock,
        units,
        logical_units: logical_units(units, op),
        unit_bytes,
        op,
        demands: Demands {
            lanes,
            blocks_per_superblock: layout.planes_per_lane * layout.dies_per_lane,
            bad_blocks: check.num("drive.bad_blocks")?,
            seed: check.int("seed")?,
            units_per_superblock,
            units_per_flush_superblock: if flushes_in_slc_mode {
                slc_units.max(1)
            } else {
                units_per_superblock
            },
            unit_bytes,
            units_per_program: layout.units_per_program,
            logical_units: logical_units(units, op),
            streams: settings.streams(),
            flushed_units: flushed_units(check, unit_bytes),
            groups: placement.groups.into(),
        },
    };
    capacity.fewest_superblocks = capacity.fewest(superblocks_per_lane);
    Some(capacity)
}

/// Units of the write cache and the write buffer: an emergency flush may have to write all of them. `None` without a
/// capacitor.
fn flushed_units(check: &Check<'_>, unit_bytes: u64) -> Option<u64> {
    check.num("capacitor.capacitance").filter(|farad| *farad > 0.0)?;
    Some((check.int("cache.size")? + check.int("ftl.buffer")?) / unit_bytes)
}

/// Checks that the drive has logical units, and that each lane has room for its share of them, for its translation
/// pages and for the superblocks and the garbage that its mechanisms need besides.
fn reserve(check: &mut Check<'_>, c: &Capacity) {
    let needs = c.needs(c.superblocks_per_lane, c.op);
    // If the lanes have this room, the logical units and the translation pages are no more than the physical units, so
    // their LPNs have 32 bits as the PPNs have.
    if needs.fit(c.fewest_superblocks) && c.logical_units > 0 {
        return;
    }
    let spare = (c.fewest_superblocks * c.units_per_superblock).saturating_sub(needs.host_units);
    let map_superblocks = needs.of("mapping").valid_units as f64 / c.units_per_superblock as f64;
    let mut parts: Vec<String> = needs.all().iter().filter_map(need_text).collect();
    parts.push(format!("{GAIN_SUPERBLOCKS} of garbage for GC to gain from"));
    if map_superblocks > 0.0 {
        parts.push(format!("{map_superblocks:.1} of translation pages"));
    }
    let thin_superblocks = needs.thin_units(c.fewest_superblocks) as f64 / c.units_per_superblock as f64;
    if thin_superblocks > 0.0 {
        parts.push(format!("{thin_superblocks:.1} of garbage that is less than a program in each block"));
    }
    let message = format!(
        "{} has {:.1} blocks beyond its logical pages and needs {:.1}: {}",
        c.lane_text(),
        spare as f64 / c.units_per_superblock as f64,
        needs.superblocks() as f64 + map_superblocks + thin_superblocks,
        parts.join(", ")
    );
    let enough_blocks = least(c.superblocks_per_lane, 1 << 20, |blocks| {
        let needs = c.needs(blocks, c.op);
        needs.host_units > 0 && needs.fit(blocks) && needs.fit(c.fewest(blocks))
    });
    // Ops are proposed in steps of 0.001.
    let of = |op: u64| c.needs(c.superblocks_per_lane, op as f64 / 1e3);
    let enough_op = least(0, 100_000, |op| of(op).fit(c.fewest_superblocks))
        .filter(|&op| of(op).host_units > 0 && of(op).superblocks() < c.fewest_superblocks);
    let mut remedy = match (enough_op, enough_blocks) {
        (Some(op), Some(blocks)) => {
            format!("set drive.op = {} or drive.blocks_per_plane = {blocks}", op as f64 / 1e3)
        }
        (None, Some(blocks)) => format!("set drive.blocks_per_plane = {blocks}"),
        (Some(op), None) => format!("set drive.op = {}", op as f64 / 1e3),
        (None, None) => "set more blocks per plane and a larger op".into(),
    };
    let mut keys = vec!["drive.op", "drive.blocks_per_plane", "drive.pages_per_block"];
    if enough_op.is_none() {
        keys.swap(0, 1);
    }
    // Without bad blocks the lane would have enough superblocks.
    if c.fewest_superblocks < c.superblocks_per_lane && needs.fit(c.superblocks_per_lane) {
        keys.insert(0, "drive.bad_blocks");
        keys.push("seed");
        remedy += ", or fewer drive.bad_blocks";
    }
    // The keys of mechanisms that need superblocks.
    let needs_superblocks = |name: &str| needs.of(name).open + needs.of(name).free > 0;
    if needs_superblocks("host") {
        keys.push("placement.handles");
    }
    if needs_superblocks("streams") {
        keys.push("ftl.streams");
    }
    if needs_superblocks("wear") {
        keys.push("ftl.wear_levelling");
    }
    if needs_superblocks("mapping") {
        keys.push("ftl.map");
    }
    if needs_superblocks("flush") {
        keys.extend(["capacitor.capacitance", "cache.size"]);
        let has_buffer = check.int("ftl.buffer").is_some_and(|bytes| bytes > 0);
        keys.extend(has_buffer.then_some("ftl.buffer"));
    }
    if needs_superblocks("copyback") {
        keys.push("migration.policy");
    }
    if needs_superblocks("slc") {
        keys.extend(["slc.static", "slc.dynamic"]);
    }
    if needs_superblocks("combination") {
        keys.push("refresh.policy");
    }
    check.error(&keys, message, remedy);
}

/// Keys that choose a fill, whose shares then have their defaults.
const CHOOSE_FILL: [&str; 2] = ["precondition.order", "precondition.method"];

/// Checks that the valid units of a fill fit into the logical units, and that the fill leaves each lane the superblocks
/// that it needs.
fn precondition(check: &mut Check<'_>, c: &Capacity) -> Option<()> {
    let (used, valid) = (check.num("precondition.used")?, check.num("precondition.valid")?);
    let needs = c.needs(c.superblocks_per_lane, c.op);
    // The host opens one more superblock, and translation pages are written after the fill.
    let map = needs.of("mapping");
    let for_map = map.open + map.valid_units.div_ceil(c.units_per_superblock);
    let unfilled = needs.free() + 1 + for_map;
    let most = c.fewest_superblocks.saturating_sub(unfilled) as f64 / c.superblocks_per_lane as f64;
    let down = |share: f64| (share * 1e3).floor() / 1e3;
    let logical = c.logical_units as f64 / c.units as f64;
    if used * valid * c.units as f64 > c.logical_units as f64 {
        let message = format!(
            "expected used x valid to be at most {logical:.4} (logical over physical pages), found {:.4}",
            used * valid
        );
        // If `used` is too large as well, the remedy has both values: `valid` alone would lead to a second error.
        let valid_to = |used: f64| down((logical / used).min(1.0));
        let mut remedy = match used > most {
            true => format!(
                "set used to at most {0}, and with used = {0} valid to at most {1}",
                down(most),
                valid_to(down(most))
            ),
            false => format!("with used = {used}, set valid to at most {}", valid_to(used)),
        };
        if c.op >= 1.0 && used * valid * (1.0 + c.op / 100.0) <= 1.0 {
            let (percent, share) = (c.op, c.op / 100.0);
            remedy = format!("set drive.op = {share}, if {percent} are percent; or {remedy}");
        }
        let mut keys = vec!["precondition.used", "precondition.valid", "drive.op"];
        if !check.is_set("precondition.used") && !check.is_set("precondition.valid") {
            keys.extend(CHOOSE_FILL);
        }
        check.error(&keys, message, remedy);
    } else if used > most {
        let message = format!(
            "used = {used} leaves {} fewer than the {unfilled} blocks that it needs at the start{}",
            c.lane_text(),
            if map.valid_units > 0 { ", translation pages included" } else { "" }
        );
        let remedy = format!("set used to at most {}", down(most));
        let mut keys = vec!["precondition.used", "drive.blocks_per_plane", "ftl.map"];
        if needs.of("flush").free > 0 {
            keys.extend(["capacitor.capacitance", "cache.size"]);
        }
        keys.push("drive.bad_blocks");
        if !check.is_set("precondition.used") {
            keys.push("precondition.valid");
            keys.extend(CHOOSE_FILL);
        }
        check.error(&keys, message, remedy);
    }
    Some(())
}

/// Checks that the largest synthetic request fits into the span of its addresses.
fn requests_fit(check: &mut Check<'_>, c: &Capacity) -> Option<()> {
    let synthetic = check.get("workload.synthetic")?;
    let Val::Sizes(sizes) = synthetic.field("size") else { return None };
    let largest = sizes.last()?.0;
    let span = (synthetic.field("span").num() * (c.logical_units * c.unit_bytes) as f64) as u64;
    if largest.max(synthetic.field("align").int()) > span {
        let message = format!("requests of up to {largest} bytes do not fit into a span of {span} bytes");
        check.error(&["workload.synthetic"], message, "set smaller requests, or a larger span");
    }
    Some(())
}

/// The span of each client must be within the drive, and have room for the client's requests. A client's placement must be
/// one of the drive.
fn clients_fit(check: &mut Check<'_>, c: &Capacity) -> Option<()> {
    const KEY: &str = "workload.clients";
    let logical_bytes = c.logical_units * c.unit_bytes;
    for (i, client) in check.get(KEY)?.list().iter().enumerate() {
        let span = ClientSpan::from_val(client.field("span"));
        let Val::Sizes(sizes) = client.field("size") else { return None };
        let (largest, align) = (sizes.last()?.0, client.field("align").int());
        let (_, bytes) = span.bytes(logical_bytes, align);
        let end = span.to.bytes(logical_bytes);
        if end > logical_bytes {
            let message = format!(
                "the span ends at {}, beyond the {} of the drive",
                span.to.show(),
                show_size(logical_bytes)
            );
            let remedy = format!("set to = \"{}\" at most, or a larger drive", show_size(logical_bytes));
            check.error_in_list(KEY, i, "span", message, remedy);
        } else if largest.max(align) > bytes {
            let message =
                format!("requests of up to {largest} bytes do not fit into a span of {bytes} bytes");
            check.error_in_list(KEY, i, "size", message, "set smaller requests, or a larger span");
        }
        let placements = super::placement::section(check)?;
        let placement = client.field("placement").int() as u16;
        if let Some((message, remedy)) = super::placement::unknown(&placements, placement) {
            check.error_in_list(KEY, i, "placement", message, remedy);
        }
    }
    Some(())
}

/// The needs of a mechanism as text for the error; `None` if it needs no superblocks.
fn need_text(need: &Need) -> Option<String> {
    let superblocks = [(need.open, "open"), (need.free, "free")];
    let superblocks: Vec<String> = superblocks
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    (!superblocks.is_empty()).then(|| format!("{} for {}", superblocks.join(" and "), need.what))
}
