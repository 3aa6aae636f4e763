//! The exceptions of the Python package. The text of an exception is the whole message, remedy included.

use nandlab::drive::{Failure, SaveError};
use nandlab::spec::SpecErrors;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

create_exception!(nandlab, NandlabError, PyException, "Base class of all error classes of nandlab.");
create_exception!(nandlab, SpecError, NandlabError, "A spec that is refused; `errors` lists its problems.");
create_exception!(nandlab, TraceError, NandlabError, "A trace that cannot be read.");
create_exception!(nandlab, RunError, NandlabError, "A run that cannot continue.");

/// A `SpecError` with its list of problems.
pub(crate) fn spec_error(py: Python<'_>, errors: &SpecErrors) -> PyErr {
    let problems = errors.all().iter().map(|problem| -> PyResult<_> {
        let dict = PyDict::new(py);
        dict.set_item("origin", &problem.origin)?;
        dict.set_item("line", problem.line)?;
        dict.set_item("key", &problem.key)?;
        dict.set_item("message", &problem.message)?;
        dict.set_item("remedy", &problem.remedy)?;
        Ok(dict)
    });
    let list = problems.collect::<PyResult<Vec<_>>>().and_then(|rows| PyList::new(py, rows));
    let error = SpecError::new_err(errors.to_string());
    match list.and_then(|list| error.value(py).setattr("errors", list)) {
        Ok(()) => error,
        Err(other) => other,
    }
}

pub(crate) fn trace_error(error: &nandlab_trace::TraceError) -> PyErr {
    TraceError::new_err(error.to_string())
}

/// The text of a `RunError` for a drive that has failed or does not come to rest; `hash` identifies its spec.
pub(crate) fn failure_text(failure: &Failure, hash: &str) -> String {
    match failure {
        Failure::Shortage { group: Some(group), .. } => format!(
            "reclaim group {group} is full: {failure} (spec {hash})\n  remedy: write less data to the group: writes without a \
             placement go to group 0, and no data leaves its group, so spread them with placement.ranges or the placement of \
             clients; or set a larger drive.op, or placement.groups = 1"
        ),
        Failure::Shortage { .. } | Failure::InVain { .. } => format!(
            "the drive cannot continue although it is not worn out: {failure} (spec {hash})\n  remedy: this is a fault \
             in nandlab: report it with the resolved spec (`nandlab spec show`), the command and `nandlab --version`; a \
             larger drive.op may avoid the fault"
        ),
        Failure::Policy { fault, .. } => {
            format!(
                "{failure} (spec {hash})\n  remedy: correct the policy, or set another {}",
                fault.slot.key()
            )
        }
        Failure::WornOut { .. } => format!(
            "{failure} (spec {hash})\n  remedy: a larger drive.endurance, a lower reliability.pe_cycles, or less \
             preconditioning (precondition.method = \"fill\", a lower precondition.rounds_max or precondition.used)"
        ),
        Failure::TimeIsOver { .. } => format!(
            "{failure} (spec {hash})\n  remedy: a lower reliability.clock_scale, or fewer requests (workload.repeat, \
             workload.requests_max)"
        ),
        Failure::Restless { .. } => format!(
            "{failure} (spec {hash})\n  remedy: a larger limit_s, or advance() to a given time; if refresh cannot keep up, \
             a lower reliability.clock_scale or a longer refresh.interval"
        ),
    }
}

/// The text of a `RunError` for a drive that cannot be saved; `None` for an error of the operating system.
pub(crate) fn unsaved_text(error: &SaveError) -> Option<String> {
    let remedy = match error {
        SaveError::Io(_) => return None,
        // Only a checkpoint has these.
        SaveError::Outside { .. } | SaveError::Failed | SaveError::Off => return Some(error.to_string()),
        SaveError::UnderWay { .. } => "call run_until_idle() before save()",
        SaveError::Dirty(_) => {
            "call flush() and run_until_idle() before save(); with a capacitor and cache.flush_to = \"cache\" a flush \
             writes nothing back: call detect_budget() in its place, or set cache.flush_to = \"flash\""
        }
    };
    Some(format!("{error}\n  remedy: {remedy}"))
}
