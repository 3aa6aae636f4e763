//! Lost writes by what was promised, by hand: the request was outstanding, had completed, or was covered by a completed
//! flush or FUA write. The oracle of each drive compares the list with its own.

use crate::common::{TINY, at, ns, one, read_everything, request, settle, spec, with_oracle};
use nandlab::base::geometry::Lpn;
use nandlab::base::lost::{Lost, Promise};
use nandlab::drive::Drive;
use nandlab::host::{Op, Oracle};
use nandlab::power_loss::PowerLoss;

const PAGE: u64 = 4096;
const CACHE: &[&str] = &["cache.size=64KiB", "cache.access='1us'"];
/// A page of 16 KiB, a unit of 4 KiB.
const BUFFER: &[&str] = &["drive.page_size=16KiB", "ftl.mapping_unit=4KiB", "ftl.buffer=64KiB"];
const LINK: &[&str] = &["host.link={ mb_per_s = 1000, latency = '3us' }"];

fn begin(drive: &mut Drive<Oracle>, op: Op, unit: u64, units: u64, fua: bool) {
    let request = request(drive, op, unit * PAGE, units * PAGE).with_fua(fua);
    drive.submit(&request).unwrap();
}

/// Power fails. Afterwards every unit reads as the drive has said.
fn cut(drive: &mut Drive<Oracle>) -> PowerLoss {
    let loss = drive.cut_power().clone();
    drive.completions();
    drive.probe().verdict().unwrap();
    settle(drive);
    read_everything(drive);
    loss
}

fn by_promise(loss: &PowerLoss) -> [Vec<(u32, u64)>; 3] {
    [Promise::Covered, Promise::Acknowledged, Promise::InFlight]
        .map(|promise| loss.lost_by(promise).into_iter().map(|(lpn, sequence)| (lpn.0, sequence)).collect())
}

fn lost(lpn: u32, promise: Promise, sequence: u64, was_in_flash: bool) -> Lost {
    Lost { lpn: Lpn(lpn), promise, sequence, is_trim: false, was_in_flash }
}

#[test]
fn a_write_whose_request_is_outstanding_was_never_acknowledged() {
    for (sets, fua) in [(CACHE, false), (CACHE, true), (BUFFER, true), (&[], false), (&[], true)] {
        let mut drive = with_oracle(&spec(TINY, sets));
        begin(&mut drive, Op::Write, 3, 1, fua);
        assert_eq!(drive.completions().count(), 0, "{sets:?}");
        let loss = cut(&mut drive);
        assert_eq!((by_promise(&loss), loss.has_lost()), ([vec![], vec![], vec![(3, 1)]], false), "{sets:?}");
    }
}

/// The cache has 16 units, so most units of the request have not been admitted.
#[test]
fn every_unit_of_an_outstanding_request_is_in_flight() {
    let mut drive = with_oracle(&spec(TINY, CACHE));
    begin(&mut drive, Op::Write, 0, 40, false);
    let loss = cut(&mut drive);
    let [covered, acknowledged, in_flight] = by_promise(&loss);
    assert_eq!((covered.len(), acknowledged.len(), in_flight.len()), (0, 0, 40));
    let admitted = in_flight.iter().filter(|&&(_, sequence)| sequence != 0).count();
    assert_eq!((loss.dirty_pages as usize, admitted), (16, 16));
}

/// The completion reaches the host 3 us after the drive has completed the request; 4.096 us and 3 us before, the data
/// begins to cross.
#[test]
fn a_completion_on_the_link_acknowledges_nothing() {
    for (wait, promise) in [(11_000, Promise::InFlight), (11_200, Promise::Acknowledged)] {
        let mut drive = with_oracle(&spec(TINY, &[CACHE, LINK].concat()));
        begin(&mut drive, Op::Write, 3, 1, false);
        drive.advance(at(wait));
        let loss = cut(&mut drive);
        assert_eq!(loss.lost, [lost(3, promise, 1, false)], "{wait} ns");
    }
}

/// The host has the completion of the flush only when it has crossed the link, too.
#[test]
fn a_flush_covers_what_was_submitted_before_it_once_the_host_has_its_completion() {
    // The capacitor has no energy for a page.
    let backed = ["capacitor.capacitance='1uF'", "cache.flush_to=cache"];
    for (sets, covered) in [(&[][..], true), (LINK, false)] {
        let mut drive = with_oracle(&spec(TINY, &[CACHE, &backed, sets].concat()));
        one(&mut drive, Op::Write, 3 * PAGE, PAGE);
        begin(&mut drive, Op::Flush, 0, 0, false);
        drive.advance(drive.now() + ns(100));
        begin(&mut drive, Op::Write, 3, 1, false);
        let loss = cut(&mut drive);
        let list = vec![(3, 1)];
        let [acknowledged, covered] = if covered { [vec![], list] } else { [list, vec![]] };
        assert_eq!(by_promise(&loss), [covered, acknowledged, vec![]], "{sets:?}");
    }
}

/// Without a capacitor the buffer loses what no flush has programmed. Each unit counts once, under the strongest
/// promise that is broken.
#[test]
fn what_a_flush_has_programmed_is_not_lost_with_a_newer_write() {
    for sets in [CACHE, BUFFER] {
        let mut drive = with_oracle(&spec(TINY, sets));
        for unit in [0, 1] {
            one(&mut drive, Op::Write, unit * PAGE, PAGE);
        }
        one(&mut drive, Op::Flush, 0, 0);
        for unit in [1, 2] {
            one(&mut drive, Op::Write, unit * PAGE, PAGE);
        }
        begin(&mut drive, Op::Write, 2, 2, true);
        let loss = cut(&mut drive);
        // LPN 2 was acknowledged as write 4; LPN 3 never was.
        let [covered, acknowledged, in_flight] = by_promise(&loss);
        assert_eq!((covered, acknowledged), (vec![], vec![(1, 3), (2, 4)]), "{sets:?}");
        assert_eq!(in_flight.iter().map(|&(lpn, _)| lpn).collect::<Vec<_>>(), [3], "{sets:?}");
    }
}

/// The write is in flash, and its completion on the way, when power fails. The host finds its data, and flushes: a flush
/// covers what the host can read, also if the request was never completed, and if the unit was deallocated before.
#[test]
fn what_a_recovery_has_found_is_promised_from_then_on() {
    for (trims, flush, promise) in [
        (false, true, Promise::Covered),
        (true, true, Promise::Covered),
        (true, false, Promise::Acknowledged),
    ] {
        let slow = "host.link={ mb_per_s = 1000, latency = '5ms' }";
        // GC has no open block of its own, with which recovery would continue the only one.
        let [shared, pacing] = ["migration.first_block=shared", "gc.pacing=none"];
        let mut drive =
            with_oracle(&spec(TINY, &["drive.channels=1", "drive.planes_per_die=1", shared, pacing, slow]));
        let mut sequence = 1;
        if trims {
            // Two pages, so that the write in flight is on an LSB page too.
            for unit in [0, 1] {
                one(&mut drive, Op::Write, unit * PAGE, PAGE);
            }
            one(&mut drive, Op::Trim, 0, PAGE);
            sequence = 4;
        }
        begin(&mut drive, Op::Write, 0, 1, false);
        drive.advance(drive.now() + ns(8_000_000));
        let loss = cut(&mut drive);
        assert_eq!((loss.lost, loss.torn_programs), (vec![], 0), "the write is in flash");
        drive.completions();
        if flush {
            one(&mut drive, Op::Flush, 0, 0);
        }
        begin(&mut drive, Op::Write, 2, 1, false);
        drive.advance(drive.now() + ns(5_200_000));
        let loss = cut(&mut drive);
        assert_eq!(loss.torn_programs, 1);
        let expected = [lost(0, promise, sequence, true), lost(2, Promise::InFlight, sequence + 1, false)];
        assert_eq!(loss.lost, expected, "{trims} {flush}");
    }
}

/// On MLC the torn MSB page of a wordline destroys the LSB page, whose write a FUA flag, or a flush, covers.
#[test]
fn a_torn_program_breaks_the_promise_of_a_flush() {
    for (fua, flush, promise) in [
        (true, false, Promise::Covered),
        (false, true, Promise::Covered),
        (false, false, Promise::Acknowledged),
    ] {
        let mut drive = with_oracle(&spec(TINY, &["drive.channels=1", "drive.planes_per_die=1"]));
        begin(&mut drive, Op::Write, 0, 1, fua);
        drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
        drive.completions();
        if flush {
            one(&mut drive, Op::Flush, 0, 0);
        }
        begin(&mut drive, Op::Write, 1, 1, false);
        drive.advance(drive.now() + ns(100_000));
        let loss = cut(&mut drive);
        assert_eq!(loss.torn_programs, 1);
        assert_eq!(loss.lost, [lost(0, promise, 1, true), lost(1, Promise::InFlight, 2, false)]);
    }
}
