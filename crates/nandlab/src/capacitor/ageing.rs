//! The capacitor: its energy and its ageing. Sections and equations are those of the aging-capacitor paper.

use super::CapacitorSpec;
use crate::base::state::state;

/// Share of the rated capacitance lost in [`RATED_S`] seconds at [`RATED_C`] degrees Celsius (Section II-B).
const RATED_LOSS: f64 = 0.30;
const RATED_S: f64 = 5.0 * 365.0 * 86_400.0;
const RATED_C: f64 = 60.0;

/// The rise of the temperature, in degrees, that halves the lifetime (law of Arrhenius as stated in Section II-B).
const HALVING_C: f64 = 10.0;

/// Share of the rated capacitance lost with each full discharge (Section IV-A).
const LOSS_PER_CYCLE: f64 = 1e-5;

/// A capacitor that has lost more than this share of its rated capacitance is worn out (Section II-B): a measured
/// budget is then 0.
const LOSS_MAX: f64 = 0.30;

/// The share by which the ESR has grown when the capacitor has lost [`LOSS_MAX`] of its capacitance (assumption, after
/// the usual criteria for the end of life of supercapacitors: capacitance down by 20 to 30 %, ESR doubled).
const ESR_GROWTH: f64 = 1.0;

/// A constant load on a capacitor with a series resistance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Power at the terminals, in watts.
    pub(super) watts: f64,
    /// Series resistance, in ohms.
    pub(super) ohms: f64,
    /// Lowest voltage of the terminals.
    pub(super) least_v: f64,
}

impl Load {
    /// The voltage of the terminals at which the discharge ends: the lowest allowed, or the voltage below which the
    /// capacitor cannot deliver the power whatever the current.
    fn terminal_v(&self) -> f64 {
        self.least_v.max((self.watts * self.ohms).sqrt())
    }

    /// The voltage of the capacitance at which the discharge ends: that of the terminals plus I R.
    pub(super) fn end_v(&self) -> f64 {
        let terminal = self.terminal_v();
        let drop = self.watts * self.ohms;
        if drop > 0.0 { terminal + drop / terminal } else { terminal }
    }

    /// A lower bound of the share of the discharged energy that reaches the terminals. The share of the loss, I R over
    /// the voltage of the capacitance, is highest at the end of the discharge.
    fn share(&self) -> f64 {
        if self.watts * self.ohms > 0.0 { self.terminal_v() / self.end_v() } else { 1.0 }
    }

    /// The resistance at which the discharge ends at `full_v` volts of the capacitance.
    pub(super) fn ohms_max(&self, full_v: f64) -> f64 {
        let drop = if full_v <= 2.0 * self.least_v {
            (full_v - self.least_v) * self.least_v
        } else {
            full_v * full_v / 4.0
        };
        drop / self.watts
    }
}

/// A capacitor that ages. Times are in seconds on the scaled clock since the start of the run.
#[derive(Clone, Debug)]
pub struct Capacitor {
    capacitance_f: f64,
    voltage_v: f64,
    voltage_min_v: f64,
    efficiency: f64,
    /// Series resistance of the new capacitor, in ohms.
    esr_ohm: f64,
    /// The highest power that the circuits draw during a flush, in watts.
    pub(super) load_w: f64,
    /// Age at the start of the run, in seconds.
    age_s: f64,
    /// Temperature profile: times in seconds, each with the degrees Celsius from that time on.
    temperature: Box<[(f64, f64)]>,
    /// Full discharges so far.
    cycles: u32,
    /// Power that the controller draws, in watts.
    pub controller_w: f64,
    /// Power that a program draws, in watts.
    pub program_w: f64,
}

/// Share of the rated capacitance lost per second at a temperature.
fn loss_per_s(celsius: f64) -> f64 {
    RATED_LOSS / RATED_S * libm::exp2((celsius - RATED_C) / HALVING_C)
}

impl Capacitor {
    /// The capacitor of a validated `[capacitor]` section; `None` if its capacitance is 0.
    pub fn new(spec: &CapacitorSpec) -> Option<Self> {
        if spec.capacitance_f <= 0.0 {
            return None;
        }
        Some(Self {
            capacitance_f: spec.capacitance_f,
            voltage_v: spec.voltage_v,
            voltage_min_v: spec.voltage_min_v,
            efficiency: spec.efficiency,
            esr_ohm: spec.esr_ohm,
            load_w: spec.controller_w + spec.program_w,
            age_s: spec.age_ns.seconds(),
            temperature: spec.temperature.iter().map(|&(from, c)| (from.seconds(), c)).collect(),
            cycles: 0,
            controller_w: spec.controller_w,
            program_w: spec.program_w,
        })
    }

    /// Share of the rated capacitance that is lost at time `at_s`, 0 to 1.
    pub fn loss(&self, at_s: f64) -> f64 {
        let mut loss = self.age_s * loss_per_s(self.temperature[0].1);
        for (i, &(from, celsius)) in self.temperature.iter().enumerate() {
            let to = self.temperature.get(i + 1).map_or(f64::INFINITY, |next| next.0);
            loss += (at_s.min(to) - from).max(0.0) * loss_per_s(celsius);
        }
        (loss + f64::from(self.cycles) * LOSS_PER_CYCLE).min(1.0)
    }

    /// Whether the capacitor has lost more than 30 % of its rated capacitance at time `at_s`.
    pub fn is_worn_out(&self, at_s: f64) -> bool {
        self.loss(at_s) > LOSS_MAX
    }

    /// Energy of the full capacitor at time `at_s`, in joules.
    pub fn energy_j(&self, at_s: f64) -> f64 {
        self.usable_j(self.loss(at_s))
    }

    /// Energy of the full capacitor when new, in joules.
    pub fn rated_j(&self) -> f64 {
        self.usable_j(0.0)
    }

    /// Energy of the full capacitor that reaches the circuits when it has lost the share `loss` of its capacitance, in
    /// joules: Eq. 1 with the voltage of the capacitance at the end of the discharge, less a bound of the energy that
    /// the ESR takes. Without ESR this is Eq. 1. The load is the highest of a flush, so the energy is a lower bound.
    fn usable_j(&self, loss: f64) -> f64 {
        let load = Load {
            watts: self.load_w / self.efficiency,
            ohms: self.esr_ohm * (1.0 + ESR_GROWTH * loss / LOSS_MAX),
            least_v: self.voltage_min_v,
        };
        let (full, end) = (self.voltage_v, load.end_v());
        let stored_j = 0.5 * self.capacitance_f * (full * full - end * end).max(0.0);
        stored_j * self.efficiency * load.share() * (1.0 - loss)
    }

    /// Counts `times` further full discharges.
    pub fn cycle(&mut self, times: u32) {
        self.cycles = self.cycles.saturating_add(times);
    }

    /// Full discharges so far.
    pub fn cycles(&self) -> u32 {
        self.cycles
    }

    /// Energy that the controller takes in `controller_ns`, and programs in a total of `program_ns`, in joules (Eq. 3
    /// to 5).
    pub fn spent_j(&self, controller_ns: f64, program_ns: f64) -> f64 {
        (self.controller_w * controller_ns + self.program_w * program_ns) * 1e-9
    }
}

state! {
    Capacitor { cycles }
    fixed {
        capacitance_f,
        voltage_v,
        voltage_min_v,
        efficiency,
        esr_ohm,
        load_w,
        age_s,
        temperature,
        controller_w,
        program_w,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::{DAY, Span};
    use crate::capacitor::{BudgetSteps, FlushMethod, FlushMode, FlushOrder};

    const YEAR_S: f64 = 365.0 * 86_400.0;

    fn spec(temperature: Vec<(Span, f64)>) -> CapacitorSpec {
        CapacitorSpec {
            capacitance_f: 1.0,
            voltage_v: 5.5,
            voltage_min_v: 2.5,
            esr_ohm: 0.0,
            efficiency: 0.9,
            temperature,
            age_ns: Span::ZERO,
            controller_w: 1.0,
            program_w: 0.08,
            detect_every_ns: 20 * DAY,
            detect_grace_ns: DAY,
            recharge_ns: Span::ZERO,
            margin: 0.1,
            steps: BudgetSteps::Five,
            flush: FlushMethod::Plain,
            flush_mode: FlushMode::Native,
            flush_concurrency: 0,
            flush_order: FlushOrder::Oldest,
            metadata_bytes: 0,
        }
    }

    #[test]
    fn energy_follows_equation_1() {
        let capacitor = Capacitor::new(&spec(vec![(Span::ZERO, 25.0)])).unwrap();
        // 0.5 x 1 F x (30.25 - 6.25) V^2 x 0.9
        assert!((capacitor.energy_j(0.0) - 10.8).abs() < 1e-12);
    }

    /// Energy that reaches the circuits at a constant load, by integration in small steps.
    fn discharged_j(capacitor: &Capacitor, loss: f64) -> f64 {
        let watts = capacitor.load_w / capacitor.efficiency;
        let ohms = capacitor.esr_ohm * (1.0 + loss / 0.3);
        let farad = capacitor.capacitance_f * (1.0 - loss);
        let mut volts = capacitor.voltage_v;
        let step_s = farad * volts * volts / watts / 2e5;
        let mut seconds = 0.0;
        loop {
            let discriminant = volts * volts - 4.0 * watts * ohms;
            let terminal = 0.5 * (volts + discriminant.max(0.0).sqrt());
            if discriminant < 0.0 || terminal < capacitor.voltage_min_v {
                return seconds * watts * capacitor.efficiency;
            }
            seconds += step_s;
            volts -= watts / terminal / farad * step_s;
        }
    }

    #[test]
    fn with_an_esr_the_energy_is_a_lower_bound_of_the_integrated_discharge() {
        // By resistance, the share of the integrated energy that the bound promises at least.
        for (esr_ohm, least) in [(0.0, 0.999), (0.01, 0.99), (0.1, 0.95), (1.0, 0.7), (3.0, 0.5), (5.0, 0.3)]
        {
            for (load_w, loss) in [(1.0, 0.0), (0.3, 0.15), (1.2, 0.3), (2.0, 0.0)] {
                let spec = CapacitorSpec { esr_ohm, ..spec(vec![(Span::ZERO, 25.0)]) };
                let mut capacitor = Capacitor::new(&spec).unwrap();
                capacitor.load_w = load_w;
                let (bound, exact) = (capacitor.usable_j(loss), discharged_j(&capacitor, loss));
                assert!(bound <= exact * (1.0 + 1e-4), "{esr_ohm} ohm, {load_w} W: {bound} above {exact}");
                // At a high load little is usable, and the bound is loose.
                if load_w <= 1.0 && loss == 0.0 {
                    assert!(bound >= least * exact, "{esr_ohm} ohm, {load_w} W: {bound} of {exact}");
                }
            }
        }
    }

    #[test]
    fn the_esr_doubles_when_30_percent_of_the_capacitance_are_lost() {
        // The load of 0.9 W takes 1 W at the terminals. With 0.5 ohm the discharge ends at 2.5 + 0.5 / 2.5 = 2.7 V of
        // the capacitance, and with 1 ohm at 2.9 V. Of the discharged energy at least 2.5 / 2.7 and 2.5 / 2.9 are
        // delivered.
        let spec = CapacitorSpec { esr_ohm: 0.5, ..spec(vec![(Span::ZERO, 25.0)]) };
        let mut capacitor = Capacitor::new(&spec).unwrap();
        capacitor.load_w = 0.9;
        let new = 0.5 * (30.25 - 2.7 * 2.7) * 0.9 * 2.5 / 2.7;
        let old = 0.5 * 0.7 * (30.25 - 2.9 * 2.9) * 0.9 * 2.5 / 2.9;
        assert!((capacitor.usable_j(0.0) - new).abs() < 1e-12, "{} {new}", capacitor.usable_j(0.0));
        assert!((capacitor.usable_j(0.3) - old).abs() < 1e-12, "{} {old}", capacitor.usable_j(0.3));
    }

    #[test]
    fn thirty_percent_are_lost_in_five_years_at_60_degrees_and_half_as_much_at_50() {
        let at = |celsius| Capacitor::new(&spec(vec![(Span::ZERO, celsius)])).unwrap();
        assert!((at(60.0).loss(5.0 * YEAR_S) - 0.30).abs() < 1e-12);
        assert!((at(50.0).loss(5.0 * YEAR_S) - 0.15).abs() < 1e-12);
        assert!((at(70.0).loss(2.5 * YEAR_S) - 0.30).abs() < 1e-12);
        assert!(!at(60.0).is_worn_out(4.99 * YEAR_S) && at(60.0).is_worn_out(5.01 * YEAR_S));
        assert!((at(60.0).energy_j(5.0 * YEAR_S) - 0.7 * 10.8).abs() < 1e-9);
    }

    #[test]
    fn a_capacitor_that_has_lost_exactly_30_percent_is_not_worn_out() {
        // In floating point too, five years at 60 degrees take exactly 30 %.
        let mut capacitor = Capacitor::new(&spec(vec![(Span::ZERO, 60.0)])).unwrap();
        assert_eq!(capacitor.loss(5.0 * YEAR_S), 0.30);
        assert!(!capacitor.is_worn_out(5.0 * YEAR_S));
        capacitor.cycle(1);
        assert!(capacitor.is_worn_out(5.0 * YEAR_S), "a discharge more exceeds the limit");
    }

    #[test]
    fn the_losses_of_a_temperature_profile_and_of_discharges_add_up() {
        // A year takes 6 % at 60 degrees (30 % / 5) and 3 % at 50; a discharge takes 1e-5.
        let mut capacitor = Capacitor::new(&spec(vec![(Span::ZERO, 60.0), (365 * DAY, 50.0)])).unwrap();
        assert!((capacitor.loss(0.5 * YEAR_S) - 0.03).abs() < 1e-12);
        assert!((capacitor.loss(3.0 * YEAR_S) - (0.06 + 2.0 * 0.03)).abs() < 1e-12);
        for _ in 0..1000 {
            capacitor.cycle(1);
        }
        assert!((capacitor.loss(0.0) - 0.01).abs() < 1e-12);
    }

    #[test]
    fn the_age_at_the_start_was_spent_at_the_first_temperature() {
        let mut old = spec(vec![(Span::ZERO, 60.0), (DAY, 20.0)]);
        old.age_ns = 365 * DAY;
        assert!((Capacitor::new(&old).unwrap().loss(0.0) - 0.06).abs() < 1e-12);
    }
}
