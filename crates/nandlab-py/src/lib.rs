//! The Python binding of nandlab: thin wrappers around the core.
//!
//! The types of all classes and functions are in `python/nandlab/_core.pyi`.
#![allow(missing_docs, reason = "documented on the Python side")]

mod any_drive;
mod batch;
mod codec;
mod drive;
mod errors;
mod interrupt;
mod kept_drives;
mod parquet;
mod policy;
mod power_test;
mod reliability;
mod replay;
mod run;
mod serve;
mod shared;
mod simulation;
mod spec;
mod tables;
mod trace;
mod versions;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("NandlabError", py.get_type::<errors::NandlabError>())?;
    module.add("SpecError", py.get_type::<errors::SpecError>())?;
    module.add("TraceError", py.get_type::<errors::TraceError>())?;
    module.add("RunError", py.get_type::<errors::RunError>())?;
    module.add_class::<codec::Codec>()?;
    module.add_class::<spec::Spec>()?;
    module.add_class::<run::Run>()?;
    module.add_class::<replay::Replay>()?;
    #[cfg(unix)]
    module.add_class::<power_test::Cutter>()?;
    #[cfg(target_os = "linux")]
    module.add_class::<power_test::ImageServer>()?;
    module.add_function(wrap_pyfunction!(power_test::recording_moments, module)?)?;
    module.add_function(wrap_pyfunction!(replay::recording_header, module)?)?;
    module.add_class::<policy::Policy>()?;
    module.add_class::<policy::Random>()?;
    module.add_class::<policy::Lane>()?;
    module.add_class::<policy::Cache>()?;
    module.add_class::<policy::CacheCounts>()?;
    module.add_class::<policy::FlashRead>()?;
    module.add_function(wrap_pyfunction!(policy::declare_policy, module)?)?;
    module.add_function(wrap_pyfunction!(policy::declared_policies, module)?)?;
    module.add_class::<run::Outcome>()?;
    module.add_class::<shared::SharedDrives>()?;
    module.add_class::<drive::Drive>()?;
    module.add_function(wrap_pyfunction!(serve::serve, module)?)?;
    module.add_function(wrap_pyfunction!(spec::toml_lines, module)?)?;
    module.add_function(wrap_pyfunction!(spec::version, module)?)?;
    module.add_function(wrap_pyfunction!(spec::schema, module)?)?;
    module.add_function(wrap_pyfunction!(run::result_schema, module)?)?;
    module.add_function(wrap_pyfunction!(spec::workload_facts, module)?)?;
    module.add_function(wrap_pyfunction!(spec::fit_to_writes, module)?)?;
    module.add_function(wrap_pyfunction!(spec::memory_needed, module)?)?;
    module.add_function(wrap_pyfunction!(spec::presets, module)?)?;
    module.add_function(wrap_pyfunction!(spec::policies, module)?)?;
    module.add_function(wrap_pyfunction!(parquet::parquet_file, module)?)?;
    module.add_function(wrap_pyfunction!(reliability::reliability, module)?)?;
    module.add_function(wrap_pyfunction!(reliability::voltages, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_stat, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_stat_by_device, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_convert, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_formats, module)?)?;
    module.add_function(wrap_pyfunction!(trace::profiles, module)?)?;
    module.add_function(wrap_pyfunction!(trace::kept_traces, module)?)?;
    module.add_function(wrap_pyfunction!(kept_drives::kept_drives, module)?)?;
    module.add_function(wrap_pyfunction!(kept_drives::build_identity, module)?)?;
    Ok(())
}
