//! What is recorded of the capacitor.

use super::CapacitorState;
use crate::base::numbers::number;
use crate::base::units::Time;
use serde_json::{Value, json};

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
    /// It in JSON, of a drive whose cache has so many pages.
    pub(crate) fn json(&self, cache_pages: u32) -> Value {
        let span = |from: Time, to: Time| number(to.saturating_sub(from).seconds());
        json!({
            "due_s": number(self.due.seconds()),
            "began_s": number(self.began.seconds()),
            "measured_share": number(self.measured),
            "budget_share": number(self.budget),
            "budget_pages": (f64::from(cache_pages) * self.budget + 1e-9) as u64,
            "pages": self.pages,
            "host_pages": self.host_pages,
            "energy_j": number(self.energy_j),
            "drained_j": number(self.drained_j),
            "waited_s": span(self.due, self.began),
            "sync_s": span(self.began, self.drained_from),
            "drain_s": span(self.drained_from, self.empty),
            "recharge_s": span(self.empty, self.recharged),
        })
    }
}

impl CapacitorState {
    /// `capacitor` of the summary: of a capacitor that can save so many pages of a cache of so many, of which so many may be
    /// dirty.
    pub(crate) fn json(
        &self,
        capability_pages: f64,
        [cache_pages, budget_pages]: [u32; 2],
        detections: &[Detection],
    ) -> Value {
        json!({
            "stage": self.stage,
            "energy_j": number(self.energy_j),
            "energy_j_full": number(self.energy_j_full),
            "energy_j_rated": number(self.energy_j_rated),
            "loss_share": number(self.loss_share),
            "worn_out": self.is_worn_out,
            "cycles": self.cycles,
            "capability_pages": number(capability_pages),
            "budget_pages": budget_pages,
            "detections": {
                "count": detections.len(),
                "last": detections.last().map(|last| last.json(cache_pages)),
            },
        })
    }
}
