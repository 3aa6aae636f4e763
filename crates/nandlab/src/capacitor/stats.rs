//! What is recorded of the capacitor.

use super::CapacitorState;
use crate::base::numbers::number;
use crate::base::units::Time;
use schemars::JsonSchema;
use serde::Serialize;

/// A detection of the dirty page budget (DPBD).
#[derive(Clone, Copy, Debug, Default)]
pub struct Detection {
    /// When it was due, or commanded.
    pub due: Time,
    /// When it began with writing dirty pages back.
    pub began: Time,
    /// When the drive went over to the capacitor.
    pub drained_from: Time,
    /// When the capacitor was empty.
    pub empty: Time,
    /// When it was full again, and the budget came into force.
    pub recharged: Time,
    /// Pages written in between.
    pub pages: u32,
    /// Those of them that the host wrote meanwhile.
    pub host_pages: u32,
    /// What the capacitor held, in joules.
    pub energy_j: f64,
    /// What was taken from it, by the controller's time and the programs', in joules.
    pub drained_j: f64,
    /// The pages of a flush that this is enough for, as a share of the cache.
    pub measured: f64,
    /// The budget that follows from it, as a share of the cache.
    pub budget: f64,
}

impl Detection {
    /// The detection in the results, of a drive whose cache has so many pages.
    pub(crate) fn summary(&self, cache_pages: u32) -> DetectionSummary {
        let span = |from: Time, to: Time| number(to.saturating_sub(from).seconds());
        DetectionSummary {
            due_s: number(self.due.seconds()),
            began_s: number(self.began.seconds()),
            measured_share: number(self.measured),
            budget_share: number(self.budget),
            budget_pages: (f64::from(cache_pages) * self.budget + 1e-9) as u64,
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

/// A detection of the dirty page budget (DPBD), in the results.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DetectionSummary {
    /// When the detection was due, or commanded.
    #[schemars(extend("unit" = "s"))]
    pub due_s: f64,
    /// When the detection began with writing dirty pages back.
    #[schemars(extend("unit" = "s"))]
    pub began_s: f64,
    /// The pages of a flush that the measured energy is enough for, as a share of the cache.
    #[schemars(extend("unit" = "share"))]
    pub measured_share: f64,
    /// The budget that follows from the measurement, as a share of the cache.
    #[schemars(extend("unit" = "share"))]
    pub budget_share: f64,
    /// The budget in pages.
    #[schemars(extend("unit" = "pages"))]
    pub budget_pages: u64,
    /// Pages written while the capacitor was drained.
    #[schemars(extend("unit" = "pages"))]
    pub pages: u32,
    /// Of these the pages that the host wrote.
    #[schemars(extend("unit" = "pages"))]
    pub host_pages: u32,
    /// What the capacitor held.
    #[schemars(extend("unit" = "j"))]
    pub energy_j: f64,
    /// What was taken from the capacitor, by the controller's time and the programs'.
    #[schemars(extend("unit" = "j"))]
    pub drained_j: f64,
    /// From the due time to the beginning.
    #[schemars(extend("unit" = "s"))]
    pub waited_s: f64,
    /// How long dirty pages were written back.
    #[schemars(extend("unit" = "s"))]
    pub sync_s: f64,
    /// How long the drive ran on the capacitor.
    #[schemars(extend("unit" = "s"))]
    pub drain_s: f64,
    /// From the empty capacitor to the full one.
    #[schemars(extend("unit" = "s"))]
    pub recharge_s: f64,
}

/// Detections of the dirty page budget.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Detections {
    /// Detections.
    #[schemars(extend("unit" = "detections"))]
    pub count: usize,
    /// The last detection; null before the first.
    pub last: Option<DetectionSummary>,
}

/// The capacitor at the end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CapacitorSummary {
    /// `charged`, or where a detection or a recharge is: `syncing`, `draining`, `settling`, `recharging`.
    pub stage: &'static str,
    /// What an emergency flush could use.
    #[schemars(extend("unit" = "j"))]
    pub energy_j: f64,
    /// What the capacitor holds when full.
    #[schemars(extend("unit" = "j"))]
    pub energy_j_full: f64,
    /// What the capacitor held when new.
    #[schemars(extend("unit" = "j"))]
    pub energy_j_rated: f64,
    /// Share of the rated capacitance that is lost.
    #[schemars(extend("unit" = "share"))]
    pub loss_share: f64,
    /// Whether so much is lost that nothing may count on the capacitor.
    pub worn_out: bool,
    /// Full discharges.
    #[schemars(extend("unit" = "discharges"))]
    pub cycles: u32,
    /// Pages of the write cache that the full capacitor can save.
    #[schemars(extend("unit" = "pages"))]
    pub capability_pages: f64,
    /// Pages of the write cache that may be dirty.
    #[schemars(extend("unit" = "pages"))]
    pub budget_pages: u32,
    /// Detections of the dirty page budget.
    pub detections: Detections,
}

impl CapacitorState {
    /// `capacitor` of the summary: of a capacitor that can save so many pages of a cache of so many, of which so many may be
    /// dirty.
    pub(crate) fn summary(
        &self,
        capability_pages: f64,
        [cache_pages, budget_pages]: [u32; 2],
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
            capability_pages: number(capability_pages),
            budget_pages,
            detections: Detections {
                count: detections.len(),
                last: detections.last().map(|last| last.summary(cache_pages)),
            },
        }
    }
}
