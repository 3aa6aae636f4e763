//! Frames over the channels of the pages of `vth` and `vth-tlc`, beside the frame error rates that the read levels of a code
//! predict of them. Codewords are random: at boundaries at which the two values of a bit are not wrong equally often, the
//! codeword 0 fails at other rates than data does.
//!
//! `make frames` sends as many frames as `FRAMES` says at five states of each page, and prints the RBER at which 1 % fail.

use nandlab::drive::spec::{VthSpec, VthTlcSpec};
use nandlab::flash::reliability::{Vth, VthTlc};
use nandlab::flash::{Centre, Placement, Soft};
use nandlab_base::base::rng::Stream;
use nandlab_ldpc::{
    Bits, Channel, Codewords, Decoder, Encoder, MinSum, Regions, SHIPPED, Shipped, measure,
    rber_of_difficulty,
};

const DAY_S: f64 = 86_400.0;
const TLC: VthTlcSpec = VthTlcSpec { sigma: 1.0, shift: 1.0, sensing_step: 3.0, early: None, layers: None };
const MLC: VthSpec =
    VthSpec { dvpp: 0.38, cell_to_cell: 0.05, sensing_step: 0.03, per_page_kind: true, unworn_loss: 0.0 };

/// A page kind of one of the models, and how a level reads it.
#[derive(Clone, Copy, Debug)]
struct Page {
    is_tlc: bool,
    /// LSB, CSB and MSB of TLC, LSB and MSB of MLC.
    kind: usize,
    days: f64,
    references: u8,
    is_mmi: bool,
    centre: Centre,
}

impl Page {
    fn soft(&self, code: &Shipped) -> Soft {
        let placement = match self.is_mmi {
            true => Placement::MostInformative,
            false => Placement::Equidistant(if self.is_tlc { TLC.sensing_step } else { MLC.sensing_step }),
        };
        let Self { references, centre, .. } = *self;
        let residuals = if self.is_mmi { code.most_informative_residual } else { code.equidistant_residual };
        let residual = residuals[usize::from(references) - 1];
        Soft { references, placement, centre, certainty: code.certainty, residual, gain: 1.0 }
    }

    fn regions(&self, code: &Shipped, pe_cycles: f64) -> Option<Regions> {
        let (soft, age_s) = (self.soft(code), self.days * DAY_S);
        match self.is_tlc {
            true => VthTlc::new(&TLC).regions(pe_cycles, age_s, &soft).map(|all| all[self.kind].clone()),
            false => Vth::new(&MLC).regions(pe_cycles, age_s, &soft).map(|all| all[self.kind].clone()),
        }
    }

    /// The regions at the wear at which the equivalent RBER is `rber`; `None` if it is higher without wear, or lower after
    /// 60,000 P/E cycles.
    fn at(&self, code: &Shipped, rber: f64) -> Option<(f64, Regions)> {
        let equivalent = |pe_cycles: f64| {
            let difficulty = self.regions(code, pe_cycles).map_or(1.0, |of| of.difficulty(code.certainty));
            rber_of_difficulty(difficulty, code.certainty) / self.soft(code).residual
        };
        let (mut low, mut high) = (0.0, 60_000.0);
        if equivalent(low) > rber || equivalent(high) < rber {
            return None;
        }
        for _ in 0..40 {
            let middle: f64 = f64::midpoint(low, high);
            if equivalent(middle) < rber { low = middle } else { high = middle }
        }
        Some((low, self.regions(code, low)?))
    }
}

struct Sender {
    decoder: Decoder,
    encoder: Encoder,
    codewords: Codewords,
}

impl Sender {
    fn new(code: &Shipped) -> Self {
        let built = code.description.build().unwrap();
        let encoder = Encoder::new(&built).unwrap();
        let codewords = Codewords::random(&encoder, 3);
        Self { decoder: Decoder::new(&built, MinSum::default()).unwrap(), encoder, codewords }
    }

    /// Frames of `frames` that fail.
    fn failed(&self, regions: &Regions, codewords: &Codewords, frames: u64) -> f64 {
        let channel = Channel::Regions { regions: regions.clone(), llrs: llrs(regions) };
        let counts = measure(&self.decoder, &channel, codewords, 11, 0..frames);
        (counts.failed + counts.wrong) as f64
    }
}

/// LLRs as of the shipped tables.
fn llrs(regions: &Regions) -> Vec<i8> {
    regions.quantised(if regions.count() == 2 { 16 } else { 31 })
}

fn logit(rate: f64) -> f64 {
    (rate / (1.0 - rate)).ln()
}

/// How the logit of the frame error rate of hard decisions grows with the logarithm of the RBER around this rate.
fn slope(code: &Shipped, rate: f64) -> f64 {
    let rber = code.rber_at(rate);
    (logit(code.error_rate(1.01 * rber)) - logit(code.error_rate(rber))) / 1.01f64.ln()
}

/// Of each shipped table three pages, at the wear at which 3 % of the frames should fail: the RBER at which they do is within
/// 5 % of the predicted one.
#[test]
fn frames_over_pages_fail_as_the_levels_predict() {
    const FRAMES: u64 = 400;
    const RATE: f64 = 0.03;
    let page = |is_tlc, kind, references, centre| Page {
        is_tlc,
        kind,
        days: 30.0,
        references,
        is_mmi: false,
        centre,
    };
    let equidistant = [
        // Errors of one value only, and narrow references beside an erased state that is far wider.
        page(true, 0, 1, Centre::Default),
        page(true, 2, 7, Centre::Optimal),
        page(false, 1, 3, Centre::Optimal),
    ];
    let mmi = [
        page(true, 2, 3, Centre::Optimal),
        page(true, 1, 2, Centre::Optimal),
        page(false, 1, 7, Centre::Optimal),
    ]
    .map(|page| Page { is_mmi: true, ..page });
    let mut unequal: f64 = 0.0;
    for code in &SHIPPED {
        let sender = Sender::new(code);
        for page in equidistant.into_iter().chain(mmi) {
            let (pe, regions) = page.at(code, code.rber_at(RATE)).expect("the state is in the model's range");
            let failed = sender.failed(&regions, &sender.codewords, FRAMES);
            assert!(failed > 0.0, "{} {page:?} at {pe}", code.rate);
            let rate = failed / FRAMES as f64;
            let shift = (logit(rate) - logit(RATE)) / slope(code, RATE);
            let error = 1.0 / (failed * (1.0 - rate)).sqrt() / slope(code, RATE);
            assert!(
                shift.abs() < 0.05 + 2.0 * error,
                "{} {} {page:?} at {pe:.0}: {shift:+.3} +- {error:.3}, {failed} failed",
                code.rate,
                code.data_bytes
            );
            if code.data_bytes == 2048 && page.is_tlc && page.references == 7 {
                let of_zero = sender.failed(&regions, &Codewords::zero(sender.decoder.bits()), FRAMES);
                unequal = unequal.max((of_zero - failed).abs() / FRAMES as f64);
            }
        }
    }
    assert!(unequal > 0.3, "the codeword 0 does not fail as data does: {unequal}");
}

/// The cells of a page one by one: each in one of the states that store the bit of a random codeword, with a voltage that is
/// drawn for it and compared with the references.
#[test]
fn words_drawn_cell_by_cell_fail_as_those_of_the_channel_of_their_page() {
    const FRAMES: u64 = 150;
    let code = SHIPPED.iter().find(|code| code.data_bytes == 2048).unwrap();
    let sender = Sender::new(code);
    let page =
        Page { is_tlc: true, kind: 1, days: 30.0, references: 3, is_mmi: false, centre: Centre::Default };
    let sensed = [1, 3, 5];
    let (pe, regions) = page.at(code, code.rber_at(0.2)).unwrap();
    let model = VthTlc::new(&TLC);
    let states = model.distributions(pe, page.days * DAY_S).unwrap();
    let centres = model.references(pe, 0.0).unwrap();
    let stored = |state: usize| sensed.iter().filter(|&&boundary| boundary < state).count() % 2 == 1;
    let of_bit = [false, true].map(|bit| (0..8).filter(|&state| stored(state) == bit).collect::<Vec<_>>());
    let mut stream = Stream::new(5, "cells");
    // A read with all references of the page at one offset; three such reads count their ones.
    let read = |volts: f64, offset: f64| {
        sensed.iter().filter(|&&boundary| centres[boundary] + offset < volts).count() % 2
    };
    let mut counts = [[0.0; 4]; 2];
    let (llrs, mut work) = (llrs(&regions), sender.decoder.workspace());
    let mut failed = 0;
    for _ in 0..FRAMES {
        let sent = sender.encoder.encode(&Bits::random(sender.encoder.data_bits(), &mut stream));
        let received: Vec<i8> = (0..sent.len())
            .map(|at| {
                let bit = sent.get(at);
                let (mean, sigma) = states[of_bit[usize::from(bit)][stream.below(4) as usize]];
                let (radius, angle) = ((-2.0 * (1.0 - stream.unit()).ln()).sqrt(), stream.unit());
                let volts = mean + sigma * radius * (2.0 * std::f64::consts::PI * angle).cos();
                let ones: usize =
                    [-TLC.sensing_step, 0.0, TLC.sensing_step].map(|o| read(volts, o)).iter().sum();
                counts[usize::from(bit)][ones] += 1.0;
                llrs[ones]
            })
            .collect();
        let outcome = sender.decoder.decode(&received, &mut work);
        failed += u32::from(!outcome.decoded || work.word() != sent);
    }
    for bit in [false, true] {
        let of = &counts[usize::from(bit)];
        let n: f64 = of.iter().sum();
        for (&count, &share) in of.iter().zip(regions.of(bit)) {
            let deviation = (n * share * (1.0 - share)).sqrt();
            assert!((count - n * share).abs() < 4.0 * deviation + 1.0, "{bit} {of:?} {regions:?}");
        }
    }
    let by_channel = sender.failed(&regions, &sender.codewords, 4 * FRAMES) / 4.0;
    let deviation = (1.25 * by_channel).sqrt();
    assert!(
        by_channel > 10.0 && (f64::from(failed) - by_channel).abs() < 4.0 * deviation,
        "{failed} {by_channel}"
    );
}

/// Where a line through the logits of the failed shares of `frames`, at logarithms of RBERs, has 1 %, its standard error,
/// and its slope: logistic regression by Newton's method.
fn boundary(points: &[(f64, f64)], frames: f64) -> Option<(f64, f64, f64)> {
    let (mut at, mut slope) = (0.0, 30.0);
    let mut covariance = [[0.0; 2]; 2];
    for _ in 0..60 {
        let (mut gradient, mut hessian) = ([0.0; 2], [[0.0; 2]; 2]);
        for &(x, failed) in points {
            let rate = 1.0 / (1.0 + (-(at + slope * x)).exp());
            let (off, weight) = (failed - frames * rate, frames * rate * (1.0 - rate));
            for (i, a) in [1.0, x].into_iter().enumerate() {
                gradient[i] += off * a;
                for (j, b) in [1.0, x].into_iter().enumerate() {
                    hessian[i][j] += weight * a * b;
                }
            }
        }
        let determinant = hessian[0][0] * hessian[1][1] - hessian[0][1] * hessian[1][0];
        if determinant.abs() < 1e-9 {
            return None;
        }
        covariance = [
            [hessian[1][1] / determinant, -hessian[0][1] / determinant],
            [-hessian[1][0] / determinant, hessian[0][0] / determinant],
        ];
        at += covariance[0][0] * gradient[0] + covariance[0][1] * gradient[1];
        slope += covariance[1][0] * gradient[0] + covariance[1][1] * gradient[1];
    }
    let x = (logit(0.01) - at) / slope;
    let of = [-1.0 / slope, -x / slope];
    let variance: f64 = (0..2).map(|i| (0..2).map(|j| of[i] * covariance[i][j] * of[j]).sum::<f64>()).sum();
    (slope > 1.0 && variance.is_finite()).then(|| (x, variance.sqrt(), slope))
}

/// The boundary of 1 % of every page kind and number of references, over the predicted one.
#[test]
fn the_boundaries_of_pages_are_the_predicted_ones() {
    let Ok(frames) = std::env::var("NANDLAB_FRAMES") else { return };
    let frames: u64 = frames.parse().expect("NANDLAB_FRAMES is a number");
    let kinds = [(true, 0), (true, 1), (true, 2), (false, 0), (false, 1)];
    let reads = [(false, Centre::Optimal), (false, Centre::Default), (true, Centre::Optimal)];
    println!("rate   size  references          page     refs   P/E   measured / predicted boundary  slope");
    for code in &SHIPPED {
        let sender = Sender::new(code);
        let mut all = Vec::new();
        for (is_mmi, centre) in reads {
            for (is_tlc, kind) in kinds {
                for references in [1, 2, 3, 7] {
                    let page = Page { is_tlc, kind, days: 30.0, references, is_mmi, centre };
                    let mut points = Vec::new();
                    let mut wear = 0.0;
                    for margin in [0.94, 0.97, 1.0, 1.03, 1.06] {
                        let Some((pe, regions)) = page.at(code, margin * code.boundary()) else { continue };
                        wear = pe;
                        points.push((margin.ln(), sender.failed(&regions, &sender.codewords, frames)));
                    }
                    let Some((x, error, slope)) = boundary(&points, frames as f64) else { continue };
                    let placement = match (is_mmi, centre) {
                        (true, _) => "mmi",
                        (_, Centre::Optimal) => "equidistant",
                        _ => "equidistant, default",
                    };
                    let cell = if is_tlc { "TLC" } else { "MLC" };
                    let name = if is_tlc { ["LSB", "CSB", "MSB"][kind] } else { ["LSB", "MSB"][kind] };
                    println!(
                        "{:6} {}  {placement:20} {cell} {name}  {references}  {wear:6.0}   {:.3} [{:.3}, {:.3}]  {slope:.0}",
                        code.rate,
                        code.data_bytes,
                        x.exp(),
                        (x - 1.96 * error).exp(),
                        (x + 1.96 * error).exp()
                    );
                    all.push((x, error));
                }
            }
        }
        let worst = all.iter().map(|(x, _)| x.abs()).fold(0.0, f64::max);
        let squares: f64 = all.iter().map(|(x, _)| x * x).sum();
        println!(
            "{} {}: {} pages, off by {:.1} % (root mean square), at most {:.1} %",
            code.rate,
            code.data_bytes,
            all.len(),
            100.0 * (squares / all.len() as f64).sqrt(),
            100.0 * worst
        );
        for (x, error) in all {
            assert!(x.abs() < 0.05 + 3.0 * error, "{x} {error}");
        }
    }
}
