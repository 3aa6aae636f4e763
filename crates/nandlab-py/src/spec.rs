//! Specs, and numbers that follow from a spec without a run: size of the workload, fitted drive, memory.

use crate::errors::{RunError, spec_error, trace_error};
use crate::policy::{self, Chosen, Policy};
use crate::trace::read_as;
use nandlab::base::geometry::Geometry;
use nandlab::drive::spec::{self, Loaded, PreconditionSpec, WorkloadSpec};
use nandlab::host::Op;
use nandlab::runner::memory::Memory;
use nandlab::spec::{Step, key_lines};
use nandlab_trace::TraceError;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex};

#[pyclass(frozen, skip_from_py_object, module = "nandlab._core")]
#[derive(Clone)]
pub(crate) struct Spec {
    pub(crate) loaded: Loaded,
    geometry: Geometry,
    source: Source,
    /// The policies in Python that the spec may name.
    available: Vec<Arc<Py<Policy>>>,
}

/// The arguments with which a spec was loaded, to load it again in another process or with more overrides.
#[derive(Clone)]
struct Source {
    text: String,
    name: String,
    dir: String,
    sets: Vec<String>,
    /// Whether the spec may name policies that are not loaded.
    unloaded: bool,
}

#[pymethods]
impl Spec {
    /// `policies`: the policies in Python that the spec may name; those that this process has declared when absent.
    #[staticmethod]
    #[pyo3(signature = (text, name, dir, sets, policies=None, unloaded=false))]
    fn load(
        py: Python<'_>,
        text: &str,
        name: &str,
        dir: &str,
        sets: Vec<String>,
        policies: Option<Vec<Py<Policy>>>,
        unloaded: bool,
    ) -> PyResult<Self> {
        if policies.is_none() && policy::are_declared() {
            py.import("nandlab.python_policies")?.call_method1("refresh", (text, sets.clone()))?;
        }
        let source =
            Source { text: text.to_owned(), name: name.to_owned(), dir: dir.to_owned(), sets, unloaded };
        Self::read(py, source, policy::available(policies))
    }

    /// This spec with further overrides, in any form that `nandlab.load` takes.
    fn with_(&self, py: Python<'_>, sets: &Bound<'_, PyAny>) -> PyResult<Self> {
        let as_arguments = py.import("nandlab.spec")?.getattr("set_arguments")?;
        let more: Vec<String> = as_arguments.call1((sets,))?.extract()?;
        let mut source = self.source.clone();
        source.sets.extend(more);
        Self::read(py, source, self.available.clone())
    }

    /// The policies in Python that the spec names travel with it.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let Source { text, name, dir, sets, unloaded } = self.source.clone();
        let named = self.policies(py);
        if named.is_empty() {
            let load = py.get_type::<Self>().getattr("load")?;
            return Ok((load, (text, name, dir, sets, (), unloaded).into_pyobject(py)?));
        }
        let module = py.import("nandlab.python_policies")?;
        let packed = module.getattr("packed")?.call1((named,))?;
        Ok((module.getattr("load_packed")?, (packed, text, name, dir, sets, unloaded).into_pyobject(py)?))
    }

    /// Text, name, directory and overrides from which the spec was loaded.
    #[getter]
    fn source(&self) -> (String, String, String, Vec<String>) {
        let Source { text, name, dir, sets, .. } = self.source.clone();
        (text, name, dir, sets)
    }

    /// Whether the spec has a workload.
    #[getter]
    fn has_workload(&self) -> bool {
        self.loaded.spec.workload.is_some()
    }

    /// The policies in Python that the spec names.
    #[getter]
    fn policies(&self, py: Python<'_>) -> Vec<Py<Policy>> {
        self.chosen().iter().map(|chosen| chosen.policy.clone_ref(py)).collect()
    }

    /// Slot and name of the policies that the spec names and that are not loaded.
    #[getter]
    fn unloaded(&self) -> Vec<(String, &'static str)> {
        let named = self.loaded.outside().iter().filter(|named| named.identity.is_none());
        named.map(|named| (named.slot.clone(), named.name)).collect()
    }

    /// The least number of victims that preconditioning by `pts` picks; `None` by another method.
    #[getter]
    fn pts_victims(&self) -> Option<u64> {
        let PreconditionSpec::Pts { rounds_max } = self.loaded.spec.precondition else { return None };
        // A result is steady after five rounds at the earliest. Each round overwrites as many units as there are logical
        // ones. Those that do not fit into the spare space need room, which a superblock without valid units gives most
        // of.
        let Geometry { units, superblocks, logical_units, .. } = self.geometry;
        let written = u64::from(rounds_max.min(5)) * u64::from(logical_units);
        Some(written.saturating_sub((units - logical_units).into()) / u64::from(units / superblocks).max(1))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| {
            let other = &other.get().loaded;
            // Relative paths start at the spec's folder, which the canonical JSON does not contain. So `spec`, which
            // has whole paths, is also compared.
            self.loaded.spec == other.spec && self.loaded.canonical_json() == other.canonical_json()
        })
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.loaded.canonical_json().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("<Spec {} {}>", self.source.name.escape_debug(), self.loaded.hash())
    }

    fn to_toml(&self) -> String {
        self.loaded.to_toml()
    }

    fn canonical_json(&self) -> String {
        self.loaded.canonical_json()
    }

    fn precondition_key(&self) -> Option<String> {
        self.loaded.precondition_key()
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

    /// How the trace of the workload is understood, as JSON; `None` for another workload, and for a trace that can be read
    /// only once.
    fn trace_reading(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let Some(workload) = &self.loaded.spec.workload else { return Ok(None) };
        let found = py.detach(|| read_as(&workload.source)).map_err(|error| trace_error(&error))?;
        Ok(found.map(|found| found.to_string()))
    }

    /// Bytes of a mapping unit, which by default is the page.
    #[getter]
    fn page_bytes(&self) -> u32 {
        self.geometry.unit_bytes
    }
}

impl Spec {
    fn read(py: Python<'_>, source: Source, available: Vec<Arc<Py<Policy>>>) -> PyResult<Self> {
        let outside = policy::outside(&available, source.unloaded);
        let Source { text, name, dir, sets, .. } = &source;
        let loaded = spec::load_with(text, name, Path::new(dir), sets, &outside);
        let loaded = loaded.map_err(|errors| spec_error(py, &errors))?;
        let geometry = loaded.spec.geometry();
        Ok(Self { loaded, geometry, source, available })
    }

    /// The policies in Python that the spec names, with their parameters.
    pub(crate) fn chosen(&self) -> Vec<Chosen> {
        policy::chosen(&self.available, &self.loaded)
    }

    /// The workload; an error if the spec has no workload.
    pub(crate) fn workload(&self) -> PyResult<&WorkloadSpec> {
        self.loaded.spec.workload.as_ref().ok_or_else(|| {
            RunError::new_err(
                "the spec has no [workload]\n  remedy: add one, for example [workload] synthetic = { requests = 100_000, \
                 read_fraction = 0.5, size = \"4KiB\", address = \"uniform\" }",
            )
        })
    }
}

/// The number of requests in the workload of a spec, the number of bytes that the requests write, and the highest
/// offset at which a request ends, in bytes.
#[pyfunction]
pub(crate) fn workload_facts(py: Python<'_>, spec: &Spec) -> PyResult<(u64, u64, u64)> {
    /// Number of requests between two checks for signals.
    const CHUNK: u32 = 1 << 16;
    let Spec { loaded, geometry, .. } = spec;
    let workload = spec.workload()?;
    // A run of the fitted drive reads the workload again.
    nandlab_trace::read_again(&workload.source, "spec fit").map_err(|error| trace_error(&error))?;
    let kept = nandlab_trace::KeptTraces::from_environment();
    let open = || nandlab_trace::open(workload, geometry.logical_bytes(), loaded.spec.seed, kept.as_ref());
    let source = Mutex::new(py.detach(open).map_err(|error| trace_error(&error))?);
    let (mut requests, mut written, mut end) = (0, 0, 0);
    loop {
        let mut read_on = || {
            let mut source = source.lock().expect("only this thread locks the source");
            for _ in 0..CHUNK {
                let Some(request) = source.next_request() else { return Ok(false) };
                let request = request?;
                requests += 1;
                written += if request.op == Op::Write { request.len } else { 0 };
                end = end.max(request.offset.saturating_add(request.len));
            }
            Ok(true)
        };
        let goes_on = py.detach(&mut read_on).map_err(|error: TraceError| trace_error(&error))?;
        if !goes_on {
            return Ok((requests, written, end));
        }
        py.check_signals()?;
    }
}

/// Scales the drive of a spec so that its spare bytes are at most `bytes / times`. Returns `drive.blocks_per_plane`,
/// `drive.op` and the spare bytes of the largest such drive; `None` if there is no such drive.
#[pyfunction]
pub(crate) fn fit_to_writes(py: Python<'_>, spec: &Spec, bytes: u64, times: f64) -> Option<(u32, f64, u64)> {
    let fitted = py.detach(|| nandlab::drive::spec::fit_to_writes(&spec.loaded.spec, bytes, times))?;
    Some((fitted.blocks_per_plane, fitted.op, fitted.spare_bytes))
}

/// The paths of all keys and all items of lists in a TOML text, each with the line where it first occurs.
#[pyfunction]
pub(crate) fn toml_lines<'py>(
    py: Python<'py>,
    text: &str,
    name: &str,
) -> PyResult<Vec<(Bound<'py, PyTuple>, u32)>> {
    let lines = key_lines(text, name).map_err(|errors| spec_error(py, &errors))?;
    let step = |step: &Step| match step {
        Step::Name(name) => name.into_bound_py_any(py),
        Step::Index(index) => index.into_bound_py_any(py),
    };
    let row = |(path, line): &(Vec<Step>, u32)| {
        let steps = path.iter().map(step).collect::<PyResult<Vec<_>>>()?;
        Ok((PyTuple::new(py, steps)?, *line))
    };
    lines.iter().map(row).collect()
}

#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

#[pyfunction]
pub(crate) fn schema() -> String {
    serde_json::to_string_pretty(&spec::schema()).expect("a JSON value is serializable")
}

#[pyfunction]
pub(crate) fn presets() -> Vec<(&'static str, &'static str)> {
    spec::presets().to_vec()
}

#[pyfunction]
pub(crate) fn policies(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let row = |slot: &str, name: &str, description: &str| {
        let dict = PyDict::new(py);
        dict.set_item("slot", slot)?;
        dict.set_item("name", name)?;
        dict.set_item("description", description)?;
        PyResult::Ok(dict)
    };
    let mut rows = Vec::new();
    let mut declared = policy::available(None);
    let built_in = spec::policies();
    for (number, one) in built_in.iter().enumerate() {
        rows.push(row(&one.slot, one.name, one.description)?);
        // The policies in Python follow the built-in ones of their slot.
        if built_in.get(number + 1).is_none_or(|next| next.slot != one.slot) {
            for policy in declared.extract_if(.., |policy| policy.get().slot() == one.slot) {
                let policy = policy.get();
                rows.push(row(policy.slot(), &policy.name, policy.description())?);
            }
        }
    }
    Ok(rows)
}

/// Bytes of memory and of address space that a run takes, and a remedy with the keys that reduce the memory; with `serve`
/// those of the drive when it is served, without the data of its clients, and with `explain` with what explains its requests.
#[pyfunction]
#[pyo3(signature = (spec, verify=false, serve=false, explain=false))]
pub(crate) fn memory_needed(
    spec: &Spec,
    verify: bool,
    serve: bool,
    explain: bool,
) -> (u64, u64, &'static str) {
    let spec = &spec.loaded.spec;
    #[cfg(unix)]
    if serve {
        let [resident, reserved] =
            nandlab_live::simulated::Simulated::memory(spec, explain.then_some(crate::serve::EXPLAINED));
        return (
            resident,
            reserved,
            "a smaller drive: drive.blocks_per_plane, or larger units: ftl.mapping_unit",
        );
    }
    #[cfg(not(unix))]
    let _ = (serve, explain);
    let memory = Memory::of(spec, verify);
    (memory.total(), Memory::reserved(spec, verify).total(), memory.remedy())
}
