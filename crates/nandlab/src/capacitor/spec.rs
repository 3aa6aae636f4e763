//! `[capacitor]`.

use crate::base::units::Span;
pub use crate::ftl::FlushMethod;
use crate::spec::{
    AGE, ANY_TIME, Check, Choices, Dimension, Rule, SHARE, SHARE_ABOVE_0, SOME_TIME, VOLTS, Val, ValueKind,
    WATTS, choices, int, key, num, param, section, shorten, show_real, show_time,
};

section! {
    /// `[capacitor]`: what keeps the drive alive when power fails. Equations and the method are those of C. Gao et al.,
    /// "Aging Capacitor Supported Cache Management Scheme for Solid-State Drives", IEEE TCAD 39(10), 2020.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CapacitorSpec {
        /// Farad, of the new capacitor; 0: there is none.
        pub capacitance_f: f64 = key(
            "capacitor.capacitance",
            ValueKind::Si(Dimension::Capacitance),
            "\"0F\"",
            "what keeps the drive alive when power fails, when new; 0F: no capacitor",
        ),
        /// Volts it is charged to.
        pub voltage_v: f64 = key("capacitor.voltage", VOLTS, "\"5.5V\"", "voltage it is charged to")
            .note("assumption: rating of the coin supercapacitors in drives of that time"),
        /// Volts: the least the circuits work at.
        pub voltage_min_v: f64 =
            key("capacitor.voltage_min", VOLTS, "\"2.5V\"", "least voltage the circuits work at")
                .note("assumption"),
        /// Share of the energy that reaches the circuits, above 0: m of Eq. 1.
        pub efficiency: f64 = key(
            "capacitor.efficiency",
            SHARE_ABOVE_0,
            "0.9",
            "share of the energy that reaches the circuits: m of Eq. 1",
        )
        .note("W. Choi et al., as the capacitor paper cites it"),
        /// From so long after the start on the scaled clock, degrees Celsius (-40 to 125); the first from 0, rising in time.
        pub temperature: Vec<(Span, f64)> = key(
            "capacitor.temperature",
            TEMPERATURE,
            "25",
            "degrees Celsius, or a profile of them over the scaled clock, the first from 0",
        )
        .note("assumption")
            => |values, path| match values.val(path) {
                Val::List(profile) => {
                    profile.iter().map(|item| (item.read("from"), item.read("celsius"))).collect()
                }
                celsius => vec![(Span::ZERO, celsius.num())],
            },
        /// Age at the start, spent at the first temperature.
        pub age_ns: Span =
            key("capacitor.age", AGE, "\"0d\"", "age at the start, spent at the first temperature"),
        /// Watts of the controller: U_nor x I_nor of Eq. 4.
        pub controller_w: f64 = key(
            "capacitor.controller_power",
            WATTS,
            "\"1W\"",
            "power of the controller: U_nor x I_nor of Eq. 4",
        )
        .note("assumption"),
        /// Watts of a program operation: U_r x I_r of Eq. 5.
        pub program_w: f64 = key(
            "capacitor.program_power",
            WATTS,
            "\"82.5mW\"",
            "power of a program operation: U_r x I_r of Eq. 5",
        )
        .note("assumption: 3.3 V x 25 mA, as energy.program"),
        /// Time between two budget detections, on the scaled clock.
        pub detect_every_ns: Span = key(
            "capacitor.detect_every",
            SOME_TIME,
            "\"20d\"",
            "time between budget detections, on the scaled clock",
        )
        .note("capacitor paper, Section IV-A"),
        /// How long a due detection waits for an idle time, on the scaled clock.
        pub detect_grace_ns: Span = key(
            "capacitor.detect_grace",
            ANY_TIME,
            "\"1d\"",
            "how long a due detection waits for an idle time, on the scaled clock",
        )
        .note("capacitor paper, Section IV-A"),
        /// Time to charge it, on the scaled clock.
        pub recharge_ns: Span = key(
            "capacitor.recharge",
            ANY_TIME,
            "\"10s\"",
            "time to charge it again, on the scaled clock",
        )
        .note("capacitor paper, Section IV-A"),
        /// What the budget stays below the measured share of the cache, as a share of the cache.
        pub margin: f64 = key(
            "capacitor.margin",
            SHARE,
            "0.10",
            "share of the cache that the budget stays below what was measured",
        )
        .note("capacitor paper, Section IV-A"),
        /// What the budget can be.
        pub steps: BudgetSteps = key(
            "capacitor.steps",
            ValueKind::Slot(BudgetSteps::CHOICES),
            "\"five\"",
            "what the measured budget can be",
        )
        .note("capacitor paper, Section IV-A"),
        /// How dirty pages are written at power loss and at budget detection.
        pub flush: FlushMethod = key(
            "capacitor.flush",
            ValueKind::Slot(FlushMethod::CHOICES),
            "\"plain\"",
            "how dirty pages are written at power loss",
        ),
        /// Programs under way at a time under [`FlushMethod::Plain`]; 0: every die.
        pub flush_concurrency: u32 = key(
            "capacitor.flush_concurrency",
            int(0, 1 << 17),
            "0",
            "programs under way at a time with flush = \"plain\"; 0: as many as dies",
        ),
        /// Which dirty pages are written first.
        pub flush_order: FlushOrder = key(
            "capacitor.flush_order",
            ValueKind::Slot(FlushOrder::CHOICES),
            "\"oldest\"",
            "which dirty pages are written first at power loss",
        ),
        /// So many bytes from address 0 hold metadata, for [`FlushOrder::Metadata`].
        pub metadata_bytes: u64 = key(
            "capacitor.metadata",
            ValueKind::Size { min: 0, max: 1 << 52, step: 512 },
            "\"0B\"",
            "so many bytes from address 0 hold metadata, for flush_order = \"metadata\"",
        ),
    }
}

/// Degrees Celsius, as wide as the parts of a drive are made for (assumption).
const CELSIUS: ValueKind = num(-40.0, 125.0);

/// So few that `show` has them in one line, of which the reader takes 64 points.
const TEMPERATURE: ValueKind = ValueKind::Either(&[
    CELSIUS,
    ValueKind::List(
        &[
            param(
                "from",
                ANY_TIME,
                "",
                "from so long after the start, on the scaled clock; the first from 0",
            ),
            param("celsius", CELSIUS, "", "degrees Celsius from then on"),
        ],
        32,
    ),
]);

choices! {
    /// `capacitor.steps`: what the dirty budget can be.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BudgetSteps {
        /// 100, 90, 80, 70 or 0 % of the cache.
        Five = "five": "100, 90, 80, 70 or 0 % of the cache",
        /// Any share.
        Continuous = "continuous": "any share of the cache",
    }
}

choices! {
    /// `capacitor.flush_order`: which dirty pages are written first at power loss.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FlushOrder {
        /// The least recently used.
        Oldest = "oldest": "the least recently used page first",
        /// The most recently used.
        Newest = "newest": "the most recently used page first",
        /// Metadata, then the least recently used.
        Metadata = "metadata": "metadata first, then as \"oldest\"",
    }
}

pub(crate) const RULES: &[Rule] = &[energy, temperatures, detections, flush_concurrency, flush_order];

/// Eq. 1 must leave some energy, and a flush must cost some: a detection goes on until there is none.
fn energy(check: &mut Check<'_>) -> Option<()> {
    let (full, least) = (check.num("capacitor.voltage")?, check.num("capacitor.voltage_min")?);
    if least >= full {
        let shown = |volts| shorten(&show_real(volts, Dimension::Voltage));
        let message =
            format!("the least voltage {} is not below the {} of charging", shown(least), shown(full));
        let remedy = "set capacitor.voltage_min below capacitor.voltage";
        check.error(&["capacitor.voltage_min", "capacitor.voltage"], message, remedy);
    }
    let keys = ["capacitor.controller_power", "capacitor.program_power"];
    if check.num("capacitor.capacitance")? > 0.0 && keys.iter().all(|key| check.num(key) == Some(0.0)) {
        let message = "with no power in the controller and none in programs the capacitor never empties";
        let remedy = "set one of them above 0, such as capacitor.controller_power = \"1W\"";
        check.error(&keys, message, remedy);
    }
    Some(())
}

fn temperatures(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "capacitor.temperature";
    let Val::List(profile) = check.get(KEY)? else { return None };
    let first = profile.first()?.field("from").int();
    if first > 0 {
        let message = format!("begins {} after the start", show_time(first));
        check.error_in_list(KEY, 0, "from", message, "the first is from \"0d\"");
    }
    for (i, pair) in (1..).zip(profile.windows(2)) {
        let (before, from) = (pair[0].field("from").int(), pair[1].field("from").int());
        if from <= before {
            let (before, from) = (show_time(before), show_time(from));
            let message = format!("{from} is not after the {before} before it");
            let remedy = "order the temperatures by time, each after the last";
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
            "a detection waits {} for an idle time and the next is due after {shown}",
            show_time(grace)
        );
        let remedy =
            format!("set capacitor.detect_grace to at most \"{shown}\", or capacitor.detect_every higher");
        check.error(&["capacitor.detect_grace", "capacitor.detect_every"], message, remedy);
    }
    if recharge >= every {
        let message =
            format!("charging takes {} and the next detection is due after {shown}", show_time(recharge));
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
        let remedy = format!("set capacitor.flush_concurrency to at most {dies}, or 0 for every die");
        check.error(&KEYS, message, remedy);
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
