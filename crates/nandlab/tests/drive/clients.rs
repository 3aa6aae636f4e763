//! Several clients at once (`workload.clients`): when each submits its requests, compared with calculations by hand, with a
//! workload of one source, and with a twin that keeps every request that waits; the results of each client.

use crate::cases::Case;
use crate::common::schemes::placed;
use crate::common::{MS, TINY, US, at, spec, with_oracle};
use nandlab::base::geometry::Lpn;
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::spec::{Arrival, Due, LatencyFrom, Spec, stream_name};
use nandlab::drive::{Completion, Drive, Failure};
use nandlab::host::{Op, Request, Tag};
use nandlab::probe::NoProbe;
use nandlab::report::{RunFacts, Summary};
use nandlab::runner::{Runner, Source, Stopped};
use std::collections::VecDeque;

/// tR, transfer of a page, tPROG and decoding of [`TINY`], in nanoseconds.
const R: u64 = 50_000;
const T: u64 = 10_240;
const P: u64 = 900_000;
const D: u64 = 15_000;
const PAGE: u64 = 4096;
/// The latency of a read that waits for nothing.
const READ: u64 = R + T + D;

/// The requests of each client.
struct Lists(Vec<VecDeque<Request>>);

impl Source for Lists {
    type Error = std::convert::Infallible;

    fn next_request(&mut self) -> Option<Result<Request, Self::Error>> {
        self.next_of(0)
    }

    fn next_of(&mut self, client: usize) -> Option<Result<Request, Self::Error>> {
        self.0[client].pop_front().map(Ok)
    }
}

/// `count` reads of the first page.
fn reads(count: u64) -> VecDeque<Request> {
    (0..count).map(|_| Request::read(0, PAGE)).collect()
}

/// `count` requests with random addresses, one in three of them a write.
fn mixed(count: u64, stream: &mut Stream) -> VecDeque<Request> {
    let of = |_| {
        let op = if stream.below(3) == 0 { Op::Write } else { Op::Read };
        Request::new(op, stream.below(64) * PAGE, PAGE)
    };
    (0..count).map(of).collect()
}

/// The spec with these clients (each as a TOML table), and settings.
fn with_clients(clients: &[&str], sets: &[&str]) -> Spec {
    let list: Vec<String> =
        clients.iter().enumerate().map(|(i, client)| format!("{{ name = 'c{i}', {client} }}")).collect();
    spec(&format!("{TINY}\n[workload]\nclients = [{}]\n", list.join(", ")), sets)
}

fn filled(spec: &Spec) -> Drive<NoProbe> {
    let mut drive = Drive::with_probe(spec, NoProbe);
    (0..64).for_each(|lpn| _ = drive.write_now(Lpn(lpn)));
    drive
}

fn runner_of(spec: &Spec, lists: Vec<VecDeque<Request>>) -> Runner<Lists> {
    Runner::of(spec.workload.as_ref().expect("the spec has a workload"), spec.seed, Lists(lists))
}

fn finish(drive: &mut Drive<NoProbe>, runner: &mut Runner<Lists>) -> Vec<Completion> {
    let mut done = Vec::new();
    let progress = runner.run(drive, u64::MAX / 2, |c| done.push(*c)).unwrap_or_else(|e| panic!("{e:?}"));
    assert!(progress.is_done && drive.outstanding() == 0);
    assert_eq!(progress.completed, done.len() as u64);
    done
}

/// Plays the lists; returns the completions.
fn play(spec: &Spec, lists: Vec<VecDeque<Request>>) -> Vec<Completion> {
    finish(&mut filled(spec), &mut runner_of(spec, lists))
}

fn latency(completion: &Completion) -> u64 {
    (completion.completed - completion.request.arrival).ns()
}

#[test]
fn a_closed_loop_thinks_after_each_completion() {
    let spec = with_clients(&["arrival = { queue_depth = 1 }, think_time = '1ms', start = '3ms'"], &[]);
    let done = play(&spec, vec![reads(5)]);
    for (n, completion) in done.iter().enumerate() {
        let begin = 3 * MS + n as u64 * (READ + MS);
        assert_eq!((completion.request.arrival.ns(), completion.completed.ns()), (begin, begin + READ));
    }
}

/// Two requests of one page at the same time become one read of flash, so both slots of a closed loop think together.
#[test]
fn each_slot_of_a_closed_loop_thinks_by_itself() {
    let spec = with_clients(&["arrival = { queue_depth = 2 }, think_time = '1ms'"], &[]);
    // The pages of LPN 0 and 1 are on two dies: each slot is a loop of its own.
    let list = (0..6).map(|n| Request::read(n % 2 * PAGE, PAGE)).collect();
    let mut begun: Vec<u64> = play(&spec, vec![list]).iter().map(|c| c.request.arrival.ns()).collect();
    begun.sort_unstable();
    let round = READ + MS;
    assert_eq!(begun, [0, 0, round, round, 2 * round, 2 * round]);
}

/// Requests of an open loop are due every 500 us, and a write takes 910 us: with one outstanding request, request n is
/// submitted when n writes have ended.
#[test]
fn an_open_loop_with_a_limit_waits_at_the_client() {
    const L: u64 = T + P;
    for from in [LatencyFrom::Due, LatencyFrom::Submission] {
        let name = if from == LatencyFrom::Due { "due" } else { "submission" };
        let client = format!("arrival = {{ iops = 2000 }}, outstanding = 1, latency_from = '{name}'");
        let spec = with_clients(&[&client], &[]);
        let list = (0..20).map(|n| Request::write(n * PAGE, PAGE)).collect();
        let (mut drive, mut runner) = (filled(&spec), runner_of(&spec, vec![list]));
        for (n, completion) in (0..).zip(finish(&mut drive, &mut runner)) {
            assert_eq!(completion.completed.ns(), (n + 1) * L);
            let begin = if from == LatencyFrom::Due { n * 500 * US } else { n * L };
            assert_eq!(latency(&completion), (n + 1) * L - begin);
        }
        let wait = |n: u64| n * (L - 500 * US);
        let waits = runner.waits()[0];
        assert_eq!((waits.submitted, waits.waited, waits.max_ns.ns()), (20, 19, wait(19)));
        assert_eq!(waits.sum_ns, (0..20).map(|n| u128::from(wait(n))).sum::<u128>());
        let summary = Summary::of(&drive, &RunFacts { waits: runner.waits(), ..RunFacts::default() });
        let waiting = summary.clients.unwrap()["c0"].waiting.clone().unwrap();
        assert_eq!((waiting.requests, waiting.max_us), (19, wait(19) as f64 * 1e-3));
        assert!((waiting.mean_us - wait(19) as f64 / 2e3).abs() < 1e-6);
    }
}

/// Without a limit nothing waits at the client.
#[test]
fn an_open_loop_without_a_limit_submits_when_due() {
    let spec = with_clients(&["arrival = { iops = 2000 }"], &[]);
    let list = (0..20).map(|n| Request::write(n * PAGE, PAGE)).collect();
    let (mut drive, mut runner) = (filled(&spec), runner_of(&spec, vec![list]));
    let mut done = finish(&mut drive, &mut runner);
    done.sort_by_key(|c| c.id);
    assert!((0..).zip(&done).all(|(n, c)| c.request.arrival.ns() == n * 500 * US));
    assert_eq!(runner.waits()[0].waited, 0);
}

#[test]
fn one_client_equals_the_workload_of_one_source() {
    for arrival in [
        "{ queue_depth = 1 }",
        "{ queue_depth = 7 }",
        "{ iops = 3000 }",
        "{ iops = 1e6 }",
        "{ iops = 2500, process = 'poisson' }",
        "{ bursts = { requests = 6, at_once = 0.5, idle = '3ms' } }",
    ] {
        for sets in [
            &[][..],
            &["power.cut_after_requests=50"],
            &["power.cut_at='20ms'", "cache.size='64KiB'"],
            &[
                "host.link={ mb_per_s = 500, latency = '2us' }",
                "workload.whole_pages=true",
                "cache.size='64KiB'",
            ],
        ] {
            let list = mixed(300, &mut Stream::new(3, "requests"));
            let clients = with_clients(&[&format!("arrival = {arrival}")], sets);
            let text = format!("{TINY}\n[workload]\nsynthetic = {{}}\narrival = {arrival}\n");
            let single = spec(&text, sets);
            let of = |spec: &Spec| {
                let mut drive = filled(spec);
                let done = finish(&mut drive, &mut runner_of(spec, vec![list.clone()]));
                // The notes name the keys of the workload.
                let summary = Summary::of(&drive, &RunFacts::default());
                let summary = Summary { clients: None, notes: Vec::new(), ..summary };
                (done, summary)
            };
            assert_eq!(of(&clients), of(&single), "{arrival}, {sets:?}");
        }
    }
}

#[test]
fn clients_that_submit_at_the_same_time_take_turns() {
    let spec = with_clients(&["arrival = { queue_depth = 3 }", "arrival = { queue_depth = 2 }"], &[]);
    let mut done = play(&spec, vec![reads(3), reads(2)]);
    done.sort_by_key(|c| c.id);
    let queues: Vec<u16> = done.iter().map(|c| c.request.tag.queue).collect();
    assert_eq!(queues, [0, 1, 0, 1, 0]);
}

#[test]
fn a_client_ends_with_its_duration_and_all_with_requests_max() {
    let client = "arrival = { iops = 1000 }, start = '2ms', duration = '10ms'";
    let done = play(&with_clients(&[client], &[]), vec![reads(1000)]);
    let arrivals: Vec<u64> = done.iter().map(|c| c.request.arrival.ns()).collect();
    assert_eq!(arrivals, (2..12).map(|ms| ms * MS).collect::<Vec<_>>());
    let closed = "arrival = { queue_depth = 1 }, duration = '1ms'";
    let done = play(&with_clients(&[closed], &[]), vec![reads(1000)]);
    assert_eq!(done.len() as u64, MS.div_ceil(READ));
    let both = with_clients(&["arrival = { queue_depth = 4 }", client], &["workload.requests_max=25"]);
    assert_eq!(play(&both, vec![reads(1000), reads(1000)]).len(), 25);
}

/// A client that falls behind reads no request before it can submit it, but for those that it reads ahead.
#[test]
fn requests_that_wait_at_a_client_are_not_stored() {
    let spec =
        with_clients(&["arrival = { iops = 1e8 }, outstanding = 2", "arrival = { queue_depth = 1 }"], &[]);
    let (mut drive, mut runner) = (filled(&spec), runner_of(&spec, vec![reads(100_000), reads(100_000)]));
    for _ in 0..50 {
        runner.run(&mut drive, 10, |_| ()).unwrap();
        assert!(runner.fetched() <= runner.completed() + 3 + 16);
        assert!(drive.outstanding() <= 3);
    }
}

/// A client of the twin: every request exists from the beginning with its due time, and what is due waits in a list.
struct Naive {
    waiting: VecDeque<(u64, Request)>,
    /// Of a closed loop, the times at which the next requests may be submitted.
    slots: Option<Vec<u64>>,
    think: u64,
    most: usize,
    outstanding: usize,
}

/// Plays clients as the twin does.
fn play_naively(spec: &Spec, lists: &[VecDeque<Request>]) -> Vec<Completion> {
    let workload = spec.workload.as_ref().unwrap();
    let of = |(i, list): (usize, &VecDeque<Request>)| {
        let client = &workload.clients()[i];
        let is_closed = matches!(client.arrival, Arrival::QueueDepth(_));
        let mut due = Due::new(client.arrival, spec.seed, &stream_name(i, "arrival"));
        let mut when = || due.next(Time::START).unwrap().ns() + client.start.ns();
        let tagged = |request: &Request| request.with_tag(Tag { queue: i as u16, placement: 0 });
        Naive {
            waiting: list.iter().map(|request| (when(), tagged(request))).collect(),
            slots: is_closed.then(|| vec![client.start.ns(); client.outstanding_max() as usize]),
            think: client.think_time.ns(),
            most: client.outstanding_max() as usize,
            outstanding: 0,
        }
    };
    let mut clients: Vec<Naive> = lists.iter().enumerate().map(of).collect();
    let mut drive = filled(spec);
    let mut done = Vec::new();
    loop {
        // The earliest time at which a client may submit.
        let next = |client: &Naive| {
            let (due, _) = client.waiting.front()?;
            match &client.slots {
                Some(slots) => slots.iter().min().copied(),
                None => (client.outstanding < client.most).then_some(*due),
            }
        };
        let now = drive.now().ns();
        let first = clients.iter().enumerate().filter_map(|(i, c)| Some((next(c)?, i))).min();
        let limit = first.map_or(Time::NEVER, |(time, _)| at(time));
        if first.is_none_or(|(time, _)| time > now) && drive.advance_to_completion(limit) {
        } else if let Some((time, i)) = first {
            // A request that has waited does not wait for other events of this time.
            if time >= now {
                drive.advance(at(time));
            }
            let time = time.max(now);
            let client = &mut clients[i];
            let (due, mut request) = client.waiting.pop_front().unwrap();
            if let Some(slots) = &mut client.slots {
                let slot = (0..slots.len()).min_by_key(|&slot| slots[slot]).unwrap();
                slots.swap_remove(slot);
                request.arrival = at(time);
            } else {
                let is_due = workload.clients()[i].latency_from == LatencyFrom::Due;
                request.arrival = at(if is_due { due } else { time });
            }
            client.outstanding += 1;
            drive.submit(&request).unwrap();
        } else {
            return done;
        }
        for completion in drive.completions() {
            let client = &mut clients[usize::from(completion.request.tag.queue)];
            client.outstanding -= 1;
            let think = client.think;
            if let Some(slots) = &mut client.slots {
                slots.push(completion.completed.ns() + think);
            }
            done.push(completion);
        }
    }
}

/// Random clients with random loads. Their times are such that no two clients submit at the same time.
#[test]
fn the_twin_keeps_what_waits_and_submits_the_same() {
    let mut waited = 0;
    for seed in 0..60 {
        let mut stream = Stream::new(seed, "clients");
        let client = |stream: &mut Stream| {
            let start = stream.below(3_000_000);
            match stream.below(3) {
                0 => {
                    let (depth, think) = (1 + stream.below(5), 1 + stream.below(2_000_000));
                    format!(
                        "arrival = {{ queue_depth = {depth} }}, think_time = '{think}ns', start = '{start}ns'"
                    )
                }
                kind => {
                    let (iops, most) = (500 + stream.below(6000), 1 + stream.below(6));
                    let from = if stream.below(2) == 0 { "due" } else { "submission" };
                    let process = if kind == 1 { "poisson" } else { "even" };
                    format!(
                        "arrival = {{ iops = {iops}, process = '{process}' }}, outstanding = {most}, \
                         latency_from = '{from}', start = '{start}ns'"
                    )
                }
            }
        };
        let texts: Vec<String> = (0..1 + stream.below(4)).map(|_| client(&mut stream)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let lists: Vec<_> = texts.iter().map(|_| mixed(20 + stream.below(80), &mut stream)).collect();
        let spec = with_clients(&texts, &[]);
        let (mut drive, mut runner) = (filled(&spec), runner_of(&spec, lists.clone()));
        let done = finish(&mut drive, &mut runner);
        waited += runner.waits().iter().map(|waits| waits.waited).sum::<u64>();
        assert_eq!(done, play_naively(&spec, &lists), "seed {seed}: {texts:?}");
        sums_up(&Summary::of(&drive, &RunFacts::default()), texts.len());
    }
    assert!(waited > 500, "{waited}");
}

/// The results of the clients add up to those of the run.
fn sums_up(summary: &Summary, clients: usize) {
    let by_client = summary.clients.as_ref().unwrap();
    assert_eq!(by_client.len(), clients);
    let sum = |of: fn(&nandlab::report::ClientSummary) -> u64| by_client.values().map(of).sum::<u64>();
    assert_eq!(sum(|c| c.host.read.count), summary.host.read.count);
    assert_eq!(sum(|c| c.host.write.count), summary.host.write.count);
    assert_eq!(sum(|c| c.host.write.bytes), summary.host.write.bytes);
    let weighted = |of: &nandlab::report::ClientSummary| of.latency_us.read.mean * of.host.read.count as f64;
    let mean = by_client.values().map(weighted).sum::<f64>() / (summary.host.read.count as f64).max(1.0);
    assert!((mean - summary.latency_us.read.mean).abs() <= 1e-9 * mean.max(1.0));
    let max = by_client.values().map(|c| c.latency_us.read.max).fold(0.0, f64::max);
    assert_eq!(max, summary.latency_us.read.max);
}

/// Drives with random schemes serve random clients: every request is completed once, and every read returns the data that
/// the oracle expects.
#[test]
fn random_drives_serve_random_clients() {
    let mut played = 0;
    for seed in 0..30 {
        let case = Case::placed(seed);
        let (text, mut spec) = case.spec();
        let mut stream = Stream::new(seed, "clients of a case");
        let arrivals = [
            format!("arrival = {{ queue_depth = {} }}", 1 + stream.below(8)),
            format!("arrival = {{ queue_depth = 2 }}, think_time = '{}us'", stream.below(900)),
            format!(
                "arrival = {{ iops = {}, process = 'poisson' }}, outstanding = 3",
                200 + stream.below(20_000)
            ),
        ];
        let arrivals: Vec<&str> = arrivals.iter().map(String::as_str).collect();
        spec.workload = with_clients(&arrivals, &[]).workload;
        let mut drive = with_oracle(&spec);
        let capacity = drive.geometry().logical_bytes();
        let mut next = || {
            let request = case.request(&mut stream, capacity);
            placed(&drive, request, &mut stream)
        };
        let lists: Vec<VecDeque<Request>> = (0..3).map(|_| (0..300).map(|_| next()).collect()).collect();
        let mut runner = runner_of(&spec, lists);
        let mut done = [0; 3];
        match runner.run(&mut drive, u64::MAX / 2, |c| done[usize::from(c.request.tag.queue)] += 1) {
            Ok(progress) => assert!(progress.is_done && done == [300; 3], "seed {seed}: {done:?}"),
            // With a fast age clock the run may reach the last simulated time.
            Err(Stopped::Failed(Failure::TimeIsOver { .. }) | Stopped::TooLate { .. }) => continue,
            Err(other) => panic!("seed {seed}: {other:?}\n{text}"),
        }
        played += 1;
        drive.audit().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        drive.probe().verdict().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        sums_up(&Summary::of(&drive, &RunFacts::default()), 3);
    }
    assert!(played > 20, "{played}");
}

#[test]
fn a_run_in_slices_with_rests_ends_with_all_requests() {
    let clients =
        ["arrival = { queue_depth = 3 }, think_time = '200us'", "arrival = { iops = 4000 }, outstanding = 2"];
    let spec = with_clients(&clients, &["power.cut_at='15ms'", "cache.size='64KiB'"]);
    let lists = vec![mixed(200, &mut Stream::new(1, "a")), mixed(200, &mut Stream::new(1, "b"))];
    let whole = play(&spec, lists.clone());
    let (mut drive, mut runner) = (filled(&spec), runner_of(&spec, lists.clone()));
    let mut done = Vec::new();
    while !runner.run(&mut drive, 7, |c| done.push(*c)).unwrap().is_done {}
    assert_eq!(done, whole);
    let (mut drive, mut runner) = (filled(&spec), runner_of(&spec, lists));
    let mut ended = 0;
    while !runner.run(&mut drive, 50, |_| ended += 1).unwrap().is_done {
        assert!(runner.rest(&mut drive, crate::common::IDLE, |_| ended += 1));
    }
    assert_eq!(ended, 400);
    // The hosts' clock stands still while the drive comes to rest: nothing waits for it at the client.
    let (mut still, mut other) = (filled(&spec), runner_of(&spec, vec![reads(0), reads(400)]));
    while !other.run(&mut still, 50, |_| ()).unwrap().is_done {
        other.rest(&mut still, crate::common::IDLE, |_| ());
    }
    assert_eq!(other.waits()[1].waited, 0);
}
