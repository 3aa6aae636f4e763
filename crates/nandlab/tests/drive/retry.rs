//! Read-retry tables (`ecc.levels = { retry = ... }`): the tries of a read, against the RBER of the exact models.

use crate::common::{TINY, US, one, read_everything, spec, with_oracle};
use nandlab::base::geometry::{Lpn, PageKind};
use nandlab::base::units::{SECOND, Span};
use nandlab::drive::spec::{VthSpec, VthTlcSpec};
use nandlab::drive::{Drive, FailReason};
use nandlab::flash::reliability::{Vth, VthTlc};
use nandlab::flash::{AgeClock, EarlyLoss, Entry};
use nandlab::host::{Op, Oracle, Request};
use std::collections::BTreeMap;

const DAY_S: f64 = 86_400.0;
/// Park et al., ASPLOS 2021: ECC of 72 bits in 1 KiB.
const LIMIT: f64 = 72.0 / 8192.0;
const AGES: [f64; 4] = [0.0, 7.0, 60.0, 365.0];
/// Times of a try in microseconds, without sensing.
const REST_US: u64 = 25;
const SENSE_US: [u64; 3] = [37, 46, 37];

/// A drive of TLC with data of `days` days at `pe` P/E cycles.
fn drive(pe: u32, days: u32, sets: &[&str]) -> Drive<Oracle> {
    let [lsb, csb, msb] = SENSE_US;
    let text = format!(
        "{TINY}[ecc]\nlevels.retry = {{ rber_max = {LIMIT}, sense = {{ lsb = '{lsb}us', csb = '{csb}us', msb = \
         '{msb}us' }}, transfer = '10us', decode = '15us', entries = [{{ age = '7d' }}, {{ age = '60d' }}, {{ age = \
         '365d' }}] }}\n[reliability]\nrber = 'vth-tlc'\npe_cycles = {pe}\nretention = '{days}d'\n[precondition]\n\
         used = 0.5\nvalid = 0.8\n[gc]\nidle_after = '10s'\n"
    )
    .replace("cell = \"mlc\"", "cell = \"tlc\"");
    with_oracle(&spec(&text, sets))
}

/// The first entry that decodes a page, by its number from 1.
fn expected(pe: u32, days: u32, kind: usize) -> Option<usize> {
    let model =
        VthTlc::new(&VthTlcSpec { sigma: 1.0, shift: 1.0, sensing_step: 3.0, early: None, layers: None });
    let rber = |age: f64| model.rber_read_for(f64::from(pe), f64::from(days) * DAY_S, age * DAY_S)[kind];
    AGES.iter().position(|&age| rber(age) < LIMIT).map(|entry| entry + 1)
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

#[test]
fn a_read_tries_the_entries_in_order_until_one_decodes() {
    let mut entries = [0; 5];
    for (pe, days) in [(0, 1), (1000, 30), (1000, 365), (2000, 30), (2000, 365), (3000, 365), (3000, 900)] {
        for start in ["first", "last-level", "ideal"] {
            let mut drive = drive(pe, days, &[&format!("ecc.start={start}")]);
            for (kind, lpn) in pages(&drive).into_iter().enumerate() {
                let needed = expected(pe, days, kind).expect("an entry decodes the page");
                entries[needed] += 1;
                let tries = |count: usize| count as u64 * (SENSE_US[kind] + REST_US);
                let (first, second) = match start {
                    "first" => (tries(needed), tries(needed)),
                    "last-level" => (tries(needed), tries(1)),
                    _ => (tries(1), tries(1)),
                };
                let mut read = || one(&mut drive, Op::Read, lpn * 4096, 4096) / US;
                assert_eq!([read(), read()], [first, second], "{pe} {days} {start} {kind}");
                // After a write the default references decode the page.
                one(&mut drive, Op::Write, lpn * 4096, 4096);
                assert!(one(&mut drive, Op::Read, lpn * 4096, 4096) / US <= 46 + REST_US);
            }
            read_everything(&mut drive);
        }
    }
    assert!(entries[1..].iter().all(|&count| count > 0), "{entries:?}");
}

#[test]
fn a_page_that_no_entry_decodes_is_uncorrectable_after_all_tries() {
    assert_eq!(expected(5000, 3650, 1), None);
    let mut drive = drive(5000, 3650, &[]);
    let [_, csb, _] = pages(&drive);
    let before = drive.now();
    let arrival = before;
    drive.submit(&Request::read(csb * 4096, 4096).at(arrival)).unwrap();
    while drive.outstanding() > 0 {
        assert!(drive.advance_unless_at_rest());
    }
    let done = drive.completions().next().expect("the read is completed");
    assert_eq!(done.failed, Some(FailReason::Uncorrectable));
    assert_eq!((drive.now() - before).ns() / US, 4 * (SENSE_US[1] + REST_US));
}

/// With `last-good` the tries of a read begin at the entry that last decoded a page of the superblock, go on to the end
/// of the table and then from its beginning.
#[test]
fn with_last_good_a_read_starts_at_the_last_good_entry_of_its_superblock() {
    let model =
        VthTlc::new(&VthTlcSpec { sigma: 1.0, shift: 1.0, sensing_step: 3.0, early: None, layers: None });
    let (mut overshoots, mut wraps, mut rises, mut losses) = (0, 0, 0, 0);
    for (pe, days) in [(0, 1), (1000, 30), (2000, 365), (3000, 60), (3000, 900), (8000, 100), (8000, 700)] {
        // A second of simulated time is a day of the data.
        let mut drive = drive(pe, days, &["ecc.start=last-good", "reliability.clock_scale=86400.0"]);
        let mut good = BTreeMap::new();
        let mut read = |drive: &mut Drive<Oracle>, lpn: u32| {
            let Some(unit) = drive.ftl().map.get(Lpn(lpn)) else { return };
            let (superblock, index) = drive.geometry().split(unit);
            let kind = drive.array().shapes().first().kind(index) as usize - PageKind::Lsb as usize;
            let clock = AgeClock::new(86_400.0);
            let age = f64::from(drive.array().stamp(unit).corrected.age_s(clock.at(drive.now())));
            let rber = |entry: usize| model.rber_read_for(f64::from(pe), age, AGES[entry] * DAY_S)[kind];
            let start = *good.get(&superblock).unwrap_or(&0);
            let order: Vec<usize> = (start..AGES.len()).chain(0..start).collect();
            let found = order.iter().position(|&entry| rber(entry) < LIMIT);
            let tries = found.map_or(AGES.len(), |failed| failed + 1) as u64;
            let took = one(drive, Op::Read, u64::from(lpn) * 4096, 4096) / US;
            assert_eq!(took, tries * (SENSE_US[kind] + REST_US), "{pe} {days} {lpn} from {start}");
            losses += usize::from(found.is_none() && start > 0);
            let Some(failed) = found else { return };
            let entry = order[failed];
            good.insert(superblock, entry);
            rises += usize::from(entry > start);
            wraps += usize::from(entry < start);
            overshoots += usize::from(failed == 0 && (0..start).any(|before| rber(before) < LIMIT));
        };
        (0..64).chain(0..64).for_each(|lpn| read(&mut drive, lpn));
        // Superblocks with old and young units.
        for step in 1..12u32 {
            one(&mut drive, Op::Write, u64::from(step) * 4096, 4096);
            let from = step.saturating_sub(3);
            (from..=step).for_each(|lpn| read(&mut drive, lpn));
            drive.advance(drive.now() + u64::from(30 * step) * SECOND);
            (from..=step).for_each(|lpn| read(&mut drive, lpn));
        }
    }
    let counts = [overshoots, wraps, rises, losses];
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
}

/// A page's last good entry decodes it as long as it has not become old enough to need a later one. So a read that
/// starts there never starts too far.
#[test]
fn a_good_entry_stays_good_until_a_later_one_is_needed() {
    let tlc =
        VthTlc::new(&VthTlcSpec { sigma: 1.0, shift: 1.0, sensing_step: 3.0, early: None, layers: None });
    let mlc = Vth::new(&VthSpec {
        dvpp: 0.38,
        cell_to_cell: 0.05,
        sensing_step: 0.02,
        per_page_kind: true,
        unworn_loss: 0.0,
    });
    let mut changes = 0;
    for pe in [0.0, 1000.0, 3000.0, 10_000.0] {
        let rbers = |age: f64, entry: f64| {
            let [lsb, csb, msb] = tlc.rber_read_for(pe, age, entry * DAY_S);
            let of_mlc = mlc.rber_read_for(pe, age, entry * DAY_S);
            [(lsb, LIMIT), (csb, LIMIT), (msb, LIMIT), (of_mlc.lsb, 0.004), (of_mlc.msb, 0.004)]
        };
        for page in 0..5 {
            let decodes = |age: f64, entry: usize| {
                let (rber, limit) = rbers(age, AGES[entry])[page];
                rber < limit
            };
            let mut good = 0;
            for age in (0..200).map(|step| 3600.0 * 1.06f64.powi(step)) {
                match (0..AGES.len()).find(|&entry| decodes(age, entry)) {
                    Some(needed) => {
                        assert!(needed >= good, "{pe} {page} {age}: entry {needed} after {good}");
                        assert!(needed > good || decodes(age, good), "{pe} {page} {age}: {good}");
                        changes += usize::from(needed > good);
                        good = needed;
                    }
                    None => break,
                }
            }
        }
    }
    assert!(changes > 10, "{changes}");
}

/// Cells with early retention loss, and their read-retry table of equal steps (docs/explanation/reliability.md).
const AGED: VthTlcSpec = VthTlcSpec {
    sigma: 0.92,
    shift: 0.2,
    sensing_step: 3.0,
    early: Some(EarlyLoss { loss: 3.0, from: Span::from_ns(126_000_000_000) }),
    layers: None,
};
const STEPS: u32 = 32;
const STEP: f64 = 1.3;

/// The entry of a step of the table, 0 for the default references.
fn step_entry(step: u32) -> Entry {
    if step == 0 { Entry::Aged(0) } else { Entry::Lowered(f64::from(step) * STEP) }
}

/// Every page of a drive of four layers pays the tries up to the first step that decodes it. Layers of rows 0 to 7: 0, 0,
/// 1, 1, 2, 2, 3, 3. With a ratio of 2 and the worst layer 3 they have the factors 1, 2^(1/3), 2^(2/3) and 2, divided by
/// their mean.
#[test]
fn a_table_of_equal_steps_is_tried_step_by_step_with_the_factor_of_the_layer() {
    let model = VthTlc::new(&AGED);
    let factors = [0.0, 1.0, 2.0, 3.0].map(|layer: f64| 2.0f64.powf(layer / 3.0));
    let mean = factors.iter().sum::<f64>() / 4.0;
    let mut counts = [0; STEPS as usize + 1];
    for (pe, days, layers) in
        [(0, 0, false), (0, 91, false), (0, 91, true), (2000, 365, false), (2000, 365, true)]
    {
        let layers_text = if layers { ", layers = { ratio = 2.0, worst = 1.0 }" } else { "" };
        let [lsb, csb, msb] = SENSE_US;
        let text = format!(
            "{TINY}[ecc]\nlevels.retry = {{ rber_max = {LIMIT}, sense = {{ lsb = '{lsb}us', csb = '{csb}us', \
             msb = '{msb}us' }}, transfer = '10us', decode = '15us', entries = {{ steps = {STEPS}, size = {STEP} }} }}\n\
             [reliability]\nrber.vth-tlc = {{ sigma = 0.92, shift = 0.2, early = {{ loss = 3.0 }}{layers_text} }}\n\
             pe_cycles = {pe}\nretention = '{days}d'\n[precondition]\nused = 0.5\nvalid = 0.8\n[gc]\nidle_after = '10s'\n"
        )
        .replace("cell = \"mlc\"", "cell = \"3d-tlc\"")
        .replace("[timing]\nprogram", "layers = 4\n[timing]\nprogram");
        let mut drive = with_oracle(&spec(&text, &[]));
        for lpn in 0..48u32 {
            let Some(unit) = drive.ftl().map.get(Lpn(lpn)) else { continue };
            let index = drive.geometry().split(unit).1;
            let shape = drive.array().shapes().first();
            let (kind, row) = (shape.kind(index) as usize - PageKind::Lsb as usize, shape.row(index));
            let factor = if layers { factors[row as usize / 2] / mean } else { 1.0 };
            let rber = |step: &u32| {
                let age_s = f64::from(days) * DAY_S;
                factor * model.rber_read_with(f64::from(pe), age_s, step_entry(*step))[kind]
            };
            let step = (0..=STEPS).find(|step| rber(step) < LIMIT).expect("a step decodes the page");
            counts[step as usize] += 1;
            let took = one(&mut drive, Op::Read, u64::from(lpn) * 4096, 4096) / US;
            assert_eq!(
                took,
                u64::from(step + 1) * (SENSE_US[kind] + REST_US),
                "{pe} {days} {layers} row {row}"
            );
        }
        read_everything(&mut drive);
    }
    // More than the three steps of the kinds without layers.
    assert!(counts[0] > 0 && counts.iter().filter(|&&count| count > 0).count() > 10, "{counts:?}");
}

/// As above for entries of ages: with equal steps a page never needs an earlier entry later, at the wear at which it was
/// programmed.
#[test]
fn a_good_step_stays_good_until_a_later_one_is_needed() {
    let model = VthTlc::new(&AGED);
    for pe in [0.0, 1000.0, 3000.0] {
        for kind in 0..3 {
            let mut good = 0;
            for age in (0..95).map(|step| 1.2f64.powi(step)).take_while(|&age| age < 400.0 * DAY_S) {
                let decodes = |step: u32| model.rber_read_with(pe, age, step_entry(step))[kind] < LIMIT;
                let needed = (0..=STEPS).find(|&step| decodes(step)).expect("a step decodes the page");
                assert!(needed >= good, "{pe} {kind} {age}: step {needed} after {good}");
                assert!(needed > good || decodes(good), "{pe} {kind} {age}: {good}");
                good = needed;
            }
            assert!(good > 3, "{pe} {kind}: {good}");
        }
    }
}
