//! Pacing of GC: with pacing the throughput is even; without it, GC served by age stalls the host at times.

use crate::common::{request, rest, spec};
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::host::Op;
use nandlab::sched::FlashOp;

/// Four channels of two dies of two planes, each of 40 blocks of 256 pages. A write cache of 128 pages writes back at
/// once, so that programs of host data are queued before those of GC.
const DRIVE: &str = "[drive]\nchannels = 4\nchips_per_channel = 2\ndies_per_chip = 1\nplanes_per_die = 2\n\
     blocks_per_plane = 40\npages_per_block = 256\npage_size = '4KiB'\nop = 0.3\n\
     [timing]\nread = '50us'\nprogram = '400us'\nerase = '3ms'\n\
     [cache]\nsize = '512KiB'\nsync = 'eager'\n[precondition]\nmethod = 'pts'\n";

/// Performance as the host measures it.
struct Seen {
    /// The longest latency, in seconds.
    slowest: f64,
    /// Requests completed in each interval of 100 ms, without the first second and the last interval.
    completed: Vec<u32>,
    /// WAF: pages programmed per page that the host wrote.
    waf: f64,
}

/// Plays uniform random requests of one page at queue depth 32. Of ten requests `reads_of_ten` are reads, the others
/// writes.
fn play(sets: &[&str], requests: u32, reads_of_ten: u64) -> Seen {
    let spec = spec(DRIVE, sets);
    let mut drive = Drive::new(&spec);
    drive.precondition(&mut |_| true);
    let mut stream = Stream::new(spec.seed, "pacing");
    let pages = u64::from(drive.geometry().logical_pages);
    let from = drive.now();
    let total = |drive: &Drive| {
        let stats = drive.stats();
        let programs = stats.flash_total(FlashOp::Program) + stats.flash_total(FlashOp::Copyback);
        [programs, stats.counters.host_pages_written]
    };
    let before = total(&drive);
    let (mut slowest, mut completed, mut submitted) = (0.0f64, Vec::new(), 0);
    while submitted < requests {
        while drive.outstanding() < 32 && submitted < requests {
            let op = if stream.below(10) < reads_of_ten { Op::Read } else { Op::Write };
            let next = request(&drive, op, stream.below(pages) * 4096, 4096);
            drive.submit(&next).unwrap();
            submitted += 1;
        }
        assert!(drive.advance_to_completion(Time::NEVER), "{:?}", drive.failure());
        for done in drive.completions() {
            assert_eq!(done.failed, None);
            slowest = slowest.max((done.completed - done.request.arrival).seconds());
            let interval = ((done.completed - from).seconds() * 10.0) as usize;
            completed.resize(completed.len().max(interval + 1), 0);
            completed[interval] += 1;
        }
    }
    rest(&mut drive);
    let [programs, written] = total(&drive);
    completed.pop();
    completed.drain(..10);
    Seen { slowest, completed, waf: (programs - before[0]) as f64 / (written - before[1]) as f64 }
}

impl Seen {
    /// Returns the fewest completions of an interval, as a share of the mean.
    fn least(&self) -> f64 {
        let mean = f64::from(self.completed.iter().sum::<u32>()) / self.completed.len() as f64;
        f64::from(*self.completed.iter().min().expect("there are intervals")) / mean
    }

    /// Returns the completions per second.
    fn iops(&self) -> f64 {
        10.0 * f64::from(self.completed.iter().sum::<u32>()) / self.completed.len() as f64
    }
}

/// With pacing the longest latency is at most a fifth of that without pacing. This costs at most a tenth of the
/// throughput, and the WAF rises by at most 5 %.
#[test]
fn pacing_evens_out_throughput() {
    for reads_of_ten in [0, 7] {
        let by_age = play(&["gc.pacing='none'"], 240_000, reads_of_ten);
        let paced = play(&[], 240_000, reads_of_ten);
        assert_eq!(
            by_age.least(),
            0.0,
            "without pacing every interval has completions: the comparison shows nothing"
        );
        assert!(paced.least() > 0.25, "{}", paced.least());
        assert!(paced.slowest < by_age.slowest / 5.0, "{} {}", paced.slowest, by_age.slowest);
        assert!(paced.iops() > 0.9 * by_age.iops(), "{} {}", paced.iops(), by_age.iops());
        assert!(paced.waf < 1.05 * by_age.waf, "{} {}", paced.waf, by_age.waf);
    }
}
