//! Notes on the reading of a trace: what its records did not say, and which of them are not played.

use crate::tally::Tally;
use nandlab_base::base::note::Note;
use nandlab_base::base::words::{count, part, several};

/// Share of the records above which the loss of records is a warning.
const SKIPPED_NOTED: f64 = 0.01;

/// The notes on a trace with these counts, by falling severity.
pub(crate) fn notes(tally: &Tally) -> Vec<Note> {
    skipped(tally).or_else(|| few_skipped(tally)).into_iter().collect()
}

/// More than 1 % of the records of the trace were skipped (`workload.lenient`), or state no request.
fn skipped(tally: &Tally) -> Option<Note> {
    if tally.skipped_share() <= SKIPPED_NOTED {
        return None;
    }
    Note::warning(
        "skipped-records",
        format!("{} The workload is not the one that was recorded.", skipped_text(tally)),
    )
}

/// Up to 1 % of the records of the trace were skipped (`workload.lenient`), or state no request.
fn few_skipped(tally: &Tally) -> Option<Note> {
    if tally.skipped() == 0 {
        return None;
    }
    Note::info("few-skipped-records", skipped_text(tally))
}

fn skipped_text(tally: &Tally) -> String {
    format!(
        "{} of the {} of the trace ({}) were skipped: {}.",
        count(tally.skipped()),
        several(tally.records, "record"),
        part(tally.skipped_share(), 1.0),
        tally.reasons()
    )
}
