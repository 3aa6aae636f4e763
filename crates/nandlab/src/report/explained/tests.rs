use super::*;
use crate::base::rng::Stream;
use crate::base::units::Span;
use crate::drive::spec;
use crate::drive::{Drive, IDLE_LIMIT};
use crate::report::Taps;
use std::collections::HashMap;
use std::path::Path as FilePath;

/// A drive of few superblocks, on which GC never ends.
fn load(drive: &str, rest: &str) -> spec::Spec {
    let text = format!(
        "[drive]\nchips_per_channel = 1\nplanes_per_die = 2\nblocks_per_plane = 16\n\
         pages_per_block = 8\nop = 0.5\n{drive}\n{rest}"
    );
    spec::load(&text, "test.toml", FilePath::new("."), &[]).expect("the spec is valid").spec
}

fn explained(spec: &spec::Spec) -> Drive<Explainer> {
    Drive::with_probe(spec, Explainer::new(1_000_000))
}

/// Random requests of every kind at random times, which overload the drive now and then.
fn play(drive: &mut Drive<Explainer>, seed: u64, requests: u64) {
    play_with(drive, seed, requests, |_, _| {});
}

/// The same; `before` is called before each request, with its number.
fn play_with<P: Probe>(
    drive: &mut Drive<P>,
    seed: u64,
    requests: u64,
    mut before: impl FnMut(&mut Drive<P>, u64),
) {
    let mut random = Stream::new(seed, "explained");
    let units = u64::from(drive.geometry().logical_units);
    for number in 0..requests {
        before(drive, number);
        let (at, count) = (random.below(units - 8), 1 + random.below(8));
        let part = if random.below(8) == 0 { 512 } else { 0 };
        let (offset, len) = (at * 4096 + part, count * 4096 - 2 * part);
        let request = match random.below(20) {
            0 => Request::flush(),
            1 => Request::trim(offset, len),
            2..8 => Request::read(offset, len),
            n => Request::write(offset, len).with_fua(n == 8),
        };
        drive.submit(&request.at(drive.now())).expect("the request fits");
        let wait = [0, 0, 10_000, 100_000, 400_000, 3_000_000][random.below(6) as usize];
        drive.advance(drive.now() + Span::from_ns(random.below(wait + 1)));
        while drive.outstanding() > 24 {
            drive.advance(drive.now() + Span::from_ns(100_000));
        }
    }
    drive.run_until_idle(IDLE_LIMIT).expect("the drive comes to rest");
}

const PAGE: &str = "channels = 2\ndies_per_chip = 1\npage_size = '4KiB'\n";
const SHARED: &str = "channels = 1\ndies_per_chip = 2\npage_size = '4KiB'\n";

/// The drives of the random tests, each with the parts that must appear.
const DRIVES: [(&str, &str, &[&str]); 7] = [
    (SHARED, "", &["transfer", "bus", "sense", "program", "erase_gc", "program_gc", "units"]),
    (PAGE, "[gc]\nforeground = 'blocking'\npacing = 'none'\n", &["erase_gc"]),
    (
        PAGE,
        "[timing]\nmulti_plane = true\nsuspend.program = { enter = '9us', resume = '4us', min_progress = '5us', max = 3 }\n\
         suspend.erase = { enter = '20us', resume = '4us', min_progress = '0us', max = 3 }\n",
        &["suspend", "read_host"],
    ),
    (
        "channels = 2\ndies_per_chip = 1\npage_size = '16KiB'\n",
        "[timing]\nplane_reads = 'independent'\nread_hold = '100us'\n[ftl]\nbuffer = '128KiB'\nmapping_unit = '4KiB'\n",
        &["program_host", "read_host"],
    ),
    (
        PAGE,
        "[host]\nlink = { mb_per_s = 800, latency = '2us' }\n\
         controller = { read = '3us', write = '5us', commands_at_once = 2, commands_max = 16 }\n\
         [timing]\noff_chip_mb_per_s = 300\n",
        &["link", "controller"],
    ),
    (
        PAGE,
        "[cache]\nsize = '64KiB'\nflush_to = 'cache'\naccess = '1us'\n[capacitor]\ncapacitance = '1mF'\n",
        &["dram", "program_sync"],
    ),
    (
        PAGE,
        "[ftl]\nmap = { demand = { cache = '512B' } }\n[ecc]\nlevels = 'laldpc'\n[reliability]\nrber = 'vth'\n\
         read_disturb = 1e-3\n",
        &["read_mapping", "retry", "decode"],
    ),
];

#[test]
fn the_parts_of_each_request_sum_to_its_latency() {
    let mut missing = Vec::new();
    for (number, (of_drive, rest, names)) in DRIVES.iter().enumerate() {
        let spec = load(of_drive, rest);
        let mut found = Parts::default();
        for seed in 0..3 {
            let mut drive = explained(&spec);
            play(&mut drive, seed, 1500);
            let explainer = drive.probe();
            let mut sums = [Sums::default(); 4];
            for of in explainer.slowest() {
                assert_eq!(of.parts.sum_ns(), of.latency_ns, "drive {number}: {of:?}");
                let sum = &mut sums[of.request.op as usize];
                (sum.requests, sum.latency_ns) = (sum.requests + 1, sum.latency_ns + of.latency_ns);
                sum.parts.add_all(&of.parts);
                // The steps cover the latency without gap or overlap, and with the same parts.
                let (mut at, mut parts) = (0, Parts::default());
                for step in &of.steps {
                    assert_eq!(step.from_ns, at, "drive {number}: {of:?}");
                    if let Some(part) = step.part {
                        parts.add(part, step.to_ns - step.from_ns);
                    }
                    at = step.to_ns;
                }
                assert_eq!(at, of.latency_ns, "drive {number}: {of:?}");
                assert!(
                    of.steps.first().is_some_and(|step| step.part.is_none()) || parts == of.parts,
                    "drive {number}: {of:?}"
                );
            }
            assert_eq!(sums, Op::ALL.map(|op| explainer.sums(op)), "drive {number}");
            // The drive itself has the same latencies, measured by other code.
            for (op, sum) in Op::ALL.into_iter().zip(sums) {
                let latency = &drive.stats().host[op as usize];
                let (requests, latency_ns) = (sum.requests, u128::from(sum.latency_ns));
                assert_eq!((requests, latency_ns), (latency.count, latency.sum_ns), "drive {number}, {op:?}");
            }
            sums.iter().for_each(|sum| found.add_all(&sum.parts));
        }
        for name in *names {
            let ns: u64 = (0..PARTS).filter(|&part| Part::of(part).name() == *name).map(|p| found.0[p]).sum();
            if ns == 0 {
                missing.push(format!("drive {number}: no {name} in {}", found.to_json()));
            }
        }
        let other = found.ns(Part::Own(Own::Other));
        if other * 1000 > found.sum_ns() {
            missing.push(format!("drive {number}: {other} ns of {}", found.to_json()));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Requests that are not among the slowest are not followed step by step; their sums are those of requests that are.
#[test]
fn the_sums_do_not_depend_on_how_many_requests_are_followed() {
    for (number, (of_drive, rest, _)) in DRIVES.iter().enumerate() {
        let spec = load(of_drive, rest);
        let [none, few, all] = [0, 5, 1_000_000].map(|slowest| {
            let mut drive = Drive::with_probe(&spec, Explainer::new(slowest));
            play(&mut drive, 7, 1500);
            Op::ALL.map(|op| drive.probe().sums(op))
        });
        assert!(none == all && few == all, "drive {number}: {none:?} {few:?} {all:?}");
    }
}

/// By id what an explainer that never rests finds for each of 3,000 requests, and a drive for the same requests with an
/// explainer that can rest.
fn with_twin(spec: &spec::Spec) -> (HashMap<u64, Explained>, Drive<Taps>) {
    let mut watched = explained(spec);
    play(&mut watched, 7, 3000);
    let whole = watched.probe_mut().take_slowest().into_iter().map(|of| (of.id, of)).collect();
    (whole, Drive::with_probe(spec, Taps::default().explaining(Explainer::new(1_000_000))))
}

/// An explainer that rests now and then finds for each request that it explains what one that never rests finds, except
/// that what it has not seen is `other`.
#[test]
fn an_explainer_that_has_rested_does_not_know_what_came_before() {
    let other = Part::Own(Own::Other).index();
    let (mut equal, mut all) = (0, 0);
    for (number, (of_drive, rest, _)) in DRIVES.iter().enumerate() {
        let (whole, mut drive) = with_twin(&load(of_drive, rest));
        let (mut accepted, mut abandoned) = (0, 0);
        play_with(&mut drive, 7, 3000, |drive, number| {
            let (now, taps) = (drive.now(), drive.probe_mut());
            match number % 60 {
                0 => taps.wake_explainer(now),
                45 => {
                    abandoned += taps.explainer().expect("it is there").outstanding();
                    taps.rest_explainer();
                }
                _ => {}
            }
            let explainer = taps.explainer_mut().expect("it is there");
            explainer.accept(number % 60 < 25);
            let (accepts, outstanding) = (explainer.accepts(), explainer.outstanding());
            accepted += u64::from(accepts);
            if !accepts && outstanding == 0 {
                taps.rest_explainer();
            }
        });
        drive.probe_mut().rest_explainer();
        let explainer = drive.probe().explainer().expect("it is there");
        let slowest = explainer.slowest();
        // Requests that fail, such as reads that cannot be decoded, are in neither list.
        let failed = accepted - u64::from(abandoned) - slowest.len() as u64;
        let failed_max = 3000 - whole.len() as u64;
        assert!(accepted > 1200 && failed <= failed_max, "drive {number}: {failed} of {accepted}");
        for of in slowest {
            let twin = &whole[&of.id];
            assert_eq!((of.latency_ns, of.parts.sum_ns()), (twin.latency_ns, twin.latency_ns));
            // If only the second of two operations that run together is known, it counts as the first: its suspensions
            // are then seen, which those of a second operation are not.
            let known = (0..PARTS).filter(|&part| part != other && !rest.contains("multi_plane"));
            for part in known {
                let (ns, most) = (of.parts.0[part], twin.parts.0[part]);
                let name = Part::of(part).name();
                assert!(ns <= most, "drive {number}, {name}: {ns} of {most} ns, {of:?} {twin:?}");
            }
            (equal, all) = (equal + u64::from(of.parts == twin.parts), all + 1);
        }
        let sums = Op::ALL.map(|op| explainer.sums(op).requests);
        assert_eq!(sums.iter().sum::<u64>(), explainer.slowest().len() as u64);
    }
    assert!(equal * 10 > all * 8 && equal < all, "{equal} of {all} are equal");
}

/// What an explainer that has rested does not know is over after a while: then it finds the same as one that never rests.
#[test]
fn an_explainer_that_has_rested_soon_knows_all() {
    for (number, (of_drive, rest, _)) in DRIVES.iter().enumerate() {
        let (whole, mut drive) = with_twin(&load(of_drive, rest));
        play_with(&mut drive, 7, 3000, |drive, number| {
            let now = drive.now();
            match number {
                100 => drive.probe_mut().rest_explainer(),
                500 => drive.probe_mut().wake_explainer(now),
                1000 => _ = drive.probe_mut().explainer_mut().map(Explainer::take_slowest),
                _ => {}
            }
        });
        let explainer = drive.probe().explainer().expect("it is there");
        let later: Vec<&Explained> = explainer.slowest().into_iter().filter(|of| of.id >= 1000).collect();
        assert!(later.len() > 1500, "drive {number}: {}", later.len());
        for of in later {
            assert_eq!(of, &whole[&of.id], "drive {number}");
        }
    }
}

/// Where planes read at their own times, reads alone end what is not known of the whole die.
#[test]
fn reads_of_planes_do_not_wait_for_what_an_explainer_did_not_see() {
    let (of_drive, rest, _) = DRIVES[3];
    let mut drive =
        Drive::with_probe(&load(of_drive, rest), Taps::default().explaining(Explainer::new(1_000)));
    let play = |drive: &mut Drive<Taps>, op| {
        for unit in 0..u64::from(drive.geometry().logical_units) {
            drive.submit(&Request::new(op, unit * 4096, 4096).at(drive.now())).expect("the request fits");
        }
        drive.run_until_idle(IDLE_LIMIT).expect("the drive comes to rest");
        drive.probe_mut().explainer_mut().map(Explainer::take_slowest).unwrap_or_default()
    };
    play(&mut drive, Op::Write);
    let whole = play(&mut drive, Op::Read);
    let now = drive.now();
    drive.probe_mut().rest_explainer();
    drive.probe_mut().wake_explainer(now);
    play(&mut drive, Op::Read);
    let parts = [whole, play(&mut drive, Op::Read)].map(|all| {
        let mut sum = Parts::default();
        all.iter().for_each(|of| sum.add_all(&of.parts));
        sum
    });
    assert!(parts[0].sum_ns() > 0 && parts[0].ns(Part::Own(Own::Other)) == 0);
    assert_eq!(parts[1].ns(Part::Own(Own::Other)), 0, "{:?}", parts[1]);
}

/// The same for more requests at once than the rings have places.
#[test]
fn the_sums_of_a_deep_queue_do_not_depend_on_it_either() {
    let spec = load(SHARED, "");
    let [few, all] = [5, 1_000_000].map(|slowest| {
        let mut drive = Drive::with_probe(&spec, Explainer::new(slowest));
        let (mut random, units) = (Stream::new(1, "deep"), u64::from(drive.geometry().logical_units));
        for _ in 0..12_000 {
            let (offset, is_read) = (random.below(units) * 4096, random.below(2) == 0);
            let request = if is_read { Request::read(offset, 4096) } else { Request::write(offset, 4096) };
            submit(&mut drive, request);
        }
        drive.run_until_idle(IDLE_LIMIT).expect("the drive comes to rest");
        Op::ALL.map(|op| drive.probe().sums(op))
    });
    assert_eq!(few, all);
    assert!(all.iter().any(|sums| sums.parts.ns(Part::Own(Own::Other)) > 0), "a path ends at a limit");
}

/// One die of one plane. Times in us: command 1, sense 50, transfer of a page 10.24, decoding 15, program 900, erase
/// 3,500.
fn one_die(timing: &str) -> spec::Spec {
    dies(1, timing)
}

/// The same with several dies on one channel.
fn dies(dies: u32, timing: &str) -> spec::Spec {
    let text = format!(
        "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = {dies}\nplanes_per_die = 1\nblocks_per_plane = 16\n\
         pages_per_block = 8\npage_size = '4KiB'\nop = 1.0\n[gc]\nidle_after = '10s'\n\
         [timing]\ncommand = '1us'\n{timing}"
    );
    spec::load(&text, "test.toml", FilePath::new("."), &[]).expect("the spec is valid").spec
}

fn submit(drive: &mut Drive<Explainer>, request: Request) {
    drive.submit(&request.at(drive.now())).expect("the request fits");
}

fn parts(of: &Explained) -> Vec<(String, u64)> {
    of.steps
        .iter()
        .map(|step| (step.part.map_or_else(String::new, Part::name), step.to_ns - step.from_ns))
        .collect()
}

fn named(parts: &[(&str, u64)]) -> Vec<(String, u64)> {
    parts.iter().map(|&(name, ns)| (name.to_owned(), ns)).collect()
}

#[test]
fn a_read_waits_for_the_erase_on_its_die() {
    let mut drive = explained(&one_die(""));
    // Two superblocks of eight pages.
    for unit in 0..16 {
        submit(&mut drive, Request::write(unit * 4096, 4096));
    }
    drive.run_until_idle(IDLE_LIMIT).expect("the drive comes to rest");
    drive.probe_mut().take_slowest();
    submit(&mut drive, Request::read(8 * 4096, 4096));
    drive.run_until_idle(IDLE_LIMIT).expect("the drive comes to rest");
    // Nothing is valid in the first superblock any more: it is erased.
    submit(&mut drive, Request::trim(0, 8 * 4096));
    drive.advance(drive.now() + Span::from_ns(500_000));
    submit(&mut drive, Request::read(8 * 4096, 4096));
    drive.run_until_idle(IDLE_LIMIT).expect("the drive comes to rest");
    let slowest = drive.probe_mut().take_slowest();
    let own = [("transfer", 1_000), ("sense", 50_000), ("transfer", 10_240), ("decode", 15_000)];
    // Command and erase take 3,501 us, of which 500 have passed.
    assert_eq!(parts(&slowest[0]), named(&[[("erase_gc", 3_001_000)].as_slice(), &own].concat()));
    assert_eq!(slowest[0].steps[0].die, Some(0));
    assert_eq!(parts(&slowest[1]), named(&own));
}

#[test]
fn a_program_waits_for_the_reads_that_suspend_it() {
    let spec =
        one_die("suspend.program = { enter = '9us', resume = '4us', min_progress = '0us', max = 1 }\n");
    let mut drive = explained(&spec);
    submit(&mut drive, Request::write(0, 4096));
    drive.run_until_idle(IDLE_LIMIT).expect("the drive comes to rest");
    drive.probe_mut().take_slowest();
    submit(&mut drive, Request::write(4096, 4096));
    drive.advance(drive.now() + Span::from_ns(111_240));
    submit(&mut drive, Request::read(0, 4096));
    drive.run_until_idle(IDLE_LIMIT).expect("the drive comes to rest");
    let slowest = drive.probe_mut().take_slowest();
    // The program begins after 11.24 us and is suspended 100 us later; 9 us after that the read begins.
    let write = [
        ("transfer", 11_240),
        ("program", 100_000),
        ("suspend", 9_000),
        ("read_host", 61_240),
        ("program", 804_000),
    ];
    assert_eq!(parts(&slowest[0]), named(&write));
    let read = [
        ("suspend", 9_000),
        ("transfer", 1_000),
        ("sense", 50_000),
        ("transfer", 10_240),
        ("decode", 15_000),
    ];
    assert_eq!(parts(&slowest[1]), named(&read));
}

#[test]
fn reads_of_two_dies_wait_for_their_channel() {
    let mut drive = explained(&dies(2, ""));
    for unit in 0..2 {
        submit(&mut drive, Request::write(unit * 4096, 4096));
    }
    drive.run_until_idle(IDLE_LIMIT).expect("the drive comes to rest");
    drive.probe_mut().take_slowest();
    for unit in 0..2 {
        submit(&mut drive, Request::read(unit * 4096, 4096));
    }
    drive.run_until_idle(IDLE_LIMIT).expect("the drive comes to rest");
    let slowest = drive.probe_mut().take_slowest();
    // The second command follows the first, and the second transfer waits for the first, which ends after 61.24 us.
    let second = [
        ("bus", 1_000),
        ("transfer", 1_000),
        ("sense", 50_000),
        ("bus", 9_240),
        ("transfer", 10_240),
        ("decode", 15_000),
    ];
    let first = [("transfer", 1_000), ("sense", 50_000), ("transfer", 10_240), ("decode", 15_000)];
    assert_eq!(parts(&slowest[0]), named(&second));
    assert_eq!(parts(&slowest[1]), named(&first));
}

#[test]
fn a_power_loss_ends_what_was_followed() {
    let spec = load(SHARED, "[power]\ncut_after_requests = 1000000\n");
    let mut drive = explained(&spec);
    play(&mut drive, 7, 300);
    submit(&mut drive, Request::write(0, 8 * 4096));
    drive.advance(drive.now() + Span::from_ns(50_000));
    drive.cut_power();
    drive.probe_mut().take_slowest();
    play(&mut drive, 8, 300);
    for of in drive.probe_mut().take_slowest() {
        assert_eq!(of.parts.sum_ns(), of.latency_ns);
        assert_eq!(of.parts.ns(Part::Own(Own::Other)), 0, "{of:?}");
    }
}
