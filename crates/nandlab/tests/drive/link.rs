//! The link between host and drive: its transfer times, compared with calculations by hand and with a twin, and power
//! loss.

use crate::common::{IDLE, MS, SECOND, TINY, US, at, ns, one, read_everything, settle, spec};
use nandlab::base::geometry::Lpn;
use nandlab::base::lost::Promise;
use nandlab::base::rng::Stream;
use nandlab::base::units::{Span, Time, transfer_ns};
use nandlab::drive::spec::Spec;
use nandlab::drive::{Completion, Drive, FailReason, Failure, LinkDirection, SaveError};
use nandlab::host::{Op, Oracle, Request};
use nandlab::probe::{NoProbe, Probe};
use nandlab::report::{RunFacts, summary};

/// tR, transfer of a page, tPROG and decoding of [`TINY`], in nanoseconds.
const R: u64 = 50_000;
const T: u64 = 10_240;
const P: u64 = 900_000;
const D: u64 = 15_000;
const PAGE: u64 = 4096;
/// The transfer time of a page over [`LINK`], and the link's latency in one direction.
const DATA: u64 = 4096;
const L: u64 = 3_000;
const LINK: &str = "host.link={ mb_per_s = 1000, latency = '3us' }";

fn linked() -> Drive {
    filled(&spec(TINY, &[LINK]), NoProbe)
}

/// Returns a drive whose first 64 LPNs are mapped.
fn filled<W: Probe>(spec: &Spec, probe: W) -> Drive<W> {
    let mut drive = Drive::with_probe(spec, probe);
    (0..64).for_each(|lpn| _ = drive.write_now(Lpn(lpn)));
    drive
}

fn submit<W: Probe>(drive: &mut Drive<W>, op: Op, offset: u64, len: u64) -> u64 {
    drive.submit(&Request::new(op, offset, len).at(drive.now())).unwrap()
}

/// Lets the drive come to rest; returns (id, time of completion) of each request, in order of completion.
fn all<W: Probe>(drive: &mut Drive<W>) -> Vec<(u64, u64)> {
    drive.run_until_idle(IDLE).unwrap();
    drive.audit().unwrap();
    drive.completions().map(|c| (c.id, c.completed.ns())).collect()
}

fn busy<W: Probe>(drive: &Drive<W>) -> [u64; 2] {
    let link = drive.link().expect("the drive has a link");
    [link.to_drive.busy.ns(), link.to_host.busy.ns()]
}

#[test]
fn a_read_costs_the_latency_twice_and_its_data_once() {
    let mut drive = linked();
    assert_eq!(one(&mut drive, Op::Read, 0, PAGE), L + R + T + D + DATA + L);
    assert_eq!(
        one(&mut drive, Op::Read, PAGE, 512),
        L + R + T + D + 512 + L,
        "only the requested bytes cross the link"
    );
    assert_eq!(
        one(&mut drive, Op::Read, 100 * PAGE, PAGE),
        L + DATA + L,
        "the data of an unmapped unit crosses the link as well"
    );
    assert_eq!(busy(&drive), [0, 2 * DATA + 512]);
}

#[test]
fn a_write_costs_its_data_and_the_latency_twice() {
    let mut drive = linked();
    assert_eq!(one(&mut drive, Op::Write, 0, PAGE), DATA + L + T + P + L);
    assert_eq!(busy(&drive), [DATA, 0]);
    assert_eq!(one(&mut drive, Op::Trim, 0, PAGE), 2 * L);
    assert_eq!(one(&mut drive, Op::Flush, 0, 0), 2 * L);
    assert_eq!(busy(&drive), [DATA, 0]);
}

#[test]
fn transfer_times_are_rounded_up_once_per_request() {
    // 4096 bytes at 1500 MB/s are 2730.7 ns.
    let mut drive = filled(&spec(TINY, &["host.link={ mb_per_s = 1500 }"]), NoProbe);
    assert_eq!(one(&mut drive, Op::Read, 0, PAGE), R + T + D + 2731);
    assert_eq!(
        one(&mut drive, Op::Read, 0, 3 * PAGE),
        2 * (R + T) + D + 8192,
        "LPNs 0 and 2 are on the same die"
    );
    assert_eq!(one(&mut drive, Op::Write, 0, PAGE), 2731 + T + P);
}

#[test]
fn the_data_of_writes_crosses_in_the_order_of_submission() {
    // LPNs 0, 1 and 2 are on different channels.
    let mut drive = filled(&spec(TINY, &[LINK, "drive.channels=4"]), NoProbe);
    let first = submit(&mut drive, Op::Write, 0, PAGE);
    let second = submit(&mut drive, Op::Write, PAGE, PAGE);
    assert_eq!(drive.link().unwrap().to_drive, LinkDirection { requests: 2, busy: Span::ZERO });
    drive.advance(at(DATA));
    let third = submit(&mut drive, Op::Write, 2 * PAGE, PAGE);
    assert_eq!(drive.link().unwrap().to_drive, LinkDirection { requests: 3, busy: ns(DATA) });
    let rest = L + T + P + L;
    assert_eq!(all(&mut drive), [(first, DATA + rest), (second, 2 * DATA + rest), (third, 3 * DATA + rest)]);
    // The link has been idle in the meantime, so the next transfer does not wait.
    let now = drive.now().ns();
    let fourth = submit(&mut drive, Op::Write, 0, PAGE);
    assert_eq!(all(&mut drive), [(fourth, now + DATA + rest)]);
}

#[test]
fn a_read_does_not_wait_for_the_data_of_a_write_before_it() {
    let mut drive = linked();
    let write = submit(&mut drive, Op::Write, 64 * PAGE, 16 * PAGE);
    let read = submit(&mut drive, Op::Read, 0, PAGE);
    let done = all(&mut drive);
    assert_eq!(done[0], (read, L + R + T + D + DATA + L));
    // Each of the two dies programs eight pages one after another, because its two planes do not program in parallel.
    assert_eq!(done[1].0, write);
    assert!(done[1].1 > 16 * DATA + L + 8 * P);
}

#[test]
fn reads_decoded_at_the_same_time_share_the_link_to_the_host() {
    let mut drive = linked();
    let (first, second) = (submit(&mut drive, Op::Read, PAGE, PAGE), submit(&mut drive, Op::Read, 0, PAGE));
    drive.advance(at(L + R + T + D));
    let to_host = drive.link().unwrap().to_host;
    assert_eq!(to_host, LinkDirection { requests: 2, busy: Span::ZERO });
    assert_eq!(drive.outstanding(), 2);
    // Both reads are decoded at the same time; their data crosses the link one after the other.
    let done = L + R + T + D + DATA + L;
    let mut completions = all(&mut drive);
    assert_eq!(completions.iter().map(|c| c.1).collect::<Vec<_>>(), [done, done + DATA]);
    completions.sort_unstable();
    assert_eq!(completions.iter().map(|c| c.0).collect::<Vec<_>>(), [first, second]);
}

#[test]
fn the_directions_are_independent_and_a_completion_waits_for_no_data() {
    let mut drive = linked();
    // A read and a write are submitted at the same time, to different channels: each takes as long as alone.
    let alone = |op: Op, offset: u64| one(&mut linked(), op, offset, PAGE);
    let (read, write) = (submit(&mut drive, Op::Read, 0, PAGE), submit(&mut drive, Op::Write, PAGE, PAGE));
    assert_eq!(all(&mut drive), [(read, alone(Op::Read, 0)), (write, alone(Op::Write, PAGE))]);
    // A TRIM is completed while the data of a long read crosses the link.
    let began = drive.now().ns();
    let read = submit(&mut drive, Op::Read, 128 * PAGE, 64 * PAGE);
    drive.advance(at(began + 10 * US));
    let trim = submit(&mut drive, Op::Trim, 0, PAGE);
    assert_eq!(all(&mut drive), [(trim, began + 10 * US + 2 * L), (read, began + L + 64 * DATA + L)]);
}

#[test]
fn flushes_and_trims_cross_the_link_in_order_with_writes() {
    let mut drive = linked();
    let write = submit(&mut drive, Op::Write, 0, PAGE);
    let flush = submit(&mut drive, Op::Flush, 0, 0);
    let later = submit(&mut drive, Op::Write, PAGE, PAGE);
    let (done, after) = (DATA + L + T + P + L, 2 * DATA + L + T + P + L);
    assert_eq!(all(&mut drive), [(write, done), (flush, done), (later, after)]);
    // The TRIM crosses after the data of the write before it, and does not wait for this write's programs.
    let began = drive.now().ns();
    let write = submit(&mut drive, Op::Write, 0, 8 * PAGE);
    let trim = submit(&mut drive, Op::Trim, 0, PAGE);
    let again = submit(&mut drive, Op::Write, PAGE, PAGE);
    let done = all(&mut drive);
    assert_eq!(done[0], (trim, began + 8 * DATA + L + L));
    assert_eq!([done[1].0, done[2].0], [write, again]);
    assert_eq!(drive.ftl().map.get(Lpn(0)), None, "the TRIM reached the drive before the write");
    assert!(drive.ftl().map.get(Lpn(1)).is_some());
}

#[test]
fn a_failed_read_transfers_no_data() {
    let errors = "[reliability]\nrber = 'vth'\npe_cycles = 12000\nretention = '3650d'\n\
         [ecc]\nlevels = [{ rber_max = 1e-9, sense = '50us', transfer = '10240ns', decode = '15us' }]\n\
         [precondition]\nused = 0.5\nvalid = 0.5\n";
    let mut drive = Drive::new(&spec(&(TINY.to_owned() + errors), &[LINK]));
    drive.precondition(&mut |_| true);
    submit(&mut drive, Op::Read, 0, PAGE);
    drive.run_until_idle(IDLE).unwrap();
    let done: Vec<Completion> = drive.completions().collect();
    assert_eq!(done[0].failed, Some(FailReason::Uncorrectable));
    assert_eq!(done[0].completed, at(L + R + T + D + L));
    assert_eq!(busy(&drive), [0, 0]);
}

#[test]
fn latency_counts_from_the_arrival_and_link_time_from_the_submission() {
    let mut drive = linked();
    drive.advance(at(MS));
    drive.submit(&Request::read(0, PAGE).at(at(MS - 700))).unwrap();
    assert_eq!(all(&mut drive)[0].1, MS + L + R + T + D + DATA + L);
    assert_eq!(drive.stats().host[Op::Read as usize].max_ns, 700 + L + R + T + D + DATA + L);
}

#[test]
fn a_request_on_the_link_is_outstanding() {
    let mut drive = linked();
    submit(&mut drive, Op::Trim, 0, PAGE);
    for crossed in [0, L] {
        drive.advance(at(crossed));
        assert_eq!((drive.outstanding(), drive.is_at_rest()), (1, false));
        assert!(matches!(drive.may_save(), Err(SaveError::UnderWay { requests: 1 })));
    }
    assert!(drive.advance_to_completion(Time::NEVER));
    assert_eq!((drive.now(), drive.outstanding(), drive.is_at_rest()), (at(2 * L), 0, true));
    // A request on the link keeps the drive from being idle; the idle time counts from the completion of the request.
    submit(&mut drive, Op::Flush, 0, 0);
    assert!(drive.run_until_idle(ns(1)).is_err());
    drive.run_until_idle(IDLE).unwrap();
    assert_eq!(drive.now(), at(4 * L) + drive.spec().gc.idle_after_ns);
    drive.may_save().unwrap();
}

#[test]
fn sequential_reads_of_a_fast_drive_reach_the_bandwidth_of_the_link() {
    let fast = "[drive]\nchannels = 8\nchips_per_channel = 2\npage_size = '4KiB'\nblocks_per_plane = 32\nop = 0.25\n\
         [timing]\nread = '5us'\nchannel_ns_per_byte = 0.5\ndecode = '1us'\n";
    for (mb_per_s, data) in [(1000.0, 4096), (1500.0, 2731), (7000.0, 586)] {
        let mut drive =
            Drive::new(&spec(fast, &[&format!("host.link={{ mb_per_s = {mb_per_s}, latency = '1us' }}")]));
        let units = u64::from(drive.geometry().logical_units);
        (0..units as u32).for_each(|lpn| _ = drive.write_now(Lpn(lpn)));
        let mut next = 0;
        while next < units || drive.outstanding() > 0 {
            while next < units && drive.outstanding() < 128 {
                submit(&mut drive, Op::Read, next * PAGE, PAGE);
                next += 1;
            }
            assert!(drive.advance_to_completion(Time::NEVER));
            drive.completions();
        }
        // From the first page on, the link transfers data without a pause.
        let first = 1000 + 5000 + 2048 + 1000;
        assert_eq!(drive.now(), at(first + units * data + 1000), "{mb_per_s} MB/s");
        assert_eq!(busy(&drive), [0, units * data]);
        let summary = summary(&drive, &RunFacts::default());
        let reached = summary["mb_per_s"].as_f64().unwrap();
        assert!((reached / mb_per_s - 1.0).abs() < 2e-3, "{reached} of {mb_per_s} MB/s");
        assert!(summary["link"]["to_host"].as_f64().unwrap() > 0.995);
        assert_eq!(summary["link"]["to_drive"], 0.0);
    }
}

#[test]
fn without_a_link_results_are_unchanged_and_have_no_link_section() {
    let played = |sets: &[&str]| {
        let mut drive = filled(&spec(TINY, sets), NoProbe);
        let mut stream = Stream::new(5, "link");
        for _ in 0..2000 {
            while drive.outstanding() >= 8 {
                drive.advance_to_completion(Time::NEVER);
                drive.completions();
            }
            let op = Op::ALL[stream.below(4) as usize];
            let (offset, len) = if op == Op::Flush {
                (0, 0)
            } else {
                (512 * stream.below(1000), 512 * (1 + stream.below(20)))
            };
            submit(&mut drive, op, offset, len);
        }
        drive.run_until_idle(IDLE).unwrap();
        drive.finish_stats();
        (drive.link().is_some(), summary(&drive, &RunFacts::default()))
    };
    let (has_link, without) = played(&[]);
    assert!(!has_link && without.get("link").is_none());
    assert_eq!(played(&["host.link=none"]), (false, without));
    let (has_link, with) = played(&[LINK]);
    assert!(has_link && with.get("link").is_some());
}

/// Simulates one direction of the link in a simple way; returns the time of arrival of each transfer. `sent` gives the
/// time of each transfer and its bytes; a transfer with `None` has no data and waits for none.
fn crossing(sent: &[(u64, Option<u64>)], ns_per_byte: f64, latency: u64) -> Vec<u64> {
    let mut free = 0;
    let arrives = |&(now, bytes): &(u64, Option<u64>)| match bytes {
        None => now + latency,
        Some(bytes) => {
            free = free.max(now) + transfer_ns(bytes, ns_per_byte).ns();
            free + latency
        }
    };
    sent.iter().map(arrives).collect()
}

/// The twin is a drive without a link. It gets each request when the request has crossed the link, and its completions
/// cross the link afterwards.
#[test]
fn a_drive_with_a_link_behaves_like_a_drive_between_two_queues() {
    let caches = [
        "",
        "[cache]\nsize = '64KiB'\nsync = 'punctual'\ndirty_budget = 0.5\n",
        "[cache]\nsize = '256KiB'\n",
    ];
    let mut reordered = 0;
    for seed in 0..60 {
        let mut stream = Stream::new(seed, "link twin");
        let text = TINY.to_owned() + caches[seed as usize % 3];
        // Idle time would begin earlier without a link, so the runs have no work in idle time.
        let sets = [
            "gc.idle_after='1d'",
            ["timing.multi_plane=true", "timing.multi_plane=false"][stream.below(2) as usize],
        ];
        let (mb_per_s, latency) =
            ([20, 333, 5000][stream.below(3) as usize], [0, 700, 40_000][stream.below(3) as usize]);
        let link = format!("host.link={{ mb_per_s = {mb_per_s}, latency = '{latency}ns' }}");
        let mut drive = filled(&spec(&text, &[&sets[..], &[&link]].concat()), Oracle::default());
        let mut twin = filled(&spec(&text, &sets), Oracle::default());

        let mut requests = Vec::new();
        for _ in 0..400 {
            let op =
                [Op::Write, Op::Write, Op::Read, Op::Read, Op::Trim, Op::Flush][stream.below(6) as usize];
            let (offset, len) = if op == Op::Flush {
                (0, 0)
            } else {
                (512 * stream.below(1000), 512 * (1 + stream.below(20)))
            };
            let request = Request::new(op, offset, len).at(drive.now()).with_fua(stream.below(8) == 0);
            assert_eq!(drive.submit(&request).unwrap(), requests.len() as u64);
            requests.push(request);
            drive.advance(
                drive.now() + ns([0, stream.below(MS / 2), stream.below(5 * MS)][stream.below(3) as usize]),
            );
        }
        drive.run_until_idle(100 * nandlab::base::units::DAY).unwrap();
        let linked: Vec<Completion> = drive.completions().collect();

        let in_line = |request: &Request| match request.op {
            Op::Read => None,
            Op::Write => Some(request.len),
            Op::Trim | Op::Flush => Some(0),
        };
        let ns_per_byte = 1e9 / (mb_per_s as f64 * 1e6);
        let sent: Vec<_> = requests.iter().map(|request| (request.arrival.ns(), in_line(request))).collect();
        let arrivals = crossing(&sent, ns_per_byte, latency);
        let mut order: Vec<usize> = (0..requests.len()).collect();
        order.sort_by_key(|&id| (arrivals[id], id));
        reordered += order.windows(2).filter(|pair| pair[0] > pair[1]).count();
        for &id in &order {
            twin.advance(at(arrivals[id]));
            twin.submit(&(requests[id]).at(twin.now())).unwrap();
        }
        twin.run_until_idle(100 * nandlab::base::units::DAY).unwrap();
        let done: Vec<Completion> = twin.completions().collect();
        let sent: Vec<_> = done
            .iter()
            .map(|c| (c.completed.ns(), (c.request.op == Op::Read).then_some(c.request.len)))
            .collect();
        let mut expected: Vec<(u64, usize)> =
            crossing(&sent, ns_per_byte, latency).into_iter().zip(0..).collect();
        expected.sort_unstable();
        let expected: Vec<(u64, u64)> =
            expected.into_iter().map(|(at, nth)| (order[done[nth].id as usize] as u64, at)).collect();
        let linked: Vec<(u64, u64)> = linked.iter().map(|c| (c.id, c.completed.ns())).collect();
        assert_eq!(linked, expected, "seed {seed}: {mb_per_s} MB/s, {latency} ns");
        settle(&mut drive);
        settle(&mut twin);
        assert_eq!(drive.stats().flash, twin.stats().flash);
    }
    assert!(reordered > 500, "reads overtook writes only {reordered} times");
}

#[test]
fn power_loss_aborts_requests_on_the_link() {
    let mut drive = filled(&spec(TINY, &[LINK]), Oracle::default());
    // At the power loss four requests are on the link: the completion of a write crosses to the host, and a read, a
    // write and a TRIM cross to the drive.
    let acknowledged = submit(&mut drive, Op::Write, 0, PAGE);
    drive.advance(at(DATA + L + T + P));
    let sequence = |drive: &Drive<Oracle>, lpn: u32| {
        drive.array().stamp(drive.ftl().map.get(Lpn(lpn)).expect("the LPN is mapped")).sequence
    };
    let (kept, before) = (sequence(&drive, 0), sequence(&drive, 5));
    let read = submit(&mut drive, Op::Read, 80 * PAGE, PAGE);
    let never_there = submit(&mut drive, Op::Write, 5 * PAGE, PAGE);
    let trim = submit(&mut drive, Op::Trim, 6 * PAGE, PAGE);
    drive.advance(drive.now() + ns(L - 1));
    let link = drive.link().unwrap();
    assert_eq!((link.to_drive.requests, link.to_host.requests), (3, 1));
    assert_eq!(link.to_drive.busy.ns(), DATA + L - 1);
    let loss = drive.cut_power();
    assert_eq!((loss.aborted_requests, loss.has_lost()), (4, false));
    // The write on the link had no sequence number yet. The TRIM on the link promises nothing.
    assert_eq!(loss.lost_by(Promise::InFlight), [(Lpn(5), 0)]);
    let cut = loss.at;
    let ended: Vec<_> = drive.completions().map(|c| (c.id, c.completed, c.failed)).collect();
    let lost = Some(FailReason::PowerLost);
    assert_eq!(ended, [acknowledged, read, never_there, trim].map(|id| (id, cut, lost)));
    assert_eq!((sequence(&drive, 0), sequence(&drive, 5)), (kept, before));
    let link = drive.link().unwrap();
    assert_eq!((link.to_drive.requests, link.to_host.requests), (0, 0));
    assert_eq!(link.to_drive.busy.ns(), DATA + L - 1, "the transfer continued after the power loss");
    // After the power loss the link is free.
    assert_eq!(one(&mut drive, Op::Write, 0, PAGE), DATA + L + T + P + L);
    assert_eq!(one(&mut drive, Op::Read, 0, PAGE), L + R + T + D + DATA + L);
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn power_may_fail_at_every_event_of_the_link() {
    let (mut cuts, mut crossing) = (0, [0; 2]);
    for cached in [false, true] {
        let sets = [LINK, "cache.size='64KiB'", "capacitor.capacitance='75mF'"];
        let spec = spec(TINY, &sets[..if cached { 3 } else { 1 }]);
        for events in 0.. {
            let mut drive = filled(&spec, Oracle::default());
            let mut stream = Stream::new(3, "link cut");
            for _ in 0..12 {
                let op = [Op::Write, Op::Write, Op::Read, Op::Trim, Op::Flush][stream.below(5) as usize];
                let (offset, len) = if op == Op::Flush {
                    (0, 0)
                } else {
                    (512 * stream.below(400), 512 * (1 + stream.below(30)))
                };
                submit(&mut drive, op, offset, len);
            }
            let happened = (0..events).all(|_| drive.advance_unless_at_rest());
            if !happened || drive.outstanding() == 0 {
                break;
            }
            let (link, outstanding, done) =
                (drive.link().unwrap(), drive.outstanding(), drive.completions().count());
            crossing[0] += link.to_drive.requests;
            crossing[1] += link.to_host.requests;
            assert_eq!(outstanding as usize + done, 12);
            let loss = drive.cut_power().clone();
            assert!(!cached || !loss.has_lost(), "{loss:?}");
            let ended: Vec<_> = drive.completions().collect();
            assert_eq!(ended.len(), outstanding as usize);
            assert!(ended.iter().all(|c| c.failed == Some(FailReason::PowerLost)));
            assert_eq!(drive.stats().failed[FailReason::PowerLost as usize], u64::from(outstanding));
            settle(&mut drive);
            read_everything(&mut drive);
            cuts += 1;
        }
    }
    assert!(cuts > 100 && crossing.iter().all(|&requests| requests > 50), "{cuts} cuts, {crossing:?}");
}

#[test]
fn power_fails_after_requests_completed_at_the_host() {
    let mut drive = filled(&spec(TINY, &[LINK, "power.cut_after_requests=2"]), NoProbe);
    for lpn in 0..3 {
        submit(&mut drive, Op::Read, lpn * PAGE, PAGE);
    }
    drive.run_until_idle(IDLE).unwrap();
    let failed: Vec<_> = drive.completions().map(|c| (c.completed.ns(), c.failed)).collect();
    let second = L + R + T + D + 2 * DATA + L;
    assert_eq!(failed, [(second - DATA, None), (second, None), (second, Some(FailReason::PowerLost))]);
    assert_eq!(drive.stats().power.losses[0].at, at(second));
}

#[test]
fn a_transfer_beyond_the_end_of_time_is_a_failure() {
    // The transfer of a page takes ten seconds; the age clock ends after 21.5 s.
    let sets = ["host.link={ mb_per_s = 4.096e-4, latency = '10s' }", "reliability.clock_scale=1e8"];
    let mut drive = filled(&spec(TINY, &sets), NoProbe);
    assert_eq!(one(&mut drive, Op::Read, 80 * PAGE, 512), 21_250_000_000);
    let end = drive.end();
    assert_eq!(end.ns() / SECOND, 21);
    submit(&mut drive, Op::Write, 0, 64 * PAGE);
    let failure = drive.run_until_idle(1000 * nandlab::base::units::DAY).unwrap_err();
    assert_eq!(failure, Failure::TimeIsOver { end });
    // All transfers that wait for the slowest link together take more nanoseconds than a time can represent.
    let sets = [
        "drive.blocks_per_plane=1024",
        "drive.pages_per_block=1024",
        "host.link={ mb_per_s = 4.096e-4, latency = '10s' }",
        "reliability.clock_scale=1e3",
    ];
    let mut drive = Drive::new(&spec(TINY, &sets));
    let capacity = drive.geometry().logical_bytes();
    for _ in 0..1000 {
        submit(&mut drive, Op::Write, 0, capacity);
    }
    assert!(1000.0 * capacity as f64 / 409.6 * 1e9 > u64::MAX as f64);
    assert!(!drive.advance_to_completion(Time::NEVER));
    assert_eq!(drive.failure(), Some(&Failure::TimeIsOver { end: drive.end() }));
    assert_eq!(drive.outstanding(), 1000);
}
