//! The simulation behind a run.

use crate::any_drive::{AnyDrive, on};
use crate::errors::{failure_text, unsaved_text};
use crate::interrupt::{Interruptible, Stop};
use crate::policy::{self, Chosen};
use crate::shared::KeptDrives;
use crate::tables;
use nandlab::base::note::Note;
use nandlab::base::units::{SECOND, Span};
use nandlab::drive::kept::KeptDrive;
use nandlab::drive::spec::{Loaded, PreconditionSpec};
use nandlab::drive::{BuildError, Completion, Drive, Lived, Refused, SaveError, SnapshotError};
use nandlab::host::Request;
use nandlab::probe::Probe;
use nandlab::report::{
    Column, PreconditionSummary, RunFacts, Stretch, Summary, Table, Values, VerifiedSummary, fdp, power,
    smart,
};
use nandlab::runner::{Runner, Stopped, map_reads};
use nandlab_base::recording::{Event, Recording, RecordingError};
use nandlab_live::player::Player;
use nandlab_live::player::Sequences;
use nandlab_trace::TraceError;
use pyo3::PyErr;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A trace or generator as a source of the runner.
///
/// A Python object must be shareable between threads. A source that reads on a thread of its own is not shareable, so a
/// mutex contains the source. No thread ever waits for the mutex.
pub(crate) struct Requests(pub(crate) Mutex<Box<dyn nandlab_trace::Source>>);

impl Requests {
    pub(crate) fn skipped(&self) -> u64 {
        self.0.lock().map_or(0, |source| source.skipped())
    }

    /// The notes on the reading of the source.
    pub(crate) fn notes(&self) -> Vec<Note> {
        self.0.lock().map_or(Vec::new(), |source| source.notes())
    }

    pub(crate) fn progress(&self) -> f64 {
        self.0.lock().map_or(0.0, |source| source.progress())
    }
}

impl nandlab::runner::Source for Requests {
    type Error = TraceError;

    fn next_request(&mut self) -> Option<Result<Request, TraceError>> {
        self.0.get_mut().ok()?.next_request()
    }

    fn next_of(&mut self, client: usize) -> Option<Result<Request, TraceError>> {
        self.0.get_mut().ok()?.next_of(client)
    }
}

/// Why a run cannot continue.
pub(crate) enum Failure {
    Trace(TraceError),
    Run(String),
    /// The exception that a policy in Python has raised.
    Raised(PyErr),
    /// A fault in nandlab.
    Bug(String),
}

/// Where the run looks for a preconditioned drive, and keeps its own.
pub(crate) struct Shared {
    pub(crate) drives: Arc<KeptDrives>,
    /// [`Loaded::precondition_key`] of the spec.
    pub(crate) key: String,
}

/// The results of a run.
pub(crate) struct Outputs {
    pub(crate) summary: String,
    pub(crate) smart: String,
    pub(crate) power: Option<String>,
    pub(crate) fdp: Option<String>,
    pub(crate) sim: String,
    pub(crate) tables: Vec<Table>,
    pub(crate) timeline: Option<String>,
    pub(crate) explained: Option<String>,
}

/// A drive that can be preconditioned, played and queried.
pub(crate) struct Simulation {
    drive: AnyDrive,
    /// The policies in Python that the spec names.
    policies: Vec<Chosen>,
    /// Hash of the resolved spec.
    hash: String,
    pts: Option<nandlab::drive::PtsOutcome>,
    /// What the user should know of the kept drive, if anything.
    note: Option<String>,
    requests: Option<[Vec<u64>; 7]>,
    has_clients: bool,
    /// Requests of the warm-up that have not ended.
    warm_up_left: u64,
    stretch: Option<Stretch>,
    /// The age and the wear of the drive at the end of the stretch, before the drive came to rest.
    lived: Option<Lived>,
}

/// Longest simulated time in which a drive may come to rest.
const REST_MAX: Span = Span::from_ns(60 * SECOND.ns());

fn file_error(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::Run(format!("{}: cannot {what}: {error}", path.display()))
}

/// Saves a drive in a file; the caller renames the file after success.
pub(crate) fn save_drive<P: Probe>(drive: &Drive<P>, path: &Path, stop: &Stop) -> Result<(), SaveError> {
    // This check comes first, so that no file is created for a drive that cannot be saved.
    drive.may_save()?;
    let file = File::create(path)?;
    drive.save(Interruptible(&file, stop))?;
    Ok(file.sync_all()?)
}

fn run_failure(stopped: Stopped<TraceError>, hash: &str, policies: &[Chosen]) -> Failure {
    match stopped {
        Stopped::Source(error) => Failure::Trace(error),
        Stopped::Failed(failure) => drive_failure(&failure, hash, policies),
        Stopped::TooLate { number, end } => Failure::Run(format!(
            "request {number} of the workload arrives too late: {}\n  remedy: earlier arrivals (workload.arrival, \
             workload.time_scale), fewer requests (workload.repeat, workload.requests_max), or a lower \
             reliability.clock_scale",
            nandlab::drive::Failure::TimeIsOver { end }
        )),
        Stopped::Refused { number, request, refused } => Failure::Run(format!(
            "request {number} of the workload ({} of {} bytes at byte {}): {refused}\n  remedy: {}",
            request.op.name(),
            request.len,
            request.offset,
            match refused {
                Refused::Placement { .. } => {
                    "set placement.handles in the spec, or write skip in place of placement in the columns of the trace"
                }
                _ => {
                    "a larger drive, or workload.beyond = \"wrap\" to take addresses modulo the capacity (the summary \
                     counts them)"
                }
            },
        )),
    }
}

/// The failure of a drive with these policies in Python.
pub(crate) fn drive_failure(failure: &nandlab::drive::Failure, hash: &str, policies: &[Chosen]) -> Failure {
    match policy::raised() {
        Some(error) => Failure::Raised(error),
        None => Failure::Run(policy::placed(failure_text(failure, hash), failure, policies)),
    }
}

impl Simulation {
    /// The simulation of a spec; its results leave out the first `warm_up` requests. With `verify`, the oracle checks
    /// every read, and the audit checks the drive at the end.
    pub(crate) fn new(
        loaded: &Loaded,
        policies: Vec<Chosen>,
        verify: bool,
        warm_up: u64,
    ) -> Result<Self, BuildError> {
        let drive =
            AnyDrive::new(&loaded.spec, &policies, verify, loaded.spec.output.timeline_operations, |taps| {
                taps
            })?;
        Ok(Self::of(loaded, drive, policies, warm_up))
    }

    /// The simulation of a drive that was served, on which its recording is played.
    pub(crate) fn of_recording(loaded: &Loaded, verify: bool) -> Result<Self, BuildError> {
        let operations = loaded.spec.output.timeline_operations;
        let drive = AnyDrive::new(&loaded.spec, &[], verify, operations, |taps| taps.with(Sequences))?;
        let mut simulation = Self::of(loaded, drive, Vec::new(), 0);
        simulation.has_clients = false;
        Ok(simulation)
    }

    fn of(loaded: &Loaded, drive: AnyDrive, policies: Vec<Chosen>, warm_up: u64) -> Self {
        let spec = &loaded.spec;
        Self {
            drive,
            policies,
            hash: loaded.hash(),
            pts: None,
            note: None,
            requests: spec.output.requests.then(Default::default),
            has_clients: spec.workload.as_ref().is_some_and(|workload| !workload.clients().is_empty()),
            warm_up_left: warm_up,
            stretch: None,
            lived: None,
        }
    }

    /// Whether the drive has policies in Python.
    pub(crate) fn has_policies(&self) -> bool {
        !self.policies.is_empty()
    }

    /// What the user should know of the kept drive, if anything.
    pub(crate) fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Preconditions the drive, or takes over one from memory (`shared`) or from a file (`kept`); returns `Ok(false)`
    /// if `watch` has stopped the preconditioning.
    pub(crate) fn precondition(
        &mut self,
        first_pass: Option<Runner<Requests>>,
        shared: Option<Shared>,
        kept: Option<&KeptDrive>,
        watch: &mut dyn FnMut(f64) -> bool,
    ) -> Result<bool, Failure> {
        let in_memory = shared.as_ref().map_or(Vec::new(), |shared| shared.drives.of(&shared.key));
        let drive = &mut self.drive;
        if let Some(like) =
            in_memory.into_iter().find(|like| on!(drive, drive => drive.precondition_like(like)))
        {
            self.pts = like.outcome().cloned();
            on!(&mut self.drive, drive => drive.warm_up(self.warm_up_left));
            return Ok(true);
        }
        if let PreconditionSpec::Load(path) = on!(&self.drive, drive => drive.spec().precondition.clone()) {
            let file = File::open(&path).map_err(|e| file_error("read the saved drive", &path, &e))?;
            on!(&mut self.drive, drive => drive.load(file)).map_err(|error| match error {
                SnapshotError::Io(e) => file_error("read the saved drive", &path, &e),
                other => Failure::Run(format!(
                    "{}: {other}\n  remedy: save the drive anew from this spec with --save-drive, or correct \
                     precondition.load",
                    path.display()
                )),
            })?;
        } else {
            let done = on!(&mut self.drive, drive => drive.precondition_or_load(kept, watch));
            let done = done.map_err(Failure::Run)?;
            (self.pts, self.note) = (done.outcome, done.note);
            if let Some(failure) = on!(&self.drive, drive => drive.failure()) {
                return Err(drive_failure(failure, &self.hash, &self.policies));
            }
            if !done.is_done {
                return Ok(false);
            }
        }
        on!(&mut self.drive, drive => drive.warm_up(self.warm_up_left));
        self.drive.expect_preconditioned();
        if let Some(mut workload) = first_pass {
            let mapped = on!(&mut self.drive, drive => map_reads(&mut workload, drive, watch));
            if mapped.map_err(|error| run_failure(error, &self.hash, &self.policies))?.is_none() {
                return Ok(false);
            }
        }
        if let Some(Shared { drives, .. }) = shared {
            drives.put(on!(&self.drive, drive => drive.preconditioned(self.pts.clone())));
        }
        Ok(true)
    }

    pub(crate) fn save(&self, path: &Path) -> Result<(), Failure> {
        on!(&self.drive, drive => save_drive(drive, path, &Stop::default())).map_err(|error| match error {
            SaveError::Io(e) => file_error("save the drive", path, &e),
            other => {
                Failure::Run(unsaved_text(&other).expect("errors of the operating system are handled above"))
            }
        })
    }

    /// Plays about `requests` more requests; returns whether the run is done.
    pub(crate) fn play(&mut self, runner: &mut Runner<Requests>, requests: u64) -> Result<bool, Failure> {
        let (rows, warm_up_left) = (&mut self.requests, &mut self.warm_up_left);
        let has_clients = self.has_clients;
        let on_completed = |done: &Completion| {
            if *warm_up_left > 0 {
                *warm_up_left -= 1;
                return;
            }
            keep_row(rows, has_clients, done);
        };
        match on!(&mut self.drive, drive => runner.run(drive, requests, on_completed)) {
            Ok(progress) => Ok(progress.is_done),
            Err(error) => Err(run_failure(error, &self.hash, &self.policies)),
        }
    }

    /// Plays at most `records` more records; returns the last event that was played, and whether it was the last of the
    /// recording.
    pub(crate) fn play_recording<R: Read>(
        &mut self,
        player: &mut Player,
        recording: &mut Recording<R>,
        records: u64,
    ) -> Result<(Option<Event>, bool), Failure> {
        let mut last = None;
        for _ in 0..records {
            let number = recording.records();
            let Some(entry) = recording.next().map_err(|error| Failure::Run(unread_text(&error)))? else {
                return Ok((last, true));
            };
            on!(&mut self.drive, drive => {
                let given = player.give(drive, &entry);
                if let Some(failure) = drive.failure() {
                    return Err(drive_failure(failure, &self.hash, &self.policies));
                }
                given.map_err(|why| Failure::Run(format!("record {number} of the recording: {why}")))?;
                for done in drive.completions() {
                    keep_row(&mut self.requests, false, &done);
                }
            });
            last = Some(entry.event);
        }
        Ok((last, false))
    }

    /// Requests that have ended.
    pub(crate) fn requests_ended(&self) -> u64 {
        on!(&self.drive, drive => drive.requests_ended())
    }

    /// Begins a stretch of the drive's life.
    pub(crate) fn begin_stretch(&mut self) {
        let stretch = on!(&self.drive, drive => Stretch::begin(drive));
        (self.stretch, self.lived) = (Some(stretch), None);
    }

    /// The statistics of the stretch so far, by column.
    pub(crate) fn stretch(&self) -> Vec<(&'static str, f64)> {
        let row = |stretch: &Stretch| on!(&self.drive, drive => stretch.row(drive));
        self.stretch.as_ref().map_or(Vec::new(), row)
    }

    /// Records the end of the stretch for `fast_forward`, and lets the drive come to rest.
    pub(crate) fn rest(&mut self, runner: &mut Runner<Requests>) -> Result<(), Failure> {
        self.lived = Some(on!(&self.drive, drive => drive.lived()));
        if on!(&mut self.drive, drive => runner.rest(drive, REST_MAX, |_| ())) {
            return Ok(());
        }
        if let Some(failure) = on!(&self.drive, drive => drive.failure()) {
            return Err(drive_failure(failure, &self.hash, &self.policies));
        }
        Err(Failure::Run(
            "the drive does not come to rest within 60 s of simulated time: its blocks come due for refresh faster than it can \
             refresh them, or requests have arrived faster than it can serve them\n  remedy: a lower \
             reliability.clock_scale, a longer refresh.interval, or a lower rate of requests"
                .to_owned(),
        ))
    }

    /// Fast-forwards the drive, which must be at rest, by `times` the wear and the time of the stretch, or by a lower
    /// factor if superblocks would get too close to their endurance. Returns the factor.
    pub(crate) fn fast_forward(&mut self, times: f64) -> Result<f64, Failure> {
        match (self.stretch.take(), self.lived.take()) {
            (Some(stretch), Some(until)) if on!(&self.drive, drive => drive.is_at_rest()) => {
                Ok(on!(&mut self.drive, drive => drive.fast_forward(stretch.lived(), &until, times)))
            }
            _ => Err(Failure::Run(
                "the drive cannot be fast-forwarded: no stretch has begun, or the drive is not at rest"
                    .to_owned(),
            )),
        }
    }

    /// Whether requests of the warm-up are still to end, so that there are no results yet.
    pub(crate) fn is_warming_up(&self) -> bool {
        on!(&self.drive, drive => drive.is_warming_up())
    }

    pub(crate) fn verify(&self) -> Result<(), Failure> {
        let Some(oracle) = self.drive.oracle() else { return Ok(()) };
        let bug = |what: &str, text: String| Failure::Bug(format!("{what}: {text}"));
        oracle.verdict().map_err(|text| bug("the oracle found a wrong read", text))?;
        on!(&self.drive, drive => drive.audit()).map_err(|text| bug("the audit failed", text))
    }

    pub(crate) fn now(&self) -> u64 {
        on!(&self.drive, drive => drive.now().ns())
    }

    pub(crate) fn page_operations(&self) -> u64 {
        on!(&self.drive, drive => drive.page_operations())
    }

    pub(crate) fn finish(&mut self, facts: &RunFacts) -> Outputs {
        let verified =
            self.drive.oracle().map(|oracle| VerifiedSummary { page_reads_checked: oracle.checked });
        let pts = self.pts.as_ref();
        let mut outputs = on!(&mut self.drive, drive => outputs(drive, facts, pts, verified));
        if let Some(columns) = &self.requests {
            let names = ["arrival_ns", "completed_ns", "op", "offset", "length", "failed", "client"];
            let names = &names[..if self.has_clients { 7 } else { 6 }];
            let column =
                |(name, values): (&&'static str, &Vec<u64>)| Column::new(*name, Values::U64(values.clone()));
            let columns = names.iter().zip(columns).map(column).collect();
            outputs.tables.push(Table { name: "requests", columns });
        }
        outputs.explained = self.drive.explainer().map(|explainer| explainer.to_json().to_string());
        outputs.timeline =
            self.drive.timeline().map(|timeline| timeline.to_json(on!(&self.drive, drive => drive.now())));
        outputs
    }
}

/// Adds a row of the table of the requests, by column, if there is one.
fn keep_row(rows: &mut Option<[Vec<u64>; 7]>, has_clients: bool, done: &Completion) {
    if let Some([arrival, completed, op, offset, length, failed, client]) = rows {
        arrival.push(done.request.arrival.ns());
        completed.push(done.completed.ns());
        op.push(done.request.op as u64);
        offset.push(done.request.offset);
        length.push(done.request.len);
        failed.push(done.failed.map_or(0, |reason| reason as u64 + 1));
        if has_clients {
            client.push(done.request.tag.queue.into());
        }
    }
}

/// The results of a drive at the end of a run or of a session, without the table of the requests and the timeline.
pub(crate) fn outputs<P: Probe>(
    drive: &mut Drive<P>,
    facts: &RunFacts,
    pts: Option<&nandlab::drive::PtsOutcome>,
    verified: Option<VerifiedSummary>,
) -> Outputs {
    drive.finish_stats();
    let summary = Summary {
        precondition: pts.map(|pts| PreconditionSummary {
            waf_by_round: pts.waf.clone(),
            // `null` if there was no round.
            steady: (!pts.waf.is_empty()).then_some(pts.is_steady),
        }),
        verified,
        ..Summary::of(drive, facts)
    };
    // The speed of the simulation counts the warm-up too.
    let sim = serde_json::json!({
        "page_operations": drive.page_operations(),
        "requests": drive.requests_ended(),
    });
    Outputs {
        summary: pretty(&summary),
        smart: pretty(&smart(drive)),
        power: power(drive).map(|power| pretty(&power)),
        fdp: fdp(drive).map(|logs| pretty(&logs)),
        sim: pretty(&sim),
        tables: tables::of(drive),
        timeline: None,
        explained: None,
    }
}

/// Why a recording cannot be read, with the remedy.
pub(crate) fn unread_text(error: &RecordingError) -> String {
    format!("{error}\n  remedy: {}", error.remedy())
}

/// Formats a result as the JSON of its file.
fn pretty(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).expect("a result is serializable") + "\n"
}
