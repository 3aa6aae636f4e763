//! The section `[ecc]` of the spec.

use crate::base::geometry::{Cell, KindTimes};
use crate::base::units::{SECOND, Span, US, transfer_ns};
use crate::flash::{
    Centre, CodecSpec, EccSpec, Entry, Failures, LEVELS_MAX, LevelSpec, Placement, RETRY_ROWS_MAX, Retry,
    RetryRow, RetryTable, SHIFTS_MAX, Shifts, Soft, StartLevel,
};
use crate::spec::{
    AGE, Check, Choices, FromVal, Key, OPERATION, OVERHEAD, Param, Policy, READ_BY_KIND, Resolved, Rule,
    Section, Val, ValueKind, above_0, choices, int, key, num, param, plain, section, show_num, show_time,
    with,
};
use nandlab_ldpc::{REFERENCES_MAX, SHIPPED, Shipped};

section! {
    /// The keys of `[ecc]`.
    struct EccKeys {
    levels: (Vec<LevelSpec>, Option<CodecSpec>) = key(
        "ecc.levels",
        LEVELS,
        "\"none\"",
        "read levels: their RBER limits, and those of their times that differ from [timing]",
    )
        => |values, path| match values.val(path) {
            Val::Tag("codec", Some(params)) => (codec_levels(params, values), Some(codec(params, values))),
            val => (levels_of(val), None),
        },
    start: StartLevel = key("ecc.start", ValueKind::Registered(starts), "\"first\"", "the read level of the first try"),
    retry: Retry = key("ecc.retry", ValueKind::Slot(Retry::CHOICES), "\"full\"", "the time that a further try takes"),
    decoders: Option<u32> = key(
        "ecc.decoders",
        DECODERS,
        "\"unlimited\"",
        "decoders of the controller: each decodes one read at a time, in the order in which they leave their dies",
    ) => |values, path| match values.val(path) {
        Val::Int(count) => Some(*count as u32),
        _ => None,
    },
} }

impl Section for EccSpec {
    const KEYS: &'static [Key] = EccKeys::KEYS;

    fn of(values: &Resolved) -> Self {
        let EccKeys { levels: (levels, codec), start, retry, decoders } = EccKeys::of(values);
        Self { levels, start, retry, codec, decoders }
    }
}

const DECODERS: ValueKind = ValueKind::Either(&[
    int(1, 1024),
    ValueKind::Slot(&[plain("unlimited", "every read has a decoder of its own")]),
]);

const LEVELS: ValueKind = ValueKind::Either(&[
    ValueKind::Slot(&[
        plain("none", "no read levels: every read decodes, with the latencies of [timing]"),
        plain(
            "laldpc",
            "LaLDPC, Tables I and II: seven levels, with the paper's times in place of those of [timing]",
        ),
        with(
            "retry",
            TABLE,
            "a read-retry table: level 1 reads with the default references, each further level with those of an entry",
        ),
        with(
            "codec",
            CODEC,
            "an LDPC code: level L reads with L references at each boundary, and decodes what the code decodes of them",
        ),
    ]),
    ValueKind::List(LEVEL, LEVELS_MAX),
]);

const CODEC: &[Param] = &[
    param(
        "rate",
        ValueKind::Slot(&[
            plain("8/9", "an eighth as many parity bits as data bits"),
            plain("16/17", "a sixteenth as many parity bits as data bits"),
        ]),
        "\"8/9\"",
        "rate of the code",
    ),
    param("size", ValueKind::Size { min: 2048, max: 4096, step: 2048 }, "\"4KiB\"", "data of a codeword"),
    param(
        "references",
        ValueKind::Slot(&[
            plain("equidistant", "the references of a boundary are spacing apart, whatever the wear"),
            plain(
                "mmi",
                "where they give most information of the page at hand, which a controller has to find",
            ),
            with(
                "mmi-at",
                &[
                    param("pe", int(0, 1_000_000), "", "P/E cycles of the design point"),
                    param("age", AGE, "", "age of the data of the design point"),
                ],
                "as far from the centre as those that give most information at a design point",
            ),
        ]),
        "\"equidistant\"",
        "placement of the references of a boundary",
    ),
    param(
        "spacing",
        ValueKind::Either(&[
            above_0(50.0),
            ValueKind::Slot(&[plain("model", "sensing_step of the model of errors")]),
        ]),
        "\"model\"",
        "distance of equidistant references, in V with reliability.rber = \"vth\" and in 512ths of the highest voltage \
         with \"vth-tlc\"",
    ),
    param(
        "centre",
        ValueKind::Slot(&[
            plain("optimal", "the optimal references of the page at hand"),
            plain("default", "the optimal references of unaged data"),
        ]),
        "\"optimal\"",
        "the references around which those of a level are; with \"default\" soft sensing makes up for retention too",
    ),
    param(
        "shifts",
        ValueKind::Either(&[
            ValueKind::Slot(&[plain("none", "no entries: soft sensing follows level 1")]),
            ValueKind::List(ENTRY, SHIFTS_MAX),
            ValueKind::Table(SHIFT_STEPS),
        ]),
        "\"none\"",
        "entries of a read-retry table, tried after the default references; then soft sensing around the best of them",
    ),
    param("levels", int(1, REFERENCES_MAX as u64), "7", "references of the last level"),
    param(
        "fer",
        ValueKind::Either(&[
            num(1e-4, 0.5),
            ValueKind::Slot(&[plain(
                "drawn",
                "a page fails with the probability that a codeword of it fails",
            )]),
        ]),
        "\"drawn\"",
        "a level decodes every page that fails with less than this probability",
    ),
    SENSE,
    param(
        "further",
        OVERHEAD,
        "\"14us\"",
        "sensing time of each further reference at one boundary; a page senses all its boundaries (TLC: 2, 3 and 2)",
    ),
    param(
        "transfer",
        ValueKind::Slot(&[
            plain("raw", "the page is transferred once for each reference"),
            plain("regions", "the number of the region of each bit is transferred, in whole bits"),
        ]),
        "\"raw\"",
        "what is transferred, at timing.channel_ns_per_byte",
    ),
    param("iteration", OVERHEAD, "\"600ns\"", "time of an iteration of a codeword"),
];

const LEVEL: &[Param] =
    &[param("rber_max", RBER_MAX, "", "the level decodes every RBER below this"), SENSE, TRANSFER, DECODE];

const TABLE: &[Param] = &[
    param("rber_max", RBER_MAX, "", "a read decodes every RBER below this"),
    SENSE,
    TRANSFER,
    DECODE,
    param(
        "entries",
        ValueKind::Either(&[ValueKind::List(ENTRY, LEVELS_MAX - 1), ValueKind::Table(STEPS)]),
        "",
        "the entries, in the order of the tries: a list, or equal steps",
    ),
];

const SENSE: Param = param(
    "sense",
    ValueKind::Either(&[OPERATION, ValueKind::Table(READ_BY_KIND), FROM_TIMING]),
    "\"timing\"",
    "sensing time on the die, for every page or by page kind; by default timing.read",
);
const TRANSFER: Param = param(
    "transfer",
    ValueKind::Either(&[OVERHEAD, FROM_TIMING]),
    "\"timing\"",
    "transfer time of a page on the channel; by default that at timing.channel_ns_per_byte",
);
const DECODE: Param = param(
    "decode",
    ValueKind::Either(&[OVERHEAD, FROM_TIMING]),
    "\"timing\"",
    "decoding time in the controller; by default timing.decode",
);

/// A time that a read level takes from `[timing]`.
const FROM_TIMING: ValueKind = ValueKind::Slot(&[plain("timing", "the time that [timing] gives")]);

/// Whether a read has the time of `[timing]` that corresponds to the time `name` of a read level: without read levels,
/// or with a level that does not state it.
pub(crate) fn takes_from_timing(levels: &Val, name: &str) -> bool {
    match levels {
        Val::Tag("none", None) => true,
        Val::Tag("retry", Some(table)) => own_time(table.field(name)).is_none(),
        Val::Tag("codec", Some(params)) => match name {
            "sense" => own_time(params.field(name)).is_none(),
            name => name == "transfer",
        },
        Val::List(levels) => levels.iter().any(|level| own_time(level.field(name)).is_none()),
        _ => false,
    }
}

/// The time of a read level; `None` if the level has that of `[timing]`.
fn own_time(time: &Val) -> Option<&Val> {
    (!matches!(time, Val::Tag("timing", None))).then_some(time)
}

const ENTRY: &[Param] = &[param("age", AGE, "", "the references are optimal for data of this age")];

const STEPS: &[Param] = &[param("steps", int(1, LEVELS_MAX as u64 - 1), "", "number of entries"), STEP];

const SHIFT_STEPS: &[Param] =
    &[param("steps", int(1, (LEVELS_MAX - REFERENCES_MAX) as u64), "", "number of entries"), STEP];

const STEP: Param = param(
    "size",
    num(0.01, 20.0),
    "",
    "distance between the references of neighbouring entries, in 512ths of the highest voltage, for a reference at the \
     highest state; lower references move in proportion to their height above the erased state",
);

/// The upper limit is 0.5: at this RBER a bit carries no information.
const RBER_MAX: ValueKind = above_0(0.5);

/// The read levels of a value of `ecc.levels`.
fn levels_of(val: &Val) -> Vec<LevelSpec> {
    match val {
        Val::Tag("none", None) => Vec::new(),
        Val::Tag("laldpc", None) => laldpc(),
        Val::Tag("retry", Some(table)) => {
            let level = LevelSpec::from_val(table);
            let further: Vec<Entry> = match table.field("entries") {
                steps @ Val::Table(_) => steps_of(steps).entries(),
                ages => ages.list().iter().map(|entry| Entry::Aged(age_s(entry))).collect(),
            };
            let entries = [Entry::Aged(0)].into_iter().chain(further);
            entries.map(|entry| LevelSpec { entry: Some(entry), ..level }).collect()
        }
        // The limits and times of these levels depend on other keys.
        Val::Tag("codec", Some(params)) => {
            let shifts = shifts_of(params).map_or(0, |shifts| shifts.entries().len());
            vec![LevelSpec::new(0.5); params.field("levels").int() as usize + shifts]
        }
        Val::List(levels) => levels.iter().map(LevelSpec::from_val).collect(),
        _ => val.is_no("table of read levels"),
    }
}

/// The equal steps of a read-retry table.
fn steps_of(steps: &Val) -> Shifts {
    Shifts::Steps { count: steps.read::<u32>("steps") as u8, size: steps.read("size") }
}

/// The `age` of an entry of a read-retry table, of a row or of a design point, in whole seconds.
fn age_s(of: &Val) -> u32 {
    of.field("age").int().div_ceil(SECOND.ns()) as u32
}

/// The entries that `ecc.levels.codec` tries before soft sensing; `None` without any.
fn shifts_of(params: &Val) -> Option<Shifts> {
    match params.field("shifts") {
        steps @ Val::Table(_) => Some(steps_of(steps)),
        Val::List(entries) => {
            let mut ages = [0; SHIFTS_MAX];
            ages.iter_mut().zip(entries).for_each(|(age, entry)| *age = age_s(entry));
            Some(Shifts::Ages { ages, len: entries.len() as u8 })
        }
        _ => None,
    }
}

impl FromVal for LevelSpec {
    fn from_val(val: &Val) -> Self {
        Self {
            sense: own_time(val.field("sense")).map(KindTimes::from_val),
            transfer_ns: own_time(val.field("transfer")).map(Val::span),
            decode_ns: own_time(val.field("decode")).map(Val::span),
            ..Self::new(val.field("rber_max").num())
        }
    }
}

/// The code that `rate` and `size` name.
fn code_of(params: &Val) -> &'static Shipped {
    let (rate, size) = (params.field("rate").tag(), params.field("size").int());
    let is_it = |code: &&Shipped| code.rate == rate && u64::from(code.data_bytes) == size;
    SHIPPED.iter().find(is_it).expect("every rate is shipped in every size")
}

/// The code of `ecc.levels.codec`.
fn codec(params: &Val, values: &Resolved) -> CodecSpec {
    let page_bytes = values.val("drive.page_size").int() as u32;
    codec_of(params, page_bytes, values.val("seed").int())
}

fn codec_of(params: &Val, page_bytes: u32, seed: u64) -> CodecSpec {
    let failures = match params.field("fer") {
        Val::Num(rate) => Failures::Limit(*rate),
        _ => Failures::Drawn,
    };
    let iteration_ns = params.field("iteration").span();
    let shifts = shifts_of(params).is_some();
    CodecSpec { code: code_of(params), failures, iteration_ns, page_bytes, seed, shifts }
}

/// The read levels of `ecc.levels.codec`. The RBER limit of a level is that at a Gaussian boundary; the levels that a
/// page needs follow from its own channel.
fn codec_levels(params: &Val, values: &Resolved) -> Vec<LevelSpec> {
    let spec = codec(params, values);
    let code = spec.code;
    let (measured, residuals, placement) = match params.field("references") {
        Val::Tag("equidistant", None) => {
            let spacing = match (params.field("spacing"), values.val("reliability.rber")) {
                (Val::Num(spacing), _) => *spacing,
                (_, Val::Tag("vth" | "vth-tlc", Some(model))) => model.field("sensing_step").num(),
                // Without a model of voltages the spec has an error.
                _ => 0.0,
            };
            (&code.equidistant, &code.equidistant_residual, Placement::Equidistant(spacing))
        }
        Val::Tag("mmi-at", Some(design)) => {
            let placement = Placement::Designed { pe_cycles: design.read("pe"), age_s: age_s(design) };
            (&code.most_informative, &code.most_informative_residual, placement)
        }
        _ => (&code.most_informative, &code.most_informative_residual, Placement::MostInformative),
    };
    let shifts = shifts_of(params);
    let centre = match (shifts, params.field("centre").tag()) {
        (Some(shifts), _) => Centre::Best(shifts),
        (None, "default") => Centre::Default,
        (None, _) => Centre::Optimal,
    };
    let boundaries: [u64; 3] = match Cell::from_val(values.val("drive.cell")).bits() {
        1 => [1; 3],
        2 => [1, 1, 2],
        _ => [2, 3, 2],
    };
    let further = params.field("further").span();
    let level = |references: u8| {
        let at = usize::from(references) - 1;
        let (gain, residual) = (code.boundary() / measured[at], residuals[at]);
        let more = u64::from(references) - 1;
        let [lsb_ns, csb_ns, msb_ns] = boundaries.map(|count| further * (count * more));
        let is_raw = params.field("transfer").tag() == "raw";
        LevelSpec {
            sense: own_time(params.field("sense")).map(KindTimes::from_val),
            decode_ns: Some(spec.nominal_ns()),
            entry: Some(Entry::Soft(Soft {
                references,
                placement,
                centre,
                certainty: code.certainty,
                residual,
                gain,
            })),
            further: KindTimes { lsb_ns, csb_ns, msb_ns },
            // A bit has references + 1 regions.
            transfers: if is_raw { references.into() } else { u32::from(references).ilog2() + 1 },
            ..LevelSpec::new(spec.limit() / gain)
        }
    };
    let soft = (1..=params.field("levels").int() as u8).map(level);
    let Some(shifts) = shifts else { return soft.collect() };
    // The default references, the entries, and soft sensing around the best of them.
    let hard = |entry: Entry| LevelSpec { entry: Some(entry), adds: false, ..level(1) };
    let entries = [Entry::Aged(0)].into_iter().chain(shifts.entries());
    entries.map(hard).chain(soft.skip(1)).collect()
}

/// Y. Du, D. Zou, Q. Li, L. Shi, H. Jin and C. J. Xue, "LaLDPC: Latency-aware LDPC for read performance improvement of
/// solid state drives", MSST 2017: latencies of Table I, limits of Table II.
fn laldpc() -> Vec<LevelSpec> {
    let limits = [0.005, 0.006, 0.008, 0.009, 0.010, 0.012, 0.013];
    let level = |(extra, rber_max): (u64, f64)| LevelSpec {
        sense: Some(KindTimes::uniform((50 + 14 * extra) * US)),
        transfer_ns: Some((20 + 10 * extra) * US),
        decode_ns: Some(15 * US),
        ..LevelSpec::new(rber_max)
    };
    (0..).zip(limits).map(level).collect()
}

fn starts() -> &'static [Policy] {
    STARTS
}

const STARTS: &[Policy] = &[
    plain("first", "LDPC-in-SSD: always level 1"),
    plain("ideal", "the needed level, as if the controller knew it"),
    plain(
        "last-level",
        "LaLDPC: the level of the unit's last read while its map entry is cached, else level 1",
    ),
    plain(
        "block-level",
        "as \"last-level\", but without a cached map entry the level that last decoded a page of the superblock",
    ),
    plain(
        "last-good",
        "the level that last decoded a page of the superblock; of a read-retry table the entries after it follow, then those before it",
    ),
    plain(
        "drive-level",
        "the level that last decoded a page of the drive, so one high read raises the level of all reads",
    ),
    with(
        "table",
        &[param(
            "rows",
            ValueKind::List(ROW, RETRY_ROWS_MAX),
            "",
            "the rows; the last row that applies gives the level, and without such a row the level is 1",
        )],
        "a read-retry table as vendors ship it: the level by P/E cycles of the superblock and age of the data",
    ),
];

const ROW: &[Param] = &[
    param("pe", int(0, 10_000_000), "", "the row applies to superblocks with at least this many P/E cycles"),
    param(
        "age",
        AGE,
        "",
        "the row applies to data at least this old, on the clock of reliability.clock_scale",
    ),
    param("level", int(1, LEVELS_MAX as u64), "", "the read level of the first try"),
];

impl FromVal for StartLevel {
    fn from_val(val: &Val) -> Self {
        match val {
            Val::Tag("first", None) => Self::First,
            Val::Tag("ideal", None) => Self::Ideal,
            Val::Tag("last-level", None) => Self::LastLevel,
            Val::Tag("block-level", None) => Self::SuperblockLevel,
            Val::Tag("last-good", None) => Self::LastGood,
            Val::Tag("drive-level", None) => Self::DriveLevel,
            Val::Tag("table", Some(params)) => {
                let rows: Vec<RetryRow> =
                    params.field("rows").list().iter().map(RetryRow::from_val).collect();
                Self::Table(RetryTable::new(&rows).expect("the list has at most RETRY_ROWS_MAX rows"))
            }
            Val::Tag(..) => Self::Outside,
            _ => val.is_no("start level"),
        }
    }
}

impl FromVal for RetryRow {
    /// Ages are whole seconds, so a row applies from the next whole second on.
    fn from_val(val: &Val) -> Self {
        Self { pe_cycles: val.read("pe"), age_s: age_s(val), level: val.field("level").int() as u8 }
    }
}

choices! { for Retry {
    Full = "full": "every try takes the whole sensing, transfer and decoding time of its level",
    Incremental = "incremental":
        "a further try takes the sensing and transfer time that its level adds to those of the level before it, and its decoding time",
} }

pub(crate) const RULES: &[Rule] = &[ascending, table, entries, code];

/// Each level needs a higher RBER limit than the level before it, and at least the same sensing and transfer times, its
/// own or those of `[timing]`, because an incremental retry takes the difference of the times.
fn ascending(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "ecc.levels";
    let Val::List(levels) = check.get(KEY)? else { return None };
    for (i, pair) in (1..).zip(levels.windows(2)) {
        let (before, level) = (&pair[0], &pair[1]);
        let (low, high) = (before.field("rber_max").num(), level.field("rber_max").num());
        if high <= low {
            let (low, high) = (show_num(low), show_num(high));
            let message = format!("expected more than the {low} of the level before it, found {high}");
            let remedy = "order the levels by rising rber_max";
            check.error_in_list(KEY, i, "rber_max", message, remedy);
        }
        let senses = |level: &Val| {
            let val = own_time(level.field("sense")).or(check.get("timing.read"))?;
            let KindTimes { lsb_ns, csb_ns, msb_ns } = KindTimes::from_val(val);
            Some([lsb_ns, csb_ns, msb_ns].map(Span::ns))
        };
        let transfer = |level: &Val| match own_time(level.field("transfer")) {
            Some(time) => Some(time.int()),
            None => {
                let rate = check.num("timing.channel_ns_per_byte")?;
                Some(transfer_ns(check.int("drive.page_size")?, rate).ns())
            }
        };
        let falls = |low: [u64; 3], high: [u64; 3]| {
            (0..3).find(|&kind| high[kind] < low[kind]).map(|kind| (low[kind], high[kind]))
        };
        let senses = senses(before).zip(senses(level)).and_then(|(low, high)| falls(low, high));
        let transfers = transfer(before).zip(transfer(level)).filter(|(low, high)| high < low);
        for (name, of_timing, times) in
            [("sense", "timing.read", senses), ("transfer", "timing.channel_ns_per_byte", transfers)]
        {
            let Some((low, high)) = times.map(|(low, high)| (show_time(low), show_time(high))) else {
                continue;
            };
            let message = format!("expected at least the {low} of the level before it, found {high}");
            let [low_is_own, high_is_own] =
                [before, level].map(|level| own_time(level.field(name)).is_some());
            if low_is_own && high_is_own {
                check.error_in_list(KEY, i, name, message, format!("write at least \"{low}\""));
            } else {
                let (which, remedy) = match low_is_own {
                    true => ("this level", format!("write {name} = \"{low}\", or more, in this level")),
                    false => (
                        "the level before it",
                        format!(
                            "write {name} = \"{low}\", or more, in this level, or set a lower {of_timing}"
                        ),
                    ),
                };
                let message =
                    format!("the {name} of level {}: {message}; {which} has that of {of_timing}", i + 1);
                check.error(&[KEY, of_timing], message, remedy);
            }
        }
    }
    Some(())
}

/// Each level of a read-retry table has to be one of the read levels.
fn table(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "ecc.start";
    let Val::Tag("table", Some(params)) = check.get(KEY)? else { return None };
    let levels = levels_of(check.get("ecc.levels")?).len() as u64;
    // Without read levels the table has no effect, which is an error of its own.
    if levels == 0 {
        return None;
    }
    let rows = params.field("rows").list().iter().map(|row| row.field("level").int());
    let (row, level) = (0..).zip(rows).find(|&(_, level): &(u32, u64)| level > levels)?;
    let message = format!(
        "table.rows[{row}].level: expected at most {levels}, the number of read levels, found {level}"
    );
    let remedy = format!("write a level from 1 to {levels}, or set ecc.levels with more levels");
    check.error(&[KEY, "ecc.levels"], message, remedy);
    Some(())
}

/// The levels of a code need a model of voltages, a frame error rate that was measured, and pages that hold whole
/// codewords.
fn code(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "ecc.levels";
    let Val::Tag("codec", Some(params)) = check.get(KEY)?.clone() else { return None };
    if !check.tag("reliability.rber")?.starts_with("vth") {
        let message = "\"codec\" needs the voltages of reliability.rber = \"vth\" or \"vth-tlc\"";
        let remedy = "set reliability.rber to one of these, or ecc.levels to a list of levels";
        check.error(&[KEY, "reliability.rber"], message, remedy);
    }
    let page_bytes = check.int("drive.page_size")?;
    let size = params.field("size").int();
    if page_bytes < size {
        let message =
            format!("codec.size: expected at most the page size of {page_bytes} bytes, found {size}");
        check.error(
            &[KEY, "drive.page_size"],
            message,
            "write size = \"2KiB\", or set a larger drive.page_size",
        );
    }
    let spec = codec_of(&params, page_bytes as u32, 0);
    if let Failures::Limit(rate) = spec.failures
        && spec.of_codeword(rate) < spec.code.rate_min()
    {
        let least = -libm::expm1(f64::from(spec.codewords()) * libm::log1p(-spec.code.rate_min()));
        let message = format!(
            "codec.fer: a page of {} codewords with this rate needs frame error rates below the {} that were measured",
            spec.codewords(),
            show_num(spec.code.rate_min())
        );
        let remedy = format!("write fer = {}, or more", show_num((least * 1e6).ceil() / 1e6));
        check.error(&[KEY, "drive.page_size"], message, remedy);
    }
    let is_equidistant = params.field("references").tag() == "equidistant";
    if !is_equidistant && matches!(params.field("spacing"), Val::Num(_)) {
        let message = "codec.spacing has no effect, because the references are not equidistant";
        check.error(&[KEY], message, "take spacing out, or write references = \"equidistant\"");
    }
    if let Some(shifts) = shifts_of(&params) {
        shifted(check, &params, &shifts);
    } else if params.field("references").tag() == "mmi" && params.field("centre").tag() == "default" {
        let message =
            "codec.centre: references with the most information of the page at hand are around its optimum";
        check.error(&[KEY], message, "take centre out, or write references = \"equidistant\" or mmi-at");
    }
    Some(())
}

/// The entries of `ecc.levels.codec.shifts` need an order and voltages, as those of a read-retry table, and exclude starts
/// that may overshoot.
fn shifted(check: &mut Check<'_>, params: &Val, shifts: &Shifts) {
    const KEY: &str = "ecc.levels";
    let ages = match shifts {
        Shifts::Ages { ages, len } => &ages[..usize::from(*len)],
        Shifts::Steps { .. } => &[],
    };
    let mut pairs = [0].iter().chain(ages).zip(ages);
    if let Some(entry) = pairs.position(|(before, age)| before >= age) {
        let message =
            format!("codec.shifts[{entry}].age: expected more than the age before it, at least a second");
        check.error(&[KEY], message, "order the entries by rising age, from above 0");
    }
    if ages.is_empty() && check.is("reliability.rber", "vth") {
        let message = "the steps of codec.shifts are in the voltages of reliability.rber = \"vth-tlc\"";
        let remedy = "set shifts to a list of ages, or reliability.rber = \"vth-tlc\"";
        check.error(&[KEY, "reliability.rber"], message, remedy);
    }
    if params.field("references").tag() == "mmi" || params.field("centre").tag() == "default" {
        let message = "with codec.shifts the references of soft sensing are around those of the best entry";
        check.error(&[KEY], message, "take centre out, and write references = \"equidistant\" or mmi-at");
    }
    starts_within(check);
}

/// No read may start at an entry of a read-retry table that is beyond the needed one.
fn starts_within(check: &mut Check<'_>) -> Option<()> {
    let start = check.tag("ecc.start")?;
    // With a policy from outside the tries wrap around, as with "last-good".
    let may_overshoot = ["block-level", "drive-level", "table"].contains(&start);
    if may_overshoot {
        let message = format!("\"{start}\" may start at an entry beyond the one that decodes the page");
        let remedy = "set ecc.start = \"first\", \"last-level\", \"last-good\" or \"ideal\"";
        check.error(&["ecc.start", "ecc.levels"], message, remedy);
    }
    Some(())
}

/// A read-retry table needs a model of voltages and excludes what relies on a higher level decoding more.
fn entries(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "ecc.levels";
    let Val::Tag("retry", Some(table)) = check.get(KEY)?.clone() else { return None };
    let has_steps = matches!(table.field("entries"), Val::Table(_));
    let ages: Vec<u64> = match table.field("entries") {
        Val::List(entries) => entries.iter().map(|entry| entry.field("age").int()).collect(),
        _ => Vec::new(),
    };
    let ages: Vec<u64> = [0].into_iter().chain(ages).map(|ns| ns.div_ceil(SECOND.ns())).collect();
    if let Some(entry) = ages.windows(2).position(|pair| pair[0] >= pair[1]) {
        let message =
            format!("retry.entries[{entry}].age: expected more than the age before it, at least a second");
        check.error(&[KEY], message, "order the entries by rising age, from above 0");
    }
    if !check.tag("reliability.rber")?.starts_with("vth") {
        let message = "\"retry\" needs the voltages of reliability.rber = \"vth\" or \"vth-tlc\"";
        let remedy = "set reliability.rber to one of these, or ecc.levels to a list of levels";
        check.error(&[KEY, "reliability.rber"], message, remedy);
    } else if has_steps && !check.is("reliability.rber", "vth-tlc") {
        let message = "the steps of a read-retry table are in the voltages of reliability.rber = \"vth-tlc\"";
        let remedy = "set entries to a list of ages, or reliability.rber = \"vth-tlc\"";
        check.error(&[KEY, "reliability.rber"], message, remedy);
    }
    starts_within(check)?;
    if check.is("ecc.retry", "incremental") {
        let message = "each entry of a read-retry table is a whole read";
        check.error(&["ecc.retry", KEY], message, "set ecc.retry = \"full\"");
    }
    let full = match check.get("refresh.policy")? {
        Val::Tag("fcr", Some(fcr)) => matches!(fcr.field("full_strength"), Val::Bool(true)),
        Val::Tag(policy, _) => ["ec-cache", "partial"].contains(policy),
        _ => false,
    };
    if full {
        let message =
            "this refresh needs read levels of which a higher one decodes more, not a read-retry table";
        let remedy = "set refresh.policy = \"fcr\" without full_strength or \"none\", or ecc.levels to a list of levels";
        check.error(&["refresh.policy", KEY], message, remedy);
    }
    Some(())
}
