//! `[capacitor]` of a spec.

use crate::base::units::Span;
pub use crate::ftl::FlushMethod;

/// `[capacitor]`: what keeps the drive alive when power fails. Equations and the method are those of C. Gao et al.,
/// "Aging Capacitor Supported Cache Management Scheme for Solid-State Drives", IEEE TCAD 39(10), 2020.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacitorSpec {
    /// Farad, of the new capacitor; 0: there is none.
    pub capacitance_f: f64,
    /// Volts it is charged to.
    pub voltage_v: f64,
    /// Volts: the least the circuits work at.
    pub voltage_min_v: f64,
    /// Share of the energy that reaches the circuits, above 0: m of Eq. 1.
    pub efficiency: f64,
    /// From so long after the start on the scaled clock, degrees Celsius (-40 to 125); the first from 0, rising in time.
    pub temperature: Vec<(Span, f64)>,
    /// Age at the start, spent at the first temperature.
    pub age_ns: Span,
    /// Watts of the controller: U_nor x I_nor of Eq. 4.
    pub controller_w: f64,
    /// Watts of a program operation: U_r x I_r of Eq. 5.
    pub program_w: f64,
    /// Time between two budget detections, on the scaled clock.
    pub detect_every_ns: Span,
    /// How long a due detection waits for an idle time, on the scaled clock.
    pub detect_grace_ns: Span,
    /// Time to charge it, on the scaled clock.
    pub recharge_ns: Span,
    /// What the budget stays below the measured share of the cache, as a share of the cache.
    pub margin: f64,
    /// What the budget can be.
    pub steps: BudgetSteps,
    /// How dirty pages are written at power loss and at budget detection.
    pub flush: FlushMethod,
    /// Programs under way at a time under [`FlushMethod::Plain`]; 0: every die.
    pub flush_concurrency: u32,
    /// Which dirty pages are written first.
    pub flush_order: FlushOrder,
    /// So many bytes from address 0 hold metadata, for [`FlushOrder::Metadata`].
    pub metadata_bytes: u64,
}

/// `capacitor.steps`: what the dirty budget can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetSteps {
    /// 100, 90, 80, 70 or 0 % of the cache.
    Five,
    /// Any share.
    Continuous,
}

/// `capacitor.flush_order`: which dirty pages are written first at power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushOrder {
    /// The least recently used.
    Oldest,
    /// The most recently used.
    Newest,
    /// Metadata, then the least recently used.
    Metadata,
}
