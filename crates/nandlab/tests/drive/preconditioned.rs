//! A preconditioned drive whose state is copied from another one: the copy plays as a drive does that was preconditioned
//! itself, and the key of a spec holds all that preconditioning depends on.

use crate::cases::Case;
use crate::common::schemes::placed;
use crate::common::{summary_at_the_end, wait_for_fewer};
use nandlab::base::rng::Stream;
use nandlab::drive::spec::{self, Loaded, PreconditionSpec};
use nandlab::drive::{Drive, Preconditioned};
use std::path::Path;

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
