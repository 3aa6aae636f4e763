//! Refresh: when blocks are due, what it costs, what it does to the data.

mod common;

use common::{TINY, read_everything, settle, spec, with_oracle};
use nandlab::host::{Op, Request};
use nandlab::rng::Stream;
use nandlab::sched::{Cause, Kind};

const AGEING: &str = "[ecc]\nlevels = 'laldpc'\n[reliability]\nrber = 'vth'\npe_cycles = 1500\n";

#[test]
fn data_that_nobody_writes_is_refreshed_every_interval() {
    let text = TINY.to_owned() + AGEING + "clock_scale = 86400.0\n[refresh]\npolicy = 'fcr'\n";
    let mut drive = with_oracle(&spec(&text, &[]));
    let pages = u64::from(drive.geometry().logical_pages);
    for lpn in 0..pages {
        let request =
            Request { arrival: drive.now(), op: Op::Write, fua: false, offset: lpn * 4096, len: 4096 };
        drive.submit(&request).unwrap();
    }
    drive.run_until_idle();
    assert_eq!(drive.stats().refresh.blocks, 0);
    // A day passes in a second; blocks of 1501 cycles are due every 30 days.
    drive.advance(29_000_000_000);
    assert_eq!(drive.stats().refresh.blocks, 0);
    drive.advance(31_500_000_000);
    let stats = drive.stats();
    // Every page once; those that went to a block begun before, by GC, once more with it.
    assert!((pages..pages + 4 * 8).contains(&stats.refresh.pages), "{:?}", stats.refresh);
    assert_eq!(stats.flash[Kind::Program as usize][Cause::Refresh as usize], stats.refresh.pages);
    assert_eq!(stats.refresh.late_blocks, 0, "{:?}", stats.refresh);
    drive.advance(63_000_000_000);
    assert!((2 * pages..2 * pages + 8 * 8).contains(&drive.stats().refresh.pages));
    settle(&mut drive);
    read_everything(&mut drive);
}

#[test]
fn refresh_and_gc_go_on_side_by_side() {
    for (seed, policy) in ["'fcr'", "{ fcr = { full_strength = true } }"].into_iter().enumerate() {
        let text = TINY.to_owned() + AGEING + "clock_scale = 2592000.0\n[refresh]\npolicy = " + policy + "\n";
        let mut drive = with_oracle(&spec(&text, &["drive.op=1"]));
        let mut stream = Stream::new(seed as u64, "refresh");
        let pages = u64::from(drive.geometry().logical_pages);
        for _ in 0..5000 {
            let lpn = stream.below(pages);
            let op = if stream.below(3) == 0 { Op::Read } else { Op::Write };
            let request = Request { arrival: drive.now(), op, fua: false, offset: lpn * 4096, len: 4096 };
            while drive.outstanding() > 4 {
                drive.completions();
                assert!(drive.advance_to_completion(u64::MAX));
            }
            drive.submit(&request).unwrap();
            if stream.below(20) == 0 {
                drive.advance(drive.now() + stream.below(50_000_000));
            }
        }
        settle(&mut drive);
        let stats = drive.stats();
        assert!(stats.refresh.blocks > 20 && stats.counters.gc_victims > 20, "{:?}", stats.refresh);
        assert_eq!(stats.counters.media_errors, 0);
        read_everything(&mut drive);
    }
}

#[test]
fn nothing_due_costs_nothing() {
    let run = |policy: &str| {
        let text = TINY.to_owned() + AGEING + "[refresh]\npolicy = " + policy + "\n";
        let mut drive = with_oracle(&spec(&text, &[]));
        let mut stream = Stream::new(7, "refresh");
        let pages = u64::from(drive.geometry().logical_pages);
        for _ in 0..3000 {
            let offset = stream.below(pages) * 4096;
            let request = Request { arrival: drive.now(), op: Op::Write, fua: false, offset, len: 4096 };
            while drive.outstanding() > 4 {
                drive.completions();
                assert!(drive.advance_to_completion(u64::MAX));
            }
            drive.submit(&request).unwrap();
        }
        settle(&mut drive);
        (drive.now(), drive.stats().flash)
    };
    assert_eq!(run("'none'"), run("'fcr'"));
}
