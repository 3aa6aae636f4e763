//! Statistics of traces, and conversion between trace formats.

use crate::errors::{TraceError, trace_error};
use nandlab::base::units::{DAY, Span};
use nandlab::drive::spec::{
    Arrival, Beyond, DeviceChoice, Only, Part, ProfileSpec, SKIPPED_MAX, Source, TraceFormat, TraceSpec,
    Window, WorkloadSpec,
};
use nandlab::spec::Listed;
use nandlab_trace::{ConvertOptions, KeptTraces};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Logical capacity for profiles if no drive is given: 4 TiB, which is above the footprint of every profile.
const AMPLE_BYTES: u64 = 1 << 42;

#[derive(Default)]
struct Options {
    format: Option<TraceFormat>,
    device: Option<DeviceChoice>,
    part: Part,
    lenient: Option<f64>,
    time_unit_ns: Option<f64>,
    max_gap_ns: Option<Span>,
    profile: Option<String>,
    requests: Option<u64>,
    logical_bytes: Option<u64>,
    seed: Option<u64>,
    drop: bool,
}

impl Options {
    /// The options in a dict; a value of `None` counts as absent.
    fn from_dict(dict: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut options = Self::default();
        for (key, value) in dict {
            if value.is_none() {
                continue;
            }
            match key.extract::<&str>()? {
                "format" => options.format = Some(TraceFormat::Named(value.extract()?)),
                "columns" => options.format = Some(TraceFormat::Columns(value.extract()?)),
                "device" => options.device = Some(device(&value)?),
                "only" => options.part.only = Some(only(value.extract()?)?),
                "window" => options.part.window = Some(window(value.extract()?)?),
                "lenient" => options.lenient = at_most(&value)?,
                "time_unit" => options.time_unit_ns = Some(unit_ns(value.extract()?)?),
                "max_gap" => options.max_gap_ns = Some(span("max_gap", value.extract()?)?),
                "profile" => options.profile = value.extract()?,
                "requests" => options.requests = value.extract()?,
                "logical_bytes" => options.logical_bytes = value.extract()?,
                "seed" => options.seed = value.extract()?,
                "drop" => options.drop = value.extract()?,
                other => return Err(PyValueError::new_err(format!("unknown option {other:?}"))),
            }
        }
        Ok(options)
    }
}

/// The largest share of records that may be skipped: of `True`, or a number.
fn at_most(value: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    if let Ok(lenient) = value.extract::<bool>() {
        return Ok(lenient.then_some(SKIPPED_MAX));
    }
    match value.extract::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(Some(share)),
        _ => Err(TraceError::new_err(format!(
            "lenient: expected True, False or a share of the records, found {}\n  remedy: give a number from 0 to 1, \
             such as 0.3",
            quoted(&value.to_string())
        ))),
    }
}

/// The choice of devices: the name of one, `concatenate`, or a list of names.
fn device(value: &Bound<'_, PyAny>) -> PyResult<DeviceChoice> {
    Ok(match value.extract::<String>() {
        Ok(name) if name == "concatenate" => DeviceChoice::Concatenate,
        Ok(name) => DeviceChoice::One(name),
        Err(_) => DeviceChoice::These(value.extract()?),
    })
}

fn only(name: &str) -> PyResult<Only> {
    Only::ALL.iter().copied().find(|only| only.choice().name == name).ok_or_else(|| {
        let text =
            format!("only: expected reads or writes, found {}\n  remedy: use reads or writes", quoted(name));
        TraceError::new_err(text)
    })
}

/// The window from one time to another; without the second, to the end of the trace.
fn window((from, to): (String, Option<String>)) -> PyResult<Window> {
    let from = span("window", &from)?;
    let to = to.map(|to| span("window", &to)).transpose()?;
    if to.is_some_and(|to| from >= to) {
        return Err(TraceError::new_err(
            "window: the window ends before it begins\n  remedy: give a window such as 1h..2h",
        ));
    }
    Ok(Window { from, to })
}

/// Parses a length of time, such as "30d", of the option `name`.
fn span(name: &str, text: &str) -> PyResult<Span> {
    nandlab::spec::span(text).ok_or_else(|| {
        TraceError::new_err(format!(
            "{name}: expected a length of time, found {}\n  remedy: give a number and its unit, such as 30d",
            quoted(text)
        ))
    })
}

/// A text quoted for a message: at most its first 40 characters.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{:?}", format!("{}...", &text[..end])),
        None => format!("{text:?}"),
    }
}

/// The length of a unit of time in nanoseconds.
fn unit_ns(name: &str) -> PyResult<f64> {
    match name.trim_start_matches('1') {
        "ps" => Ok(1e-3),
        "ns" => Ok(1.0),
        "us" => Ok(1e3),
        "ms" => Ok(1e6),
        "s" => Ok(1e9),
        _ => Err(TraceError::new_err(format!(
            "time_unit: expected a unit of time, found {}\n  remedy: use ps, ns, us, ms or s",
            quoted(name)
        ))),
    }
}

/// The trace file `name`.
fn trace_spec(name: &str, options: &Options) -> TraceSpec {
    TraceSpec {
        format: options.format.clone(),
        device: options.device.clone(),
        lenient: options.lenient,
        time_unit_ns: options.time_unit_ns,
        max_gap_ns: options.max_gap_ns.unwrap_or(DAY),
        part: options.part,
        ..TraceSpec::new(name)
    }
}

/// How a trace is understood, as JSON; `None` for a trace that can be read only once, such as a pipe, and for another
/// source.
pub(crate) fn read_as(source: &Source) -> Result<Option<serde_json::Value>, nandlab_trace::TraceError> {
    let Source::Trace(trace) = source else { return Ok(None) };
    if !std::fs::metadata(&trace.path).is_ok_and(|meta| meta.is_file()) {
        return Ok(None);
    }
    Ok(Some(nandlab_trace::reading(trace, None)?.to_json()))
}

fn open(name: &str, options: &Options) -> Result<Box<dyn nandlab_trace::Source>, nandlab_trace::TraceError> {
    let source = if let Some(profile) = &options.profile {
        Source::Profile(ProfileSpec { name: profile.clone(), requests: options.requests })
    } else {
        Source::Trace(trace_spec(name, options))
    };
    let workload = WorkloadSpec {
        requests_max: if options.profile.is_some() { 0 } else { options.requests.unwrap_or(0) },
        source,
        arrival: Arrival::Trace { time_scale: 1.0 },
        beyond: Beyond::Wrap,
        whole_pages: false,
        warm_up: 0,
        repeat: 1,
    };
    nandlab_trace::open(
        &workload,
        options.logical_bytes.unwrap_or(AMPLE_BYTES),
        options.seed.unwrap_or(1),
        KeptTraces::from_environment().as_ref(),
    )
}

#[pyfunction]
pub(crate) fn trace_stat(py: Python<'_>, path: &str, options: &Bound<'_, PyDict>) -> PyResult<String> {
    let options = Options::from_dict(options)?;
    py.detach(|| {
        let mut source = open(path, &options)?;
        let mut found = nandlab_trace::stat(&mut *source)?.to_json();
        if options.profile.is_none() {
            found["read_as"] = read_as(&Source::Trace(trace_spec(path, &options)))?.into();
        }
        Ok(found.to_string())
    })
    .map_err(|error| trace_error(&error))
}

/// Statistics of each device of a trace file.
#[pyfunction]
pub(crate) fn trace_stat_by_device(
    py: Python<'_>,
    path: &str,
    options: &Bound<'_, PyDict>,
) -> PyResult<String> {
    let options = Options::from_dict(options)?;
    py.detach(|| {
        let stats =
            nandlab_trace::stat_by_device(&trace_spec(path, &options), options.requests.unwrap_or(0))?;
        let rows: Vec<_> = stats.iter().map(nandlab_trace::DeviceStat::to_json).collect();
        Ok(serde_json::Value::from(rows).to_string())
    })
    .map_err(|error| trace_error(&error))
}

/// Converts the trace `src` to `format`, written to `dst`; the caller renames the file after success.
#[pyfunction]
pub(crate) fn trace_convert(
    py: Python<'_>,
    src: &str,
    dst: &str,
    format: &str,
    options: &Bound<'_, PyDict>,
) -> PyResult<String> {
    let options = Options::from_dict(options)?;
    py.detach(|| {
        let mut source = open(src, &options).map_err(|error| trace_error(&error))?;
        let mut out = BufWriter::new(File::create(dst)?);
        let how = ConvertOptions { drop: options.drop };
        let done = nandlab_trace::convert(&mut *source, &mut out, format, how)
            .map_err(|error| trace_error(&error))?;
        out.flush()?;
        Ok(serde_json::json!({
            "written": done.written,
            "trims_dropped": done.trims_dropped,
            "flushes_dropped": done.flushes_dropped,
            "misfits_dropped": done.misfits_dropped,
            "fua_lost": done.fua_lost,
            "placements_lost": done.placements_lost,
            "times_rounded": done.times_rounded,
            "notes": source.notes(),
        })
        .to_string())
    })
}

#[pyfunction]
pub(crate) fn trace_formats() -> Vec<(&'static str, &'static str)> {
    nandlab_trace::formats().map(|format| (format.name(), format.description())).collect()
}

#[pyfunction]
pub(crate) fn profiles(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let rows = nandlab_trace::profiles().iter().map(|profile| {
        let dict = PyDict::new(py);
        dict.set_item("name", profile.name)?;
        dict.set_item("requests", profile.requests)?;
        Ok(dict)
    });
    rows.collect()
}

/// The folder of kept traces, their number and bytes, and the limit in bytes; `None` if no traces are kept.
#[pyfunction]
pub(crate) fn kept_traces() -> Option<(PathBuf, u64, u64, u64)> {
    let kept = KeptTraces::from_environment()?;
    let size = kept.size();
    Some((kept.folder().to_path_buf(), size.traces, size.bytes, kept.bytes_max()))
}
