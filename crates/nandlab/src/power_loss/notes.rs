//! Notes on power losses.

use super::PowerLoss;
use super::spec::PowerSpec;
use crate::base::note::Note;
use crate::base::units::Time;
use crate::base::words::{count, duration, joules, several};

/// Power loss has destroyed writes or TRIMs of completed requests: an error if a completed flush or FUA write covers
/// them, otherwise a warning. `worn_out`: whether the capacitor is worn out; `None`: the drive has no capacitor.
/// `has_buffer`: the drive has a write buffer, and no write cache.
pub(crate) fn lost_writes(losses: &[PowerLoss], worn_out: Option<bool>, has_buffer: bool) -> Option<Note> {
    let (ram, if_worn, if_small) = if has_buffer {
        ("write buffer", "Lower ftl.buffer", "or lower ftl.buffer")
    } else {
        (
            "write cache",
            "Set cache.dirty_budget = \"measured\"",
            "or capacitor.margin, or lower cache.dirty_budget",
        )
    };
    let total = PowerLoss::total(losses);
    if total.lost_writes + total.lost_trims == 0 {
        return None;
    }
    let mut places = Vec::new();
    if total.lost_pages > 0 {
        places.push(format!("{} only in the {ram}", count(total.lost_pages)));
    }
    if total.lost_with_wordline > 0 {
        places
            .push(format!("{} in flash, on the wordline of a torn program", count(total.lost_with_wordline)));
    }
    let reason = match worn_out {
        None => "The drive has no capacitor: set capacitor.capacitance.".to_owned(),
        Some(true) => format!(
            "The capacitor is worn out: it has lost more than 30 % of its capacitance. {if_worn}, or lower capacitor.age."
        ),
        Some(false) if total.spent_j < 0.5 * total.energy_j => "The capacitor had energy left.".to_owned(),
        Some(false) => format!(
            "The capacitor held {}, and the flush of {} units took {}: raise capacitor.capacitance {if_small}.",
            joules(total.energy_j),
            count(total.flushed_pages),
            joules(total.spent_j)
        ),
    };
    let mut losses = Vec::new();
    if total.lost_writes > 0 {
        let covered = match total.lost_covered - total.lost_trims {
            0 => ", none of them covered by a completed flush or FUA".to_owned(),
            some => format!(", {} of them covered by a completed flush or FUA", count(some)),
        };
        let writes = format!("{}{covered}", several(total.lost_writes, "acknowledged write"));
        losses.push(format!("destroyed {writes} ({})", places.join(", ")));
    }
    if total.lost_trims > 0 {
        let units = several(total.lost_trims, "unit");
        losses.push(format!("undid the TRIM of {units} that a completed flush covers: older data is back"));
    }
    let text = format!("Power loss {}; power.json lists them. {reason}", losses.join(" and "));
    if total.lost_covered > 0 { Note::error("data-lost", text) } else { Note::warning("data-lost", text) }
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

/// Some recoveries were over before power failed again (`power.cut_in_recovery`).
pub(crate) fn not_cut_in_recovery(losses: &[PowerLoss], power: &PowerSpec) -> Option<Note> {
    let after = power.cut_in_recovery_ns?;
    let recoveries = || losses.iter().filter_map(|loss| loss.recovery);
    let uncut = || recoveries().filter(|recovery| recovery.cuts == 0);
    let longest = uncut().map(|recovery| recovery.ns).max()?;
    let [uncut, all] = [uncut().count(), recoveries().count()];
    let which = if all == 1 { "the recovery".to_owned() } else { format!("{uncut} of {all} recoveries") };
    let took = if uncut == 1 { "it took" } else { "the longest of them took" };
    Note::warning(
        "recovery-not-cut",
        format!(
            "Power did not fail during {which}: {took} {}, power.cut_in_recovery is {}. Set an earlier time.",
            duration(longest.seconds()),
            duration(after.seconds())
        ),
    )
}

/// The run ended at time `now`, after `requests` requests and before the power loss that the spec sets.
pub(crate) fn never_cut(losses: &[PowerLoss], power: &PowerSpec, requests: u64, now: Time) -> Option<Note> {
    if !losses.is_empty() {
        return None;
    }
    let when = match (power.cut_after_requests, power.cut_at_ns) {
        (0, None) => {
            power.cut_in_recovery_ns?;
            let text = "Power never failed, so power.cut_in_recovery has no effect: set power.cut_after_requests or \
                        power.cut_at.";
            return Note::warning("never-cut", text.to_owned());
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::geometry::Lpn;
    use crate::base::lost::{Lost, Promise};
    use crate::base::note::Severity;
    use crate::base::units::{Span, US};
    use crate::power_loss::Recovery;

    fn losts(list: &[(Lpn, u64)], promise: Promise, was_in_flash: bool, is_trim: bool) -> Vec<Lost> {
        list.iter().map(|&(lpn, sequence)| Lost { lpn, promise, sequence, is_trim, was_in_flash }).collect()
    }

    #[test]
    fn only_the_loss_of_what_a_completed_flush_covers_is_an_error() {
        let loss = |promises: &[Promise]| {
            let of = |&promise| losts(&[(Lpn(1), 1)], promise, false, false);
            let loss = PowerLoss { lost: promises.iter().flat_map(of).collect(), ..PowerLoss::default() };
            lost_writes(&[loss], None, false).map(|note| (note.severity, note.text))
        };
        use Promise::{Acknowledged, Covered, InFlight};
        assert_eq!(loss(&[InFlight]), None);
        let (severity, text) = loss(&[Acknowledged, InFlight]).expect("a write is lost");
        assert_eq!(severity, Severity::Warning);
        assert!(text.contains("1 acknowledged write, none of them covered by a completed flush"), "{text}");
        let (severity, text) = loss(&[Covered, Acknowledged, Acknowledged]).expect("writes are lost");
        assert_eq!(severity, Severity::Error);
        assert!(text.contains("3 acknowledged writes, 1 of them covered by a completed flush"), "{text}");
    }

    #[test]
    fn the_note_on_lost_writes_names_their_places_and_the_remedy() {
        let note = |lost: &[(Lpn, u64)], with_wordline: &[(Lpn, u64)], worn_out| {
            let loss = PowerLoss {
                lost: [(lost, false), (with_wordline, true)]
                    .into_iter()
                    .flat_map(|(list, in_flash)| losts(list, Promise::Covered, in_flash, false))
                    .collect(),
                energy_j: 1.0,
                spent_j: 0.6,
                flushed_pages: 7,
                ..PowerLoss::default()
            };
            let [cache, buffer] = [false, true].map(|has_buffer| {
                lost_writes(std::slice::from_ref(&loss), worn_out, has_buffer).map(|note| note.text)
            });
            let is_named = |text: &String| text.contains("cache");
            assert!(!buffer.as_ref().is_some_and(is_named), "{buffer:?}");
            assert!(lost.is_empty() || buffer.is_some_and(|text| text.contains("only in the write buffer")));
            cache
        };
        let (one, two) = ([(Lpn(1), 1)], [(Lpn(2), 2), (Lpn(3), 3)]);
        assert_eq!(note(&[], &[], None), None);
        let text = note(&one, &[], None).expect("a write is lost");
        assert!(text.contains("FUA (1 only in the write cache); "), "{text}");
        assert!(text.contains("no capacitor"), "{text}");
        let text = note(&[], &two, Some(true)).expect("two writes are lost");
        assert!(
            text.contains("2 acknowledged writes, 2 of them covered by a completed flush or FUA (2 in flash, on the wordline of a torn program)"),
            "{text}"
        );
        assert!(text.contains("worn out"), "{text}");
        let text = note(&one, &two, Some(false)).expect("three writes are lost");
        assert!(text.contains("(1 only in the write cache, 2 in flash"), "{text}");
        assert!(text.contains("the flush of 7 units took 600 mJ"), "{text}");
        let loss = PowerLoss { lost: losts(&two, Promise::Covered, false, true), ..PowerLoss::default() };
        let text = lost_writes(&[loss], Some(false), false).expect("two TRIMs are lost").text;
        assert!(
            text.starts_with(
                "Power loss undid the TRIM of 2 units that a completed flush covers: older data"
            ),
            "{text}"
        );
    }

    #[test]
    fn recoveries_that_ended_before_the_second_cut_are_noted() {
        let power = |after: Option<u64>| PowerSpec {
            cut_after_requests: 0,
            cut_at_ns: None,
            cut_in_recovery_ns: after.map(Span::from_ns),
            gc_in_flush: false,
        };
        let loss = |us: u64, cuts| {
            let recovery = Recovery { ns: us * US, cuts, ..Recovery::default() };
            PowerLoss { recovery: Some(recovery), ..PowerLoss::default() }
        };
        let note =
            |losses: &[PowerLoss], after| not_cut_in_recovery(losses, &power(after)).map(|note| note.text);
        assert_eq!(note(&[loss(3, 0)], None), None);
        assert_eq!(note(&[loss(3, 1)], Some(2_000)), None);
        assert_eq!(note(&[], Some(2_000)), None);
        assert_eq!(
            note(&[loss(3, 0)], Some(5_000)).expect("the recovery was not cut"),
            "Power did not fail during the recovery: it took 3 µs, power.cut_in_recovery is 5 µs. Set an earlier time."
        );
        let text = note(&[loss(3, 0), loss(9, 1), loss(4, 0)], Some(5_000)).expect("two were not cut");
        assert!(
            text.starts_with("Power did not fail during 2 of 3 recoveries: the longest of them took 4 µs,"),
            "{text}"
        );
        let never = |after| never_cut(&[], &power(after), 7, Time::START).map(|note| note.text);
        assert_eq!(never(None), None);
        assert!(never(Some(1)).is_some_and(|text| text.contains("power.cut_in_recovery has no effect")));
    }

    #[test]
    fn requests_outstanding_at_power_loss_are_noted() {
        assert_eq!(outstanding(0), None);
        let texts = [1, 2].map(|requests| outstanding(requests).expect("requests have failed").text);
        assert!(texts[0].starts_with("1 request was") && texts[1].starts_with("2 requests were"));
    }
}
