//! Traces of every format, each with one damaged field: a reading never has another number of requests without an error,
//! whatever the field and the damage.
//!
//! Every case is a generated trace in which one field of one record is missing, doubled, no number, out of range or, for
//! a time, beyond the window. Without `lenient` the trace is refused, or has all its requests; with `lenient` the
//! requests and the skipped records make up all records, at most one is skipped, and a note says so. `NANDLAB_DAMAGED` is the number of cases.

use crate::common::*;
use nandlab_base::base::rng::Stream;
use nandlab_base::workload::{TraceFormat, TraceSpec};
use nandlab_trace::{ErrorKind, TraceError, formats, open_bytes};

/// Cases of a usual run.
const CASES: u64 = 2000;
/// Records of a trace.
const RECORDS: u64 = 20;

/// How the records of a format are written: its header, the separator of its fields, and one record by its number.
struct Shape {
    format: &'static str,
    columns: Option<&'static str>,
    header: &'static str,
    separator: &'static str,
    fields: fn(i: u64, random: &mut Stream) -> Vec<String>,
    /// The field of the time.
    time: usize,
    /// The fields that a reader must check: others are not used.
    used: &'static [usize],
    /// What makes a text of a number of nanoseconds.
    time_text: fn(ns: u64) -> String,
}

macro_rules! texts {
    ($($value:expr),* $(,)?) => { vec![$($value.to_string()),*] };
}

fn sector(random: &mut Stream) -> u64 {
    random.below(1 << 30) * 8 + 1
}

fn op<'a>(random: &mut Stream, values: [&'a str; 2]) -> &'a str {
    values[random.below(2) as usize]
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

const STEP: u64 = 1_000_000;

const SHAPES: [Shape; 16] = [
    Shape {
        format: "msr",
        columns: None,
        header: "",
        separator: ",",
        fields: |i, r| {
            let op = op(r, ["Read", "Write"]);
            texts![128_166_372_000_000_000 + i * STEP / 100, "h", 0, op, sector(r) * 512, 4096, 7]
        },
        time: 0,
        used: &[0, 1, 2, 3, 4, 5, 6],
        time_text: |ns| (128_166_372_000_000_000 + ns / 100).to_string(),
    },
    Shape {
        format: "spc",
        columns: None,
        header: "",
        separator: ",",
        fields: |i, r| texts![0, sector(r), 4096, op(r, ["R", "w"]), seconds(i * STEP)],
        time: 4,
        used: &[0, 1, 2, 3, 4],
        time_text: seconds,
    },
    Shape {
        format: "blkparse",
        columns: None,
        header: "",
        separator: " ",
        fields: |i, r| {
            let op = op(r, ["R", "WS"]);
            texts!["8,0", 1, i, seconds(i * STEP), 5, "D", op, sector(r), "+", 8, "[fio]"]
        },
        time: 3,
        used: &[0, 3, 5, 6, 7, 8, 9],
        time_text: seconds,
    },
    Shape {
        format: "fio-iolog",
        columns: None,
        header: "fio version 3 iolog\n",
        separator: " ",
        fields: |i, r| texts![i * STEP / 1000, "f", op(r, ["read", "write"]), sector(r) * 512, 4096],
        time: 0,
        used: &[0, 1, 2, 3, 4],
        time_text: |ns| (ns / 1000).to_string(),
    },
    Shape {
        format: "ssdsim",
        columns: None,
        header: "",
        separator: " ",
        fields: |i, r| texts![i * STEP, 0, sector(r), 8, op(r, ["0", "1"])],
        time: 0,
        used: &[0, 1, 2, 3, 4],
        time_text: |ns| ns.to_string(),
    },
    Shape {
        format: "mqsim",
        columns: None,
        header: "",
        separator: " ",
        fields: |i, r| texts![i * STEP, 0, sector(r), 8, op(r, ["0", "1"])],
        time: 0,
        used: &[0, 1, 2, 3, 4],
        time_text: |ns| ns.to_string(),
    },
    Shape {
        format: "disksim",
        columns: None,
        header: "",
        separator: " ",
        fields: |i, r| texts![format!("{i}.000"), 0, sector(r), 8, op(r, ["0", "1"])],
        time: 0,
        used: &[0, 1, 2, 3, 4],
        time_text: |ns| format!("{}.{:06}", ns / STEP, ns % STEP),
    },
    Shape {
        format: "alibaba",
        columns: None,
        header: "",
        separator: ",",
        fields: |i, r| {
            texts![7, op(r, ["R", "W"]), sector(r) * 512, 4096, 1_577_808_000_000_000 + i * STEP / 1000]
        },
        time: 4,
        used: &[0, 1, 2, 3, 4],
        time_text: |ns| (1_577_808_000_000_000 + ns / 1000).to_string(),
    },
    Shape {
        format: "tencent",
        columns: None,
        header: "",
        separator: ",",
        fields: |i, r| texts![1_538_323_200 + i, sector(r), 8, op(r, ["0", "1"]), 1063],
        time: 0,
        used: &[0, 1, 2, 3, 4],
        time_text: |ns| (1_538_323_200 + ns / 1_000_000_000).to_string(),
    },
    Shape {
        format: "systor",
        columns: None,
        header: "Timestamp,Response,IOType,LUN,Offset,Size\n",
        separator: ",",
        fields: |i, r| {
            texts![
                seconds(1_456_095_145_000_000_000 + i * STEP),
                0.001,
                op(r, ["R", "W"]),
                3,
                sector(r) * 512,
                4096
            ]
        },
        time: 0,
        used: &[0, 2, 3, 4, 5],
        time_text: |ns| seconds(1_456_095_145_000_000_000 + ns),
    },
    Shape {
        format: "fiu",
        columns: None,
        header: "",
        separator: " ",
        fields: |i, r| texts![i * STEP, 4, "syslogd", sector(r), 8, op(r, ["R", "W"]), 6, 0, "531e779d"],
        time: 0,
        used: &[0, 1, 3, 4, 5, 6, 7],
        time_text: |ns| ns.to_string(),
    },
    Shape {
        format: "k5cloud",
        columns: None,
        header: "",
        separator: ",",
        fields: |i, r| texts![1, seconds(i * STEP), op(r, ["R", "W"]), sector(r) * 512, 4096],
        time: 1,
        used: &[0, 1, 2, 3, 4],
        time_text: seconds,
    },
    Shape {
        format: "cloudphysics",
        columns: None,
        header: "version,time,op,size,lbn\n",
        separator: ",",
        fields: |i, r| texts![1, seconds(i * STEP), op(r, ["40", "42"]), 4096, sector(r)],
        time: 1,
        used: &[0, 1, 2, 3, 4],
        time_text: seconds,
    },
    Shape {
        format: "etw",
        columns: None,
        header: "BeginHeader\n DiskRead, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, ElapsedTime, \
                 DiskNum, IrpFlags, DiskSvcTime, I/O Pri\nEndHeader\n",
        separator: ", ",
        fields: |i, r| {
            let (op, offset) = (op(r, ["DiskRead", "DiskWrite"]), format!("{:#012x}", sector(r) * 512));
            texts![
                op,
                i * STEP / 1000,
                "a.exe (1)",
                1,
                "0xfa80",
                offset,
                "0x00001000",
                3,
                2,
                "0x06",
                2,
                "Normal"
            ]
        },
        time: 1,
        used: &[0, 1, 5, 6, 8],
        time_text: |ns| (ns / 1000).to_string(),
    },
    Shape {
        format: "biosnoop",
        columns: None,
        header: "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  LAT(ms)\n",
        separator: " ",
        fields: |i, r| {
            texts![seconds(i * STEP), "fio", 2784, "vda", op(r, ["R", "WS"]), sector(r), 4096, "5.49"]
        },
        time: 0,
        used: &[0, 3, 4, 5, 6],
        time_text: seconds,
    },
    Shape {
        format: "columns",
        columns: Some("time_us, device, lba*512, size, op(1=read, 0=write)"),
        header: "",
        separator: ";",
        fields: |i, r| texts![i * STEP / 1000, "d", sector(r), 4096, op(r, ["0", "1"])],
        time: 0,
        used: &[0, 2, 3, 4],
        time_text: |ns| (ns / 1000).to_string(),
    },
];

const FTRACE: Shape = Shape {
    format: "ftrace",
    columns: None,
    header: "# tracer: nop\n",
    separator: " ",
    fields: |i, r| {
        let stamp = format!("{}:", seconds(i * STEP));
        texts![
            "fio-5402",
            "[002]",
            ".....",
            stamp,
            "block_rq_issue:",
            "259,0",
            op(r, ["R", "WS"]),
            4096,
            "()",
            sector(r),
            "+",
            8,
            "[fio]"
        ]
    },
    time: 3,
    used: &[3, 5, 6, 7, 9, 10, 11],
    time_text: |ns| format!("{}:", seconds(ns)),
};

/// The numbers of requests and of skipped records, and whether a note tells of these.
fn played(spec: &TraceSpec, content: &str) -> Result<(u64, u64, bool), TraceError> {
    let mut source = open_bytes(spec, content.as_bytes())?;
    let requests = drain(&mut *source)?.len() as u64;
    let is_told = source.notes().iter().any(|note| note.code == "skipped-records");
    Ok((requests, source.skipped(), is_told))
}

/// Damages field `at` of a record in the way `way`.
fn damage(shape: &Shape, fields: &mut Vec<String>, at: usize, way: u64, random: &mut Stream) {
    match way {
        0 => drop(fields.remove(at)),
        1 => fields.insert(at, fields[at].clone()),
        2 => fields[at] = "x?".into(),
        3 => fields[at] = "99999999999999999999999".into(),
        4 => fields[at] = "-1".into(),
        // Twenty hours, two days or a month late.
        5 => {
            let hours = [20, 48, 720][random.below(3) as usize];
            fields[shape.time] = (shape.time_text)(hours * 3_600_000_000_000 + 10 * STEP);
        }
        _ => fields[at] = String::new(),
    }
}

#[test]
fn a_damaged_field_never_changes_the_count_without_a_word() {
    let cases = std::env::var("NANDLAB_DAMAGED").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES);
    let mut random = Stream::new(61, "damaged fields");
    let shapes: Vec<&Shape> = SHAPES.iter().chain([&FTRACE]).collect();
    let texts = formats().map(|f| f.name()).filter(|name| !["vscsi", "recording"].contains(name));
    assert!(texts.into_iter().all(|name| shapes.iter().any(|shape| shape.format == name)));
    let (mut refused, mut whole) = (0, 0);
    for case in 0..cases {
        let shape = shapes[(case % shapes.len() as u64) as usize];
        let damaged = random.below(RECORDS);
        let at = shape.used[random.below(shape.used.len() as u64) as usize];
        let way = random.below(7);
        let mut content = shape.header.to_owned();
        for i in 0..RECORDS {
            let mut fields = (shape.fields)(i, &mut random);
            if i == damaged {
                damage(shape, &mut fields, at, way, &mut random);
            }
            content += &fields.join(shape.separator);
            content.push('\n');
        }
        let is_named = shape.columns.is_some() || shape.format == "ssdsim" || random.below(2) == 0;
        let format = match shape.columns {
            Some(text) => TraceFormat::Columns(text.into()),
            None => shape.format.into(),
        };
        let strict = TraceSpec { format: is_named.then_some(format), ..spec("x") };
        match played(&strict, &content) {
            Ok((requests, skipped, is_told)) => {
                let case = format!("{}, field {at}, way {way}:\n{content}", shape.format);
                assert_eq!(requests + skipped, RECORDS, "{case}");
                // A record of Systor may have no type, which is told.
                assert_eq!(
                    (skipped, is_told),
                    if shape.format == "systor" && at == 2 && way == 6 { (1, true) } else { (0, false) },
                    "{case}"
                );
                whole += 1;
            }
            Err(e) => {
                let has_field = e.field().is_some() || e.kind() == ErrorKind::Device;
                assert!(e.line().is_some() && has_field && !e.remedy().is_empty(), "{e}\n{content}");
                refused += 1;
            }
        }
        let skipping = lenient(strict);
        match played(&skipping, &content) {
            Ok((requests, skipped, is_told)) => {
                let case = format!("{}, field {at}, way {way}:\n{content}", shape.format);
                assert_eq!(requests + skipped, RECORDS, "{case}");
                assert_eq!(is_told, skipped > 0, "{case}");
                assert!(skipped <= 1, "{case}");
            }
            Err(e) => assert!(!e.remedy().is_empty(), "{e}"),
        }
    }
    // Fields such as a device's name have no wrong value, and a column too many may be one that is ignored.
    assert!(refused > whole, "{refused} refused, {whole} whole");
}
