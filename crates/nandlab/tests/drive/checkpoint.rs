//! Checkpoints: a drive that is saved and restored in the middle of its work goes on as if nothing had happened. All
//! results are the same to the byte, and so is the whole state, because a later checkpoint is the same to the byte.

use crate::cases::Case;
use crate::common::schemes::placed;
use crate::common::{TINY, ns, read_everything, settle, spec, with_oracle};
use crate::crash::Plan;
use crate::mechanisms::MECHANISMS;
use nandlab::base::policy::PolicyError;
use nandlab::base::rng::Stream;
use nandlab::drive::spec::Spec;
use nandlab::drive::{Completion, Drive, Failure, IDLE_LIMIT, Policies, SaveError, SnapshotError};
use nandlab::ftl::{Candidates, VictimPolicy};
use nandlab::host::{Op, Oracle, Request};
use nandlab::probe::{NoProbe, Probe};
use nandlab::report::{RunFacts, Table, power, smart, summary};

/// Random drives of an ordinary run of the tests. `NANDLAB_SOAK_CASES` and `NANDLAB_SOAK_SEED` set another number and
/// the first seed.
const CASES: u64 = 96;

/// A host whose requests follow from its stream and from the drive.
#[derive(Clone, Debug)]
struct Host {
    stream: Stream,
    depth: u32,
    weights: [u64; 4],
    /// Whether power fails now and then.
    cuts: bool,
    /// Whether some requests have tags.
    tags: bool,
    completions: Vec<Completion>,
}

impl Host {
    fn new(seed: u64, spec: &Spec) -> Self {
        let mut stream = Stream::new(seed, "checkpoint");
        Self {
            depth: 1 + stream.below(24) as u32,
            weights: [[2, 8, 1, 1], [1, 4, 0, 2], [1, 3, 2, 1], [4, 4, 0, 0]][stream.below(4) as usize],
            cuts: spec.models_power_loss() && stream.below(3) > 0,
            tags: stream.below(4) == 0,
            completions: Vec::new(),
            stream,
        }
    }

    fn request(&mut self, capacity: u64) -> Request {
        let Self { stream, weights, .. } = self;
        let sectors = capacity / 512;
        let mut draw = stream.below(weights.iter().sum());
        let op = Op::ALL.into_iter().find(|&op| {
            let hit = draw < weights[op as usize];
            draw = draw.wrapping_sub(weights[op as usize]);
            hit
        });
        let op = op.expect("the weights are not all 0");
        let span = if stream.below(3) == 0 { (sectors / 6).max(8).min(sectors) } else { sectors };
        let first = stream.below(span);
        let len = (stream.below(40) + 1).min(sectors - first);
        let is_whole = stream.below(2) == 0;
        let (first, len) = if is_whole { (first / 8 * 8, len.div_ceil(8) * 8) } else { (first, len) };
        let len = len.min(sectors - first);
        let (offset, len) = if op == Op::Flush { (0, 0) } else { (first * 512, len * 512) };
        let fua = op == Op::Write && stream.below(8) == 0;
        let mut request = Request::new(op, offset, len).with_fua(fua);
        if self.tags {
            request.tag.queue = stream.below(3) as u16;
        }
        request
    }

    /// Submits `requests` requests, and simulates; ends early if the drive fails.
    fn run<P: Probe>(&mut self, drive: &mut Drive<P>, requests: u32) {
        let capacity = drive.geometry().logical_bytes();
        for _ in 0..requests {
            while drive.outstanding() >= self.depth && drive.advance_unless_at_rest() {}
            self.completions.extend(drive.completions());
            if drive.failure().is_some() {
                return;
            }
            let request = self.request(capacity).at(drive.now());
            let request = placed(drive, request, &mut self.stream);
            drive.submit(&request).expect("the request fits");
            match self.stream.below(120) {
                0 => drive.detect_budget(),
                1..=6 => drive.advance(drive.now() + ns(self.stream.below(3_000_000))),
                7 => drive.advance(drive.now() + ns(self.stream.below(60_000_000))),
                8 if self.cuts && drive.failure().is_none() => _ = drive.cut_power(),
                _ => {}
            }
        }
        self.completions.extend(drive.completions());
    }
}

fn saved<P: Probe>(drive: &Drive<P>) -> Vec<u8> {
    let mut file = Vec::new();
    drive.checkpoint(&mut file).unwrap_or_else(|error| panic!("{error}"));
    file
}

/// A drive of the spec that goes on from the checkpoint `file`.
fn restored(spec: &Spec, file: &[u8]) -> Drive {
    let mut drive = Drive::new(spec);
    drive.restore(file).unwrap_or_else(|error| panic!("{error}"));
    drive
}

/// All results of a drive, as text.
fn results(drive: &mut Drive) -> String {
    drive.finish_stats();
    let (geometry, stats) = (drive.geometry(), drive.stats());
    let shape = drive.array().shapes().first();
    let tables = [
        stats.series.table(geometry, shape),
        stats.dies.table(stats.series, geometry.dies_per_channel),
        Table::latency(stats.host),
        Table::blocks(geometry, drive.array()),
    ];
    let json = serde_json::to_string_pretty(&(
        summary(drive, &RunFacts::default()),
        power(drive),
        smart(drive),
        drive.bytes(),
    ));
    format!("{}\n{tables:?}\n{:?}\n{:?}", json.unwrap(), drive.failure(), drive.audit())
}

/// What the checkpoints of the cases have had in them.
#[derive(Debug, Default)]
struct Seen {
    at_rest: u32,
    at_work: u32,
    dirty: u32,
    losses: u32,
    losses_after: u32,
    detections: u32,
    recharging: u32,
    links: u32,
    map: u32,
    refreshed: u32,
    reclaimed: u32,
    copybacks: u32,
    buffers: u32,
    tags: u32,
    rows_of_series: u32,
}

impl Seen {
    /// Every kind of state has been in several checkpoints of the cases.
    fn check(&self) {
        let Self { at_rest, at_work, dirty, losses, losses_after, detections, recharging, links, .. } = *self;
        let Self { map, refreshed, reclaimed, copybacks, buffers, tags, rows_of_series, .. } = *self;
        let seen = [
            at_rest,
            at_work,
            dirty,
            losses,
            losses_after,
            detections,
            recharging,
            links,
            map,
            refreshed,
            reclaimed,
            copybacks,
            buffers,
            tags,
            rows_of_series,
        ];
        assert!(seen.iter().all(|&count| count >= 5), "a kind of state is rare: {self:?}");
    }

    fn of(&mut self, drive: &Drive, host: &Host) {
        let (stats, is_at_rest) = (drive.stats(), drive.is_at_rest());
        for (count, has) in [
            (&mut self.at_rest, is_at_rest),
            (&mut self.at_work, !is_at_rest),
            (&mut self.dirty, drive.cache_units()[2] > 0),
            (&mut self.losses, !stats.power.losses.is_empty()),
            (&mut self.detections, !stats.power.detections.is_empty()),
            (&mut self.recharging, drive.is_recharging()),
            (&mut self.links, drive.links().is_some() && stats.refresh.partial_pages > 0),
            (&mut self.map, drive.demand_map().is_some_and(|map| !map.cache.is_empty())),
            (&mut self.refreshed, stats.refresh.blocks > 0),
            (&mut self.reclaimed, stats.reclaim.blocks > 0),
            (&mut self.copybacks, stats.migration.by_count.iter().any(|&count| count > 0)),
            (&mut self.buffers, drive.spec().ftl.buffer_bytes > 0),
            (&mut self.tags, host.tags),
            (&mut self.rows_of_series, stats.series.rows().len() > 1),
        ] {
            *count += u32::from(has);
        }
    }
}

/// Runs a drive to a random request, and on in two drives: itself, and one restored from its checkpoint.
fn play(seed: u64, spec: &Spec, seen: &mut Seen) {
    let mut host = Host::new(seed, spec);
    let mut drive = Drive::new(spec);
    drive.precondition(&mut |_| true);
    if host.stream.below(3) == 0 {
        drive.warm_up(host.stream.below(300));
    }
    let before = host.stream.below(700) as u32;
    host.run(&mut drive, before);
    // Half of the drives come to rest first. A drive whose refresh falls behind does not.
    if host.stream.below(2) == 0 {
        match drive.run_until_idle(IDLE_LIMIT) {
            Ok(()) | Err(Failure::Restless { .. } | Failure::TimeIsOver { .. }) => {}
            Err(failure) => panic!("{failure}"),
        }
    }
    if drive.failure().is_some() {
        assert!(matches!(drive.checkpoint(std::io::sink()), Err(SaveError::Failed)));
        return;
    }
    seen.of(&drive, &host);
    let file = saved(&drive);
    let mut other = restored(spec, &file);
    assert!(saved(&other) == file, "the restored drive has another state");
    let mut other_host = host.clone();
    for requests in [30, 300] {
        host.run(&mut drive, requests);
        other_host.run(&mut other, requests);
        assert_eq!(host.completions, other_host.completions, "the completions");
        if drive.failure().is_none() {
            assert!(saved(&other) == saved(&drive), "the states after {requests} requests");
        }
    }
    let idle = drive.run_until_idle(IDLE_LIMIT);
    assert_eq!(idle, other.run_until_idle(IDLE_LIMIT));
    seen.losses_after += u32::from(drive.stats().power.losses.len() > 1);
    let (mine, others) = (results(&mut drive), results(&mut other));
    for (mine, other) in mine.lines().zip(others.lines()) {
        assert_eq!(mine, other);
    }
    assert!(mine == others);
}

#[test]
fn a_restored_drive_goes_on_as_the_saved_one() {
    let from_environment = |name: &str| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    let first = from_environment("NANDLAB_SOAK_SEED").unwrap_or(0);
    let cases = from_environment("NANDLAB_SOAK_CASES").unwrap_or(CASES);
    let mut seen = Seen::default();
    for seed in first..first + cases {
        let (text, spec) = match seed % 2 {
            0 => Case::placed(seed / 2).spec(),
            _ => {
                let plan = Plan::placed(seed / 2);
                (plan.text, plan.spec)
            }
        };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| play(seed, &spec, &mut seen)));
        assert!(
            outcome.is_ok(),
            "{text}\nseed {seed}; to repeat it: NANDLAB_SOAK_SEED={seed} NANDLAB_SOAK_CASES=1 cargo test -p nandlab \
             --test drive checkpoint::a_restored_drive"
        );
    }
    if cases >= CASES {
        seen.check();
    }
}

/// A drive of each mechanism, in the middle of its work at a depth of 64.
#[test]
fn a_restored_drive_of_each_mechanism_goes_on_as_the_saved_one() {
    for mechanism in MECHANISMS {
        let (spec, mut drive) = (mechanism.spec(), mechanism.drive());
        let requests = mechanism.requests(22_000, drive.geometry().logical_bytes());
        let (before, after) = requests.split_at(20_000);
        let submit = |drive: &mut Drive, requests: &[Request]| -> Vec<Completion> {
            let mut completions = Vec::new();
            for request in requests {
                while drive.outstanding() >= 64 && drive.advance_unless_at_rest() {}
                completions.extend(drive.completions());
                drive.submit(&request.at(drive.now())).expect("the request fits");
            }
            completions
        };
        submit(&mut drive, before);
        let acts = (mechanism.acts)(&drive.stats());
        let mut other = restored(&spec, &saved(&drive));
        let completions = [submit(&mut drive, after), submit(&mut other, after)];
        assert_eq!(completions[0], completions[1], "{}: the completions", mechanism.name);
        assert!(saved(&other) == saved(&drive), "{}: the states", mechanism.name);
        assert_eq!(results(&mut drive), results(&mut other), "{}", mechanism.name);
        assert!(acts > 0, "{}: not at work before the checkpoint", mechanism.name);
    }
}

/// The oracle goes on in a restored drive, and finds there what the host has written before and after.
#[test]
fn the_oracle_goes_on_with_a_restored_drive() {
    let mut checked = 0;
    for seed in 0..12 {
        let plan = Plan::placed(seed);
        let mut host = Host::new(seed, &plan.spec);
        let mut drive = Drive::with_probe(&plan.spec, Oracle::default());
        drive.precondition(&mut |_| true);
        drive.expect_preconditioned(|oracle| oracle);
        host.run(&mut drive, 300);
        let mut other = Drive::with_probe(&plan.spec, Oracle::default());
        other.restore(&*saved(&drive)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let mut again = host.clone();
        host.run(&mut drive, 200);
        again.run(&mut other, 200);
        for drive in [&mut drive, &mut other] {
            settle(drive);
            read_everything(drive);
        }
        checked += other.probe().checked;
        assert_eq!(other.probe().checked, drive.probe().checked, "seed {seed}");
    }
    assert!(checked > 2_000, "{checked} reads");
}

/// A spec that models power loss, with a write cache.
const CACHED: &[&str] = &["cache.size = '64KiB'", "power.cut_after_requests = 1000000"];

/// A drive in the middle of its work, and the file of its checkpoint.
fn at_work(spec: &Spec) -> (Drive, Vec<u8>) {
    let mut drive = Drive::new(spec);
    Host::new(1, spec).run(&mut drive, 200);
    let file = saved(&drive);
    (drive, file)
}

fn refused(spec: &Spec, file: &[u8]) -> SnapshotError {
    Drive::new(spec).restore(file).expect_err("the file is refused")
}

#[test]
fn a_checkpoint_is_refused_by_a_drive_with_another_spec_or_other_observers() {
    let mine = spec(TINY, CACHED);
    let (_, file) = at_work(&mine);
    let error = refused(&spec(TINY, &["drive.endurance = 1000001", CACHED[0], CACHED[1]]), &file);
    assert!(matches!(error, SnapshotError::OtherSpec));
    assert_eq!(
        error.to_string(),
        "the checkpoint is of a drive with another spec: restore it in a drive with the spec with which it was written"
    );
    let error = with_oracle(&mine).restore(&*file).expect_err("the oracle has not seen the writes");
    assert!(matches!(error, SnapshotError::OtherProbe), "{error}");
}

#[test]
fn a_saved_drive_is_no_checkpoint_and_a_checkpoint_no_saved_drive() {
    let mine = spec(TINY, &[]);
    let mut file = Vec::new();
    Drive::new(&mine).save(&mut file).unwrap();
    assert!(matches!(refused(&mine, &file), SnapshotError::Missing("checkpoint")));
    let (_, file) = at_work(&mine);
    let error = Drive::new(&mine).load(&*file).expect_err("the file has other sections");
    assert!(matches!(error, SnapshotError::Missing("drive")), "{error}");
}

#[test]
fn a_damaged_checkpoint_is_refused() {
    let mine = spec(TINY, CACHED);
    let (_, file) = at_work(&mine);
    assert!(refused(&mine, &file[..file.len() - 1]).to_string().contains("it ends too early"));
    assert!(refused(&mine, &[&*file, &[0]].concat()).to_string().contains("bytes follow its end"));
    let mut stream = Stream::new(1, "damage");
    for _ in 0..300 {
        let mut damaged = file.clone();
        let at = stream.below(file.len() as u64) as usize;
        damaged[at] ^= 1 << stream.below(8);
        _ = refused(&mine, &damaged);
    }
}

#[test]
fn a_drive_without_power_has_no_checkpoint_until_power_returns() {
    let mine = spec(TINY, CACHED);
    let (mut drive, _) = at_work(&mine);
    drive.lose_power();
    assert!(matches!(drive.checkpoint(std::io::sink()), Err(SaveError::Off)));
    drive.restore_power();
    let file = saved(&drive);
    assert!(saved(&restored(&mine, &file)) == file);
}

/// A policy from outside that picks the first full superblock.
#[derive(Debug)]
struct First;

impl VictimPolicy for First {
    fn pick(&mut self, lane: &Candidates) -> Result<Option<u32>, PolicyError> {
        Ok((0..lane.superblocks.len() as u32).find(|&superblock| lane.is_full(superblock)))
    }

    fn fork(&self) -> Box<dyn VictimPolicy> {
        Box::new(Self)
    }
}

#[test]
fn a_drive_with_a_policy_from_outside_has_no_checkpoints() {
    let policies = Policies::default().with_victim("first", |_| Box::new(First));
    let drive = Drive::build(&spec(TINY, &[]), policies, NoProbe).unwrap();
    assert_eq!(
        drive.checkpoint(std::io::sink()).expect_err("the policy may remember something").to_string(),
        "the state of the policy first cannot be saved, because it is not built in: set gc.victim to a policy of nandlab"
    );
}
