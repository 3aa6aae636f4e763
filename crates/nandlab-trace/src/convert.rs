//! Writes a source in a trace format.

use crate::error::{ErrorKind, TraceError};
use crate::format::{Target, find, formats};
use crate::{Source, detect};
use nandlab_base::base::request::{Op, Request};
use std::io::Write;

/// Options of a conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConvertOptions {
    /// Leave out requests that the target format cannot represent, drop FUA and placements, and round times down to the resolution of
    /// the format; [`Conversion`] counts these losses. Without `drop` the first loss is an error.
    pub drop: bool,
}

/// Numbers of requests of a conversion: written, left out and changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conversion {
    /// Requests written.
    pub written: u64,
    /// TRIMs left out.
    pub trims_dropped: u64,
    /// Flushes left out.
    pub flushes_dropped: u64,
    /// Requests left out because their address or length does not fit the format's units or range.
    pub misfits_dropped: u64,
    /// FUA writes that were written without their FUA mark.
    pub fua_lost: u64,
    /// Requests with a placement above 0 that were written without it.
    pub placements_lost: u64,
    /// Requests whose arrival time was rounded down to the format's resolution.
    pub times_rounded: u64,
}

impl Conversion {
    /// Whether the written trace has every request of the source unchanged.
    pub fn is_lossless(&self) -> bool {
        *self == Self { written: self.written, ..Self::default() }
    }
}

/// Writes all of `source` to `out` in `format` (a name of [`formats`]).
///
/// # Errors
/// The first error of the source; an unknown format; a format that cannot be written; an error of `out`; without
/// `drop`, the first request that the format cannot represent without loss.
pub fn convert(
    source: &mut dyn Source,
    out: &mut dyn Write,
    format: &str,
    options: ConvertOptions,
) -> Result<Conversion, TraceError> {
    let info = find(format).ok_or_else(|| detect::unknown(format))?;
    let target = info.writer.ok_or_else(|| {
        let names: Vec<_> = formats().filter(|f| f.writer.is_some()).map(|f| f.name()).collect();
        TraceError::new(
            ErrorKind::Unsupported,
            format!("{format} can be read but not written"),
            format!("write one of {}", names.join(", ")),
        )
    })?;
    let mut done = Conversion::default();
    let mut buffer = Vec::with_capacity(1 << 16);
    buffer.extend_from_slice(target.header);
    let mut number = 0u64;
    while let Some(request) = source.next_request() {
        let request = request?;
        number += 1;
        match count_losses(&target, &request, &mut done) {
            Ok(()) => {
                done.written += 1;
                (target.write)(&mut buffer, &request, done.written);
            }
            Err(_) if options.drop => {}
            Err(what) => return Err(cannot_represent(format, number, what)),
        }
        if !options.drop {
            if done.fua_lost > 0 {
                return Err(cannot_represent(format, number, "force unit access"));
            }
            if done.placements_lost > 0 {
                return Err(TraceError::new(
                    ErrorKind::Unsupported,
                    format!("request {number}: {format} cannot represent a placement"),
                    "--drop writes the requests without their placements, and counts them: no format that is written has any",
                ));
            }
            if done.times_rounded > 0 {
                return Err(cannot_represent(format, number, "a time of this resolution"));
            }
        }
        if buffer.len() >= 1 << 16 {
            flush(out, &mut buffer)?;
        }
    }
    flush(out, &mut buffer)?;
    out.flush().map_err(|e| write_error(&e))?;
    Ok(done)
}

/// Counts what `request` loses in the format of `target`. An error, which names the reason, if the request has to be
/// left out.
fn count_losses(target: &Target, request: &Request, done: &mut Conversion) -> Result<(), &'static str> {
    if request.op == Op::Trim && !target.trim {
        done.trims_dropped += 1;
        return Err("TRIM");
    }
    if request.op == Op::Flush && !target.flush {
        done.flushes_dropped += 1;
        return Err("a flush");
    }
    let fits = request.offset.is_multiple_of(target.offset_unit)
        && request.len.is_multiple_of(target.len_unit)
        && request.len <= target.len_max;
    if !fits {
        done.misfits_dropped += 1;
        return Err("an address or length that is no multiple of the format's unit, or beyond its range");
    }
    done.fua_lost += u64::from(request.fua && !target.fua);
    // No format that is written has placements.
    done.placements_lost += u64::from(request.tag.placement > 0);
    done.times_rounded += u64::from(!request.arrival.ns().is_multiple_of(target.resolution_ns));
    Ok(())
}

fn cannot_represent(format: &str, number: u64, what: &str) -> TraceError {
    TraceError::new(
        ErrorKind::Unsupported,
        format!("request {number}: {format} cannot represent {what}"),
        "choose another format (blkparse represents most), or --drop to leave out and count such requests and to round times",
    )
}

fn flush(out: &mut dyn Write, buffer: &mut Vec<u8>) -> Result<(), TraceError> {
    out.write_all(buffer).map_err(|e| write_error(&e))?;
    buffer.clear();
    Ok(())
}

fn write_error(e: &std::io::Error) -> TraceError {
    TraceError::new(
        ErrorKind::Io,
        format!("the converted trace cannot be written: {e}"),
        "check the space left",
    )
}
