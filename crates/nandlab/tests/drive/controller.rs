//! The firmware of the controller (`host.controller`): its times, compared with calculations by hand and with a twin; the
//! turns of queues; power loss.

use crate::common::{IDLE, MS, TINY, US, at, ns, one, read_everything, settle, spec};
use nandlab::base::geometry::Lpn;
use nandlab::base::rng::Stream;
use nandlab::base::units::{DAY, Time};
use nandlab::drive::spec::Spec;
use nandlab::drive::{Completion, Drive, FailReason};
use nandlab::host::{Op, Oracle, Request, Tag};
use nandlab::probe::{NoProbe, Probe};
use nandlab::report::{RunFacts, summary};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// tR, transfer of a page, tPROG and decoding of [`TINY`], in nanoseconds.
const R: u64 = 50_000;
const T: u64 = 10_240;
const P: u64 = 900_000;
const D: u64 = 15_000;
const PAGE: u64 = 4096;
/// The times of [`CONTROLLER`].
const READ: u64 = 4 * US;
const WRITE: u64 = 7 * US;
const CONTROLLER: &str = "host.controller={ read = '4us', write = '7us', commands_at_once = 2 }";

/// Returns a drive whose first 64 LPNs are mapped.
fn filled<W: Probe>(spec: &Spec, probe: W) -> Drive<W> {
    let mut drive = Drive::with_probe(spec, probe);
    (0..64).for_each(|lpn| _ = drive.write_now(Lpn(lpn)));
    drive
}

fn submit<W: Probe>(drive: &mut Drive<W>, op: Op, offset: u64, len: u64, queue: u16) -> u64 {
    let tag = Tag { queue, placement: 0 };
    drive.submit(&Request::new(op, offset, len).at(drive.now()).with_tag(tag)).unwrap()
}

/// Lets the drive come to rest; returns (id, time of completion) of each request, in order of completion.
fn all<W: Probe>(drive: &mut Drive<W>) -> Vec<(u64, u64)> {
    drive.run_until_idle(IDLE).unwrap();
    drive.audit().unwrap();
    drive.completions().map(|c| (c.id, c.completed.ns())).collect()
}

#[test]
fn a_command_takes_the_time_of_its_operation() {
    let mut drive = filled(&spec(TINY, &[CONTROLLER]), NoProbe);
    assert_eq!(one(&mut drive, Op::Read, 0, PAGE), READ + R + T + D);
    assert_eq!(one(&mut drive, Op::Read, 0, 3 * PAGE), READ + 2 * (R + T) + D, "a command, however long");
    assert_eq!(one(&mut drive, Op::Write, 0, PAGE), WRITE + T + P);
    assert_eq!(one(&mut drive, Op::Trim, 0, PAGE), WRITE);
    assert_eq!(one(&mut drive, Op::Flush, 0, 0), WRITE);
    assert_eq!(drive.controller().unwrap().busy.ns(), 2 * READ + 3 * WRITE);
    let mut with_link =
        filled(&spec(TINY, &[CONTROLLER, "host.link={ mb_per_s = 1000, latency = '3us' }"]), NoProbe);
    assert_eq!(one(&mut with_link, Op::Write, 0, PAGE), PAGE + 3 * US + WRITE + T + P + 3 * US);
}

#[test]
fn later_commands_wait_for_a_processor() {
    let mut drive = filled(&spec(TINY, &[CONTROLLER]), NoProbe);
    // Unmapped units are answered at once, so a request takes only the time of its command.
    let ids: Vec<u64> = (0..5).map(|i| submit(&mut drive, Op::Read, (100 + i) * PAGE, PAGE, 0)).collect();
    let state = drive.controller().unwrap();
    assert_eq!((state.at_work, state.waiting, drive.outstanding()), (2, 3, 5));
    drive.advance(at(READ + US));
    let state = drive.controller().unwrap();
    assert_eq!((state.at_work, state.waiting, state.busy.ns()), (2, 1, 2 * READ + 2 * US));
    let ends = [1, 1, 2, 2, 3].map(|rounds| rounds * READ);
    assert_eq!(all(&mut drive), ids.into_iter().zip(ends).collect::<Vec<_>>());
    assert!(drive.is_at_rest());
}

#[test]
fn the_controller_limits_the_rate() {
    for (at_once, rate) in [(1, 250_000.0), (4, 1_000_000.0)] {
        let controller =
            format!("host.controller={{ read = '4us', write = '7us', commands_at_once = {at_once} }}");
        let mut drive = Drive::new(&spec(TINY, &[&controller]));
        for _ in 0..1000 {
            submit(&mut drive, Op::Read, 0, PAGE, 0);
        }
        all(&mut drive);
        drive.finish_stats();
        let summary = summary(&drive, &RunFacts::default());
        // 1,000 reads of an unmapped unit; the drive is idle afterwards, until it counts as at rest.
        let last = 1000.0 / rate;
        let share = summary["controller"]["busy"].as_f64().unwrap();
        let measured = (drive.now() - Time::START).seconds();
        assert!((share * measured - last).abs() < 1e-9, "{share} of {measured} s");
        assert_eq!(drive.stats().host[Op::Read as usize].max_ns, (last * 1e9).round() as u64);
    }
}

#[test]
fn queues_take_turns_only_with_round_robin() {
    let order = |arbitration: &str| {
        let controller =
            format!("host.controller={{ read = '4us', write = '7us', arbitration = '{arbitration}' }}");
        let mut drive = Drive::new(&spec(TINY, &[&controller]));
        let queues = [7, 7, 7, 7, 2, 2, 0];
        for queue in queues {
            submit(&mut drive, Op::Read, 0, PAGE, queue);
        }
        all(&mut drive).iter().map(|done| queues[done.0 as usize]).collect::<Vec<u16>>()
    };
    assert_eq!(order("arrival"), [7, 7, 7, 7, 2, 2, 0]);
    // The first command is taken when it arrives; then the queues take turns.
    assert_eq!(order("round-robin"), [7, 7, 2, 0, 7, 2, 7]);
}

/// A queue of commands, a list of processors and a number of places in front of a drive without a controller.
struct Twin {
    drive: Drive<Oracle>,
    requests: Vec<Request>,
    /// Number of the next request that arrives, and of the next one that a processor takes.
    next: (usize, usize),
    /// The end and the number of each command on which a processor works.
    at_work: BinaryHeap<Reverse<(u64, usize)>>,
    /// Firmware time of a read, and of another command, in nanoseconds.
    times: [u64; 2],
    processors: usize,
    places: usize,
    /// By number in the drive, the number of the request.
    begun: Vec<usize>,
    /// The completed requests, with their times.
    done: Vec<(u64, u64)>,
    /// Number of commands that have waited for a processor, and for a place while a processor was free.
    waited: [u64; 2],
}

impl Twin {
    /// Serves everything that happens up to the time `now`, which is the time of the next event.
    fn serve(&mut self, now: u64) {
        self.drive.advance(at(now));
        while self.next.0 < self.requests.len() && self.requests[self.next.0].arrival.ns() <= now {
            self.next.0 += 1;
        }
        loop {
            self.done.extend(
                self.drive.completions().map(|c| (self.begun[c.id as usize] as u64, c.completed.ns())),
            );
            if let Some(&Reverse((end, number))) = self.at_work.peek()
                && end <= now
            {
                self.at_work.pop();
                self.begun.push(number);
                self.drive.submit(&self.requests[number].at(self.drive.now())).unwrap();
                continue;
            }
            let (arrived, taken) = self.next;
            let is_place_free = taken - self.done.len() < self.places;
            if taken == arrived {
                return;
            }
            if self.at_work.len() == self.processors || !is_place_free {
                self.waited[usize::from(self.at_work.len() < self.processors)] += 1;
                return;
            }
            self.next.1 += 1;
            let time = self.times[usize::from(self.requests[taken].op != Op::Read)];
            self.at_work.push(Reverse((now + time, taken)));
        }
    }

    fn run(&mut self) {
        loop {
            let arrival = self.requests.get(self.next.0).map(|request| request.arrival.ns());
            let end = self.at_work.peek().map(|Reverse((end, _))| *end);
            let event = self.drive.next_event().map(Time::ns);
            let Some(next) = [arrival, end, event].into_iter().flatten().min() else { return };
            if self.done.len() == self.requests.len() {
                return;
            }
            self.serve(next);
        }
    }
}

#[test]
fn a_drive_with_a_controller_behaves_like_a_drive_behind_processors_and_places() {
    let caches = ["", "[cache]\nsize = '64KiB'\nsync = 'punctual'\ndirty_budget = 0.5\n"];
    let (mut waited, mut overtaken) = ([0, 0], 0);
    for seed in 0..80 {
        let mut stream = Stream::new(seed, "controller twin");
        let text = TINY.to_owned() + caches[seed as usize % 2];
        // Idle time would begin earlier without a controller, so the runs have no work in idle time.
        let sets = ["gc.idle_after='1d'"];
        let times = [[0, 3, 40_000][stream.below(3) as usize], [0, 1_700, 300_000][stream.below(3) as usize]];
        let processors = [1, 2, 5][stream.below(3) as usize];
        let places = [usize::MAX, 1, 3, 12][stream.below(4) as usize];
        let most = if places == usize::MAX { String::new() } else { format!(", commands_max = {places}") };
        let controller = format!(
            "host.controller={{ read = '{}ns', write = '{}ns', commands_at_once = {processors}{most} }}",
            times[0], times[1]
        );
        let mut drive = filled(&spec(&text, &[&sets[..], &[&controller]].concat()), Oracle::default());
        let mut requests = Vec::new();
        for _ in 0..300 {
            let op =
                [Op::Write, Op::Write, Op::Read, Op::Read, Op::Trim, Op::Flush][stream.below(6) as usize];
            let (offset, len) = match op {
                Op::Flush => (0, 0),
                _ => (512 * stream.below(1000), 512 * (1 + stream.below(20))),
            };
            let request = Request::new(op, offset, len).at(drive.now()).with_fua(stream.below(8) == 0);
            drive.submit(&request).unwrap();
            requests.push(request);
            drive.advance(
                drive.now() + ns([0, stream.below(MS / 2), stream.below(MS)][stream.below(3) as usize]),
            );
        }
        drive.run_until_idle(100 * DAY).unwrap();
        let found: Vec<(u64, u64)> = drive.completions().map(|c| (c.id, c.completed.ns())).collect();

        let mut twin = Twin {
            drive: filled(&spec(&text, &sets), Oracle::default()),
            requests,
            next: (0, 0),
            at_work: BinaryHeap::new(),
            times,
            processors,
            places,
            begun: Vec::new(),
            done: Vec::new(),
            waited: [0, 0],
        };
        twin.run();
        assert_eq!(found, twin.done, "seed {seed}: {times:?} ns, {processors} at once, {places} places");
        (0..2).for_each(|for_what| waited[for_what] += twin.waited[for_what]);
        overtaken += twin.begun.windows(2).filter(|pair| pair[0] > pair[1]).count();
        settle(&mut drive);
        settle(&mut twin.drive);
        assert_eq!(drive.stats().flash, twin.drive.stats().flash);
    }
    assert!(
        waited.iter().all(|&count| count > 1000) && overtaken > 100,
        "{waited:?} waited, {overtaken} overtaken"
    );
}

#[test]
fn later_commands_wait_for_a_place() {
    let set = "host.controller={ read = '4us', write = '7us', commands_at_once = 4, commands_max = 2 }";
    let mut drive = filled(&spec(TINY, &[set]), Oracle::default());
    // Two writes have the places until they are programmed; the read of an unmapped unit waits for the first of them.
    let first = submit(&mut drive, Op::Write, 0, PAGE, 0);
    let second = submit(&mut drive, Op::Write, PAGE, PAGE, 0);
    let read = submit(&mut drive, Op::Read, 100 * PAGE, PAGE, 0);
    drive.advance(at(WRITE + US));
    let state = drive.controller().unwrap();
    assert_eq!((state.at_work, state.waiting, drive.outstanding()), (0, 1, 3));
    let done = all(&mut drive);
    assert_eq!(done[0], (first, WRITE + T + P));
    let read_done = done.iter().find(|done| done.0 == read).unwrap().1;
    assert_eq!(read_done, WRITE + T + P + READ);
    assert!(done.iter().any(|done| done.0 == second));
    // Power loss frees the places.
    submit(&mut drive, Op::Write, 0, PAGE, 0);
    submit(&mut drive, Op::Write, PAGE, PAGE, 0);
    drive.advance(drive.now() + ns(WRITE + US));
    drive.cut_power();
    drive.completions().for_each(drop);
    settle(&mut drive);
    assert_eq!(one(&mut drive, Op::Read, 100 * PAGE, PAGE), READ);
    drive.audit().unwrap();
}

#[test]
fn power_loss_aborts_commands_of_the_controller() {
    let mut drive = filled(&spec(TINY, &[CONTROLLER]), Oracle::default());
    let ids: Vec<u64> = (0..4).map(|i| submit(&mut drive, Op::Write, i * PAGE, PAGE, 0)).collect();
    drive.advance(at(WRITE - 1));
    let loss = drive.cut_power();
    assert_eq!((loss.aborted_requests, loss.has_lost()), (4, false));
    let ended: Vec<Completion> = drive.completions().collect();
    let failed = |c: &Completion| c.failed == Some(FailReason::PowerLost) && c.completed == at(WRITE - 1);
    assert!(ended.iter().all(failed));
    assert_eq!(ended.iter().map(|c| c.id).collect::<Vec<_>>(), ids);
    let state = drive.controller().unwrap();
    assert_eq!((state.at_work, state.waiting, state.busy.ns()), (0, 0, 2 * (WRITE - 1)));
    assert_eq!(
        one(&mut drive, Op::Write, 0, PAGE),
        WRITE + T + P,
        "the processors are free after the power loss"
    );
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn without_a_controller_a_summary_has_no_section_for_it() {
    let mut drive = Drive::new(&spec(TINY, &["host.controller=none"]));
    one(&mut drive, Op::Write, 0, PAGE);
    drive.finish_stats();
    assert!(drive.controller().is_none());
    assert!(summary(&drive, &RunFacts::default()).get("controller").is_none());
}
