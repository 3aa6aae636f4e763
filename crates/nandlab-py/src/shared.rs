//! Preconditioned drives that runs of one process share.

use nandlab::drive::Preconditioned;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};

/// The largest drive that is shared, in mapping units: its copy takes 9 to 25 bytes each.
pub(crate) const PAGES_MAX: u32 = 1 << 25;

/// The state of the drive that was preconditioned last, with the key of its spec.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<Option<(String, Arc<Preconditioned>)>>);

impl Kept {
    /// The state kept under `key`. Another state is dropped, to make room for the one that the caller will put.
    pub(crate) fn get_or_drop(&self, key: &str) -> Option<Arc<Preconditioned>> {
        let mut kept = self.0.lock().ok()?;
        if kept.as_ref().is_some_and(|(of, _)| of != key) {
            *kept = None;
        }
        kept.as_ref().map(|(_, state)| state.clone())
    }

    fn clear(&self) {
        if let Ok(mut kept) = self.0.lock() {
            *kept = None;
        }
    }

    pub(crate) fn put(&self, key: String, state: Preconditioned) {
        if let Ok(mut kept) = self.0.lock() {
            *kept = Some((key, Arc::new(state)));
        }
    }
}

#[pyclass(frozen, module = "nandlab._core")]
#[derive(Debug, Default)]
pub(crate) struct SharedDrives(pub(crate) Arc<Kept>);

#[pymethods]
impl SharedDrives {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    #[getter]
    fn key(&self) -> Option<String> {
        self.0.0.lock().ok()?.as_ref().map(|(key, _)| key.clone())
    }

    fn clear(&self) {
        self.0.clear();
    }
}
