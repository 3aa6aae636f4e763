//! The host interface: accepted and refused requests, times of completions, and the runner.

use crate::common::{MS, TINY, US, at, ns, one, spec};
use nandlab::base::geometry::Lpn;
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::{Completion, Drive, Refused};
use nandlab::host::{Op, Oracle, Request};
use nandlab::probe::Probe;
use nandlab::runner::{Runner, Source, Stopped};
use nandlab::sched::{Cause, FlashOp};

/// tR of [`TINY`] in nanoseconds.
const R: u64 = 50_000;
/// Transfer of a page.
const T: u64 = 10_240;
/// tPROG.
const P: u64 = 900_000;
/// Decoding.
const D: u64 = 15_000;
const PAGE: u64 = 4096;

fn submit<P: Probe>(drive: &mut Drive<P>, op: Op, offset: u64, len: u64) -> u64 {
    drive.submit(&Request::new(op, offset, len).at(drive.now())).unwrap()
}

/// Lets the drive come to rest; returns (id, time of completion) of each request, in order of completion.
fn all<P: Probe>(drive: &mut Drive<P>) -> Vec<(u64, u64)> {
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    drive.audit().unwrap();
    drive.completions().map(|c| (c.id, c.completed.ns())).collect()
}

fn when(completions: &[(u64, u64)], id: u64) -> u64 {
    completions.iter().find(|c| c.0 == id).expect("the request is completed").1
}

/// A drive is led from one next event to the next: between two of them nothing happens, and at rest there is none.
#[test]
fn next_events_lead_through_a_run() {
    for sets in
        [&[][..], &["cache.size=64KiB", "cache.access=1us"], &["drive.op=0.3", "precondition.used=0.8"]]
    {
        let requests = |drive: &mut Drive| {
            for number in 0..200 {
                let op = if number % 3 == 0 { Op::Read } else { Op::Write };
                submit(drive, op, number * 7 % 29 * PAGE, PAGE);
            }
            submit(drive, Op::Flush, 0, 0);
        };
        let mut twin = Drive::new(&spec(TINY, sets));
        requests(&mut twin);
        let expected = all(&mut twin);
        let mut drive = Drive::new(&spec(TINY, sets));
        assert_eq!(drive.next_event(), None, "a drive at rest: {sets:?}");
        requests(&mut drive);
        // Reads of what nobody has written are completed without an event.
        let mut done: Vec<(u64, u64)> = drive.completions().map(|c| (c.id, c.completed.ns())).collect();
        while let Some(next) = drive.next_event() {
            assert!(next >= drive.now());
            if next > drive.now() {
                drive.advance(at(next.ns() - 1));
                assert_eq!(drive.completions().count(), 0, "something was completed before the next event");
                assert_eq!(drive.next_event(), Some(next));
            }
            drive.advance(next);
            done.extend(drive.completions().map(|c| (c.id, c.completed.ns())));
        }
        assert_eq!(done, expected, "{sets:?}");
        drive.audit().unwrap();
    }
}

#[test]
fn a_flush_completes_with_the_last_write_before_it() {
    let mut drive = Drive::new(&spec(TINY, &[]));
    // LPNs 0 and 4 are on the same plane, so the second write ends at 2 (T + P); LPN 1 is on the other die.
    let first = submit(&mut drive, Op::Write, 0, PAGE);
    let second = submit(&mut drive, Op::Write, 4 * PAGE, PAGE);
    submit(&mut drive, Op::Write, PAGE, PAGE);
    let flush = submit(&mut drive, Op::Flush, 0, 0);
    // A write after the flush does not delay the flush.
    let after = submit(&mut drive, Op::Write, 8 * PAGE, PAGE);
    let done = all(&mut drive);
    assert_eq!(when(&done, first), T + P);
    assert_eq!(when(&done, second), 2 * (T + P));
    assert_eq!(when(&done, flush), 2 * (T + P));
    assert_eq!(when(&done, after), 3 * (T + P));
    let order: Vec<u64> = done.iter().map(|c| c.0).collect();
    assert!(order.iter().position(|&id| id == second) < order.iter().position(|&id| id == flush));
}

#[test]
fn a_flush_without_outstanding_writes_completes_at_once() {
    let mut drive = Drive::new(&spec(TINY, &[]));
    drive.advance(at(5 * MS));
    assert_eq!(one(&mut drive, Op::Flush, 0, 0), 0);
    one(&mut drive, Op::Write, 0, PAGE);
    assert_eq!(one(&mut drive, Op::Flush, 0, 0), 0, "the flush waits for a completed write");
}

#[test]
fn flush_does_not_wait_for_reads() {
    let mut drive = Drive::new(&spec(TINY, &[]));
    one(&mut drive, Op::Write, 0, PAGE);
    let start = drive.now().ns();
    let read = submit(&mut drive, Op::Read, 0, PAGE);
    let flush = submit(&mut drive, Op::Flush, 0, 0);
    let done = all(&mut drive);
    assert_eq!((when(&done, flush), when(&done, read)), (start, start + R + T + D));
}

#[test]
fn flushes_complete_in_order_and_each_waits_for_its_own_writes() {
    let mut drive = Drive::new(&spec(TINY, &[]));
    // The write of the second epoch, on the other die, is completed long before the third write of the first epoch.
    for lpn in [0, 4, 8] {
        submit(&mut drive, Op::Write, lpn * PAGE, PAGE);
    }
    let first = submit(&mut drive, Op::Flush, 0, 0);
    submit(&mut drive, Op::Write, PAGE, PAGE);
    let second = submit(&mut drive, Op::Flush, 0, 0);
    let third = submit(&mut drive, Op::Flush, 0, 0);
    for lpn in [5, 9, 13, 17] {
        submit(&mut drive, Op::Write, lpn * PAGE, PAGE);
    }
    let fourth = submit(&mut drive, Op::Flush, 0, 0);
    let done = all(&mut drive);
    for flush in [first, second, third] {
        assert_eq!(when(&done, flush), 3 * (T + P));
    }
    assert_eq!(when(&done, fourth), 5 * (T + P));
    let flushes: Vec<u64> =
        done.iter().map(|c| c.0).filter(|id| [first, second, third, fourth].contains(id)).collect();
    assert_eq!(flushes, [first, second, third, fourth]);
}

/// The rule: a flush is completed when the last write submitted before the flush is completed, or at the submission of
/// the flush if that is later.
#[test]
fn flushes_complete_by_the_rule_in_random_runs() {
    for seed in 0..40 {
        let mut stream = Stream::new(seed, "flush");
        let mut drive = Drive::new(&spec(TINY, &[]));
        let units = u64::from(drive.geometry().logical_units);
        let mut sent = Vec::new();
        let mut done = Vec::new();
        for _ in 0..300 {
            let op = [Op::Write, Op::Write, Op::Write, Op::Read, Op::Flush][stream.below(5) as usize];
            let (offset, len) = match op {
                Op::Flush => (0, 0),
                _ => (stream.below(units * 8 - 24) * 512, 512 * (1 + stream.below(24))),
            };
            sent.push((op, drive.now().ns()));
            assert_eq!(submit(&mut drive, op, offset, len), sent.len() as u64 - 1);
            drive.advance(drive.now() + ns(stream.below(2 * MS)));
            done.extend(drive.completions().map(|c| (c.id, c.completed.ns())));
        }
        done.extend(all(&mut drive));
        assert_eq!(done.len(), sent.len());
        assert!(done.is_sorted_by_key(|c| c.1), "completions are returned in order of completion");
        done.sort_unstable();
        for (id, &(op, at)) in sent.iter().enumerate() {
            if op == Op::Flush {
                let writes = (0..id).filter(|&other| sent[other].0 == Op::Write);
                let last = writes.map(|other| done[other].1).max().unwrap_or(0);
                assert_eq!(done[id].1, last.max(at), "flush {id} of seed {seed}");
            }
        }
    }
}

#[test]
fn fua_is_accepted_and_completes_when_the_unit_is_in_flash() {
    let mut drive = Drive::new(&spec(TINY, &[]));
    let request = Request::write(0, PAGE).with_fua(true);
    let id = drive.submit(&request).unwrap();
    assert_eq!(all(&mut drive), [(id, T + P)]);
    assert_eq!(drive.array().superblocks.iter().map(|b| b.programmed).sum::<u32>(), 1);
}

/// LPNs 0 to 3 are written. Each case gives the range of a TRIM, and whether each LPN is still mapped afterwards.
#[test]
fn trim_deallocates_whole_units_only() {
    let cases: [(u64, u64, [bool; 4]); 8] = [
        (0, PAGE, [false, true, true, true]),
        (512, PAGE, [true; 4]),
        (0, PAGE - 512, [true; 4]),
        (512, 2 * PAGE, [true, false, true, true]),
        (PAGE, 2 * PAGE, [true, false, false, true]),
        (PAGE - 512, 2 * PAGE + 1024, [true, false, false, true]),
        (0, 4 * PAGE, [false; 4]),
        (3 * PAGE + 512, PAGE - 512, [true; 4]),
    ];
    for (offset, len, left) in cases {
        let mut drive = Drive::with_probe(&spec(TINY, &[]), Oracle::default());
        submit(&mut drive, Op::Write, 0, 4 * PAGE);
        all(&mut drive);
        assert_eq!(one(&mut drive, Op::Trim, offset, len), 0, "a map update takes no time");
        let mapped: Vec<bool> =
            (0..4).map(|lpn| drive.ftl().map.get(nandlab::base::geometry::Lpn(lpn)).is_some()).collect();
        assert_eq!(mapped, left, "{len} bytes at {offset}");
        let trimmed = left.iter().filter(|&&there| !there).count() as u64;
        assert_eq!(drive.stats().counters.trimmed_pages, trimmed);
        submit(&mut drive, Op::Read, 0, 4 * PAGE);
        all(&mut drive);
        assert_eq!(drive.stats().counters.unmapped_reads, trimmed);
        drive.probe().verdict().unwrap();
    }
}

#[test]
fn trim_of_unmapped_units_is_not_counted() {
    let mut drive = Drive::new(&spec(TINY, &[]));
    assert_eq!(one(&mut drive, Op::Trim, 0, 8 * PAGE), 0);
    assert_eq!(drive.stats().counters.trimmed_pages, 0);
    assert_eq!(drive.stats().host[Op::Trim as usize].bytes, 8 * PAGE);
}

#[test]
fn reads_of_unmapped_units_are_answered_without_flash_and_counted() {
    let mut drive = Drive::new(&spec(TINY, &[]));
    assert_eq!(one(&mut drive, Op::Read, 512, 3 * PAGE), 0);
    assert_eq!(drive.stats().counters.unmapped_reads, 4);
    assert_eq!(drive.stats().flash_total(FlashOp::Read), 0);
    // A read of a mapped and an unmapped unit takes as long as a read of the mapped unit.
    one(&mut drive, Op::Write, 0, PAGE);
    assert_eq!(one(&mut drive, Op::Read, 0, 2 * PAGE), R + T + D);
    assert_eq!(drive.stats().counters.unmapped_reads, 5);
    assert_eq!(drive.stats().flash[FlashOp::Read as usize][Cause::Host as usize], 1);
}

#[test]
fn reads_of_units_being_programmed_are_answered_from_the_buffer() {
    let mut drive = Drive::with_probe(&spec(TINY, &[]), Oracle::default());
    let write = submit(&mut drive, Op::Write, 0, PAGE);
    let waiting = submit(&mut drive, Op::Write, 4 * PAGE, PAGE);
    drive.advance(at(T + P - 1));
    assert_eq!(drive.completions().count(), 0);
    let reads = [submit(&mut drive, Op::Read, 0, PAGE), submit(&mut drive, Op::Read, 4 * PAGE, PAGE)];
    let now: Vec<(u64, u64)> = drive.completions().map(|c| (c.id, c.completed.ns())).collect();
    assert_eq!(
        now,
        [(reads[0], T + P - 1), (reads[1], T + P - 1)],
        "units being programmed and units queued are both in the buffer"
    );
    assert_eq!(drive.stats().counters.buffered_reads, 2);
    // After its program the unit is read from flash. The read waits for the next program, which has begun.
    drive.advance(at(T + P));
    let read = submit(&mut drive, Op::Read, 0, PAGE);
    let done = all(&mut drive);
    assert_eq!(when(&done, write), T + P);
    assert_eq!(when(&done, waiting), 2 * (T + P));
    assert_eq!(when(&done, read), 2 * (T + P) + R + T + D);
    assert_eq!(drive.stats().counters.buffered_reads, 2);
    drive.probe().verdict().unwrap();
}

#[test]
fn requests_that_do_not_fit_are_refused_without_effect() {
    let mut drive = Drive::new(&spec(TINY, &[]));
    drive.advance(at(MS));
    let capacity = drive.geometry().logical_bytes();
    let request = |op, arrival, offset, len| Request::new(op, offset, len).at(arrival);
    for op in [Op::Read, Op::Write, Op::Trim] {
        let beyond = |end| Err(Refused::Beyond { end, capacity });
        assert_eq!(drive.submit(&request(op, at(MS), capacity, 512)), beyond(capacity + 512));
        assert_eq!(drive.submit(&request(op, at(MS), capacity - 512, 1024)), beyond(capacity + 512));
        assert_eq!(drive.submit(&request(op, at(MS), u64::MAX - 511, 1024)), beyond(u64::MAX));
        assert_eq!(drive.submit(&request(op, at(MS), 512, u64::MAX)), beyond(u64::MAX));
        assert_eq!(drive.submit(&request(op, at(MS), 0, 0)), Err(Refused::Empty));
        assert_eq!(drive.submit(&request(op, at(MS), capacity, 0)), Err(Refused::Empty));
    }
    for op in Op::ALL {
        assert_eq!(drive.submit(&request(op, at(MS + 1), 0, 512)), Err(Refused::Future));
    }
    assert_eq!((drive.outstanding(), drive.completions().count()), (0, 0));
    assert_eq!(drive.submit(&request(Op::Write, at(MS), capacity - PAGE, PAGE)), Ok(0), "the last unit");
    assert_eq!(
        drive.submit(&request(Op::Read, Time::START, 0, 1)),
        Ok(1),
        "a request of one byte with an earlier arrival"
    );
    assert_eq!(all(&mut drive).len(), 2);
}

#[test]
fn every_refusal_has_a_reason() {
    let text = |refused: Refused| refused.to_string();
    assert_eq!(
        text(Refused::Beyond { end: 8192, capacity: 4096 }),
        "the request ends at byte 8192, but the drive has 4096 bytes"
    );
    assert_eq!(text(Refused::Empty), "the request has no bytes");
    assert_eq!(
        text(Refused::Future),
        "the request arrives after the drive's present time: advance the drive first"
    );
}

/// The final unit must have the sectors of both partial writes, so the second write is merged with the result of the
/// first. It waits for the read of the first write. The merged data is then in the controller: the unit is not read
/// again.
#[test]
fn two_concurrent_partial_writes_of_one_unit_are_both_merged() {
    let mut drive = Drive::with_probe(&spec(TINY, &[]), Oracle::default());
    one(&mut drive, Op::Write, 0, PAGE);
    let start = drive.now().ns();
    let first = submit(&mut drive, Op::Write, 0, 512);
    let second = submit(&mut drive, Op::Write, 1024, 512);
    let done = all(&mut drive);
    let (counters, flash) = (&drive.stats().counters, &drive.stats().flash);
    assert_eq!((counters.partial_writes, counters.merge_reads), (2, 1));
    assert_eq!(flash[FlashOp::Read as usize][Cause::Host as usize], 1);
    assert_eq!(
        flash[FlashOp::Program as usize][Cause::Host as usize],
        3,
        "the first write and both partial writes"
    );
    let merged = start + R + T + D;
    assert_eq!((when(&done, first), when(&done, second)), (merged + T + P, merged + 2 * (T + P)));
    one(&mut drive, Op::Read, 0, PAGE);
    drive.probe().verdict().unwrap();
}

/// A partial write that is submitted after the completion of the one before reads the unit again.
#[test]
fn each_of_several_successive_partial_writes_reads_the_unit() {
    let mut drive = Drive::new(&spec(TINY, &[]));
    one(&mut drive, Op::Write, 0, PAGE);
    for sector in 0..4 {
        assert_eq!(one(&mut drive, Op::Write, sector * 1024, 512), R + T + D + T + P);
    }
    assert_eq!(drive.stats().counters.merge_reads, 4);
}

/// A full write that is submitted during the read of a partial write is newer, and its data must be the final data.
#[test]
fn a_full_write_during_a_merge_determines_the_final_data() {
    let mut drive = Drive::with_probe(&spec(TINY, &[]), Oracle::default());
    one(&mut drive, Op::Write, 0, PAGE);
    let start = drive.now().ns();
    let partial = submit(&mut drive, Op::Write, 512, 512);
    drive.advance(at(start + 1000));
    let full = submit(&mut drive, Op::Write, 0, PAGE);
    let done = all(&mut drive);
    assert!(when(&done, partial) < when(&done, full));
    // LPN 0 is mapped to unit 2, the last of the three units programmed.
    let at = drive.ftl().map.get(nandlab::base::geometry::Lpn(0)).unwrap();
    assert_eq!(drive.geometry().split(at).1, 2);
    assert_eq!(drive.array().stamp(at).sequence, 3);
}

/// 13 sectors of 512 bytes from sector 4 on: half a unit, a whole unit, one sector.
#[test]
fn unaligned_requests_are_split_into_units() {
    let mut drive = Drive::new(&spec(TINY, &[]));
    submit(&mut drive, Op::Write, 0, 4 * PAGE);
    all(&mut drive);
    submit(&mut drive, Op::Write, 2048, 2048 + PAGE + 512);
    all(&mut drive);
    let counters = drive.stats().counters.clone();
    assert_eq!((counters.host_pages_written, counters.partial_writes, counters.merge_reads), (4 + 3, 2, 2));
    submit(&mut drive, Op::Read, 2048, 2048 + PAGE + 512);
    all(&mut drive);
    assert_eq!(drive.stats().flash[FlashOp::Read as usize][Cause::Host as usize], 2 + 3);
    // A read of one byte on either side of a unit boundary touches two units.
    submit(&mut drive, Op::Read, PAGE - 1, 2);
    all(&mut drive);
    assert_eq!(drive.stats().flash[FlashOp::Read as usize][Cause::Host as usize], 2 + 3 + 2);
    assert_eq!(drive.stats().host[Op::Read as usize].bytes, 2048 + PAGE + 512 + 2);
}

#[test]
fn latency_counts_from_arrival() {
    let mut drive = Drive::new(&spec(TINY, &[]));
    one(&mut drive, Op::Write, 0, PAGE);
    let start = drive.now().ns();
    drive.advance(at(start + 7 * MS));
    // The request arrived 5 ms before its submission.
    let request = Request::read(0, PAGE).at(at(start + 2 * MS));
    drive.submit(&request).unwrap();
    let done = all(&mut drive);
    assert_eq!(done[0].1, start + 7 * MS + R + T + D, "service begins at submission");
    assert_eq!(drive.stats().host[Op::Read as usize].max_ns, 5 * MS + R + T + D);
}

#[test]
fn a_request_is_outstanding_from_its_submission_to_its_completion() {
    let mut drive = Drive::new(&spec(TINY, &[]));
    drive.write_now(Lpn(0));
    assert_eq!(one(&mut drive, Op::Read, 0, PAGE), R + T + D);
    drive.advance(at(MS));
    drive.finish_stats();
    let outstanding_ns: u128 = drive.stats().series.rows().iter().map(|row| row.outstanding_ns).sum();
    assert_eq!(outstanding_ns, u128::from(R + T + D));
}

#[test]
fn each_completion_is_returned_once_in_order_of_completion() {
    let mut drive = Drive::new(&spec(TINY, &[]));
    let mut stream = Stream::new(4, "order");
    let units = u64::from(drive.geometry().logical_units);
    let (mut seen, mut last) = (vec![false; 2000], 0);
    for _ in 0..2000 {
        let op = if stream.below(2) == 0 { Op::Read } else { Op::Write };
        submit(&mut drive, op, stream.below(units - 3) * PAGE, PAGE * (1 + stream.below(3)));
        drive.advance(drive.now() + ns(stream.below(MS)));
        for completion in drive.completions() {
            assert!(completion.completed.ns() >= last && completion.failed.is_none());
            last = completion.completed.ns();
            assert!(!std::mem::replace(&mut seen[completion.id as usize], true), "completed twice");
        }
        assert!(last <= drive.now().ns());
    }
    for (id, completed) in all(&mut drive) {
        assert!(completed >= last);
        last = completed;
        assert!(!std::mem::replace(&mut seen[id as usize], true));
    }
    assert!(seen.into_iter().all(|done| done));
}

// The runner.

/// A source with a list of requests; the last item may be an error.
struct List(std::vec::IntoIter<Result<Request, &'static str>>);

impl List {
    fn new(requests: Vec<Request>) -> Self {
        Self(requests.into_iter().map(Ok).collect::<Vec<_>>().into_iter())
    }
}

impl Source for List {
    type Error = &'static str;
    fn next_request(&mut self) -> Option<Result<Request, &'static str>> {
        self.0.next()
    }
}

/// Returns a drive, and a runner that plays `requests` with the workload key `arrival`.
fn runner(arrival: &str, requests: Vec<Request>) -> (Drive, Runner<List>) {
    // The spec needs a source that allows `arrival = "trace"`, such as a profile; the runner plays the list instead.
    let text = format!("{TINY}\n[workload]\nprofile = 'msr/hm_0'\n{arrival}\n");
    let spec = spec(&text, &[]);
    let workload = spec.workload.as_ref().expect("there is a workload");
    let runner =
        Runner::new(List::new(requests), workload.arrival, workload.beyond).widened(workload.whole_pages);
    (Drive::new(&spec), runner)
}

fn writes(count: u64, gap: u64) -> Vec<Request> {
    let request = |i| Request::write(i % 64 * PAGE, PAGE).at(at(i * gap));
    (0..count).map(request).collect()
}

/// Plays all requests; returns the completions in order of completion.
fn play(drive: &mut Drive, runner: &mut Runner<List>) -> Vec<Completion> {
    let mut done = Vec::new();
    let progress = runner.run(drive, u64::MAX / 2, |c| done.push(*c)).unwrap_or_else(|e| panic!("{e:?}"));
    assert!(progress.is_done && drive.outstanding() == 0);
    assert_eq!((progress.completed, runner.completed()), (done.len() as u64, done.len() as u64));
    assert!(done.is_sorted_by_key(|c| c.completed));
    done
}

#[test]
fn open_loop_submits_at_the_traces_times() {
    for (setting, scale) in [("", 1.0), ("time_scale = 2.5", 2.5), ("time_scale = 0.1", 0.1)] {
        let (mut drive, mut runner) = runner(&format!("arrival = 'trace'\n{setting}"), writes(50, 3 * MS));
        let mut done = play(&mut drive, &mut runner);
        done.sort_by_key(|c| c.id);
        for (i, completion) in done.iter().enumerate() {
            assert_eq!(completion.request.arrival.ns(), ((i as u64 * 3 * MS) as f64 * scale) as u64);
            // At gaps of 3 ms or more writes do not overlap. At 0.3 ms they arrive faster than two dies can program.
            let latency = (completion.completed - completion.request.arrival).ns();
            assert!(latency == T + P || scale < 1.0);
        }
    }
}

/// 100 requests arrive at the same time: in open loop all of them are outstanding together.
#[test]
fn open_loop_does_not_wait_for_completions() {
    let (mut drive, mut runner) = runner("arrival = 'trace'", writes(100, 0));
    let done = play(&mut drive, &mut runner);
    // Each die programs 50 pages.
    assert_eq!(done.last().unwrap().completed.ns(), 50 * (T + P));
    assert!(done.iter().all(|c| c.request.arrival == Time::START));
}

#[test]
fn at_a_constant_rate_requests_arrive_at_equal_intervals() {
    let (mut drive, mut runner) = runner("arrival = { iops = 3000 }", writes(90, 7));
    let mut done = play(&mut drive, &mut runner);
    done.sort_by_key(|c| c.id);
    for (i, completion) in done.iter().enumerate() {
        let exact = i as f64 * 1e9 / 3000.0;
        assert!((completion.request.arrival.ns() as f64 - exact).abs() <= 1.0);
    }
}

/// Arrival times of bursts and of the single requests after them, computed by hand.
#[test]
fn bursts_arrive_at_one_time_and_other_requests_after_idle_times() {
    for (bursts, ms) in [
        ("{ requests = 5, at_once = 0.4, idle = '10ms' }", [0, 0, 10, 20, 30, 40, 40, 50, 60, 70, 80, 80]),
        ("{ requests = 3, at_once = 1.0, idle = '10ms' }", [0, 0, 0, 10, 10, 10, 20, 20, 20, 30, 30, 30]),
        // A burst of one request: every request arrives alone.
        ("{ requests = 4, at_once = 0.25, idle = '2ms' }", [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22]),
        // 0.5 of three requests is rounded to two.
        ("{ requests = 3, at_once = 0.5, idle = '1ms' }", [0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7]),
    ] {
        let (mut drive, mut runner) =
            runner(&format!("arrival = {{ bursts = {bursts} }}"), writes(12, 7 * MS));
        let mut done = play(&mut drive, &mut runner);
        done.sort_by_key(|c| c.id);
        let arrivals: Vec<u64> = done.iter().map(|c| c.request.arrival.ns() / MS).collect();
        assert_eq!(arrivals, ms, "{bursts}");
        assert!(done.iter().all(|c| c.request.arrival.ns() % MS == 0));
    }
}

#[test]
fn closed_loop_keeps_exactly_the_queue_depth() {
    for depth in [1usize, 2, 7, 32] {
        let (mut drive, mut runner) =
            runner(&format!("arrival = {{ queue_depth = {depth} }}"), writes(200, 5 * MS));
        let done = play(&mut drive, &mut runner);
        assert_eq!(done.len(), 200);
        // The times of the source are not used: request n arrives at the completion number n - depth.
        let mut arrivals: Vec<u64> = done.iter().map(|c| c.request.arrival.ns()).collect();
        arrivals.sort_unstable();
        let completed: Vec<u64> = done.iter().map(|c| c.completed.ns()).collect();
        for n in 0..200 {
            let expected = if n < depth { 0 } else { completed[n - depth] };
            assert_eq!(arrivals[n], expected, "request {n} at depth {depth}");
        }
    }
}

#[test]
fn a_run_in_slices_equals_a_whole_run() {
    let whole = {
        let (mut drive, mut runner) = runner("arrival = { queue_depth = 5 }", writes(300, 0));
        play(&mut drive, &mut runner)
    };
    let (mut drive, mut runner) = runner("arrival = { queue_depth = 5 }", writes(300, 0));
    let mut done = Vec::new();
    while !runner.run(&mut drive, 7, |c| done.push(*c)).unwrap_or_else(|e| panic!("{e:?}")).is_done {}
    assert_eq!(done, whole);
    assert!(
        runner.run(&mut drive, 7, |_| panic!("nothing is left")).unwrap_or_else(|e| panic!("{e:?}")).is_done
    );
}

#[test]
fn wrap_takes_addresses_modulo_the_capacity_and_counts_the_requests() {
    let capacity = Drive::new(&spec(TINY, &[])).geometry().logical_bytes();
    let request = |op, offset, len| Request::new(op, offset, len);
    let cases = [
        (request(Op::Write, 0, PAGE), (0, PAGE), 0),
        (request(Op::Write, capacity - PAGE, PAGE), (capacity - PAGE, PAGE), 0),
        (request(Op::Write, capacity, PAGE), (0, PAGE), 1),
        (request(Op::Write, 3 * capacity + 5 * PAGE, PAGE), (5 * PAGE, PAGE), 1),
        // A request that would end beyond the capacity is moved back to end at the capacity.
        (request(Op::Write, capacity - 512, PAGE), (capacity - PAGE, PAGE), 1),
        (request(Op::Read, 2 * capacity - 512, PAGE), (capacity - PAGE, PAGE), 1),
        // A request longer than the capacity is shortened to the capacity.
        (request(Op::Read, 512, 2 * capacity), (0, capacity), 1),
        (request(Op::Trim, capacity + 512, 512), (512, 512), 1),
        (request(Op::Flush, 0, 0), (0, 0), 0),
    ];
    let list = cases.iter().map(|case| case.0).collect();
    let (mut drive, mut runner) = runner("arrival = 'trace'\nbeyond = 'wrap'", list);
    let mut done = play(&mut drive, &mut runner);
    done.sort_by_key(|c| c.id);
    for (completion, (asked, expected, _)) in done.iter().zip(cases) {
        assert_eq!((completion.request.offset, completion.request.len), expected, "{asked:?}");
    }
    assert_eq!(runner.wrapped, cases.iter().map(|case| case.2).sum::<u64>());
}

#[test]
fn with_whole_pages_a_write_of_a_sector_is_one_program_without_a_read() {
    // The first write maps LPN 0, a whole page. The second one, of the sector at 1536, covers part of the page: it
    // reads the page and programs, or is widened to the page and only programs.
    let write = |at_ns, offset, len| Request::write(offset, len).at(at(at_ns));
    let list = vec![write(0, 0, PAGE), write(10 * MS, 1536, 512)];
    for (setting, reads, bytes) in [("false", 1, PAGE + 512), ("true", 0, 2 * PAGE)] {
        let setting = format!("arrival = 'trace'\nwhole_pages = {setting}");
        let (mut drive, mut runner) = runner(&setting, list.clone());
        let done = play(&mut drive, &mut runner);
        let host = |kind: FlashOp| drive.stats().flash[kind as usize][Cause::Host as usize];
        assert_eq!((host(FlashOp::Read), host(FlashOp::Program)), (reads, 2), "{setting}");
        assert_eq!(drive.stats().host[Op::Write as usize].bytes, bytes, "{setting}");
        let latency = (done[1].completed - done[1].request.arrival).ns();
        assert_eq!(latency == T + P, reads == 0, "{setting}: {latency}");
    }
}

#[test]
fn requests_of_all_kinds_are_widened_to_whole_pages() {
    let capacity = Drive::new(&spec(TINY, &[])).geometry().logical_bytes();
    let request = |op, offset, len| Request::new(op, offset, len);
    let cases = [
        (request(Op::Write, 0, PAGE), (0, PAGE)),
        (request(Op::Write, 512, 1), (0, PAGE)),
        (request(Op::Write, PAGE - 1, 2), (0, 2 * PAGE)),
        (request(Op::Write, 3 * PAGE, PAGE + 1), (3 * PAGE, 2 * PAGE)),
        (request(Op::Read, 2 * PAGE - 512, 512), (PAGE, PAGE)),
        (request(Op::Trim, 5 * PAGE + 512, PAGE), (5 * PAGE, 2 * PAGE)),
        (request(Op::Read, capacity - 1, 1), (capacity - PAGE, PAGE)),
        // Addresses are first taken modulo the capacity.
        (request(Op::Write, capacity + 512, 512), (0, PAGE)),
        (request(Op::Write, capacity - 512, PAGE), (capacity - PAGE, PAGE)),
        (request(Op::Read, 512, 2 * capacity), (0, capacity)),
        (request(Op::Flush, 0, 0), (0, 0)),
    ];
    let list = cases.iter().map(|case| case.0).collect();
    let (mut drive, mut runner) = runner("arrival = 'trace'\nbeyond = 'wrap'\nwhole_pages = true", list);
    let mut done = play(&mut drive, &mut runner);
    done.sort_by_key(|c| c.id);
    for (completion, (asked, expected)) in done.iter().zip(cases) {
        assert_eq!((completion.request.offset, completion.request.len), expected, "{asked:?}");
    }
    assert_eq!(runner.wrapped, 3);
}

/// With mapping units, requests were widened to units, so a program of a page still took part of the page from others.
#[test]
fn with_mapping_units_requests_are_widened_to_pages() {
    let unit = PAGE / 4;
    let setting = "arrival = 'trace'\nwhole_pages = true\n[ftl]\nmapping_unit = '1KiB'";
    let capacity = runner(setting, vec![]).0.geometry().logical_bytes();
    assert_ne!(capacity % PAGE, 0, "the last page is only a part of one: {capacity}");
    let last = capacity / PAGE * PAGE;
    let request = |op, offset, len| Request::new(op, offset, len);
    let cases = [
        (request(Op::Write, 0, 512), (0, PAGE)),
        (request(Op::Write, PAGE - unit, unit), (0, PAGE)),
        (request(Op::Read, PAGE - 1, 2), (0, 2 * PAGE)),
        (request(Op::Trim, PAGE + unit, PAGE), (PAGE, 2 * PAGE)),
        (request(Op::Write, last, 512), (last, capacity - last)),
        (request(Op::Read, last - 1, 2), (last - PAGE, capacity - last + PAGE)),
    ];
    let (mut drive, mut runner) = runner(setting, cases.iter().map(|case| case.0).collect());
    let mut done = play(&mut drive, &mut runner);
    done.sort_by_key(|c| c.id);
    for (completion, (asked, expected)) in done.iter().zip(cases) {
        assert_eq!((completion.request.offset, completion.request.len), expected, "{asked:?}");
    }
}

#[test]
fn a_refused_request_is_reported_as_it_is_in_the_workload() {
    let capacity = Drive::new(&spec(TINY, &[])).geometry().logical_bytes();
    let arrival = Time::START;
    for (offset, len) in [(capacity - 512, 1024), (capacity + 512, 512), (u64::MAX - 511, 1024), (512, 0)] {
        let request = Request::write(offset, len).at(arrival);
        let (mut drive, mut runner) =
            runner("arrival = 'trace'\nbeyond = 'refuse'\nwhole_pages = true", vec![request]);
        let stopped = runner.run(&mut drive, 10, |_| {}).unwrap_err();
        let Stopped::Refused { number: 1, request, .. } = stopped else { panic!("{stopped:?}") };
        assert_eq!((request.offset, request.len), (offset, len));
    }
}

#[test]
fn a_request_beyond_the_capacity_stops_the_run_with_its_number() {
    let capacity = Drive::new(&spec(TINY, &[])).geometry().logical_bytes();
    let mut list = writes(10, 0);
    list[6].offset = capacity;
    let (mut drive, mut runner) = runner("arrival = 'trace'\nbeyond = 'refuse'", list.clone());
    let stopped = runner.run(&mut drive, 1000, |_| {}).unwrap_err();
    let Stopped::Refused { number, request, refused } = stopped else { panic!("{stopped:?}") };
    assert_eq!((number, request.offset), (7, capacity));
    assert_eq!(refused, Refused::Beyond { end: capacity + PAGE, capacity });
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    drive.audit().unwrap();
}

/// A request with an earlier arrival than the request before is submitted together with that request; its latency
/// counts from its own arrival.
#[test]
fn a_request_that_arrives_before_its_predecessor_is_submitted_with_it() {
    let mut list = writes(3, MS);
    list[2].arrival = at(US);
    let (mut drive, mut runner) = runner("arrival = 'trace'", list);
    let mut done = play(&mut drive, &mut runner);
    done.sort_by_key(|c| c.id);
    assert_eq!(done[2].request.arrival, at(US));
    assert_eq!(done[2].completed, at(MS + T + P), "submitted at the time of the request before");
}

#[test]
fn an_error_of_the_source_stops_the_run_after_the_requests_before_it() {
    for arrival in ["arrival = 'trace'", "arrival = { queue_depth = 2 }"] {
        for good in [0, 5, 30] {
            let (mut drive, _) = runner(arrival, Vec::new());
            let list: Vec<_> = writes(good, MS).into_iter().map(Ok).chain([Err("bad line")]).collect();
            let workload = drive.spec().workload.clone().expect("there is a workload");
            let mut runner = Runner::new(List(list.into_iter()), workload.arrival, workload.beyond);
            let mut completed = 0;
            let stopped = runner.run(&mut drive, 1000, |_| completed += 1).unwrap_err();
            assert!(matches!(stopped, Stopped::Source("bad line")), "{stopped:?}");
            drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
            completed += drive.completions().count() as u64;
            assert_eq!(completed, good);
            assert_eq!(drive.stats().host[Op::Write as usize].count, good);
        }
    }
}

/// Regression: the end of a request at the largest address does not fit into 64 bits; its computation must not
/// overflow.
#[test]
fn a_request_whose_end_overflows_is_refused_or_wrapped_without_a_panic() {
    let request = Request::read(u64::MAX - 511, 1024);
    let (mut drive, mut refusing) = runner("arrival = 'trace'\nbeyond = 'refuse'", vec![request]);
    let stopped = refusing.run(&mut drive, 10, |_| {}).unwrap_err();
    assert!(matches!(stopped, Stopped::Refused { number: 1, .. }), "{stopped:?}");
    let (mut drive, mut wrapping) = runner("arrival = 'trace'\nbeyond = 'wrap'", vec![request]);
    assert_eq!(play(&mut drive, &mut wrapping).len(), 1);
    assert_eq!(wrapping.wrapped, 1);
}

#[test]
fn an_empty_source_is_done_at_once() {
    let bursts = "arrival = { bursts = { requests = 9, at_once = 0.5, idle = '1ms' } }";
    for arrival in ["arrival = 'trace'", "arrival = { queue_depth = 4 }", "arrival = { iops = 10 }", bursts] {
        let (mut drive, mut runner) = runner(arrival, Vec::new());
        assert_eq!(play(&mut drive, &mut runner), []);
        assert_eq!(drive.now(), Time::START);
    }
}
