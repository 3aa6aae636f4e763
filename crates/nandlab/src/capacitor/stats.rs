//! The records of the capacitor and its detections.

use super::CapacitorState;
use crate::base::numbers::number;
use crate::base::state::value;
use crate::base::units::Time;
use schemars::JsonSchema;
use serde::Serialize;

/// A detection of the dirty budget (DPBD: dirty page budget detection).
#[derive(Clone, Copy, Debug, Default)]
pub struct Detection {
    /// Time when the detection was due, or was commanded.
    pub due: Time,
    /// Time when the detection began to write dirty units back.
    pub began: Time,
    /// Time when the drive began to run on the capacitor.
    pub drained_from: Time,
    /// Time when the capacitor was empty.
    pub empty: Time,
    /// Time when the capacitor was full again and the budget took effect.
    pub recharged: Time,
    /// Programs on the capacitor's energy, of the detection and for host writes.
    pub pages: u32,
    /// Programs on the capacitor's energy for host writes.
    pub host_pages: u32,
    /// Energy of the full capacitor, in joules.
    pub energy_j: f64,
    /// Energy that controller and programs took from the capacitor, in joules.
    pub drained_j: f64,
    /// Units that a flush could program with the drained energy, as a share of the cache or the buffer.
    pub measured: f64,
    /// The budget that follows from the detection, as a share of the cache or the buffer.
    pub budget: f64,
}

impl Detection {
    /// The detection as in the results; `cache_units`: size of the write cache or the write buffer in units.
    pub(crate) fn summary(&self, cache_units: u32) -> DetectionSummary {
        let span = |from: Time, to: Time| number(to.saturating_sub(from).seconds());
        DetectionSummary {
            due_s: number(self.due.seconds()),
            began_s: number(self.began.seconds()),
            measured_share: number(self.measured),
            budget_share: number(self.budget),
            budget_pages: (f64::from(cache_units) * self.budget + 1e-9) as u64,
            pages: self.pages,
            host_pages: self.host_pages,
            energy_j: number(self.energy_j),
            drained_j: number(self.drained_j),
            waited_s: span(self.due, self.began),
            sync_s: span(self.began, self.drained_from),
            drain_s: span(self.drained_from, self.empty),
            recharge_s: span(self.empty, self.recharged),
        }
    }
}

/// A detection of the dirty budget (DPBD: dirty page budget detection).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DetectionSummary {
    /// Simulated time when the detection was due, or was commanded.
    #[schemars(extend("unit" = "s"))]
    pub due_s: f64,
    /// Simulated time when the detection began to write dirty units back.
    #[schemars(extend("unit" = "s"))]
    pub began_s: f64,
    /// Units that a flush could program with the drained energy, as a share of the cache or the buffer.
    #[schemars(extend("unit" = "share"))]
    pub measured_share: f64,
    /// Dirty budget that follows from the detection, as a share of the cache or the buffer.
    #[schemars(extend("unit" = "share"))]
    pub budget_share: f64,
    /// Dirty budget that follows from the detection, in units.
    #[schemars(extend("unit" = "pages"))]
    pub budget_pages: u64,
    /// Programs on the capacitor's energy, of the detection and for host writes.
    #[schemars(extend("unit" = "pages"))]
    pub pages: u32,
    /// Programs on the capacitor's energy for host writes.
    #[schemars(extend("unit" = "pages"))]
    pub host_pages: u32,
    /// Energy of the full capacitor when draining began.
    #[schemars(extend("unit" = "j"))]
    pub energy_j: f64,
    /// Energy that controller and programs took from the capacitor.
    #[schemars(extend("unit" = "j"))]
    pub drained_j: f64,
    /// Time that the due detection waited until it began.
    #[schemars(extend("unit" = "s"))]
    pub waited_s: f64,
    /// Time in which dirty units were written back before draining.
    #[schemars(extend("unit" = "s"))]
    pub sync_s: f64,
    /// Time in which the drive ran on the capacitor.
    #[schemars(extend("unit" = "s"))]
    pub drain_s: f64,
    /// Time from the empty capacitor to the full one.
    #[schemars(extend("unit" = "s"))]
    pub recharge_s: f64,
}

/// Detections of the dirty budget.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Detections {
    /// Number of detections that have ended.
    #[schemars(extend("unit" = "detections"))]
    pub count: usize,
    /// The last detection that has ended; null if none has.
    pub last: Option<DetectionSummary>,
}

/// The capacitor at the end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CapacitorSummary {
    /// `charged`, or the stage of a detection or a recharge: `syncing`, `draining`, `settling`, `recharging`.
    pub stage: &'static str,
    /// Energy that an emergency flush could use at the end.
    #[schemars(extend("unit" = "j"))]
    pub energy_j: f64,
    /// Energy of the full capacitor at its age at the end.
    #[schemars(extend("unit" = "j"))]
    pub energy_j_full: f64,
    /// Energy of the full capacitor when new.
    #[schemars(extend("unit" = "j"))]
    pub energy_j_rated: f64,
    /// Share of the rated capacitance that is lost.
    #[schemars(extend("unit" = "share"))]
    pub loss_share: f64,
    /// Whether the capacitor has lost more than 30 % of its rated capacitance; a measured budget is then 0.
    pub worn_out: bool,
    /// Full discharges of the capacitor so far.
    #[schemars(extend("unit" = "discharges"))]
    pub cycles: u32,
    /// Units of the write cache or the write buffer that the full capacitor can save at its age at the end.
    #[schemars(extend("unit" = "pages"))]
    pub capability_pages: f64,
    /// Units of the write cache or the write buffer that may be dirty at the end.
    #[schemars(extend("unit" = "pages"))]
    pub budget_pages: u32,
    /// Detections of the dirty budget.
    pub detections: Detections,
}

impl CapacitorState {
    /// `capacitor` of the summary. The capacitor can save `capability_units`; the cache has `cache_units`, of which
    /// `budget_units` may be dirty.
    pub(crate) fn summary(
        &self,
        capability_units: f64,
        [cache_units, budget_units]: [u32; 2],
        detections: &[Detection],
    ) -> CapacitorSummary {
        CapacitorSummary {
            stage: self.stage,
            energy_j: number(self.energy_j),
            energy_j_full: number(self.energy_j_full),
            energy_j_rated: number(self.energy_j_rated),
            loss_share: number(self.loss_share),
            worn_out: self.is_worn_out,
            cycles: self.cycles,
            capability_pages: number(capability_units),
            budget_pages: budget_units,
            detections: Detections {
                count: detections.len(),
                last: detections.last().map(|last| last.summary(cache_units)),
            },
        }
    }
}

value! {
    Detection {
        due,
        began,
        drained_from,
        empty,
        recharged,
        pages,
        host_pages,
        energy_j,
        drained_j,
        measured,
        budget,
    }
}
