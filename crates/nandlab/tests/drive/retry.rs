//! Read-retry tables (`ecc.levels = { retry = ... }`): the tries of a read, against the RBER of the exact models.

use crate::common::{TINY, US, one, read_everything, spec, with_oracle};
use nandlab::base::geometry::{Lpn, PageKind};
use nandlab::drive::spec::{VthSpec, VthTlcSpec};
use nandlab::drive::{Drive, FailReason};
use nandlab::flash::reliability::{Vth, VthTlc};
use nandlab::host::{Op, Oracle, Request};

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
    let model = VthTlc::new(&VthTlcSpec { sigma: 1.0, shift: 1.0, sensing_step: 3.0 });
    let rber = |age: f64| model.rber_read_for(f64::from(pe), f64::from(days) * DAY_S, age * DAY_S)[kind];
    AGES.iter().position(|&age| rber(age) < LIMIT).map(|entry| entry + 1)
}

/// A page of each kind: LSB, CSB, MSB.
fn pages(drive: &Drive<Oracle>) -> [u64; 3] {
    let kind = |lpn: u32| {
        let ppn = drive.ftl().map.get(Lpn(lpn))?;
        Some(drive.geometry().kind(drive.geometry().split(ppn).1))
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
    drive.submit(&Request { arrival, op: Op::Read, fua: false, offset: csb * 4096, len: 4096 }).unwrap();
    while drive.outstanding() > 0 {
        assert!(drive.advance_by_event(nandlab::base::units::Time::NEVER));
    }
    let done = drive.completions().next().expect("the read is completed");
    assert_eq!(done.failed, Some(FailReason::Uncorrectable));
    assert_eq!((drive.now() - before).ns() / US, 4 * (SENSE_US[1] + REST_US));
}

/// A page's last good entry decodes it as long as it has not become old enough to need a later one. So a read that
/// starts there never starts too far.
#[test]
fn a_good_entry_stays_good_until_a_later_one_is_needed() {
    let tlc = VthTlc::new(&VthTlcSpec { sigma: 1.0, shift: 1.0, sensing_step: 3.0 });
    let mlc = Vth::new(&VthSpec { dvpp: 0.38, cell_to_cell: 0.05, sensing_step: 0.02, per_page_kind: true });
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
