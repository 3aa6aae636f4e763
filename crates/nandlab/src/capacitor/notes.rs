//! Notes on the capacitor and the measured dirty budget.

use super::{CapacitorState, Detection};
use crate::base::note::Note;
use crate::base::units::Time;
use crate::base::words::{count, duration, part};

/// Notes that the capacitor is worn out: it has lost more than 30 % of its rated capacitance.
pub(crate) fn worn_out(capacitor: &CapacitorState) -> Option<Note> {
    if !capacitor.is_worn_out {
        return None;
    }
    Note::warning(
        "capacitor-worn-out",
        format!(
            "The capacitor has lost {} of its rated capacitance and is worn out (the limit is 30 %): a measured budget \
             is 0.",
            part(capacitor.loss_share, 1.0)
        ),
    )
}

/// Notes that the capacitor can save too few units for a measured budget above 0. `units` is the size of the cache and
/// `budget` the dirty budget, both in units.
pub(crate) fn no_budget(
    capacitor: &CapacitorState,
    capability_units: f64,
    [units, budget]: [u32; 2],
) -> Option<Note> {
    if capacitor.is_worn_out || capacitor.stage != "charged" || budget > 0 {
        return None;
    }
    Note::warning(
        "no-budget",
        format!(
            "No unit may be dirty, so every write waits for flash: the capacitor can save {} of the {} units of the \
             write cache, which is too few for a budget under capacitor.steps and capacitor.margin. Raise \
             capacitor.capacitance, lower cache.size, or set capacitor.steps = \"continuous\".",
            count(capability_units as u64),
            count(units.into())
        ),
    )
}

/// Notes that the capacitor can save too few units for the whole write buffer. `units` is the size of the buffer and
/// `budget` the dirty budget, both in units.
pub(crate) fn small_for_buffer(
    capacitor: &CapacitorState,
    capability_units: f64,
    [units, budget]: [u32; 2],
) -> Option<Note> {
    let is_bound = capability_units < f64::from(units) && f64::from(budget) <= capability_units;
    if capacitor.stage != "charged" || !is_bound {
        return None;
    }
    let saved = format!(
        "The capacitor can save {} of the {} units of the write buffer",
        count(capability_units as u64),
        count(units.into())
    );
    let remedy = "raise capacitor.capacitance, or lower ftl.buffer";
    if budget == 0 {
        Note::warning("no-budget", format!("{saved}, so every write waits for flash: {remedy}."))
    } else {
        Note::info(
            "small-capacitor",
            format!("{saved}, so the buffer acknowledges no more than these: {remedy}."),
        )
    }
}

/// Notes that no detection has measured the budget. `units` is the size of the cache and `budget` the dirty budget,
/// both in units.
pub(crate) fn never_measured(detections: &[Detection], [units, budget]: [u32; 2], now: Time) -> Option<Note> {
    if !detections.is_empty() {
        return None;
    }
    Note::info(
        "never-measured",
        format!(
            "The capacitor was never measured in {} of simulated time, so that capacitor.detect_every and \
             capacitor.detect_grace had no effect: the dirty budget stayed at its value at the start, {} of {} units. \
             Run longer, or raise reliability.clock_scale.",
            duration(now.seconds()),
            count(budget.into()),
            count(units.into())
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worn_out_capacitor_and_a_budget_of_0_have_a_note_each() {
        let new = CapacitorState {
            stage: "charged",
            energy_j: 1.0,
            energy_j_full: 1.0,
            energy_j_rated: 1.0,
            loss_share: 0.0,
            is_worn_out: false,
            cycles: 0,
        };
        let worn = CapacitorState { is_worn_out: true, loss_share: 0.4, ..new };
        assert_eq!(worn_out(&new), None);
        assert!(worn_out(&worn).expect("the capacitor is worn out").text.contains("40.0 %"));
        assert!(
            no_budget(&new, 3.7, [100, 0]).expect("no unit may be dirty").text.contains("3 of the 100 units")
        );
        assert_eq!(no_budget(&new, 3.7, [100, 1]), None);
        assert_eq!(no_budget(&worn, 3.7, [100, 0]), None);
        assert_eq!(no_budget(&CapacitorState { stage: "draining", ..new }, 3.7, [100, 0]), None);
        let of_buffer = |saved, budget| small_for_buffer(&new, saved, [100, budget]).map(|note| note.code);
        assert_eq!(of_buffer(100.0, 100), None);
        assert_eq!(of_buffer(100.0, 50), None, "cache.dirty_budget = 0.5");
        assert_eq!([of_buffer(48.0, 48), of_buffer(0.0, 0)], [Some("small-capacitor"), Some("no-budget")]);
    }
}
