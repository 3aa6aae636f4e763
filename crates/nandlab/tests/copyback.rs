//! Migration by copyback: its time, its limits, what it keeps.

mod common;

use common::{TINY, read_everything, settle, spec, with_oracle};
use nandlab::host::{Op, Request};
use nandlab::rng::Stream;
use nandlab::sched::Kind;

/// Writes so that GC has to move pages, under every policy and limit.
#[test]
fn every_policy_keeps_what_the_host_wrote() {
    let policies = [
        "'off-chip'",
        "{ rcopyback = { limit = 2 } }",
        "{ rcopyback-greedy = { limit = 1 } }",
        "{ rcopyback-greedy = { limit = 'table' } }",
        "{ rcopyback-greedy = { limit = 0 } }",
    ];
    for (index, policy) in policies.iter().enumerate() {
        let text = TINY.replace("op = 0.5", "op = 2") + &format!("[migration]\npolicy = {policy}\n");
        let spec = spec(&text, &["cache.size=64KiB", "cache.sync=eager"]);
        let mut drive = with_oracle(&spec);
        let mut stream = Stream::new(index as u64, "copyback");
        let pages = u64::from(drive.geometry().logical_pages);
        for _ in 0..6000 {
            let lpn = stream.below(pages);
            let request =
                Request { arrival: drive.now(), op: Op::Write, fua: false, offset: lpn * 4096, len: 4096 };
            while drive.outstanding() > 8 {
                drive.completions();
                assert!(drive.advance_to_completion(u64::MAX));
            }
            drive.submit(&request).unwrap();
        }
        settle(&mut drive);
        let copybacks = drive.stats().flash_total(Kind::Copyback);
        assert_eq!(copybacks > 0, (1..4).contains(&index), "{policy}: {copybacks}");
        assert_eq!(copybacks, drive.stats().migration.by_count.iter().sum::<u64>());
        read_everything(&mut drive);
    }
}
