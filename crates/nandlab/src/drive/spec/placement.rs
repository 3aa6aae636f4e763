//! Rules on `[placement]`.

use super::streams::StreamSettings;
use super::units::layout;
use crate::ftl::STREAMS_MAX;
use crate::ftl::placement::{ISOLATION, Isolation, PlacementRange, PlacementSpec, RANGES, isolations};
use crate::spec::{Check, FromVal, Listed, Rule, Val, show_size};

const HANDLES: &str = "placement.handles";
const GROUPS: &str = "placement.groups";
const UNIT: &str = "placement.reclaim_unit";

pub(super) const RULES: &[Rule] = &[isolation, groups, reclaim_unit, first_block, streams];

/// The section, by values that are not checked yet; `None` if one of them could not be read.
pub(super) fn section(check: &Check<'_>) -> Option<PlacementSpec> {
    Some(PlacementSpec {
        handles: check.int(HANDLES)? as u16,
        groups: check.int(GROUPS)? as u16,
        isolation: isolations(check.get(ISOLATION)?),
        reclaim_unit: check.int(UNIT)? as u32,
        ranges: Vec::new(),
    })
}

/// Each item is an isolation, and a list has one for each handle. Without a second handle isolation has no effect.
fn isolation(check: &mut Check<'_>) -> Option<()> {
    let handles = check.int(HANDLES)?;
    if let Val::List(items) = check.get(ISOLATION)? {
        let names: Vec<&str> = Isolation::ALL.iter().map(|isolation| isolation.name()).collect();
        if let Some(item) = items.iter().map(Val::text).find(|item| !names.contains(item)) {
            let message = format!("expected \"{}\", found \"{item}\"", names.join("\" or \""));
            check.error(&[ISOLATION], message, format!("set \"{}\" for each handle", names.join("\" or \"")));
            return None;
        }
        if items.len() as u64 != handles {
            let message = format!("{} isolations for {handles} handles", items.len());
            let remedy = format!("write one for each handle, or set {HANDLES} = {}", items.len().max(1));
            check.error(&[ISOLATION, HANDLES], message, remedy);
            return None;
        }
    }
    if handles == 1 && section(check)?.persistent_bits() != 0 {
        let message =
            format!("\"persistent\" has no effect with {HANDLES} = 1: all data is that of one handle");
        check.error(
            &[ISOLATION, HANDLES],
            message,
            format!("set {HANDLES} above 1, or leave out {ISOLATION}"),
        );
    }
    Some(())
}

/// Why an identifier is none of the drive's, and the remedy; `None` if it is one.
pub(super) fn unknown(placements: &PlacementSpec, placement: u16) -> Option<(String, String)> {
    let PlacementSpec { handles, groups, .. } = *placements;
    if placements.find(placement).is_some() {
        return None;
    }
    if !placements.is_on() {
        return Some((
            format!("the drive has no placement {placement}: it has 1"),
            format!("set a placement below 1, or {HANDLES} and groups that include it"),
        ));
    }
    let groups = if groups > 1 { format!(" and {groups} groups") } else { String::new() };
    Some((
        format!("the drive has no placement {placement}: it has {handles} handles{groups}"),
        format!("set the identifier of a handle, or more {HANDLES}"),
    ))
}

/// Ranges lie within the drive, which has their placements, and do not overlap.
pub(super) fn ranges(check: &mut Check<'_>, logical_bytes: u64) -> Option<()> {
    let ranges: Vec<PlacementRange> =
        check.get(RANGES)?.list().iter().map(PlacementRange::from_val).collect();
    let placements = section(check)?;
    let bytes = |range: &PlacementRange| (range.from.bytes(logical_bytes), range.to.bytes(logical_bytes));
    for (i, range) in ranges.iter().enumerate() {
        let (from, to) = bytes(range);
        if let Some((message, remedy)) = unknown(&placements, range.placement) {
            check.error_in_list(RANGES, i, "placement", message, remedy);
        } else if to > logical_bytes {
            let (end, all) = (range.to.show(), show_size(logical_bytes));
            let message = format!("the range ends at {end}, beyond the {all} of the drive");
            check.error_in_list(
                RANGES,
                i,
                "to",
                message,
                format!("set to = \"{all}\" at most, or a larger drive"),
            );
        } else if from >= to {
            check.error_in_list(
                RANGES,
                i,
                "from",
                "the range ends where it begins, or before",
                "set from below to",
            );
        } else if let Some(other) =
            ranges[..i].iter().position(|other| bytes(other).0 < to && from < bytes(other).1)
        {
            let message = format!("the range overlaps range {other}");
            check.error_in_list(RANGES, i, "from", message, "write ranges that do not overlap");
        }
    }
    Some(())
}

/// A group is as many whole dies as another. The handle chooses the group, so the lane cannot follow from the LPN.
fn groups(check: &mut Check<'_>) -> Option<()> {
    let groups = check.int(GROUPS)?;
    if groups == 1 {
        return None;
    }
    let counts = ["drive.channels", "drive.chips_per_channel", "drive.dies_per_chip"];
    let dies = counts.iter().map(|key| check.int(key)).product::<Option<u64>>()?;
    if layout(check)?.dies_per_lane > 1 {
        let message = "a superblock of all dies is in every reclaim group";
        let remedy = format!("set ftl.superblock = \"die\" or \"plane\", or {GROUPS} = 1");
        check.error(&[GROUPS, "ftl.superblock"], message, remedy);
    } else if !dies.is_multiple_of(groups) {
        let message = format!("{dies} dies are not {groups} reclaim groups of as many dies each");
        let fewer = (1..groups).rev().find(|&fewer| dies.is_multiple_of(fewer)).unwrap_or(1);
        let remedy = format!("set {GROUPS} = {fewer}, or a multiple of {groups} dies");
        check.error(&[GROUPS, counts[0], counts[1], counts[2]], message, remedy);
    } else if !check.is("ftl.allocation", "dynamic") {
        let message =
            "the placement of a write chooses its reclaim group, so its plane cannot follow from its address";
        let remedy = format!("set ftl.allocation = \"dynamic\", or {GROUPS} = 1");
        check.error(&[GROUPS, "ftl.allocation"], message, remedy);
    }
    Some(())
}

/// A reclaim unit lies within a plane.
fn reclaim_unit(check: &mut Check<'_>) -> Option<()> {
    const BLOCKS: &str = "drive.blocks_per_plane";
    let (unit, blocks) = (check.int(UNIT)?, check.int(BLOCKS)?);
    if unit > blocks {
        let message = format!("a reclaim unit of {unit} blocks of a plane that has {blocks}");
        check.error(&[UNIT, BLOCKS], message, format!("set {UNIT} to at most {blocks}"));
    }
    Some(())
}

/// GC cannot share the open superblock of the host and keep its data apart.
fn first_block(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "migration.first_block";
    if section(check)?.is_on() && check.is(KEY, "shared") {
        let message =
            "a first block that GC shares with the host mixes the data that placement handles keep apart";
        let remedy = format!("set {KEY} = \"own\", or leave out [placement]");
        check.error(&[KEY, HANDLES, GROUPS, UNIT], message, remedy);
    }
    if !check.is("ftl.streams", "none") && check.is(KEY, "shared") {
        let message =
            "a first block that GC shares with the host mixes the data that ftl.streams keeps apart";
        let remedy = format!("set {KEY} = \"own\", or ftl.streams = \"none\"");
        check.error(&[KEY, "ftl.streams"], message, remedy);
    }
    Some(())
}

/// A drive has a bounded number of streams.
fn streams(check: &mut Check<'_>) -> Option<()> {
    // What a unit has of bytes does not change the number of streams.
    let count = StreamSettings::of_check(check, 1)?.streams().len();
    if count > STREAMS_MAX {
        let over = count - STREAMS_MAX;
        let message = format!(
            "the handles and the other streams of the drive would have {count} open blocks in a plane, of which it can \
             have {STREAMS_MAX}"
        );
        let remedy = format!(
            "set {HANDLES} to {over} fewer, or \"initial\" for {over} handles more, or a smaller migration.policy limit"
        );
        check.error(&[ISOLATION, HANDLES, "migration.policy"], message, remedy);
    }
    Some(())
}
