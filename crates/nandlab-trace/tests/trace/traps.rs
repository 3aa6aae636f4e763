//! Errors that naive trace readers make. Each error has a test; the name of the test is the rule.

use crate::common::*;
use nandlab_base::base::note::Severity;
use nandlab_base::base::request::Op::{Flush, Read, Trim, Write};
use nandlab_base::base::units::SECOND;
use nandlab_base::workload::{Arrival, Beyond, Source, WorkloadSpec};
use nandlab_base::workload::{DeviceChoice, Only, Part, TraceSpec, Window};
use nandlab_trace::{DeviceStat, ErrorKind, Position, open, open_bytes, stat_by_device};

const S: u64 = 1_000_000_000;

/// A workload that ends after `requests_max` requests of `trace`.
fn workload(trace: TraceSpec, requests_max: u64) -> WorkloadSpec {
    WorkloadSpec {
        source: Source::Trace(trace),
        arrival: Arrival::Trace { time_scale: 1.0 },
        beyond: Beyond::Wrap,
        whole_pages: false,
        requests_max,
        warm_up: 0,
        repeat: 1,
    }
}

/// The notes on the reading of `content`.
fn notes(spec: &TraceSpec, content: &str) -> Vec<(Severity, &'static str, String)> {
    let mut source = open_bytes(spec, content.as_bytes()).unwrap();
    drain(&mut *source).unwrap();
    source.notes().into_iter().map(|note| (note.severity, note.code, note.text)).collect()
}

fn error(spec: &TraceSpec, content: &str) -> nandlab_trace::TraceError {
    read(spec, content.as_bytes()).expect_err(content)
}

#[test]
fn read_and_write_are_not_swapped_in_any_format() {
    for (format, content) in [
        ("msr", "1000,h,0,Read,512,512,0\n1001,h,0,Write,512,512,0\n"),
        ("spc", "0,1,512,R,0.0\n0,1,512,W,0.1\n"),
        ("spc", "0,1,512,r,0.0\n0,1,512,w,0.1\n"),
        ("blkparse", "8,0 0 1 0.0 1 D R 1 + 1 [x]\n8,0 0 1 0.1 1 D W 1 + 1 [x]\n"),
        ("fio-iolog", "fio version 3 iolog\n0 f read 512 512\n1 f write 512 512\n"),
        ("ssdsim", "0 0 1 1 1\n1 0 1 1 0\n"),
        ("mqsim", "0 0 1 1 1\n1 0 1 1 0\n"),
        ("disksim", "0.0 0 1 1 1\n0.1 0 1 1 0\n"),
        ("alibaba", "0,R,512,512,10\n0,W,512,512,11\n"),
        ("tencent", "10,1,1,0,7\n11,1,1,1,7\n"),
        ("systor", "1.0,0,R,0,512,512\n1.1,0,W,0,512,512\n"),
    ] {
        let requests = read(&spec_of(format), content.as_bytes()).unwrap();
        let seen: Vec<_> = requests.iter().map(|r| (r.op, r.offset, r.len)).collect();
        assert_eq!(seen, [(Read, 512, 512), (Write, 512, 512)], "{format}");
        assert_eq!(requests[0].arrival.ns(), 0, "{format}");
    }
}

#[test]
fn arrival_counts_from_the_first_request_in_nanoseconds() {
    for (format, content, expected) in [
        ("msr", "128166372003061629,h,0,Read,0,512,0\n128166372003061630,h,0,Read,0,512,0\n", 100),
        ("spc", "0,0,512,R,5.5\n0,0,512,R,5.500001\n", 1000),
        ("blkparse", "8,0 0 1 1.000000001 1 D R 1 + 1\n8,0 0 1 1.000000003 1 D R 1 + 1\n", 2),
        ("fio-iolog", "fio version 3 iolog\n90 f read 0 512\n91 f read 0 512\n", 1000),
        ("mqsim", "97900000 0 1 1 1\n97900007 0 1 1 1\n", 7),
        ("disksim", "5265.313 0 1 1 1\n5265.314 0 1 1 1\n", 1000),
        ("alibaba", "0,R,0,512,1577808000000626\n0,R,0,512,1577808000000627\n", 1000),
        ("systor", "1456095145.133076000,0,R,0,0,512\n1456095145.133077000,0,R,0,0,512\n", 1000),
    ] {
        let requests = read(&spec_of(format), content.as_bytes()).unwrap();
        assert_eq!((requests[0].arrival.ns(), requests[1].arrival.ns()), (0, expected), "{format}");
    }
}

#[test]
fn spreadsheet_damage_is_refused() {
    let exponent = "1.28166E+17,hm,0,Write,7014912,4096,26\n";
    let e = error(&spec_of("msr"), exponent);
    assert_eq!((e.field(), e.line()), (Some("Timestamp"), Some(1)));
    assert!(e.message().contains("spreadsheet"), "{e}");

    let equal = "128166000000000000,hm,0,Write,7014912,4096,26\n";
    for lines in [60, 2000] {
        let e = error(&spec("hm_0.csv"), &equal.repeat(lines));
        assert!(e.message().contains("same time") && e.message().contains("spreadsheet"), "{e}");
    }
    // Ten requests of equal time are no sign of damage.
    assert_eq!(read(&spec("hm_0.csv"), equal.repeat(10).as_bytes()).unwrap().len(), 10);
}

#[test]
fn several_devices_are_never_overlaid() {
    let content = "0,0,512,R,0.0\n0,1,512,R,0.1\n10,0,512,W,0.2\n9,0,4096,W,0.3\n";
    let e = error(&spec("Financial1.spc"), content);
    assert_eq!((e.kind(), e.line()), (ErrorKind::Device, Some(3)));
    assert!(e.message().contains("0, 9, 10"), "{e}");
    assert!(e.remedy().contains("workload.device = \"0\"") && e.remedy().contains("\"concatenate\""), "{e}");

    let one = read(&device(spec("Financial1.spc"), "9"), content.as_bytes()).unwrap();
    assert_eq!(one, [request(0, Write, 0, 4096)]);

    let all = TraceSpec { device: Some(DeviceChoice::Concatenate), ..spec("Financial1.spc") };
    let starts: Vec<_> = read(&all, content.as_bytes()).unwrap().iter().map(|r| r.offset).collect();
    assert_eq!(starts, [0, 512, 2 << 20, 1 << 20]);

    let e = error(&device(spec("Financial1.spc"), "7"), content);
    assert_eq!(e.kind(), ErrorKind::Device);
    assert!(e.message().contains("\"7\" is not in the file, which holds 0, 9, 10"), "{e}");
}

#[test]
fn chosen_devices_are_laid_out_in_their_order() {
    let content = "0,0,512,R,0.0\n0,1,512,R,0.1\n10,0,512,W,0.2\n9,0,4096,W,0.3\n";
    let these = |names: &[&str]| TraceSpec {
        device: Some(DeviceChoice::These(names.iter().map(ToString::to_string).collect())),
        ..spec("x.spc")
    };
    let starts = |names| -> Vec<_> {
        read(&these(names), content.as_bytes()).unwrap().iter().map(|r| (r.offset, r.len)).collect()
    };
    assert_eq!(starts(&["9", "0"]), [(1 << 20, 512), ((1 << 20) + 512, 512), (0, 4096)]);
    assert_eq!(starts(&["0", "9"]), [(0, 512), (512, 512), (1 << 20, 4096)]);
    assert_eq!(starts(&["9", "9"]), [(0, 4096)]);
    let e = error(&these(&["9", "7"]), content);
    assert_eq!(e.kind(), ErrorKind::Device);
    assert!(e.message().contains("\"7\" is not in the file, which holds 0, 9, 10"), "{e}");
}

#[test]
fn a_file_of_many_volumes_is_told_with_their_number() {
    let content: String = (0..2000).map(|i| format!("{},0,512,R,{i}.0\n", 1000 + i)).collect();
    let e = error(&spec("x.spc"), &content);
    assert_eq!((e.kind(), e.line()), (ErrorKind::Device, Some(2)));
    assert!(
        e.message().contains("the file holds 2,000 devices: 1000, 1001, ") && e.message().ends_with(", ..."),
        "{e}"
    );
    assert!(e.remedy().contains("`nandlab trace stat --by-device`"), "{e}");
}

#[test]
fn a_part_of_a_trace_is_played() {
    let part = |only, window: Option<(u64, Option<u64>)>| TraceSpec {
        part: Part {
            only,
            window: window.map(|(from, to)| Window { from: from * SECOND, to: to.map(|to| to * SECOND) }),
        },
        ..spec_of("fio-iolog")
    };
    let lines = ["read 0", "write 1", "trim 2", "sync 3", "read 4", "write 5", "read 6"];
    let times = [10, 20, 30, 40, 50, 60, 70];
    let content: String = std::iter::once("fio version 3 iolog\n".to_owned())
        .chain(times.iter().zip(lines).map(|(time, line)| format!("{time}000000 f {line}512 512\n")))
        .collect();
    let played = |spec| -> Vec<_> {
        read(&spec, content.as_bytes())
            .unwrap()
            .iter()
            .map(|r| (r.arrival.ns() / S, r.op, r.offset / 1000))
            .collect()
    };
    assert_eq!(played(part(Some(Only::Reads), None)), [(0, Read, 0), (40, Read, 4), (60, Read, 6)]);
    assert_eq!(played(part(Some(Only::Writes), None)), [(0, Write, 1), (40, Write, 5)]);
    assert_eq!(played(part(None, Some((40, None)))), [(0, Read, 4), (10, Write, 5), (20, Read, 6)]);
    assert_eq!(played(part(None, Some((10, Some(30))))), [(0, Write, 1), (10, Trim, 2)]);
    assert_eq!(played(part(Some(Only::Reads), Some((10, Some(41))))), [(0, Read, 4)]);
    let mut nothing = open_bytes(&part(Some(Only::Reads), Some((10, Some(20)))), content.as_bytes()).unwrap();
    let e = drain(&mut *nothing).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Empty);
    assert!(e.message().starts_with("expected requests, found no read in workload.window: "), "{e}");
    assert!(e.to_string().starts_with("trace: "), "{e}");
}

#[test]
fn each_device_has_its_statistics() {
    let folder = std::env::temp_dir().join(format!("nandlab-by-device-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let trace = folder.join("x.spc");
    let stat = |content: &str, lenient| {
        std::fs::write(&trace, content).unwrap();
        stat_by_device(&TraceSpec { lenient, ..TraceSpec::new(&trace) }, 0)
    };
    // Device 1: ten accesses, nine of them to one page.
    let nine = "1,0,4096,W,1.0\n".repeat(9);
    let content = format!("0,8,4096,R,0.0\n{nine}1,8,4096,R,1.0\n0,16,8192,W,10.0\n");
    let rows = stat(&content, None).unwrap();
    let seen: Vec<_> = rows.iter().map(|row| (row.device.as_str(), row.requests, row.read_ratio)).collect();
    assert_eq!(seen, [("1", 10, 0.1), ("0", 2, 0.5)]);
    let bytes =
        |row: &DeviceStat| [row.read_bytes, row.written_bytes, row.footprint_bytes, row.working_set_bytes];
    assert_eq!(bytes(&rows[0]), [4096, 9 * 4096, 8192, 4096]);
    assert_eq!(bytes(&rows[1]), [4096, 8192, 3 * 4096, 3 * 4096]);
    assert_eq!((rows[0].iops_mean, rows[1].address_max_bytes), (1.0, 16 * 512 + 8192));
    let damaged = format!("{content}0,x,512,R,11.0\n");
    assert_eq!(stat(&damaged, None).unwrap_err().line(), Some(13));
    assert_eq!(stat(&damaged, Some(0.1)).unwrap().len(), 2);
    assert!(stat(&damaged, Some(0.01)).unwrap_err().message().starts_with("1 of 13 records are damaged"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn msr_devices_have_the_names_of_their_files() {
    let content = "10,hm,0,Read,0,512,0\n11,hm,1,Read,512,512,0\n12,src1,0,Read,1024,512,0\n";
    assert!(error(&spec("x"), content).message().contains("hm_0, hm_1, src1_0"));
    assert_eq!(read(&device(spec("x"), "hm_1"), content.as_bytes()).unwrap()[0].offset, 512);
}

#[test]
fn requests_without_length_are_refused() {
    let e = error(&spec("x"), "0,0,512,R,0.0\n0,0,0,R,0.1\n");
    assert_eq!((e.field(), e.line()), (Some("length"), Some(2)));
    assert_eq!(read_all(&lenient(spec("x")), b"0,0,512,R,0.0\n0,0,0,R,0.1\n").unwrap().1, 1);
}

#[test]
fn odd_sizes_large_and_unaligned_requests_are_accepted() {
    let content = "1000,h,0,Read,3,1,0\n1001,h,0,Write,1048577,4194304,0\n";
    let requests = read(&spec("x"), content.as_bytes()).unwrap();
    assert_eq!(requests[0], request(0, Read, 3, 1));
    assert_eq!((requests[1].offset, requests[1].len), (1_048_577, 4 << 20));
}

#[test]
fn addresses_that_overflow_are_refused() {
    let e = error(&spec_of("msr"), "1000,h,0,Read,18446744073709551615,512,0\n");
    assert_eq!(e.field(), Some("offset"));
    assert!(e.message().contains("expected a request that ends below 2^64 bytes"), "{e}");
    assert_eq!(error(&spec_of("mqsim"), "0 0 36028797018963968 8 1\n").field(), Some("sector"));
}

#[test]
fn time_does_not_go_backwards() {
    let content = "0,0,512,R,1.0\n0,0,512,R,0.9\n0,0,512,R,1.1\n";
    let e = error(&spec("x.spc"), content);
    assert_eq!(
        (e.kind(), e.field(), e.position()),
        (ErrorKind::Order, Some("time"), Some(Position::Line(2)))
    );
    assert_eq!(
        e.to_string(),
        "x.spc:2: field time: is 100000 µs earlier than that of the request before\n  remedy: correct the record, or skip \
         such records with workload.lenient = true"
    );
    let (requests, skipped) = read_all(&lenient(spec("x.spc")), content.as_bytes()).unwrap();
    assert_eq!((requests.len(), skipped), (2, 1));
}

#[test]
fn a_jump_of_time_beyond_max_gap_is_refused() {
    const DAY_S: u64 = 86_400;
    let of = |times: &[u64]| -> String { times.iter().map(|t| format!("0,{t},512,R,{t}.0\n")).collect() };
    let late = of(&[10, 11, 11 + DAY_S + 1, 12, 13]);
    let e = error(&spec("x.spc"), &late);
    assert_eq!(
        e.to_string(),
        "x.spc:3: field time: is 1 day later than that of line 2\n  remedy: correct the damaged one of these two records, or \
         skip such records with workload.lenient = true, or allow the gap with workload.max_gap = \"2d\""
    );
    assert_eq!((e.kind(), e.position()), (ErrorKind::Order, Some(Position::Line(3))));
    assert_eq!(read(&spec("x.spc"), of(&[10, 11, 11 + DAY_S, 12 + DAY_S]).as_bytes()).unwrap().len(), 4);

    // The times of a trace, and the arrivals of the requests that are read with `lenient`, both in seconds.
    let lenient_cases: [(&[u64], &[u64]); 7] = [
        (&[10, 11, 99 * DAY_S, 12, 13], &[0, 1, 2, 3]),
        (&[10, 11, 12, 99 * DAY_S], &[0, 1, 2]),
        (&[10, 99 * DAY_S, 12, 13], &[0, 2, 3]),
        // Traces whose first time is damaged.
        (&[0, 99 * DAY_S, 99 * DAY_S + 1, 99 * DAY_S + 1], &[0, 1, 1]),
        (&[99 * DAY_S, 0, 1, 2], &[0, 1, 2]),
        (&[10, 99 * DAY_S], &[0]),
        (&[10], &[0]),
    ];
    for (times, arrivals) in lenient_cases {
        let (requests, skipped) = read_all(&lenient(spec("x.spc")), of(times).as_bytes()).unwrap();
        let found: Vec<u64> = requests.iter().map(|r| r.arrival.ns() / S).collect();
        assert_eq!((&found[..], skipped as usize), (arrivals, times.len() - arrivals.len()), "{times:?}");
    }

    // The records after the gap are in order of time, so the gap is no damaged time, and `lenient` skips no record.
    let real = of(&[10, 11, 30 * DAY_S, 30 * DAY_S + 1, 30 * DAY_S + 2]);
    let e = read_all(&lenient(spec("x.spc")), real.as_bytes()).unwrap_err();
    assert_eq!(
        e.to_string(),
        "x.spc:3: field time: is 30 days later than that of line 2, and the next record is no earlier\n  remedy: correct the \
         damaged one of these two records, or allow the gap with workload.max_gap = \"30d\""
    );
    let allowed = TraceSpec { max_gap_ns: 30 * nandlab_base::base::units::DAY, ..spec("x.spc") };
    assert_eq!(read(&allowed, real.as_bytes()).unwrap().len(), 5);

    // The first line of an MSR trace has timestamp 0: the second line is 406 years later.
    let tick = 128_166_372_003_061_629u64;
    let line = |time: u64| format!("{time},hm,0,Read,0,512,0\n");
    let damaged = line(0) + &line(tick) + &line(tick + 10_000_000);
    let e = error(&spec("x"), &damaged);
    assert!(e.line() == Some(2) && e.message().contains("406 years later than that of line 1"), "{e}");
    assert!(!e.remedy().contains("max_gap"), "{e}");
    let (requests, skipped) = read_all(&lenient(spec("x")), damaged.as_bytes()).unwrap();
    assert_eq!((requests.len(), skipped, requests[1].arrival.ns()), (2, 1, S));
}

#[test]
fn a_lone_forward_outlier_is_the_damaged_record() {
    // The times of a trace, and the number of the damaged line.
    let cases: [(&[u64], u64); 6] = [
        (&[10, 11, 99, 12, 13, 14, 15], 3),
        (&[10, 11, 12, 5, 13, 14], 4),
        (&[99, 10, 11, 12], 1),
        (&[10, 99, 11, 12], 2),
        (&[10, 9, 11, 12], 2),
        (&[10, 11, 9], 3),
    ];
    for (times, line) in cases {
        let content: String = times.iter().map(|t| format!("0,{t},512,R,{t}.0\n")).collect();
        let e = error(&spec("x.spc"), &content);
        assert_eq!(
            (e.kind(), e.line(), e.field()),
            (ErrorKind::Order, Some(line), Some("time")),
            "{times:?}: {e}"
        );
        let (requests, skipped) = read_all(&lenient(spec("x.spc")), content.as_bytes()).unwrap();
        let found: Vec<u64> = requests.iter().map(|r| r.offset / 512).collect();
        let mut good = times.to_vec();
        good.remove(line as usize - 1);
        assert_eq!((found, skipped), (good, 1), "{times:?}");
    }
    let e = error(&spec("x.spc"), "0,1,512,R,1.0\n0,1,512,R,90.0\n0,1,512,R,2.0\n0,1,512,R,3.0\n");
    assert_eq!(
        e.to_string(),
        "x.spc:2: field time: is 1 min 28 s later than that of line 3, and the record after that is earlier too\n  remedy: \
         correct the record, or skip such records with workload.lenient = true"
    );
}

#[test]
fn requests_before_an_error_are_played_first() {
    let content = "0,1,512,R,1.0\n0,2,512,R,2.0\nx\n";
    let mut source = open_bytes(&spec("x.spc"), content.as_bytes()).unwrap();
    let played: Vec<_> = std::iter::from_fn(|| source.next_request()).map(|next| next.is_ok()).collect();
    assert_eq!(played, [true, true, false]);
}

#[test]
fn what_lenient_skipped_is_told_by_reason_and_share() {
    let line = |i: u64| format!("0,{i},512,R,{i}.0\n");
    let of = |damaged: &[&str], good: u64| -> String {
        (0..good / 2)
            .map(line)
            .chain(damaged.iter().map(ToString::to_string))
            .chain((good / 2..good).map(line))
            .collect()
    };
    let tolerant =
        |at_most| TraceSpec { lenient: Some(at_most), format: Some("spc".into()), ..spec("x.spc") };
    let notes = |content: &str, at_most| {
        let mut source = open_bytes(&tolerant(at_most), content.as_bytes()).unwrap();
        drain(&mut *source).unwrap();
        assert_eq!(source.skipped(), source.tally().skipped());
        source.notes()
    };
    assert_eq!(notes(&of(&[], 10), 0.1), []);
    let [few] = &notes(&of(&["x\n"], 199), 0.1)[..] else { panic!() };
    assert_eq!((few.severity, few.code), (Severity::Info, "few-skipped-records"));
    assert_eq!(few.text, "1 of the 200 records of the trace (0.5 %) were skipped: 1 malformed.");
    let damaged = ["x\n", "0,1,512,Q,50.0\n", "0,1,512,R,0.5\n", "0,1,512,R,9999.0\n"];
    let [many] = &notes(&of(&damaged, 96), 0.1)[..] else { panic!() };
    assert_eq!((many.severity, many.code), (Severity::Warning, "skipped-records"));
    assert!(
        many.text.starts_with(
            "4 of the 100 records of the trace (4.0 %) were skipped: 2 malformed, 1 earlier than the record before, 1 far \
             later than the records around them."
        ),
        "{}",
        many.text
    );

    // A workload that ends before its trace has the counts of the records that were read.
    let played = |content: &str, requests_max| {
        let folder = std::env::temp_dir().join(format!("nandlab-lenient-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let trace = TraceSpec { path: folder.join("x.spc"), ..tolerant(0.1) };
        std::fs::write(&trace.path, content).unwrap();
        let mut source = open(&workload(trace, requests_max), 1 << 30, 1, None).unwrap();
        let requests = drain(&mut *source).map(|requests| requests.len());
        std::fs::remove_dir_all(&folder).unwrap();
        requests.map(|requests| (requests, source.notes())).map_err(|e| e.message().to_owned())
    };
    let (requests, noted) = played(&format!("x\n{}", of(&[], 20_000)), 1000).unwrap();
    assert_eq!(requests, 1000);
    assert_eq!(noted[0].text, "1 of the 1,002 records of the trace (0.1 %) were skipped: 1 malformed.");
    assert!(
        played(&format!("x\n{}", of(&[], 20_000)), 5).unwrap_err().starts_with("1 of 7 records are damaged")
    );

    let lost = of(&["x\n"; 3], 17);
    let e = error(&tolerant(0.1), &lost);
    assert_eq!(
        e.to_string().split_once(": ").unwrap().1,
        "3 of 20 records are damaged (15.0 %), more than the 10.0 % that workload.lenient allows: 3 malformed\n  remedy: \
         check workload.format and the file, or allow the loss with workload.lenient = { at_most = 0.15 }"
    );
    assert_eq!(read_all(&tolerant(0.15), lost.as_bytes()).unwrap().1, 3);
}

#[test]
fn content_of_no_format_is_shown_with_its_line() {
    let e = error(&spec("x.log"), "\nfio verzion 3 iolog\n90 f read 0 512\n");
    assert_eq!(e.line(), Some(2));
    assert!(e.message().starts_with("\"fio verzion 3 iolog\": the content fits no known format"), "{e}");
    let e = error(&spec("x.csv"), "128166372003061629,hm,0,Read,0,512,0\n1\0,hm\n");
    assert_eq!(e.line(), Some(2), "{e}");
}

#[test]
fn systor_is_sorted_within_a_window_and_blank_types_are_skipped() {
    let content = "Timestamp,Response,IOType,LUN,Offset,Size\n\
                   100.3,0.1,R,0,3000,512\n100.1,0.1,W,0,1000,512\n100.2,,,0,9000,512\n100.2,0.1,R,0,2000,512\n";
    let (requests, skipped) = read_all(&spec("x"), content.as_bytes()).unwrap();
    assert_eq!(skipped, 1);
    assert_eq!(
        notes(&spec("x"), content),
        [(Severity::Warning, "skipped-records", "1 of the 4 records of the trace (25.0 %) were skipped: 1 without a type (read or write). The workload is not the one that was recorded.".to_owned())]
    );
    let both = "100.1,,,1,0,512\n100.2,0.1,R,0,0,512\n100.3,,,0,0,512\n";
    assert_eq!(read_all(&device(spec_of("systor"), "0"), both.as_bytes()).unwrap().1, 1);
    let seen: Vec<_> = requests.iter().map(|r| (r.arrival.ns(), r.offset)).collect();
    assert_eq!(seen, [(0, 1000), (S / 10, 2000), (S / 5, 3000)]);
}

#[test]
fn events_of_blkparse_slightly_out_of_order_are_sorted() {
    let of = |times: &[f64]| -> String {
        let line = |t: &f64| format!("8,0 0 1 {t:.9} 1 D R {} + 8 [x]\n", (t * 10.0) as u64);
        times.iter().map(line).collect()
    };
    let content = of(&[1.0, 1.5, 1.2, 1.4, 2.0, 1.9, 1.0]);
    let times: Vec<_> =
        read(&spec("x"), content.as_bytes()).unwrap().iter().map(|r| r.arrival.ns() / (S / 10)).collect();
    assert_eq!(times, [0, 0, 2, 4, 5, 9, 10]);
    assert_eq!(
        notes(&spec("x"), &content),
        [(
            Severity::Info,
            "sorted-events",
            "4 events of the trace were out of order by at most 1 s, and were sorted.".to_owned()
        )]
    );
    // A damaged time is found as in other formats.
    for (times, line) in [(&[1.0, 1.1, 9.0, 1.3, 1.2, 1.4][..], 3), (&[8.0, 8.1, 1.0, 8.2, 8.3], 3)] {
        let e = error(&spec("x"), &of(times));
        assert_eq!((e.kind(), e.line(), e.field()), (ErrorKind::Order, Some(line), Some("time")), "{e}");
        assert_eq!(read_all(&lenient(spec("x")), of(times).as_bytes()).unwrap().1, 1);
    }
}

#[test]
fn a_closed_loop_needs_no_times() {
    let untimed = |format: &str| TraceSpec { uses_times: false, ..spec_of(format) };
    let equal = "128166000000000000,hm,0,Write,7014912,4096,26\n".repeat(2000);
    assert_eq!(read(&untimed("msr"), equal.as_bytes()).unwrap().len(), 2000);
    assert!(notes(&untimed("msr"), &equal).is_empty());
    let mixed = "0,1,512,R,5.0\n0,2,512,R,900000.0\n0,3,512,R,1.0\n0,4,512,R,6.0\n";
    let starts: Vec<_> =
        read(&untimed("spc"), mixed.as_bytes()).unwrap().iter().map(|r| r.offset / 512).collect();
    assert_eq!(starts, [1, 2, 3, 4]);
}

#[test]
fn a_trace_without_times_says_so() {
    let content = "fio version 2 iolog\nf open\nf write 0 4000\nf write 4000 4000\n";
    let [(severity, code, text)] = &notes(&spec("x"), content)[..] else { panic!() };
    assert_eq!((*severity, *code), (Severity::Warning, "no-times"));
    assert!(
        text.contains("all requests arrive at once. A log of version 2") && text.contains("queue_depth"),
        "{text}"
    );
    assert!(notes(&spec("x"), "fio version 2 iolog\nf write 0 4000\n").is_empty());
    assert!(notes(&spec("x"), &content.replace("f write 4000", "f wait 5 0\nf write 4000")).is_empty());
}

#[test]
fn disorder_beyond_the_window_is_refused() {
    let mut content = String::new();
    for i in 0..70_000u64 {
        content += &format!("0,R,0,512,{}\n", 1_000_000 + i);
    }
    content += "0,R,0,512,5\n";
    let e = error(&spec("x"), &content);
    assert_eq!((e.kind(), e.line()), (ErrorKind::Order, Some(70_001)));
    assert!(e.message().contains("65536 records"), "{e}");
}

#[test]
fn tencent_requests_are_spread_over_their_second() {
    let content = "10,0,1,0,7\n10,1,1,0,7\n10,2,1,1,7\n10,3,1,0,7\n11,4,1,0,7\n13,5,1,0,7\n";
    let times: Vec<_> =
        read(&spec("x"), content.as_bytes()).unwrap().iter().map(|r| r.arrival.ns()).collect();
    assert_eq!(times, [0, S / 4, S / 2, 3 * S / 4, S, 3 * S]);
    // Only requests of the chosen volume are spread.
    let content = "10,0,1,0,7\n10,1,1,0,8\n10,2,1,1,7\n";
    let times: Vec<_> =
        read(&device(spec("x"), "7"), content.as_bytes()).unwrap().iter().map(|r| r.arrival.ns()).collect();
    assert_eq!(times, [0, S / 2]);
}

#[test]
fn blkparse_counts_each_request_once_and_stops_at_the_summary() {
    let content = "\
  8,0    1        1     0.000000000 10  Q  WS 8 + 8 [fio]\n\
  8,0    1        2     0.000001000 10  G  WS 8 + 8 [fio]\n\
  8,0    1        3     0.000001500 10  P   N [fio]\n\
  8,0    1        4     0.000001600 10  U   N [fio] 1\n\
  8,0    1        5     0.000001700 10  A  WS 8 + 8 <- (8,1) 0\n\
  8,0    1        6     0.000002000 10  D  WS 8 + 8 [fio]\n\
  8,0    1        7     0.000003000 10  D  DS 800 + 80 [fio]\n\
  8,0    1        8     0.000004000 10  D  FN [fio]\n\
  8,0    1        9     0.000005000 10  D FWFS 16 + 8 [fio]\n\
  8,0    1       10     0.000006000  0  C  WS 8 + 8 [0]\n\
  8,0    1       11     0.000006500 10  m   N cfq workload slice\n\
  8,0    1       12     0.000007000 10  D   N 0 (00 ..) [kworker]\n\
CPU0 (8,0):\n Reads Queued:           0,        0KiB\n\nTotal (8,0):\n Reads Queued: 0\n";
    let requests = read(&spec("x"), content.as_bytes()).unwrap();
    let mut fua = request(3000, Write, 8192, 4096);
    fua.fua = true;
    assert_eq!(
        requests,
        [
            request(0, Write, 4096, 4096),
            request(1000, Trim, 409_600, 40_960),
            request(2000, Flush, 0, 0),
            request(3000, Flush, 0, 0),
            fua,
        ]
    );
    let queued: String = content.lines().filter(|l| !l.contains("  D ")).map(|l| format!("{l}\n")).collect();
    assert_eq!(read(&spec("x"), queued.as_bytes()).unwrap(), [request(0, Write, 4096, 4096)]);
}

#[test]
fn an_error_names_file_line_field_and_remedy_and_lenient_counts_skipped_records() {
    let content = "5,hm,0,Read,0,512,0\n6,hm,0,Read,0,abc,0\n7,hm,0,Read,0,512\n8,hm,0,Rwrite,0,512,0\n\
                   -9,hm,0,Read,0,512,0\n9,hm,0,Read,0,512,0\n";
    let e = error(&spec("hm_0.csv"), content);
    assert_eq!(
        e.to_string(),
        "hm_0.csv:2: field Size: expected a number of bytes, found \"abc\"\n  remedy: correct the record, or skip such \
         records with workload.lenient = true"
    );
    let (requests, skipped) = read_all(&lenient(spec("hm_0.csv")), content.as_bytes()).unwrap();
    assert_eq!((requests.len(), skipped), (2, 4));
}

#[test]
fn a_trace_without_requests_is_refused() {
    for (spec, content) in [
        (spec("x"), ""),
        (spec_of("msr"), ""),
        (spec_of("msr"), "\n\n"),
        (spec_of("vscsi"), ""),
        (spec_of("systor"), "Timestamp,Response,IOType,LUN,Offset,Size\n"),
        (spec_of("fio-iolog"), "fio version 3 iolog\n0 f add\n"),
    ] {
        let e = error(&spec, content);
        assert_eq!(e.kind(), ErrorKind::Empty, "{e}");
    }
    let e = read(&lenient(spec_of("msr")), b"junk\n").unwrap_err();
    assert!(e.message().contains("(1 skipped)"), "{e}");
}

#[test]
fn line_ends_and_byte_order_marks_do_not_matter() {
    let expected = vec![request(0, Read, 0, 512), request(100, Write, 512, 512)];
    for content in [
        "5,h,0,Read,0,512,0\n6,h,0,Write,512,512,0\n",
        "5,h,0,Read,0,512,0\r\n6,h,0,Write,512,512,0\r\n",
        "5,h,0,Read,0,512,0\n6,h,0,Write,512,512,0",
        "5,h,0,Read,0,512,0\n\n6,h,0,Write,512,512,0\r\n\n",
        "\u{feff}5,h,0,Read,0,512,0\n6,h,0,Write,512,512,0\n",
        "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n5,h,0,Read,0,512,0\n6,h,0,Write,512,512,0\n",
    ] {
        assert_eq!(read(&spec("x"), content.as_bytes()).unwrap(), expected, "{content:?}");
    }
}

#[test]
fn a_line_above_1_mib_is_refused() {
    let e = read(&spec_of("msr"), &vec![b'1'; 3 << 20]).unwrap_err();
    assert!(e.message().contains("longer than 1 MiB"), "{e}");
}

#[test]
fn a_binary_record_cut_short_is_refused_with_its_offset() {
    let mut content = Vec::new();
    for i in 0..3u64 {
        for word in [i as u32, 512, 1, 0x0100_002a] {
            content.extend_from_slice(&word.to_le_bytes());
        }
        content.extend_from_slice(&i.to_le_bytes());
        content.extend_from_slice(&i.to_le_bytes());
    }
    assert_eq!(read(&spec("x"), &content).unwrap().len(), 3);
    content.truncate(80);
    let e = read(&spec("x"), &content).unwrap_err();
    assert_eq!(e.position(), Some(Position::Record { number: 3, offset: 64 }));
    assert!(e.to_string().starts_with("x: record 3 at byte 64: the file ends after 16"), "{e}");
}

#[test]
fn unknown_formats_and_content_list_the_choices() {
    for e in [error(&spec_of("msr2"), "5,h,0,Read,0,512,0\n"), error(&spec("x"), "no trace at all\n")] {
        assert_eq!(e.kind(), ErrorKind::Format);
        assert!(e.remedy().contains("msr, spc, blkparse"), "{e}");
    }
}

#[test]
fn a_source_ends_after_an_error() {
    let mut source = open_bytes(&spec_of("spc"), *b"0,0,512,R,0\njunk\n0,0,512,R,0\n").unwrap();
    assert!(source.next_request().unwrap().is_ok());
    assert!(source.next_request().unwrap().is_err());
    assert!(source.next_request().is_none());
}

/// Each text format with its header and a valid line.
const VALID: [(&str, &str, &str); 11] = [
    ("msr", "", "1000,h,0,Read,512,512,0\n"),
    ("spc", "", "0,1,512,R,0.5\n"),
    ("blkparse", "", "8,0 0 1 0.5 1 D R 1 + 1 [x]\n"),
    ("fio-iolog", "fio version 3 iolog\n", "5 f read 512 512\n"),
    ("fio-iolog", "fio version 2 iolog\n", "f read 512 512\n"),
    ("ssdsim", "", "5 0 1 1 1\n"),
    ("mqsim", "", "5 0 1 1 1\n"),
    ("disksim", "", "0.5 0 1 1 1\n"),
    ("alibaba", "", "0,R,512,512,10\n"),
    ("tencent", "", "10,1,1,0,7\n"),
    ("systor", "Timestamp,Response,IOType,LUN,Offset,Size\n", "1.0,0,R,0,512,512\n"),
];

#[test]
fn a_damaged_first_line_is_reported_and_skipped_with_lenient() {
    for (format, header, line) in VALID {
        for damaged in [&b"junk"[..], b"\0\0\0\0", b"12\0,4", b"\xff\xfe\x01", b",,,,,,,", b"-1"] {
            for mark in [&b""[..], b"\xef\xbb\xbf"] {
                let rest = line.repeat(3);
                let content = [mark, damaged, b"\r\n", rest.as_bytes()].concat();
                let e = read(&spec_of(format), &content).expect_err(format);
                assert_eq!(e.line(), Some(1), "{e}");
                assert!(e.field().is_some() && e.remedy().contains("workload.lenient"), "{e}");
                let (requests, skipped) = read_all(&lenient(spec_of(format)), &content).expect(format);
                assert_eq!((requests.len(), skipped), (3, 1), "{format} {header:?} {damaged:?}");
            }
        }
        let valid = format!("\u{feff}{header}{}", line.repeat(3));
        assert_eq!(read_all(&spec_of(format), valid.as_bytes()).unwrap().1, 0, "{format}");
    }
}

#[test]
fn a_damaged_first_record_is_reported_and_skipped_with_lenient() {
    for (size, words) in [(32, [1u32, 512, 1, 0x0100_002a]), (40, [0x0200_002a, 1, 512, 1])] {
        let mut record: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        record.resize(size, 0);
        let content = [vec![0xff; size], record.repeat(3)].concat();
        let e = read(&spec_of("vscsi"), &content).unwrap_err();
        assert_eq!(e.position(), Some(Position::Record { number: 1, offset: 0 }), "{e}");
        assert_eq!(e.field(), Some("version"), "{e}");
        let (requests, skipped) = read_all(&lenient(spec_of("vscsi")), &content).unwrap();
        assert_eq!((requests.len(), skipped), (3, 1));
    }
    let e = read(&spec_of("vscsi"), &[0xff; 64]).unwrap_err();
    assert_eq!(e.position(), Some(Position::Record { number: 1, offset: 0 }), "{e}");
}

#[test]
fn messages_about_long_input_are_short() {
    let long = "x".repeat(100_000);
    let named = TraceSpec { path: format!("{long}\u{1b}").into(), ..spec_of("msr") };
    let many: String = (0..100).map(|i| format!("fio{i}{long} read 0 512\n")).collect();
    for e in [
        read(&named, b"junk\n").unwrap_err(),
        error(&spec(&long), &long),
        error(&spec_of(&long), "junk\n"),
        error(&spec_of("msr"), &format!("1,h,0,{long},0,512,0\n")),
        error(&spec_of("msr"), &"\0".repeat(1000)),
        error(&spec_of("fio-iolog"), &format!("fio version 2 iolog\n{many}")),
        error(&device(spec_of("fio-iolog"), &long), "fio version 2 iolog\nf read 0 512\n"),
    ] {
        let text = e.to_string();
        assert!(text.lines().count() <= 3 && text.lines().all(|line| line.len() < 400), "{text}");
        assert!(!text.contains('\u{1b}') && text.contains("remedy: "), "{text}");
    }
}

#[test]
fn settings_that_read_a_trace_twice_refuse_a_pipe() {
    let once = TraceSpec { format: Some("msr".into()), ..spec("/dev/null") };
    let played = |trace: TraceSpec, repeat| {
        let workload = WorkloadSpec {
            source: Source::Trace(trace),
            arrival: Arrival::QueueDepth(1),
            beyond: Beyond::Wrap,
            whole_pages: false,
            requests_max: 0,
            warm_up: 0,
            repeat,
        };
        open(&workload, 1 << 30, 1, None).err().map(|e| e.to_string()).unwrap_or_default()
    };
    let all = TraceSpec { device: Some(DeviceChoice::Concatenate), ..once.clone() };
    for (message, key) in [
        (played(once.clone(), 2), "workload.repeat = 2"),
        (played(all, 1), "workload.device = \"concatenate\""),
    ] {
        assert_eq!(
            message,
            format!(
                "/dev/null: can be read only once, like a pipe, and {key} reads it again\n  remedy: save it in a file first"
            )
        );
    }
    assert_eq!(played(once, 1), "", "a single pass over a pipe is refused");
}

#[test]
fn a_read_or_write_above_4_gib_is_refused() {
    for (format, line, len) in [
        ("msr", "1000,h,0,Read,0,{},0\n", (1u64 << 32) + 1),
        ("mqsim", "5 0 0 {} 1\n", (1 << 23) + 1),
        ("fio-iolog", "fio version 3 iolog\n5 f read 0 {}\n", 1 << 50),
    ] {
        let e = error(&spec_of(format), &line.replace("{}", &len.to_string()));
        assert_eq!(e.field(), Some("length"), "{e}");
        assert!(e.message().contains("expected a length of at most 4 GiB, found"), "{e}");
    }
    assert_eq!(
        read(&spec_of("fio-iolog"), b"fio version 3 iolog\n5 f read 0 4294967296\n").unwrap().len(),
        1
    );
    // A TRIM is allowed above 4 GiB: it may cover a whole device.
    assert_eq!(
        read(&spec_of("fio-iolog"), b"fio version 3 iolog\n5 f trim 0 1099511627776\n").unwrap().len(),
        1
    );
}
