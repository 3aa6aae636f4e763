//! Requests and completions as columns: batches for the stepping interface.

use crate::versions::Returned;
use nandlab::base::units::Time;
use nandlab::drive::{Completion, Drive, Refused};
use nandlab::host::{FailReason, Op, Request, Tag};
use nandlab::probe::Probe;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// Number of requests between two checks for signals by Python.
const REQUESTS: usize = 512;
/// How many requests before its submission the map entries of a request are prefetched, and then the state of its units.
const AHEAD: [usize; 2] = [8, 4];
/// The code of a completion without a reason to fail.
const SUCCEEDED: u8 = u8::MAX;
/// The version of a unit that no request has written, and that of a read whose units come from different writes.
const UNWRITTEN: i64 = -1;
const SEVERAL: i64 = -2;

/// When the requests of a batch are submitted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// At the present time.
    Now,
    /// Each at its arrival.
    Arrivals,
    /// As soon as fewer requests than this are outstanding.
    Depth(u32),
}

/// A column of numbers in little-endian order.
fn column<'a, const N: usize, T>(
    bytes: &'a [u8],
    from: impl Fn([u8; N]) -> T + 'a,
) -> impl Iterator<Item = T> + 'a {
    bytes.as_chunks::<N>().0.iter().map(move |&chunk| from(chunk))
}

/// The requests of columns: `op` (u8, the number of the operation), `offset` and `length` (u64), and if they are there
/// `arrival_ns` (u64), `fua` (u8), `queue` and `placement` (u16).
pub(crate) fn requests(columns: &Bound<'_, PyDict>) -> PyResult<Vec<Request>> {
    let bytes = |name: &str| columns.get_item(name)?.map(|column| column.extract::<Vec<u8>>()).transpose();
    let needed = |name: &str| {
        bytes(name)?.ok_or_else(|| PyValueError::new_err(format!("a batch needs the column {name:?}")))
    };
    let (ops, offsets, lengths) = (needed("op")?, needed("offset")?, needed("length")?);
    let mut requests = Vec::with_capacity(ops.len());
    let extents = column(&offsets, u64::from_le_bytes).zip(column(&lengths, u64::from_le_bytes));
    for (&op, (offset, len)) in ops.iter().zip(extents) {
        let op =
            Op::ALL.get(usize::from(op)).ok_or_else(|| PyValueError::new_err("op: an unknown number"))?;
        requests.push(Request::new(*op, offset, len));
    }
    if let Some(arrivals) = bytes("arrival_ns")? {
        for (request, ns) in requests.iter_mut().zip(column(&arrivals, u64::from_le_bytes)) {
            request.arrival = Time::from_ns(ns);
        }
    }
    for (request, fua) in requests.iter_mut().zip(bytes("fua")?.unwrap_or_default()) {
        request.fua = fua != 0;
    }
    for (request, queue) in
        requests.iter_mut().zip(column(&bytes("queue")?.unwrap_or_default(), u16::from_le_bytes))
    {
        request.tag.queue = queue;
    }
    for (request, placement) in
        requests.iter_mut().zip(column(&bytes("placement")?.unwrap_or_default(), u16::from_le_bytes))
    {
        request.tag = Tag { placement, ..request.tag };
    }
    Ok(requests)
}

/// Submits some of `requests`, simulates until each is due, and moves completions to `ended`. Returns the number of
/// requests that have been submitted: with [`Pace::Arrivals`] also 0, when the simulation until the next arrival takes
/// more than `events` events. A drive that has failed takes no further request. `first` becomes the id of the first
/// request, unless it is set.
///
/// # Errors
/// The index of the request that the drive refuses, and why.
pub(crate) fn submit_some<P: Probe>(
    drive: &mut Drive<P>,
    requests: &[Request],
    pace: Pace,
    events: u64,
    ended: &mut Vec<Completion>,
    first: &mut Option<u64>,
) -> Result<usize, (usize, Refused)> {
    for (index, request) in requests.iter().take(REQUESTS).enumerate() {
        for (ahead, units) in AHEAD.into_iter().zip([false, true]) {
            if let Some(soon) = requests.get(index + ahead) {
                drive.prefetch(soon, units);
            }
        }
        match pace {
            Pace::Now => {}
            Pace::Arrivals => {
                if !drive.advance_some(request.arrival, events) {
                    return Ok(index);
                }
            }
            Pace::Depth(depth) => {
                while drive.outstanding() >= depth {
                    ended.extend(drive.completions());
                    if !drive.advance_to_completion(Time::NEVER) {
                        break;
                    }
                }
            }
        }
        if drive.failure().is_some() {
            return Ok(index);
        }
        let arrives = matches!(pace, Pace::Arrivals);
        let request = if arrives { *request } else { request.at(drive.now()) };
        let id = drive.submit(&request).map_err(|refused| (index, refused))?;
        first.get_or_insert(id);
    }
    Ok(requests.len().min(REQUESTS))
}

/// The completions as columns of bytes: `{name: (dtype, bytes)}`. `op` and `reason` are numbers of the operation and of
/// the reason, 255 without a reason. `returned` has for each completion what a read returned; without it there is no
/// column `version`.
pub(crate) fn columns<'py>(
    py: Python<'py>,
    completions: &[Completion],
    returned: Option<&[Option<Returned>]>,
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let wide = |of: &dyn Fn(&Completion) -> u64| {
        let mut bytes = Vec::with_capacity(8 * completions.len());
        completions.iter().for_each(|completion| bytes.extend(of(completion).to_le_bytes()));
        ("<u8", PyBytes::new(py, &bytes))
    };
    let narrow = |of: &dyn Fn(&Completion) -> u8| {
        let bytes: Vec<u8> = completions.iter().map(of).collect();
        ("|u1", PyBytes::new(py, &bytes))
    };
    out.set_item("id", wide(&|c| c.id))?;
    out.set_item("op", narrow(&|c| c.request.op as u8))?;
    out.set_item("offset", wide(&|c| c.request.offset))?;
    out.set_item("length", wide(&|c| c.request.len))?;
    out.set_item("arrival_ns", wide(&|c| c.request.arrival.ns()))?;
    out.set_item("completed_ns", wide(&|c| c.completed.ns()))?;
    let reason =
        |c: &Completion| c.failed.and_then(|reason| FailReason::ALL.iter().position(|&r| r == reason));
    out.set_item("reason", narrow(&|c| reason(c).map_or(SUCCEEDED, |number| number as u8)))?;
    if let Some(returned) = returned {
        let mut bytes = Vec::with_capacity(8 * returned.len());
        for units in returned {
            let units = units.as_deref().unwrap_or_default();
            let first = units.first().copied().flatten();
            let version = if units.iter().any(|&unit| unit != first) {
                SEVERAL
            } else {
                first.map_or(UNWRITTEN, |id| id as i64)
            };
            bytes.extend(version.to_le_bytes());
        }
        out.set_item("version", ("<i8", PyBytes::new(py, &bytes)))?;
    }
    Ok(out)
}
