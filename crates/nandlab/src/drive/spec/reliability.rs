//! The section `[reliability]` of the spec.

use crate::base::units::{SECOND, Span};
use crate::flash::reliability::{Vth, VthTlc};
use crate::flash::{
    CopybackErrors, EarlyLoss, LayerSpread, RberSpec, RberTable, References, ReliabilitySpec, Retention,
    VthSpec, VthTlcSpec,
};
use crate::spec::{
    AGE, Check, Choices, Content, FACTOR, FileOf, FromVal, Param, Params, Policy, Rule, SHARE, SHARE_ABOVE_0,
    Unreadable, Val, ValueKind, When, above_0, choices, int, key, num, param, params, plain, section,
    show_time, value, with,
};
use std::path::Path;
use std::sync::Arc;

section! { for ReliabilitySpec {
    rber = key("reliability.rber", ValueKind::Slot(RBER), "\"none\"", "model of the raw bit error rate (RBER)")
        .file(FileOf { choice: "table", read: table })
        => |values, path| match values.val(path) {
            Val::Tag("none", None) => RberSpec::None,
            Val::Tag("vth", Some(params)) => RberSpec::Vth(VthSpec::from_val(params)),
            Val::Tag("vth-tlc", Some(params)) => RberSpec::VthTlc(VthTlcSpec::from_val(params)),
            Val::Tag("table", Some(_)) => RberSpec::Table(values.content(path)),
            val => val.is_no("error rate"),
        },
    read_disturb = key(
        "reliability.read_disturb",
        num(0.0, 1e-3),
        "0.0",
        "RBER that every read of a block adds to its pages",
    ),
    copyback = key(
        "reliability.copyback",
        ValueKind::Slot(COPYBACK),
        "\"constant\"",
        "errors that a copyback takes over",
    )
    .note("propagate: derived from the RBER model; constant: as measured, such as in Fig. 3b of the rcopyback paper")
        => |values, path| match values.val(path) {
            Val::Tag("constant", None) => CopybackErrors::Constant,
            Val::Tag("propagate", Some(params)) => CopybackErrors::Propagate(params.read("references")),
            val => val.is_no("kind of copyback errors"),
        },
    copyback_error = key(
        "reliability.copyback_error",
        num(0.0, 1e-2),
        "0.0",
        "RBER that each copyback in a row adds",
    )
    .when(When::Is("reliability.copyback", &["constant"]))
        => |values, path| values.get(path).map_or(0.0, Val::num),
    page_variation = key(
        "reliability.page_variation",
        num(0.0, 2.0),
        "0.0",
        "spread of the RBER from page to page: standard deviation S of its logarithm; each page has a factor \
         exp(S z - S^2 / 2) with mean 1, and z is standard normal",
    )
    .note("assumption, without a source; a hash of the seed and the physical page draws the factor"),
    pe_cycles =
        key("reliability.pe_cycles", int(0, 10_000_000), "0", "P/E cycles of every block at the start"),
    retention = key(
        "reliability.retention",
        RETENTION,
        "\"0d\"",
        "age of the data present at the start, a list of ages with their shares of the data, or two ages between which \
         the ages of the blocks are spread evenly",
    ) => |values, path| match values.val(path) {
        Val::List(ages) => {
            Retention::Shares(ages.iter().map(|item| (item.read("age"), item.read("share"))).collect())
        }
        spread @ Val::Table(_) => Retention::Spread { from: spread.read("from"), until: spread.read("until") },
        age => Retention::Shares(vec![(age.span(), 1.0)]),
    },
    clock_scale =
        key("reliability.clock_scale", FACTOR, "1.0", "factor by which the scaled clock (ages) runs faster than simulated time"),
} }

const COPYBACK: &[Policy] = &[
    plain(
        "constant",
        "each copyback in a row adds reliability.copyback_error, and the age of the data counts on",
    ),
    with(
        "propagate",
        &[param(
            "references",
            ValueKind::Slot(References::CHOICES),
            "\"default\"",
            "read references of the sense of a copyback",
        )],
        "a copyback takes over the errors that its sense finds, and the retention of its cells begins anew",
    ),
];

choices! { for References {
    Default = "default": "the optimum of data without retention: a copyback has no feedback from decoding",
    Optimal = "optimal": "the optimum of the data, as for reads",
} }

const RBER: &[Policy] = &[
    plain("none", "no bit errors"),
    with("vth", VthSpec::PARAMS, "threshold voltage distributions of MLC"),
    with(
        "vth-tlc",
        VthTlcSpec::PARAMS,
        "threshold voltage distributions of TLC, those measured on a planar chip",
    ),
    value("table", &ValueKind::Path, "measured RBER: a CSV of P/E cycles, retention, reads and RBER"),
];

// The states lie 0.6 V apart, and soft sensing has seven references per boundary: wider steps would overlap.
params! { for VthSpec {
    dvpp = param("dvpp", num(0.01, 0.6), "0.38", "programming step in V, the width of a programmed state"),
    cell_to_cell =
        param("cell_to_cell", num(0.0, 0.5), "0.05", "sigma of the cell-to-cell interference in V"),
    sensing_step =
        param("sensing_step", num(0.001, 0.1), "0.03", "distance between references of soft sensing in V"),
    per_page_kind =
        param("per_page_kind", ValueKind::Bool, "false", "separate RBERs of LSB and MSB pages, not their mean"),
    unworn_loss = param(
        "unworn_loss",
        num(0.0, 60_000.0),
        "0.0",
        "retention loss at 0 P/E cycles: that of Eq. 1 of the LaLDPC paper after so many P/E cycles, in addition to that \
         of the block's own; 0 is Eq. 1",
    ),
} }

// The states lie 63 apart.
params! { for VthTlcSpec {
    sigma = param("sigma", num(0.1, 3.0), "1.0", "factor on the standard deviations of the states"),
    shift = param("shift", num(0.0, 10.0), "1.0", "factor on the distances by which retention moves the states"),
    sensing_step = param(
        "sensing_step",
        num(0.1, 10.0),
        "3.0",
        "distance between references of soft sensing, in 512ths of the highest voltage",
    ),
    early = param(
        "early",
        ValueKind::Either(&[ValueKind::Slot(PLANAR), ValueKind::Table(EarlyLoss::PARAMS)]),
        "\"none\"",
        "early retention loss of 3D cells, in addition to the loss of the planar chip",
    ) => |val| table_of(val),
    layers = param(
        "layers",
        ValueKind::Either(&[ValueKind::Slot(ALIKE), ValueKind::Table(LayerSpread::PARAMS)]),
        "\"none\"",
        "RBER of the layers relative to one another; the mean over a block stays the same",
    ) => |val| table_of(val),
} }

const PLANAR: &[Policy] = &[plain("none", "the cells lose what those of the planar chip lose")];
const ALIKE: &[Policy] = &[plain("none", "all layers have the same RBER")];

params! { for EarlyLoss {
    loss = param(
        "loss",
        above_0(20.0),
        "",
        "fall of the highest state for each e-fold of the age at 2,000 P/E cycles, in 512ths of the highest voltage; the \
         other states fall in proportion to their height above the erased state",
    ),
    from = param(
        "from",
        ValueKind::Time { min: SECOND.ns(), max: 3600 * SECOND.ns() },
        "\"126s\"",
        "age from which on the loss grows with the logarithm of the age",
    ),
} }

params! { for LayerSpread {
    ratio = param("ratio", num(1.0, 100.0), "", "RBER of the worst layer, as a multiple of that of the best"),
    worst = param("worst", SHARE, "0.5", "place of the worst layer: 0 at the bottom of a block, 1 at its top"),
} }

/// The value of a parameter that is a table or `"none"`.
fn table_of<T: FromVal>(val: &Val) -> Option<T> {
    matches!(val, Val::Table(_)).then(|| T::from_val(val))
}

/// Reads the file of `reliability.rber.table`.
fn table(file: &Path) -> Result<Content, Unreadable> {
    match RberTable::read(file) {
        Ok(table) => Ok(Content { hash: table.content_hash(), value: Arc::new(table) }),
        Err(error) => Err(Unreadable {
            line: error.line,
            column: error.column,
            message: error.message,
            remedy: error.remedy,
        }),
    }
}

/// An age, a list of at most 32 ages (`spec show` writes the list in one line), or two ages.
const RETENTION: ValueKind = ValueKind::Either(&[AGE, ValueKind::List(AGES, 32), ValueKind::Table(SPREAD)]);

const SPREAD: &[Param] =
    &[param("from", AGE, "", "lowest age of the data"), param("until", AGE, "", "highest age of the data")];

const AGES: &[Param] =
    &[param("age", AGE, "", "age of the data"), param("share", SHARE_ABOVE_0, "", "its share of the data")];

pub(super) const RULES: &[Rule] = &[errors_have_effect, vth, design_point, layers, retention];

/// Refuses keys without effect: RBER terms without a model of RBER, and options of read levels or a model of RBER
/// without read levels.
fn errors_have_effect(check: &mut Check<'_>) -> Option<()> {
    let errors = check.tag("reliability.rber")?;
    for key in ["reliability.read_disturb", "reliability.copyback_error", "reliability.page_variation"] {
        if errors == "none" && check.num(key).is_some_and(|value| value > 0.0) {
            let message = "has no effect with reliability.rber = \"none\"";
            let remedy = format!("set reliability.rber, or {key} = 0.0");
            check.error(&[key, "reliability.rber"], message, remedy);
        }
    }
    if errors == "none" && check.is("reliability.copyback", "propagate") {
        let message = "\"propagate\" has no effect with reliability.rber = \"none\"";
        let remedy = "set reliability.rber, or reliability.copyback = \"constant\"";
        check.error(&["reliability.copyback", "reliability.rber"], message, remedy);
    }
    if check.tag("ecc.levels")? != "none" {
        return Some(());
    }
    for (key, without) in [("ecc.start", "first"), ("ecc.retry", "full")] {
        let Some(tag) = check.tag(key).filter(|&tag| tag != without) else { continue };
        let message = format!("\"{tag}\" has no effect with ecc.levels = \"none\"");
        let remedy = format!("set ecc.levels, such as \"laldpc\", or {key} = \"{without}\"");
        check.error(&[key, "ecc.levels"], message, remedy);
    }
    if errors != "none" {
        let message = "bit errors have no effect with ecc.levels = \"none\"";
        let remedy = "set ecc.levels, such as \"laldpc\", or reliability.rber = \"none\"";
        check.error(&["reliability.rber", "ecc.levels"], message, remedy);
    }
    Some(())
}

fn vth(check: &mut Check<'_>) -> Option<()> {
    let (errors, cell) = (check.tag("reliability.rber")?, check.tag("drive.cell")?);
    let (bits, model, other) = match errors {
        "vth" => ("two", "mlc", "vth-tlc"),
        "vth-tlc" => ("three", "tlc", "vth"),
        _ => return None,
    };
    if !cell.ends_with(model) {
        let message = format!("\"{errors}\" describes cells of {bits} bits, but drive.cell = \"{cell}\"");
        let remedy = if cell == "slc" {
            format!(
                "set drive.cell = \"{model}\" or \"3d-{model}\", or reliability.rber to a table or \"none\""
            )
        } else {
            format!(
                "set reliability.rber = \"{other}\", a table or \"none\", or drive.cell = \"{model}\" or \"3d-{model}\""
            )
        };
        check.error(&["reliability.rber", "drive.cell"], message, remedy);
    }
    Some(())
}

/// References of a code that are placed for a design point need states in order there.
fn design_point(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "ecc.levels";
    let Val::Tag("codec", Some(codec)) = check.get(KEY)? else { return None };
    let Val::Tag("mmi-at", Some(design)) = codec.field("references") else { return None };
    let (pe_cycles, age) = (design.field("pe").int(), design.field("age").span());
    let (pe, age_s) = (pe_cycles as f64, age.ns() as f64 * 1e-9);
    let is_in_order = match check.get("reliability.rber")? {
        Val::Tag("vth", Some(params)) => Vth::new(&VthSpec::from_val(params)).references(pe, age_s).is_some(),
        Val::Tag("vth-tlc", Some(params)) => {
            VthTlc::new(&VthTlcSpec::from_val(params)).references(pe, age_s).is_some()
        }
        _ => true,
    };
    if !is_in_order {
        let message = format!(
            "codec.references.mmi-at: after {pe_cycles} P/E cycles and {} the states of reliability.rber are out of order, \
             so no references can be placed between them",
            show_time(age.ns())
        );
        check.error(&[KEY, "reliability.rber"], message, "write a lower pe or age, or references = \"mmi\"");
    }
    Some(())
}

/// Layers that differ need layers.
fn layers(check: &mut Check<'_>) -> Option<()> {
    let Val::Tag("vth-tlc", Some(params)) = check.get("reliability.rber")? else { return None };
    let has_spread = matches!(params.field("layers"), Val::Table(_));
    let (cell, layers) = (check.tag("drive.cell")?, check.int("drive.layers"));
    if has_spread && cell == "tlc" {
        let message = "layers that differ in their RBER need layers, but a cell of \"tlc\" has none";
        let remedy = "set drive.cell = \"3d-tlc\", or leave out layers of reliability.rber.vth-tlc";
        check.error(&["reliability.rber", "drive.cell"], message, remedy);
    } else if has_spread && layers.is_some_and(|layers| layers < 2) {
        let message = "layers that differ in their RBER need at least two layers";
        check.error(&["reliability.rber", "drive.layers"], message, "set drive.layers to at least 2");
    }
    Some(())
}

fn retention(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "reliability.retention";
    let ages = match check.get(KEY)? {
        Val::List(ages) => ages,
        spread @ Val::Table(_) => {
            let (from, until): (Span, Span) = (spread.read("from"), spread.read("until"));
            if from > until {
                check.error(&[KEY], "until is lower than from", "exchange the two ages");
            }
            return Some(());
        }
        _ => return None,
    };
    let sum: f64 = ages.iter().map(|age| age.field("share").num()).sum();
    if (sum - 1.0).abs() > 1e-9 {
        let message = format!("expected shares that add up to 1, found {}", (sum * 1e12).round() / 1e12);
        check.error(&[KEY], message, "set shares that add up to 1");
    }
    Some(())
}
