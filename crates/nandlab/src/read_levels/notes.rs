//! Notes on read levels.

use super::EccStats;
use crate::base::note::Note;
use crate::base::units::Span;
use crate::base::words::{count, listed, part, several};
use crate::flash::{EccSpec, Entry, Placement};
use nandlab_ldpc::REFERENCES_MAX;

/// Some page reads were decoded by no read level, or `requests` requests failed as uncorrectable. `has_lost_power`:
/// power loss may have lost the data of these requests.
pub(crate) fn uncorrectable(
    ecc: &EccStats,
    spec: &EccSpec,
    requests: u64,
    has_lost_power: bool,
) -> Option<Note> {
    let lost = ecc.uncorrectable;
    if lost == 0 && requests == 0 {
        return None;
    }
    let mut text = String::new();
    if requests > 0 {
        let power = if has_lost_power { ", or power loss has lost it" } else { "" };
        text = format!("{} failed: no read level decodes their data{power}. ", several(requests, "request"));
    }
    if lost > 0 {
        text += &format!(
            "{} of the page reads ({}) were decoded by no read level: the data is too old for the drive's wear. Lower \
             reliability.pe_cycles, reliability.retention or reliability.clock_scale, or set {}; `nandlab reliability` shows \
             the level that decodes each age and wear.",
            part(lost as f64, ecc.reads() as f64),
            count(lost),
            stronger(spec)
        );
    }
    Note::error("uncorrectable", text.trim_end().to_owned())
}

/// Settings with which the last level decodes more.
fn stronger(spec: &EccSpec) -> String {
    match &spec.codec {
        Some(codec) => {
            let last = match spec.levels.last().and_then(|level| level.entry) {
                Some(Entry::Soft(soft)) => Some(soft),
                _ => None,
            };
            let mut keys = Vec::new();
            if codec.code.rate == "16/17" {
                keys.push("rate = \"8/9\"");
            }
            if last.is_none_or(|soft| usize::from(soft.references) < REFERENCES_MAX) {
                keys.push("more levels");
            }
            if last.is_some_and(|soft| matches!(soft.placement, Placement::Equidistant(_))) {
                keys.push("references = \"mmi\"");
            }
            if keys.is_empty() {
                return "ecc.levels to a list with a higher last rber_max".to_owned();
            }
            format!("ecc.levels.codec with {}", keys.join(" or "))
        }
        None if spec.levels.iter().any(|level| level.entry.is_some()) => {
            "ecc.levels.retry with a higher rber_max or more entries".to_owned()
        }
        None => "ecc.levels with a higher last rber_max".to_owned(),
    }
}

/// No read waited for one of the `decoders` decoders.
pub(crate) fn no_decoder_wait(ecc: &EccStats, decoders: Option<u32>) -> Option<Note> {
    let decoders = decoders.filter(|_| ecc.decoder_wait_ns == Span::ZERO)?;
    Note::info(
        "no-decoder-wait",
        format!(
            "No page read waited for a decoder, so ecc.decoders = {decoders} had no effect. Fewer decoders, a longer decode \
             time or more reads at once make the decoders a bottleneck."
        ),
    )
}

/// On a drive with read levels every page was decoded at level 1, so `keys` had no effect. `has_errors`: the spec has
/// bit errors.
pub(crate) fn first_level(ecc: &EccStats, keys: &[&str], has_errors: bool) -> Option<Note> {
    if ecc.levels[1] == 0 || ecc.soft_reads() + ecc.uncorrectable > 0 {
        return None;
    }
    let keys = listed(keys);
    Note::info(
        "first-level-only",
        if has_errors {
            format!(
                "Every page was decoded at read level 1, so {keys} had no effect. reliability.pe_cycles and \
                 reliability.retention age the drive; `nandlab reliability` shows the level that each age and wear needs."
            )
        } else {
            format!(
                "Every page was decoded at read level 1, since the spec has no bit errors: {keys} had no effect. Set \
                 reliability.rber."
            )
        },
    )
}

/// Some pages were decoded above level 1, but every read of the drive's `levels` read levels began at level 1, so that
/// `ecc.start` (`start`) had no effect.
pub(crate) fn always_from_first(ecc: &EccStats, levels: u8, start: &str) -> Option<Note> {
    // A read that begins at level 1 and is decoded at level n has taken n - 1 further tries, a lost one all of them. A
    // read that begins higher takes fewer.
    let above = (2..).zip(&ecc.levels[2..]).map(|(level, &reads)| (level - 1) * reads).sum::<u64>();
    let tries = above + u64::from(levels - 1) * ecc.uncorrectable;
    if start == "first" || above == 0 || ecc.retries != tries {
        return None;
    }
    Note::info(
        "always-from-first",
        format!(
            "Every page read began at read level 1, so ecc.start = {start} had no effect: no read found a higher level \
             remembered. Repeat the reads (workload.repeat), enlarge ftl.map.demand.cache, or set ecc.start = \"last-good\"."
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flash::{Centre, CodecSpec, Failures, LevelSpec, Soft, StartLevel};
    use nandlab_ldpc::SHIPPED;

    #[test]
    fn uncorrectable_reads_are_noted_with_failed_requests_and_lost_pages_apart() {
        let stats = |uncorrectable| {
            let mut stats = EccStats { uncorrectable, ..EccStats::default() };
            stats.levels[1] = 8 - uncorrectable;
            stats
        };
        let text = |lost, requests, has_lost_power| {
            let spec = EccSpec::of(vec![LevelSpec::new(0.01)], StartLevel::First);
            uncorrectable(&stats(lost), &spec, requests, has_lost_power).map(|note| note.text)
        };
        assert_eq!(text(0, 0, false), None);
        assert_eq!(text(0, 1, false).as_deref(), Some("1 request failed: no read level decodes their data."));
        assert!(text(0, 2, true).expect("requests have failed").contains("or power loss has lost it"));
        let pages = text(2, 0, false).expect("pages are lost");
        assert!(pages.starts_with("25.0 % of the page reads (2) were decoded by no read level"), "{pages}");
        let both = text(2, 3, false).expect("requests have failed");
        assert!(both.starts_with("3 requests failed") && both.contains("25.0 %"), "{both}");
    }

    #[test]
    fn what_decodes_more_depends_on_the_levels() {
        let entry = |entry| LevelSpec { entry: Some(entry), ..LevelSpec::new(0.01) };
        let mut spec = EccSpec::of(vec![LevelSpec::new(0.01)], StartLevel::First);
        assert_eq!(stronger(&spec), "ecc.levels with a higher last rber_max");
        spec.levels = vec![entry(Entry::Aged(0))];
        assert_eq!(stronger(&spec), "ecc.levels.retry with a higher rber_max or more entries");
        let code = |rate: &str| SHIPPED.iter().find(|code| code.rate == rate).expect("the rate is shipped");
        let mut with_code = |rate, references, placement| {
            let soft = Soft {
                references,
                placement,
                centre: Centre::Optimal,
                certainty: 0.0,
                residual: 1.0,
                gain: 1.0,
            };
            spec.levels = vec![entry(Entry::Soft(soft))];
            spec.codec = Some(CodecSpec {
                code: code(rate),
                failures: Failures::Drawn,
                iteration_ns: Span::ZERO,
                page_bytes: 16_384,
                seed: 1,
                shifts: false,
            });
            stronger(&spec)
        };
        assert_eq!(
            with_code("16/17", 3, Placement::Equidistant(3.0)),
            "ecc.levels.codec with rate = \"8/9\" or more levels or references = \"mmi\""
        );
        assert_eq!(with_code("8/9", 3, Placement::MostInformative), "ecc.levels.codec with more levels");
        assert_eq!(
            with_code("8/9", 7, Placement::MostInformative),
            "ecc.levels to a list with a higher last rber_max"
        );
    }

    #[test]
    fn decoders_for_which_no_read_waits_are_noted() {
        let mut stats = EccStats::default();
        assert_eq!(no_decoder_wait(&stats, None), None);
        let note = no_decoder_wait(&stats, Some(4)).expect("no read waited");
        assert!(note.text.contains("ecc.decoders = 4 had no effect"), "{}", note.text);
        stats.decoder_wait_ns = Span::from_ns(1);
        assert_eq!(no_decoder_wait(&stats, Some(4)), None);
    }

    #[test]
    fn a_start_policy_under_which_all_reads_began_at_level_1_is_noted() {
        let mut stats = EccStats::default();
        let has_note = |stats: &EccStats| always_from_first(stats, 7, "last-level").is_some();
        stats.levels[1] = 5;
        assert!(!has_note(&stats), "that is first-level-only");
        // Two reads decoded at level 3 after two further tries each, and a lost one after six.
        (stats.levels[3], stats.uncorrectable, stats.retries) = (2, 1, 2 * 2 + 6);
        assert!(has_note(&stats));
        assert_eq!(always_from_first(&stats, 7, "first"), None);
        // One of them began at level 2.
        stats.retries -= 1;
        assert!(!has_note(&stats));
    }

    #[test]
    fn a_run_whose_reads_all_decoded_at_level_1_is_noted() {
        let mut stats = EccStats::default();
        let has_note = |stats: &EccStats| first_level(stats, &["ecc.start"], true).is_some();
        assert!(!has_note(&stats), "nothing was read");
        stats.levels[1] = 5;
        assert!(has_note(&stats));
        assert!(
            first_level(&stats, &["ecc.start"], false).expect("no errors").text.contains("no bit errors")
        );
        stats.uncorrectable = 1;
        assert!(!has_note(&stats));
        stats.uncorrectable = 0;
        stats.levels[2] = 1;
        assert!(!has_note(&stats));
    }
}
