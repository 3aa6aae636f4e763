//! `power.json`, and the sections `capacitor` and `power` of the summary.

use crate::base::geometry::Lpn;
use crate::base::numbers::number;
use crate::base::units::{Span, Time};
use crate::capacitor::{Detection, PowerLoss, PowerStats};
use crate::drive::Drive;
use crate::probe::Probe;
use serde_json::{Map, Value, json};

/// Losses that the summary lists; `power.json` has all.
const LISTED: usize = 100;

fn seconds(span: Span) -> Value {
    number(span.seconds())
}

/// `capacitor` of the summary; null without one.
pub(crate) fn capacitor<P: Probe>(drive: &Drive<P>) -> Value {
    let Some(capacitor) = drive.capacitor() else { return Value::Null };
    let [cache_pages, budget_pages, _] = drive.cache_pages();
    let detections = &drive.stats().power.detections;
    json!({
        "stage": capacitor.stage,
        "energy_j": number(capacitor.energy_j),
        "energy_j_full": number(capacitor.energy_j_full),
        "energy_j_rated": number(capacitor.energy_j_rated),
        "loss_share": number(capacitor.loss_share),
        "worn_out": capacitor.is_worn_out,
        "cycles": capacitor.cycles,
        "capability_pages": number(drive.capability_pages()),
        "budget_pages": budget_pages,
        "detections": {
            "count": detections.len(),
            "last": detections.last().map(|last| detection(last, cache_pages)),
        },
    })
}

/// A detection; `budget_pages` of a cache of so many.
fn detection(found: &Detection, cache_pages: u32) -> Value {
    let span = |from: Time, to: Time| seconds(to.saturating_sub(from));
    json!({
        "due_s": number(found.due.seconds()),
        "began_s": number(found.began.seconds()),
        "measured_share": number(found.measured),
        "budget_share": number(found.budget),
        "budget_pages": (f64::from(cache_pages) * found.budget + 1e-9) as u64,
        "pages": found.pages,
        "host_pages": found.host_pages,
        "energy_j": number(found.energy_j),
        "drained_j": number(found.drained_j),
        "waited_s": span(found.due, found.began),
        "sync_s": span(found.began, found.drained_from),
        "drain_s": span(found.drained_from, found.empty),
        "recharge_s": span(found.empty, found.recharged),
    })
}

/// The numbers of a loss that add up over several.
#[derive(Clone, Copy, Default)]
struct Numbers {
    counts: [(&'static str, u64); 17],
    spans_ns: [(&'static str, Span); 4],
    energies_j: [(&'static str, f64); 2],
}

impl Numbers {
    fn of(loss: &PowerLoss) -> Self {
        let recovery = loss.recovery.unwrap_or_default();
        let lost = loss.lost.len() as u64;
        let with_wordline = loss.lost_with_wordline.len() as u64;
        Self {
            counts: [
                ("aborted_requests", loss.aborted_requests.into()),
                ("dirty_pages", loss.dirty_pages.into()),
                ("owed_pages", loss.owed_pages.into()),
                ("flushed_pages", loss.flushed_pages.into()),
                ("vsm_lines", loss.vsm_lines.into()),
                ("vsm_lines_saved", loss.vsm_lines_saved.into()),
                ("fast_pages", loss.fast_pages.into()),
                ("lost_pages", lost),
                ("lost_with_wordline", with_wordline),
                ("lost_writes", lost + with_wordline),
                ("torn_programs", loss.torn_programs.into()),
                ("torn_erases", loss.torn_erases.into()),
                ("scanned_pages", recovery.scanned_pages),
                ("merged_pages", recovery.merged_pages.into()),
                ("erased_blocks", recovery.erased_blocks.into()),
                ("closed_blocks", recovery.closed_blocks.into()),
                ("stale_translation_pages", recovery.stale_translation_pages.into()),
            ],
            spans_ns: [
                ("finish_s", loss.finish_ns),
                ("flush_s", loss.flush_ns),
                ("program_s", loss.program_ns),
                ("recovery_s", recovery.ns),
            ],
            energies_j: [("energy_j", loss.energy_j), ("spent_j", loss.spent_j)],
        }
    }

    fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine = (theirs.0, mine.1 + theirs.1);
        }
        for (mine, theirs) in self.spans_ns.iter_mut().zip(other.spans_ns) {
            *mine = (theirs.0, mine.1 + theirs.1);
        }
        for (mine, theirs) in self.energies_j.iter_mut().zip(other.energies_j) {
            *mine = (theirs.0, mine.1 + theirs.1);
        }
    }

    fn put_into(self, object: &mut Map<String, Value>) {
        let counts = self.counts.into_iter().map(|(name, count)| (name, json!(count)));
        let spans = self.spans_ns.into_iter().map(|(name, ns)| (name, seconds(ns)));
        let energies = self.energies_j.into_iter().map(|(name, joules)| (name, number(joules)));
        object.extend(counts.chain(spans).chain(energies).map(|(name, value)| (name.to_owned(), value)));
    }
}

/// A loss without its lists of lost writes.
fn loss(loss: &PowerLoss) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("at_s".into(), number(loss.at.seconds()));
    object.insert("capacitor_loss_share".into(), number(loss.capacitor_loss));
    Numbers::of(loss).put_into(&mut object);
    object
}

/// `power` of the summary: totals over the losses, and the first hundred of them; null when power never failed.
pub(crate) fn power_totals(stats: &PowerStats) -> Value {
    if stats.losses.is_empty() {
        return Value::Null;
    }
    let mut total = Numbers::default();
    for loss in &stats.losses {
        total.add(&Numbers::of(loss));
    }
    let mut object = Map::new();
    object.insert("losses".into(), json!(stats.losses.len()));
    object.insert("down_s".into(), seconds(stats.down_ns));
    total.put_into(&mut object);
    object.insert("list".into(), stats.losses.iter().take(LISTED).map(loss).collect());
    Value::Object(object)
}

/// `power.json`: every loss with the acknowledged writes it took, and every detection; `None` when there was neither.
///
/// `lost_from_cache` were in the write cache alone, `lost_from_flash` on the wordline of a torn program. Each is the
/// newest acknowledged write of a page: LPN, first byte of the page, and the write's sequence number, by which page writes
/// of the host are counted from 1 (0: not known).
pub fn power<P: Probe>(drive: &Drive<P>) -> Option<Value> {
    let stats = &drive.stats().power;
    if stats.losses.is_empty() && stats.detections.is_empty() {
        return None;
    }
    let page_bytes = u64::from(drive.geometry().page_bytes);
    let writes = |lost: &[(Lpn, u64)]| -> Value {
        let one = |&(lpn, sequence): &(Lpn, u64)| json!({ "lpn": lpn.0, "offset": u64::from(lpn.0) * page_bytes, "sequence": sequence });
        lost.iter().map(one).collect()
    };
    let whole = |lost: &PowerLoss| {
        let mut object = loss(lost);
        object.insert("lost_from_cache".into(), writes(&lost.lost));
        object.insert("lost_from_flash".into(), writes(&lost.lost_with_wordline));
        Value::Object(object)
    };
    let [cache_pages, ..] = drive.cache_pages();
    Some(json!({
        "page_bytes": page_bytes,
        "losses": stats.losses.iter().map(whole).collect::<Value>(),
        "detections": stats.detections.iter().map(|d| detection(d, cache_pages)).collect::<Value>(),
    }))
}
