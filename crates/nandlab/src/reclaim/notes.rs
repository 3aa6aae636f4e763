//! Notes on read reclaim.

use super::ReclaimStats;
use super::spec::{ReclaimPolicySpec, ReclaimSpec};
use crate::base::note::Note;
use crate::base::words::{count, number, several};

/// `reclaim.policy` is on, and no superblock was reclaimed.
pub(crate) fn nothing_reclaimed(stats: &ReclaimStats, reclaim: &ReclaimSpec) -> Option<Note> {
    if stats.blocks > 0 {
        return None;
    }
    let reason = match reclaim.policy {
        ReclaimPolicySpec::None => return None,
        ReclaimPolicySpec::Reads { limit } => format!(
            "no block with valid pages was read {} times since its erase. Lower reclaim.policy.reads.limit, or read the \
             same blocks more often (workload.repeat).",
            count(limit.into())
        ),
        ReclaimPolicySpec::Rber { limit, every } => format!(
            "none of {} (one per {} of a block) had a predicted RBER of {} times what the last read level decodes. Lower \
             reclaim.policy.rber.limit or every, or age the drive (reliability.pe_cycles, reliability.retention).",
            several(stats.samples, "sampled read"),
            several(every.into(), "read"),
            number(limit)
        ),
    };
    Note::info("no-reclaim", format!("No block was reclaimed, so reclaim.policy had no effect: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_without_a_reclaim_names_the_limit() {
        let text = |blocks, policy| {
            let stats = ReclaimStats { blocks, samples: 7, ..ReclaimStats::default() };
            nothing_reclaimed(&stats, &ReclaimSpec { policy }).map(|note| note.text)
        };
        let reads = ReclaimPolicySpec::Reads { limit: 5000 };
        assert!(text(0, reads).expect("no block was reclaimed").contains("read 5,000 times since its erase"));
        let rber =
            text(0, ReclaimPolicySpec::Rber { limit: 0.5, every: 256 }).expect("no block was reclaimed");
        assert!(rber.contains("none of 7 sampled reads (one per 256 reads of a block)"), "{rber}");
        assert!(rber.contains("0.50 times what"), "{rber}");
        assert_eq!((text(1, reads), text(0, ReclaimPolicySpec::None)), (None, None));
    }
}
