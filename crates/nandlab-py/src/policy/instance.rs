//! An object of a policy's class, in the slot of a drive.

use super::{Chosen, Policy, Random};
use nandlab::base::policy::PolicyError;
use nandlab::base::rng::Stream;
use pyo3::prelude::*;
use std::cell::RefCell;

thread_local! {
    /// The exception that a policy has raised in this thread, in which its drive is simulated.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// The exception that a policy of the drive that this thread has simulated has raised.
pub(crate) fn raised() -> Option<PyErr> {
    RAISED.take()
}

/// An object of a policy's class.
#[derive(Debug)]
pub(crate) struct Instance {
    chosen: Chosen,
    object: Py<PyAny>,
    /// Why there is no object: its class has raised an exception. The first decision passes it on.
    unmade: Option<PyErr>,
}

impl Instance {
    /// A fresh object with its parameters and its random stream.
    pub(crate) fn new(py: Python<'_>, chosen: Chosen, stream: Stream) -> Self {
        let make = || -> PyResult<Py<PyAny>> {
            let class = chosen.policy.get().class.bind(py);
            let object = class.call_method1("__new__", (class,))?;
            for (name, value) in &chosen.params {
                let is_whole = chosen.policy.get().params.iter().any(|param| param.0 == *name && param.4);
                match is_whole {
                    true => object.setattr(*name, *value as i64)?,
                    false => object.setattr(*name, *value)?,
                }
            }
            object.setattr("random", Py::new(py, Random(stream))?)?;
            object.call_method0("__init__")?;
            Ok(object.unbind())
        };
        match make() {
            Ok(object) => Self { chosen, object, unmade: None },
            Err(error) => Self { chosen, object: py.None(), unmade: Some(error) },
        }
    }

    /// A copy of the object with its state: its own `copy()`, or else a deep copy.
    pub(crate) fn copy(&self, py: Python<'_>) -> Self {
        let chosen = self.chosen.clone();
        if let Some(error) = &self.unmade {
            return Self { chosen, object: py.None(), unmade: Some(error.clone_ref(py)) };
        }
        let object = self.object.bind(py);
        let copied = match object.hasattr("copy") {
            Ok(true) => object.call_method0("copy"),
            _ => py.import("copy").and_then(|copy| copy.call_method1("deepcopy", (object,))),
        };
        match copied {
            Ok(object) => Self { chosen, object: object.unbind(), unmade: None },
            Err(error) => Self { chosen, object: py.None(), unmade: Some(error) },
        }
    }

    /// The object.
    pub(crate) fn object<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.object.bind(py)
    }

    /// The method `name`; `None` if the class has none, or there is no object.
    pub(crate) fn method(&self, py: Python<'_>, name: &str) -> Option<Py<PyAny>> {
        self.object.bind(py).getattr(name).ok().map(Bound::unbind)
    }

    /// An error if there is no object.
    pub(crate) fn check(&self, py: Python<'_>) -> Result<(), PolicyError> {
        match &self.unmade {
            None => Ok(()),
            Some(error) => Err(self.failed(py, error.clone_ref(py))),
        }
    }

    /// The policy has raised an exception, which the run passes on.
    #[cold]
    pub(crate) fn failed(&self, py: Python<'_>, error: PyErr) -> PolicyError {
        let policy = self.chosen.policy.get();
        let text = error.value(py).to_string();
        let kind =
            error.get_type(py).name().map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
        let note = format!("in the policy {} of {}", policy.name, policy.slot.key());
        let value = error.value(py);
        // An exception that takes no note or attribute is passed on without it.
        let _ = value.call_method1("add_note", (note,));
        let _ = value.setattr("nandlab_policy", &policy.name);
        RAISED.set(Some(error));
        PolicyError::new(format!("it raised {kind}: {text}"))
    }

    /// The answer of the policy cannot be.
    #[cold]
    pub(crate) fn impossible(answer: &Bound<'_, PyAny>, wanted: &str) -> PolicyError {
        let mut text = answer.repr().map_or_else(|_| "an object".to_owned(), |text| text.to_string());
        if text.chars().count() > 60 {
            text = text.chars().take(57).chain("...".chars()).collect();
        }
        PolicyError::new(format!("it returned {text}: expected {wanted}"))
    }

    /// The policy has kept a view beyond its call.
    #[cold]
    pub(crate) fn has_kept() -> PolicyError {
        PolicyError::new(
            "it has kept a view of the drive's state, or a slice of one, beyond the call; keep a copy, such as \
             lane.valid.copy()",
        )
    }
}

/// File and line of the method that decides.
pub(crate) fn place_of_decision(py: Python<'_>, policy: &Policy) -> String {
    let line = || -> PyResult<u32> {
        let slot = super::slots::DECISIONS.iter().find(|(slot, _)| *slot == policy.slot);
        let (_, names) = slot.expect("each slot has its decisions");
        let class = policy.class.bind(py);
        let method = names.iter().find_map(|name| class.getattr(*name).ok());
        match method {
            Some(method) => method.getattr("__code__")?.getattr("co_firstlineno")?.extract(),
            None => Ok(policy.line),
        }
    };
    format!("{}:{}", policy.file, line().unwrap_or(policy.line))
}
