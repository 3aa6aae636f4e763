//! The events of a policy's slot, which are delivered in batches before the decision that follows them.

use super::instance::Instance;
use super::memory::references;
use nandlab::base::policy::PolicyError;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PySlice;
use std::cell::Cell;

/// The events that wait for delivery, in their order.
#[derive(Clone, Debug, Default)]
struct Batch {
    kinds: Vec<u8>,
    keys: Vec<u32>,
    values: Vec<u32>,
}

/// The largest number of events that wait. A full batch is delivered at once.
const MAX: usize = 1 << 14;

/// Arrays of numpy into which batches are copied, because making an array costs more than a short batch. A batch whose
/// arrays Python has kept leaves them to Python.
#[derive(Debug)]
struct Arrays {
    whole: [Py<PyAny>; 3],
    kinds: PyBuffer<u8>,
    keys: PyBuffer<u32>,
    values: PyBuffer<u32>,
    /// By length, the first entries of the arrays, for short batches.
    short: Vec<Option<[Py<PyAny>; 3]>>,
}

/// Batches below this length have arrays of their own.
const SHORT: usize = 64;

impl Arrays {
    fn new(py: Python<'_>) -> PyResult<Self> {
        let empty = py.import("numpy")?.getattr("empty")?;
        let [kinds, keys, values] =
            [empty.call1((MAX, "u1"))?, empty.call1((MAX, "u4"))?, empty.call1((MAX, "u4"))?];
        Ok(Self {
            kinds: PyBuffer::get(&kinds)?,
            keys: PyBuffer::get(&keys)?,
            values: PyBuffer::get(&values)?,
            whole: [kinds, keys, values].map(Bound::unbind),
            short: (0..SHORT).map(|_| None).collect(),
        })
    }

    /// The first `len` entries.
    fn first<'py>(&mut self, py: Python<'py>, len: usize) -> PyResult<[Bound<'py, PyAny>; 3]> {
        let slice = || -> PyResult<[Bound<'py, PyAny>; 3]> {
            let range = PySlice::new(py, 0, len as isize, 1);
            let [kinds, keys, values] = &self.whole;
            let of = |array: &Py<PyAny>| array.bind(py).get_item(&range);
            Ok([of(kinds)?, of(keys)?, of(values)?])
        };
        let Some(short) = self.short.get_mut(len) else { return slice() };
        if short.is_none() {
            *short = Some(slice()?.map(Bound::unbind));
        }
        let short = short.as_ref().expect("it has been made");
        Ok(std::array::from_fn(|number| short[number].bind(py).clone()))
    }

    /// The references to the arrays, and to those of batches of the length `len`.
    fn references(&self, py: Python<'_>, len: usize) -> usize {
        let short = self.short.get(len).and_then(Option::as_ref);
        self.whole.iter().chain(short.into_iter().flatten()).map(|array| references(array.bind(py))).sum()
    }

    fn copy<T: Copy + pyo3::buffer::Element>(py: Python<'_>, from: &[T], to: &PyBuffer<T>) {
        let cells: &[Cell<T>] = to.as_mut_slice(py).expect("the array is whole and writable");
        from.iter().zip(cells).for_each(|(&value, cell)| cell.set(value));
    }

    /// Calls `hook` with a batch. Returns whether Python has kept no array.
    fn call(&mut self, py: Python<'_>, hook: &Py<PyAny>, batch: &Batch) -> PyResult<bool> {
        let len = batch.kinds.len();
        Self::copy(py, &batch.kinds, &self.kinds);
        Self::copy(py, &batch.keys, &self.keys);
        Self::copy(py, &batch.values, &self.values);
        let [kinds, keys, values] = self.first(py, len)?;
        let before = self.references(py, len);
        hook.call1(py, (kinds, keys, values))?;
        // The three arrays of a short batch have been dropped, and so have the references of a long one to the whole.
        Ok(self.references(py, len) + 3 == before)
    }
}

/// The hooks of a policy, in the order of the kinds of events.
#[derive(Debug)]
struct Hooks {
    /// `on_events`, which takes a batch in one call.
    batch: Option<Py<PyAny>>,
    /// The arrays of the batches.
    arrays: Option<Arrays>,
    /// The hook of each kind, which takes one event; `None` for a kind that the policy does not watch.
    single: Vec<Option<Py<PyAny>>>,
}

impl Hooks {
    /// The hooks of an object: `on_events`, or else those called `names`.
    fn of(object: &Bound<'_, PyAny>, names: &[&str]) -> Self {
        let hook = |name: &str| object.getattr(name).ok().map(Bound::unbind);
        match hook("on_events") {
            Some(batch) => Self { batch: Some(batch), arrays: None, single: Vec::new() },
            None => Self { batch: None, arrays: None, single: names.iter().map(|name| hook(name)).collect() },
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
    fn deliver(&mut self, py: Python<'_>, to: &Instance, hooks: &mut Hooks) -> Result<(), PolicyError> {
        if self.kinds.is_empty() {
            return Ok(());
        }
        let delivered = self.call(py, hooks);
        self.kinds.clear();
        self.keys.clear();
        self.values.clear();
        delivered.map_err(|error| to.failed(py, error))
    }

    /// Calls the hooks for all events.
    fn call(&self, py: Python<'_>, hooks: &mut Hooks) -> PyResult<()> {
        if let Some(hook) = &hooks.batch {
            let mut arrays = match hooks.arrays.take() {
                Some(arrays) => arrays,
                None => Arrays::new(py)?,
            };
            if arrays.call(py, hook, self)? {
                hooks.arrays = Some(arrays);
            }
            return Ok(());
        }
        for ((kind, key), value) in self.kinds.iter().zip(&self.keys).zip(&self.values) {
            if let Some(hook) = &hooks.single[usize::from(*kind)] {
                hook.call1(py, (*key, *value))?;
            }
        }
        Ok(())
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
            let delivered = Python::attach(|py| self.events.deliver(py, &self.instance, &mut self.hooks));
            self.failed = delivered.err().or(self.failed.take());
        }
    }

    /// Delivers the events before a decision; an error of the object or of a hook.
    pub(crate) fn before_decision(&mut self, py: Python<'_>) -> Result<(), PolicyError> {
        self.instance.check(py)?;
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.events.deliver(py, &self.instance, &mut self.hooks),
        }
    }
}
