//! Frame error rates by Monte Carlo.
//!
//! A frame is a codeword that is sent over a [`Channel`] and decoded. Its randomness follows from the seed and the
//! number of the frame alone, so frames can be split among workers in any way: [`measure`] takes a range of numbers,
//! and [`Frames::merge`] adds up parts.

use crate::bits::Bits;
use crate::decode::Decoder;
use crate::encode::Encoder;
use crate::llr::Regions;
use nandlab_base::base::rng::Stream;
use std::ops::Range;

/// What happens to the bits of a codeword.
#[derive(Clone, Debug, PartialEq)]
pub enum Channel {
    /// A number of wrong bits at uniform random places, with hard decisions: the binary symmetric channel, given its
    /// number of errors ([`Mixture`](crate::Mixture)).
    Errors {
        /// Wrong bits, at most the bits of a codeword.
        errors: u32,
        /// The magnitude of every LLR, in 1..=127.
        llr: u8,
    },
    /// Regions with probabilities, independent from bit to bit.
    Regions {
        /// The probabilities of the regions.
        regions: Regions,
        /// The LLR of each region, for example [`Regions::quantised`]; that of other probabilities for a controller
        /// that does not know these.
        llrs: Vec<i8>,
    },
}

impl Channel {
    /// The binary symmetric channel with the raw bit error rate `rber`, in 0..=0.5, and LLRs of the magnitude `llr`.
    ///
    /// # Errors
    ///
    /// If `rber` is out of its range.
    pub fn binary_symmetric(rber: f64, llr: u8) -> Result<Self, crate::LdpcError> {
        let regions = Regions::hard(rber)?;
        Ok(Self::Regions { regions, llrs: vec![llr as i8, -(llr as i8)] })
    }
}

/// Codewords from which frames take theirs.
///
/// A decoder that treats both values of a bit alike has the same frame error rate for every codeword. Codewords other
/// than 0 show where it does not.
#[derive(Clone, Debug)]
pub struct Codewords {
    bits: usize,
    /// Independent codewords; a frame adds up a random selection of them.
    basis: Vec<Bits>,
}

impl Codewords {
    /// The codeword 0 of a code of `bits` bits, for every frame.
    pub fn zero(bits: usize) -> Self {
        Self { bits, basis: Vec::new() }
    }

    /// Random sums of 16 random codewords.
    pub fn random(encoder: &Encoder, seed: u64) -> Self {
        let mut stream = Stream::new(seed, "ldpc.codewords");
        let mut basis = || encoder.encode(&Bits::random(encoder.data_bits(), &mut stream));
        Self { bits: encoder.code().bits(), basis: (0..16).map(|_| basis()).collect() }
    }

    /// The codeword of a frame.
    fn draw(&self, stream: &mut Stream) -> Bits {
        let selection = stream.bits();
        let mut word = Bits::zeros(self.bits);
        let selected = self.basis.iter().enumerate().filter(|(at, _)| selection >> at & 1 == 1);
        selected.for_each(|(_, codeword)| word.add(codeword));
        word
    }
}

/// Counts of decoded and failed frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    /// Frames sent.
    pub frames: u64,
    /// Frames that the decoder gave up.
    pub failed: u64,
    /// Frames that were decoded into another codeword than the one that was sent.
    pub wrong: u64,
    /// Iterations of all frames.
    pub iterations: u64,
    /// Most iterations of a frame.
    pub iterations_max: u32,
    /// Iterations of the frames that were decoded into the codeword that was sent.
    pub iterations_decoded: u64,
    /// The squares of the iterations of these frames, added up.
    pub iterations_decoded_squares: u64,
}

impl Frames {
    /// The share of frames that were not decoded into the codeword that was sent; NaN without frames.
    pub fn error_rate(&self) -> f64 {
        (self.failed + self.wrong) as f64 / self.frames as f64
    }

    /// The interval that contains the frame error rate with a confidence of about 95 % (E. B. Wilson, "Probable
    /// inference, the law of succession, and statistical inference", J. Am. Stat. Assoc. 22, 1927). (0, 1) without
    /// frames.
    pub fn interval(&self) -> (f64, f64) {
        wilson(self.failed + self.wrong, self.frames)
    }

    /// Mean iterations of a frame; NaN without frames.
    pub fn iterations_mean(&self) -> f64 {
        self.iterations as f64 / self.frames as f64
    }

    /// Mean and standard deviation of the iterations of frames that were decoded into the codeword that was sent; NaN
    /// without such frames.
    pub fn iterations_of_decoded(&self) -> (f64, f64) {
        let decoded = (self.frames - self.failed - self.wrong) as f64;
        let mean = self.iterations_decoded as f64 / decoded;
        let variance = self.iterations_decoded_squares as f64 / decoded - mean * mean;
        (mean, libm::sqrt(variance.max(0.0)))
    }

    /// Adds the counts of other frames.
    pub fn merge(&mut self, other: &Frames) {
        self.frames += other.frames;
        self.failed += other.failed;
        self.wrong += other.wrong;
        self.iterations += other.iterations;
        self.iterations_max = self.iterations_max.max(other.iterations_max);
        self.iterations_decoded += other.iterations_decoded;
        self.iterations_decoded_squares += other.iterations_decoded_squares;
    }
}

/// The Wilson interval of 95 % of `hits` among `n`.
fn wilson(hits: u64, n: u64) -> (f64, f64) {
    if n == 0 {
        return (0.0, 1.0);
    }
    const Z: f64 = 1.959_963_984_540_054;
    let (p, n) = (hits as f64 / n as f64, n as f64);
    let middle = p + Z * Z / (2.0 * n);
    let width = Z * libm::sqrt(p * (1.0 - p) / n + Z * Z / (4.0 * n * n));
    let scale = 1.0 + Z * Z / n;
    // At the ends of the interval middle and width are equal, apart from rounding.
    let low = if hits == 0 { 0.0 } else { (middle - width) / scale };
    let high = if p == 1.0 { 1.0 } else { (middle + width) / scale };
    (low, high)
}

/// Sends and decodes the frames with the numbers `frames`.
///
/// # Panics
///
/// If codewords and decoder have different numbers of bits, if the channel has more errors than bits, or if it has not
/// one LLR for each region.
pub fn measure(
    decoder: &Decoder,
    channel: &Channel,
    codewords: &Codewords,
    seed: u64,
    frames: Range<u64>,
) -> Frames {
    assert_eq!(codewords.bits, decoder.bits(), "codewords and decoder belong to different codes");
    let mut work = decoder.workspace();
    let mut llrs = vec![0; decoder.bits()];
    let mut sampler = Sampler::new(channel, decoder.bits());
    let mut counts = Frames::default();
    for frame in frames {
        let mut stream = Stream::new(seed, &format!("ldpc.frame.{frame}"));
        let sent = codewords.draw(&mut stream);
        sampler.draw(&sent, &mut stream, &mut llrs);
        let outcome = decoder.decode(&llrs, &mut work);
        let right = outcome.decoded && work.word() == sent;
        let of_decoded = if right { u64::from(outcome.iterations) } else { 0 };
        counts.merge(&Frames {
            frames: 1,
            failed: u64::from(!outcome.decoded),
            wrong: u64::from(outcome.decoded && !right),
            iterations: u64::from(outcome.iterations),
            iterations_max: outcome.iterations,
            iterations_decoded: of_decoded,
            iterations_decoded_squares: of_decoded * of_decoded,
        });
    }
    counts
}

/// Draws the LLRs of received words.
struct Sampler {
    /// For each value of the bit, the LLR of its most probable region.
    usual: [i8; 2],
    /// For each value of the bit, the other regions: upper ends of their shares of `unusual`, and LLRs.
    others: [Vec<(f64, i8)>; 2],
    /// The probability that a bit is drawn for another region than the most probable one.
    unusual: f64,
    /// The number of wrong bits, if it is given.
    count: Option<u32>,
    /// The bits drawn for it.
    drawn: Bits,
}

impl Sampler {
    fn new(channel: &Channel, bits: usize) -> Self {
        let drawn = Bits::zeros(bits);
        match channel {
            Channel::Errors { errors, llr } => {
                assert!((1..=127).contains(llr), "the LLR {llr} is not in 1..=127");
                assert!(*errors as usize <= bits, "{errors} errors in a word of {bits} bits");
                let llr = *llr as i8;
                Self {
                    usual: [llr, -llr],
                    others: [vec![], vec![]],
                    unusual: 0.0,
                    count: Some(*errors),
                    drawn,
                }
            }
            Channel::Regions { regions, llrs } => {
                assert_eq!(llrs.len(), regions.count(), "the channel has {} regions", regions.count());
                let usual = [false, true].map(|bit| {
                    let of = regions.of(bit);
                    (0..of.len()).max_by(|&a, &b| of[a].total_cmp(&of[b])).expect("there are regions")
                });
                let rest = |bit: usize| {
                    let of = regions
                        .of(bit == 1)
                        .iter()
                        .enumerate()
                        .filter(move |&(region, _)| region != usual[bit]);
                    of.map(|(region, &p)| (p, llrs[region]))
                };
                let unusual = (0..2).map(|bit| rest(bit).map(|(p, _)| p).sum::<f64>()).fold(0.0, f64::max);
                let others = [0, 1].map(|bit| {
                    let mut end = 0.0;
                    let share = |(p, llr): (f64, i8)| {
                        end += p / unusual;
                        (end, llr)
                    };
                    rest(bit).map(share).collect()
                });
                Self { usual: usual.map(|region| llrs[region]), others, unusual, count: None, drawn }
            }
        }
    }

    fn draw(&mut self, sent: &Bits, stream: &mut Stream, llrs: &mut [i8]) {
        for (word, llrs) in sent.words().iter().zip(llrs.chunks_mut(64)) {
            for (at, llr) in llrs.iter_mut().enumerate() {
                *llr = self.usual[(word >> at & 1) as usize];
            }
        }
        match self.count {
            Some(count) => {
                let bits = sent.len() as u64;
                // Of more than half of the bits those that are right are drawn.
                let few = u64::from(count).min(bits - u64::from(count));
                self.drawn = Bits::zeros(sent.len());
                for _ in 0..few {
                    let at = std::iter::repeat_with(|| stream.below(bits) as usize)
                        .find(|&at| !self.drawn.get(at));
                    self.drawn.flip(at.expect("a random sequence has no end"));
                }
                let wrong = few == u64::from(count);
                for (at, llr) in llrs.iter_mut().enumerate() {
                    if self.drawn.get(at) == wrong {
                        *llr = -*llr;
                    }
                }
            }
            None if self.unusual > 0.0 => {
                // The distance from one drawn bit to the next has a geometric distribution.
                let log_miss = libm::log1p(-self.unusual);
                let mut at = -1.0;
                loop {
                    at += libm::floor(libm::log(1.0 - stream.unit()) / log_miss) + 1.0;
                    if at >= llrs.len() as f64 {
                        break;
                    }
                    let share = stream.unit();
                    let others = &self.others[usize::from(sent.get(at as usize))];
                    if let Some(&(_, llr)) = others.iter().find(|&&(end, _)| share < end) {
                        llrs[at as usize] = llr;
                    }
                }
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::construct::Description;
    use crate::decode::MinSum;

    #[test]
    fn received_words_have_the_probabilities_of_their_regions() {
        let regions = Regions::new(&[0.7, 0.2, 0.08, 0.02], &[0.01, 0.05, 0.14, 0.8]).unwrap();
        let llrs = vec![40, 13, -7, -31];
        let channel = Channel::Regions { regions: regions.clone(), llrs: llrs.clone() };
        let mut sampler = Sampler::new(&channel, 1000);
        let mut counts = [[0u32; 4]; 2];
        let mut received = vec![0; 1000];
        for frame in 0..500 {
            let mut stream = Stream::new(1, &format!("{frame}"));
            let sent = Bits::random(1000, &mut stream);
            sampler.draw(&sent, &mut stream, &mut received);
            for (at, llr) in received.iter().enumerate() {
                counts[usize::from(sent.get(at))][llrs.iter().position(|l| l == llr).unwrap()] += 1;
            }
        }
        for bit in [false, true] {
            let counts = counts[usize::from(bit)];
            let n = f64::from(counts.iter().sum::<u32>());
            for (&count, &p) in counts.iter().zip(regions.of(bit)) {
                let deviation = (n * p * (1.0 - p)).sqrt();
                assert!(
                    (f64::from(count) - n * p).abs() < 4.0 * deviation,
                    "bit {bit}: {count} of {n} at {p}"
                );
            }
        }
    }

    #[test]
    fn a_given_number_of_bits_is_wrong() {
        for errors in [0, 1, 30, 50, 51, 99, 100] {
            let mut sampler = Sampler::new(&Channel::Errors { errors, llr: 9 }, 100);
            let mut stream = Stream::new(3, "errors");
            let sent = Bits::random(100, &mut stream);
            let mut received = vec![0; 100];
            sampler.draw(&sent, &mut stream, &mut received);
            assert!(received.iter().all(|llr| llr.abs() == 9));
            let wrong = (0..100).filter(|&at| (received[at] < 0) != sent.get(at)).count();
            assert_eq!(wrong, errors as usize);
        }
    }

    #[test]
    fn parts_of_a_measurement_add_up_to_the_whole() {
        let code =
            Description { rows: 4, columns: 16, lifting: 48, column_weight: 3, seed: 1 }.build().unwrap();
        let decoder = Decoder::new(&code, MinSum::default()).unwrap();
        let codewords = Codewords::random(&Encoder::new(&code).unwrap(), 1);
        let channel = Channel::binary_symmetric(0.02, 12).unwrap();
        let whole = measure(&decoder, &channel, &codewords, 7, 0..200);
        assert!(whole.failed > 0 && whole.failed < 200, "{whole:?}");
        let mut parts = measure(&decoder, &channel, &codewords, 7, 120..200);
        parts.merge(&measure(&decoder, &channel, &codewords, 7, 0..120));
        assert_eq!(parts, whole);
        assert_ne!(measure(&decoder, &channel, &codewords, 8, 0..200), whole);
        // The frame error rate does not depend on the codewords: the same errors at the same places.
        let (low, high) = whole.interval();
        let zero = measure(&decoder, &channel, &Codewords::zero(code.bits()), 7, 0..200);
        assert!((low..=high).contains(&zero.error_rate()), "{zero:?}, {whole:?}");
        assert_eq!(measure(&decoder, &channel, &codewords, 7, 0..0), Frames::default());
    }

    #[test]
    fn the_4_kib_code_fails_as_measured() {
        // Measured with 2,000 to 60,000 frames: 5.9e-2 at 0.0085 with 10.2 iterations, below 1e-4 at 0.0065 with 4.3.
        let code = Description::KIB_4.build().unwrap();
        let decoder = Decoder::new(&code, MinSum::default()).unwrap();
        let at = |rber, frames| {
            let channel = Channel::binary_symmetric(rber, 16).unwrap();
            measure(&decoder, &channel, &Codewords::zero(code.bits()), 1, 0..frames)
        };
        let waterfall = at(0.0085, 400);
        assert!((8..50).contains(&waterfall.failed) && waterfall.wrong == 0, "{waterfall:?}");
        assert!((waterfall.iterations_mean() - 10.2).abs() < 1.2, "{waterfall:?}");
        assert_eq!(waterfall.iterations_max, 30);
        let below = at(0.0065, 200);
        assert_eq!(below.failed + below.wrong, 0, "{below:?}");
        assert!((below.iterations_mean() - 4.3).abs() < 0.2, "{below:?}");
    }

    #[test]
    fn an_interval_contains_the_rate() {
        // Wilson's interval of 8 of 40: 0.1050 to 0.3476.
        let frames = Frames { frames: 40, failed: 5, wrong: 3, ..Frames::default() };
        let (low, high) = frames.interval();
        assert!((low - 0.1050).abs() < 1e-4 && (high - 0.3476).abs() < 1e-4, "{low} {high}");
        assert_eq!(frames.error_rate(), 0.2);
        // Four decoded frames of 2, 2, 4 and 4 iterations.
        let decoded = Frames {
            frames: 5,
            failed: 1,
            iterations_decoded: 12,
            iterations_decoded_squares: 40,
            ..Frames::default()
        };
        assert_eq!(decoded.iterations_of_decoded(), (3.0, 1.0));
        assert_eq!(Frames { frames: 40, ..Frames::default() }.interval().0, 0.0);
        assert_eq!(Frames { frames: 40, failed: 40, ..Frames::default() }.interval().1, 1.0);
        assert_eq!(Frames::default().interval(), (0.0, 1.0));
    }
}
