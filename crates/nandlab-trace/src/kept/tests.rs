//! The folder of kept traces: what is kept, found, refused and removed. `tests/trace/common` compares kept traces with
//! parsed ones for all traces of the tests.

use super::column::{self, Column};
use super::*;
use crate::play::Batches;
use crate::{Source, TraceError, open_bytes};
use nandlab_base::base::request::Request;
use nandlab_base::base::units::DAY;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::SystemTime;

/// A folder of the test, removed at its end, with a source and kept traces.
struct Bench {
    folder: PathBuf,
    kept: KeptTraces,
}

impl Bench {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("nandlab-kept-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self { kept: KeptTraces::in_folder(folder.join("kept")), folder }
    }

    /// Marks may be written for files of any age.
    fn settled(name: &str) -> Self {
        let mut bench = Self::new(name);
        bench.kept.settled = Duration::ZERO;
        bench
    }

    fn source(&self, name: &str, content: &[u8]) -> TraceSpec {
        let path = self.folder.join(name);
        fs::write(&path, content).unwrap();
        spec(path)
    }

    fn files(&self, kind: &str) -> Vec<PathBuf> {
        let of_kind = self.kept.folder.entries().filter(|entry| entry.kind() == Some(kind));
        let mut files: Vec<_> = of_kind.map(|entry| entry.path).collect();
        files.sort();
        files
    }

    /// Whether the next reading is of a kept trace, and what it returns.
    fn read(&self, trace: &TraceSpec) -> (bool, Result<Played, TraceError>) {
        read(&self.kept, trace)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn spec(path: PathBuf) -> TraceSpec {
    TraceSpec::new(path)
}

/// Each request with the number of records skipped so far, that number at the end, and the devices.
type Played = (Vec<(Request, u64)>, u64, Vec<String>);

fn play(source: &mut dyn Source) -> Result<Played, TraceError> {
    let mut requests = Vec::new();
    while let Some(request) = source.next_request() {
        requests.push((request?, source.skipped()));
    }
    assert!(source.next_request().is_none());
    assert_eq!(source.progress(), 1.0);
    Ok((requests, source.skipped(), source.devices()))
}

fn read(kept: &KeptTraces, trace: &TraceSpec) -> (bool, Result<Played, TraceError>) {
    let mut batches = Batches::open(trace, Some(kept)).unwrap();
    (batches.is_kept(), play(&mut batches))
}

/// What the thread of the caller parses from the same content.
fn parsed(trace: &TraceSpec) -> Result<Played, TraceError> {
    play(&mut *open_bytes(trace, fs::read(&trace.path).unwrap()).unwrap())
}

/// An MSR trace of `lines` lines; line `bad` is damaged. `first` is the first address, so that traces differ.
fn content(lines: u64, bad: impl Fn(u64) -> bool, first: u64) -> Vec<u8> {
    let line = |i: u64| match bad(i) {
        true => format!("{},h,0,Wrong,{},4096,0\n", 1_000 + i, i * 4096),
        false => format!("{},h,0,Write,{},4096,0\n", 1_000 + i, (first + i % 977) * 4096),
    };
    (0..lines).map(line).collect::<String>().into_bytes()
}

/// A column as it is stored, and as it is read in pieces of `piece` numbers.
fn stored(numbers: &[u64], piece: usize) -> (Vec<u8>, Vec<u64>) {
    let mut block = vec![];
    column::write(&mut block, numbers.iter().copied());
    block.extend_from_slice(b"rest");
    let (column, rest) = Column::split(&block, numbers.len()).expect("a column");
    assert_eq!(rest, b"rest");
    let mut read = vec![0; numbers.len()];
    for from in (0..numbers.len()).step_by(piece) {
        let to = numbers.len().min(from + piece);
        column.read(from, &mut read[from..to]);
    }
    block.truncate(block.len() - 4);
    (block, read)
}

#[test]
fn a_column_has_as_many_bytes_as_its_range_needs() {
    const HEAD: usize = 10;
    let bytes = |numbers: &[u64]| {
        let (block, read) = stored(numbers, 2);
        assert_eq!(read, numbers);
        (block.len() - HEAD) as f64 / numbers.len() as f64
    };
    assert_eq!(bytes(&[4096; 5]), 0.0);
    assert_eq!(bytes(&[u64::MAX]), 0.0);
    // The low 12 bits are unused, whatever the least number is.
    assert_eq!(bytes(&[7, 7 + 4096, 7 + 255 * 4096]), 1.0);
    assert_eq!(bytes(&[7, 7 + 4096, 7 + 256 * 4096]), 2.0);
    assert_eq!(bytes(&[1 << 60, (1 << 60) + 0x1_0000, (1 << 60) + 1]), 4.0);
    assert_eq!(bytes(&[0, u64::MAX]), 8.0);
    assert_eq!(bytes(&[0, 1 << 63, 1 << 63]), 1.0);
    assert!(column::bytes_max(2) >= stored(&[0, u64::MAX], 1).0.len());
}

proptest! {
    #[test]
    fn a_column_is_read_as_it_was_written(
        numbers in prop::collection::vec((any::<u64>(), 0u32..64), 1..300),
        (least, shift, narrow) in (any::<u64>(), 0u32..64, any::<bool>()),
        piece in 1usize..300,
    ) {
        // Numbers of a range of any width above any least number, with any number of unused low bits.
        let numbers: Vec<u64> = numbers
            .iter()
            .map(|&(number, right)| least.saturating_add((number >> if narrow { 56 } else { right }) << shift))
            .collect();
        prop_assert_eq!(stored(&numbers, piece).1, numbers);
    }

    #[test]
    fn any_bytes_are_a_column_or_none(bytes in prop::collection::vec(any::<u8>(), 0..64), n in 1usize..8) {
        if let Some((column, _)) = Column::split(&bytes, n) {
            column.read(0, &mut vec![0; n]);
        }
    }
}

#[test]
fn the_second_reading_is_of_the_kept_trace() {
    let bench = Bench::new("second");
    // Skips at the start, at both sides of the ends of batches, and at the end.
    let batch = crate::batch::BATCH as u64;
    let bad = |i| i < 2 || i % 1009 == 0 || (batch - 2..batch + 2).contains(&i) || i >= 19_990;
    let trace = TraceSpec { lenient: Some(0.1), ..bench.source("t", &content(20_000, bad, 0)) };
    let expected = parsed(&trace).unwrap();
    assert_eq!(expected.1, (0..20_000).filter(|&i| bad(i)).count() as u64);
    for is_kept in [false, true, true] {
        assert_eq!(bench.read(&trace), (is_kept, Ok(expected.clone())));
    }
    assert_eq!(bench.kept.size().traces, 1);
    // A trace just written may change without another time, so it has no mark.
    assert!(bench.files("source").is_empty() && bench.files("incomplete").is_empty());

    // The same content under another name is the same trace; with another key it is another.
    fs::rename(&trace.path, bench.folder.join("u")).unwrap();
    let trace = TraceSpec { path: bench.folder.join("u"), ..trace };
    assert_eq!(bench.read(&trace), (true, Ok(expected.clone())));
    for other in [
        TraceSpec { format: Some("msr".into()), ..trace.clone() },
        TraceSpec { max_gap_ns: 2 * DAY, ..trace.clone() },
        TraceSpec { device: Some(nandlab_base::workload::DeviceChoice::Concatenate), ..trace.clone() },
    ] {
        assert_eq!(bench.read(&other), (false, parsed(&other)));
        assert_eq!(bench.read(&other), (true, parsed(&other)));
    }
}

#[test]
fn a_changed_source_is_parsed_again() {
    let bench = Bench::new("changed");
    for round in 0..20 {
        // Equal size, and mostly equal times: only the content differs.
        let trace = bench.source("t", &content(100, |_| false, 100 + round));
        assert_eq!(bench.read(&trace), (false, parsed(&trace)));
        assert_eq!(bench.read(&trace), (true, parsed(&trace)));
    }
    let settled = Bench::settled("changed-settled");
    for round in 0..3 {
        let trace = settled.source("t", &content(100, |_| false, 100 + round));
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(settled.read(&trace), (false, parsed(&trace)));
        assert_eq!(settled.read(&trace), (true, parsed(&trace)));
        assert_eq!(settled.files("source").len(), 1 + round as usize);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_mark_spares_hashing_and_a_damaged_mark_is_not_believed() {
    let bench = Bench::settled("mark");
    // Equal sizes, different addresses.
    let source = |name, first| bench.source(name, &content(10, |_| false, first));
    let (one, other) = (source("1", 300), source("2", 400));
    assert_ne!(parsed(&one), parsed(&other));
    for trace in [&one, &other] {
        assert!(!bench.read(trace).0);
    }
    // With the mark of the other source this source has the other requests: the mark is read, and the source is not.
    let [first, second] =
        [&one, &other].map(|t| bench.kept.mark(&Stamp::of(&File::open(&t.path).unwrap()).unwrap()));
    let good = fs::read(&first).unwrap();
    fs::copy(&second, &first).unwrap();
    assert_eq!(bench.read(&one), (true, parsed(&other)));
    for damaged in [&good[..0], &good[..40], &[b"0", &good[1..]].concat(), &[b"f", &good[1..]].concat()] {
        if damaged != &good[..] {
            fs::write(&first, damaged).unwrap();
            assert_eq!(bench.read(&one), (true, parsed(&one)));
            assert_eq!(fs::read(&first).unwrap(), good, "the mark is written again");
        }
    }
}

#[test]
fn only_settled_sources_have_marks() {
    let stamp = |mtime, ctime| Stamp { device: 1, inode: 2, size: 3, mtime: (mtime, 0), ctime: (ctime, 999) };
    let now = SystemTime::UNIX_EPOCH + Duration::new(100, 999);
    for (mtime, ctime, is_settled) in
        [(98, 98, true), (99, 98, false), (98, 99, false), (98, 101, false), (-1, 0, false)]
    {
        assert_eq!(stamp(mtime, ctime).is_settled(now, SETTLED), is_settled, "{mtime} {ctime}");
    }
}

#[test]
fn a_damaged_kept_trace_is_ignored_and_written_again() {
    let bench = Bench::new("damaged");
    let trace = TraceSpec { lenient: Some(0.1), ..bench.source("t", &content(60, |i| i == 7, 0)) };
    let expected = parsed(&trace);
    assert_eq!(bench.read(&trace), (false, expected.clone()));
    let name = bench.files("trace").remove(0);
    let good = fs::read(&name).unwrap();
    let flipped = (0..good.len()).map(|at| {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        bytes
    });
    let cut = (0..good.len()).map(|length| good[..length].to_vec());
    let longer = [[&good[..], &[0]].concat(), [&good[..], &good[..]].concat()];
    for damaged in flipped.chain(cut).chain(longer) {
        fs::write(&name, &damaged).unwrap();
        assert!(bench.kept.find(&trace).is_none());
    }
    assert_eq!(bench.read(&trace), (false, expected.clone()));
    assert_eq!(fs::read(&name).unwrap(), good);
    assert_eq!(bench.read(&trace), (true, expected));
}

#[test]
fn a_trace_with_an_error_is_never_kept() {
    let bench = Bench::new("error");
    let trace = bench.source("t", &content(10_000, |i| i == 9_000, 0));
    let expected = parsed(&trace);
    assert_eq!(expected.as_ref().unwrap_err().line(), Some(9_001));
    for _ in 0..3 {
        let mut batches = Batches::open(&trace, Some(&bench.kept)).unwrap();
        assert!(!batches.is_kept());
        let requests = std::iter::from_fn(|| batches.next_request()).take_while(Result::is_ok).count();
        assert_eq!(requests, 9_000, "the requests before the error are played");
        assert!(batches.next_request().is_none());
        assert_eq!(bench.read(&trace).1, expected);
    }
    assert_eq!(bench.kept.size(), KeptSize::default());
}

#[test]
fn a_trace_not_read_to_its_end_is_not_kept_and_its_threads_end() {
    let bench = Bench::new("part");
    let trace = bench.source("t", &content(200_000, |_| false, 0));
    for requests in [0, 1, 50_000] {
        let mut batches = Batches::open(&trace, Some(&bench.kept)).unwrap();
        assert_eq!((0..requests).filter(|_| batches.next_request().unwrap().is_ok()).count(), requests);
        drop(batches);
        assert_eq!(bench.kept.size(), KeptSize::default());
    }
}

#[test]
fn batches_are_used_again() {
    let bench = Bench::new("recycled");
    let trace = bench.source("t", &content(200_000, |_| false, 0));
    for is_kept in [false, true] {
        let mut batches = Batches::open(&trace, Some(&bench.kept)).unwrap();
        assert_eq!(batches.is_kept(), is_kept);
        let mut buffers = BTreeSet::new();
        while batches.next_request().is_some() {
            buffers.insert(batches.buffer());
        }
        assert!(buffers.len() <= 4, "{buffers:?}");
    }
}

#[test]
fn a_source_that_is_no_file_is_not_kept() {
    let bench = Bench::new("pipe");
    let pipe = bench.folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let text = content(10_000, |_| false, 0);
    let expected = play(&mut *open_bytes(&spec("t".into()), text.clone()).unwrap()).unwrap();
    for _ in 0..2 {
        let (path, text) = (pipe.clone(), text.clone());
        let writer = std::thread::spawn(move || fs::write(path, text).unwrap());
        assert_eq!(bench.read(&spec(pipe.clone())), (false, Ok(expected.clone())));
        writer.join().unwrap();
    }
    assert_eq!(bench.kept.size(), KeptSize::default());
}

#[test]
fn the_files_used_longest_ago_are_removed() {
    let bench = Bench::settled("sweep");
    let traces: Vec<_> =
        (0..4).map(|i| bench.source(&i.to_string(), &content(1_000, |_| false, 100 + i))).collect();
    for trace in &traces[..3] {
        bench.read(trace).1.unwrap();
    }
    let files = |i: usize| {
        let stamp = Stamp::of(&File::open(&traces[i].path).unwrap()).unwrap();
        let mark = bench.kept.mark(&stamp);
        [bench.kept.name(stamp.size, read_mark(&mark).unwrap(), keys_hash(&traces[i])), mark]
    };
    let each = bench.kept.size().bytes / 3;
    let of_each: Vec<_> = (0..3).map(files).collect();
    for (used, age_s) in of_each.iter().zip([3_000, 1_000, 2_000]) {
        for file in used {
            File::open(file).unwrap().set_modified(now() - Duration::from_secs(age_s)).unwrap();
        }
    }
    // The first trace was used longest ago until now.
    assert!(bench.read(&traces[0]).0);
    let orphan = |name: &str, age_s| {
        let path = bench.kept.folder().join(name);
        fs::write(&path, "half").unwrap();
        File::open(&path).unwrap().set_modified(now() - Duration::from_secs(age_s)).unwrap();
        path
    };
    let (old, new) = (orphan("1-2-3.incomplete", 100_000), orphan("4-5-6.incomplete", 1_000));
    let foreign = orphan("notes.txt", 1_000_000);
    // Room for three kept traces with their marks.
    let limited = bench.kept.clone().limited(3 * (each + 4096) + 100);
    assert_eq!(read(&limited, &traces[3]), (false, parsed(&traces[3])));
    let stay: Vec<_> = of_each.iter().map(|files| files.iter().all(|file| file.exists())).collect();
    assert_eq!(stay, [true, true, false]);
    assert!(!old.exists() && new.exists() && foreign.exists());
    assert!(read(&limited, &traces[3]).0);

    // A trace beyond the limit is not kept, and removes nothing.
    let before = limited.size();
    let long = bench.source("long", &content(10_000, |_| false, 0));
    assert_eq!(read(&limited, &long), (false, parsed(&long)));
    assert_eq!(limited.size(), before);
}

#[test]
fn a_folder_that_cannot_be_made_keeps_nothing() {
    let bench = Bench::new("no-folder");
    let trace = bench.source("t", &content(100, |_| false, 0));
    let kept = KeptTraces::in_folder(trace.path.join("kept"));
    assert_eq!(read(&kept, &trace), (false, parsed(&trace)));
    assert_eq!(kept.size(), KeptSize::default());
}

#[test]
fn only_the_owner_can_read_kept_traces() {
    let bench = Bench::settled("mode");
    bench.read(&bench.source("t", &content(100, |_| false, 0))).1.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(bench.kept.folder()), 0o700);
    let modes: Vec<_> = bench.kept.folder.entries().map(|entry| mode(&entry.path)).collect();
    assert_eq!(modes, [0o600, 0o600]);
}

/// The folder that the test `processes_share_a_folder` gives its processes.
const SHARED: &str = "NANDLAB_KEPT_TEST";

#[test]
fn processes_share_a_folder() {
    let bench = Bench::settled("processes");
    let trace = bench.source("t", &content(30_000, |_| false, 0));
    let start = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kept::tests::a_process_that_shares_a_folder", "--ignored"])
            .env(SHARED, &bench.folder)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let processes: Vec<_> = (0..4).map(|_| start()).collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    assert_eq!(bench.read(&trace), (true, parsed(&trace)));
    assert!(bench.files("incomplete").is_empty());
}

#[test]
#[ignore = "a process of processes_share_a_folder"]
fn a_process_that_shares_a_folder() {
    let folder = PathBuf::from(std::env::var_os(SHARED).expect("the folder"));
    // The limit is below the kept trace and its mark, so the processes also remove each other's files.
    let kept = KeptTraces { settled: Duration::ZERO, ..KeptTraces::in_folder(folder.join("kept")) };
    let trace = spec(folder.join("t"));
    let expected = parsed(&trace);
    for round in 0..10 {
        let kept = if round < 5 { kept.clone().limited(760_000) } else { kept.clone() };
        assert_eq!(read(&kept, &trace).1, expected);
    }
}

#[test]
#[ignore = "measures: prints requests/s of a parsed and of a kept trace"]
fn speed() {
    let bench = Bench::settled("speed");
    let n = 5_000_000;
    let trace = bench.source("t", &content(n, |_| false, 0));
    for _ in 0..4 {
        let start = now();
        let mut batches = Batches::open(&trace, Some(&bench.kept)).unwrap();
        let mut sum = 0;
        while let Some(request) = batches.next_request() {
            sum += request.unwrap().offset;
        }
        let rate = n as f64 / now().duration_since(start).unwrap().as_secs_f64() / 1e6;
        println!("kept: {}, {rate:.1} M requests/s, sum of addresses {sum}", batches.is_kept());
    }
}
