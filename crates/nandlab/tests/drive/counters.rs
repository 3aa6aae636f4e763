//! Each declared counter is in the results, and counters add up.

use crate::common::{TINY, request, rest, spec};
use nandlab::base::counters::{Adds, CounterSet, UNITS};
use nandlab::base::geometry::DieId;
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::drive::stats::PowerLoss;
use nandlab::host::Op;
use nandlab::report::{RunFacts, Stretch, Table, Values, counters, schema, smart, summary};
use nandlab::sched::{Cause, FlashOp};
use serde_json::Value;
use std::collections::BTreeSet;

/// Returns a drive that has served random requests and lost power once, and the [`Stretch`] of these requests. The
/// drive has all mechanisms and the given refresh policy.
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
            "slc.dynamic=0.2",
            "timing.suspend.program={ enter = '9us', resume = '4us', min_progress = '0us', max = 3 }",
            refresh,
        ],
    ));
    drive.precondition(&mut |_| true);
    let began = Stretch::begin(&drive);
    let mut stream = Stream::new(5, "counters");
    let units = u64::from(drive.geometry().logical_units);
    for number in 0..3000 {
        let op = if stream.below(3) == 0 { Op::Read } else { Op::Write };
        let request = request(&drive, op, stream.below(units) * 4096, 4096);
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
        adds_up(&stats.slc.clone());
        adds_up(&stats.suspensions.clone());
        adds_up(&stats.buffer.clone());
        adds_up(&PowerLoss::total(stats.power.losses));
    }
    // Mapping units below the page exclude some of the mechanisms above.
    let units = spec(TINY, &["drive.page_size=16KiB", "ftl.mapping_unit=4KiB", "ftl.buffer=16KiB"]);
    let of_units = summary(&Drive::new(&units), &RunFacts::default());
    missing.retain(|path| at(&of_units, path).is_null());
    assert_eq!(missing, BTreeSet::new(), "declared counters are missing from the summary");
}

/// The warm-up (`drive/warm_up.rs`) begins these counters again by hand, because a maximum since a time does not follow
/// from the maxima at two times.
#[test]
fn the_maxima_are_those_that_a_warm_up_begins_again() {
    let of = |adds: Adds| -> Vec<&str> {
        let all = counters().flat_map(|(_, declared)| declared);
        all.filter(|declared| declared.adds == adds).map(|declared| declared.name).collect()
    };
    assert_eq!(of(Adds::Max), ["dirty_pages_max", "overdue_max_s"]);
    assert!(of(Adds::Last).is_empty());
}

#[test]
fn the_series_adds_up_to_the_counters() {
    let (drive, _) = run("refresh.policy=none");
    let (stats, geometry) = (drive.stats(), drive.geometry());
    let table = stats.series.table(geometry, drive.array().shapes().first());
    let column = |name: &str| -> Vec<f64> {
        match &table.columns.iter().find(|column| column.name == name).expect(name).values {
            Values::U64(values) => values.iter().map(|&value| value as f64).collect(),
            Values::F64(values) => values.clone(),
            Values::Text(_) => panic!("{name} is text"),
        }
    };
    let sum = |name: &str| column(name).iter().sum::<f64>();
    let mean = |name: &str| {
        let weighted = column(name).iter().zip(column("interval_s")).map(|(value, s)| value * s).sum::<f64>();
        weighted / sum("interval_s")
    };
    assert_eq!(sum("pages_written"), stats.counters.host_pages_written as f64);
    assert_eq!(sum("gc_victims"), stats.gc.victims as f64);
    assert_eq!(sum("erases"), stats.flash_total(FlashOp::Erase) as f64);
    let programs: f64 = Cause::ALL.iter().map(|cause| sum(&format!("program_{}", cause.name()))).sum();
    assert_eq!(programs, stats.pages_programmed() as f64);
    let dies = || (0..geometry.dies).map(|die| drive.device().die_busy_ns(DieId(die), drive.now()).seconds());
    let busy = dies().sum::<f64>() / (drive.now().seconds() * f64::from(geometry.dies));
    assert!((mean("die_busy_mean") / busy - 1.0).abs() < 1e-9, "{} and {busy}", mean("die_busy_mean"));
    let busy = drive.channel_busy_ns().seconds() / (drive.now().seconds() * f64::from(geometry.channels));
    assert!(
        (mean("channel_busy_mean") / busy - 1.0).abs() < 1e-9,
        "{} and {busy}",
        mean("channel_busy_mean")
    );
    assert!(column("channel_busy_mean").iter().all(|&share| (0.0..=1.0).contains(&share)));
}

#[test]
fn the_buckets_of_the_latency_table_agree_with_the_histograms() {
    let (drive, _) = run("refresh.policy=none");
    let stats = drive.stats();
    let table = Table::latency(stats.host);
    let numbers = |index: usize| -> Vec<f64> {
        match &table.columns[index].values {
            Values::U64(values) => values.iter().map(|&value| value as f64).collect(),
            Values::F64(values) => values.clone(),
            Values::Text(_) => panic!("column {index} is text"),
        }
    };
    let [low, high, count] = [1, 2, 3].map(numbers);
    assert!(low.iter().zip(&high).all(|(low, high)| low <= high && *high <= 1.01 * low + 0.001));
    assert_eq!(count.iter().sum::<f64>(), stats.host.iter().map(|host| host.count as f64).sum::<f64>());
    let all: f64 = stats.host.iter().map(|host| host.histogram().mean() * 1e-3 * host.count as f64).sum();
    let middles: f64 =
        low.iter().zip(&high).zip(&count).map(|((low, high), count)| (low + high) / 2.0 * count).sum();
    assert!((middles / all - 1.0).abs() < 0.01, "{middles} and {all}");
}

#[test]
fn a_row_of_a_life_has_the_columns_that_its_schema_declares() {
    let (drive, began) = run("refresh.policy=none");
    let row = began.row(&drive);
    let schema = schema();
    let declared = schema["$defs"]["LifeRow"]["properties"].as_object().expect("the row has columns");
    // The drive has a cache and a capacitor, so no column is absent.
    assert_eq!(
        row.iter().map(|&(name, _)| name).collect::<Vec<_>>(),
        declared.keys().map(String::as_str).collect::<Vec<_>>()
    );
    let value = |name: &str| row.iter().find(|column| column.0 == name).expect(name).1;
    assert!(value("die_busy_share") > 0.0 && value("die_busy_share") < 1.0);
    assert!(value("channel_busy_share") > 0.0 && value("channel_busy_share") < value("die_busy_share"));
    assert_eq!(value("cache_pages"), 16.0);
}
