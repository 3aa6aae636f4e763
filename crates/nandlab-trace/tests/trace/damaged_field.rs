//! A file with one damaged field gives an error, all of its requests, or one request less that is counted as skipped.

use crate::common::*;
use nandlab_base::base::request::{Op, Request};
use nandlab_base::base::rng::Stream;
use nandlab_base::workload::TraceSpec;
use nandlab_trace::{ConvertOptions, Source, TraceError, convert, formats, open_bytes};

/// Records of a file.
const RECORDS: u64 = 50;

struct List(std::vec::IntoIter<Request>);

impl Source for List {
    fn next_request(&mut self) -> Option<Result<Request, TraceError>> {
        self.0.next().map(Ok)
    }

    fn progress(&self) -> f64 {
        0.0
    }
}

/// A file of [`RECORDS`] requests, a second apart.
fn file(format: &str) -> String {
    let op = |i| if i % 3 == 0 { Op::Read } else { Op::Write };
    let list: Vec<_> =
        (0..RECORDS).map(|i| request(i * 1_000_000_000, op(i), i * 7 % 40 * 4096, 4096)).collect();
    let mut out = Vec::new();
    convert(&mut List(list.into_iter()), &mut out, format, ConvertOptions::default()).unwrap();
    String::from_utf8(out).unwrap()
}

/// `line` with one damaged field.
fn damaged(line: &str, random: &mut Stream) -> String {
    let separator = if line.contains(',') && !line.contains(" + ") { ',' } else { ' ' };
    let mut fields: Vec<String> = line.split(separator).map(str::to_owned).collect();
    let filled: Vec<_> = (0..fields.len()).filter(|&at| !fields[at].is_empty()).collect();
    let at = filled[random.below(filled.len() as u64) as usize];
    match random.below(6) {
        0 => drop(fields.remove(at)),
        1 => fields[at].clear(),
        2 => fields[at] = fields[at].repeat(2),
        3 => fields[at] = "x".into(),
        4 => fields[at] = "9".repeat(25),
        // A time that is 30 days or 20 hours late in nanoseconds, microseconds, 100 ns, milliseconds or seconds.
        _ => {
            let (whole, rest) = fields[at].split_at(fields[at].find('.').unwrap_or(fields[at].len()));
            let late = [30 * 86_400, 20 * 3600][random.below(2) as usize];
            let unit = [1, 1_000, 1_000_000, 10_000_000, 1_000_000_000][random.below(5) as usize];
            fields[at] = match whole.parse::<u64>() {
                Ok(number) => format!("{}{rest}", number + late * unit),
                Err(_) => "-1".into(),
            };
        }
    }
    fields.join(&separator.to_string())
}

#[test]
fn no_request_is_lost_without_a_word() {
    let mut random = Stream::new(1, "damaged fields");
    let text = formats().map(|format| format.name()).filter(|name| *name != "vscsi");
    for format in text.collect::<Vec<_>>() {
        let whole = file(format);
        let lines: Vec<&str> = whole.lines().collect();
        let header = lines.len() - RECORDS as usize;
        for _ in 0..200 {
            let at = header + random.below(RECORDS) as usize;
            let bad = damaged(lines[at], &mut random);
            let mut all = lines.clone();
            all[at] = &bad;
            let content = format!("{}\n", all.join("\n"));
            for lenient in [None, Some(0.1)] {
                let spec = TraceSpec { lenient, ..spec_of(format) };
                let mut source = open_bytes(&spec, content.as_bytes()).unwrap();
                match drain(&mut *source) {
                    Ok(requests) => {
                        let found = requests.len() as u64 + source.skipped();
                        assert_eq!(found, RECORDS, "{format}, line {}: {bad}", at + 1);
                        let is_told = source.notes().iter().any(|note| note.code == "skipped-records");
                        assert_eq!(is_told, source.skipped() > 0, "{format}, line {}: {bad}", at + 1);
                        assert!(source.skipped() <= 1, "{format}, line {}: {bad}", at + 1);
                    }
                    Err(e) => {
                        assert!(
                            e.line().is_some_and(|line| line.abs_diff(at as u64 + 1) <= 1),
                            "{format}: {bad}: {e}"
                        );
                    }
                }
            }
        }
    }
}
