//! Counts and footprints of the recorded traces equal those in the index of the trace folder. A test without its traces
//! is skipped.

use crate::common::shared;
use nandlab_base::base::request::Op;
use nandlab_base::workload::{DeviceChoice, TraceSpec};
use nandlab_trace::{Published, TraceStat, open_trace, profile, stat};

fn spec(name: &str) -> Option<TraceSpec> {
    let path = shared("traces")?.join(name);
    if !path.exists() {
        eprintln!("skipped: no {name}");
        return None;
    }
    Some(TraceSpec::new(path))
}

fn read(name: &str, device: Option<DeviceChoice>) -> Option<TraceStat> {
    let spec = TraceSpec { device, ..spec(name)? };
    let mut source = open_trace(&spec, None).unwrap_or_else(|e| panic!("{e}"));
    let stat = stat(&mut *source).unwrap_or_else(|e| panic!("{e}"));
    assert!(source.progress() > 0.99);
    Some(stat)
}

/// Name; all requests, reads, writes, TRIMs, flushes; footprint and written pages of 4 KiB; GiB read, written and
/// trimmed; duration in s; share of reads and writes not aligned to 4 KiB, in percent.
type Row = (&'static str, [u64; 5], [u64; 2], [f64; 3], f64, f64);

const INDEX: [Row; 7] = [
    ("fio_fill", [81921, 0, 81920, 0, 1], [2_621_440, 2_621_440], [0.0, 10.0, 0.0], 7.0, 0.0),
    ("fio_zipf", [600_965, 420_275, 180_031, 0, 659], [570_235, 234_009], [4.01, 1.72, 0.0], 120.0, 0.0),
    ("oltp_load", [177_957, 237, 166_805, 14, 10_901], [814_410, 814_326], [0.0, 5.6, 0.08], 72.0, 3.1),
    ("oltp", [649_619, 476_805, 140_255, 0, 32_559], [695_085, 274_481], [7.28, 3.76, 0.0], 240.0, 2.7),
    ("ntrx", [1_009_280, 11_790, 683_271, 2, 314_217], [707_198, 702_694], [0.18, 12.32, 0.0], 200.0, 35.8),
    (
        "fileserver",
        [2_026_945, 931_692, 972_677, 122_441, 135],
        [2_182_358, 2_036_150],
        [45.07, 46.69, 305.88],
        180.0,
        0.0,
    ),
    (
        "varmail",
        [1_866_689, 698_687, 762_896, 275_508, 129_598],
        [1_057_660, 1_003_736],
        [6.87, 11.17, 14.79],
        180.0,
        0.0,
    ),
];

#[test]
fn recorded_traces_have_the_numbers_of_their_index() {
    for (name, requests, pages, gib, duration_s, unaligned_pct) in INDEX {
        let Some(stat) = read(&format!("{name}.blkparse.xz"), None) else { continue };
        let counts = [Op::Read, Op::Write, Op::Trim, Op::Flush].map(|op| stat.ops[op as usize].requests);
        assert_eq!([stat.requests(), counts[0], counts[1], counts[2], counts[3]], requests, "{name}");
        assert_eq!([stat.footprint_pages, stat.written_pages], pages, "{name}");
        for (op, expected) in [Op::Read, Op::Write, Op::Trim].into_iter().zip(gib) {
            let got = stat.ops[op as usize].bytes as f64 / (1u64 << 30) as f64;
            assert!((got - expected).abs() <= 0.0051, "{name}: {got} GiB, expected {expected}");
        }
        assert!((stat.duration_s() - duration_s).abs() < 0.6, "{name}: {}", stat.duration_s());
        assert!(
            (stat.unaligned_share * 100.0 - unaligned_pct).abs() < 0.051,
            "{name}: {}",
            stat.unaligned_share
        );
        assert_eq!((stat.format, stat.tally.skipped()), (Some("blkparse"), 0));
        if let Some(p) = profile(&format!("recorded/{name}")) {
            matches_recording(p, &stat);
        }
    }
}

/// Asserts that the published numbers of a profile equal those of its recording: whole numbers exactly, rounded numbers
/// within 0.1 %.
fn matches_recording(p: &Published, stat: &TraceStat) {
    let (reads, writes) = (stat.reads(), stat.writes());
    assert_eq!(p.requests, reads.requests + writes.requests, "{}", p.name);
    assert_eq!(p.bytes, Some(reads.bytes + writes.bytes), "{}", p.name);
    assert_eq!(p.sectors, Some([reads.bytes / 512, writes.bytes / 512]), "{}", p.name);
    assert_eq!(p.references_4k, Some(stat.page_references), "{}", p.name);
    assert_eq!(p.pages_4k, Some(stat.footprint_pages), "{}", p.name);
    assert_eq!(p.written_4k, Some(stat.written_pages), "{}", p.name);
    assert_eq!(p.page_writes_max, Some(stat.page_writes_max), "{}", p.name);
    for (written, recorded) in [
        (p.write_pct, 100.0 * (1.0 - stat.read_ratio())),
        (p.write_references_pct, 100.0 * stat.page_writes as f64 / stat.page_references as f64),
        (p.unwritten_reads_pct, 100.0 * stat.unwritten_read_ratio),
        (p.address_max_gib, stat.address_max_bytes as f64 / (1u64 << 30) as f64),
        (p.duration_s, stat.duration_s()),
        (p.rewrite_ratio, stat.rewrite_ratio),
        (p.top_1pct_share, stat.top_1pct_written_share),
        (p.rewrite_interval_s, stat.rewrite_interval_s_median.unwrap()),
    ] {
        let written = written.unwrap();
        assert!(
            (written / recorded - 1.0).abs() < 1e-3,
            "{}: published {written}, recorded {recorded}",
            p.name
        );
    }
}

/// fio logged each request when fio issued it; the kernel traced each request when the device got it. The `sync` lines
/// of the log are the `FN` events of the trace. Counts and bytes of reads and writes are equal, because no request was
/// merged or split. Times differ slightly.
#[test]
fn log_and_block_trace_of_one_run_agree() {
    let (Some(log), Some(trace)) = (read("fio_zipf.iolog.xz", None), read("fio_zipf.blkparse.xz", None))
    else {
        return;
    };
    assert_eq!(log.format, Some("fio-iolog"));
    assert_eq!(log.ops, trace.ops);
    assert_eq!((log.footprint_pages, log.written_pages), (trace.footprint_pages, trace.written_pages));
    assert!((log.duration_s() - trace.duration_s()).abs() < 0.1);
}

#[test]
fn files_with_several_devices_need_a_device_choice() {
    for (name, devices, requests) in
        [("mqsim_tpcc-small.trace.zst", 16, 6_999), ("mqsim_wsrch-small.trace.zst", 6, 24_783)]
    {
        let Some(spec) = spec(name) else { continue };
        let mut source = open_trace(&spec, None).unwrap();
        let error = std::iter::from_fn(|| source.next_request())
            .find_map(Result::err)
            .expect("several devices are an error");
        assert_eq!(error.line(), Some(2), "{error}");
        assert!(error.remedy().contains("workload.device = \"0\""), "{error}");
        let named = error.message().rsplit("holds ").next().unwrap().split(", ").count();
        assert_eq!(named, devices, "{error}");

        let all = read(name, Some(DeviceChoice::Concatenate)).unwrap();
        assert_eq!((all.requests(), all.devices.len(), all.format), (requests, devices, Some("mqsim")));
        let one = |device: &String| read(name, Some(DeviceChoice::One(device.clone()))).unwrap().requests();
        assert_eq!(all.devices.iter().map(one).sum::<u64>(), requests);
    }
}

#[test]
fn the_vscsi_trace_has_the_numbers_of_its_index() {
    let Some(stat) = read("cloudphysics_2h.vscsi.zst", None) else { return };
    assert_eq!((stat.requests(), stat.format), (113_872, Some("vscsi")));
    assert!((stat.unaligned_share - 0.999).abs() < 0.001, "{}", stat.unaligned_share);
    assert!((stat.duration_s() / 3600.0 - 2.0).abs() < 0.1, "{}", stat.duration_s());
}
