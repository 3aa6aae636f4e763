//! A simulated drive as the backend of the server.
//!
//! The drive runs on simulated time, and [`Speed`] says how it follows the time of the machine. `data` keeps the bytes that the
//! drive itself does not have; `jobs` splits what the drive does not know, such as zeroing.

mod checkpoint;
mod cost;
mod cutter;
mod data;
mod jobs;
mod journal;
mod window;

pub use checkpoint::Kept;
pub(crate) use checkpoint::beside;
pub use cutter::{Cut, Cutter};
pub use journal::{Resumed, Unresumed};

use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;

use nandlab::base::units::{Span, Time};
use nandlab::drive::kept::KeptDrive;
use nandlab::drive::spec::{PreconditionSpec, Spec};
use nandlab::drive::{Drive, Failure as DriveFailure, PtsOutcome, SnapshotError, Version, Watch};
use nandlab::host::{Completion as DriveCompletion, FailReason, Op as DriveOp, Request as DriveRequest, Tag};
use nandlab::power_loss::RecoveryCut;
use nandlab::report::{Explainer, RunFacts, Summary, Taps, fdp, smart};
use nandlab::runner::memory::Memory;
use nandlab_base::base::ids::{Lpn, SuperblockId};
use nandlab_base::recording::{Entry, Event};
use serde_json::{Value, json};

use crate::backend::{Backend, Completion, Errno, Extent, Failure, Features, Op, Order, Pace, Request};
use crate::contents::Contents;
use crate::memory::is_zero;
use crate::recording::Recorder;
use crate::slots::Slots;
use crate::snapshot::{Bins, Snapshot};
use checkpoint::{Checkpoints, Saving, data_beside};
use cost::processor_time;
use data::{Data, Purpose};
use jobs::{Job, Kind};
use window::Rounds;

/// The most units whose status one question is answered for.
const EXTENT_UNITS_MAX: u64 = 1 << 16;

const NO_HANDLES: &str = "the drive has no placement handles: set placement.handles in its spec";
const FAILED: &str = "the drive has failed";
const WORN_OUT: &str = "the drive is worn out";
const NO_ROOM: &str = "there is no room for the data of the drive";
const POWER: &str = "the drive has no power";
const UNRECORDED: &str = "the recording of the drive cannot grow";

/// How simulated time follows the time of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// Simulated time waits for the clients: it does not pass a completion before the clients have had the time to react.
    Max {
        /// The number of completions that are answered together; at least 1.
        gather: u32,
    },
    /// So many simulated seconds pass in a second; above 0.
    Factor(f64),
}

/// A completed request that waits for its time.
#[derive(Debug)]
struct Ready {
    id: u64,
    result: Result<(), Failure>,
    due: Time,
    data: Vec<u8>,
    /// The request is a flush, or has FUA.
    is_promise: bool,
}

/// A simulated drive as a backend.
#[derive(Debug)]
pub struct Simulated {
    drive: Box<Drive<Taps>>,
    speed: Speed,
    /// Power fails, and returns at once, when this simulated time has passed since it last returned.
    cut_every: Option<Span>,
    /// A time of the machine and the simulated time that it stands for.
    origin: (Time, Time),
    unit_bytes: u64,
    jobs: Slots<Job>,
    ready: VecDeque<Ready>,
    /// The data of the read whose completion was taken last.
    taken: Vec<u8>,
    is_off: bool,
    /// Power has failed since the server asked last.
    has_failed: bool,
    /// Power failures that the drive has made known.
    power_losses: u64,
    next_cut: Option<Time>,
    /// Requests of the drive that are outstanding.
    open: u64,
    /// Completions up to this simulated time may be sent.
    released: Time,
    /// Completions of the drive; empty between calls.
    done: Vec<DriveCompletion>,
    requests_completed: u64,
    /// Sum of the latencies of the requests, in nanoseconds.
    latency_ns: u128,
    /// Simulated time with outstanding requests, in nanoseconds.
    busy_ns: u64,
    /// Since when requests are outstanding.
    busy_since: Option<Time>,
    /// What records the session.
    recorder: Option<Recorder>,
    pts: Option<PtsOutcome>,
    note: Option<String>,
    /// Versions that nobody can read are kept: a cut may put them back.
    keeps_all: bool,
    /// Where checkpoints are kept; `None`: nowhere.
    kept: Option<Kept>,
    /// Of a drive that goes on from a checkpoint: the `id` of the recording that follows the checkpoint, and whether the
    /// session had ended cleanly before.
    follows: Option<(u64, bool)>,
    /// Reads and writes since the last snapshot; `None`: nobody takes snapshots.
    since_snapshot: Option<Box<[Bins; 2]>>,
    /// Which requests are explained; `None`: none.
    rounds: Option<Rounds>,
    /// The checkpoint that the drive goes on from, until its recording is locked.
    read_from: Option<File>,
    /// A checkpoint that is on its way to the disk.
    saving: Option<Saving>,
    checkpoints: Checkpoints,
    /// The processor time of what a start would do again.
    replay: Span,
    /// The times of the machine at which the last request came, and at which the drive worked last.
    submitted: Time,
    looked: Time,
}

/// How a drive is served.
#[derive(Clone, Debug)]
pub struct Options {
    /// How simulated time follows the time of the machine.
    pub speed: Speed,
    /// The limit in bytes of the data in memory; further data is refused.
    pub memory_max: u64,
    /// Power fails each time so much simulated time has passed since it last returned, and returns at once, as it does when
    /// the spec lets it fail.
    pub cut_every: Option<Span>,
    /// The number of slow requests that each snapshot explains; 0: requests are not explained; `None`: no snapshots are
    /// taken.
    pub explain: Option<u32>,
    /// The file of a checkpoint. If it is there, the drive goes on from it, and is not preconditioned. The data of such a
    /// drive is in a file beside it, whose name ends with `.data`, whatever `memory_max` is.
    pub checkpoint: Option<PathBuf>,
    /// Where the preconditioned drive may be found, and is kept; `None`: nowhere.
    pub kept: Option<KeptDrive>,
}

/// Why a drive cannot be served.
#[derive(Debug)]
pub enum Unserved {
    /// Preconditioning was stopped.
    Stopped,
    /// Preconditioning has failed.
    Failed(Box<DriveFailure>),
    /// A saved drive cannot be loaded.
    Load(PathBuf, SnapshotError),
    /// A checkpoint cannot be restored.
    Restore(PathBuf, SnapshotError),
    /// A kept drive cannot be read to its end: the error with its remedy.
    Kept(String),
}

impl Simulated {
    /// Estimated upper bounds of the memory and of the address space that the drive of a spec takes when it is served, in
    /// bytes, without the data that clients write. They may write every unit and cut the power at any time, whatever the
    /// spec's workload is.
    pub fn memory(spec: &Spec, explain: Option<u32>) -> [u64; 2] {
        let mut spec = spec.clone();
        (spec.workload, spec.power.cut_after_requests) = (None, u64::MAX);
        let geometry = spec.geometry();
        let (units, versions) = (geometry.logical_units.into(), geometry.units.into());
        let explainer = explain.filter(|&slowest| slowest > 0).map_or(0, Explainer::bytes);
        let observer = Data::bytes_max(units) + Contents::bytes_max(units, versions) + explainer;
        [Memory::of(&spec, false), Memory::reserved(&spec, false)]
            .map(|memory| memory.total().saturating_add(observer))
    }

    /// A fresh drive, preconditioned as the spec has it, or a drive that goes on from its checkpoint. `watch` is called meanwhile with the share that is done, and stops
    /// preconditioning when it returns `false`. Units of preconditioning read as zeros.
    ///
    /// # Errors
    /// When preconditioning does not end, or a saved drive cannot be loaded.
    pub fn build(spec: &Spec, options: &Options, watch: Watch<'_>) -> Result<Self, Unserved> {
        let geometry = spec.geometry();
        let units = geometry.logical_units;
        let contents = match &options.checkpoint {
            Some(path) => Contents::kept(units.into(), geometry.unit_bytes, &data_beside(path)),
            None => Contents::new(units.into(), geometry.unit_bytes, options.memory_max),
        };
        let taps = Taps::default().with(Data::new(units, contents));
        let taps = match options.explain {
            Some(slowest @ 1..) => taps.explaining(Explainer::live(slowest, geometry.dies)),
            _ => taps,
        };
        let mut drive = Box::new(Drive::with_probe(spec, taps));
        if let Some(path) = options.checkpoint.as_ref().filter(|path| path.exists()) {
            let unserved = |error| Unserved::Restore(path.clone(), error);
            let file = File::open(path).map_err(|error| unserved(SnapshotError::Io(error)))?;
            let read_from = file.try_clone().map_err(|error| unserved(SnapshotError::Io(error)))?;
            drive.restore(file).map_err(unserved)?;
            let mut restored = Self::new(drive, options.speed, options.cut_every, None);
            restored.take_over_session();
            restored.begin_snapshots(options);
            restored.read_from = Some(read_from);
            return Ok(restored);
        }
        let (mut pts, mut note, begin) = (None, None, processor_time());
        if let PreconditionSpec::Load(path) = &spec.precondition {
            let unserved = |error| Unserved::Load(path.clone(), error);
            let file = File::open(path).map_err(|error| unserved(SnapshotError::Io(error)))?;
            drive.load(file).map_err(unserved)?;
        } else {
            let done = drive.precondition_or_load(options.kept.as_ref(), watch).map_err(Unserved::Kept)?;
            (pts, note) = (done.outcome, done.note);
            if let Some(failure) = drive.failure() {
                return Err(Unserved::Failed(Box::new(failure.clone())));
            }
            if !done.is_done {
                return Err(Unserved::Stopped);
            }
        }
        let mut built = Self::new(drive, options.speed, options.cut_every, pts);
        built.note = note;
        built.begin_snapshots(options);
        built.replay = processor_time().saturating_sub(begin);
        Ok(built)
    }

    fn new(drive: Box<Drive<Taps>>, speed: Speed, cut_every: Option<Span>, pts: Option<PtsOutcome>) -> Self {
        let now = drive.now();
        Self {
            unit_bytes: drive.geometry().unit_bytes.into(),
            drive,
            speed,
            cut_every,
            origin: (Time::START, now),
            jobs: Slots::new(),
            ready: VecDeque::new(),
            taken: Vec::new(),
            is_off: false,
            has_failed: false,
            power_losses: 0,
            next_cut: cut_every.map(|every| now.saturating_add(every)),
            open: 0,
            released: if matches!(speed, Speed::Max { .. }) { Time::NEVER } else { now },
            done: Vec::new(),
            requests_completed: 0,
            latency_ns: 0,
            busy_ns: 0,
            busy_since: None,
            recorder: None,
            pts,
            note: None,
            keeps_all: false,
            kept: None,
            follows: None,
            since_snapshot: None,
            rounds: None,
            read_from: None,
            saving: None,
            checkpoints: Checkpoints::default(),
            replay: Span::ZERO,
            submitted: Time::START,
            looked: Time::START,
        }
    }

    /// The drive.
    pub fn drive(&self) -> &Drive<Taps> {
        &self.drive
    }

    /// The drive, for its results at the end of the session.
    pub fn drive_mut(&mut self) -> &mut Drive<Taps> {
        &mut self.drive
    }

    /// How preconditioning to steady state has ended, if the spec asks for it.
    pub fn pts(&self) -> Option<&PtsOutcome> {
        self.pts.as_ref()
    }

    /// What the user should know of the kept drive, if anything.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    fn data(&mut self) -> &mut Data {
        self.drive.probe_mut().observer_mut().expect("the set of a served drive has its data")
    }

    /// The simulated time at a time of the machine.
    fn simulated(&self, now: Time) -> Time {
        let Speed::Factor(factor) = self.speed else { return self.drive.now() };
        let (machine, simulated) = self.origin;
        let passed = now.saturating_sub(machine).ns();
        let passed = if factor == 1.0 { passed } else { (passed as f64 * factor) as u64 };
        simulated.saturating_add(Span::from_ns(passed))
    }

    /// The time of the machine at a simulated time, rounded up.
    fn machine(&self, at: Time) -> Time {
        let Speed::Factor(factor) = self.speed else { return Time::START };
        let (machine, simulated) = self.origin;
        let passed = at.saturating_sub(simulated).ns();
        let passed = if factor == 1.0 { passed } else { (passed as f64 / factor).ceil() as u64 };
        machine.saturating_add(Span::from_ns(passed))
    }

    /// Submits a request to the drive.
    fn give(
        &mut self,
        purpose: Purpose,
        request: DriveRequest,
        payload: &[u8],
        at: Time,
    ) -> Result<(), Failure> {
        if self.drive.failure().is_some() {
            return Err(Failure::new(Errno::Io, FAILED));
        }
        if self.is_off {
            return Err(Failure::new(Errno::Io, POWER));
        }
        if self.has_ended() {
            return Err(Failure::new(Errno::Io, UNRECORDED));
        }
        // Events of the present time come before the request, so that a replay meets the same.
        self.drive.advance(self.drive.now());
        if request.op == DriveOp::Write {
            // Zeros take room only in the first and the last unit, which may keep other data.
            let all = units_of(&request, self.unit_bytes);
            let units = if payload.is_empty() { all.min(2) } else { all };
            if !self.data().reserve(units) {
                self.sweep_if_worth_it();
                let units = self.units_with_data(request.offset, request.len, payload);
                if !self.data().reserve(units) {
                    return Err(Failure::new(Errno::NoSpace, NO_ROOM));
                }
            }
        }
        self.data().give(purpose, payload);
        let request = request.at(at.min(self.drive.now()));
        if self.drive.submit(&request).is_err() {
            self.data().take_given_back();
            return Err(Failure::new(Errno::Invalid, "the drive refuses the request"));
        }
        self.record(Event::Request(request), payload);
        self.open += 1;
        if self.busy_since.is_none() {
            self.busy_since = Some(self.drive.now());
        }
        Ok(())
    }

    /// The number of units of a write that may need room: all but those that become zeros as a whole.
    fn units_with_data(&self, offset: u64, len: u64, payload: &[u8]) -> u64 {
        let (first, end) = (offset / self.unit_bytes, (offset + len).div_ceil(self.unit_bytes));
        let needs_room = |unit: &u64| {
            let (from, to) = (unit * self.unit_bytes, (unit + 1) * self.unit_bytes);
            let is_whole = offset <= from && to <= offset + len;
            let data = || &payload[(from - offset) as usize..(to - offset) as usize];
            !is_whole || (!payload.is_empty() && !is_zero(data()))
        };
        (first..end).filter(needs_room).count() as u64
    }

    /// Submits the next step of a job, or completes it.
    fn go_on(&mut self, key: u64) {
        let unit_bytes = self.unit_bytes;
        loop {
            let Some(job) = self.jobs.get_mut(key) else { return };
            let due = job.due;
            let Some(request) = job.next(unit_bytes) else {
                let job = self.jobs.remove(key).expect("the job is there");
                let result = job.failure.map_or(Ok(()), Err);
                let (id, due, is_promise) = (job.id, job.due, job.fua);
                self.ready.push_back(Ready { id, result, due, data: Vec::new(), is_promise });
                return;
            };
            // The next step follows at the end of the step before.
            match self.give(Purpose::Job(key), request, &[], due) {
                Ok(()) => return,
                Err(failure) => {
                    if let Some(job) = self.jobs.get_mut(key) {
                        job.failure = Some(failure);
                    }
                }
            }
        }
    }

    /// Takes the completions of the drive.
    fn collect(&mut self) {
        let mut done = std::mem::take(&mut self.done);
        loop {
            done.extend(self.drive.completions());
            if done.is_empty() {
                break;
            }
            for completion in done.drain(..) {
                self.take_completion(&completion);
            }
        }
        self.done = done;
        let losses = self.data().power_losses;
        if losses > self.power_losses {
            (self.power_losses, self.open, self.jobs) = (losses, 0, Slots::new());
            self.has_failed = true;
            self.released = self.released.max(self.drive.now());
        }
        if self.open == 0
            && let Some(since) = self.busy_since.take()
        {
            self.busy_ns += self.drive.now().saturating_sub(since).ns();
        }
        if self.drive.failure().is_some() && self.open > 0 {
            self.fail_all();
        }
        self.sweep_if_due();
    }

    fn take_completion(&mut self, completion: &DriveCompletion) {
        // Without an end the request was outstanding when power failed.
        let Some(ended) = self.data().ended_as(completion.id) else { return };
        self.open = self.open.saturating_sub(1);
        self.requests_completed += 1;
        let latency = completion.completed.saturating_sub(completion.request.arrival);
        self.latency_ns += u128::from(latency.ns());
        if let Some(bins) = &mut self.since_snapshot
            && let DriveOp::Read | DriveOp::Write = completion.request.op
            && completion.failed.is_none()
        {
            let number = usize::from(completion.request.op == DriveOp::Write);
            bins[number].add(latency.ns(), completion.request.len);
        }
        let failure = ended.failure.or(completion.failed.map(|reason| {
            let text = match reason {
                FailReason::WornOut => WORN_OUT,
                FailReason::Uncorrectable => data::UNREADABLE,
                FailReason::PowerLost => POWER,
            };
            Failure::new(Errno::Io, text)
        }));
        match ended.purpose {
            Purpose::Client(id) => {
                let result = failure.map_or(Ok(()), Err);
                let (due, data) = (completion.completed, ended.data);
                let is_promise = completion.request.op == DriveOp::Flush || completion.request.fua;
                self.ready.push_back(Ready { id, result, due, data, is_promise });
            }
            Purpose::Nobody => self.data().give_back(ended.data),
            Purpose::Job(key) => {
                if let Some(job) = self.jobs.get_mut(key) {
                    job.due = completion.completed;
                    job.failure = failure;
                }
                self.go_on(key);
            }
        }
    }

    /// The drive can complete nothing any more: fails what is outstanding.
    fn fail_all(&mut self) {
        let due = self.drive.now();
        let ids: Vec<u64> = self
            .data()
            .abandon()
            .into_iter()
            .filter_map(|purpose| match purpose {
                Purpose::Client(id) => Some(id),
                Purpose::Job(key) => self.jobs.remove(key).map(|job| job.id),
                Purpose::Nobody => None,
            })
            .collect();
        let result = Err(Failure::new(Errno::Io, FAILED));
        let ready = |id| Ready { id, result, due, data: Vec::new(), is_promise: false };
        self.ready.extend(ids.into_iter().map(ready));
        self.open = 0;
        self.busy_since = None;
    }

    /// Drops versions that nobody can read any more when they may take a quarter of the drive.
    fn sweep_if_due(&mut self) {
        let units = self.drive.geometry().raw_bytes() / self.unit_bytes;
        if self.data().written > (units / 4).max(1024) {
            self.sweep();
        }
    }

    /// Drops versions that nobody can read any more, unless that was just done.
    fn sweep_if_worth_it(&mut self) {
        let data = self.data();
        if data.written > data.contents.versions() / 16 {
            self.sweep();
        }
    }

    /// Drops the versions that neither flash nor the write cache has.
    fn sweep(&mut self) {
        if self.keeps_all {
            return;
        }
        let mut sweep = self.data().begin_sweep();
        let (geometry, array) = (self.drive.geometry(), self.drive.array());
        let units = (0..geometry.superblocks).map(SuperblockId).flat_map(|superblock| {
            (0..geometry.units_per_superblock).map(move |index| geometry.unit(superblock, index))
        });
        let stamps = units.map(|unit| (array.lpn(unit), array.stamp(unit).sequence));
        sweep.retain(stamps.filter(|&(lpn, _)| lpn.0 < geometry.logical_units));
        self.data().end_sweep(sweep);
    }

    /// Simulates up to a time, with the power cuts that are due until then.
    fn advance_to(&mut self, to: Time) {
        while let Some(cut) = self.next_cut.filter(|&cut| cut <= to) {
            self.drive.advance(cut);
            self.collect();
            self.lose_power();
            self.restore_power();
        }
        self.drive.advance(to);
        self.collect();
    }

    /// Simulates until requests have completed, or the drive has nothing more to do.
    fn advance_to_completions(&mut self, gather: u32) {
        self.collect();
        while self.open > 0 && self.ready.len() < gather as usize && !self.has_failed {
            let limit = self.next_cut.unwrap_or(Time::NEVER);
            let has_completed = self.drive.advance_to_completion(limit);
            // Further events of the same time come before the requests that follow.
            self.drive.advance(self.drive.now());
            self.collect();
            if has_completed {
                continue;
            }
            if self.next_cut.is_some() && self.drive.failure().is_none() {
                self.advance_to(limit);
            } else {
                self.fail_all();
            }
        }
    }

    /// Power fails now.
    fn lose_power(&mut self) {
        self.record(Event::Cut, &[]);
        self.drive.lose_power();
        self.is_off = true;
        self.next_cut = None;
        self.collect();
    }

    /// Power returns.
    fn restore_power(&mut self) {
        self.record(Event::Restore, &[]);
        self.drive.restore_power();
        self.power_is_back();
    }

    /// The drive has recovered.
    fn power_is_back(&mut self) {
        self.is_off = false;
        self.next_cut = self.cut_every.map(|every| self.drive.now().saturating_add(every));
    }

    /// The state of the drive and its results so far.
    fn stat(&mut self) -> Value {
        let busy_ns =
            self.busy_ns + self.busy_since.map_or(0, |since| self.drive.now().saturating_sub(since).ns());
        let facts = RunFacts { complete: true, ..RunFacts::default() };
        let mut summary = serde_json::to_value(Summary::of(&*self.drive, &facts)).unwrap_or_default();
        let (completed, latency_ns) = (self.requests_completed, self.latency_ns);
        let per_busy = |value: f64| if busy_ns > 0 { value / busy_ns as f64 } else { 0.0 };
        let data = self.data();
        let contents = json!({
            "units": data.contents.versions(),
            "memory_bytes": data.contents.memory_bytes(),
            "file_bytes": data.contents.file_bytes(),
        });
        let mut stat = json!({
            "power": if self.is_off { "off" } else { "on" },
            "failure": self.drive.failure().map(ToString::to_string),
            "speed": match self.speed {
                Speed::Max { .. } => json!("max"),
                Speed::Factor(factor) => json!(factor),
            },
            "simulated_s": self.drive.now().seconds(),
            "busy_s": busy_ns as f64 * 1e-9,
            "outstanding": self.open,
            "completed": completed,
            "iops": per_busy(completed as f64 * 1e9),
            "depth": per_busy(latency_ns as f64),
            "host": summary["host"],
            "latency_us": summary["latency_us"],
            "waf": summary["waf"],
            "power_losses": self.power_losses,
            "contents": contents,
            "recording": self.recorder.as_ref().map(|recorder| json!({ "bytes": recorder.bytes() })),
            "checkpoints": self.checkpoints(),
        });
        if summary["placement"].is_object() {
            stat["placement"] = summary["placement"].take();
            // Absent while no request has had a placement above 0.
            stat["by_placement"] = summary["by_tag"]["placements"].take();
        }
        stat
    }

    /// What the last power loss has cost.
    fn last_loss(&self) -> Value {
        let stats = self.drive.stats();
        let Some(loss) = stats.power.losses.last() else { return Value::Null };
        serde_json::to_value(loss.record(self.unit_bytes)).unwrap_or_default()
    }
}

impl Backend for Simulated {
    fn features(&self) -> Features {
        let geometry = self.drive.geometry();
        let preferred = geometry.unit_bytes.next_power_of_two().clamp(512, 65_536);
        Features { size: geometry.logical_bytes(), preferred, trim: true, fast_zero: true }
    }

    fn pace(&self) -> Pace {
        match self.speed {
            Speed::Max { .. } => Pace::Clients,
            Speed::Factor(_) => Pace::Clock,
        }
    }

    fn submit(&mut self, id: u64, now: Time, request: &Request, payload: &[u8]) -> Result<(), Failure> {
        self.submitted = now;
        if let Some(rounds) = &mut self.rounds {
            let (units, simulated) =
                (u64::from(request.len).div_ceil(self.unit_bytes).max(1), self.drive.now());
            rounds.on_request(now, units, simulated, self.drive.probe_mut());
        }
        self.measured(|drive| drive.take_request(id, now, request, payload))
    }

    fn advance(&mut self, now: Time) {
        self.looked = now;
        // A server that polls asks more often than there is work.
        let is_idle = self.pace() == Pace::Clock && self.next_event_of_drive().is_none_or(|at| at > now);
        if is_idle {
            self.come_along(now);
        } else {
            self.measured(|drive| drive.come_along(now));
        }
        self.save_if_due(now);
    }

    fn settle(&mut self) {
        if !self.is_off {
            self.collect();
        }
    }

    fn completed(&mut self) -> Option<Completion> {
        let Ready { id, mut result, due, data, is_promise } =
            self.ready.pop_front_if(|ready| ready.due <= self.released)?;
        if !self.is_recorded(is_promise) {
            result = Err(Failure::new(Errno::Io, UNRECORDED));
        }
        let taken = std::mem::replace(&mut self.taken, data);
        self.data().give_back(taken);
        let due = (self.pace() == Pace::Clock).then(|| self.machine(due));
        Some(Completion { id, result, due })
    }

    fn take(&mut self, _id: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.taken);
    }

    fn next_event(&mut self) -> Option<Time> {
        [self.next_event_of_drive(), self.next_save()].into_iter().flatten().min()
    }

    fn extents(&mut self, offset: u64, len: u64, max: usize, out: &mut Vec<Extent>) {
        let first = offset / self.unit_bytes;
        let end = (offset + len).div_ceil(self.unit_bytes).min(first + EXTENT_UNITS_MAX);
        let (mut at, began) = (offset, out.len());
        for unit in first..end {
            let lpn = Lpn(unit as u32);
            let hole = match self.drive.version(lpn) {
                Version::Unmapped => !self.data().is_unreadable(lpn, 0),
                Version::Lost | Version::Written(_) => false,
            };
            let until = ((unit + 1) * self.unit_bytes).min(offset + len);
            let number = out.len() - began;
            match out[began..].last_mut() {
                Some(last) if last.hole == hole => last.len += until - at,
                _ if number == max => break,
                _ => out.push(Extent { len: until - at, hole, zero: hole }),
            }
            at = until;
        }
    }

    fn is_off(&self) -> bool {
        self.is_off
    }

    fn take_power_loss(&mut self) -> bool {
        std::mem::take(&mut self.has_failed)
    }

    fn has_ended(&self) -> bool {
        self.recorder.as_ref().is_some_and(|recorder| recorder.failure().is_some())
    }

    fn acknowledged(&mut self, now: Time, line: &[u8]) {
        self.come_to(now);
        self.record(Event::Acknowledged, line);
    }

    fn snapshot(&mut self, snapshot: &mut Snapshot) {
        self.fill(snapshot);
    }

    fn order(&mut self, now: Time, order: Order) -> Result<Value, String> {
        let answer = match order {
            Order::Save => {
                self.come_to(now);
                self.save(false)
            }
            _ => {
                // This measures itself.
                self.come_to(now);
                match order {
                    // A start asks nothing again.
                    Order::Stat | Order::Smart | Order::Fdp | Order::State => self.carry_out(now, order),
                    _ => self.measured(|drive| drive.carry_out(now, order)),
                }
            }
        };
        // What the user is told is in the recording.
        self.is_recorded(false);
        answer
    }
}

impl Simulated {
    /// When the drive has work, or a reply is due.
    fn next_event_of_drive(&mut self) -> Option<Time> {
        if self.is_off {
            return None;
        }
        if self.pace() == Pace::Clients {
            return (self.open > 0 || !self.ready.is_empty()).then_some(Time::START);
        }
        let ready = self.ready.front().map(|ready| ready.due);
        let next = [ready, self.drive.next_event(), self.next_cut].into_iter().flatten().min()?;
        Some(self.machine(next))
    }

    /// Does work that a start without a checkpoint would do again.
    fn measured<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        if self.kept.is_none() {
            return work(self);
        }
        let begin = processor_time();
        let done = work(self);
        self.replay += processor_time().saturating_sub(begin);
        done
    }

    /// Takes a request of a client ([`Backend::submit`]).
    fn take_request(&mut self, id: u64, now: Time, request: &Request, payload: &[u8]) -> Result<(), Failure> {
        if !self.is_off && self.pace() == Pace::Clock {
            self.advance_to(self.simulated(now));
        }
        if self.has_failed {
            // The connection ends.
            return Err(Failure::new(Errno::Io, POWER));
        }
        let (offset, len) = (request.offset, u64::from(request.len));
        let at = self.simulated(now);
        let kind = match request.op {
            Op::Read | Op::Write | Op::Flush => {
                let of_drive = match request.op {
                    Op::Read => DriveRequest::read(offset, len),
                    Op::Write => DriveRequest::write(offset, len)
                        .with_fua(request.fua)
                        .with_tag(Tag { queue: 0, placement: request.placement }),
                    _ => DriveRequest::flush(),
                };
                return self.give(Purpose::Client(id), of_drive, payload, at);
            }
            Op::Trim if !request.fua => {
                return self.give(Purpose::Client(id), DriveRequest::trim(offset, len), &[], at);
            }
            Op::Trim => Kind::Trim,
            Op::WriteZeroes { no_hole: true, fast: true } => {
                return Err(Failure::new(Errno::NotSupported, "zeros without a hole have to be written"));
            }
            Op::WriteZeroes { no_hole: true, .. } => Kind::ZerosWithoutHoles,
            Op::WriteZeroes { .. } => Kind::ZerosWithHoles,
        };
        let key = self.jobs.insert(Job::new(id, kind, request, at));
        self.go_on(key);
        Ok(())
    }

    /// Simulates what is due at the time `now` of the machine.
    fn come_along(&mut self, now: Time) {
        if self.is_off {
            return;
        }
        match self.speed {
            Speed::Factor(_) => {
                let to = self.simulated(now);
                self.advance_to(to);
                self.released = self.released.max(to);
            }
            Speed::Max { gather } => {
                self.advance_to_completions(gather);
            }
        }
    }

    /// Simulates up to the present time. Events of this time come before what follows, as in a replay.
    fn come_to(&mut self, now: Time) {
        if !self.is_off {
            if self.pace() == Pace::Clock {
                self.advance(now);
            }
            self.drive.advance(self.drive.now());
            self.collect();
        }
    }

    /// Carries out an order.
    fn carry_out(&mut self, now: Time, order: Order) -> Result<Value, String> {
        match order {
            Order::Stat => Ok(self.stat()),
            Order::Smart => Ok(smart(&self.drive)),
            Order::State => Ok(self.state()),
            Order::Cut if self.is_off => Err("power is off already".to_owned()),
            Order::Cut => {
                self.lose_power();
                Ok(json!({ "at_s": self.drive.now().seconds(), "power": "off" }))
            }
            Order::Restore if !self.is_off => Err("power is on".to_owned()),
            Order::Restore => {
                self.origin = (now, self.drive.now());
                self.restore_power();
                Ok(self.last_loss())
            }
            Order::CutInRecovery(_) if !self.is_off => {
                Err("power is on: a cut in recovery follows a cut".to_owned())
            }
            Order::CutInRecovery(after) => {
                self.origin = (now, self.drive.now());
                self.record(Event::CutInRecovery(after), &[]);
                if self.drive.cut_recovery(RecoveryCut::After(after)) {
                    return Ok(json!({ "at_s": self.drive.now().seconds(), "power": "off" }));
                }
                self.power_is_back();
                Ok(json!({ "power": "on", "loss": self.last_loss() }))
            }
            Order::Detect | Order::UpdateHandle(_) if self.is_off => Err(POWER.to_owned()),
            Order::Detect => {
                let Some(before) = self.drive.capacitor() else {
                    return Err("the drive has no capacitor, so it has no budget to detect".to_owned());
                };
                self.record(Event::Detect, &[]);
                self.drive.detect_budget();
                self.collect();
                let stage = self.drive.power_stage();
                if before.stage != "charged" || stage == "charged" && self.drive.dirty_units()[0] == 0 {
                    return Err(format!("no detection begins now: the capacitor is {}", before.stage));
                }
                Ok(json!({ "stage": stage }))
            }
            Order::Fdp => fdp(&self.drive).ok_or_else(|| NO_HANDLES.to_owned()),
            Order::UpdateHandle(_) if !self.drive.spec().placement.is_on() => Err(NO_HANDLES.to_owned()),
            Order::UpdateHandle(identifier) => {
                if self.drive.spec().placement.find(identifier).is_none() {
                    return Err(format!("the drive has no placement {identifier}"));
                }
                self.record(Event::UpdateHandle(identifier), &[]);
                self.drive.update_handle(identifier);
                self.collect();
                Ok(json!({ "placement": identifier }))
            }
            Order::Save => self.save(false),
            Order::Mark(text) => {
                self.record(Event::Mark, text.as_bytes());
                Ok(json!({ "at_s": self.drive.now().seconds() }))
            }
        }
    }
}

/// The number of units in which a request has bytes.
fn units_of(request: &DriveRequest, unit_bytes: u64) -> u64 {
    (request.offset + request.len).div_ceil(unit_bytes) - request.offset / unit_bytes
}
