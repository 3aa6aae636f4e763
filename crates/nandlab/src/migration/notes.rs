//! Notes on copybacks.

use super::MigrationStats;
use crate::base::note::Note;
use crate::base::words::{count, several};

/// A policy with copybacks copied no unit back, although GC and folding emptied `victims` superblocks. `most`: the
/// highest number of copybacks in a row that the limit allows; for each of them a lane reserves an open superblock.
pub(crate) fn no_copybacks(stats: &MigrationStats, policy: &str, most: u8, victims: u64) -> Option<Note> {
    if policy == "off-chip" || victims == 0 || stats.copybacks() > 0 {
        return None;
    }
    let moved = stats.victims_off_chip + stats.victims_copied_back;
    let reason = if most == 0 {
        "its limit allows no copybacks. Raise the limit.".to_owned()
    } else if stats.refused > 0 {
        let pages = if stats.refused == 1 { "page was" } else { "pages were" };
        format!(
            "{} {pages} refused by the limit, which falls with wear and age. Raise the limit, or lower \
             reliability.pe_cycles.",
            count(stats.refused)
        )
    } else if stats.victims_without_room > 0 {
        format!(
            "for {} the plane had no free block to open for copybacks. Raise drive.op.",
            several(stats.victims_without_room, "victim")
        )
    } else {
        format!(
            "the mode selector moved all {} off-chip, since the write buffer was never busy. Raise the load, or set \
             migration.policy = rcopyback-greedy.",
            several(moved, "victim")
        )
    };
    // The superblocks that a lane reserves for copybacks are less room for GC.
    let effect = if most == 0 {
        "so migration.policy had no effect".to_owned()
    } else {
        let blocks = several(u64::from(most) + 1, "block");
        format!("so migration.policy only reserved {blocks} of each plane for copybacks")
    };
    Note::info("no-copybacks", format!("No page was copied back, {effect}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_names_the_reason_why_no_unit_was_copied_back() {
        let text = |stats: &MigrationStats, most| {
            no_copybacks(stats, "rcopyback", most, 5).expect("no page was copied back").text
        };
        let none = MigrationStats::default();
        assert!(text(&none, 0).contains("migration.policy had no effect: its limit allows no copybacks"));
        assert!(text(&none, 2).contains("only reserved 3 blocks of each plane"));
        let moved = MigrationStats { victims_off_chip: 3, victims_copied_back: 2, ..none.clone() };
        assert!(text(&moved, 2).contains("the mode selector moved all 5 victims off-chip"));
        let without_room = MigrationStats { victims_without_room: 1, ..moved.clone() };
        assert!(text(&without_room, 2).contains("for 1 victim the plane had no free block"));
        let refused = MigrationStats { refused: 1, ..without_room };
        assert!(text(&refused, 2).contains("1 page was refused"));
        let mut copied = refused;
        copied.by_count[0] = 1;
        assert!(no_copybacks(&copied, "rcopyback", 2, 5).is_none());
        assert!(
            no_copybacks(&none, "off-chip", 0, 5).is_none()
                && no_copybacks(&none, "rcopyback", 2, 0).is_none()
        );
    }
}
