//! Notes on GC.

use crate::base::note::Note;
use crate::base::words::{count, listed, several, size};

/// `forced` of GC's `victims` victims were forced victims, under the victim policy `policy`.
pub(crate) fn forced_victims(policy: &str, forced: u64, victims: u64) -> Option<Note> {
    // Under `greedy` the policy itself takes the superblocks with the fewest valid units.
    if forced == 0 || policy == "greedy" {
        return None;
    }
    Note::warning(
        "forced-victims",
        format!(
            "GC took the block with the fewest valid pages in {} of {} victims, whatever gc.victim would \
             pick: that pick could not be emptied with a gain, or a page had waited for room in vain. A higher \
             drive.op or gc.foreground_free leaves the choice to the policy.",
            count(forced),
            count(victims)
        ),
    )
}

/// Under another policy (`policy`) than `greedy`, every pick was the superblock that `greedy` would have picked
/// (`picks_as_greedy`), and GC has emptied `victims` victims.
pub(crate) fn same_as_greedy(policy: &str, victims: u64, picks_as_greedy: bool) -> Option<Note> {
    if policy == "greedy" || victims == 0 || !picks_as_greedy {
        return None;
    }
    Note::info(
        "same-as-greedy",
        format!(
            "In the choice of {} the policy greedy would have picked the same blocks, so gc.victim = {policy} had no \
             effect. Policies differ where several blocks have garbage: raise drive.op, run longer, or set a skewed \
             workload (workload.synthetic.address).",
            several(victims, "victim")
        ),
    )
}

/// Static wear levelling has moved no superblock. `gap` is `ftl.wear_gap`.
pub(crate) fn no_wear_levelling(gap: u32) -> Option<Note> {
    Note::info(
        "no-wear-levelling",
        format!(
            "Static wear levelling moved no block: no full block lagged the mean P/E cycles of its plane by more than \
             ftl.wear_gap = {}. ftl.wear_levelling = static acts as dynamic, but for the block that each plane reserves. \
             Lower ftl.wear_gap, or write more (workload.repeat, `nandlab life`).",
            count(gap.into())
        ),
    )
}

/// GC never ran: the host wrote `written` bytes to a drive with `spare` spare bytes. `copies_back`: the migration
/// policy had no effect either, because it acts in GC. `folds`: folding made room, on which most keys of GC act too.
/// `remedy` names the keys with which GC would run.
pub(crate) fn no_gc(copies_back: bool, folds: bool, written: u64, spare: u64, remedy: &str) -> Option<Note> {
    let mut keys = vec!["gc.victim"];
    if !folds {
        keys.extend(["gc.pacing", "gc.foreground", "gc.foreground_free"]);
    }
    keys.push("gc.background_free");
    if copies_back {
        keys.push("migration.policy");
    }
    let folded = if folds { " and folding made the room" } else { "" };
    Note::info(
        "no-gc",
        format!(
            "GC never ran, so {} had no effect: the host wrote {} to a drive with {} of spare space{folded}. Remedy: {remedy}.",
            listed(&keys),
            size(written),
            size(spare),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_picks_as_greedy_does_is_noted() {
        let text = same_as_greedy("fifo", 1, true).expect("greedy has the same victim").text;
        assert!(text.starts_with("In the choice of 1 victim the policy greedy"), "{text}");
        assert!(text.contains("gc.victim = fifo had no effect"), "{text}");
        let none = [("fifo", 5, false), ("fifo", 0, true), ("greedy", 5, true)];
        assert!(
            none.iter().all(|&(policy, victims, picks)| same_as_greedy(policy, victims, picks).is_none())
        );
    }

    #[test]
    fn the_note_without_gc_names_the_migration_policy_if_it_has_copybacks() {
        let text =
            |copies_back| no_gc(copies_back, false, 512, 1024, "write more").expect("GC never ran").text;
        assert!(
            !text(false).contains("migration.policy")
                && text(true).contains("and migration.policy had no effect")
        );
        assert!(
            text(false)
                .contains("the host wrote 512 B to a drive with 1 KiB of spare space. Remedy: write more.")
        );
        let folds = no_gc(false, true, 512, 1024, "write more").expect("GC never ran").text;
        assert_eq!(
            folds,
            "GC never ran, so gc.victim and gc.background_free had no effect: the host wrote 512 B to a drive with 1 KiB of \
             spare space and folding made the room. Remedy: write more."
        );
    }
}
