//! The events of a policy's slot, which are delivered in batches before the decision that follows them.

use super::instance::Instance;
use nandlab::base::policy::PolicyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The events that wait for delivery, in their order.
#[derive(Clone, Default)]
pub(crate) struct Batch {
    kinds: Vec<u8>,
    keys: Vec<u32>,
    values: Vec<u32>,
}

/// The largest number of events that wait. A full batch is delivered at once.
const MAX: usize = 1 << 14;

/// The hooks of a policy, in the order of the kinds of events.
pub(crate) struct Hooks {
    /// `on_events`, which takes a batch in one call.
    batch: Option<Py<PyAny>>,
    /// The hook of each kind, which takes one event; `None` for a kind that the policy does not watch.
    single: Vec<Option<Py<PyAny>>>,
}

impl Hooks {
    /// The hooks of an object: `on_events`, or else those called `names`.
    pub(crate) fn of(object: &Bound<'_, PyAny>, names: &[&str]) -> Self {
        let hook = |name: &str| object.getattr(name).ok().map(Bound::unbind);
        match hook("on_events") {
            Some(batch) => Self { batch: Some(batch), single: Vec::new() },
            None => Self { batch: None, single: names.iter().map(|name| hook(name)).collect() },
        }
    }

    /// Whether the policy has a hook for events of a kind.
    #[inline]
    pub(crate) fn watch(&self, kind: u8) -> bool {
        self.batch.is_some() || self.single.get(usize::from(kind)).is_some_and(Option::is_some)
    }
}

impl Batch {
    /// Adds an event; returns whether the batch is full.
    #[inline]
    pub(crate) fn add(&mut self, kind: u8, key: u32, value: u32) -> bool {
        self.kinds.push(kind);
        self.keys.push(key);
        self.values.push(value);
        self.kinds.len() >= MAX
    }

    /// Delivers all events.
    pub(crate) fn deliver(
        &mut self,
        py: Python<'_>,
        to: &Instance,
        hooks: &Hooks,
    ) -> Result<(), PolicyError> {
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
