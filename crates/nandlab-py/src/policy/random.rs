//! The random stream of a policy.

use nandlab::base::rng::Stream;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A random stream that follows from the seed of the run and the slot.
#[pyclass(module = "nandlab._core")]
pub(crate) struct Random(pub(crate) Stream);

#[pymethods]
impl Random {
    /// Draws 64 uniform bits.
    fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Draws a uniform whole number from 0, below `n`.
    fn below(&mut self, n: u64) -> PyResult<u64> {
        if n == 0 {
            return Err(PyValueError::new_err("below: expected at least 1, found 0"));
        }
        Ok(self.0.below(n))
    }

    /// Draws a uniform number from 0, below 1.
    fn unit(&mut self) -> f64 {
        self.0.unit()
    }

    fn __copy__(&self) -> Self {
        Self(self.0.clone())
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        Self(self.0.clone())
    }
}
