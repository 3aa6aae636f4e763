//! The section `[capacitor]` of the spec.

use super::ageing::Load;
use crate::base::units::Span;
use crate::flash::ProgramTime;
pub use crate::ftl::FlushMethod;
use crate::spec::{
    AGE, ANY_TIME, Check, Choices, Dimension, Follows, FromVal, OHMS, Resolved, Rule, SHARE, SHARE_ABOVE_0,
    SOME_TIME, VOLTS, Val, ValueKind, WATTS, choices, int, key, num, param, section, shorten, show_num,
    show_real, show_time,
};

/// The largest power that a spec accepts.
const WATTS_MAX: f64 = 1e6;

section! {
    /// `[capacitor]`: the capacitor that powers the drive when power fails. Equations and method: C. Gao et al., "Aging
    /// Capacitor Supported Cache Management Scheme for Solid-State Drives", IEEE TCAD 39(10), 2020.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CapacitorSpec {
        /// Capacitance of the new capacitor, in farad; 0: no capacitor.
        pub capacitance_f: f64 = key(
            "capacitor.capacitance",
            ValueKind::Si(Dimension::Capacitance),
            "\"0F\"",
            "capacitance of the new backup capacitor, which powers the drive when power fails (PLP); 0F: no capacitor",
        ),
        /// Voltage of the charged capacitor.
        pub voltage_v: f64 = key("capacitor.voltage", VOLTS, "\"5.5V\"", "voltage of the charged capacitor")
            .note("assumption: rating of the coin supercapacitors in drives of that time"),
        /// Lowest voltage at which the circuits work.
        pub voltage_min_v: f64 =
            key("capacitor.voltage_min", VOLTS, "\"2.5V\"", "lowest voltage at which the circuits work")
                .note("assumption"),
        /// Equivalent series resistance of the new capacitor, in ohms. It grows in proportion to the lost capacitance,
        /// to twice its value at a loss of 30 %.
        pub esr_ohm: f64 = key(
            "capacitor.esr",
            OHMS,
            "\"0ohm\"",
            "equivalent series resistance of the new capacitor; doubles with a loss of 30 % of the capacitance",
        )
        .note(
            "Eq. 1 has none; datasheets of supercapacitors: tens to hundreds of ohms for small coin cells, tens of \
             milliohms for large ones",
        ),
        /// Share of the energy that reaches the circuits, above 0: m of Eq. 1.
        pub efficiency: f64 = key(
            "capacitor.efficiency",
            SHARE_ABOVE_0,
            "0.9",
            "share of the energy that reaches the circuits: m of Eq. 1",
        )
        .note("W. Choi et al., as the capacitor paper cites it"),
        /// Temperature profile: time since the start on the scaled clock (the first 0, then rising), and degrees
        /// Celsius (-40 to 125) from that time on.
        pub temperature: Vec<(Span, f64)> = key(
            "capacitor.temperature",
            TEMPERATURE,
            "25",
            "degrees Celsius, or a profile over the scaled clock that begins at 0",
        )
        .note("assumption")
            => |values, path| match values.val(path) {
                Val::List(profile) => {
                    profile.iter().map(|item| (item.read("from"), item.read("celsius"))).collect()
                }
                celsius => vec![(Span::ZERO, celsius.num())],
            },
        /// Age at the start, spent at the first temperature of the profile.
        pub age_ns: Span =
            key("capacitor.age", AGE, "\"0d\"", "age at the start, spent at the first temperature"),
        /// Power of the controller in watts: U_nor x I_nor of Eq. 4.
        pub controller_w: f64 = key(
            "capacitor.controller_power",
            WATTS,
            "\"1W\"",
            "power of the controller: U_nor x I_nor of Eq. 4",
        )
        .note("assumption"),
        /// Power of a program operation in watts: U_r x I_r of Eq. 5.
        pub program_w: f64 = key(
            "capacitor.program_power",
            WATTS,
            "\"82.5mW\"",
            "power of a program operation: U_r x I_r of Eq. 5",
        )
        .note("assumption: 3.3 V x 25 mA, as energy.program; follows from energy.program where only this is set")
        .follows(Follows::Derived { key: "energy.program", by: power_of_a_program }),
        /// Time from the end of a budget detection (or the start) until the next one is due, on the scaled clock.
        pub detect_every_ns: Span = key(
            "capacitor.detect_every",
            SOME_TIME,
            "\"20d\"",
            "time from the end of a budget detection (or the start) until the next one is due, on the scaled clock",
        )
        .note("capacitor paper, Section IV-A"),
        /// Longest time that a due detection waits for an idle drive, on the scaled clock.
        pub detect_grace_ns: Span = key(
            "capacitor.detect_grace",
            ANY_TIME,
            "\"1d\"",
            "longest time that a due detection waits for an idle drive, on the scaled clock",
        )
        .note("capacitor paper, Section IV-A"),
        /// Time from the empty capacitor to the full one, on the scaled clock.
        pub recharge_ns: Span = key(
            "capacitor.recharge",
            ANY_TIME,
            "\"10s\"",
            "time to recharge the empty capacitor, on the scaled clock",
        )
        .note("capacitor paper, Section IV-A"),
        /// The distance that the budget keeps below the measured capability, as a share of the cache.
        pub margin: f64 = key(
            "capacitor.margin",
            SHARE,
            "0.10",
            "distance of the budget below the measured capability, as a share of the cache",
        )
        .note("capacitor paper, Section IV-A"),
        /// The values that a measured budget can have.
        pub steps: BudgetSteps = key(
            "capacitor.steps",
            ValueKind::Slot(BudgetSteps::CHOICES),
            "\"five\"",
            "values that the measured budget can have",
        )
        .note("capacitor paper, Section IV-A"),
        /// How dirty units are written at power loss and at budget detection.
        pub flush: FlushMethod = key(
            "capacitor.flush",
            ValueKind::Slot(FlushMethod::CHOICES),
            "\"plain\"",
            "how dirty units are written at power loss and at budget detection",
        ),
        /// The mode of the superblocks to which a flush writes.
        pub flush_mode: FlushMode = key(
            "capacitor.flush_mode",
            ValueKind::Slot(FlushMode::CHOICES),
            "\"native\"",
            "mode of the blocks to which dirty pages are written at power loss and at budget detection",
        ),
        /// Programs under way at a time under [`FlushMethod::Plain`]; 0: one per die.
        pub flush_concurrency: u32 = key(
            "capacitor.flush_concurrency",
            int(0, 1 << 17),
            "0",
            "programs under way at a time with flush = \"plain\"; 0: one per die",
        ),
        /// The order in which an emergency flush writes dirty units.
        pub flush_order: FlushOrder = key(
            "capacitor.flush_order",
            ValueKind::Slot(FlushOrder::CHOICES),
            "\"oldest\"",
            "order in which dirty units are written at power loss",
        ),
        /// Size of the metadata, which begins at address 0, for [`FlushOrder::Metadata`].
        pub metadata_bytes: u64 = key(
            "capacitor.metadata",
            ValueKind::Size { min: 0, max: 1 << 52, step: 512 },
            "\"0B\"",
            "size of the metadata, which begins at address 0, for flush_order = \"metadata\"",
        ),
    }
}

/// Degrees Celsius in the range for which the components of a drive are made (assumption).
const CELSIUS: ValueKind = num(-40.0, 125.0);

/// A number or a profile of at most 32 points: `spec show` writes a profile in one line.
const TEMPERATURE: ValueKind = ValueKind::Either(&[
    CELSIUS,
    ValueKind::List(
        &[
            param("from", ANY_TIME, "", "time since the start, on the scaled clock; 0 for the first item"),
            param("celsius", CELSIUS, "", "degrees Celsius from that time on"),
        ],
        32,
    ),
]);

choices! {
    /// `capacitor.steps`: the values that the measured dirty budget can have.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BudgetSteps {
        /// 100, 90, 80, 70 or 0 % of the cache.
        Five = "five": "100, 90, 80, 70 or 0 % of the cache",
        /// Any share of the cache.
        Continuous = "continuous": "any share of the cache",
    }
}

choices! {
    /// `capacitor.flush_mode`: the mode of the superblocks to which a flush writes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FlushMode {
        /// With all bits of the cells.
        Native = "native": "with all bits of the cells",
        /// In SLC mode, with the times of `[slc]`: quicker programs, and more blocks that are kept free.
        Slc = "slc": "in SLC mode, with the times of [slc]: quicker programs, and more blocks kept free",
    }
}

choices! {
    /// `capacitor.flush_order`: the order in which dirty units are written at power loss.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FlushOrder {
        /// The least recently used unit first.
        Oldest = "oldest": "the least recently used unit first",
        /// The most recently used unit first.
        Newest = "newest": "the most recently used unit first",
        /// Metadata first; within metadata and the rest the least recently used unit first.
        Metadata = "metadata": "metadata first, then as \"oldest\"",
    }
}

pub(crate) const RULES: &[Rule] =
    &[energy, esr, temperatures, detections, flush_concurrency, flush_order, flush_mode];

/// Eq. 1 must give an energy above 0, and a flush must take energy: a detection ends only when the capacitor is empty.
fn energy(check: &mut Check<'_>) -> Option<()> {
    let (full, least) = (check.num("capacitor.voltage")?, check.num("capacitor.voltage_min")?);
    if least >= full {
        let shown = |volts| shorten(&show_real(volts, Dimension::Voltage));
        let message = format!(
            "expected a lowest voltage below the charged voltage of {}, found {}",
            shown(full),
            shown(least)
        );
        let remedy = "set capacitor.voltage_min below capacitor.voltage";
        check.error(&["capacitor.voltage_min", "capacitor.voltage"], message, remedy);
    }
    let keys = ["capacitor.controller_power", "capacitor.program_power"];
    if check.num("capacitor.capacitance")? > 0.0 && keys.iter().all(|key| check.num(key) == Some(0.0)) {
        let message = "the capacitor never empties if neither controller nor programs draw power";
        let remedy = "set one of the two powers above 0, such as capacitor.controller_power = \"1W\"";
        check.error(&keys, message, remedy);
    }
    Some(())
}

/// `capacitor.program_power` in watts, from `energy.program` and the mean duration of a program.
fn power_of_a_program(values: &Resolved) -> Option<Val> {
    let program = ProgramTime::from_val(values.get("timing.program")?);
    let watts = values.get("energy.program")?.num() / program.mean_s();
    Some(Val::Si(watts.min(WATTS_MAX), Dimension::Power))
}

/// With the ESR of the new capacitor and a program on every die, some of the charge must be usable.
fn esr(check: &mut Check<'_>) -> Option<()> {
    const DIES: [&str; 3] = ["drive.channels", "drive.chips_per_channel", "drive.dies_per_chip"];
    let esr = check.num("capacitor.esr")?;
    let (full, least) = (check.num("capacitor.voltage")?, check.num("capacitor.voltage_min")?);
    let (controller, program) =
        (check.num("capacitor.controller_power")?, check.num("capacitor.program_power")?);
    let dies = DIES.iter().try_fold(1, |dies, key| Some(dies * check.int(key)?))?;
    // Rounded to a microwatt, as the message shows it.
    let watts = ((controller + dies as f64 * program) * 1e6).round() / 1e6;
    let load = Load { watts: watts / check.num("capacitor.efficiency")?, ohms: esr, least_v: least };
    if esr > 0.0 && least < full && load.end_v() >= full {
        let most = load.ohms_max(full);
        let shown = |value, dimension| shorten(&show_real(value, dimension));
        let message = format!(
            "nothing of the charge is usable: with the controller and a program on every die ({}) the terminals of the \
             capacitor fall below {} at {} already",
            shown(watts, Dimension::Power),
            shown(least, Dimension::Voltage),
            shown(full, Dimension::Voltage)
        );
        let remedy = format!(
            "set capacitor.esr below {} mohm, or capacitor.voltage higher",
            show_num((most * 1e6).floor() / 1e3)
        );
        check.error(&["capacitor.esr", "capacitor.voltage"], message, remedy);
    }
    Some(())
}

fn temperatures(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "capacitor.temperature";
    let Val::List(profile) = check.get(KEY)? else { return None };
    let first = profile.first()?.field("from").int();
    if first > 0 {
        let message = format!("expected a profile that begins at \"0d\", found {}", show_time(first));
        check.error_in_list(KEY, 0, "from", message, "set from = \"0d\" in the first item");
    }
    for (i, pair) in (1..).zip(profile.windows(2)) {
        let (before, from) = (pair[0].field("from").int(), pair[1].field("from").int());
        if from <= before {
            let (before, from) = (show_time(before), show_time(from));
            let message = format!("expected a time after the {before} of the previous item, found {from}");
            let remedy = "order the items by rising time";
            check.error_in_list(KEY, i, "from", message, remedy);
        }
    }
    Some(())
}

fn detections(check: &mut Check<'_>) -> Option<()> {
    let every = check.int("capacitor.detect_every")?;
    let shown = show_time(every);
    let (grace, recharge) = (check.int("capacitor.detect_grace")?, check.int("capacitor.recharge")?);
    if grace > every {
        let message = format!(
            "a detection waits {} for an idle drive, but the next one is due after {shown}",
            show_time(grace)
        );
        let remedy =
            format!("set capacitor.detect_grace to at most \"{shown}\", or capacitor.detect_every higher");
        check.error(&["capacitor.detect_grace", "capacitor.detect_every"], message, remedy);
    }
    if recharge >= every {
        let message =
            format!("a recharge takes {}, but the next detection is due after {shown}", show_time(recharge));
        let remedy = format!("set capacitor.recharge below \"{shown}\", or capacitor.detect_every higher");
        check.error(&["capacitor.recharge", "capacitor.detect_every"], message, remedy);
    }
    Some(())
}

fn flush_concurrency(check: &mut Check<'_>) -> Option<()> {
    const KEYS: [&str; 4] =
        ["capacitor.flush_concurrency", "drive.channels", "drive.chips_per_channel", "drive.dies_per_chip"];
    let programs = check.int(KEYS[0])?;
    let dies = KEYS[1..].iter().try_fold(1, |dies, key| Some(dies * check.int(key)?))?;
    if programs > dies {
        let message = format!("{programs} programs at a time, but the drive has {dies} dies");
        let remedy = format!("set capacitor.flush_concurrency to at most {dies}, or 0 for one per die");
        check.error(&KEYS, message, remedy);
    }
    Some(())
}

/// Cells of one bit have no other mode; GC in the flush moves units of superblocks without SLC mode.
fn flush_mode(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "capacitor.flush_mode";
    if !check.is(KEY, "slc") {
        return None;
    }
    if check.is("drive.cell", "slc") {
        let message = "cells of one bit (drive.cell = \"slc\") have no SLC mode besides";
        check.error(&[KEY, "drive.cell"], message, "set capacitor.flush_mode = \"native\"");
    } else if check.get("power.gc_in_flush").is_some_and(Val::bool) {
        let message = "GC in the flush (power.gc_in_flush) makes room for a flush without SLC mode";
        let remedy = "set power.gc_in_flush = false, or capacitor.flush_mode = \"native\"";
        check.error(&[KEY, "power.gc_in_flush"], message, remedy);
    }
    Some(())
}

fn flush_order(check: &mut Check<'_>) -> Option<()> {
    if check.tag("capacitor.flush_order")? == "metadata" && check.int("capacitor.metadata")? == 0 {
        let message = "\"metadata\" has no effect with capacitor.metadata = \"0B\"";
        let remedy = "set capacitor.metadata, such as \"64MiB\", or capacitor.flush_order = \"oldest\"";
        check.error(&["capacitor.flush_order", "capacitor.metadata"], message, remedy);
    }
    Some(())
}
