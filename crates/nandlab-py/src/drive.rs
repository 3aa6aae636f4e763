//! The stepping interface.

use crate::errors::{RunError, failure_text, unsaved_text};
use crate::simulation::save_drive;
use crate::spec::Spec;
use crate::tables;
use nandlab::drive::{Drive as Simulated, FailReason, Failure, SaveError};
use nandlab::host::{Op, Oracle, Request};
use nandlab::spec::PreconditionSpec;
use nandlab::stats::{RunFacts, power, smart, summary};
use nandlab::units::{SECOND, Span, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

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

#[pyclass(module = "nandlab._core")]
pub(crate) struct Drive {
    kept: Kept,
    hash: String,
}

#[pymethods]
impl Drive {
    #[new]
    #[pyo3(signature = (spec, verify=false))]
    fn new(py: Python<'_>, spec: &Spec, verify: bool) -> PyResult<Self> {
        let (spec, hash) = (spec.loaded.spec.clone(), spec.loaded.hash());
        py.detach(|| {
            let mut kept = if verify {
                Kept::Verified(Box::new(Simulated::with_probe(&spec, Oracle::default())))
            } else {
                Kept::Plain(Box::new(Simulated::new(&spec)))
            };
            if let PreconditionSpec::Load(path) = &spec.precondition {
                let failed =
                    |e: &dyn std::fmt::Display| RunError::new_err(format!("{}: {e}", path.display()));
                let file = std::fs::File::open(path).map_err(|e| failed(&e))?;
                on!(&mut kept, drive => drive.load(file)).map_err(|e| failed(&e))?;
            } else {
                on!(&mut kept, drive => drive.precondition(&mut |_| true));
            }
            if let Kept::Verified(drive) = &mut kept
                && !matches!(spec.precondition, PreconditionSpec::Pts { .. })
            {
                drive.expect_preconditioned(|oracle| oracle);
            }
            Ok(Self { kept, hash })
        })
    }

    #[getter]
    fn now(&self) -> u64 {
        on!(&self.kept, drive => drive.now().ns())
    }

    #[getter]
    fn outstanding(&self) -> u32 {
        on!(&self.kept, drive => drive.outstanding())
    }

    #[pyo3(signature = (op, offset, length=0, fua=false))]
    fn submit(&mut self, op: &str, offset: u64, length: u64, fua: bool) -> PyResult<u64> {
        let Some(op) = Op::ALL.into_iter().find(|o| o.name() == op) else {
            return Err(PyValueError::new_err(format!("{op:?} is not one of read, write, trim, flush")));
        };
        self.goes_on()?;
        let request = Request { arrival: Time::from_ns(self.now()), op, fua, offset, len: length };
        let id = on!(&mut self.kept, drive => drive.submit(&request))
            .map_err(|e| RunError::new_err(e.to_string()))?;
        self.goes_on()?;
        Ok(id)
    }

    fn advance(&mut self, py: Python<'_>, to_ns: u64) -> PyResult<()> {
        let to = Time::from_ns(to_ns);
        let end = on!(&self.kept, drive => drive.end());
        if to > end {
            return Err(RunError::new_err(format!(
                "cannot advance to {to_ns} ns: {}\n  remedy: at most {} ns",
                Failure::TimeIsOver { end },
                end.ns()
            )));
        }
        loop {
            let is_there = py.detach(|| on!(&mut self.kept, drive => drive.advance_some(to, SLICE)));
            self.goes_on()?;
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
        let began = Time::from_ns(self.now());
        self.goes_on()?;
        loop {
            let is_idle =
                py.detach(|| on!(&mut self.kept, drive => drive.run_some_until_idle(began, limit, SLICE)));
            if is_idle.map_err(|failure| self.failed(&failure))? {
                return self.goes_on();
            }
            py.check_signals()?;
        }
    }

    fn completions(&mut self) -> Vec<Completed> {
        on!(&mut self.kept, drive => drive
            .completions()
            .map(|c| {
                let (arrival, completed) = (c.request.arrival.ns(), c.completed.ns());
                (c.id, c.request.op.name(), arrival, completed, c.failed.map(FailReason::name))
            })
            .collect())
    }

    fn summary(&mut self) -> String {
        let facts = RunFacts { complete: true, spec_hash: self.hash.clone(), ..RunFacts::default() };
        on!(&mut self.kept, drive => {
            drive.finish_stats();
            summary(drive, &facts).to_string()
        })
    }

    fn smart(&self) -> String {
        on!(&self.kept, drive => smart(drive).to_string())
    }

    fn power(&self) -> Option<String> {
        on!(&self.kept, drive => power(drive)).map(|power| power.to_string())
    }

    fn cut_power(&mut self, py: Python<'_>) -> PyResult<()> {
        if !on!(&self.kept, drive => drive.array().is_stamped()) {
            return Err(RunError::new_err(
                "the drive cannot recover from a power loss: its spec names none, so it keeps no sequence numbers\n  \
                 remedy: set capacitor.capacitance, power.cut_at or power.cut_after_requests, or verify=True",
            ));
        }
        self.goes_on()?;
        py.detach(|| {
            on!(&mut self.kept, drive => {
                drive.cut_power();
            });
        });
        self.goes_on()
    }

    fn detect_budget(&mut self) -> PyResult<bool> {
        self.goes_on()?;
        on!(&mut self.kept, drive => {
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
    fn capacitor(&self) -> Option<(&'static str, f64, f64)> {
        on!(&self.kept, drive => {
            drive.capacitor().map(|capacitor| (capacitor.stage, capacitor.energy_j, drive.capability_pages()))
        })
    }

    #[getter]
    fn cache_pages(&self) -> [u32; 3] {
        on!(&self.kept, drive => drive.cache_pages())
    }

    fn tables<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tables = on!(&mut self.kept, drive => {
            drive.finish_stats();
            tables::of(drive)
        });
        tables::to_python(py, &tables)
    }

    fn audit(&self) -> PyResult<()> {
        on!(&self.kept, drive => drive.audit()).map_err(RunError::new_err)?;
        if let Kept::Verified(drive) = &self.kept {
            drive.probe().verdict().map_err(RunError::new_err)?;
        }
        Ok(())
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| on!(&self.kept, drive => save_drive(drive, &path))).map_err(|error| match error {
            SaveError::Io(error) => error.into(),
            other => RunError::new_err(unsaved_text(&other).expect("it is no error of the operating system")),
        })
    }
}

impl Drive {
    /// An error once the drive has failed.
    fn goes_on(&self) -> PyResult<()> {
        match on!(&self.kept, drive => drive.failure()) {
            Some(failure) => Err(self.failed(failure)),
            None => Ok(()),
        }
    }

    fn failed(&self, failure: &Failure) -> PyErr {
        RunError::new_err(failure_text(failure, &self.hash))
    }
}
