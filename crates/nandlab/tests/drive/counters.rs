//! Each declared counter is in the results, and counters add up.

use crate::common::{TINY, request, rest, spec};
use nandlab::base::counters::{Adds, CounterSet, UNITS};
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::drive::stats::PowerLoss;
use nandlab::host::Op;
use nandlab::report::{RunFacts, Stretch, counters, smart, summary};
use serde_json::Value;
use std::collections::BTreeSet;

/// Returns a drive with all mechanisms and the given refresh policy that has served random requests and lost power
/// once. Also returns the [`Stretch`] that began with these requests.
fn run(refresh: &str) -> (Drive, Stretch) {
    let mut drive = Drive::new(&spec(
        TINY,
        &[
            "drive.blocks_per_plane=64",
            "ftl.map.demand={ cache = '256B', eviction = 'lru' }",
            "cache.size='64KiB'",
            "capacitor.capacitance='20uF'",
            "ecc.levels='laldpc'",
            "reliability.rber='vth'",
            "reliability.pe_cycles=8000",
            "reliability.retention='30d'",
            "reliability.clock_scale=8640000",
            "migration.policy.rcopyback-greedy={ limit = 2 }",
            "reclaim.policy=reads",
            refresh,
        ],
    ));
    drive.precondition(&mut |_| true);
    let began = Stretch::begin(&drive);
    let mut stream = Stream::new(5, "counters");
    let pages = u64::from(drive.geometry().logical_pages);
    for number in 0..3000 {
        let op = if stream.below(3) == 0 { Op::Read } else { Op::Write };
        let request = request(&drive, op, stream.below(pages) * 4096, 4096);
        drive.submit(&request).unwrap();
        if number == 2000 {
            drive.cut_power();
        }
        while drive.outstanding() >= 8 {
            assert!(drive.advance_to_completion(Time::NEVER));
        }
        drive.completions();
    }
    rest(&mut drive);
    drive.finish_stats();
    (drive, began)
}

/// Returns the value at a dotted path.
fn at<'a>(section: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(section, |section, name| &section[name])
}

/// Checks three results: counters minus themselves, counters minus empty counters, and the sum of counters and empty
/// counters.
fn adds_up<C: CounterSet + Clone + Default + PartialEq + std::fmt::Debug>(counts: &C) {
    for (declared, count) in counts.since(counts).declared() {
        let now = counts.declared().find(|(other, _)| *other == declared).unwrap().1.number();
        let expected = if declared.adds == Adds::Sum { 0.0 } else { now };
        assert_eq!(count.number(), expected, "{declared:?}");
    }
    assert_eq!(counts.since(&C::default()), *counts);
    let mut sum = C::default();
    sum.add(counts);
    assert_eq!(sum, *counts);
    sum.add(&C::default());
    assert!(counts.declared().zip(sum.declared()).all(|((declared, count), (_, sum))| {
        declared.adds == Adds::Last || sum.number() == count.number()
    }));
}

#[test]
fn declared_counters_are_in_the_results_and_add_up() {
    let mut missing: BTreeSet<String> = BTreeSet::new();
    for (section, declared) in counters() {
        missing.extend(declared.iter().map(|declared| format!("{section}.{}", declared.summary)));
        assert_eq!(
            declared.iter().map(|declared| declared.summary).collect::<BTreeSet<_>>().len(),
            declared.len(),
            "{section}: a name is declared twice"
        );
        for declared in declared {
            assert!(UNITS.contains(&declared.unit), "{section}: {declared:?}");
            assert!(declared.doc.ends_with('.'), "{section}: {declared:?}");
        }
    }
    for refresh in [
        "refresh.policy.partial={ min_free_blocks = 0.0 }",
        "refresh.policy.ec-cache={ size = '16KiB', hot_reads = 2 }",
    ] {
        let (drive, began) = run(refresh);
        let summary = summary(&drive, &RunFacts::default());
        missing.retain(|path| at(&summary, path).is_null());
        let (row, smart) = (began.row(&drive), smart(&drive));
        for declared in counters().flat_map(|(_, declared)| declared) {
            if let Some(column) = declared.life {
                assert_eq!(row.iter().filter(|(name, _)| *name == column).count(), 1, "{declared:?}");
            }
            if let Some(attribute) = declared.smart {
                assert!(smart["ocp_smart_log"][attribute].is_number(), "{declared:?}");
            }
        }
        let stats = drive.stats();
        adds_up(&stats.counters.clone());
        adds_up(&stats.ecc.clone());
        adds_up(&stats.map.clone());
        adds_up(&stats.cache.clone());
        adds_up(&stats.migration.clone());
        adds_up(&stats.gc.clone());
        adds_up(&stats.refresh.clone());
        adds_up(&stats.reclaim.clone());
        adds_up(&PowerLoss::total(stats.power.losses));
    }
    assert_eq!(missing, BTreeSet::new(), "declared counters are missing from the summary");
}
