//! The stepping interface: a drive whose requests are submitted one by one from Python.

use crate::any_drive::{AnyDrive, on};
use crate::batch::{self, Pace};
use crate::errors::{RunError, unsaved_text};
use crate::interrupt::{Interruptible, interruptible, wait};
use crate::kept_drives;
use crate::policy::{Chosen, check_loaded, holding, slice};
use crate::simulation::{drive_failure, save_drive};
use crate::spec::Spec;
use crate::tables;
use crate::versions::{Returned, Versions};
use nandlab::base::units::{SECOND, Span, Time};
use nandlab::drive::spec::PreconditionSpec;
use nandlab::drive::{Completion, Failure, SaveError};
use nandlab::host::{FailReason, Op, Oracle, Request, Tag};
use nandlab::report::{RunFacts, fdp, power, smart, summary};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::thread::JoinHandle;

/// Number of events between two checks for signals by Python: about ten milliseconds of wall time.
const SLICE: u64 = 1 << 15;

/// A completed request for Python: id, operation, arrival and completion in nanoseconds, the reason if it has failed, and
/// the writes that a read returned, if the drive is observed for it.
type Completed = (u64, &'static str, u64, u64, Option<&'static str>, Option<Returned>);

/// A thread that works on the drive; it returns the drive and the result of its work.
type Worker = JoinHandle<(AnyDrive, Result<(), String>)>;

#[pyclass(module = "nandlab._core")]
pub(crate) struct Drive {
    /// `None` while a thread works on the drive.
    drive: Option<AnyDrive>,
    /// A thread that still works on the drive after a signal has interrupted the wait for it: its work cannot be
    /// interrupted.
    worker: Option<Worker>,
    hash: String,
    /// The policies in Python that the spec names.
    policies: Vec<Chosen>,
    /// Completions that the drive has given and that Python has not taken.
    ended: Vec<Completion>,
    /// Whether the drive is observed for the writes that reads return.
    has_versions: bool,
    /// What the user should know of the kept drive, if anything.
    #[pyo3(get)]
    note: Option<String>,
}

/// The drive, for a method that no other thread interrupts.
fn free<'py>(drive: &Bound<'py, Drive>) -> PyResult<PyRefMut<'py, Drive>> {
    drive.try_borrow_mut().map_err(|_| {
        RunError::new_err(
            "another thread uses this drive: the drive simulates for one thread at a time\n  remedy: call the drive from \
             one thread, guard it with a threading.Lock, or give each thread a drive of its own",
        )
    })
}

#[pymethods]
impl Drive {
    #[new]
    #[pyo3(signature = (spec, verify=false, versions=false))]
    fn new(py: Python<'_>, spec: &Spec, verify: bool, versions: bool) -> PyResult<Self> {
        check_loaded(&spec.loaded)?;
        let (policies, hash) = (spec.chosen(), spec.loaded.hash());
        let kept = kept_drives::kept(py).and_then(|kept| kept.of(&spec.loaded));
        let spec = spec.loaded.spec.clone();
        interruptible(py, |stop| {
            let unit_bytes = spec.geometry().unit_bytes;
            let mut any = AnyDrive::new(&spec, &policies, verify, 0, |taps| {
                if versions { taps.with(Versions::new(unit_bytes)) } else { taps }
            })
            .map_err(|error| RunError::new_err(error.to_string()))?;
            let mut note = None;
            if let PreconditionSpec::Load(path) = &spec.precondition {
                let failed =
                    |e: &dyn std::fmt::Display| RunError::new_err(format!("{}: {e}", path.display()));
                let file = std::fs::File::open(path).map_err(|e| failed(&e))?;
                on!(&mut any, drive => drive.load(Interruptible(file, stop))).map_err(|e| failed(&e))?;
            } else {
                holding(!policies.is_empty(), |pause| {
                    let mut watch = |_| {
                        pause();
                        !stop.is_requested()
                    };
                    let done = on!(&mut any, drive => drive.precondition_or_load(kept.as_ref(), &mut watch));
                    note = done.map_err(RunError::new_err)?.note;
                    Ok::<_, PyErr>(())
                })?;
            }
            any.expect_preconditioned();
            if let Some(failure) = on!(&mut any, drive => drive.failure().cloned()) {
                return Err(failed(&failure, &hash, &policies));
            }
            let (ended, has_versions) = (Vec::new(), versions);
            Ok(Self { drive: Some(any), worker: None, hash, policies, ended, has_versions, note })
        })?
    }

    #[getter]
    fn now(slf: &Bound<'_, Self>, py: Python<'_>) -> PyResult<u64> {
        let this = &mut *free(slf)?;
        Ok(on!(this.drive(py)?, drive => drive.now().ns()))
    }

    #[getter]
    fn outstanding(slf: &Bound<'_, Self>, py: Python<'_>) -> PyResult<u32> {
        let this = &mut *free(slf)?;
        Ok(on!(this.drive(py)?, drive => drive.outstanding()))
    }

    #[pyo3(signature = (op, offset, length=0, fua=false, tag=(0, 0)))]
    fn submit(
        slf: &Bound<'_, Self>,
        py: Python<'_>,
        op: &str,
        offset: u64,
        length: u64,
        fua: bool,
        tag: (u16, u16),
    ) -> PyResult<u64> {
        let this = &mut *free(slf)?;
        let Some(op) = Op::ALL.into_iter().find(|o| o.name() == op) else {
            return Err(PyValueError::new_err(format!(
                "op: expected read, write, trim or flush, found {op:?}"
            )));
        };
        this.check_failure(py)?;
        let (queue, placement) = tag;
        let request = Request::new(op, offset, length).with_fua(fua).with_tag(Tag { queue, placement });
        let id = on!(this.drive(py)?, drive => {
            drive.submit(&request.at(drive.now()))
        });
        let id = id.map_err(|e| RunError::new_err(e.to_string()))?;
        this.check_failure(py)?;
        Ok(id)
    }

    fn advance(slf: &Bound<'_, Self>, py: Python<'_>, to_ns: u64) -> PyResult<()> {
        let this = &mut *free(slf)?;
        let to = Time::from_ns(to_ns);
        let end = on!(this.drive(py)?, drive => drive.end());
        if to > end {
            return Err(RunError::new_err(format!(
                "cannot advance to {to_ns} ns: {}\n  remedy: advance to at most {} ns",
                Failure::TimeIsOver { end },
                end.ns()
            )));
        }
        let keeps = !this.policies.is_empty();
        loop {
            let any = this.drive(py)?;
            let is_done = slice(py, keeps, || on!(any, drive => drive.advance_some(to, SLICE)));
            this.check_failure(py)?;
            if is_done {
                return Ok(());
            }
            py.check_signals()?;
        }
    }

    #[pyo3(signature = (limit_s=60.0))]
    fn run_until_idle(slf: &Bound<'_, Self>, py: Python<'_>, limit_s: f64) -> PyResult<()> {
        let this = &mut *free(slf)?;
        if limit_s.is_nan() || limit_s < 0.0 {
            return Err(PyValueError::new_err(format!(
                "limit_s: expected at least 0 seconds, found {limit_s}"
            )));
        }
        // The conversion saturates: a limit beyond the range of the clock is no limit.
        let limit = Span::from_ns((limit_s * SECOND.ns() as f64) as u64);
        let began = on!(this.drive(py)?, drive => drive.now());
        this.check_failure(py)?;
        let keeps = !this.policies.is_empty();
        loop {
            let any = this.drive(py)?;
            let is_idle =
                slice(py, keeps, || on!(any, drive => drive.run_some_until_idle(began, limit, SLICE)));
            if is_idle.map_err(|failure| this.failed(&failure))? {
                return this.check_failure(py);
            }
            py.check_signals()?;
        }
    }

    /// Submits the requests of columns ([`batch::requests`]); returns the id of the first one.
    #[pyo3(signature = (columns, queue_depth=None))]
    fn submit_many(
        slf: &Bound<'_, Self>,
        py: Python<'_>,
        columns: &Bound<'_, PyDict>,
        queue_depth: Option<u32>,
    ) -> PyResult<u64> {
        let this = &mut *free(slf)?;
        let requests = batch::requests(columns)?;
        let pace = match queue_depth {
            Some(depth) => Pace::Depth(depth),
            None if columns.contains("arrival_ns")? => Pace::Arrivals,
            None => Pace::Now,
        };
        let end = on!(this.drive(py)?, drive => drive.end());
        if let Some(index) = requests.iter().position(|request| request.arrival > end) {
            return Err(RunError::new_err(format!(
                "request {index} of the batch: {}\n  remedy: arrivals of at most {} ns",
                Failure::TimeIsOver { end },
                end.ns()
            )));
        }
        this.check_failure(py)?;
        let keeps = !this.policies.is_empty();
        let (mut done, mut first) = (0, None);
        while done < requests.len() {
            let mut ended = std::mem::take(&mut this.ended);
            let any = this.drive(py)?;
            let submitted = slice(py, keeps, || {
                on!(any, drive => {
                    batch::submit_some(drive, &requests[done..], pace, SLICE, &mut ended, &mut first)
                })
            });
            this.ended = ended;
            done += submitted.map_err(|(index, refused)| {
                RunError::new_err(format!("request {} of the batch: {refused}", done + index))
            })?;
            this.check_failure(py)?;
            py.check_signals()?;
        }
        Ok(first.unwrap_or(0))
    }

    fn completions(slf: &Bound<'_, Self>, py: Python<'_>) -> PyResult<Vec<Completed>> {
        let this = &mut *free(slf)?;
        let ended = this.take_ended(py)?;
        let any = this.drive(py)?;
        Ok(ended
            .into_iter()
            .map(|c| {
                let (arrival, completed) = (c.request.arrival.ns(), c.completed.ns());
                let reason = c.failed.map(FailReason::name);
                (c.id, c.request.op.name(), arrival, completed, reason, any.take_returned(c.id))
            })
            .collect())
    }

    fn completions_columns<'py>(slf: &Bound<'py, Self>, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let this = &mut *free(slf)?;
        let ended = this.take_ended(py)?;
        let has_versions = this.has_versions;
        let any = this.drive(py)?;
        let returned: Option<Vec<_>> =
            has_versions.then(|| ended.iter().map(|completion| any.take_returned(completion.id)).collect());
        batch::columns(py, &ended, returned.as_deref())
    }

    fn summary(slf: &Bound<'_, Self>, py: Python<'_>) -> PyResult<String> {
        let this = &mut *free(slf)?;
        let facts = RunFacts { complete: true, spec_hash: this.hash.clone(), ..RunFacts::default() };
        Ok(on!(this.drive(py)?, drive => {
            drive.finish_stats();
            summary(drive, &facts).to_string()
        }))
    }

    fn smart(slf: &Bound<'_, Self>, py: Python<'_>) -> PyResult<String> {
        let this = &mut *free(slf)?;
        Ok(on!(this.drive(py)?, drive => smart(drive).to_string()))
    }

    fn power(slf: &Bound<'_, Self>, py: Python<'_>) -> PyResult<Option<String>> {
        let this = &mut *free(slf)?;
        Ok(on!(this.drive(py)?, drive => power(drive)).map(|power| power.to_string()))
    }

    fn fdp(slf: &Bound<'_, Self>, py: Python<'_>) -> PyResult<Option<String>> {
        let this = &mut *free(slf)?;
        Ok(on!(this.drive(py)?, drive => fdp(drive)).map(|logs| logs.to_string()))
    }

    fn update_handle(slf: &Bound<'_, Self>, py: Python<'_>, identifier: u16) -> PyResult<bool> {
        let this = &mut *free(slf)?;
        this.check_failure(py)?;
        Ok(on!(this.drive(py)?, drive => drive.spec().placement.is_on() && drive.update_handle(identifier)))
    }

    fn cut_power(slf: &Bound<'_, Self>, py: Python<'_>) -> PyResult<()> {
        let this = &mut *free(slf)?;
        if !on!(this.drive(py)?, drive => drive.array().keeps_sequences()) {
            return Err(RunError::new_err(
                "the drive cannot recover from a power loss: its spec models no power loss, so it keeps no sequence \
                 numbers\n  remedy: set capacitor.capacitance, power.cut_at or power.cut_after_requests, or verify=True",
            ));
        }
        this.check_failure(py)?;
        this.run_on_thread(py, |any| {
            on!(any, drive => {
                drive.cut_power();
            });
            Ok(())
        })?
        .map_err(RunError::new_err)?;
        this.check_failure(py)
    }

    fn detect_budget(slf: &Bound<'_, Self>, py: Python<'_>) -> PyResult<bool> {
        let this = &mut *free(slf)?;
        this.check_failure(py)?;
        on!(this.drive(py)?, drive => {
            let [units, ..] = drive.dirty_units();
            let Some(capacitor) = drive.capacitor().filter(|_| units > 0) else {
                return Err(RunError::new_err(
                    "there is no dirty page budget to detect: the drive has no capacitor, or neither a write cache \
                     nor a write buffer\n  remedy: set capacitor.capacitance, and cache.size or ftl.buffer",
                ));
            };
            let begins = capacitor.stage == "charged";
            drive.detect_budget();
            Ok(begins)
        })
    }

    #[getter]
    fn capacitor(slf: &Bound<'_, Self>, py: Python<'_>) -> PyResult<Option<(&'static str, f64, f64)>> {
        let this = &mut *free(slf)?;
        Ok(on!(this.drive(py)?, drive => {
            drive.capacitor().map(|capacitor| (capacitor.stage, capacitor.energy_j, drive.capability_units()))
        }))
    }

    #[getter]
    fn cache_pages(slf: &Bound<'_, Self>, py: Python<'_>) -> PyResult<[u32; 3]> {
        let this = &mut *free(slf)?;
        Ok(on!(this.drive(py)?, drive => drive.cache_units()))
    }

    fn tables<'py>(slf: &Bound<'_, Self>, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let this = &mut *free(slf)?;
        let tables = on!(this.drive(py)?, drive => {
            drive.finish_stats();
            tables::of(drive)
        });
        tables::to_python(py, &tables)
    }

    fn audit(slf: &Bound<'_, Self>, py: Python<'_>) -> PyResult<()> {
        let this = &mut *free(slf)?;
        let found = this.run_on_thread(py, |any| {
            on!(&*any, drive => drive.audit())?;
            any.oracle().map_or(Ok(()), Oracle::verdict)
        })?;
        found.map_err(RunError::new_err)
    }

    fn save(slf: &Bound<'_, Self>, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let this = &mut *free(slf)?;
        let any = this.drive(py)?;
        interruptible(py, |stop| on!(&*any, drive => save_drive(drive, &path, stop)))?.map_err(|error| {
            match error {
                SaveError::Io(error) => error.into(),
                other => RunError::new_err(
                    unsaved_text(&other).expect("errors of the operating system are handled above"),
                ),
            }
        })
    }
}

impl Drive {
    /// Returns the drive, after the end of a thread that works on the drive.
    fn drive(&mut self, py: Python<'_>) -> PyResult<&mut AnyDrive> {
        if let Some(thread) = self.worker.take() {
            self.wait(py, thread)?.unwrap_or_default();
        }
        Ok(self.drive.as_mut().expect("no thread has the drive"))
    }

    /// Runs `work`, which cannot be interrupted, on a thread of its own. If a signal handler raises an exception
    /// meanwhile, this call returns the exception and the work continues; the next call that needs the drive waits for
    /// the thread.
    fn run_on_thread(
        &mut self,
        py: Python<'_>,
        work: impl FnOnce(&mut AnyDrive) -> Result<(), String> + Send + 'static,
    ) -> PyResult<Result<(), String>> {
        self.drive(py)?;
        let mut any = self.drive.take().expect("no thread has the drive");
        let thread = std::thread::spawn(move || {
            let done = work(&mut any);
            (any, done)
        });
        self.wait(py, thread)
    }

    fn wait(&mut self, py: Python<'_>, thread: Worker) -> PyResult<Result<(), String>> {
        if let Err(raised) = wait(py, &thread) {
            self.worker = Some(thread);
            return Err(raised);
        }
        let (any, done) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.drive = Some(any);
        Ok(done)
    }

    /// Takes the completions since the last call.
    fn take_ended(&mut self, py: Python<'_>) -> PyResult<Vec<Completion>> {
        let mut ended = std::mem::take(&mut self.ended);
        on!(self.drive(py)?, drive => ended.extend(drive.completions()));
        Ok(ended)
    }

    /// Returns an error if the drive has failed.
    fn check_failure(&mut self, py: Python<'_>) -> PyResult<()> {
        let failure = on!(self.drive(py)?, drive => drive.failure().cloned());
        failure.map_or(Ok(()), |failure| Err(self.failed(&failure)))
    }

    fn failed(&self, failure: &Failure) -> PyErr {
        failed(failure, &self.hash, &self.policies)
    }
}

/// The exception for a drive that has failed: that of a policy in Python, or a `RunError`.
fn failed(failure: &Failure, hash: &str, policies: &[Chosen]) -> PyErr {
    drive_failure(failure, hash, policies).into()
}
