//! `power.json`.

use crate::drive::Drive;
use crate::drive::stats::{DetectionSummary, LossRecord};
use crate::probe::Probe;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// `power.json`: every power loss with its lost writes, and every detection of the dirty budget.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PowerRecord {
    /// Size of a mapping unit.
    #[schemars(extend("unit" = "bytes"))]
    pub page_bytes: u64,
    /// Power losses, in order of time.
    pub losses: Vec<LossRecord>,
    /// Detections of the dirty budget, in order of time.
    pub detections: Vec<DetectionSummary>,
}

/// `power.json` of a drive; `None` if there was neither a power loss nor a detection.
pub fn power<P: Probe>(drive: &Drive<P>) -> Option<Value> {
    let stats = drive.stats();
    let (losses, detections) = (&stats.power.losses, &stats.power.detections);
    if losses.is_empty() && detections.is_empty() {
        return None;
    }
    let unit_bytes = u64::from(drive.geometry().unit_bytes);
    let [cache_units, ..] = drive.dirty_units();
    let record = PowerRecord {
        page_bytes: unit_bytes,
        losses: losses.iter().map(|loss| loss.record(unit_bytes)).collect(),
        detections: detections.iter().map(|detection| detection.summary(cache_units)).collect(),
    };
    Some(serde_json::to_value(record).expect("a record is serializable"))
}
