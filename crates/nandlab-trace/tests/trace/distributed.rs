//! Traces in the shapes in which people have them. Every file of the folder of such inputs gives its true content, or a
//! refusal that names the remedy; without the folder the files are skipped. The samples of the other tests are our own, in
//! the same shapes.

use crate::common::*;
use nandlab_base::base::request::{Op, Request};
use nandlab_base::workload::{DeviceChoice, TraceFormat, TraceSpec};
use nandlab_trace::{ErrorKind, Position, Reading, TraceError, open_bytes, open_trace, reading};
use std::io::Write;
use std::sync::Arc;

/// What is said of a file besides its name: a format or columns, a unit of time, all devices, a closed loop.
#[derive(Clone, Copy, Default)]
struct With {
    format: Option<&'static str>,
    columns: Option<&'static str>,
    time_unit_ns: Option<f64>,
    concatenate: bool,
}

const PLAIN: With = With { format: None, columns: None, time_unit_ns: None, concatenate: false };

const fn columns(text: &'static str) -> With {
    With { columns: Some(text), ..PLAIN }
}

const IODA: With = columns("time_ms, device, offset, size, op(1=read, 0=write)");
const MIDAS: With = columns("time_s, op(0=read, 1=write, 3=trim), lba*4096, size, skip");
const MIDAS_UNITS: With = columns("time_s, op(0=read, 1=write, 3=trim), lba*4096, sectors*4096, skip");
const LOG: With = columns("lba*512, size, time_s; op=read");
const OCTF: With = columns("skip, time_ns, lba*512, sectors*512, skip, op(Write=write, Read=read), skip*2");

/// The true content of a file: its requests, their length, the first operations (r or w), and the time in nanoseconds from
/// the first request to the second; `None` where it is not stated.
struct Content(usize, u64, &'static str, Option<u64>);

enum Expected {
    Is(Content),
    /// Refused: the line and the field, and a part of the message or of the remedy.
    Refused(Option<u64>, Option<&'static str>, &'static str),
}
use Expected::{Is, Refused};

const MS: u64 = 1_000_000;

const FILES: [(&str, With, Expected); 37] = [
    ("ioda.trace", IODA, Is(Content(20, 4096, "wrwr", Some(MS / 2)))),
    ("ioda_int.trace", IODA, Is(Content(20, 4096, "wrwr", Some(MS)))),
    ("replayer.csv", IODA, Is(Content(30, 4096, "wrwr", Some(MS / 2)))),
    ("replayer_int.csv", IODA, Is(Content(30, 4096, "wrwr", Some(MS)))),
    ("ioda.trace", PLAIN, Refused(Some(1), Some("block"), "workload.format = { columns")),
    ("ioda_int.trace", PLAIN, Refused(Some(1), Some("time"), "workload.format = { columns")),
    ("replayer.csv", PLAIN, Refused(Some(1), Some("IOType"), "workload.format = { columns")),
    ("replayer_int.csv", PLAIN, Refused(Some(1), Some("Opcode"), "workload.format = { columns")),
    ("midas_write.trace", MIDAS, Is(Content(50, 4096, "wwww", Some(MS / 10)))),
    ("midas_int.trace", MIDAS_UNITS, Is(Content(50, 4096, "wwww", Some(0)))),
    ("midas_write.trace", PLAIN, Refused(Some(1), Some("blocks"), "workload.format = { columns")),
    ("midas_int.trace", PLAIN, Refused(Some(1), Some("time"), "workload.format = { columns")),
    ("mqsim_seconds.trace", PLAIN, Refused(Some(1), Some("time"), "mqsim")),
    (
        "mqsim_seconds.trace",
        With { time_unit_ns: Some(1e9), ..PLAIN },
        Is(Content(20, 4096, "wrwr", Some(MS))),
    ),
    (
        "mqsim_seconds.trace",
        With { time_unit_ns: Some(1e9), format: Some("mqsim"), ..PLAIN },
        Is(Content(20, 4096, "wrwr", Some(MS))),
    ),
    ("mqsim_header.trace", PLAIN, Is(Content(30, 4096, "wrwr", Some(1000)))),
    ("spdk3909.log", With { time_unit_ns: Some(1.0), ..PLAIN }, Is(Content(20, 4096, "wwww", Some(MS)))),
    ("fio681.csv", PLAIN, Refused(Some(1), Some("Type"), "workload.format = { columns")),
    ("fio681.csv", LOG, Is(Content(20, 4096, "rrrr", Some(MS)))),
    ("msr_quoted.csv", PLAIN, Is(Content(20, 4096, "rrrr", Some(MS)))),
    ("msr_float.csv", PLAIN, Is(Content(20, 4096, "rrrr", Some(MS)))),
    ("hm_0_utf16.csv", PLAIN, Is(Content(30, 4096, "rwrw", Some(MS)))),
    ("biosnoop.txt", PLAIN, Is(Content(20, 4096, "rwrw", Some(MS)))),
    ("ftrace.txt", PLAIN, Is(Content(20, 4096, "wwww", Some(MS)))),
    ("fiu_homes.blkparse", PLAIN, Is(Content(20, 4096, "wwww", Some(MS)))),
    ("k5cloud.csv", With { concatenate: true, ..PLAIN }, Is(Content(20, 4096, "rwrw", Some(MS)))),
    ("k5cloud.csv", PLAIN, Refused(Some(2), None, "workload.device")),
    ("etw.csv", PLAIN, Is(Content(20, 4096, "wrwr", Some(MS)))),
    ("cloudPhysicsIO.csv", PLAIN, Is(Content(20, 4096, "wrwr", Some(MS)))),
    ("octf.csv", PLAIN, Refused(Some(2), None, "workload.format = { columns")),
    ("octf.csv", OCTF, Refused(Some(2), Some("lba"), "an empty field")),
    ("Financial1.spc.bz2", PLAIN, Is(Content(30, 4096, "rwrw", Some(MS)))),
    ("Financial1.spc.zip", PLAIN, Is(Content(30, 4096, "rwrw", Some(MS)))),
    ("2018100100.tgz", With { concatenate: true, ..PLAIN }, Is(Content(30, 0, "", None))),
    ("tencent.tar", With { concatenate: true, ..PLAIN }, Is(Content(30, 0, "", None))),
    ("nvme0n1.blktrace.0", PLAIN, Refused(None, None, "blkparse -i nvme0n1")),
    (
        "nvme0n1.blktrace.0",
        With { format: Some("blkparse"), ..PLAIN },
        Refused(None, None, "blkparse -i nvme0n1"),
    ),
];

#[test]
fn files_as_people_have_them_give_their_content_or_a_remedy() {
    let Some(folder) = shared("findings/traces") else { return };
    for (name, with, expected) in FILES {
        let format = with.format.map(TraceFormat::from);
        let format = with.columns.map(|text| TraceFormat::Columns(text.into())).or(format);
        let spec = TraceSpec {
            path: folder.join(name),
            format,
            time_unit_ns: with.time_unit_ns,
            device: with.concatenate.then_some(DeviceChoice::Concatenate),
            ..spec(name)
        };
        let found = open_trace(&spec, None).and_then(|mut source| drain(&mut *source));
        match (expected, found) {
            (Is(content), Ok(requests)) => check(name, &content, &requests),
            (Refused(line, field, what), Err(e)) => {
                let text = e.to_string();
                assert!(text.contains(name) && text.contains(what), "{text}");
                assert_eq!(e.line(), line, "{text}");
                if field.is_some() {
                    assert_eq!(e.field(), field, "{text}");
                }
            }
            (_, Ok(requests)) => panic!("{name}: {} requests, {:?}", requests.len(), requests.first()),
            (_, Err(e)) => panic!("{e}"),
        }
    }
}

fn check(name: &str, Content(count, len, ops, step): &Content, requests: &[Request]) {
    assert_eq!(requests.len(), *count, "{name}");
    if *len > 0 {
        assert!(requests.iter().all(|r| r.len == *len), "{name}: {:?}", requests[0]);
    }
    for (request, op) in requests.iter().zip(ops.chars()) {
        assert_eq!(request.op, if op == 'r' { Op::Read } else { Op::Write }, "{name}");
    }
    if let Some(step) = step {
        assert_eq!(requests[1].arrival.ns(), *step, "{name}");
    }
}

fn of(content: &str) -> Result<Vec<Request>, TraceError> {
    read(&spec("x"), content.as_bytes())
}

fn understood(spec: &TraceSpec, content: &str) -> Reading {
    reading(spec, Some(&Arc::from(content.as_bytes()))).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn tables_and_logs_of_tools_are_read() {
    let w = |arrival, offset| request(arrival, Op::Write, offset, 4096);
    let r = |arrival, offset| request(arrival, Op::Read, offset, 4096);
    for (format, content, expected) in [
        (
            "biosnoop",
            "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  LAT(ms)\n\
             0.000000    a b 2 c        1       vda       R 8          4096   5.49\n\
             0.001000    fio            2       vda       W 16         4096   0.10\n",
            vec![r(0, 4096), w(MS, 8192)],
        ),
        (
            "biosnoop",
            "TIME(s) COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms)\n0.5 fio 2 vda WS 16 4096 0.01 0.1\n0.5 fio 2 vda FF 0 0 0.01 0.1\n",
            vec![w(0, 8192), request(0, Op::Flush, 0, 0)],
        ),
        (
            "ftrace",
            "# tracer: nop\n#\n   fio-54 [002] ..... 80.25: block_rq_issue: 259,0 WS 4096 () 16 + 8 [fio]\n\
             <idle>-0 [002] ..s1. 80.26: block_rq_complete: 259,0 WS () 16 + 8 [0]\n\
             <idle>-0 [002] d.... 80.26: sched_switch: prev_comm=fio\n\
             fio 54 [002] 80.251: block:block_rq_issue: 259,0 RA 4096 () 8 + 8 none,0,0 [fio]\n\
             fio-54 [002] ..... 80.251: block_rq_issue: 259,0 FF 0 () 0 + 0 [fio]\n",
            vec![w(0, 8192), r(MS, 4096), request(MS, Op::Flush, 0, 0)],
        ),
        (
            "fiu",
            "1000000 4 syslogd 16 8 W 6 0 0a\n2000000 4 my daemon 8 8 R 6 0 0b\n",
            vec![w(0, 8192), r(MS, 4096)],
        ),
        ("k5cloud", "3,10.0,W,8192,4096\n3,10.001,R,4096,4096\n", vec![w(0, 8192), r(MS, 4096)]),
        (
            "etw",
            "BeginHeader\n DiskRead, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, ElapsedTime, \
             DiskNum, IrpFlags, DiskSvcTime, I/O Pri\n FileIoRead, TimeStamp\nEndHeader\n DiskWrite, 0, a.exe (1), 1, \
             0xf, 0x2000, 0x1000, 3, 2, 0x0, 2, Normal\n FileIoRead, 5\n DiskRead, 1000, a.exe (1), 1, 0xf, 0x1000, 0x1000, 3, \
             2, 0x0, 2, Normal\n",
            vec![w(0, 8192), r(MS, 4096)],
        ),
        (
            "cloudphysics",
            "version,time,op,size,lbn\n1,5.5,42,4096,16\n1,5.501,40,4096,8\n1,5.501,53,0,0\n",
            vec![w(0, 8192), r(MS, 4096), request(MS, Op::Flush, 0, 0)],
        ),
        ("mqsim", "time dev lsn size op\n0 0 16 8 0\n1000000 0 8 8 1\n", vec![w(0, 8192), r(MS, 4096)]),
        (
            "spc",
            "ASU,LBA,Size,Opcode,Timestamp\n0,16,4096,W,0\n0,8,4096,R,0.001\n",
            vec![w(0, 8192), r(MS, 4096)],
        ),
        (
            "msr",
            "\"10\",\"h\",\"0\",\"Write\",\"8192\",\"4096\",\"1\"\n10010.0,h,0,Read,4096.0,4096.00,1\n",
            vec![w(0, 8192), r(MS, 4096)],
        ),
    ] {
        let name = understood(&spec("x"), content).format;
        assert_eq!((name, of(content).as_deref()), (format, Ok(&expected[..])), "{content}");
    }
}

#[test]
fn damage_in_tables_and_logs_of_tools_is_named() {
    let event = "fio-54 [002] ..... 80.25: block_rq_issue: 259,0 WS 4096 () 16 + 8 [fio]\n";
    for (content, field) in [
        ("TIME(ms) DISK COMM PID LAT(ms)\n0 vda fio 2 0.1\n".to_owned(), "T"),
        (
            "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n0.0 fio 2 vda R 8 8 4096 0.1\n".to_owned(),
            "(end of line)",
        ),
        (format!("{event}CPU:2 [LOST 37 EVENTS]\n{event}"), "event"),
        (format!("{event}fio-54 [002] ..... x: block_rq_issue: 259,0 WS 4096 () 16 + 8 [fio]\n"), "time"),
        (format!("{event}fio-54 [002] ..... 80.25: block_rq_isue: 259,0 WS 4096 () 16 + 8 [fio]\n"), "event"),
        ("1000000 4 syslogd 16 8 W 6 0 0a\n1000000 4 syslogd 16 16 8 W 6 0 0a\n".to_owned(), "op"),
        (
            "DiskRead, 0, a.exe (1), 1, 0xf, 0x2000, 0x1000, 3, 2, 0x0, 2, Normal\nDiskReed, 0\n".to_owned(),
            "event",
        ),
    ] {
        let e = of(&content).expect_err(&content);
        assert_eq!(e.field(), Some(field), "{e}");
    }
}

#[test]
fn implausible_readings_are_refused_and_can_be_named() {
    let lines = |line: fn(u64) -> String| (0..20).map(line).collect::<String>();
    for (content, format, field, requests) in [
        (lines(|i| format!("{i} 0 {} 8 1\n", i * 8 + 8)), "mqsim", "time", 20),
        (lines(|i| format!("{}.5 0 {} 4096 0\n", i, i * 4096)), "disksim", "block", 20),
        (lines(|i| format!("{}.5 0 {} 4096 0\n", i, i * 7)), "disksim", "blocks", 20),
        (lines(|i| format!("0,{},4096,R,{i}\n", i * 4096)), "spc", "LBA", 20),
    ] {
        let e = of(&content).expect_err(&content);
        assert_eq!((e.kind(), e.field(), e.line()), (ErrorKind::Format, Some(field), Some(1)), "{e}");
        assert!(e.message().starts_with(&format!("read as {format}, ")), "{e}");
        assert!(e.remedy().contains("columns") && e.remedy().contains(&format!("\"{format}\"")), "{e}");
        assert_eq!(read(&spec_of(format), content.as_bytes()).unwrap().len(), requests);
    }
    // The times are finer than a nanosecond as milliseconds, and not as seconds.
    let seconds = lines(|i| format!("242.{:09} 0 {} 8 1\n", 504_709_548 + i * 1_000_000, i * 8));
    let e = of(&seconds).unwrap_err();
    assert!(e.message().contains("disksim reads the first record as 0.24250471 s"), "{e}");
    assert!(e.message().contains("mqsim with time_unit s reads the first record as 242.504709548 s"), "{e}");
    let named = TraceSpec { time_unit_ns: Some(1e9), ..spec("x") };
    assert_eq!(read(&named, seconds.as_bytes()).unwrap()[1].arrival.ns(), MS);
}

#[test]
fn a_reading_names_format_units_and_first_record_and_other_formats() {
    let content = "5265.313 0 6357144 8 0\n5265.413 0 6357144 8 1\n";
    let found = understood(&spec("x"), content);
    assert_eq!((found.format, found.is_named), ("disksim", false));
    assert!(found.units.starts_with("time (ms, decimal), device"), "{}", found.units);
    assert_eq!(found.first.unwrap().text(), "5.265313 s, device 0, write, offset 3254857728, length 4096");
    let other = &found.others[..];
    assert_eq!((other.len(), other[0].format, other[0].time_unit), (1, "mqsim", Some("s")));
    assert_eq!(other[0].there.text(), "5265.313 s, device 0, write, offset 3254857728, length 4096");
    assert!(other[0].units.starts_with("time (s), device"), "{}", other[0].units);

    // The first records are equal, since all times count from 0: shown are the second ones.
    let from_0 = understood(&spec("x"), "0 0 8 8 0\n1000000 0 16 8 1\n");
    let (here, there) = (&from_0.others[0].here, &from_0.others[0].there);
    assert_eq!((from_0.format, from_0.others[0].format), ("mqsim", "disksim"));
    assert_eq!((here.number, here.time_ns, there.time_ns), (2, MS, 1000 * 1_000_000_000));

    let named = understood(&spec_of("disksim"), content);
    assert!(named.is_named && named.others.is_empty());
    let msr = understood(&spec("x"), "128166372003061629,hm,0,Read,0,512,0\n");
    assert_eq!(msr.first.unwrap().text(), "12816637200.3061629 s, device hm_0, read, offset 0, length 512");
    assert!(msr.others.is_empty());
    let text = "time_s, offset, size, op";
    let columns = TraceSpec { format: Some(TraceFormat::Columns(text.into())), ..spec("x") };
    let found = understood(&columns, "1.5,0,512,R\n");
    assert_eq!((found.format, &found.units[..]), ("columns", text));
}

#[test]
fn a_first_line_with_names_of_columns_is_the_remedy() {
    for (header, columns) in [
        ("time_ms,op,offset,size", "time_ms, op, offset, size"),
        ("Time_s; device; OFFSET; size; op", "time_s, device, offset, size, op"),
    ] {
        let content = format!("{header}\n0.5,R,4096,4096\n");
        let e = of(&content).unwrap_err();
        let remedy = format!("describe the columns, workload.format = {{ columns = \"{columns}\" }}");
        assert_eq!((e.kind(), e.line(), e.remedy()), (ErrorKind::Format, Some(1), &remedy[..]), "{e}");
    }
    // The remedy works.
    let named =
        TraceSpec { format: Some(TraceFormat::Columns("time_ms, op, offset, size".into())), ..spec("x") };
    let first = understood(&named, "time_ms,op,offset,size\n0.5,R,4096,512\n").first.unwrap();
    assert_eq!(first.text(), "0.0005 s, read, offset 4096, length 512");
    // Other words are none of its names.
    assert!(of("zeit,was,wo,wieviel\n0,R,0,512\n").unwrap_err().message().contains("fits no known format"));
}

#[test]
fn a_failed_recognition_names_the_nearest_format_and_the_field() {
    for (content, format, field) in
        [("0,0,4096,4096,1\n", "spc", "Opcode"), ("128166372003061629,hm,0,Reed,0,512,0\n", "msr", "Type")]
    {
        let e = of(content).unwrap_err();
        assert!(
            e.message().contains(&format!("the nearest is {format}, in which this field is wrong")),
            "{e}"
        );
        assert_eq!((e.kind(), e.field(), e.line()), (ErrorKind::Format, Some(field), Some(1)), "{e}");
        assert!(e.remedy().contains("workload.format = { columns ="), "{e}");
    }
}

const MSR: &str = "1000,h,0,Write,8192,4096,0\n11000,h,0,Read,4096,4096,0\n";

fn tar_header(name: &str, size: usize, kind: u8) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    header[148..156].fill(b' ');
    header[156] = kind;
    header[257..263].copy_from_slice(b"ustar\0");
    let sum: u64 = header.iter().map(|&b| u64::from(b)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = tar_header("folder/", 0, b'5');
    for (name, content) in files {
        out.extend(tar_header(name, content.len(), b'0'));
        out.extend_from_slice(content);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn zip(files: &[(&str, &[u8])], is_deflated: bool) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in files {
        let packed = if is_deflated {
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        } else {
            content.to_vec()
        };
        let mut crc = flate2::Crc::new();
        crc.update(content);
        let at = out.len() as u32;
        let mut common = vec![20, 0, 0, 0, if is_deflated { 8 } else { 0 }, 0, 0, 0, 0, 0];
        for number in [crc.sum(), packed.len() as u32, content.len() as u32] {
            common.extend(number.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(name.as_bytes());
        out.extend(&packed);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let at = out.len() as u32;
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    for _ in 0..2 {
        out.extend((files.len() as u16).to_le_bytes());
    }
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(at.to_le_bytes());
    out.extend([0, 0]);
    out
}

#[test]
fn one_trace_inside_archives_and_streams_is_read() {
    let plain = read(&spec("x"), MSR.as_bytes()).unwrap();
    let one: &[(&str, &[u8])] = &[("hm_0.csv", MSR.as_bytes())];
    let noted: &[(&str, &[u8])] = &[("._hm_0.csv", b"note"), ("empty", b""), ("hm_0.csv", MSR.as_bytes())];
    let packed = gzip(MSR.as_bytes());
    let twice: &[(&str, &[u8])] = &[("hm_0.csv.gz", &packed)];
    for content in [
        tar(one),
        tar(noted),
        tar(twice),
        gzip(&tar(one)),
        gzip(&gzip(MSR.as_bytes())),
        zip(one, true),
        zip(one, false),
        zip(noted, true),
        zip(twice, false),
    ] {
        assert_eq!(read(&spec("x"), &content).unwrap_or_else(|e| panic!("{e}")), plain);
    }
}

#[test]
fn an_archive_of_several_files_is_refused_with_their_names() {
    let two: &[(&str, &[u8])] = &[("hm_0.csv", MSR.as_bytes()), ("hm_1.csv", MSR.as_bytes())];
    for content in [tar(two), gzip(&tar(two)), zip(two, true)] {
        let e = read(&spec("x.tar"), &content).unwrap_err();
        assert!(e.message().contains("archive of 2 files: hm_0.csv, hm_1.csv"), "{e}");
        assert!(e.remedy().contains("hm_0.csv"), "{e}");
    }
    for content in [tar(&[]), zip(&[], true)] {
        assert!(read(&spec("x"), &content).unwrap_err().message().contains("without a file"));
    }
}

#[test]
fn damaged_archives_are_errors() {
    let one: &[(&str, &[u8])] = &[("hm_0.csv", MSR.as_bytes())];
    let whole = tar(one);
    assert!(read(&spec("x"), &whole[..1030]).is_err());
    let mut zipped = zip(one, false);
    // The response time of the first record.
    zipped[63] ^= 1;
    let e = read(&spec("x"), &zipped).unwrap_err();
    assert!(e.message().contains("size or checksum is wrong"), "{e}");
    assert!(read(&spec("x"), &zipped[..60]).is_err());
    let e = read(&spec("x"), b"7z\xbc\xaf\x27\x1c\0\0").unwrap_err();
    assert!(e.message().contains("is a 7z archive"), "{e}");
}

#[test]
fn utf_16_is_read_with_either_byte_order() {
    let plain = read(&spec("x"), MSR.as_bytes()).unwrap();
    for (mark, bytes) in
        [([0xff, 0xfe], u16::to_le_bytes as fn(u16) -> [u8; 2]), ([0xfe, 0xff], u16::to_be_bytes)]
    {
        let text = MSR.replace('\n', "\r\n").encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
        let content = [&mark[..], &text].concat();
        assert_eq!(read(&spec("x"), &content).unwrap(), plain);
        assert!(read(&spec("x"), &content[..content.len() - 1]).is_err());
    }
}

#[test]
fn raw_blktrace_output_is_refused_with_the_command_that_converts_it() {
    for magic in [b"\x07tae", b"eat\x07"] {
        for format in [None, Some("blkparse".into())] {
            let raw = TraceSpec { format, ..spec("folder/sda.blktrace.3") };
            let e = open_bytes(&raw, [&magic[..], &[0; 44]].concat()).err().unwrap();
            assert!(e.remedy().contains("blkparse -i sda "), "{e}");
        }
    }
}

/// A file of the folder.
fn file(name: &str) -> Option<Vec<u8>> {
    shared("findings/traces").map(|folder| std::fs::read(folder.join(name)).unwrap())
}

#[test]
fn one_bad_time_costs_one_record() {
    let Some(content) = file("one_bad_time.csv") else { return };
    let e = read(&spec("one_bad_time.csv"), &content).unwrap_err();
    assert_eq!(
        (e.kind(), e.position(), e.field()),
        (ErrorKind::Order, Some(Position::Line(11)), Some("time"))
    );
    let tolerant = TraceSpec { lenient: Some(0.1), ..spec("one_bad_time.csv") };
    let (requests, skipped) = read_all(&tolerant, &content).unwrap();
    assert_eq!((requests.len(), skipped), (999, 1));
    assert!(requests.iter().all(|r| (r.op, r.len) == (Op::Write, 4096)));
}

/// Reads, writes, TRIMs and flushes of a file, and the number of skipped records.
fn counts(spec: &TraceSpec, content: &[u8]) -> ([usize; 4], u64) {
    let (requests, skipped) = read_all(spec, content).unwrap();
    (Op::ALL.map(|op| requests.iter().filter(|r| r.op == op).count()), skipped)
}

#[test]
fn the_real_logs_have_their_true_content() {
    for (name, ops, skipped) in [
        ("fio_appended.log", [64, 64, 0, 0], 0),
        ("fio756.log", [0, 20, 0, 0], 0),
        ("blkparse_inputfile.txt", [10, 10, 0, 0], 0),
        ("blkparse_ooo.txt", [0, 30, 0, 0], 0),
        ("blkparse_real.txt", [2, 2, 1, 4], 1),
        ("blkparse_real_c.txt", [1, 1, 0, 1], 1),
    ] {
        let Some(content) = file(name) else { continue };
        assert_eq!(counts(&spec(name), &content), (ops, skipped), "{name}");
    }
}

#[test]
fn a_log_whose_times_begin_again_is_refused_with_its_line() {
    let Some(content) = file("fio1537.log") else { return };
    let e = read(&spec("fio1537.log"), &content).unwrap_err();
    assert_eq!(
        (e.kind(), e.position(), e.field()),
        (ErrorKind::Order, Some(Position::Line(11)), Some("time"))
    );
    let closed = TraceSpec { uses_times: false, ..spec("fio1537.log") };
    assert_eq!(counts(&closed, &content), ([13, 0, 0, 0], 0));
}

#[test]
fn equal_times_are_refused_in_an_open_loop_only() {
    let Some(content) = file("same_time.csv") else { return };
    let e = read(&spec("same_time.csv"), &content).unwrap_err();
    assert_eq!((e.line(), e.field()), (Some(1000), Some("Timestamp")));
    assert!(e.remedy().contains("workload.arrival = { queue_depth = 32 }"), "{e}");
    let closed = TraceSpec { uses_times: false, ..spec("same_time.csv") };
    assert_eq!(counts(&closed, &content), ([0, 1500, 0, 0], 0));
}

/// Files whose tests are functions of their own.
const OTHER_FILES: [&str; 9] = [
    "one_bad_time.csv",
    "fio_appended.log",
    "fio756.log",
    "blkparse_inputfile.txt",
    "blkparse_ooo.txt",
    "blkparse_real.txt",
    "blkparse_real_c.txt",
    "fio1537.log",
    "same_time.csv",
];

#[test]
fn every_file_of_the_folder_has_a_test() {
    let Some(folder) = shared("findings/traces") else { return };
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_tested = FILES.iter().any(|file| file.0 == name) || OTHER_FILES.contains(&&name[..]);
        assert!(is_tested || name == "INDEX.md", "{name}");
    }
}
