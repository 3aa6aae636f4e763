//! The events of a policy's slot, which are delivered in batches before the decision that follows them.

use super::instance::Instance;
use nandlab::base::policy::PolicyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The events that wait for delivery, in their order.
#[derive(Clone, Debug, Default)]
struct Batch {
    kinds: Vec<u8>,
    keys: Vec<u32>,
    values: Vec<u32>,
}

/// The largest number of events that wait. A full batch is delivered at once.
const MAX: usize = 1 << 14;

/// The hooks of a policy, in the order of the kinds of events.
#[derive(Debug)]
struct Hooks {
    /// `on_events`, which takes a batch in one call.
    batch: Option<Py<PyAny>>,
    /// The hook of each kind, which takes one event; `None` for a kind that the policy does not watch.
    single: Vec<Option<Py<PyAny>>>,
}

impl Hooks {
    /// The hooks of an object: `on_events`, or else those called `names`.
    fn of(object: &Bound<'_, PyAny>, names: &[&str]) -> Self {
        let hook = |name: &str| object.getattr(name).ok().map(Bound::unbind);
        match hook("on_events") {
            Some(batch) => Self { batch: Some(batch), single: Vec::new() },
            None => Self { batch: None, single: names.iter().map(|name| hook(name)).collect() },
        }
    }

    /// Whether the policy has a hook for events of a kind.
    #[inline]
    fn watch(&self, kind: u8) -> bool {
        self.batch.is_some() || self.single.get(usize::from(kind)).is_some_and(Option::is_some)
    }
}

impl Batch {
    /// Adds an event; returns whether the batch is full.
    #[inline]
    fn add(&mut self, kind: u8, key: u32, value: u32) -> bool {
        self.kinds.push(kind);
        self.keys.push(key);
        self.values.push(value);
        self.kinds.len() >= MAX
    }

    /// Delivers all events.
    fn deliver(&mut self, py: Python<'_>, to: &Instance, hooks: &Hooks) -> Result<(), PolicyError> {
        if self.kinds.is_empty() {
            return Ok(());
        }
        let Self { kinds, keys, values } = std::mem::take(self);
        let call = || -> PyResult<()> {
            if let Some(hook) = &hooks.batch {
                let numpy = py.import("numpy")?;
                let array = |bytes: Vec<u8>, dtype: &str| {
                    numpy.call_method1("frombuffer", (PyBytes::new(py, &bytes), dtype))
                };
                let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect();
                let (keys, values) = (array(words(&keys), "u4")?, array(words(&values), "u4")?);
                hook.call1(py, (array(kinds.clone(), "u1")?, keys, values))?;
                return Ok(());
            }
            for ((kind, key), value) in kinds.iter().zip(&keys).zip(&values) {
                if let Some(hook) = &hooks.single[usize::from(*kind)] {
                    hook.call1(py, (*key, *value))?;
                }
            }
            Ok(())
        };
        call().map_err(|error| to.failed(py, error))
    }
}

/// An object of a policy's class with the events that it watches.
#[derive(Debug)]
pub(crate) struct Watching {
    pub(crate) instance: Instance,
    hooks: Hooks,
    events: Batch,
    /// The error of a hook, which the next decision passes on.
    failed: Option<PolicyError>,
}

impl Watching {
    /// `instance`, whose hooks for the kinds of events are called `names`.
    pub(crate) fn new(py: Python<'_>, instance: Instance, names: &[&str]) -> Self {
        let hooks = Hooks::of(instance.object(py), names);
        Self { instance, hooks, events: Batch::default(), failed: None }
    }

    /// A copy of the object with its state, and of the events that wait.
    pub(crate) fn copy(&self, py: Python<'_>, names: &[&str]) -> Self {
        let copy = Self::new(py, self.instance.copy(py), names);
        Self { events: self.events.clone(), failed: self.failed.clone(), ..copy }
    }

    /// Whether the policy has a hook.
    pub(crate) fn watches(&self) -> bool {
        self.hooks.batch.is_some() || self.hooks.single.iter().any(Option::is_some)
    }

    /// An event, if the policy has a hook for its kind.
    #[inline]
    pub(crate) fn add(&mut self, kind: u8, key: u32, value: u32) {
        if self.hooks.watch(kind) && self.events.add(kind, key, value) {
            let delivered = Python::attach(|py| self.events.deliver(py, &self.instance, &self.hooks));
            self.failed = delivered.err().or(self.failed.take());
        }
    }

    /// Delivers the events before a decision; an error of the object or of a hook.
    pub(crate) fn before_decision(&mut self, py: Python<'_>) -> Result<(), PolicyError> {
        self.instance.check(py)?;
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.events.deliver(py, &self.instance, &self.hooks),
        }
    }
}
