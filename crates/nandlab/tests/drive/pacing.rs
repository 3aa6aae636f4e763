//! Pacing of GC: with pacing the throughput is even; without it, GC served by age stalls the host at times. With pacing the
//! host is not stalled either where few large superblocks span all planes of a die, or all dies.

use crate::common::{request, rest, spec};
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::host::Op;
use nandlab::sched::FlashOp;

/// Four channels of two dies of two planes, each of 40 blocks of 256 pages. A write cache of 128 units writes back at
/// once, so that programs of host data are queued before those of GC.
const DRIVE: &str = "[drive]\nchannels = 4\nchips_per_channel = 2\ndies_per_chip = 1\nplanes_per_die = 2\n\
     blocks_per_plane = 40\npages_per_block = 256\npage_size = '4KiB'\nop = 0.3\n\
     [timing]\nread = '50us'\nprogram = '400us'\nerase = '3ms'\n\
     [cache]\nsize = '512KiB'\nsync = 'eager'\n[precondition]\nmethod = 'pts'\n";

/// Four dies of four planes, each of 64 blocks of 132 pages, which are programmed in wordlines of all planes.
const SUPERBLOCKS: &str = "[drive]\npreset = 'modern-tlc-1t'\nchannels = 4\nchips_per_channel = 1\n\
     dies_per_chip = 1\nblocks_per_plane = 64\npages_per_block = 132\nlayers = 66\nop = 0.1656\n\
     [timing]\nplane_reads = 'together'\n[host]\ncontroller = 'none'\n[ftl]\nallocation = 'CWDP'\n\
     [capacitor]\ncapacitance = '0F'\n[precondition]\nmethod = 'pts'\n";

/// Performance as the host measures it.
struct Seen {
    /// The longest time without a completion after the first second, in seconds.
    longest_gap: f64,
    /// The longest latency, in seconds.
    slowest: f64,
    /// Requests completed in each interval of 100 ms, without the first second and the last interval.
    completed: Vec<u32>,
    /// WAF: pages programmed per page that the host wrote.
    waf: f64,
}

/// Plays uniform random requests of 4 KiB at queue depth 32 on the drive of `text`. Of ten requests `reads_of_ten` are
/// reads, the others writes.
fn play(text: &str, sets: &[&str], requests: u32, reads_of_ten: u64) -> Seen {
    let spec = spec(text, sets);
    let mut drive = Drive::new(&spec);
    drive.precondition(&mut |_| true);
    let mut stream = Stream::new(spec.seed, "pacing");
    let units = u64::from(drive.geometry().logical_units);
    let from = drive.now();
    let total = |drive: &Drive| {
        let stats = drive.stats();
        let programs = stats.flash_total(FlashOp::Program) + stats.flash_total(FlashOp::Copyback);
        [programs, stats.counters.host_pages_written]
    };
    let before = total(&drive);
    let (mut slowest, mut completed, mut submitted) = (0.0f64, Vec::new(), 0);
    let (mut longest_gap, mut latest) = (0.0f64, 1.0f64);
    while submitted < requests {
        while drive.outstanding() < 32 && submitted < requests {
            let op = if stream.below(10) < reads_of_ten { Op::Read } else { Op::Write };
            let next = request(&drive, op, stream.below(units) * 4096, 4096);
            drive.submit(&next).unwrap();
            submitted += 1;
        }
        assert!(drive.advance_to_completion(Time::NEVER), "{:?}", drive.failure());
        for done in drive.completions() {
            assert_eq!(done.failed, None);
            slowest = slowest.max((done.completed - done.request.arrival).seconds());
            let time = (done.completed - from).seconds();
            if time > 1.0 {
                longest_gap = longest_gap.max(time - latest);
                latest = time;
            }
            let interval = (time * 10.0) as usize;
            completed.resize(completed.len().max(interval + 1), 0);
            completed[interval] += 1;
        }
    }
    rest(&mut drive);
    let [programs, written] = total(&drive);
    completed.pop();
    completed.drain(..10);
    Seen {
        longest_gap,
        slowest,
        completed,
        waf: (programs - before[0]) as f64 / (written - before[1]) as f64,
    }
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
        let by_age = play(DRIVE, &["gc.pacing='none'"], 240_000, reads_of_ten);
        let paced = play(DRIVE, &[], 240_000, reads_of_ten);
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

/// A lane of several planes has one job for all of them, and one victim gives the host as many units as many
/// blocks of one plane. Still no phase is without GC or without host writes. The numbers of the old rule, under which the
/// last programs of a victim waited until the host had no room left: gaps of 0.2 s and more.
#[test]
fn superblocks_are_emptied_while_the_host_writes() {
    for superblock in ["ftl.superblock='die'", "ftl.superblock='drive'"] {
        let seen = play(SUPERBLOCKS, &[superblock], 90_000, 0);
        assert!(seen.longest_gap < 0.02, "{superblock}: {} s without a completion", seen.longest_gap);
        assert!(seen.slowest < 0.05, "{superblock}: a write took {} s", seen.slowest);
        assert!(seen.least() > 0.25, "{superblock}: {} of the mean", seen.least());
    }
}

/// GC reads the units of a program from all planes of its lane. When its reads had to wait for host programs after
/// `timing.read_hold`, as those of the host have to, GC stayed behind its share: every 0.45 s a gap of 0.3 s.
#[test]
fn gc_keeps_its_share_on_planes_that_read_independently() {
    for (superblock, gap) in [("ftl.superblock='die'", 0.05), ("ftl.superblock='drive'", 0.02)] {
        let seen = play(SUPERBLOCKS, &[superblock, "timing.plane_reads='independent'"], 90_000, 0);
        assert!(seen.longest_gap < gap, "{superblock}: {} s without a completion", seen.longest_gap);
        assert!(seen.least() > 0.25, "{superblock}: {} of the mean", seen.least());
    }
}
