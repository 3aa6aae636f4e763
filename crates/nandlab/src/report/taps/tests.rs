use super::*;
use crate::base::units::Span;
use crate::drive::spec::{self, Spec};
use crate::drive::{Drive, IDLE_LIMIT};
use crate::host::Op;
use crate::probe::NoProbe;
use std::collections::BTreeSet;
use std::path::Path;

/// One die of two planes that suspends programs. The last read level does not decode an RBER of 0.013, and each read
/// adds 0.001.
const SUSPENDING: &str = "multi_plane = true\n\
    suspend.program = { enter = '9us', resume = '4us', min_progress = '0us', max = 1 }\n\
    [ecc]\nlevels = 'laldpc'\n[reliability]\nrber = 'vth'\nread_disturb = 1e-3\n[power]\ncut_after_requests = 1000\n";

/// The same die with a write cache, which acknowledges FUA writes because a capacitor saves its data.
const CACHED: &str = "[cache]\nsize = '64KiB'\nflush_to = 'cache'\n[capacitor]\ncapacitance = '1mF'\n";

const SPECS: [&str; 2] = [SUSPENDING, CACHED];

fn load(text: &str) -> Spec {
    let text = format!(
        "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 2\n\
         blocks_per_plane = 24\npages_per_block = 8\npage_size = '4KiB'\nop = 1.0\n\
         [ftl]\nallocation = 'PCWD'\n[timing]\n{text}"
    );
    spec::load(&text, "test.toml", Path::new("."), &[]).expect("the spec is valid").spec
}

/// Returns a drive that has served requests of every kind and has lost power.
fn play<P: Probe>(text: &str, probe: P) -> Drive<P> {
    let mut drive = Drive::with_probe(&load(text), probe);
    drive.warm_up(1);
    let submit = |drive: &mut Drive<P>, op: Op, offset: u64, pages: u64, fua: bool| {
        let request = Request::new(op, offset, pages * 4096).at(drive.now()).with_fua(fua);
        drive.submit(&request).expect("the request fits");
    };
    let rest = |drive: &mut Drive<P>| drive.run_until_idle(IDLE_LIMIT).expect("the drive comes to rest");
    let alone = |drive: &mut Drive<P>, op: Op, pages: u64, fua: bool| {
        submit(drive, op, 0, pages, fua);
        rest(drive);
    };
    alone(&mut drive, Op::Write, 4, false);
    for _ in 0..16 {
        alone(&mut drive, Op::Read, 1, false);
    }
    alone(&mut drive, Op::Flush, 0, false);
    alone(&mut drive, Op::Write, 1, true);
    alone(&mut drive, Op::Trim, 1, false);
    // The read comes during the program of the write.
    submit(&mut drive, Op::Write, 0, 1, false);
    drive.advance(drive.now() + Span::from_ns(100_000));
    submit(&mut drive, Op::Read, 4096, 1, false);
    rest(&mut drive);
    // Power fails during a write.
    submit(&mut drive, Op::Write, 0, 1, false);
    drive.advance(drive.now() + Span::from_ns(100_000));
    drive.cut_power();
    drive
}

/// Records the events: the name of each, and what it says.
#[derive(Debug, Default)]
struct Seen(Vec<(&'static str, String)>);

macro_rules! record {
    ($($method:ident($($name:ident: $kind:ty),*);)+) => {$(
        fn $method(&mut self, $($name: $kind),*) {
            self.0.push((stringify!($method), [$(format!("{:?}", $name)),*].join(" ")));
        }
    )+};
}

impl Watcher for Seen {
    record! {
        on_issue(now: Time, die: DieId, transaction: &Transaction);
        on_joined(now: Time, die: DieId, first: &Transaction, transaction: &Transaction);
        on_phase(start: Time, end: Time, die: DieId, channel: u32, phase: Phase, transaction: &Transaction);
        on_suspend(now: Time, ready: Time, die: DieId);
        on_resume(now: Time, die: DieId);
    }
}

impl Probe for Seen {
    fn needs_sequences(&self) -> bool {
        true
    }

    record! {
        on_submitted(slot: RequestId, id: u64, request: &Request, operations: u64);
        on_results(operations: u64);
        on_reached(now: Time, slot: RequestId);
        on_begun(now: Time, slot: RequestId);
        on_done(now: Time, slot: RequestId);
        on_queued(now: Time, transaction: &Transaction);
        on_ended(now: Time, transaction: &Transaction);
        on_access(now: Time, end: Time, slot: RequestId);
        on_accessed(slot: RequestId);
        on_timer(now: Time);
        on_write_admitted(request: Option<RequestId>, lpn: Lpn, sequence: u64);
        on_write_durable(lpn: Lpn, sequence: u64);
        on_flush_asked(id: u64);
        on_flushed(id: u64, from_cache: bool);
        on_power_off(failed: Time, off: Time);
        on_fua_cached(lpn: Lpn, sequence: u64);
        on_write_acknowledged(lpn: Lpn, sequence: u64);
        on_trimmed(request: RequestId, lpn: Lpn, sequence: u64);
        on_read_asked(request: RequestId, lpn: Lpn);
        on_read_answered(request: RequestId, lpn: Lpn, sequence: Option<u64>);
        on_read_failed(request: RequestId, lpn: Lpn);
        on_decode(start: Time, end: Time, channel: u32, level: u8, transaction: &Transaction);
        on_completed(slot: RequestId, done: &Completion);
    }

    fn on_power_loss(&mut self, lost: &[Lost], recovered: &Recovered<'_>) {
        let contents: Vec<_> = (0..recovered.units).map(|lpn| (recovered.content)(Lpn(lpn))).collect();
        self.0.push(("on_power_loss", format!("{lost:?} {:?} {contents:?}", recovered.destroyed)));
    }
}

/// The methods of `Watcher` and `Probe` that an event calls.
fn events() -> BTreeSet<&'static str> {
    let sources = [include_str!("../../sched/watcher.rs"), include_str!("../../probe/mod.rs")];
    let names = |source: &'static str| {
        let of_trait = source.split("\npub trait ").nth(1).expect("the file has a trait");
        let of_trait = of_trait.split("\n}\n").next().expect("the trait ends");
        of_trait
            .split("    fn on_")
            .skip(1)
            .map(|rest| rest.split('(').next().expect("a method has arguments"))
    };
    sources.into_iter().flat_map(names).collect()
}

fn oracle() -> Oracle {
    Oracle::of(&load(SUSPENDING).drive)
}

fn timeline() -> Timeline {
    Timeline::new(1000)
}

#[test]
fn an_observer_of_the_set_sees_each_event_once_as_a_probe_alone_does() {
    let mut names = BTreeSet::new();
    for text in SPECS {
        let alone = play(text, Seen::default());
        let only = play(text, Taps::default().with(Seen::default()));
        let beside = Taps::new(Some(oracle()), Some(timeline()));
        let beside = play(text, beside.with(Seen::default()));
        let seen =
            |drive: &Drive<Taps>| drive.probe().observer::<Seen>().expect("it is in the set").0.clone();
        assert_eq!(seen(&only), alone.probe().0);
        assert_eq!(seen(&beside), alone.probe().0);
        names
            .extend(alone.probe().0.iter().map(|(name, _)| format!("on_{}", name.trim_start_matches("on_"))));
    }
    let all: BTreeSet<String> = events().into_iter().map(|name| format!("on_{name}")).collect();
    assert_eq!(all.len(), 29);
    assert_eq!(names, all, "an event is not played");
}

#[test]
fn oracle_and_timeline_of_one_set_record_what_each_records_alone() {
    for text in SPECS {
        let (of_oracle, of_timeline) = (play(text, oracle()), play(text, timeline()));
        let both = play(text, Taps::new(Some(oracle()), Some(timeline())));
        let taps = both.probe();
        assert_eq!(
            format!("{:?}", taps.oracle().expect("it is in the set")),
            format!("{:?}", of_oracle.probe())
        );
        assert!(of_oracle.probe().checked > 0 && of_oracle.probe().violations.is_empty());
        let recorded = taps.timeline().expect("it is in the set").to_json(both.now());
        assert_eq!(recorded, of_timeline.probe().to_json(of_timeline.now()));
        assert!(recorded.matches("\"ph\":\"X\"").count() > 30, "{recorded}");
    }
}

#[test]
fn a_set_of_one_records_what_its_observer_records_alone() {
    let of_oracle = play(SUSPENDING, Taps::new(Some(oracle()), None));
    let alone = play(SUSPENDING, oracle());
    assert_eq!(format!("{:?}", of_oracle.probe().oracle()), format!("{:?}", Some(alone.probe())));
    let of_timeline = play(SUSPENDING, Taps::new(None, Some(timeline())));
    let alone = play(SUSPENDING, timeline());
    let recorded = of_timeline.probe().timeline().expect("it is in the set").to_json(of_timeline.now());
    assert_eq!(recorded, alone.probe().to_json(alone.now()));
}

/// What a set passes on once goes to the oracle and to all others, each once.
#[test]
fn the_set_passes_on_every_event_once() {
    let source = include_str!("../taps.rs");
    let mut passed: Vec<&str> = source
        .split("    pass_on! {")
        .skip(1)
        .flat_map(|rest| rest.split("    }\n").next().expect("the list ends").split("        on_").skip(1))
        .map(|rest| rest.split('(').next().expect("a method has arguments"))
        .collect();
    passed.sort_unstable();
    assert_eq!(passed, events().into_iter().collect::<Vec<_>>());
}

/// An observer that does not see how the drive works gets every other event, and one beside it gets all.
#[test]
fn an_observer_of_data_is_not_told_of_operations() {
    struct Data(Seen);
    impl Watcher for Data {}
    impl Probe for Data {
        fn sees_work(&self) -> bool {
            false
        }

        fn on_queued(&mut self, _: Time, _: &Transaction) {
            panic!("it does not see operations");
        }

        fn on_decode(&mut self, _: Time, _: Time, _: u32, _: u8, _: &Transaction) {
            panic!("it does not see decoding");
        }

        fn on_begun(&mut self, _: Time, _: RequestId) {
            panic!("it does not see the stages of requests");
        }

        fn on_completed(&mut self, slot: RequestId, done: &Completion) {
            self.0.on_completed(slot, done);
        }
    }

    let of = |drive: &Drive<Taps>| drive.probe().observer::<Seen>().expect("it is in the set").0.clone();
    let alone = play(CACHED, Taps::default().with(Data(Seen::default())));
    let completed = &alone.probe().observer::<Data>().expect("it is in the set").0.0;
    let all = of(&play(CACHED, Taps::default().with(Seen::default())));
    let of_all: Vec<_> = all.iter().filter(|(name, _)| *name == "on_completed").cloned().collect();
    assert_eq!(completed, &of_all);
    assert!(!of_all.is_empty());
}

/// A drive keeps sequence numbers, and lets its dies ask for their channels, only if an observer needs it.
#[test]
fn a_set_needs_what_its_observers_need() {
    struct Quiet;
    impl Watcher for Quiet {
        fn sees_phases(&self) -> bool {
            false
        }
    }
    impl Probe for Quiet {}

    let needs = |taps: &Taps| (taps.is_empty(), taps.needs_sequences(), taps.sees_phases());
    assert_eq!(needs(&Taps::default()), (true, false, false));
    assert_eq!(needs(&Taps::default().with(Quiet)), (false, false, false));
    assert_eq!(needs(&Taps::default().with(Quiet).with(Seen::default())), (false, true, true));
    assert_eq!(needs(&Taps::new(Some(oracle()), None)), (false, true, false));
    assert_eq!(needs(&Taps::new(None, Some(timeline()))), (false, false, true));
    let spec = load("");
    assert!(!Drive::with_probe(&spec, Taps::new(None, Some(timeline()))).array().keeps_sequences());
    assert!(Drive::with_probe(&spec, Taps::new(Some(oracle()), None)).array().keeps_sequences());
    assert!(!NoProbe.needs_sequences() && !NoProbe.sees_phases());
}

#[test]
fn an_observer_is_found_by_its_type() {
    struct Other(u32);
    impl Watcher for Other {}
    impl Probe for Other {}

    let mut taps = Taps::default().with(Seen::default()).with(Other(1)).with(Other(2));
    assert_eq!(taps.observer::<Other>().map(|other| other.0), Some(1));
    taps.observer_mut::<Other>().expect("it is in the set").0 = 3;
    assert_eq!(taps.observer::<Other>().map(|other| other.0), Some(3));
    assert!(taps.observer::<Oracle>().is_none());
}
