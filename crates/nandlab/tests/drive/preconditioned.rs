//! A preconditioned drive whose state is copied from another one: the copy plays as a drive does that was preconditioned
//! itself, and the key of a spec holds all that preconditioning depends on.

use crate::cases::Case;
use crate::common::schemes::placed;
use crate::common::{summary_at_the_end, wait_for_fewer};
use nandlab::base::kept_folder::KeptFolder;
use nandlab::base::rng::Stream;
use nandlab::drive::kept::{KeptDrive, KeptDrives};
use nandlab::drive::spec::{self, Loaded, PreconditionSpec};
use nandlab::drive::{Drive, Preconditioned};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Settings of sections that preconditioning does not see, each with what it makes of a random case.
const LATER: [&str; 20] = [
    "timing.read='70us'",
    "timing.erase='9ms'",
    "timing.scheduler=fcfs",
    "timing.multi_plane=true",
    "energy.idle=0.5",
    "host.link={ mb_per_s = 600, latency = '4us' }",
    "ecc.levels=laldpc",
    "ecc.start=last-level",
    "ecc.retry=incremental",
    "ftl.map={ demand = { cache = '40B' } }",
    "ftl.map={ demand = { cache = '8KiB', eviction = { read-level = { fixed = 3 } } } }",
    "reliability.clock_scale=3",
    "reliability.page_variation=0.1",
    "reliability.rber.vth={ dvpp = 0.3 }",
    "refresh.policy=none",
    "refresh.policy=fcr",
    "migration.policy=off-chip",
    "cache.size='96KiB'",
    "power.cut_after_requests=50",
    "output.series_rows=7",
];

fn load(text: &str, sets: &[&str]) -> Option<Loaded> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    spec::load(text, "random.toml", Path::new("."), &sets).ok()
}

fn preconditioned(loaded: &Loaded) -> (Drive, Preconditioned) {
    let mut drive = Drive::new(&loaded.spec);
    let (is_done, outcome) = drive.precondition(&mut |_| true);
    assert!(is_done);
    let state = drive.preconditioned(outcome);
    (drive, state)
}

fn played(case: &Case, drive: &mut Drive) -> String {
    let capacity = drive.geometry().logical_bytes();
    let mut stream = Stream::new(case.seed, "requests");
    for _ in 0..400 {
        wait_for_fewer(drive, case.depth);
        let mut request = case.request(&mut stream, capacity);
        request = placed(drive, request, &mut stream);
        request.arrival = drive.now();
        drive.submit(&request).unwrap();
    }
    summary_at_the_end(drive)
}

#[test]
fn a_drive_with_the_state_of_another_plays_as_one_that_was_preconditioned() {
    let mut copied = 0;
    for case in (0..90).map(Case::placed) {
        let text = case.spec().0;
        let loaded = load(&text, &[]).expect("the case has been accepted");
        if loaded.spec.precondition == PreconditionSpec::None {
            assert_eq!(loaded.precondition_key(), None, "{text}");
            continue;
        }
        let (mut first, state) = preconditioned(&loaded);
        let mut second = Drive::new(&loaded.spec);
        assert!(second.precondition_like(&state), "{text}");
        assert_eq!(
            format!("{state:?}"),
            format!("{:?}", second.preconditioned(state.outcome().cloned())),
            "{text}"
        );
        assert_eq!(played(&case, &mut first), played(&case, &mut second), "{text}");
        copied += 1;
    }
    assert!(copied > 40, "{copied}");
}

/// Drives that a setting must leave alike.
const ENOUGH: u32 = 10;

#[test]
fn specs_with_the_same_key_are_preconditioned_alike() {
    let mut alike = [0; LATER.len()];
    for case in (0..100).map(Case::placed) {
        let text = case.spec().0;
        let loaded = load(&text, &[]).expect("the case has been accepted");
        let Some(key) = loaded.precondition_key() else { continue };
        let (_, state) = preconditioned(&loaded);
        for (set, alike) in LATER.iter().zip(&mut alike).filter(|(_, alike)| **alike < ENOUGH) {
            let Some(other) = load(&text, &[set]).filter(|other| other.hash() != loaded.hash()) else {
                continue;
            };
            // A demand map is one of those settings only where the case has another one.
            if set.starts_with("ftl.map") && loaded.spec.ftl.map == spec::MapSpec::Page {
                assert_ne!(other.precondition_key(), Some(key.clone()));
                continue;
            }
            assert_eq!(other.precondition_key(), Some(key.clone()), "{set}\n{text}");
            let (_, own) = preconditioned(&other);
            let mut like = Drive::new(&other.spec);
            if like.precondition_like(&state) {
                let like = like.preconditioned(state.outcome().cloned());
                assert_eq!(format!("{like:?}"), format!("{own:?}"), "{set}\n{text}");
                *alike += 1;
            }
        }
    }
    for (set, alike) in LATER.iter().zip(alike) {
        assert!(alike > 0, "{set}: no drive is built alike");
    }
}

#[test]
fn the_key_differs_with_what_preconditioning_sees() {
    let text = "[drive]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 2\n\
        blocks_per_plane = 100\npages_per_block = 16\npage_size = '4KiB'\nop = 0.1\nendurance = 100000\n\
        [reliability]\npe_cycles = 3\n[precondition]\nused = 0.7\nvalid = 0.8\n\
        map_reads = true\n[workload]\nprofile = 'laldpc/hm0'\n";
    let key = |sets: &[&str]| load(text, sets).unwrap_or_else(|| panic!("{sets:?}")).precondition_key();
    let without = key(&[]);
    assert!(without.is_some());
    for set in [
        "seed=2",
        "drive.op=0.2",
        "drive.bad_blocks=0.01",
        "ftl.allocation=dynamic",
        "ftl.wear_levelling=none",
        "ftl.map.demand.cache='8KiB'",
        "gc.victim=fifo",
        "reliability.pe_cycles=4",
        "reliability.retention='9d'",
        "precondition.used=0.6",
        "precondition.map_reads=false",
        "workload.profile=laldpc/F1",
        "workload.requests_max=10",
        "workload.whole_pages=true",
    ] {
        assert_ne!(key(&[set]), without, "{set}");
    }
    for set in ["workload.arrival={ iops = 10 }", "workload.time_scale=0.5", "workload.warm_up=10"] {
        assert_eq!(key(&[set]), without, "{set}");
    }
    // Without `map_reads` the workload does not matter.
    let alone = key(&["precondition.map_reads=false"]);
    assert_eq!(key(&["precondition.map_reads=false", "workload.profile=laldpc/F1"]), alone);
}

/// A folder of kept drives of the test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("nandlab-drives-{}-{name}", std::process::id())))
    }

    /// Where the drive of a spec is kept, however small it is.
    fn of(&self, loaded: &Loaded, bytes_max: u64) -> KeptDrive {
        let folder = KeptFolder::new(&self.0, bytes_max);
        KeptDrives::new(folder, 0, || Some("test".to_owned())).of(loaded).expect("the spec chooses a method")
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> = KeptFolder::new(&self.0, 0).entries().map(|entry| entry.path).collect();
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A drive that is preconditioned, or loaded if it is kept, and what the user is told.
fn kept_or_made(loaded: &Loaded, kept: &KeptDrive) -> (Drive, Preconditioned, Option<String>) {
    let mut drive = Drive::new(&loaded.spec);
    let done = drive.precondition_or_load(Some(kept), &mut |_| true).unwrap();
    assert!(done.is_done);
    let state = drive.preconditioned(done.outcome);
    (drive, state, done.note)
}

#[test]
fn a_kept_drive_plays_as_one_that_was_preconditioned() {
    let folder = Folder::new("random");
    let mut loaded_ones = 0;
    for case in (0..90).map(Case::placed) {
        let text = case.spec().0;
        let loaded = load(&text, &[]).expect("the case has been accepted");
        if loaded.fill_key().is_none() {
            continue;
        }
        let kept = folder.of(&loaded, 1 << 30);
        let (mut fresh, state) = preconditioned(&loaded);
        let before = folder.files().len();
        let (_, first, note) = kept_or_made(&loaded, &kept);
        assert_eq!((note, folder.files().len()), (None, before + 1), "{text}");
        // The second one is loaded: it is not preconditioned, so nobody is told of progress.
        let mut second = Drive::new(&loaded.spec);
        let done = second.precondition_or_load(Some(&kept), &mut |_| panic!("it is kept")).unwrap();
        assert_eq!((done.is_done, &done.note), (true, &None), "{text}");
        let second_state = second.preconditioned(done.outcome);
        let shown = format!("{state:?}");
        assert_eq!(shown, format!("{first:?}"), "{text}");
        assert_eq!(shown, format!("{second_state:?}"), "{text}");
        second.audit().unwrap();
        assert_eq!(played(&case, &mut fresh), played(&case, &mut second), "{text}");
        loaded_ones += 1;
    }
    assert!(loaded_ones > 40, "{loaded_ones}");
}

/// A small drive that is filled.
const FILLED: &str = "[drive]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 2\n\
    blocks_per_plane = 100\npages_per_block = 16\npage_size = '4KiB'\nop = 0.1\nendurance = 100000\n\
    [precondition]\nused = 0.7\nvalid = 0.8\n";

#[test]
fn a_kept_drive_that_is_damaged_is_replaced() {
    let folder = Folder::new("damaged");
    let loaded = load(FILLED, &[]).unwrap();
    let kept = folder.of(&loaded, 1 << 30);
    let (_, state, _) = kept_or_made(&loaded, &kept);
    let [file] = &folder.files()[..] else { panic!("a kept drive") };
    let whole = std::fs::read(file).unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let damaged = [
        Vec::new(),
        whole[..10].to_vec(),
        whole[..whole.len() - 1].to_vec(),
        [&whole[..], b"more"].concat(),
        flipped(0),
        flipped(whole.len() / 2),
        flipped(whole.len() - 20),
        flipped(whole.len() - 1),
    ];
    for bytes in damaged {
        std::fs::write(file, bytes).unwrap();
        let (_, again, note) = kept_or_made(&loaded, &kept);
        assert!(note.is_some_and(|note| note.contains("damaged")), "the user is told");
        assert_eq!(format!("{again:?}"), format!("{state:?}"));
        assert_eq!(std::fs::read(file).unwrap(), whole);
        assert_eq!(kept_or_made(&loaded, &kept).2, None);
    }
}

#[test]
fn a_folder_that_cannot_be_written_leaves_the_drive_as_it_is() {
    let folder = Folder::new("unwritable");
    let loaded = load(FILLED, &[]).unwrap();
    std::fs::write(&folder.0, "a file").unwrap();
    let (_, state, note) = kept_or_made(&loaded, &folder.of(&loaded, 1 << 30));
    std::fs::remove_file(&folder.0).unwrap();
    assert!(note.is_some_and(|note| note.contains("was not kept")), "the user is told");
    assert_eq!(format!("{state:?}"), format!("{:?}", preconditioned(&loaded).1));
}

#[test]
fn the_drives_used_longest_ago_are_removed_and_one_beyond_the_limit_is_not_kept() {
    let folder = Folder::new("limit");
    let of_seed = |seed: u32| load(FILLED, &[&format!("seed={seed}")]).unwrap();
    kept_or_made(&of_seed(1), &folder.of(&of_seed(1), 1 << 30));
    let [first] = &folder.files()[..] else { panic!("a kept drive") };
    let each = std::fs::metadata(first).unwrap().len();
    let limit = 2 * each + each / 2;
    let age = |path: &PathBuf, seconds: u64| {
        let then = std::fs::metadata(path).unwrap().modified().unwrap() - Duration::from_secs(seconds);
        std::fs::File::open(path).unwrap().set_modified(then).unwrap();
    };
    age(first, 1_000);
    kept_or_made(&of_seed(2), &folder.of(&of_seed(2), limit));
    let second = folder.files().into_iter().find(|path| path != first).unwrap();
    age(&second, 500);
    // A use of the first one makes the second one the oldest.
    kept_or_made(&of_seed(1), &folder.of(&of_seed(1), limit));
    kept_or_made(&of_seed(3), &folder.of(&of_seed(3), limit));
    assert!(first.exists() && !second.exists() && folder.files().len() == 2);
    let (.., note) = kept_or_made(&of_seed(4), &folder.of(&of_seed(4), 1000));
    assert!(note.is_none() && folder.files().len() == 2);
}

#[test]
fn the_key_of_a_kept_drive_does_not_depend_on_the_workload() {
    let with_workload = |sets: &[&str]| {
        let text = format!("{FILLED}map_reads = true\n[workload]\nprofile = 'laldpc/hm0'\n");
        load(&text, sets).unwrap()
    };
    let key = with_workload(&[]).fill_key();
    assert!(key.is_some());
    assert_eq!(key, with_workload(&["workload.profile=laldpc/F1"]).fill_key());
    assert_ne!(key, with_workload(&["precondition.used=0.6"]).fill_key());
    assert_eq!(with_workload(&["precondition.method=none"]).fill_key(), None);
}
