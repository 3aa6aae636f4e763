//! Notes on the reading of a trace: what its records did not say, and which of them are not played.

use crate::tally::Tally;
use nandlab_base::base::note::Note;
use nandlab_base::base::words::{count, part, several};

/// Share of the records above which the loss of records is a warning.
const SKIPPED_NOTED: f64 = 0.01;

/// The notes on a trace with these counts, by falling severity.
pub(crate) fn notes(tally: &Tally, format: Option<&str>) -> Vec<Note> {
    [skipped(tally), one_time(tally, format), few_skipped(tally), further_logs(tally), sorted(tally)]
        .into_iter()
        .flatten()
        .collect()
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
    if tally.skipped() == 0 || tally.skipped_share() > SKIPPED_NOTED {
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

/// All records have the same time, for example those of a fio log of version 2 without `wait` lines, and the workload is
/// played at its own times.
fn one_time(tally: &Tally, format: Option<&str>) -> Option<Note> {
    if !tally.has_one_time {
        return None;
    }
    let why = match format {
        Some("fio-iolog") => {
            " A log of version 2 has times only in `wait` lines; fio from 3.31 on writes version 3, with times."
        }
        _ => "",
    };
    Note::warning(
        "no-times",
        format!(
            "All records of the trace have the same time, so all requests arrive at once.{why} Remedy: play the trace \
             without times, with workload.arrival = {{ queue_depth = 32 }}."
        ),
    )
}

/// The file of a trace has several logs of fio one after another, of several jobs or runs.
fn further_logs(tally: &Tally) -> Option<Note> {
    if tally.further_logs == 0 {
        return None;
    }
    Note::info(
        "several-logs",
        format!(
            "The file has {} logs of fio one after another. The times of each log go on from the last time of the log \
             before.",
            count(tally.further_logs + 1)
        ),
    )
}

/// Events of a blkparse trace were out of order by at most 1 s, and were sorted.
fn sorted(tally: &Tally) -> Option<Note> {
    if tally.sorted == 0 {
        return None;
    }
    let (were, text) = (if tally.sorted == 1 { "was" } else { "were" }, several(tally.sorted, "event"));
    Note::info(
        "sorted-events",
        format!("{text} of the trace {were} out of order by at most 1 s, and {were} sorted."),
    )
}
