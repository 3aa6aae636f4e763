//! A run: preconditions the drive, plays the workload, returns the results.

use crate::errors::{RunError, trace_error};
use crate::kept_drives;
use crate::policy::{check_loaded, holding, slice};
use crate::shared::{SharedDrives, UNITS_MAX};
use crate::simulation::{Failure, Outputs, Requests, Shared, Simulation};
use crate::spec::Spec;
use crate::tables;
use nandlab::base::units::Time;
use nandlab::drive::kept::KeptDrive;
use nandlab::report::RunFacts;
use nandlab::runner::Runner;
use pyo3::exceptions::PyAssertionError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Trace(error) => trace_error(&error),
            Failure::Run(text) => RunError::new_err(text),
            Failure::Raised(error) => error,
            Failure::Bug(text) => PyAssertionError::new_err(text),
        }
    }
}

type Prepared = (Box<Simulation>, Result<bool, Failure>);

/// Preconditioning on a thread of its own, so that the caller can show its progress and stop it.
pub(crate) struct Preconditioning {
    thread: Option<JoinHandle<Prepared>>,
    /// Progress, 0 to 1, as the bits of an `f64`.
    share: Arc<AtomicU64>,
    is_stopped: Arc<AtomicBool>,
}

impl Preconditioning {
    /// Starts the thread. `first_pass` is a second source of the workload, for `precondition.map_reads`. `drives` and
    /// `kept`: where a preconditioned drive may be found, and is kept, in memory and in a file.
    pub(crate) fn start(
        mut simulation: Box<Simulation>,
        first_pass: Option<Runner<Requests>>,
        drives: Option<Shared>,
        kept: Option<KeptDrive>,
    ) -> Self {
        let (share, is_stopped) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (thread_share, thread_is_stopped) = (share.clone(), is_stopped.clone());
        let thread = std::thread::spawn(move || {
            let watch = |done: f64| {
                thread_share.store(done.to_bits(), Ordering::Relaxed);
                !thread_is_stopped.load(Ordering::Relaxed)
            };
            let outcome = holding(simulation.has_policies(), |pause| {
                let mut watch = |done: f64| {
                    pause();
                    watch(done)
                };
                simulation.precondition(first_pass, drives, kept.as_ref(), &mut watch)
            });
            (simulation, outcome)
        });
        Self { thread: Some(thread), share, is_stopped }
    }
}

impl Preconditioning {
    /// The share that is done, 0 to 1.
    pub(crate) fn share(&self) -> f64 {
        f64::from_bits(self.share.load(Ordering::Relaxed))
    }

    /// Waits for the end for at most as long as `is_over` says. Returns the drive when it is preconditioned.
    pub(crate) fn wait(&mut self, is_over: impl Fn() -> bool) -> Result<Option<Box<Simulation>>, Failure> {
        let thread = self.thread.as_ref().expect("the thread is taken once");
        while !thread.is_finished() {
            if is_over() {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let thread = self.thread.take().expect("the thread is taken once");
        let Ok((simulation, outcome)) = thread.join() else {
            return Err(Failure::Bug("preconditioning ended in a panic".to_owned()));
        };
        outcome?;
        Ok(Some(simulation))
    }
}

impl Drop for Preconditioning {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread may wait for the interpreter's lock, which the caller has.
            Python::attach(|py| py.detach(|| _ = thread.join()));
        }
    }
}

enum State {
    Preconditioning(Preconditioning),
    /// The drive has been preconditioned; the next step saves the drive.
    Saving(Box<Simulation>),
    Playing {
        simulation: Box<Simulation>,
        is_done: bool,
    },
    /// The workload has been played; the next step verifies the drive.
    Verifying(Box<Simulation>),
    /// The caller has taken the result, or the run has failed.
    Over,
}

#[pyclass(module = "nandlab._core")]
pub(crate) struct Run {
    state: State,
    runner: Runner<Requests>,
    spec: Spec,
    save_drive: Option<PathBuf>,
    verify: bool,
    completed: u64,
    /// Requests that the results leave out.
    warm_up: u64,
    /// Requests played between two readings of the wall clock.
    chunk: u64,
    /// Whether the drive has policies in Python.
    has_policies: bool,
}

/// Text of the error if a method is called after the end of the run.
const OVER: &str = "the run is over: it has failed, or its result has been taken";

/// Largest [`Run::chunk`]: for 512 requests the cost of reading the clock is negligible.
const CHUNK_MAX: u64 = 512;

#[pymethods]
impl Run {
    #[new]
    #[pyo3(signature = (spec, verify=false, save_drive=None, endless=false, shared=None))]
    fn new(
        py: Python<'_>,
        spec: &Spec,
        verify: bool,
        save_drive: Option<PathBuf>,
        endless: bool,
        shared: Option<&SharedDrives>,
    ) -> PyResult<Self> {
        check_loaded(&spec.loaded)?;
        let spec = spec.clone();
        let chosen = spec.chosen();
        let has_policies = !chosen.is_empty();
        let may_share = chosen.iter().all(|chosen| chosen.policy.get().copies);
        let drives = shared.map(|shared| shared.0.clone());
        let kept_drives = kept_drives::kept(py);
        let mut workload = spec.workload()?.clone();
        // `precondition.map_reads` reads the workload as the spec gives it, even if the run repeats it without end.
        let round = workload.clone();
        py.detach(move || {
            let check_read_again =
                |what| nandlab_trace::read_again(&round.source, what).map_err(Failure::Trace);
            if endless {
                check_read_again("a life")?;
                (workload.repeat, workload.requests_max, workload.warm_up) = (u32::MAX, 0, 0);
            }
            if spec.loaded.spec.map_reads {
                check_read_again("precondition.map_reads = true")?;
            }
            let geometry = spec.loaded.spec.geometry();
            let runner = |source| Runner::of(&workload, spec.loaded.spec.seed, Requests(Mutex::new(source)));
            let kept = nandlab_trace::KeptTraces::from_environment();
            let open = |workload| {
                nandlab_trace::open(workload, geometry.logical_bytes(), spec.loaded.spec.seed, kept.as_ref())
                    .map_err(Failure::Trace)
            };
            let source = open(&workload)?;
            let first_pass = if spec.loaded.spec.map_reads { Some(runner(open(&round)?)) } else { None };
            // The oracle has to see how the drive is preconditioned.
            let shared = drives.filter(|_| !verify && may_share && geometry.units <= UNITS_MAX);
            let shared =
                shared.and_then(|drives| Some(Shared { drives, key: spec.loaded.precondition_key()? }));
            let kept_drive = kept_drives.and_then(|kept| kept.of(&spec.loaded));
            let simulation = Simulation::new(&spec.loaded, chosen, verify, workload.warm_up);
            let simulation = Box::new(simulation.map_err(|error| Failure::Run(error.to_string()))?);
            Ok::<_, Failure>(Self {
                state: State::Preconditioning(Preconditioning::start(
                    simulation, first_pass, shared, kept_drive,
                )),
                runner: runner(source),
                spec,
                save_drive,
                verify,
                completed: 0,
                warm_up: workload.warm_up,
                chunk: 1,
                has_policies,
            })
        })
        .map_err(PyErr::from)
    }

    #[pyo3(signature = (ms, until=None))]
    fn step<'py>(&mut self, py: Python<'py>, ms: u64, until: Option<u64>) -> PyResult<Bound<'py, PyDict>> {
        let (budget, until) = (Duration::from_millis(ms), until.unwrap_or(u64::MAX));
        // With policies in Python the slice keeps the interpreter's lock, which another thread would keep for
        // milliseconds. Preconditioning has a thread of its own, which takes the lock.
        let keeps = self.has_policies && !matches!(self.state, State::Preconditioning(_));
        slice(py, keeps, || self.advance(budget, until))?;
        let out = PyDict::new(py);
        let note = match &self.state {
            State::Saving(simulation) | State::Playing { simulation, .. } | State::Verifying(simulation) => {
                simulation.note()
            }
            State::Preconditioning(_) | State::Over => None,
        };
        let (phase, progress, now, operations) = match &self.state {
            State::Preconditioning(p) => ("precondition", p.share(), 0, 0),
            State::Saving(simulation) => ("save", 0.0, 0, simulation.page_operations()),
            State::Playing { simulation, is_done } => {
                let phase = if *is_done { "done" } else { "run" };
                let by_time = self.runner.share_of_time(Time::from_ns(simulation.now())).unwrap_or(0.0);
                let progress = if *is_done { 1.0 } else { self.runner.source().progress().max(by_time) };
                (phase, progress, simulation.now(), simulation.page_operations())
            }
            State::Verifying(simulation) => ("verify", 1.0, simulation.now(), simulation.page_operations()),
            State::Over => return Err(RunError::new_err(OVER)),
        };
        out.set_item("phase", phase)?;
        out.set_item("done", phase == "done")?;
        out.set_item("progress", progress)?;
        out.set_item("requests", self.completed)?;
        out.set_item("sim_time_s", now as f64 * 1e-9)?;
        out.set_item("page_operations", operations)?;
        out.set_item("note", note)?;
        Ok(out)
    }

    fn begin_stretch(&mut self) -> PyResult<()> {
        self.playing()?.0.begin_stretch();
        Ok(())
    }

    fn stretch(&mut self) -> PyResult<Vec<(&'static str, f64)>> {
        Ok(self.playing()?.0.stretch())
    }

    fn rest(&mut self, py: Python<'_>) -> PyResult<()> {
        let keeps = self.has_policies;
        slice(py, keeps, || {
            let (simulation, runner) = self.playing()?;
            simulation.rest(runner)?;
            self.completed = self.runner.completed();
            Ok::<_, Failure>(())
        })
        .map_err(PyErr::from)
    }

    fn fast_forward(&mut self, times: f64) -> PyResult<f64> {
        Ok(self.playing()?.0.fast_forward(times)?)
    }

    fn result(&mut self, py: Python<'_>) -> PyResult<Outcome> {
        let state = std::mem::replace(&mut self.state, State::Over);
        if let State::Playing { simulation, .. } = &state
            && simulation.is_warming_up()
        {
            return Err(RunError::new_err("the run was stopped in its warm-up: there is no result"));
        }
        let (mut simulation, is_done) = match state {
            State::Playing { simulation, is_done } => (simulation, is_done),
            // The run was stopped before its verification: it counts as incomplete.
            State::Verifying(simulation) => (simulation, false),
            State::Preconditioning(_) | State::Saving(_) => {
                return Err(RunError::new_err(
                    "the run was stopped before its workload began: there is no result",
                ));
            }
            State::Over => return Err(RunError::new_err(OVER)),
        };
        let facts = RunFacts {
            complete: is_done,
            spec_hash: self.spec.loaded.hash(),
            wrapped: self.runner.wrapped,
            fetched: self.runner.fetched(),
            skipped: self.runner.source().skipped(),
            notes: self.runner.source().notes(),
            waits: self.runner.waits(),
        };
        let outputs = py.detach(|| simulation.finish(&facts));
        Ok(Outcome { outputs, spec_toml: self.spec.loaded.to_toml(), spec_hash: facts.spec_hash })
    }
}

impl Run {
    fn playing(&mut self) -> Result<(&mut Box<Simulation>, &mut Runner<Requests>), Failure> {
        match &mut self.state {
            State::Playing { simulation, .. } => Ok((simulation, &mut self.runner)),
            _ => Err(Failure::Run(
                "the workload is not being played: it has not begun, or the run is over".to_owned(),
            )),
        }
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "limits the wall time of a step; nothing simulated depends on the wall clock"
    )]
    /// Advances for `budget` of wall time. Stops earlier at the end of a phase, so that the caller can announce the
    /// next phase, and when `until` requests have been completed.
    fn advance(&mut self, budget: Duration, until: u64) -> Result<(), Failure> {
        let start = Instant::now();
        if let State::Preconditioning(preconditioning) = &mut self.state {
            let prepared = preconditioning.wait(|| start.elapsed() >= budget);
            if prepared.is_err() {
                self.state = State::Over;
            }
            let Some(simulation) = prepared? else { return Ok(()) };
            self.state = match &self.save_drive {
                Some(_) => State::Saving(simulation),
                None => State::Playing { simulation, is_done: false },
            };
            return Ok(());
        }
        let before = std::mem::replace(&mut self.state, State::Over);
        self.state = match before {
            State::Saving(simulation) => {
                simulation.save(self.save_drive.as_ref().expect("the state is Saving only with a path"))?;
                State::Playing { simulation, is_done: false }
            }
            State::Verifying(simulation) => {
                simulation.verify()?;
                State::Playing { simulation, is_done: true }
            }
            State::Playing { mut simulation, is_done: false } => {
                let mut is_done = false;
                while !is_done && self.runner.completed() < until {
                    let (began, requests) = (Instant::now(), self.chunk.min(until - self.runner.completed()));
                    is_done = simulation.play(&mut self.runner, requests)?;
                    let is_long = began.elapsed() > budget / 4;
                    self.chunk =
                        if is_long { self.chunk.div_ceil(2) } else { (2 * self.chunk).min(CHUNK_MAX) };
                    if start.elapsed() >= budget {
                        break;
                    }
                }
                if is_done {
                    // A power loss that the last request triggers belongs to the run. It has not happened yet if the
                    // last call of `play` ended with the completion of this request.
                    simulation.play(&mut self.runner, 1)?;
                }
                self.completed = self.runner.completed();
                if is_done && self.warm_up > 0 && self.completed <= self.warm_up {
                    return Err(Failure::Run(format!(
                        "the workload ended after {} requests and left none for the results: workload.warm_up = {}\n  \
                         remedy: a shorter warm-up, or more requests (workload.repeat)",
                        self.completed, self.warm_up,
                    )));
                }
                if is_done && self.verify {
                    State::Verifying(simulation)
                } else {
                    State::Playing { simulation, is_done }
                }
            }
            other => other,
        };
        Ok(())
    }
}

#[pyclass(frozen, name = "Result", module = "nandlab._core")]
pub(crate) struct Outcome {
    pub(crate) outputs: Outputs,
    #[pyo3(get)]
    pub(crate) spec_toml: String,
    #[pyo3(get)]
    pub(crate) spec_hash: String,
}

#[pymethods]
impl Outcome {
    #[getter]
    fn summary(&self) -> &str {
        &self.outputs.summary
    }

    #[getter]
    fn smart(&self) -> &str {
        &self.outputs.smart
    }

    #[getter]
    fn power(&self) -> Option<&str> {
        self.outputs.power.as_deref()
    }

    #[getter]
    fn fdp(&self) -> Option<&str> {
        self.outputs.fdp.as_deref()
    }

    #[getter]
    fn sim(&self) -> &str {
        &self.outputs.sim
    }

    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        tables::to_python(py, &self.outputs.tables)
    }

    fn explained(&self) -> Option<&str> {
        self.outputs.explained.as_deref()
    }

    fn timeline(&self) -> Option<&str> {
        self.outputs.timeline.as_deref()
    }
}

/// The JSON Schema of the results.
#[pyfunction]
pub(crate) fn result_schema() -> String {
    nandlab::report::schema().to_string()
}
