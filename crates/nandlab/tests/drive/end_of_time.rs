//! The end of simulated time: at 2^62 ns, or earlier at the end of the age clock.

use crate::common::{MS, TINY, at, ns, spec};
use nandlab::base::units::Time;
use nandlab::drive::spec::Spec;
use nandlab::drive::{Drive, Failure, IDLE_LIMIT};
use nandlab::host::Request;
use nandlab::runner::{Runner, Source, Stopped};

/// A source of page writes at given times in nanoseconds.
struct At(Vec<u64>, usize);

impl Source for At {
    type Error = ();
    fn next_request(&mut self) -> Option<Result<Request, ()>> {
        let time = *self.0.get(self.1)?;
        self.1 += 1;
        Some(Ok(Request::write(0, 4096).at(at(time))))
    }
}

fn traced(time_scale: f64, more: &str) -> Spec {
    let workload = format!("{more}\n[workload]\ntrace = 'x'\ntime_scale = {time_scale:?}\n");
    spec(&(TINY.to_owned() + &workload), &[])
}

fn play(spec: &Spec, times: &[u64]) -> (Drive, u64, Result<bool, Stopped<()>>) {
    let mut drive = Drive::new(spec);
    let workload = spec.workload.clone().expect("the spec has a workload");
    let mut runner = Runner::new(At(times.to_vec(), 0), workload.arrival, workload.beyond);
    let mut completed = 0;
    let ended = runner.run(&mut drive, 1000, |_| completed += 1).map(|progress| progress.is_done);
    // The drive completes the requests that were submitted before the run stopped.
    while drive.advance_to_completion(Time::NEVER) {
        completed += drive.completions().count() as u64;
    }
    (drive, completed, ended)
}

#[test]
fn requests_after_the_end_are_refused_and_those_before_are_played() {
    const LAST: u64 = 1 << 62;
    // Times, scale of the times, scale of the age clock, number of the first request that arrives too late.
    let cases: [(&[u64], f64, f64, u64); 6] = [
        (&[0, MS, LAST + 1], 1.0, 1.0, 3),
        (&[0, u64::MAX], 1.0, 1.0, 2),
        // At this time an `f64` has steps of 512 ns.
        (&[0, MS, LAST / 2 + 512], 2.0, 1.0, 3),
        (&[0, 5_000_000_000], 1e9, 1.0, 2),
        // The age clock ends at 2^31 s: at a scale of a million after 2,147.483 s of simulated time.
        (&[0, 2_147_000 * MS, 2_148_000 * MS], 1.0, 1e6, 3),
        (&[0, 2_148_000 * MS], 1.0, 1e6, 2),
    ];
    for (times, time_scale, clock_scale, late) in cases {
        let spec = traced(time_scale, &format!("[reliability]\nclock_scale = {clock_scale:?}\n"));
        let (drive, completed, ended) = play(&spec, times);
        let Err(Stopped::TooLate { number, end }) = ended else { panic!("{times:?}: {ended:?}") };
        assert_eq!((number, end, completed), (late, drive.end(), late - 1), "{times:?}");
        assert!(drive.failure().is_none());
    }
    let spec = traced(1.0, "[reliability]\nclock_scale = 1e6\n");
    let (drive, completed, ended) = play(&spec, &[0, 2_147_000 * MS]);
    assert!(ended.is_ok() && completed == 2, "{ended:?}");
    assert!(drive.now() >= at(2_147_000 * MS));
}

#[test]
fn a_drive_with_work_beyond_the_end_fails_there() {
    let ageing = "[reliability]\nclock_scale = 1e9\n[refresh]\npolicy = 'fcr'\ninterval = [{ pe = 3000, every = '7d' }]\n";
    let mut drive = Drive::new(&spec(&(TINY.to_owned() + ageing), &[]));
    let end = Time::from_ns(2_147_483_647);
    assert_eq!(drive.end(), end);
    drive.submit(&Request::write(0, 4096)).unwrap();
    // The block comes due every 605 us, and the refresh of its page takes 985 us: the drive never comes to rest.
    let failure = drive.run_until_idle(IDLE_LIMIT).unwrap_err();
    assert_eq!(failure, Failure::TimeIsOver { end });
    assert!(failure.to_string().contains("68 years") && failure.to_string().contains("2.15 s"), "{failure}");
    let now = drive.now();
    assert!(now <= end && now > end - ns(2 * MS), "{now:?}");
    drive.advance(end);
    assert_eq!(
        (drive.now(), drive.failure()),
        (now, Some(&failure)),
        "the drive simulates further events after its failure"
    );
    drive.audit().unwrap();
    drive.finish_stats();
    assert_eq!(drive.stats().series.rows().last().unwrap().end, now);
}

#[test]
fn an_idle_drive_can_be_advanced_to_the_end_and_not_beyond() {
    // At this time an `f64` has steps of 256 ns.
    for (scale, end) in [(1e-9, 1 << 62), (1.0, 2_147_483_647_000_000_000 - 256)] {
        let mut drive = Drive::new(&traced(1.0, &format!("[reliability]\nclock_scale = {scale:?}\n")));
        drive.advance(at(end));
        assert_eq!((drive.now().ns(), drive.failure()), (end, None));
        drive.finish_stats();
        assert_eq!(drive.stats().series.rows().last().unwrap().end.ns(), end);
        drive.advance(at(end + 1));
        assert!(matches!(drive.failure(), Some(Failure::TimeIsOver { .. })));
        assert_eq!(drive.now().ns(), end);
    }
}

#[test]
fn the_sum_of_many_long_latencies_does_not_overflow() {
    let mut drive = Drive::new(&traced(1.0, ""));
    drive.advance(at(2_147_483_000_000_000_000));
    for _ in 0..100 {
        drive.submit(&Request::read(0, 4096)).unwrap();
    }
    drive.finish_stats();
    let rows = drive.stats().series.rows();
    let sum: u128 = rows.iter().map(|row| row.latency_ns[0]).sum();
    assert_eq!(sum, 100 * 2_147_483_000_000_000_000);
}
