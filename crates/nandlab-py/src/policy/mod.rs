//! Policies in Python.
//!
//! A [`Policy`] is a class that `nandlab.policy` has declared. A spec names it; a drive makes an object of the class for
//! its slot ([`Instance`]) and calls the object's methods, one call for each decision. What a policy of each slot sees,
//! and its hooks, are in the file of the slot.
//!
//! A drive with policies in Python holds the interpreter's lock while it simulates a slice of the run, because another
//! thread that takes the lock keeps it for milliseconds. [`holding`] is the one place for that.

mod events;
mod instance;
pub(crate) mod memory;
mod random;
mod slots;

pub(crate) use instance::raised;
pub(crate) use random::Random;
pub(crate) use slots::{Cache, CacheCounts, FlashRead, Lane};

use crate::errors::RunError;
use nandlab::base::policy::{ParamInfo, PolicyInfo, PolicySlot};
use nandlab::base::rng::Stream;
use nandlab::drive::spec::{Loaded, open_slots, outside_policy};
use nandlab::drive::{Failure, Policies};
use nandlab::spec::{Outside, OutsideChoice, is_policy_name};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A parameter: name, default or `None`, lowest and highest value, whether it is whole, description.
type Param = (String, Option<f64>, f64, f64, bool, String);

/// A class that decides for a slot.
#[pyclass(frozen, skip_from_py_object, module = "nandlab._core")]
pub(crate) struct Policy {
    slot: PolicySlot,
    choice: OutsideChoice,
    /// The class.
    #[pyo3(get, name = "class_")]
    class: Py<PyAny>,
    #[pyo3(get)]
    pub(crate) name: String,
    #[pyo3(get)]
    identity: String,
    /// The file of the class.
    #[pyo3(get)]
    file: String,
    /// The line of the class.
    #[pyo3(get)]
    line: u32,
    /// Whether an object can be copied with its drive.
    #[pyo3(get)]
    pub(crate) copies: bool,
    params: Vec<Param>,
}

fn leak(text: &str) -> &'static str {
    text.to_owned().leak()
}

#[pymethods]
impl Policy {
    /// Each call leaks the texts, so a class is declared once.
    #[new]
    #[allow(
        clippy::too_many_arguments,
        reason = "the constructor of a Python class, which one function calls"
    )]
    fn new(
        slot: &str,
        name: String,
        description: &str,
        params: Vec<Param>,
        class: Py<PyAny>,
        identity: String,
        place: (String, u32),
        copies: bool,
    ) -> PyResult<Self> {
        let open = open_slots();
        let Some((key, built_in)) = open.iter().find(|(key, _)| key == slot) else {
            let slots: Vec<&str> = open.iter().map(|(key, _)| &**key).collect();
            let text =
                format!("no slot {slot:?} takes policies in Python\n  remedy: one of {}", slots.join(", "));
            return Err(PyValueError::new_err(text));
        };
        let slot = PolicySlot::ALL.into_iter().find(|slot| slot.key() == key).expect("open slots are known");
        if !is_policy_name(&name) {
            let text = format!(
                "{name:?} is no name of a policy\n  remedy: small letters, digits and hyphens, the first one a letter"
            );
            return Err(PyValueError::new_err(text));
        }
        if built_in.iter().any(|other| *other == name) {
            let text = format!("{key} has a built-in policy {name:?}\n  remedy: another name");
            return Err(PyValueError::new_err(text));
        }
        let param = |(name, default, min, max, whole, description): &Param| ParamInfo {
            name: leak(name),
            default: *default,
            min: *min,
            max: *max,
            whole: *whole,
            description: leak(description),
        };
        let info: &'static PolicyInfo = Box::leak(Box::new(PolicyInfo {
            name: leak(&name),
            description: leak(description),
            params: params.iter().map(param).collect::<Vec<_>>().leak(),
        }));
        let choice = OutsideChoice {
            slot: slot.key(),
            policy: outside_policy(slot, info),
            identity: identity.clone(),
        };
        let (file, line) = place;
        Ok(Self { slot, choice, class, name, identity, file, line, copies, params })
    }

    #[getter]
    pub(crate) fn slot(&self) -> &'static str {
        self.slot.key()
    }

    #[getter]
    pub(crate) fn description(&self) -> &'static str {
        self.choice.policy.doc
    }

    /// The arguments of the constructor, for another process.
    #[getter]
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let place = (self.file.clone(), self.line);
        let (name, identity, params) = (self.name.clone(), self.identity.clone(), self.params.clone());
        let all =
            (self.slot.key(), name, self.description(), params, &self.class, identity, place, self.copies);
        all.into_pyobject(py)
    }
}

/// The classes that this process has declared.
static DECLARED: Mutex<Vec<Arc<Py<Policy>>>> = Mutex::new(Vec::new());

fn declared() -> Vec<Arc<Py<Policy>>> {
    DECLARED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Whether this process has declared a class.
pub(crate) fn are_declared() -> bool {
    !DECLARED.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
}

/// Specs that are loaded from now on may name a class. It takes the place of an earlier one with its slot and name.
#[pyfunction]
pub(crate) fn declare_policy(policy: Py<Policy>) {
    let mut all = DECLARED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_same = |other: &Policy| (other.slot, &other.name) == (policy.get().slot, &policy.get().name);
    all.retain(|other| !is_same(other.get()));
    all.push(Arc::new(policy));
}

/// The declared classes.
#[pyfunction]
pub(crate) fn declared_policies(py: Python<'_>) -> Vec<Py<Policy>> {
    declared().iter().map(|policy| policy.clone_ref(py)).collect()
}

/// The policies in Python that a spec may name, and those that it names with their parameters.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) policy: Arc<Py<Policy>>,
    pub(crate) params: Vec<(&'static str, f64)>,
}

/// The classes that a spec may name: `given`, or those that this process has declared.
pub(crate) fn available(given: Option<Vec<Py<Policy>>>) -> Vec<Arc<Py<Policy>>> {
    given.map_or_else(declared, |given| given.into_iter().map(Arc::new).collect())
}

/// The classes as choices of a spec.
pub(crate) fn outside(available: &[Arc<Py<Policy>>], accepts_unloaded: bool) -> Outside {
    let choices = available.iter().map(|policy| policy.get().choice.clone()).collect();
    let remedy = "; a policy in Python is loaded with --policy FILE";
    Outside { choices, accepts_unloaded, remedy }
}

/// The classes that a spec names.
pub(crate) fn chosen(available: &[Arc<Py<Policy>>], loaded: &Loaded) -> Vec<Chosen> {
    let find = |slot: &str, name: &str| {
        available.iter().find(|policy| policy.get().slot.key() == slot && policy.get().name == name)
    };
    let named = loaded.outside().iter();
    let chosen = named.filter_map(|named| {
        let policy = find(&named.slot, named.name)?.clone();
        let own = |(name, _): &&(&str, f64)| policy.get().params.iter().any(|param| param.0 == *name);
        Some(Chosen { params: named.params.iter().filter(own).copied().collect(), policy })
    });
    chosen.collect()
}

/// An error if the spec names a policy that is not loaded.
pub(crate) fn check_loaded(loaded: &Loaded) -> PyResult<()> {
    match loaded.outside().iter().find(|named| named.identity.is_none()) {
        None => Ok(()),
        Some(named) => Err(RunError::new_err(format!(
            "{} = \"{}\" is not loaded, and is no built-in policy\n  remedy: name the file of the policy with --policy \
             FILE, or one of the policies of `nandlab spec policies`",
            named.slot, named.name
        ))),
    }
}

/// The policies of a drive with this seed.
pub(crate) fn make(chosen: &[Chosen], seed: u64) -> Policies {
    let mut policies = Policies::default();
    for chosen in chosen.iter().cloned() {
        let Policy { slot, name, .. } = chosen.policy.get();
        let (slot, name) = (*slot, name.clone());
        let stream = move || Stream::new(seed, slot.key());
        policies = slots::fill(policies, slot, name, move || chosen.clone(), stream);
    }
    policies
}

/// The text of a failure, with the file and the line of the policy that has failed.
pub(crate) fn placed(text: String, failure: &Failure, chosen: &[Chosen]) -> String {
    let Failure::Policy { fault, .. } = failure else { return text };
    let Some(chosen) = chosen.iter().find(|chosen| chosen.policy.get().slot == fault.slot) else {
        return text;
    };
    let place = Python::attach(|py| instance::place_of_decision(py, chosen.policy.get()));
    format!("{place}: {text}")
}

/// Does `work`, a slice of a run; without `policies` in Python, other threads have the interpreter's lock meanwhile.
pub(crate) fn slice<T: Send>(py: Python<'_>, policies: bool, work: impl FnOnce() -> T + Send) -> T {
    if policies { work() } else { py.detach(work) }
}

/// Does `work`; with `policies` in Python, this thread has the interpreter's lock meanwhile. `work` receives a function
/// that it calls now and then, so that other threads get the lock.
pub(crate) fn holding<T>(policies: bool, work: impl FnOnce(&mut dyn FnMut()) -> T) -> T {
    if !policies {
        return work(&mut || ());
    }
    #[allow(clippy::disallowed_methods, reason = "bounds the time for which other threads wait for the lock")]
    let now = Instant::now;
    Python::attach(|py| {
        let mut since = now();
        let mut pause = || {
            if since.elapsed() >= HELD {
                py.detach(std::thread::yield_now);
                since = now();
            }
        };
        work(&mut pause)
    })
}

/// The time for which a thread keeps the interpreter's lock in preconditioning.
const HELD: Duration = Duration::from_millis(50);
