//! `power.json`.

use crate::drive::Drive;
use crate::probe::Probe;
use serde_json::{Value, json};

/// `power.json`: every loss with the acknowledged writes it took, and every detection; `None` when there was neither.
///
/// `lost_from_cache` were in the write cache alone, `lost_from_flash` on the wordline of a torn program. Each is the
/// newest acknowledged write of a page: LPN, first byte of the page, and the write's sequence number, by which page writes
/// of the host are counted from 1 (0: not known).
pub fn power<P: Probe>(drive: &Drive<P>) -> Option<Value> {
    let stats = drive.stats();
    let (losses, detections) = (&stats.power.losses, &stats.power.detections);
    if losses.is_empty() && detections.is_empty() {
        return None;
    }
    let page_bytes = u64::from(drive.geometry().page_bytes);
    let [cache_pages, ..] = drive.cache_pages();
    Some(json!({
        "page_bytes": page_bytes,
        "losses": losses.iter().map(|loss| loss.json(page_bytes)).collect::<Value>(),
        "detections": detections.iter().map(|detection| detection.json(cache_pages)).collect::<Value>(),
    }))
}
