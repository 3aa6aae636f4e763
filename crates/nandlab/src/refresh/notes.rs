//! Notes on refresh.

use super::RefreshStats;
use super::partial::spec::PartialSpec;
use super::spec::{RefreshPolicySpec, RefreshSpec};
use crate::base::note::Note;
use crate::base::words::{count, duration, part, several};

/// Superblocks come due `load` times faster than they are refreshed. In addition, superblocks were refreshed late, or
/// `overdue_superblocks` superblocks are late at the end.
pub(crate) fn too_slow(stats: &RefreshStats, load: Option<f64>, overdue_superblocks: u32) -> Option<Note> {
    let load = load.filter(|&load| load > 1.0)?;
    if stats.late_blocks + u64::from(overdue_superblocks) == 0 {
        return None;
    }
    let times = if load < 100.0 { format!("{load:.1}") } else { count(load as u64) };
    Note::warning(
        "refresh-too-slow",
        format!(
            "Refresh cannot keep up: {times} x. Blocks come due {times} times faster than the drive refreshes them; {} \
             blocks were refreshed after their grace, and {} are late at the end. Lower reliability.clock_scale, or \
             lengthen refresh.interval.",
            count(stats.late_blocks),
            count(overdue_superblocks.into())
        ),
    )
}

/// No refresh of a superblock has begun during the run, which lasted `lived_s` seconds on the scaled clock.
pub(crate) fn nothing_due(
    stats: &RefreshStats,
    refresh: &RefreshSpec,
    overdue_superblocks: u32,
    lived_s: f64,
) -> Option<Note> {
    if stats.blocks > 0 || overdue_superblocks > 0 {
        return None;
    }
    let every = refresh.interval.iter().map(|line| line.1).min()?;
    // EC-Cache also keeps the errors found by host reads.
    let effect = match refresh.policy {
        RefreshPolicySpec::EcCache(_) => "refresh.policy.ec-cache had no effect except that of its cache",
        RefreshPolicySpec::Partial(_) => "refresh.policy.partial only reserved blocks of each plane",
        _ => "refresh.policy had no effect",
    };
    Note::info(
        "no-refresh",
        format!(
            "No block was refreshed, so {effect}: the run lasted {} on the scaled clock, and the shortest \
             refresh.interval is {}. Raise reliability.clock_scale, give the data an age \
             (reliability.retention), or shorten the interval.",
            duration(lived_s),
            duration(every.seconds())
        ),
    )
}

/// Superblocks were refreshed, but none in place, although `refresh.policy.fcr` sets `in_place`.
pub(crate) fn nothing_in_place(stats: &RefreshStats) -> Option<Note> {
    if stats.blocks == 0 || stats.blocks_in_place > 0 {
        return None;
    }
    Note::info(
        "no-refresh-in-place",
        format!(
            "refresh.policy.fcr.in_place refreshed no block in place ({} emptied instead): the planes had no room for \
             pages that may have to be written elsewhere while the block stays, or the capacitor was not charged. Raise \
             drive.op.",
            several(stats.blocks, "block")
        ),
    )
}

/// EC-Cache has lowered the read level of no host read.
pub(crate) fn no_lower_level(stats: &RefreshStats, hot_reads: u32) -> Option<Note> {
    if stats.lower_level_reads > 0 {
        return None;
    }
    let reason = if stats.cached_reads == 0 {
        format!(
            "no host read was of a page with known errors. The errors of a page are known after \
             refresh.policy.ec-cache.hot_reads = {} host reads since its program: lower hot_reads, or repeat the reads \
             (workload.repeat).",
            count(hot_reads.into())
        )
    } else {
        format!(
            "the pages of all {} with known errors need the same level without them. Age the drive \
             (reliability.pe_cycles, reliability.retention).",
            several(stats.cached_reads, "host read")
        )
    };
    Note::info(
        "no-lower-level",
        format!("EC-Cache lowered the read level of no host read, so its cache had no effect: {reason}"),
    )
}

/// Superblocks were refreshed, but no unit was refreshed partially.
pub(crate) fn nothing_partial(stats: &RefreshStats, partial: &PartialSpec) -> Option<Note> {
    if stats.blocks == 0 || stats.partial_pages > 0 {
        return None;
    }
    let reason = if stats.blocks_while_off > 0 {
        format!(
            "the share of free blocks was below refresh.policy.partial.min_free_blocks = {}, or a plane was short of \
             space. Lower min_free_blocks, or raise drive.op.",
            part(partial.min_free_blocks, 1.0)
        )
    } else if stats.too_susceptible > 0 {
        "the susceptible bits of a page take a larger share of a page than refresh.policy.partial.max_share. Raise \
         max_share, or set encoding = \"enumerative\"."
            .to_owned()
    } else {
        "the pages were read often, or had no room in the VSM. Raise refresh.policy.partial.hot_reads or vsm_pages."
            .to_owned()
    };
    Note::info("no-partial-refresh", format!("No page was refreshed partially: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refresh_that_is_never_in_place_and_a_cache_that_lowers_no_level_are_noted() {
        let mut stats = RefreshStats::default();
        assert_eq!(nothing_in_place(&stats), None, "that is no-refresh");
        stats.blocks = 3;
        assert!(
            nothing_in_place(&stats).expect("none is in place").text.contains("(3 blocks emptied instead)")
        );
        stats.blocks_in_place = 1;
        assert_eq!(nothing_in_place(&stats), None);
        let text = |stats: &RefreshStats| no_lower_level(stats, 8).map(|note| note.text).unwrap_or_default();
        assert!(text(&stats).contains("hot_reads = 8 host reads"));
        stats.cached_reads = 2;
        assert!(text(&stats).contains("all 2 host reads with known errors need the same level"));
        stats.lower_level_reads = 1;
        assert_eq!(text(&stats), "");
    }
}
