//! Requests that are written in a format are read back as the same requests; if a request cannot be written unchanged,
//! the loss is reported.

use crate::common::*;
use nandlab_base::base::request::{Op, Request, Tag};
use nandlab_base::base::units::Time;
use nandlab_trace::{Conversion, ConvertOptions, ErrorKind, Source, TraceError, convert, formats};
use proptest::prelude::*;

struct List<'a>(std::slice::Iter<'a, Request>);

impl Source for List<'_> {
    fn next_request(&mut self) -> Option<Result<Request, TraceError>> {
        self.0.next().copied().map(Ok)
    }

    fn progress(&self) -> f64 {
        0.0
    }
}

fn written(requests: &[Request], format: &str, drop: bool) -> Result<(Vec<u8>, Conversion), TraceError> {
    let mut out = Vec::new();
    let mut source = List(requests.iter());
    let done = convert(&mut source, &mut out, format, ConvertOptions { drop })?;
    Ok((out, done))
}

/// The limits of a format: whether it has TRIM, flush and FUA; its unit of times in ns; its unit of lengths in bytes.
fn limits(format: &str) -> (bool, bool, bool, u64, u64) {
    match format {
        "msr" => (false, false, false, 100, 1),
        "spc" | "systor" => (false, false, false, 1, 1),
        "blkparse" => (true, true, true, 1, 512),
        "fio-iolog" => (true, true, false, 1000, 1),
        "ssdsim" | "mqsim" | "disksim" => (false, false, false, 1, 512),
        "alibaba" => (false, false, false, 1000, 1),
        "tencent" => (false, false, false, 1_000_000_000, 512),
        "vscsi" => (false, true, false, 1000, 512),
        _ => panic!("limits() has no line for the format {format}: add its limits"),
    }
}

prop_compose! {
    fn any_request()(
        gap in prop_oneof![Just(0), 1..5_000_000_000u64],
        op in 0..4usize,
        fua in any::<bool>(),
        sector in 0..1u64 << 40,
        len in 1..1u64 << 24,
    ) -> (u64, Request) {
        let op = Op::ALL[op];
        let (offset, len) = if op == Op::Flush { (0, 0) } else { (sector * 512, len) };
        (gap, Request::new(op, offset, len).with_fua(fua && op == Op::Write))
    }
}

/// Turns drawn requests into requests that `format` represents without loss, in order of arrival, the first at 0.
/// Operations that the format lacks are left out.
fn representable(drawn: &[(u64, Request)], format: &str) -> Vec<Request> {
    let (trim, flush, fua, resolution, len_unit) = limits(format);
    let mut now = 0;
    let mut requests = Vec::new();
    for &(gap, mut r) in drawn {
        if (r.op == Op::Trim && !trim) || (r.op == Op::Flush && !flush) {
            continue;
        }
        now += if requests.is_empty() { 0 } else { gap.next_multiple_of(resolution) };
        // One request per second: the reader would spread the requests of one second over the second.
        now = if format == "tencent" { requests.len() as u64 * resolution } else { now };
        r.arrival = Time::from_ns(now);
        r.fua &= fua;
        if r.op != Op::Flush {
            r.len = r.len.next_multiple_of(len_unit);
        }
        requests.push(r);
    }
    requests
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn written_requests_read_back(drawn in prop::collection::vec(any_request(), 1..60)) {
        for info in formats().filter(|info| info.can_be_written()) {
            let requests = representable(&drawn, info.name());
            if requests.is_empty() {
                continue;
            }
            let (bytes, done) = written(&requests, info.name(), false).unwrap();
            prop_assert!(done.is_lossless());
            prop_assert_eq!(done.written, requests.len() as u64);
            let back = read(&spec_of(info.name()), &bytes);
            prop_assert_eq!(back.as_ref(), Ok(&requests), "{}", info.name());
            // Detection by content gives the same requests (an ssdsim trace is detected as mqsim). An msr trace of at
            // least 50 requests is refused if all times are equal.
            let detected = read(&spec("x"), &bytes);
            let equal_times = requests.len() >= 50 && requests.iter().all(|r| r.arrival == Time::START);
            prop_assert!(equal_times || detected.as_ref() == Ok(&requests), "{}: {:?}", info.name(), detected.err());
        }
    }

    #[test]
    fn requests_that_a_format_cannot_represent_are_refused_or_dropped_and_counted(
        drawn in prop::collection::vec(any_request(), 1..60)
    ) {
        let mut now = 0;
        let requests: Vec<_> = drawn.iter().map(|&(gap, r)| { now += gap; r.at(Time::from_ns(now)) }).collect();
        for info in formats().filter(|info| info.can_be_written()) {
            let strict = written(&requests, info.name(), false);
            let (_, done) = written(&requests, info.name(), true).unwrap();
            let dropped = done.trims_dropped + done.flushes_dropped + done.misfits_dropped;
            prop_assert_eq!(done.written + dropped, requests.len() as u64);
            prop_assert_eq!(strict.is_ok(), done.is_lossless());
            if let Err(error) = strict {
                prop_assert_eq!(error.kind(), ErrorKind::Unsupported);
            }
        }
    }
}

#[test]
fn each_loss_is_named() {
    let mut fua = request(0, Op::Write, 0, 512);
    fua.fua = true;
    let placed = request(0, Op::Write, 0, 512).with_tag(Tag { queue: 0, placement: 2 });
    for (format, r, what) in [
        ("msr", request(0, Op::Trim, 0, 512), "cannot represent TRIM"),
        ("spc", request(0, Op::Flush, 0, 0), "cannot represent a flush"),
        ("alibaba", fua, "cannot represent force unit access"),
        ("blkparse", placed, "cannot represent a placement"),
        ("vscsi", request(1, Op::Read, 0, 512), "cannot represent a time of this resolution"),
        ("mqsim", request(0, Op::Read, 0, 100), "cannot represent an address or length"),
    ] {
        let error = written(&[r], format, false).unwrap_err().to_string();
        assert!(error.starts_with("request 1: ") && error.contains(what), "{error}");
    }
    let error = written(&[], "nonesuch", false).unwrap_err();
    assert!(error.remedy().contains("blkparse"), "{error}");
}
