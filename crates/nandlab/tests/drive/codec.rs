//! Read levels of a code (`ecc.levels = { codec = ... }`), against a naive twin of soft sensing.

use crate::common::{TINY, US, one, spec, with_oracle};
use nandlab::base::geometry::{Lpn, PageKind};
use nandlab::drive::Drive;
use nandlab::drive::spec::{Spec, VthSpec, VthTlcSpec};
use nandlab::flash::reliability::{Vth, VthTlc};
use nandlab::flash::{Centre, Placement, Soft};
use nandlab::host::{Op, Oracle};
use nandlab_ldpc::{SHIPPED, Shipped};

const DAY_S: f64 = 86_400.0;
const TLC: VthTlcSpec = VthTlcSpec { sigma: 1.0, shift: 1.0, sensing_step: 3.0, early: None, layers: None };
/// The boundaries that LSB, CSB and MSB pages sense.
const SENSED: [&[usize]; 3] = [&[2, 6], &[1, 3, 5], &[0, 4]];

fn code() -> &'static Shipped {
    SHIPPED.iter().find(|code| (code.rate, code.data_bytes) == ("8/9", 4096)).expect("the code is shipped")
}

/// The entropy of a bit that is wrong with probability `p`.
fn entropy(p: f64) -> f64 {
    if p <= 0.0 || p >= 1.0 { 0.0 } else { -p * p.log2() - (1.0 - p) * (1.0 - p).log2() }
}

/// How hard hard decisions with this RBER are to decode.
fn of_hard(p: f64) -> f64 {
    weighted(p, code().certainty)
}

/// What is unknown of a bit that is wrong with probability `p`, which counts more the surer the bit is.
fn weighted(p: f64, certainty: f64) -> f64 {
    if p <= 0.0 || p >= 1.0 { 0.0 } else { entropy(p) * (1.0 + certainty * ((1.0 - p) / p).ln().abs()) }
}

/// How hard raw reads of a page are to decode, by summing over voltages: read k has each reference of the page at its
/// offset k, and the output of a cell is the number of reads that find a 1.
fn difficulty(states: &[(f64, f64)], references: &[f64], sensed: &[usize], offsets: &[f64]) -> f64 {
    let step = 0.01;
    let mut counts = vec![[0.0; 2]; offsets.len() + 1];
    for i in 0..100_000 {
        let volts = -350.0 + step * f64::from(i);
        let bit = |offset: f64| sensed.iter().filter(|&&b| references[b] + offset < volts).count() % 2;
        let ones: usize = offsets.iter().map(|&offset| bit(offset)).sum();
        for (number, (mean, sigma)) in states.iter().enumerate() {
            let stored = sensed.iter().filter(|&&b| b < number).count() % 2;
            let z = (volts - mean) / sigma;
            counts[ones][stored] +=
                (-0.5 * z * z).exp() / sigma * step / (2.0 * std::f64::consts::PI).sqrt() / 8.0;
        }
    }
    let of_output =
        |[zero, one]: &[f64; 2]| (zero + one) * weighted(one / (zero + one).max(1e-300), code().certainty);
    counts.iter().map(of_output).sum()
}

#[test]
fn the_equivalent_rber_is_that_of_raw_reads_summed_over_voltages() {
    let model = VthTlc::new(&TLC);
    let mut gains = 0;
    for (pe, days, centre) in [
        (2000.0, 90.0, Centre::Optimal),
        (4000.0, 365.0, Centre::Optimal),
        (1500.0, 30.0, Centre::Default),
        (3000.0, 60.0, Centre::Default),
    ] {
        let age_s = days * DAY_S;
        let states = model.distributions(pe, age_s).unwrap();
        let centre_s = if centre == Centre::Optimal { age_s } else { 0.0 };
        let references = model.references(pe, centre_s).unwrap();
        for count in [1u8, 2, 3, 7] {
            let soft = Soft {
                references: count,
                placement: Placement::Equidistant(4.0),
                centre,
                certainty: code().certainty,
                residual: 1.0,
                gain: 1.0,
            };
            let found = model.equivalent(pe, age_s, &soft);
            let offsets: Vec<f64> =
                (0..count).map(|k| 4.0 * (f64::from(k) - (f64::from(count) - 1.0) / 2.0)).collect();
            for (kind, sensed) in SENSED.into_iter().enumerate() {
                let expected = difficulty(&states, &references, sensed, &offsets);
                let found = of_hard(found[kind]);
                assert!(
                    (found / expected - 1.0).abs() < 2e-3,
                    "{pe} {days} {count} {kind}: {found}, {expected}"
                );
            }
        }
        let at = |count, placement| {
            let soft = Soft {
                references: count,
                placement,
                centre: Centre::Optimal,
                certainty: 0.0,
                residual: 1.0,
                gain: 1.0,
            };
            model.equivalent(pe, age_s, &soft)
        };
        // One reference at the optimum is a hard decision. Its errors are not equally frequent in both directions, so
        // its equivalent RBER is a little lower.
        for (hard, equivalent) in model.rber(pe, age_s).into_iter().zip(at(1, Placement::Equidistant(4.0))) {
            assert!(equivalent <= hard * 1.000_001 && equivalent > 0.9 * hard, "{equivalent} {hard}");
        }
        // References with the most information are at least as good as any equidistant ones, but for the candidates'
        // grid.
        for count in 2..=7 {
            let best = at(count, Placement::MostInformative);
            let here = at(count, Placement::Designed { pe_cycles: pe as u32, age_s: age_s as u32 });
            let elsewhere = at(count, Placement::Designed { pe_cycles: 500, age_s: 86_400 });
            for kind in 0..3 {
                assert!((here[kind] / best[kind] - 1.0).abs() < 1e-9);
                assert!(elsewhere[kind] > 0.99 * best[kind], "{count} {elsewhere:?} {best:?}");
                for spacing in [2.0, 4.0, 6.0, 9.0] {
                    let equidistant = at(count, Placement::Equidistant(spacing))[kind];
                    assert!(best[kind] < 1.02 * equidistant, "{count} {spacing}: {best:?} {equidistant}");
                    gains += u32::from(best[kind] < 0.9 * equidistant);
                }
            }
        }
    }
    assert!(gains > 20, "the placement matters");
}

/// More references tell more. Of MSB pages the references are the best ones of each boundary, and not of the two
/// together, which may cost a percent.
#[test]
fn of_mlc_each_further_reference_lowers_the_equivalent_rber() {
    let model = Vth::new(&VthSpec {
        dvpp: 0.38,
        cell_to_cell: 0.05,
        sensing_step: 0.03,
        per_page_kind: true,
        unworn_loss: 0.0,
    });
    for (pe, days) in [(8000.0, 365.0), (12_000.0, 365.0), (12_000.0, 30.0)] {
        let mut before = model.rber(pe, days * DAY_S);
        for references in 1..=7u8 {
            let soft = Soft {
                references,
                placement: Placement::MostInformative,
                centre: Centre::Optimal,
                certainty: 0.0,
                residual: 1.0,
                gain: 1.0,
            };
            let now = model.equivalent(pe, days * DAY_S, &soft);
            assert!(
                now.lsb < 1.0001 * before.lsb && now.msb < 1.01 * before.msb,
                "{references} {now:?} {before:?}"
            );
            before = now;
        }
        let all = model.rber(pe, days * DAY_S);
        assert!(before.lsb < 0.8 * all.lsb && before.lsb > 0.2 * all.lsb, "{before:?} {all:?}");
    }
}

const FER: f64 = 0.01;

fn text(pe: u32, days: u32, more: &str, ecc: &str) -> String {
    format!(
        "{TINY}[ecc]\nlevels = {{ codec = {{ levels = 7, fer = {FER}, further = '10us', sense = {{ lsb = '40us', csb = \
         '50us', msb = '41us' }}, iteration = '0us', spacing = 4.0{more} }} }}\n{ecc}[reliability]\nrber = 'vth-tlc'\n\
         pe_cycles = {pe}\nretention = '{days}d'\n[precondition]\nused = 0.5\nvalid = 0.8\n[gc]\nidle_after = '10s'\n"
    )
    .replace("cell = \"mlc\"", "cell = \"tlc\"")
}

fn drive_of(spec: &Spec) -> Drive<Oracle> {
    with_oracle(spec)
}

/// A page of each kind: LSB, CSB, MSB.
fn pages(drive: &Drive<Oracle>) -> [u64; 3] {
    let kind = |lpn: u32| {
        let unit = drive.ftl().map.get(Lpn(lpn))?;
        Some(drive.array().shapes().first().kind(drive.geometry().split(unit).1))
    };
    let of = |wanted| (0..64).find(|&lpn| kind(lpn) == Some(wanted)).expect("the drive has such a page");
    [PageKind::Lsb, PageKind::Csb, PageKind::Msb].map(|kind| u64::from(of(kind)))
}

/// The level that a page of a state needs by the model: a page of one codeword at the limit of 1 %.
fn needed(pe: u32, days: u32, kind: usize, centre: Centre) -> usize {
    let limit = code().rber_at(FER);
    let decodes = |&count: &usize| {
        let soft = Soft {
            references: count as u8,
            placement: Placement::Equidistant(4.0),
            centre,
            certainty: code().certainty,
            residual: code().equidistant_residual[count - 1],
            gain: 1.0,
        };
        VthTlc::new(&TLC).equivalent(pe.into(), f64::from(days) * DAY_S, &soft)[kind] < limit
    };
    (1..=7).find(decodes).unwrap_or(8)
}

#[test]
fn a_read_takes_the_sensing_of_all_boundaries_and_a_transfer_for_each_reference() {
    let mut levels = [0; 9];
    let page_ns = 4096 * 5 / 2;
    let (first, boundaries) = ([40, 50, 41], [2, 3, 2]);
    for (pe, days) in [(1000, 1), (5000, 300), (8000, 365), (8000, 1500), (10_000, 1000), (10_000, 3000)] {
        for (retry, transfer) in [("full", "raw"), ("incremental", "raw"), ("full", "regions")] {
            let text = text(pe, days, &format!(", transfer = '{transfer}'"), &format!("retry = '{retry}'\n"));
            let mut drive = drive_of(&spec(&text, &[]));
            for (kind, lpn) in pages(&drive).into_iter().enumerate() {
                let needed = needed(pe, days, kind, Centre::Optimal);
                levels[needed] += 1;
                if needed == 8 {
                    continue;
                }
                let sense = |level: usize| 1000 * (first[kind] + 10 * boundaries[kind] * (level as u64 - 1));
                let transfers = |level: usize| match transfer {
                    "raw" => level as u64,
                    _ => [1, 2, 2, 3, 3, 3, 3][level - 1],
                };
                let whole = |level: usize| sense(level) + transfers(level) * page_ns;
                let expected = match retry {
                    "full" => (1..=needed).map(whole).sum(),
                    _ => whole(needed),
                };
                assert_eq!(
                    one(&mut drive, Op::Read, lpn * 4096, 4096),
                    expected,
                    "{pe} {days} {kind} {retry}"
                );
            }
        }
    }
    assert!(levels[1..8].iter().filter(|&&count| count > 0).count() >= 4, "{levels:?}");
}

#[test]
fn around_default_references_soft_sensing_makes_up_for_retention() {
    let states = [(1500, 60), (2000, 90), (2000, 180), (2000, 365), (3000, 90), (3000, 180)];
    // A state in which retention costs CSB pages levels, but the last level decodes every page.
    let is_in_reach = |&(pe, days): &(u32, u32)| {
        let levels = |centre| [0, 1, 2].map(|kind| needed(pe, days, kind, centre));
        levels(Centre::Default).iter().all(|&level| level < 8)
            && levels(Centre::Default)[1] > levels(Centre::Optimal)[1]
    };
    let (pe, days) = states.into_iter().find(is_in_reach).expect("one of the states is");
    let text = text(pe, days, ", centre = 'default'", "");
    let mut drive = drive_of(&spec(&text, &[]));
    for (kind, lpn) in pages(&drive).into_iter().enumerate() {
        let level = needed(pe, days, kind, Centre::Default);
        one(&mut drive, Op::Read, lpn * 4096, 4096);
        let found = &drive.stats().ecc.host_levels;
        assert!(found[level] > 0, "{kind}: {level}");
    }
}

/// One decoder serves reads of all dies one after another, so it becomes the bottleneck.
#[test]
fn decoders_are_a_resource() {
    let run = |decoders: &str| {
        let text = format!(
            "{TINY}read = '10us'\ndecode = '100us'\n[ecc]\ndecoders = {decoders}\n[precondition]\nused = 0.5\nvalid = 0.8\n"
        );
        let mut drive = drive_of(&spec(&text, &[]));
        let arrival = drive.now();
        for lpn in 0..16 {
            drive.submit(&nandlab::host::Request::read(lpn * 4096, 4096).at(arrival)).unwrap();
        }
        while drive.outstanding() > 0 {
            assert!(drive.advance_unless_at_rest());
        }
        let ecc = drive.stats().ecc.clone();
        ((drive.now() - arrival).ns() / US, ecc.decoder_busy_ns.ns() / US, ecc.decoder_wait_ns.ns() / US)
    };
    let (all, busy, wait) = run("'unlimited'");
    assert_eq!((busy, wait), (1600, 0));
    // 16 reads of 10 us and 10.24 us of transfer, on two dies and channels.
    assert!(all < 16 * 21 + 100, "{all}");
    let (took, busy, wait) = run("1");
    // The first read leaves its die after 20.24 us, then the decoder is never idle.
    assert_eq!((took, busy), (1620, 1600));
    assert!(wait > 16 * 100 * 4, "{wait}");
    let (two, ..) = run("2");
    assert!(two > 800 && two < 850, "{two}");
}

/// Failures are drawn: at a state near the boundary some pages need a higher level than others, reproducibly, and as many
/// as the frame error rate says.
#[test]
fn pages_near_the_boundary_need_different_levels() {
    // A state at which CSB pages are within a few percent of the limit of level 1.
    let limit = code().boundary();
    let model = VthTlc::new(&TLC);
    let soft = Soft {
        references: 1,
        placement: Placement::Equidistant(4.0),
        centre: Centre::Optimal,
        certainty: code().certainty,
        residual: 1.0,
        gain: 1.0,
    };
    let pe = (500..8000)
        .step_by(10)
        .find(|&pe| model.equivalent(f64::from(pe), 90.0 * DAY_S, &soft)[1] > 1.12 * limit);
    let pe = pe.expect("wear raises the RBER") as u32;
    let count = |seed: u64| {
        let text = text(pe, 90, "", "").replace(&format!("fer = {FER}"), "fer = 'drawn'");
        let mut drive = drive_of(&spec(&text, &[&format!("seed={seed}"), "drive.blocks_per_plane=128"]));
        let csb: Vec<u32> = (0..drive.geometry().logical_units)
            .filter(|&lpn| {
                drive.ftl().map.get(Lpn(lpn)).is_some_and(|unit| {
                    drive.array().shapes().first().kind(drive.geometry().split(unit).1) == PageKind::Csb
                })
            })
            .collect();
        for &lpn in &csb {
            one(&mut drive, Op::Read, u64::from(lpn) * 4096, 4096);
        }
        let first = drive.stats().ecc.host_levels;
        for &lpn in &csb {
            one(&mut drive, Op::Read, u64::from(lpn) * 4096, 4096);
        }
        let both = drive.stats().ecc.host_levels;
        assert!((1..8).all(|level| both[level] == 2 * first[level]), "a page needs the same level again");
        (csb.len() as f64, first[1] as f64)
    };
    let (pages, decoded) = count(1);
    let rate = code().error_rate(model.equivalent(pe.into(), 90.0 * DAY_S, &soft)[1]);
    assert!(pages > 200.0 && rate > 0.1 && rate < 0.9, "{pages} {rate}");
    let deviation = (pages * rate * (1.0 - rate)).sqrt();
    // The grid of the model is exact to 1 %, and 1 % of the RBER is 39 % of the odds.
    assert!(
        (decoded - pages * (1.0 - rate)).abs() < 4.0 * deviation + 0.1 * pages,
        "{decoded} of {pages}, {rate}"
    );
    assert_eq!(count(1), (pages, decoded));
    assert_ne!(count(2).1, decoded);
}

/// Hard reads with the default references and with those of two ages, then soft sensing around the best of them.
#[test]
fn shifted_references_and_soft_levels_are_one_ladder() {
    let model = VthTlc::new(&TLC);
    let (ages, page_ns) = ([0.0, 20.0, 200.0], 4096 * 5 / 2);
    let (first, boundaries) = ([40, 50, 41], [2, 3, 2]);
    let mut rungs = [0; 8];
    for (pe, days) in
        [(1000, 10), (2000, 90), (3000, 30), (4000, 365), (6000, 600), (9000, 1000), (9000, 2000)]
    {
        let age_s = f64::from(days) * DAY_S;
        let states = model.distributions(pe.into(), age_s).unwrap();
        // How hard each rung is to decode, as a multiple of what the code decodes.
        let share = |kind: usize, age: f64, references: usize| {
            let centres = model.references(pe.into(), age * DAY_S).unwrap();
            let offsets: Vec<f64> =
                (0..references).map(|k| 4.0 * (k as f64 - (references as f64 - 1.0) / 2.0)).collect();
            difficulty(&states, &centres, SENSED[kind], &offsets) / of_hard(code().rber_at(FER))
        };
        for retry in ["full", "incremental"] {
            let more = ", shifts = [{ age = '20d' }, { age = '200d' }]";
            let text =
                text(pe, days, more, &format!("retry = '{retry}'\n")).replace("levels = 7", "levels = 4");
            let mut drive = drive_of(&spec(&text, &[]));
            for (kind, lpn) in pages(&drive).into_iter().enumerate() {
                // An entry is judged by its wrong bits; with one reference both nearly agree.
                let hard = ages.map(|age| {
                    model.rber_read_for(pe.into(), age_s, age * DAY_S)[kind] < code().rber_at(FER)
                });
                let best =
                    |references| ages.map(|age| share(kind, age, references)).into_iter().fold(9.0, f64::min);
                let needed = match hard.iter().position(|&decodes| decodes) {
                    Some(entry) => entry + 1,
                    None => (2..=4)
                        .find(|&references| best(references) < 1.0)
                        .map_or(7, |references| references + 2),
                };
                rungs[needed] += 1;
                if needed == 7 {
                    continue;
                }
                let further = 10_000 * boundaries[kind];
                let read = 1000 * first[kind] + page_ns;
                let soft = |references: u64| read + (references - 1) * (further + page_ns);
                let expected: u64 = (1..=needed as u64)
                    .map(|rung| match (rung, retry) {
                        (1..=3, _) => read,
                        (rung, "full") => soft(rung - 2),
                        // Each soft level adds a reference.
                        _ => further + page_ns,
                    })
                    .sum();
                assert_eq!(
                    one(&mut drive, Op::Read, lpn * 4096, 4096),
                    expected,
                    "{pe} {days} {kind} {retry}"
                );
            }
        }
    }
    // Default references, those of an entry, soft sensing, and no rung at all.
    assert!([1, 2, 4, 6, 7].into_iter().all(|rung| rungs[rung] > 0), "{rungs:?}");
}
