//! Specs.

use crate::errors::spec_error;
use nandlab::geometry::Geometry;
use nandlab::spec::{self, Loaded};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::Path;

#[pyclass(frozen, skip_from_py_object, module = "nandlab._core")]
#[derive(Clone)]
pub(crate) struct Spec {
    pub(crate) loaded: Loaded,
    geometry: Geometry,
}

#[pymethods]
impl Spec {
    #[staticmethod]
    fn load(py: Python<'_>, text: &str, name: &str, dir: &str, sets: Vec<String>) -> PyResult<Self> {
        let loaded =
            spec::load(text, name, Path::new(dir), &sets).map_err(|errors| spec_error(py, &errors))?;
        let geometry = Geometry::new(&loaded.spec.drive);
        Ok(Self { loaded, geometry })
    }

    fn to_toml(&self) -> String {
        self.loaded.to_toml()
    }

    fn canonical_json(&self) -> String {
        self.loaded.canonical_json()
    }

    #[getter]
    fn hash(&self) -> String {
        self.loaded.hash()
    }

    #[getter]
    fn logical_bytes(&self) -> u64 {
        self.geometry.logical_bytes()
    }

    #[getter]
    fn raw_bytes(&self) -> u64 {
        self.geometry.raw_bytes()
    }

    #[getter]
    fn page_bytes(&self) -> u32 {
        self.geometry.page_bytes
    }
}

#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

#[pyfunction]
pub(crate) fn schema() -> String {
    serde_json::to_string_pretty(&spec::schema()).expect("a JSON value prints")
}

#[pyfunction]
pub(crate) fn presets() -> Vec<(&'static str, &'static str)> {
    spec::presets().to_vec()
}

#[pyfunction]
pub(crate) fn policies(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let rows = spec::policies().into_iter().map(|row| {
        let dict = PyDict::new(py);
        dict.set_item("slot", row.slot)?;
        dict.set_item("name", row.name)?;
        dict.set_item("description", row.description)?;
        Ok(dict)
    });
    rows.collect()
}
