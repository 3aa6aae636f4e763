//! Preconditioned drives that runs of one process share.

use nandlab::drive::Preconditioned;
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// The largest number of units of all drives that are kept: the copy of a drive takes 9 to 25 bytes for each unit.
pub(crate) const UNITS_MAX: u32 = 1 << 25;

/// The states of preconditioned drives, the oldest one first. All have the key of the spec that was preconditioned last;
/// they differ in what other settings make of array and FTL.
#[derive(Debug, Default)]
pub(crate) struct KeptDrives(Mutex<(String, VecDeque<Arc<Preconditioned>>)>);

impl KeptDrives {
    /// The states kept under `key`. Those of another key are dropped, to make room for the one that the caller will put.
    pub(crate) fn of(&self, key: &str) -> Vec<Arc<Preconditioned>> {
        let Ok(mut kept) = self.0.lock() else { return Vec::new() };
        if kept.0 != key {
            *kept = (key.to_owned(), VecDeque::new());
        }
        kept.1.iter().cloned().collect()
    }

    /// Keeps a state under the key of the last call of [`KeptDrives::of`].
    pub(crate) fn put(&self, state: Preconditioned) {
        if let Ok(mut kept) = self.0.lock() {
            kept.1.push_back(Arc::new(state));
            while kept.1.iter().map(|state| u64::from(state.units())).sum::<u64>() > UNITS_MAX.into() {
                kept.1.pop_front();
            }
        }
    }

    fn clear(&self) {
        if let Ok(mut kept) = self.0.lock() {
            *kept = Default::default();
        }
    }
}

#[pyclass(frozen, module = "nandlab._core")]
#[derive(Debug, Default)]
pub(crate) struct SharedDrives(pub(crate) Arc<KeptDrives>);

#[pymethods]
impl SharedDrives {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// The key of the drives, and their number.
    #[getter]
    fn kept(&self) -> (String, usize) {
        self.0.0.lock().map_or_else(|_| Default::default(), |kept| (kept.0.clone(), kept.1.len()))
    }

    fn clear(&self) {
        self.0.clear();
    }
}
