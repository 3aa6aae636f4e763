//! Numbers that other simulators have given for a drive and a load that nandlab simulates as well.

use crate::common::{MS, at, spec};
use nandlab::base::geometry::DieId;
use nandlab::base::rng::Stream;
use nandlab::base::units::Time;
use nandlab::drive::{Drive, IDLE_LIMIT};
use nandlab::host::{Op, Request};
use nandlab::probe::Probe;
use nandlab::sched::{FlashOp, Transaction, Watcher};

/// Bytes of a page of these drives.
const PAGE: u64 = 4096;

/// The latencies of the requests with operation `op`, in nanoseconds, in ascending order.
fn latencies<P: Probe>(drive: &mut Drive<P>, requests: &[(u64, Op, u64, u64)], op: Op) -> Vec<u64> {
    let mut latencies = Vec::new();
    for &(arrival, op, page, pages) in requests {
        drive.advance(at(arrival));
        let request = Request::new(op, page * PAGE, pages * PAGE).at(at(arrival));
        drive.submit(&request).unwrap();
    }
    drive.run_until_idle(IDLE_LIMIT).unwrap();
    for completion in drive.completions().filter(|completion| completion.request.op == op) {
        latencies.push((completion.completed - completion.request.arrival).ns());
    }
    latencies.sort_unstable();
    latencies
}

fn mean_us(latencies: &[u64]) -> f64 {
    latencies.iter().sum::<u64>() as f64 / latencies.len() as f64 / 1000.0
}

/// MQSim 7ec40e3 with a link of zero time, without suspension and write cache, with the ideal map and CWDP.
const MQSIM: &str = "[drive]\nchannels = 4\nchips_per_channel = 2\ndies_per_chip = 1\nplanes_per_die = 2\n\
     blocks_per_plane = 256\npages_per_block = 256\npage_size = '4KiB'\ncell = 'slc'\nop = 0.0753\n\
     [timing]\nread = '50020ns'\nprogram = '500us'\nerase = '3500us'\nchannel_ns_per_byte = 2.0\n\
     command = { read = '290ns', program = '361ns', erase = '220ns', copyback = '361ns', \
     multi_plane_read = '940ns', multi_plane_program = '1177ns' }\n\
     decode = '0ns'\nscheduler = 'read-first'\nmulti_plane = true\n[ftl]\nallocation = 'CWDP'\n";

/// Counts the reads that join another read in a multi-plane command.
#[derive(Default)]
struct Joined(u64);

impl Watcher for Joined {
    fn sees_phases(&self) -> bool {
        false
    }

    fn on_joined(&mut self, _: Time, _: DieId, _: &Transaction, transaction: &Transaction) {
        self.0 += u64::from(transaction.kind == FlashOp::Read);
    }
}

impl Probe for Joined {}

/// The generator of MQSim's load: splitmix64 with this state.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(z ^ z >> 31) * u128::from(n)) >> 64) as u64
    }
}

/// 1 GiB is written in sequential writes of 128 KiB. Then 500 bursts of 64 reads of 16 KiB follow, 40 ms apart. MQSim's
/// own results for this load: mean, median, 99th percentile and maximum of the 32,000 latencies in microseconds, and the
/// numbers of read commands for one plane and for two.
#[test]
fn bursts_of_reads_take_as_long_as_in_mqsim() {
    let (mean, p50, p99, max) = (1079.483, 1067.754, 2286.946, 2739.228);
    let (of_one, of_two) = (120_728, 3_636);
    let fill = (0..8192).map(|i| (i * 2_500_000, Op::Write, i * 32, 32));
    let mut random = SplitMix(104);
    let bursts = (0..32_000).map(|i| (21_000 * MS + i / 64 * 40 * MS, Op::Read, random.below(65_536) * 4, 4));
    let requests: Vec<_> = fill.chain(bursts).collect();
    let mut drive = Drive::with_probe(&spec(MQSIM, &[]), Joined::default());
    let reads = latencies(&mut drive, &requests, Op::Read);
    assert_eq!(reads.len(), 32_000);
    let found =
        [mean_us(&reads), reads[15_999] as f64 / 1e3, reads[31_679] as f64 / 1e3, reads[31_999] as f64 / 1e3];
    println!("mean, p50, p99 and max {found:?} for {:?} us", [mean, p50, p99, max]);
    let joined = drive.probe().0;
    println!("{} and {joined} commands for {of_one} and {of_two}", 128_000 - 2 * joined);
    assert!((found[0] / mean - 1.0).abs() < 0.005, "the mean is {} us for {mean} us", found[0]);
    assert!((found[2] / p99 - 1.0).abs() < 0.005, "the 99th percentile is {} us for {p99} us", found[2]);
}

/// The drive of DiskSim's synthetic loads, with `blocks` blocks per plane. DiskSim has 2048; the 64th page of a block has
/// its summary. Its program takes 212.8 us more than the other 63, which are 200 us long. The bus takes 1 us, 0.2384 us a
/// sector, and 2 us.
fn disksim(blocks: u32) -> String {
    format!(
        "[drive]\nchannels = 8\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 8\n\
         blocks_per_plane = {blocks}\npages_per_block = 63\npage_size = '4KiB'\ncell = 'slc'\nop = 0.176335\n\
         endurance = 100000\n[timing]\nread = '25us'\nprogram = '203380ns'\nerase = '1500us'\n\
         channel_ns_per_byte = 25.0\ncommand = '0ns'\ndecode = '0ns'\nscheduler = 'fcfs'\nmulti_plane = false\n\
         [host]\nlink = {{ mb_per_s = 2147.65, latency = '1500ns' }}\n\
         [ftl]\nallocation = 'CWDP'\nwear_levelling = 'none'\n\
         [gc]\nvictim = 'greedy'\nforeground = 'blocking'\npacing = 'none'\nforeground_free = 0.3333\n\
         background_free = 0.34\nidle_after = '10h'\n[migration]\npolicy.rcopyback-greedy = {{ limit = 8 }}\n\
         [precondition]\nmethod = 'pts'\nrounds_max = 0\n"
    )
}

/// DiskSim's loads without cleaning, with fewer requests on a smaller drive: their latencies do not depend on the size.
/// The mean latencies in milliseconds are from DiskSim's own output files. The requests arrive at distances that are
/// uniform between 0 and 1 ms; random ones have exponential sizes with a mean of one page, at least one page.
#[test]
fn reads_and_writes_without_cleaning_take_as_long_as_in_disksim() {
    let loads = [
        (Op::Read, true, 0.132_511),
        (Op::Read, false, 0.136_118),
        (Op::Write, true, 0.310_895),
        (Op::Write, false, 0.329_458),
    ];
    for (op, is_sequential, mean_ms) in loads {
        let mut drive = Drive::new(&spec(&disksim(256), &[]));
        drive.precondition(&mut |_| true);
        let from = drive.now().ns();
        let units = u64::from(drive.geometry().logical_units);
        let (mut stream, mut now) = (Stream::new(1, "DiskSim"), from);
        let requests: Vec<_> = (0..20_000)
            .map(|i| {
                now += stream.below(MS);
                let size = (-(1.0 - stream.unit()).ln()).ceil().max(1.0) as u64;
                let (page, size) = if is_sequential { (i, 1) } else { (stream.below(units - size), size) };
                (now, op, page, size)
            })
            .collect();
        let found_ms = mean_us(&latencies(&mut drive, &requests, op)) / 1e3;
        println!("{op:?}, sequential {is_sequential}: {found_ms:.6} ms for {mean_ms}");
        assert!((found_ms / mean_ms - 1.0).abs() < 0.02, "{op:?}: {found_ms} ms for {mean_ms}");
    }
}
