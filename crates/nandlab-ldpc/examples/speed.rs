//! `speed [FILE]` prints how fast words of hard decisions are decoded, at several raw bit error rates (RBER), on one
//! core. The file is a code, `NAME.alist` or `NAME.qc`; without it, the code is the one of 4 KiB.
//!
//! The words are made beforehand. Every row has the median and the best of several rounds over the same words. On Linux
//! the time is that of the processor, so other load on the machine moves it little. `RUSTFLAGS="-C target-cpu=native"`
//! compiles for the vectors of this machine.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use nandlab_base::base::rng::Stream;
use nandlab_ldpc::{Bits, Decoder, Description, Encoder, LdpcError, MinSum, files};
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

const WORDS: usize = 300;
const ROUNDS: usize = 7;
/// The magnitude of the LLRs. Larger ones do not lower the frame error rate.
const LLR: i8 = 16;

fn main() -> Result<(), LdpcError> {
    let code = match std::env::args().nth(1) {
        Some(file) => files::read(Path::new(&file))?,
        None => Description::KIB_4.build()?,
    };
    let start = Instant::now();
    let began = seconds(start);
    let encoder = Encoder::new(&code)?;
    let built = seconds(start);
    for number in 0..100 {
        black_box(encoder.encode(&Bits::random(encoder.data_bits(), &mut Stream::new(number, "data"))));
    }
    let encoded = seconds(start);
    let (build, encode) = (1e3 * (built - began), 1e6 * (encoded - built) / 100.0);
    println!(
        "{} data bits: encoder made in {build:.0} ms, a word encoded in {encode:.0} us",
        encoder.data_bits()
    );
    let decoder = Decoder::new(&code, MinSum::default())?;
    let mut work = decoder.workspace();
    let vectors = if cfg!(target_feature = "avx2") { "AVX2" } else { "the baseline of the target" };
    println!("{} bits, {} checks, {} edges, vectors of {vectors}", code.bits(), code.checks(), code.edges());
    println!("    RBER  failed  iterations  decodes/s: median    best  us an iteration (best)");
    for rber in [0.005, 0.006, 0.0068, 0.0072, 0.0076, 0.008, 0.0085] {
        let words: Vec<Vec<i8>> = (0..WORDS).map(|number| word(code.bits(), rber, number)).collect();
        let mut rates = Vec::new();
        let (mut failed, mut iterations) = (0, 0);
        for _ in 0..ROUNDS {
            (failed, iterations) = (0, 0);
            let began = seconds(start);
            for word in &words {
                let outcome = decoder.decode(word, &mut work);
                failed += usize::from(!outcome.decoded);
                iterations += outcome.iterations;
            }
            rates.push(WORDS as f64 / (seconds(start) - began));
        }
        rates.sort_by(f64::total_cmp);
        let (median, best) = (rates[ROUNDS / 2], rates[ROUNDS - 1]);
        let mean = f64::from(iterations) / WORDS as f64;
        let share = failed as f64 / WORDS as f64;
        println!(
            "{rber:8.4}  {share:6.3}  {mean:10.2}  {median:17.0}  {best:6.0}  {:22.1}",
            1e6 / best / mean
        );
    }
    Ok(())
}

/// The codeword 0 with each bit wrong with probability `rber`.
fn word(bits: usize, rber: f64, number: usize) -> Vec<i8> {
    let mut stream = Stream::new(1, &format!("speed.{number}"));
    (0..bits).map(|_| if stream.unit() < rber { -LLR } else { LLR }).collect()
}

/// The processor time of this thread, or the time since `start` where the system does not tell it.
fn seconds(start: Instant) -> f64 {
    let nanoseconds = std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next().and_then(|first| first.parse::<f64>().ok()));
    nanoseconds.map_or_else(|| start.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}
