//! What a result says: write amplification in bytes, the steady state, and what never happened.

use crate::common::{TINY, request, rest, spec};
use nandlab::drive::Drive;
use nandlab::host::Op;
use nandlab::rng::Stream;
use nandlab::stats::{RunFacts, Values, smart, summary};
use nandlab::units::Time;
use serde_json::Value;

fn finished(drive: &mut Drive) -> (Value, Value) {
    drive.finish_stats();
    (summary(drive, &RunFacts { complete: true, ..RunFacts::default() }), smart(drive))
}

/// Plays so many uniform random writes of `len` bytes, eight at a time.
fn write_at_random(drive: &mut Drive, writes: u32, len: u64) {
    let mut stream = Stream::new(7, "results");
    let places = drive.geometry().logical_bytes() / len;
    for _ in 0..writes {
        while drive.outstanding() >= 8 {
            assert!(drive.advance_to_completion(Time::NEVER));
        }
        let write = request(drive, Op::Write, stream.below(places) * len, len);
        drive.submit(&write).unwrap();
        drive.completions();
    }
    rest(drive);
}

/// 1 KiB writes to 4 KiB pages: a page is programmed for each, which is four bytes for every one, and then there is GC.
#[test]
fn write_amplification_is_bytes_and_agrees_with_smart() {
    let mut drive = Drive::new(&spec(TINY, &["precondition.method='pts'"]));
    drive.precondition(&mut |_| true);
    write_at_random(&mut drive, 2000, 1024);
    let (summary, smart) = finished(&mut drive);
    let number = |value: &Value| value.as_f64().unwrap();
    let media = number(&smart["ocp_smart_log"]["Physical media units written"]);
    let host = number(&summary["host"]["write"]["bytes"]);
    assert_eq!(host, 2000.0 * 1024.0);
    assert_eq!(smart["nvme_smart_log"]["data_units_written"], (host / 512_000.0).ceil() as u64);
    let waf = number(&summary["waf"]);
    assert!((waf / (media / host) - 1.0).abs() < 1e-10, "{waf}, and {media} of {host} bytes");
    assert!(waf > 4.0 && (waf / number(&summary["waf_pages"]) - 4.0).abs() < 1e-9);
    // The series adds up to the same, whatever its intervals.
    let table = drive.stats().series.table(drive.geometry());
    let sum = |name: &str| match &table.columns.iter().find(|column| column.name == name).unwrap().values {
        Values::U64(values) => values.iter().sum::<u64>() as f64,
        _ => unreachable!("{name} is a count"),
    };
    assert_eq!((sum("bytes_programmed"), sum("bytes_write")), (media, host));
}

#[test]
fn without_host_writes_there_is_no_amplification() {
    let mut drive = Drive::new(&spec(TINY, &["precondition.method='pts'"]));
    drive.precondition(&mut |_| true);
    let read = request(&drive, Op::Read, 0, 4096);
    drive.submit(&read).unwrap();
    rest(&mut drive);
    let (summary, _) = finished(&mut drive);
    assert_eq!((&summary["waf"], &summary["waf_pages"]), (&Value::Null, &Value::Null));
    let table = drive.stats().series.table(drive.geometry());
    let waf = table.columns.iter().find(|column| column.name == "waf").unwrap();
    assert!(matches!(&waf.values, Values::F64(values) if !values.is_empty() && values.iter().all(|v| v.is_nan())));
}
