//! The stepping interface.

use crate::errors::{RunError, failure_text, unsaved_text};
use crate::interrupt::{Heard, heard, wait};
use crate::simulation::save_drive;
use crate::spec::Spec;
use crate::tables;
use nandlab::base::units::{SECOND, Span, Time};
use nandlab::drive::spec::PreconditionSpec;
use nandlab::drive::{Drive as Simulated, FailReason, Failure, SaveError};
use nandlab::host::{Op, Oracle, Request};
use nandlab::report::{RunFacts, power, smart, summary};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::thread::JoinHandle;

/// A drive, watched by the oracle or not.
enum Kept {
    Plain(Box<Simulated>),
    Verified(Box<Simulated<Oracle>>),
}

macro_rules! on {
    ($kept:expr, $drive:ident => $body:expr) => {
        match $kept {
            Kept::Plain($drive) => $body,
            Kept::Verified($drive) => $body,
        }
    };
}

/// Events between two looks at whether Python has been interrupted: some ten milliseconds.
const SLICE: u64 = 1 << 15;

/// As the binding hands it out: id, op, arrival and completion in nanoseconds, the reason of one that has failed.
type Completed = (u64, &'static str, u64, u64, Option<&'static str>);

/// What a thread that has the drive gives back.
type Lent = JoinHandle<(Kept, Result<(), String>)>;

#[pyclass(module = "nandlab._core")]
pub(crate) struct Drive {
    /// `None` while a thread has it.
    kept: Option<Kept>,
    /// Work that was interrupted goes on to its end: there is nothing between.
    lent: Option<Lent>,
    hash: String,
}

#[pymethods]
impl Drive {
    #[new]
    #[pyo3(signature = (spec, verify=false))]
    fn new(py: Python<'_>, spec: &Spec, verify: bool) -> PyResult<Self> {
        let (spec, hash) = (spec.loaded.spec.clone(), spec.loaded.hash());
        heard(py, |stop| {
            let mut kept = if verify {
                Kept::Verified(Box::new(Simulated::with_probe(&spec, Oracle::of(&spec.drive))))
            } else {
                Kept::Plain(Box::new(Simulated::new(&spec)))
            };
            if let PreconditionSpec::Load(path) = &spec.precondition {
                let failed =
                    |e: &dyn std::fmt::Display| RunError::new_err(format!("{}: {e}", path.display()));
                let file = std::fs::File::open(path).map_err(|e| failed(&e))?;
                on!(&mut kept, drive => drive.load(Heard(file, stop))).map_err(|e| failed(&e))?;
            } else {
                on!(&mut kept, drive => drive.precondition(&mut |_| !stop.is_asked()));
            }
            if let Kept::Verified(drive) = &mut kept
                && !matches!(spec.precondition, PreconditionSpec::Pts { .. })
            {
                drive.expect_preconditioned(|oracle| oracle);
            }
            Ok(Self { kept: Some(kept), lent: None, hash })
        })?
    }

    #[getter]
    fn now(&mut self, py: Python<'_>) -> PyResult<u64> {
        Ok(on!(self.kept(py)?, drive => drive.now().ns()))
    }

    #[getter]
    fn outstanding(&mut self, py: Python<'_>) -> PyResult<u32> {
        Ok(on!(self.kept(py)?, drive => drive.outstanding()))
    }

    #[pyo3(signature = (op, offset, length=0, fua=false))]
    fn submit(&mut self, py: Python<'_>, op: &str, offset: u64, length: u64, fua: bool) -> PyResult<u64> {
        let Some(op) = Op::ALL.into_iter().find(|o| o.name() == op) else {
            return Err(PyValueError::new_err(format!("{op:?} is not one of read, write, trim, flush")));
        };
        self.goes_on(py)?;
        let id = on!(self.kept(py)?, drive => {
            drive.submit(&Request { arrival: drive.now(), op, fua, offset, len: length })
        });
        let id = id.map_err(|e| RunError::new_err(e.to_string()))?;
        self.goes_on(py)?;
        Ok(id)
    }

    fn advance(&mut self, py: Python<'_>, to_ns: u64) -> PyResult<()> {
        let to = Time::from_ns(to_ns);
        let end = on!(self.kept(py)?, drive => drive.end());
        if to > end {
            return Err(RunError::new_err(format!(
                "cannot advance to {to_ns} ns: {}\n  remedy: at most {} ns",
                Failure::TimeIsOver { end },
                end.ns()
            )));
        }
        loop {
            let kept = self.kept(py)?;
            let is_there = py.detach(|| on!(kept, drive => drive.advance_some(to, SLICE)));
            self.goes_on(py)?;
            if is_there {
                return Ok(());
            }
            py.check_signals()?;
        }
    }

    #[pyo3(signature = (limit_s=60.0))]
    fn run_until_idle(&mut self, py: Python<'_>, limit_s: f64) -> PyResult<()> {
        if limit_s.is_nan() || limit_s < 0.0 {
            return Err(PyValueError::new_err(format!("limit_s = {limit_s}: 0 or more seconds")));
        }
        // What is too long for the clock is no limit.
        let limit = Span::from_ns((limit_s * SECOND.ns() as f64) as u64);
        let began = Time::from_ns(self.now(py)?);
        self.goes_on(py)?;
        loop {
            let kept = self.kept(py)?;
            let is_idle = py.detach(|| on!(kept, drive => drive.run_some_until_idle(began, limit, SLICE)));
            if is_idle.map_err(|failure| self.failed(&failure))? {
                return self.goes_on(py);
            }
            py.check_signals()?;
        }
    }

    fn completions(&mut self, py: Python<'_>) -> PyResult<Vec<Completed>> {
        Ok(on!(self.kept(py)?, drive => drive
            .completions()
            .map(|c| {
                let (arrival, completed) = (c.request.arrival.ns(), c.completed.ns());
                (c.id, c.request.op.name(), arrival, completed, c.failed.map(FailReason::name))
            })
            .collect()))
    }

    fn summary(&mut self, py: Python<'_>) -> PyResult<String> {
        let facts = RunFacts { complete: true, spec_hash: self.hash.clone(), ..RunFacts::default() };
        Ok(on!(self.kept(py)?, drive => {
            drive.finish_stats();
            summary(drive, &facts).to_string()
        }))
    }

    fn smart(&mut self, py: Python<'_>) -> PyResult<String> {
        Ok(on!(self.kept(py)?, drive => smart(drive).to_string()))
    }

    fn power(&mut self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(on!(self.kept(py)?, drive => power(drive)).map(|power| power.to_string()))
    }

    fn cut_power(&mut self, py: Python<'_>) -> PyResult<()> {
        if !on!(self.kept(py)?, drive => drive.array().is_stamped()) {
            return Err(RunError::new_err(
                "the drive cannot recover from a power loss: its spec names none, so it keeps no sequence numbers\n  \
                 remedy: set capacitor.capacitance, power.cut_at or power.cut_after_requests, or verify=True",
            ));
        }
        self.goes_on(py)?;
        self.lend(py, |kept| {
            on!(kept, drive => {
                drive.cut_power();
            });
            Ok(())
        })?
        .map_err(RunError::new_err)?;
        self.goes_on(py)
    }

    fn detect_budget(&mut self, py: Python<'_>) -> PyResult<bool> {
        self.goes_on(py)?;
        on!(self.kept(py)?, drive => {
            let [cache_pages, ..] = drive.cache_pages();
            let Some(capacitor) = drive.capacitor().filter(|_| cache_pages > 0) else {
                return Err(RunError::new_err(
                    "there is no dirty page budget to be detected\n  remedy: set capacitor.capacitance and cache.size",
                ));
            };
            let begins = capacitor.stage == "charged";
            drive.detect_budget();
            Ok(begins)
        })
    }

    #[getter]
    fn capacitor(&mut self, py: Python<'_>) -> PyResult<Option<(&'static str, f64, f64)>> {
        Ok(on!(self.kept(py)?, drive => {
            drive.capacitor().map(|capacitor| (capacitor.stage, capacitor.energy_j, drive.capability_pages()))
        }))
    }

    #[getter]
    fn cache_pages(&mut self, py: Python<'_>) -> PyResult<[u32; 3]> {
        Ok(on!(self.kept(py)?, drive => drive.cache_pages()))
    }

    fn tables<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tables = on!(self.kept(py)?, drive => {
            drive.finish_stats();
            tables::of(drive)
        });
        tables::to_python(py, &tables)
    }

    fn audit(&mut self, py: Python<'_>) -> PyResult<()> {
        let found = self.lend(py, |kept| {
            on!(&*kept, drive => drive.audit())?;
            if let Kept::Verified(drive) = kept { drive.probe().verdict() } else { Ok(()) }
        })?;
        found.map_err(RunError::new_err)
    }

    fn save(&mut self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let kept = self.kept(py)?;
        heard(py, |stop| on!(&*kept, drive => save_drive(drive, &path, stop)))?.map_err(|error| match error {
            SaveError::Io(error) => error.into(),
            other => RunError::new_err(unsaved_text(&other).expect("it is no error of the operating system")),
        })
    }
}

impl Drive {
    /// The drive; waits for the thread that has it.
    fn kept(&mut self, py: Python<'_>) -> PyResult<&mut Kept> {
        if let Some(thread) = self.lent.take() {
            self.wait(py, thread)?.unwrap_or_default();
        }
        Ok(self.kept.as_mut().expect("it has been given back"))
    }

    /// Does work that has nothing between its beginning and its end. Where a signal's handler raises meanwhile, the work
    /// goes on, and whoever asks next for the drive waits for it.
    fn lend(
        &mut self,
        py: Python<'_>,
        work: impl FnOnce(&mut Kept) -> Result<(), String> + Send + 'static,
    ) -> PyResult<Result<(), String>> {
        self.kept(py)?;
        let mut kept = self.kept.take().expect("it is there");
        let thread = std::thread::spawn(move || {
            let done = work(&mut kept);
            (kept, done)
        });
        self.wait(py, thread)
    }

    fn wait(&mut self, py: Python<'_>, thread: Lent) -> PyResult<Result<(), String>> {
        if let Err(raised) = wait(py, &thread) {
            self.lent = Some(thread);
            return Err(raised);
        }
        let (kept, done) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.kept = Some(kept);
        Ok(done)
    }

    /// An error once the drive has failed.
    fn goes_on(&mut self, py: Python<'_>) -> PyResult<()> {
        let failure = on!(self.kept(py)?, drive => drive.failure().cloned());
        failure.map_or(Ok(()), |failure| Err(self.failed(&failure)))
    }

    fn failed(&self, failure: &Failure) -> PyErr {
        RunError::new_err(failure_text(failure, &self.hash))
    }
}
