//! Notes on power losses.

use super::PowerLoss;
use super::spec::PowerSpec;
use crate::base::note::Note;
use crate::base::units::Time;
use crate::base::words::{count, duration, joules, several};

/// Power loss has destroyed acknowledged writes. `worn_out`: whether the capacitor is worn out; `None`: the drive has
/// no capacitor.
pub(crate) fn lost_writes(losses: &[PowerLoss], worn_out: Option<bool>) -> Option<Note> {
    let total = PowerLoss::total(losses);
    if total.lost_writes == 0 {
        return None;
    }
    let mut places = Vec::new();
    if total.lost_pages > 0 {
        places.push(format!("{} only in the write cache", count(total.lost_pages)));
    }
    if total.lost_with_wordline > 0 {
        places
            .push(format!("{} in flash, on the wordline of a torn program", count(total.lost_with_wordline)));
    }
    let reason = match worn_out {
        None => "The drive has no capacitor: set capacitor.capacitance.".to_owned(),
        Some(true) => {
            "The capacitor is worn out: it has lost more than 30 % of its capacitance. Set cache.dirty_budget = \
             \"measured\", or lower capacitor.age."
                .to_owned()
        }
        Some(false) if total.spent_j < 0.5 * total.energy_j => "The capacitor had energy left.".to_owned(),
        Some(false) => format!(
            "The capacitor held {}, and the flush of {} pages took {}: raise capacitor.capacitance or \
             capacitor.margin, or lower cache.dirty_budget.",
            joules(total.energy_j),
            count(total.flushed_pages),
            joules(total.spent_j)
        ),
    };
    Note::error(
        "data-lost",
        format!(
            "Power loss destroyed {} ({}); power.json lists them. {reason}",
            several(total.lost_writes, "acknowledged write"),
            places.join(", ")
        ),
    )
}

/// `requests` requests have failed because they were outstanding when power failed.
pub(crate) fn outstanding(requests: u64) -> Option<Note> {
    if requests == 0 {
        return None;
    }
    let were = if requests == 1 { "was" } else { "were" };
    Note::info(
        "outstanding-at-power-loss",
        format!("{} {were} outstanding when power failed.", several(requests, "request")),
    )
}

/// The run ended at time `now`, after `requests` requests and before the power loss that the spec sets.
pub(crate) fn never_cut(losses: &[PowerLoss], power: &PowerSpec, requests: u64, now: Time) -> Option<Note> {
    if !losses.is_empty() {
        return None;
    }
    let when = match (power.cut_after_requests, power.cut_at_ns) {
        (0, None) => return None,
        (0, Some(at)) => format!("power.cut_at = {}", duration(at.seconds())),
        (requests, _) => format!("power.cut_after_requests = {}", count(requests)),
    };
    Note::warning(
        "never-cut",
        format!(
            "Power never failed: the run was over before {when}, after {} and {}.",
            several(requests, "request"),
            duration(now.seconds())
        ),
    )
}
