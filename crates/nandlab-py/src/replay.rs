//! A session of a served drive, played again from its recording.

use crate::errors::RunError;
use crate::kept_drives;
use crate::run::{Outcome, Preconditioning};
use crate::simulation::{Failure, Simulation, unread_text};
use crate::spec::Spec;
use nandlab::report::RunFacts;
use nandlab_base::recording::{Event, Header, Recording};
use nandlab_live::player::Player;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Records played between two readings of the wall clock.
const CHUNK: u64 = 256;

const OVER: &str = "the replay is over: it has failed, or its result has been taken";

enum State {
    Preconditioning(Preconditioning),
    Playing {
        simulation: Box<Simulation>,
        is_done: bool,
    },
    /// The session has been played; the next step verifies the drive.
    Verifying(Box<Simulation>),
    Over,
}

/// The file and what was played of it. A Python object must be shareable between threads; no thread waits for the mutex.
struct Played {
    recording: Recording<BufReader<File>>,
    player: Player,
    bytes: u64,
    last: Option<Event>,
}

#[pyclass(module = "nandlab._core")]
pub(crate) struct Replay {
    state: State,
    played: Mutex<Played>,
    path: PathBuf,
    spec: Spec,
    verify: bool,
}

/// Opens a recording.
pub(crate) fn open(path: &Path) -> Result<(Recording<BufReader<File>>, u64), String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(|error| failed(&error))?;
    let bytes = file.metadata().map_err(|error| failed(&error))?.len();
    let recording = Recording::open(BufReader::with_capacity(1 << 20, file));
    let recording = recording.map_err(|error| failed(&unread_text(&error)))?;
    Ok((recording, bytes))
}

/// Why a recording is not played by this version of nandlab, if it is of another one.
pub(crate) fn other_version(header: &Header) -> Option<String> {
    let ours = env!("CARGO_PKG_VERSION");
    (header.nandlab != ours).then(|| {
        format!(
            "the session was recorded by nandlab {}, and this is {ours}, whose drive may behave otherwise: its results \
             would not be those of the session\n  remedy: play it with that version, or play its requests as a trace \
             (workload.trace) under a spec",
            header.nandlab
        )
    })
}

/// Refuses a recording that this version does not play from the beginning of its drive.
pub(crate) fn check_whole(header: &Header, path: &Path) -> PyResult<()> {
    let continues = || {
        header.continues.then(|| {
            "the recording goes on from a checkpoint of its drive, and its results need the session before it\n  remedy: \
             record sessions to be played with --record, or play its requests as a trace (workload.trace)"
                .to_owned()
        })
    };
    match other_version(header).or_else(continues) {
        Some(text) => Err(RunError::new_err(format!("{}: {text}", path.display()))),
        None => Ok(()),
    }
}

/// The resolved spec of a recording as TOML, the folder at which its relative paths start, and its version.
#[pyfunction]
pub(crate) fn recording_header(path: PathBuf) -> PyResult<(String, String, String)> {
    let (recording, _) = open(&path).map_err(RunError::new_err)?;
    let Header { nandlab, spec, folder, .. } = recording.header().clone();
    Ok((spec, folder, nandlab))
}

#[pymethods]
impl Replay {
    #[new]
    #[pyo3(signature = (path, spec, verify=false))]
    fn new(py: Python<'_>, path: PathBuf, spec: &Spec, verify: bool) -> PyResult<Self> {
        let (recording, bytes) = open(&path).map_err(RunError::new_err)?;
        check_whole(recording.header(), &path)?;
        let simulation = Simulation::of_recording(&spec.loaded, verify);
        let simulation = Box::new(simulation.map_err(|error| RunError::new_err(error.to_string()))?);
        let kept = kept_drives::kept(py).and_then(|kept| kept.of(&spec.loaded));
        Ok(Self {
            state: State::Preconditioning(Preconditioning::start(simulation, None, None, kept)),
            played: Mutex::new(Played { recording, player: Player::default(), bytes, last: None }),
            path,
            spec: spec.clone(),
            verify,
        })
    }

    /// Plays for `ms` of wall time.
    fn step<'py>(&mut self, py: Python<'py>, ms: u64) -> PyResult<Bound<'py, PyDict>> {
        py.detach(|| self.advance(Duration::from_millis(ms)))?;
        let share = self
            .played
            .get_mut()
            .map_or(1.0, |played| played.recording.whole() as f64 / played.bytes.max(1) as f64);
        let out = PyDict::new(py);
        let (phase, progress, simulation) = match &self.state {
            State::Preconditioning(p) => ("precondition", p.share(), None),
            State::Playing { simulation, is_done: false } => ("run", share, Some(simulation)),
            State::Playing { simulation, is_done: true } => ("done", 1.0, Some(simulation)),
            State::Verifying(simulation) => ("verify", 1.0, Some(simulation)),
            State::Over => return Err(RunError::new_err(OVER)),
        };
        let of = |value: fn(&Simulation) -> u64| simulation.map_or(0, |simulation| value(simulation));
        out.set_item("phase", phase)?;
        out.set_item("done", phase == "done")?;
        out.set_item("progress", progress)?;
        out.set_item("requests", of(Simulation::requests_ended))?;
        out.set_item("sim_time_s", of(Simulation::now) as f64 * 1e-9)?;
        out.set_item("page_operations", of(Simulation::page_operations))?;
        out.set_item("note", simulation.and_then(|simulation| simulation.note()))?;
        Ok(out)
    }

    /// Bytes of a torn tail of the recording, which were dropped; known when the session has been played.
    fn dropped_bytes(&mut self) -> u64 {
        self.played.get_mut().map_or(0, |played| played.recording.torn())
    }

    fn result(&mut self, py: Python<'_>) -> PyResult<Outcome> {
        let played = self.played.get_mut().map_err(|_| RunError::new_err(OVER))?;
        let is_stopped = played.last == Some(Event::Stop);
        let (mut simulation, is_done) = match std::mem::replace(&mut self.state, State::Over) {
            State::Playing { simulation, is_done } => (simulation, is_done),
            State::Verifying(simulation) => (simulation, false),
            State::Preconditioning(_) => {
                return Err(RunError::new_err("the replay was stopped before its first request"));
            }
            State::Over => return Err(RunError::new_err(OVER)),
        };
        let spec_hash = self.spec.loaded.hash();
        let facts =
            RunFacts { complete: is_done && is_stopped, spec_hash: spec_hash.clone(), ..RunFacts::default() };
        let outputs = py.detach(|| simulation.finish(&facts));
        Ok(Outcome { outputs, spec_toml: self.spec.loaded.to_toml(), spec_hash })
    }
}

impl Replay {
    #[allow(
        clippy::disallowed_methods,
        reason = "limits the wall time of a step; nothing simulated depends on the wall clock"
    )]
    fn advance(&mut self, budget: Duration) -> Result<(), Failure> {
        let start = Instant::now();
        let is_over = || start.elapsed() >= budget;
        self.state = match std::mem::replace(&mut self.state, State::Over) {
            State::Preconditioning(mut preconditioning) => match preconditioning.wait(is_over)? {
                Some(simulation) => State::Playing { simulation, is_done: false },
                None => State::Preconditioning(preconditioning),
            },
            State::Playing { mut simulation, is_done: false } => {
                let played = self.played.get_mut().map_err(|_| Failure::Bug(OVER.to_owned()))?;
                let mut is_done = false;
                while !is_done && !is_over() {
                    let Played { recording, player, last, .. } = played;
                    let in_file = |failure| match failure {
                        Failure::Run(text) => Failure::Run(format!("{}: {text}", self.path.display())),
                        other => other,
                    };
                    let (event, ended) =
                        simulation.play_recording(player, recording, CHUNK).map_err(in_file)?;
                    *last = event.or(*last);
                    is_done = ended;
                }
                if is_done && self.verify {
                    State::Verifying(simulation)
                } else {
                    State::Playing { simulation, is_done }
                }
            }
            State::Verifying(simulation) => {
                simulation.verify()?;
                State::Playing { simulation, is_done: true }
            }
            other => other,
        };
        Ok(())
    }
}
