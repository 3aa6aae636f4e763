//! Calculates from a spec, without a run, the RBER and the needed level of pages in given conditions, and the cost of
//! each read level.

use crate::errors::RunError;
use crate::spec::Spec;
use crate::tables;
use nandlab::base::geometry::{Geometry, PageKind};
use nandlab::base::units::Span;
use nandlab::drive::spec::{EccSpec, RberSpec, Retry};
use nandlab::flash::reliability::VthTlc;
use nandlab::flash::{Condition, Ecc, Entry, Reliability, Shapes};
use nandlab::report::{Column, Table, Values};
use nandlab::sched::{Timing, Way};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Returns the tables `points` and `levels`. The rows of `points` are in the order of page kind, then age, then P/E
/// cycles.
#[pyfunction]
#[pyo3(signature = (spec, pe_cycles, age_s, reads=0, copybacks=0))]
pub(crate) fn reliability<'py>(
    py: Python<'py>,
    spec: &Spec,
    pe_cycles: Vec<u32>,
    age_s: Vec<u32>,
    reads: u32,
    copybacks: u8,
) -> PyResult<Bound<'py, PyDict>> {
    let geometry = spec.loaded.spec.geometry();
    let tables = py.detach(|| {
        let spec = &spec.loaded.spec;
        let mut model = Reliability::new(&spec.reliability).with_entries(Ecc::new(&spec.ecc).entries());
        if model.is_none() {
            return None;
        }
        let ecc = Ecc::new(&spec.ecc);
        let is_by_kind = match &spec.reliability.rber {
            RberSpec::Vth(vth) => vth.per_page_kind,
            RberSpec::VthTlc(_) => true,
            RberSpec::None | RberSpec::Table(_) => false,
        };
        let mut rows = Rows::default();
        for (name, kind) in kinds(spec, is_by_kind) {
            for &age_s in &age_s {
                for &pe_cycles in &pe_cycles {
                    rows.add(&mut model, &ecc, name, &Condition { pe_cycles, age_s, reads, copybacks, kind });
                }
            }
        }
        Some(vec![rows.table(), levels(&times(spec, &geometry, spec.ecc.retry), spec, &geometry)])
    });
    let tables = tables.ok_or_else(|| {
        RunError::new_err(
            "the spec has no bit errors: reliability.rber = \"none\"\n  remedy: set reliability.rber.vth = { dvpp = \
             0.38, cell_to_cell = 0.05 }, or reliability.rber.table = \"FILE.csv\", or take a preset with bit errors, \
             such as [drive] preset = \"laldpc-32g\"",
        )
    })?;
    tables::to_python(py, &tables)
}

/// Returns the tables `states` and `reads` of a spec with `reliability.rber = "vth-tlc"` at the conditions `pe_cycles`
/// and `age_s`, two lists of the same length: mean and standard deviation of each state; and by entry the references and
/// the RBER at them. Entry 0 has the optimal references, entry L those of level L of a read-retry table. Without such a
/// table there is only level 1, the default references. Conditions and entries whose states or references are out of
/// order have no rows.
#[pyfunction]
pub(crate) fn voltages<'py>(
    py: Python<'py>,
    spec: &Spec,
    pe_cycles: Vec<u32>,
    age_s: Vec<u32>,
) -> PyResult<Bound<'py, PyDict>> {
    let spec = &spec.loaded.spec;
    let RberSpec::VthTlc(vth) = &spec.reliability.rber else {
        return Err(RunError::new_err("only reliability.rber = \"vth-tlc\" has the voltages of TLC"));
    };
    let model = VthTlc::new(vth);
    let ecc = Ecc::new(&spec.ecc);
    let entries = if ecc.entries().is_empty() { &[Entry::Aged(0)] } else { ecc.entries() };
    let mut states: [Vec<f64>; 4] = Default::default();
    let mut reads: [Vec<f64>; 12] = Default::default();
    for (point, (&pe, &age_s)) in (0u32..).zip(pe_cycles.iter().zip(&age_s)) {
        let (n, t) = (f64::from(pe), f64::from(age_s));
        for (number, (mean, sigma)) in (0u32..).zip(model.distributions(n, t).into_iter().flatten()) {
            add(&mut states, [point.into(), number.into(), mean, sigma]);
        }
        let optimum = model.references(n, t).map(|references| (references, model.rber(n, t)));
        let of_entry = |&entry| Some((model.references_of(n, entry)?, model.rber_read_with(n, t, entry)));
        for (number, read) in (0u32..).zip([optimum].into_iter().chain(entries.iter().map(of_entry))) {
            let Some(([a, b, c, d, e, f, g], [lsb, csb, msb])) = read else { continue };
            add(&mut reads, [point.into(), number.into(), a, b, c, d, e, f, g, lsb, csb, msb]);
        }
    }
    let table = |name, heads: &[&str], columns: Vec<Vec<f64>>| Table {
        name,
        columns: heads.iter().zip(columns).map(|(&head, of)| Column::new(head, Values::F64(of))).collect(),
    };
    let heads = ["point", "entry", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "lsb", "csb", "msb"];
    let tables = [
        table("states", &["point", "state", "mean", "sigma"], states.into()),
        table("reads", &heads, reads.into()),
    ];
    tables::to_python(py, &tables)
}

/// Adds a row to columns.
fn add<const N: usize>(columns: &mut [Vec<f64>; N], row: [f64; N]) {
    for (column, value) in columns.iter_mut().zip(row) {
        column.push(value);
    }
}

/// The page kinds of the drive with their names; a single kind `all` if the model does not distinguish page kinds.
fn kinds(spec: &nandlab::drive::spec::Spec, is_by_kind: bool) -> Vec<(&'static str, PageKind)> {
    let of_row = |row| spec.drive.cell.kind_of_row(row);
    if !is_by_kind {
        return vec![("all", of_row(0))];
    }
    let names =
        [("slc", PageKind::Slc), ("lsb", PageKind::Lsb), ("csb", PageKind::Csb), ("msb", PageKind::Msb)];
    let is_there = |kind| (0..spec.drive.pages_per_block).any(|row| of_row(row) == kind);
    names.into_iter().filter(|&(_, kind)| is_there(kind)).collect()
}

#[derive(Default)]
struct Rows {
    kind: Vec<String>,
    pe_cycles: Vec<u64>,
    age_s: Vec<u64>,
    rber: Vec<f64>,
    level: Vec<u64>,
    susceptible: Vec<f64>,
}

impl Rows {
    fn add(&mut self, model: &mut Reliability, ecc: &Ecc, name: &str, at: &Condition) {
        let rber = model.rber_after_copybacks(at);
        // The entries of a read-retry table are without the errors of copybacks. With a code, errors that copybacks take
        // over count beside those of the page, which `rber_after_copybacks` adds.
        let carried = if model.propagates() { rber - model.rber_exact(at) } else { 0.0 };
        let level = match ecc.entries().len() {
            _ if ecc.codec().is_some() => ecc.level_at(model, at, carried),
            0 => ecc.level_for(rber),
            entries => {
                let decodes = |&entry: &usize| model.rber_read_with(at, entry) < ecc.limit();
                (0..entries).find(decodes).unwrap_or(entries) as u8 + 1
            }
        };
        self.kind.push(name.to_owned());
        self.pe_cycles.push(at.pe_cycles.into());
        self.age_s.push(at.age_s.into());
        self.rber.push(rber);
        self.level.push(if level > ecc.levels() { 0 } else { level.into() });
        self.susceptible.push(model.susceptible_ratio(at.pe_cycles, at.age_s, at.kind).unwrap_or(f64::NAN));
    }

    fn table(self) -> Table {
        let columns = vec![
            Column::new("kind", Values::Text(self.kind.into_iter().map(Into::into).collect())),
            Column::new("pe_cycles", Values::U64(self.pe_cycles)),
            Column::new("retention_s", Values::U64(self.age_s)),
            Column::new("rber", Values::F64(self.rber)),
            Column::new("level", Values::U64(self.level)),
            Column::new("susceptible", Values::F64(self.susceptible)),
        ];
        Table { name: "points", columns }
    }
}

/// The times of a drive of this spec with this choice of `ecc.retry`.
fn times(spec: &nandlab::drive::spec::Spec, geometry: &Geometry, retry: Retry) -> Timing {
    let ecc = EccSpec { retry, ..spec.ecc.clone() };
    Timing::new(&spec.timing, geometry, Shapes::new(spec.timing.shape(&spec.drive, &ecc, geometry)))
}

/// The RBER limit and the times of each read level, and latencies on an idle drive of a read that decodes at the level.
/// One latency is that of a read that starts at this level; the others are those of a read that starts at level 1, with
/// each choice of `ecc.retry`.
fn levels(timing: &Timing, spec: &nandlab::drive::spec::Spec, geometry: &Geometry) -> Table {
    let (full, incremental) = (times(spec, geometry, Retry::Full), times(spec, geometry, Retry::Incremental));
    let count = Ecc::new(&spec.ecc).levels();
    // The mean of the pages of a wordline, which are consecutive rows of one block.
    let shape = timing.shapes().first();
    let rows = shape.pages_per_wordline().min(shape.rows);
    let first_of = |row: u32| geometry.stripes.unit(0, row * geometry.units_per_row);
    let sense_ns = |timing: &Timing, level: u8, is_retry: bool| -> Span {
        let sum: Span =
            (0..rows).map(|row| timing.shapes().first().read(first_of(row), level, is_retry).sense_ns).sum();
        sum / u64::from(rows)
    };
    // Each try is a read of its own; only the data of the last try, which decodes, takes the off-chip path.
    let us = |timing: &Timing, from: u8, to: u8| {
        let tries = (from..=to).map(|level| {
            let cost = timing.shapes().first().read(0, level, level > from);
            let off_chip_ns = if level == to { timing.off_chip_ns[Way::Out as usize] } else { Span::ZERO };
            let sense_ns = sense_ns(timing, level, level > from);
            timing.command.read_ns + sense_ns + cost.transfer_ns.max(off_chip_ns) + cost.decode_ns
        });
        tries.sum::<Span>().ns() as f64 * 1e-3
    };
    let column =
        |name: &str, of: &dyn Fn(u8) -> f64| Column::new(name, Values::F64((1..=count).map(of).collect()));
    let limit = |level: u8| spec.ecc.levels.get(usize::from(level) - 1).map_or(f64::INFINITY, |l| l.rber_max);
    let columns = vec![
        Column::new("level", Values::U64((1..=count).map(u64::from).collect())),
        column("rber_max", &limit),
        column("sense_us", &|level| sense_ns(timing, level, false).ns() as f64 * 1e-3),
        column("transfer_us", &|level| shape.read(0, level, false).transfer_ns.ns() as f64 * 1e-3),
        column("decode_us", &|level| shape.read(0, level, false).decode_ns.ns() as f64 * 1e-3),
        column("direct_us", &|level| us(timing, level, level)),
        column("full_us", &|level| us(&full, 1, level)),
        column("incremental_us", &|level| us(&incremental, 1, level)),
    ];
    Table { name: "levels", columns }
}
