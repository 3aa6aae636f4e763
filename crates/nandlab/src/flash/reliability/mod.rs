//! The raw bit error rate (RBER) of a page, from its P/E cycles, age, reads and copybacks.
//!
//! RBER = model + `read_disturb` * reads + `copyback_error` * copybacks, at most 0.5. The model is a function of P/E
//! cycles and age, the `table` model also of reads; with `none` it is 0. Every read of a page needs the page's RBER, so
//! [`Reliability::rber`] interpolates the `vth` model in tables, whereas [`Reliability::rber_exact`] computes this
//! model at each call. Both are the mean of all pages with the same history; [`PageVariation`] has the factor of each
//! page, and with [`LayerFactors`] of its layer.

mod grid;
mod layers;
mod noise;
mod soft;
mod table;
mod variation;
mod vth;
mod vth_tlc;

pub use layers::LayerFactors;
pub use soft::{Centre, Placement, SHIFTS_MAX, Shifts, Soft};
use soft::{Placed, equivalent};
pub use table::{RberTable, TableError};
pub use variation::PageVariation;
pub(super) use variation::{hash, quantile};
pub use vth::{PerKind, Susceptible, Vth};
pub use vth_tlc::VthTlc;

use crate::base::geometry::PageKind;
use crate::base::units::Span;
use grid::Grid;

/// Section `[reliability]` of the spec.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct ReliabilitySpec {
    pub rber: RberSpec,
    /// RBER that each read of a block adds to the block's pages.
    pub read_disturb: f64,
    /// The errors that a copyback takes over.
    pub copyback: CopybackErrors,
    /// RBER that each consecutive copyback adds to the page, with [`CopybackErrors::Constant`].
    pub copyback_error: f64,
    /// Spread of the RBER from page to page: the standard deviation of its logarithm.
    pub page_variation: f64,
    /// P/E cycles of every block at the start of the run.
    pub pe_cycles: u32,
    /// Ages of the data on the drive at the start of the run.
    pub retention: Retention,
    /// Speed of the age clock relative to simulated time.
    pub clock_scale: f64,
}

/// `reliability.copyback`: the errors that a copyback takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopybackErrors {
    /// Each copyback in a row adds the constant RBER `reliability.copyback_error`, and the age of the data counts on.
    Constant,
    /// A copyback takes over the errors that its sense finds; the retention of the new cells begins anew.
    Propagate(References),
}

/// `reliability.copyback.propagate.references`: the read references of the sense of a copyback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum References {
    /// The optimum of data without retention at the same P/E cycles: a copyback has no feedback from decoding.
    Default,
    /// The optimum of the data, as for reads.
    Optimal,
}

/// `reliability.retention`: ages of the data on the drive at the start of the run.
#[derive(Clone, Debug, PartialEq)]
pub enum Retention {
    /// Ages with their shares of the superblocks; the shares add up to 1.
    Shares(Vec<(Span, f64)>),
    /// Ages spread evenly between two ages.
    Spread {
        /// Lowest age.
        from: Span,
        /// Highest age, at least `from`.
        until: Span,
    },
}

/// `reliability.rber`: the raw bit error rate.
#[derive(Clone, Debug, PartialEq)]
pub enum RberSpec {
    /// No bit errors.
    None,
    /// Threshold voltage distributions of MLC.
    Vth(VthSpec),
    /// Threshold voltage distributions of TLC.
    VthTlc(VthTlcSpec),
    /// Characterisation data, measured by a lab.
    Table(RberTable),
}

/// Parameters of the `vth` model, in volts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VthSpec {
    /// Programming step, the width of a programmed state.
    pub dvpp: f64,
    /// Sigma of the cell-to-cell interference.
    pub cell_to_cell: f64,
    /// Distance of neighbouring references of soft sensing.
    pub sensing_step: f64,
    /// Whether LSB and MSB pages have different RBERs. If not, both have the mean.
    pub per_page_kind: bool,
    /// Retention loss of cells without wear, as the P/E cycles after which Eq. 1 has this loss.
    pub unworn_loss: f64,
}

/// Parameters of the `vth-tlc` model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VthTlcSpec {
    /// Factor on the standard deviations of the states.
    pub sigma: f64,
    /// Factor on the distances by which retention moves the states.
    pub shift: f64,
    /// Distance of neighbouring references of soft sensing, in 512ths of the highest voltage.
    pub sensing_step: f64,
    /// Early retention loss; `None`: the cells lose what those of a planar chip lose.
    pub early: Option<EarlyLoss>,
    /// The RBER of the layers relative to one another; `None`: all layers have the same.
    pub layers: Option<LayerSpread>,
}

/// `reliability.rber.vth-tlc.early`: early retention loss of 3D cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EarlyLoss {
    /// Distance by which the highest state falls in each e-fold of time at 2,000 P/E cycles, in 512ths of the highest
    /// voltage.
    pub loss: f64,
    /// Age from which on the loss grows with the logarithm of the age.
    pub from: Span,
}

/// `reliability.rber.vth-tlc.layers`: the RBER of the layers of a block relative to one another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerSpread {
    /// RBER of the worst layer, as a multiple of that of the best.
    pub ratio: f64,
    /// Place of the worst layer: 0 at the bottom of the block, 1 at the top.
    pub worst: f64,
}

/// The read references of a read level that has its own: of an entry of a read-retry table, or of soft sensing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Entry {
    /// The optimum of data of this age, in seconds, at the wear of the block.
    Aged(u32),
    /// The default references, which are the optimum of data of age 0, lowered. The value is the distance by which a
    /// reference at the mean of the highest state would be lowered, in 512ths of the highest voltage. The distance is
    /// proportional to the height of the reference above the erased state.
    Lowered(f64),
    /// Several references at each boundary. The RBER of such a read is the equivalent one (`soft.rs`).
    Soft(Soft),
}

impl Entry {
    /// The share that counts of an RBER which is not the model's: [`Soft::gain`], or all of it.
    pub fn gain(&self) -> f64 {
        match self {
            Self::Soft(soft) => soft.gain,
            Self::Aged(_) | Self::Lowered(_) => 1.0,
        }
    }
}

/// The history of a page, on which its RBER depends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    /// P/E cycles of the page's block.
    pub pe_cycles: u32,
    /// Age of the page's data on the age clock, in seconds.
    pub age_s: u32,
    /// Reads of the page's block since its last erase.
    pub reads: u32,
    /// Consecutive copybacks of the page's data without correction.
    pub copybacks: u8,
    /// Page kind, such as LSB.
    pub kind: PageKind,
}

/// The largest RBER, at which a bit is as often wrong as right.
pub(crate) const RBER_MAX: f64 = 0.5;

/// The RBER model of a drive.
#[derive(Debug)]
pub struct Reliability {
    model: Model,
    read_disturb: f64,
    copyback: CopybackErrors,
    copyback_error: f64,
}

#[derive(Debug)]
enum Model {
    None,
    Vth(Box<VthModel<USUAL>>),
    /// As `Vth`, for cells that lose much within minutes.
    Young(Box<VthModel<YOUNG>>),
    Table(RberTable),
}

/// `FIRST` of the tables over age, in seconds. A model without early loss changes little within the first hour.
const USUAL: u32 = 4096;
/// `FIRST` of the tables over age of a model with early loss. Its `from` is at least a second.
const YOUNG: u32 = 1;

/// A model of threshold voltages. Each of its values is by index: of MLC the value of LSB pages, that of MSB pages and
/// the mean of the two; of TLC the values of LSB, CSB and MSB pages.
#[derive(Debug)]
enum Exact {
    Mlc(Vth),
    Tlc(VthTlc),
}

impl Exact {
    fn rber(&self, pe_cycles: f64, age_s: f64) -> [f64; 3] {
        match self {
            Self::Mlc(vth) => by_kind(vth.rber(pe_cycles, age_s)),
            Self::Tlc(vth) => vth.rber(pe_cycles, age_s),
        }
    }

    fn rber_read_with(&self, pe_cycles: f64, age_s: f64, entry: Entry, placed: &mut Placed) -> [f64; 3] {
        match (self, entry) {
            (Self::Mlc(vth), Entry::Aged(read_for_s)) => {
                by_kind(vth.rber_read_for(pe_cycles, age_s, read_for_s.into()))
            }
            (Self::Mlc(vth), Entry::Soft(soft)) => {
                let [lsb, msb] = equivalent(vth.regions_placed(pe_cycles, age_s, &soft, placed), &soft);
                by_kind(PerKind { lsb, msb })
            }
            (Self::Tlc(vth), Entry::Soft(soft)) => {
                equivalent(vth.regions_placed(pe_cycles, age_s, &soft, placed), &soft)
            }
            (Self::Mlc(_), Entry::Lowered(_)) => {
                unreachable!("a spec has equal steps only with vth-tlc")
            }
            (Self::Tlc(vth), entry) => vth.rber_read_with(pe_cycles, age_s, entry),
        }
    }

    fn susceptible(&self, pe_cycles: f64, age_s: f64) -> [f64; 3] {
        match self {
            Self::Mlc(vth) => by_kind(vth.susceptible(pe_cycles, age_s).page),
            Self::Tlc(vth) => vth.susceptible(pe_cycles, age_s),
        }
    }
}

/// The exact model, and its tables over P/E cycles and age.
#[derive(Debug)]
struct VthModel<const FIRST: u32> {
    exact: Exact,
    /// For each page kind the index into the values of [`Exact`]. The page kinds of consecutive reads are
    /// random, so a branch instead of this table would often be mispredicted.
    which: [u8; 4],
    rber: Grid<3, FIRST>,
    /// The RBER at the references of unaged data.
    sensed: Grid<3, FIRST>,
    /// By read level that has its own references: these, and the RBER at them.
    entries: Vec<(Entry, Grid<3, FIRST>)>,
    /// The references that entries with several of them share.
    placed: Placed,
    susceptible: Grid<3, FIRST>,
}

impl<const FIRST: u32> VthModel<FIRST> {
    fn mlc(spec: &VthSpec) -> Self {
        // The model covers two-bit cells only. Pages of other kinds have the mean of LSB and MSB.
        let mut which = [2; 4];
        if spec.per_page_kind {
            which[PageKind::Lsb as usize] = 0;
            which[PageKind::Msb as usize] = 1;
        }
        Self::new(Exact::Mlc(Vth::new(spec)), which)
    }

    fn tlc(spec: &VthTlcSpec) -> Self {
        let mut which = [0; 4];
        which[PageKind::Csb as usize] = 1;
        which[PageKind::Msb as usize] = 2;
        Self::new(Exact::Tlc(VthTlc::new(spec)), which)
    }

    fn new(exact: Exact, which: [u8; 4]) -> Self {
        Self {
            exact,
            which,
            rber: Grid::new(),
            sensed: Grid::new(),
            entries: Vec::new(),
            placed: Placed::default(),
            susceptible: Grid::new(),
        }
    }

    #[inline(always)]
    fn which(&self, kind: PageKind) -> usize {
        usize::from(self.which[kind as usize])
    }

    #[inline(always)]
    fn rber(&mut self, page: &Condition) -> f64 {
        let which = self.which(page.kind);
        let exact = &self.exact;
        let compute = |pe_cycles: f64, age_s: f64| exact.rber(pe_cycles, age_s);
        self.rber.at(which, page.pe_cycles, page.age_s, compute)
    }

    /// The RBER at the references of unaged data.
    fn rber_sensed(&mut self, page: &Condition) -> f64 {
        let which = self.which(page.kind);
        let (exact, placed) = (&self.exact, &mut self.placed);
        let compute =
            |pe_cycles: f64, age_s: f64| exact.rber_read_with(pe_cycles, age_s, Entry::Aged(0), placed);
        self.sensed.at(which, page.pe_cycles, page.age_s, compute)
    }

    /// The RBER at the references of an entry of the read-retry table.
    fn rber_read_with(&mut self, page: &Condition, entry: usize) -> f64 {
        let which = self.which(page.kind);
        let (exact, placed) = (&self.exact, &mut self.placed);
        let (references, grid) = &mut self.entries[entry];
        let compute =
            |pe_cycles: f64, age_s: f64| exact.rber_read_with(pe_cycles, age_s, *references, placed);
        grid.at(which, page.pe_cycles, page.age_s, compute)
    }

    /// The share that counts of an RBER which is not the model's, at the references of an entry.
    fn gain(&self, entry: usize) -> f64 {
        self.entries[entry].0.gain()
    }

    fn add_entries(&mut self, entries: &[Entry]) {
        self.entries = entries.iter().map(|&entry| (entry, Grid::new())).collect();
    }

    fn susceptible_ratio(&mut self, pe_cycles: u32, age_s: u32, kind: PageKind) -> f64 {
        let which = self.which(kind);
        let exact = &self.exact;
        let compute = |pe_cycles: f64, age_s: f64| exact.susceptible(pe_cycles, age_s);
        self.susceptible.at(which, pe_cycles, age_s, compute)
    }
}

/// The value of LSB pages, the value of MSB pages, and the mean of the two.
fn by_kind(values: PerKind) -> [f64; 3] {
    [values.lsb, values.msb, values.mean()]
}

impl Reliability {
    /// Creates the model of a validated `[reliability]` section. Allocates all memory that the model will use.
    pub fn new(spec: &ReliabilitySpec) -> Self {
        let model = match &spec.rber {
            RberSpec::None => Model::None,
            RberSpec::Vth(vth) => Model::Vth(Box::new(VthModel::mlc(vth))),
            RberSpec::VthTlc(vth) if vth.early.is_some() => Model::Young(Box::new(VthModel::tlc(vth))),
            RberSpec::VthTlc(vth) => Model::Vth(Box::new(VthModel::tlc(vth))),
            RberSpec::Table(table) => Model::Table(table.clone()),
        };
        let ReliabilitySpec { read_disturb, copyback, copyback_error, .. } = *spec;
        Self { model, read_disturb, copyback, copyback_error }
    }

    /// Whether a copyback takes over the errors that its sense finds.
    pub fn propagates(&self) -> bool {
        self.copyback != CopybackErrors::Constant
    }

    /// Whether no page ever has a bit error.
    pub fn is_none(&self) -> bool {
        matches!(self.model, Model::None) && self.read_disturb == 0.0 && self.copyback_error == 0.0
    }

    /// The RBER of a page, 0 to 0.5. Up to 60,000 P/E cycles and 50 years it differs from [`Reliability::rber_exact`]
    /// by at most 1 % or 1e-12, whichever is more. The `vth` model takes more than 2^24 - 1 P/E cycles as 2^24 - 1.
    #[inline]
    pub fn rber(&mut self, page: &Condition) -> f64 {
        let aged = match &mut self.model {
            Model::None => 0.0,
            Model::Vth(model) => model.rber(page),
            Model::Young(model) => model.rber(page),
            Model::Table(table) => table.rber(page.pe_cycles, page.age_s, page.reads),
        };
        self.with_disturbance(aged, page)
    }

    /// The RBER that the sense of a copyback finds in a page, 0 to 0.5. With [`References::Default`] and a model of
    /// voltages the references are those of unaged data, otherwise this is [`Reliability::rber`].
    pub fn rber_sensed(&mut self, page: &Condition) -> f64 {
        if self.copyback != CopybackErrors::Propagate(References::Default) {
            return self.rber(page);
        }
        let aged = match &mut self.model {
            Model::Vth(model) => model.rber_sensed(page),
            Model::Young(model) => model.rber_sensed(page),
            Model::None | Model::Table(_) => return self.rber(page),
        };
        self.with_disturbance(aged, page)
    }

    /// Adds the entries of a read-retry table or of soft sensing for [`Reliability::rber_read_with`]. A model without voltages has no use
    /// for them.
    pub fn with_entries(mut self, entries: &[Entry]) -> Self {
        match &mut self.model {
            Model::Vth(model) => model.add_entries(entries),
            Model::Young(model) => model.add_entries(entries),
            Model::None | Model::Table(_) => {}
        }
        self
    }

    /// The RBER of a page, 0 to 0.5, read with entry `entry` of the read-retry table or of soft sensing
    /// ([`Reliability::with_entries`]). It has the precision of [`Reliability::rber`]. Of soft sensing it is the
    /// equivalent RBER, and disturbance counts with [`Soft::gain`].
    pub fn rber_read_with(&mut self, page: &Condition, entry: usize) -> f64 {
        let (aged, gain) = match &mut self.model {
            Model::Vth(model) => (model.rber_read_with(page, entry), model.gain(entry)),
            Model::Young(model) => (model.rber_read_with(page, entry), model.gain(entry)),
            Model::None | Model::Table(_) => return self.rber(page),
        };
        self.with_disturbance_at(aged, page, gain)
    }

    /// The RBER of a page after `page.copybacks` copybacks in a row and then `page.age_s` of retention, 0 to 0.5: the
    /// procedure of Fig. 3 of the rcopyback paper, in which no time passes between the copybacks. Computed as
    /// [`Reliability::rber_exact`].
    pub fn rber_after_copybacks(&self, page: &Condition) -> f64 {
        let after = self.rber_exact(page);
        if !self.propagates() {
            return after;
        }
        // Without retention the references of every sense are the optimum.
        let each = self.rber_exact(&Condition { age_s: 0, reads: 0, ..*page });
        (after + f64::from(page.copybacks) * each).min(RBER_MAX)
    }

    /// The RBER of a page; the `vth` model is computed at each call, without its tables. For plots and tests.
    pub fn rber_exact(&self, page: &Condition) -> f64 {
        let (pe_cycles, age_s) = (f64::from(page.pe_cycles), f64::from(page.age_s));
        let aged = match &self.model {
            Model::None => 0.0,
            Model::Vth(model) => model.exact.rber(pe_cycles, age_s)[model.which(page.kind)],
            Model::Young(model) => model.exact.rber(pe_cycles, age_s)[model.which(page.kind)],
            Model::Table(table) => table.rber(page.pe_cycles, page.age_s, page.reads),
        };
        self.with_disturbance(aged, page)
    }

    /// The share of a page's bits that are susceptible, 0 to 1, exact to 1 % or 1e-12: soft sensing finds the cells of
    /// these bits between the outermost references of a boundary. A partial refresh copies these bits to a combination
    /// page. Without `per_page_kind` the share is the mean of LSB and MSB pages. `None` if the model has no threshold
    /// voltages.
    pub fn susceptible_ratio(&mut self, pe_cycles: u32, age_s: u32, kind: PageKind) -> Option<f64> {
        match &mut self.model {
            Model::Vth(model) => Some(model.susceptible_ratio(pe_cycles, age_s, kind)),
            Model::Young(model) => Some(model.susceptible_ratio(pe_cycles, age_s, kind)),
            Model::None | Model::Table(_) => None,
        }
    }

    fn with_disturbance(&self, aged: f64, page: &Condition) -> f64 {
        self.with_disturbance_at(aged, page, 1.0)
    }

    fn with_disturbance_at(&self, aged: f64, page: &Condition, gain: f64) -> f64 {
        let reads = self.read_disturb * f64::from(page.reads);
        let copybacks = self.copyback_error * f64::from(page.copybacks);
        (aged + gain * (reads + copybacks)).min(RBER_MAX)
    }
}
