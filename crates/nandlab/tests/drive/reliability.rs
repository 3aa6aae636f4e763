//! Compares the `vth` model with a brute-force integration of its densities and with the levels of the paper, and the
//! fast tables with the exact models.

use nandlab::base::geometry::PageKind;
use nandlab::base::units::Span;
use nandlab::drive::spec::{RberSpec, ReliabilitySpec, Retention, VthSpec};
use nandlab::flash::reliability::{Condition, PerKind, RberTable, Reliability, Vth};
use nandlab::flash::{CopybackErrors, References};
use proptest::prelude::*;

const YEAR_S: u32 = 365 * 86_400;
/// The cells of the LaLDPC study.
const PAPER: VthSpec =
    VthSpec { dvpp: 0.38, cell_to_cell: 0.05, sensing_step: 0.02, per_page_kind: true, unworn_loss: 0.0 };
const KINDS: [PageKind; 2] = [PageKind::Lsb, PageKind::Msb];

fn spec(rber: RberSpec) -> ReliabilitySpec {
    ReliabilitySpec {
        rber,
        read_disturb: 0.0,
        copyback: CopybackErrors::Constant,
        copyback_error: 0.0,
        page_variation: 0.0,
        pe_cycles: 0,
        retention: Retention::Shares(vec![(Span::ZERO, 1.0)]),
        clock_scale: 1.0,
    }
}

fn vth(vth: VthSpec) -> Reliability {
    Reliability::new(&spec(RberSpec::Vth(vth)))
}

fn page(pe_cycles: u32, age_s: u32, kind: PageKind) -> Condition {
    Condition { pe_cycles, age_s, reads: 0, copybacks: 0, kind }
}

/// An independent implementation of the model from its definition: densities are histograms, noises are numerical
/// convolutions, and reference voltages are found by trying every voltage. Only the constants are the same; they are
/// written down again here.
struct BruteForce {
    /// Share of cells below each voltage of the grid, by state.
    below: [Vec<f64>; 4],
    /// Indices of the best reference voltages in the grid.
    best: [usize; 3],
}

impl BruteForce {
    const STEP_V: f64 = 1e-3;
    const FROM_V: f64 = -1.5;
    const BINS: usize = 7500;

    fn volts(i: usize) -> f64 {
        Self::FROM_V + i as f64 * Self::STEP_V
    }

    /// Returns the share of each bin around 0, integrated with 64 points per bin.
    fn kernel(density: impl Fn(f64) -> f64, reach: f64) -> Vec<f64> {
        let half = (reach / Self::STEP_V).ceil() as i32;
        let at = |bin: i32| {
            let points = 64;
            let place =
                |j: i32| (f64::from(bin) - 0.5 + (f64::from(j) + 0.5) / f64::from(points)) * Self::STEP_V;
            (0..points).map(|j| density(place(j))).sum::<f64>()
        };
        let mut bins: Vec<f64> = (-half..=half).map(at).collect();
        let sum: f64 = bins.iter().sum();
        bins.iter_mut().for_each(|bin| *bin /= sum);
        bins
    }

    fn convolve(bins: &[f64], kernel: &[f64]) -> Vec<f64> {
        let half = kernel.len() / 2;
        let mut out = vec![0.0; bins.len() + kernel.len() - 1];
        for (i, bin) in bins.iter().enumerate().filter(|(_, bin)| **bin != 0.0) {
            for (j, share) in kernel.iter().enumerate() {
                out[i + j] += bin * share;
            }
        }
        out[half..half + bins.len()].to_vec()
    }

    fn new(spec: &VthSpec, n: f64, age_s: f64) -> Self {
        let log = (1.0 + age_s / 3600.0).ln();
        let gauss = |sigma: f64| Self::kernel(|v| (-v * v / (2.0 * sigma * sigma)).exp(), 8.0 * sigma);
        let telegraph = 2.5e-4 * n.powf(0.5);
        let telegraph = if n > 0.0 {
            Self::kernel(|v| (-v.abs() / telegraph).exp(), 36.0 * telegraph)
        } else {
            vec![1.0]
        };
        let cell_to_cell = gauss(spec.cell_to_cell);
        let state = |vp: Option<f64>| {
            let mut bins = vec![0.0; Self::BINS];
            let Some(vp) = vp else {
                for (i, bin) in bins.iter_mut().enumerate() {
                    let z = (Self::volts(i) - 1.4) / 0.35;
                    *bin = (-z * z / 2.0).exp();
                }
                let sum: f64 = bins.iter().sum();
                bins.iter_mut().for_each(|bin| *bin /= sum);
                return Self::convolve(&Self::convolve(&bins, &cell_to_cell), &telegraph);
            };
            let distance = vp + spec.dvpp / 2.0 - 1.4;
            let unworn = spec.unworn_loss;
            let low = vp - 0.333 * 4e-4 * distance * log * (n.powf(0.5) + unworn.powf(0.5));
            for (i, bin) in bins.iter_mut().enumerate() {
                let (from, to) = (Self::volts(i) - Self::STEP_V / 2.0, Self::volts(i) + Self::STEP_V / 2.0);
                *bin = (to.min(low + spec.dvpp) - from.max(low)).max(0.0) / spec.dvpp;
            }
            let sigma = (0.333 * 2e-6 * distance * log * (n.powf(0.6) + unworn.powf(0.6))).sqrt();
            let loss = if sigma > 0.0 { gauss(sigma) } else { vec![1.0] };
            Self::convolve(&Self::convolve(&Self::convolve(&bins, &loss), &cell_to_cell), &telegraph)
        };
        // Cumulative shares: the share of cells below the upper edge of each bin.
        let below = [None, Some(2.6), Some(3.2), Some(3.93)].map(|vp| {
            let mut below = state(vp);
            (1..below.len()).for_each(|i| below[i] += below[i - 1]);
            below
        });
        let best = [0, 1, 2].map(|i| {
            let wrong = |v: usize| 1.0 - below[i][v] + below[i + 1][v];
            (0..Self::BINS).min_by(|&a, &b| wrong(a).total_cmp(&wrong(b))).unwrap()
        });
        Self { below, best }
    }

    /// Returns the RBER from the stored bits and the read bits of each state.
    fn rber(&self) -> PerKind {
        self.rber_at(self.best)
    }

    /// Returns the RBER with these reference voltages, as indices in the grid.
    fn rber_at(&self, references: [usize; 3]) -> PerKind {
        // The (MSB, LSB) of each state, the erased state first.
        let gray = [(1, 1), (0, 1), (0, 0), (1, 0)];
        let (mut lsb, mut msb) = (0.0, 0.0);
        for (stored, below) in self.below.iter().enumerate() {
            let edges = [0.0, below[references[0]], below[references[1]], below[references[2]], 1.0];
            for read in 0..4 {
                let share = (edges[read + 1] - edges[read]) / 4.0;
                msb += if gray[stored].0 == gray[read].0 { 0.0 } else { share };
                lsb += if gray[stored].1 == gray[read].1 { 0.0 } else { share };
            }
        }
        PerKind { lsb, msb }
    }

    /// Returns the share of cells within `reach` of the voltage `reference`, both in volts.
    fn near(&self, reference: f64, reach: f64) -> f64 {
        let share = |v: f64| {
            let place = (v - Self::FROM_V) / Self::STEP_V - 0.5;
            let i = place as usize;
            let part = place - i as f64;
            self.below.iter().map(|below| below[i] * (1.0 - part) + below[i + 1] * part).sum::<f64>() / 4.0
        };
        share(reference + reach) - share(reference - reach)
    }
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * b.abs()
}

#[test]
fn vth_agrees_with_brute_force_integration() {
    let tight = VthSpec { dvpp: 0.3, cell_to_cell: 0.08, ..PAPER };
    let lossy = VthSpec { unworn_loss: 3000.0, ..PAPER };
    for spec in [PAPER, tight, lossy] {
        for (pe, age) in [
            (0.0, f64::from(YEAR_S)),
            (1.0, 0.0),
            (3000.0, 86_400.0),
            (10_000.0, f64::from(YEAR_S)),
            (60_000.0, 1.5e9),
        ] {
            let exact = Vth::new(&spec);
            let brute = BruteForce::new(&spec, pe, age);
            let (a, b) = (exact.rber(pe, age), brute.rber());
            assert!(
                close(a.lsb, b.lsb, 1e-3) && close(a.msb, b.msb, 1e-3),
                "{spec:?} {pe} {age}: {a:?} {b:?}"
            );
            let references = exact.references(pe, age).unwrap();
            for (reference, best) in references.iter().zip(brute.best) {
                let volts = BruteForce::volts(best) + BruteForce::STEP_V / 2.0;
                assert!((reference - volts).abs() < 2e-3, "{pe} {age}: {reference} {volts}");
            }
            let susceptible = exact.susceptible(pe, age);
            let reach = 3.0 * spec.sensing_step;
            let [low, middle, high] = references.map(|reference| brute.near(reference, reach));
            assert!(close(susceptible.page.lsb, middle, 2e-3), "{pe} {age}: {susceptible:?} {middle}");
            assert!(close(susceptible.page.msb, low + high, 2e-3), "{pe} {age}: {susceptible:?}");
            assert!(close(susceptible.cell, low + middle + high, 2e-3), "{pe} {age}: {susceptible:?}");
        }
    }
}

/// After a year at 8,000, 10,000 and 12,000 P/E cycles the model gives levels 2, 3 and 5 of Table II. The LaLDPC paper,
/// Section II-D, states "around 3 and 4" at 10K P/E cycles.
#[test]
fn a_year_takes_the_papers_drive_to_levels_2_3_5() {
    let limits = [0.005, 0.006, 0.008, 0.009, 0.010, 0.012, 0.013];
    for (pe, expected, level) in [(8_000, 0.005_95, 2), (10_000, 0.007_61, 3), (12_000, 0.009_33, 5)] {
        let brute = BruteForce::new(&PAPER, f64::from(pe), f64::from(YEAR_S)).rber().mean();
        let mut model = vth(VthSpec { per_page_kind: false, ..PAPER });
        let page = page(pe, YEAR_S, PageKind::Lsb);
        println!("{pe} P/E: {:.6} {brute:.6} {:.6}", model.rber_exact(&page), model.rber(&page));
        for rber in [model.rber_exact(&page), model.rber(&page), brute] {
            assert!(close(rber, expected, 0.02), "{pe}: {rber}");
            assert_eq!(limits.iter().filter(|limit| rber >= **limit).count() + 1, level, "{pe}: {rber}");
        }
    }
}

#[test]
fn whole_cell_is_the_mean_of_its_pages() {
    let (mut apart, mut mean) = (vth(PAPER), vth(VthSpec { per_page_kind: false, ..PAPER }));
    for pe in [0, 500, 3_000, 20_000] {
        for age in [0, 5_000, YEAR_S, 10 * YEAR_S] {
            let exact = KINDS.map(|kind| apart.rber_exact(&page(pe, age, kind)));
            let quick = KINDS.map(|kind| apart.rber(&page(pe, age, kind)));
            for kind in KINDS {
                let page = page(pe, age, kind);
                assert!(close(mean.rber_exact(&page), exact[0].midpoint(exact[1]), 1e-12));
                assert!(close(mean.rber(&page), quick[0].midpoint(quick[1]), 0.01));
            }
            let pages = Vth::new(&PAPER).susceptible(f64::from(pe), f64::from(age)).page;
            let ratio = mean.susceptible_ratio(pe, age, PageKind::Lsb).unwrap();
            assert!(close(ratio, pages.mean(), 0.01), "{ratio} {pages:?}");
        }
    }
}

#[test]
fn rber_grows_with_age_and_cycles() {
    let mut ages: Vec<u32> = (0..32).map(|i| 1 << i).collect();
    ages.extend([0, 5_000, 40_000, YEAR_S, 50 * YEAR_S]);
    ages.sort_unstable();
    let lossy = VthSpec { unworn_loss: 500.0, ..PAPER };
    for spec in
        [PAPER, lossy, VthSpec { dvpp: 0.2, cell_to_cell: 0.02, ..PAPER }, VthSpec { dvpp: 0.6, ..PAPER }]
    {
        let mut model = vth(spec);
        let mut before = vec![[0.0f64; 4]; ages.len()];
        for pe in (0..50).map(|i| i * i * i * 85) {
            let mut younger = [0.0f64; 4];
            for (i, &age) in ages.iter().enumerate() {
                let pages = KINDS.map(|kind| page(pe, age, kind));
                let [lsb, msb] = pages.map(|page| [model.rber_exact(&page), model.rber(&page)]);
                let now = [lsb[0], lsb[1], msb[0], msb[1]];
                for way in 0..4 {
                    let least = younger[way].max(before[i][way]);
                    // The tables are rounded to 24 bits.
                    assert!(now[way] >= least * (1.0 - 1e-6), "{spec:?} {pe} {age}: {now:?} {least}");
                    assert!(now[way] <= 0.5);
                }
                (younger, before[i]) = (now, now);
            }
        }
    }
}

/// Eq. 1 is proportional to L = ln(1 + t / 1 h). So with a loss without wear of n P/E cycles, cells of n P/E cycles have
/// the shift and the spread of 2 L: those that Eq. 1 alone gives for data of the age 1 h ((1 + t / 1 h)^2 - 1).
#[test]
fn the_loss_without_wear_adds_to_that_of_the_wear() {
    for (n, age) in [(500.0, 86_400.0), (3_000.0, 30.0 * 86_400.0), (10_000.0, 3.0 * 86_400.0)] {
        let added = Vth::new(&VthSpec { unworn_loss: n, ..PAPER }).rber(n, age);
        let hours: f64 = 1.0 + age / 3600.0;
        let doubled = Vth::new(&PAPER).rber(n, 3600.0 * (hours * hours - 1.0));
        assert!(
            close(added.lsb, doubled.lsb, 1e-9) && close(added.msb, doubled.msb, 1e-9),
            "{n}: {added:?} {doubled:?}"
        );
    }
    // Without wear Eq. 1 has no retention loss; with a loss of its own the RBER grows with age, and none is there at age 0.
    let mean = |unworn_loss, age| Vth::new(&VthSpec { unworn_loss, ..PAPER }).rber(0.0, age).mean();
    let year = f64::from(YEAR_S);
    assert_eq!(mean(0.0, year), mean(0.0, 0.0));
    assert_eq!(mean(3000.0, 0.0), mean(0.0, 0.0));
    assert!(mean(3000.0, year) > mean(1000.0, year) && mean(1000.0, year) > mean(1000.0, 86_400.0));
    assert!(mean(1000.0, 86_400.0) > mean(0.0, 86_400.0));
}

/// Returns 0 and the middles of the cells of a table, where the error of interpolation is largest.
fn middles(first: u32, parts: u32, max: u32, every: usize) -> Vec<u32> {
    let mut places = vec![0];
    let mut low = first;
    while low - first < max {
        let step = (low / parts).max(1);
        places.extend((0..parts).map(|i| low + i * step + step / 2 - first));
        low *= 2;
    }
    places.into_iter().step_by(every).filter(|place| *place <= max).collect()
}

#[test]
fn fast_tables_are_exact_to_1_percent() {
    let mut worst = [0.0f64; 3];
    for (dvpp, cell_to_cell) in [(0.1, 0.1), (0.2, 0.02), (0.3, 0.05), (0.38, 0.05), (0.38, 0.0), (0.5, 0.1)]
    {
        for (pe_every, age_every) in [(17, 13), (23, 11)] {
            let spec = VthSpec { dvpp, cell_to_cell, ..PAPER };
            let exact = Vth::new(&spec);
            let mut model = vth(spec);
            for pe in middles(32, 32, 60_000, pe_every) {
                for age in middles(4096, 16, 50 * YEAR_S, age_every) {
                    let rber = exact.rber(f64::from(pe), f64::from(age));
                    let ratio = exact.susceptible(f64::from(pe), f64::from(age)).page;
                    let [lsb, msb] = KINDS.map(|kind| {
                        let rber = model.rber(&page(pe, age, kind));
                        (rber, model.susceptible_ratio(pe, age, kind).unwrap())
                    });
                    for (i, (quick, exact)) in
                        [(lsb.0, rber.lsb), (msb.0, rber.msb), (lsb.1, ratio.lsb), (msb.1, ratio.msb)]
                            .into_iter()
                            .enumerate()
                    {
                        let error = ((quick - exact).abs() - 1e-12).max(0.0) / exact.max(1e-300);
                        assert!(error < 0.01, "{spec:?} {pe} {age} {i}: {quick} {exact}");
                        let group = if i < 2 { usize::from(dvpp != 0.38) } else { 2 };
                        worst[group] = worst[group].max(error);
                    }
                }
            }
        }
    }
    println!("worst: dvpp 0.38 {:.5}, others {:.5}, susceptible {:.5}", worst[0], worst[1], worst[2]);
}

/// Compares a measured table with an independent interpolation that searches the knots of each axis linearly.
#[test]
fn measured_table_agrees_with_plain_interpolation() {
    let pes = [0.0, 100.0, 1000.0, 3000.0, 10_000.0];
    let days = [0.0f64, 0.5, 7.0, 30.0, 365.0];
    let counts = [0.0, 1000.0, 100_000.0];
    let point = |i: usize, j: usize, k: usize| 1e-6 * 3f64.powi((i + j) as i32) + counts[k] * 1e-9 * i as f64;
    let mut text = String::from("pe_cycles,retention,reads,rber\n");
    for (i, pe) in pes.iter().enumerate() {
        for (j, days) in days.iter().enumerate() {
            for (k, reads) in counts.iter().enumerate() {
                text += &format!("{pe},{days}d,{reads},{:e}\n", point(i, j, k));
            }
        }
    }
    let locate = |places: &[f64], place: f64| {
        let place = place.clamp(places[0], places[places.len() - 1]);
        let i = (0..places.len() - 1).find(|&i| place <= places[i + 1]).unwrap();
        (i, (place - places[i]) / (places[i + 1] - places[i]))
    };
    let ages = days.map(|days| (1.0 + days * 24.0).ln());
    let plain = |page: &Condition| {
        let (i, down) = locate(&pes, f64::from(page.pe_cycles));
        let (j, right) = locate(&ages, (1.0 + f64::from(page.age_s) / 3600.0).ln());
        let (k, deep) = locate(&counts, f64::from(page.reads));
        let at = |k: usize| {
            let root = |i: usize, j: usize| point(i, j, k).powf(0.25);
            let row = |i: usize| root(i, j) * (1.0 - right) + root(i, j + 1) * right;
            (row(i) * (1.0 - down) + row(i + 1) * down).powi(4)
        };
        at(k) * (1.0 - deep) + at(k + 1) * deep
    };
    let mut model = Reliability::new(&spec(RberSpec::Table(RberTable::from_text(&text, "made up").unwrap())));
    for pe in (0..12_000).step_by(371).chain([100, 1000, 9_999, 10_000, u32::MAX]) {
        for age in (0..21).map(|i| 3u32.pow(i)).chain([0, 43_200, 604_799, 604_800, u32::MAX]) {
            for reads in [0, 500, 999, 1000, 40_000, 200_000] {
                let page = Condition { reads, ..page(pe, age, PageKind::Csb) };
                let (rber, plain) = (model.rber(&page), plain(&page));
                assert!(close(rber, plain, 1e-6), "{page:?}: {rber} {plain}");
                assert_eq!(rber, model.rber_exact(&page));
            }
        }
    }
    assert_eq!(model.susceptible_ratio(0, 0, PageKind::Lsb), None);
}

#[test]
fn reads_and_copybacks_add_linearly_up_to_a_half() {
    let rates = ReliabilitySpec { read_disturb: 1e-8, copyback_error: 2e-4, ..spec(RberSpec::None) };
    let mut model = Reliability::new(&rates);
    assert!(!model.is_none());
    assert!(Reliability::new(&spec(RberSpec::None)).is_none());
    assert!(!vth(PAPER).is_none());
    let worn = Condition { reads: 50_000, copybacks: 3, ..page(0, 0, PageKind::Slc) };
    assert!(close(model.rber(&worn), 5e-4 + 6e-4, 1e-12));
    let ruined = Condition { reads: u32::MAX, ..worn };
    assert_eq!(model.rber(&ruined), 0.5);
    assert_eq!(model.rber_exact(&ruined), 0.5);

    let mut both = Reliability::new(&ReliabilitySpec { rber: RberSpec::Vth(PAPER), ..rates });
    let aged = Condition { pe_cycles: 3000, age_s: YEAR_S, ..worn };
    let alone = Condition { reads: 0, copybacks: 0, ..aged };
    assert!(close(both.rber(&aged) - both.rber(&alone), 11e-4, 1e-9));
}

#[test]
fn conditions_beyond_the_model_give_an_rber_of_a_half() {
    for (dvpp, cell_to_cell) in [(0.38, 0.05), (0.38, 0.0), (1e-3, 0.0), (0.73, 0.5), (2.0, 2.0)] {
        let mut model = vth(VthSpec { dvpp, cell_to_cell, ..PAPER });
        for pe in [0, 1, 1_000, 1_000_000, 10_000_000, u32::MAX] {
            for age in [0, 1, 1_000_000, u32::MAX] {
                for kind in [PageKind::Slc, PageKind::Lsb, PageKind::Csb, PageKind::Msb] {
                    let page = page(pe, age, kind);
                    let ratio = model.susceptible_ratio(pe, age, kind).unwrap();
                    for share in [model.rber(&page), model.rber_exact(&page), ratio / 2.0] {
                        assert!((0.0..=0.5).contains(&share), "{dvpp} {cell_to_cell} {page:?}: {share}");
                    }
                }
            }
        }
    }
    assert_eq!(vth(PAPER).rber(&page(10_000_000, YEAR_S, PageKind::Msb)), 0.5);
}

#[test]
fn wide_sensing_counts_a_cell_once() {
    let wide = Vth::new(&VthSpec { sensing_step: 5.0, ..PAPER }).susceptible(1000.0, 0.0);
    for share in [wide.cell, wide.page.lsb, wide.page.msb] {
        assert!(close(share, 1.0, 1e-9), "{wide:?}");
    }
    let none = Vth::new(&VthSpec { sensing_step: 0.0, ..PAPER }).susceptible(1000.0, 0.0);
    assert_eq!(none.cell, 0.0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn value_does_not_depend_on_earlier_calls(
        mut asked in prop::collection::vec((0..20_000u32, 0..5 * YEAR_S, any::<bool>()), 1..40),
        seed in any::<u64>(),
    ) {
        let pages = |asked: &[(u32, u32, bool)]| -> Vec<Condition> {
            asked.iter().map(|&(pe, age, lsb)| page(pe, age, KINDS[usize::from(lsb)])).collect()
        };
        let (mut one, mut other) = (vth(PAPER), vth(PAPER));
        let mut first: Vec<_> = pages(&asked).iter().map(|page| one.rber(page).to_bits()).collect();
        let n = asked.len();
        for i in 0..n {
            let j = (seed.rotate_left(i as u32) % n as u64) as usize;
            asked.swap(i, j);
            first.swap(i, j);
        }
        let second: Vec<_> = pages(&asked).iter().map(|page| other.rber(page).to_bits()).collect();
        prop_assert_eq!(first, second);
    }
}

#[test]
fn a_copyback_senses_at_the_references_of_unaged_data() {
    let mut worse = Vec::new();
    for n in [500.0, 3000.0, 10_000.0] {
        let exact = Vth::new(&PAPER);
        let young = BruteForce::new(&PAPER, n, 0.0);
        assert_eq!(exact.rber_unadjusted(n, 0.0), exact.rber(n, 0.0));
        for days in [1.0, 30.0, 365.0] {
            let age_s = days * 86_400.0;
            let (found, expected) =
                (exact.rber_unadjusted(n, age_s), BruteForce::new(&PAPER, n, age_s).rber_at(young.best));
            for (found, expected) in [(found.lsb, expected.lsb), (found.msb, expected.msb)] {
                assert!((found / expected - 1.0).abs() < 0.02, "{n} cycles, {days} days: {found} {expected}");
            }
            worse.push(found.mean() / exact.rber(n, age_s).mean());
            // The tables agree with the exact model, and so does a drive whose copybacks use the optimum.
            for (references, exact) in
                [(References::Default, found), (References::Optimal, exact.rber(n, age_s))]
            {
                let copyback = CopybackErrors::Propagate(references);
                let mut model = Reliability::new(&ReliabilitySpec { copyback, ..spec(RberSpec::Vth(PAPER)) });
                let sensed = KINDS.map(|kind| model.rber_sensed(&page(n as u32, age_s as u32, kind)));
                for (sensed, exact) in sensed.into_iter().zip([exact.lsb, exact.msb]) {
                    assert!((sensed / exact - 1.0).abs() < 0.01, "{n} cycles, {days} days: {sensed} {exact}");
                }
            }
        }
    }
    assert!(worse.iter().all(|&ratio| ratio >= 1.0) && worse.iter().any(|&ratio| ratio > 2.0), "{worse:?}");
}
