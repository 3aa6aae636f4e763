//! The decoder against a second one that shares no code with it: floating-point messages over a Tanner graph, which is
//! read here from the text of an alist file.

use nandlab_base::base::rng::Stream;
use nandlab_ldpc::{Bits, Code, Decoder, Description, Encoder, MinSum, Outcome, Regions, files};

/// A Tanner graph: the bits of each check.
struct Tanner {
    bits: usize,
    checks: Vec<Vec<usize>>,
}

/// How a check combines the messages of its other bits.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// The product of the hyperbolic tangents of half the LLRs (R. G. Gallager, "Low-density parity-check codes",
    /// 1963).
    SumProduct,
    /// The product of the signs and the least magnitude, times the factor.
    MinSum(f64),
}

/// Which sums a check uses.
#[derive(Clone, Copy, Debug)]
enum Schedule {
    /// Those of the iteration before.
    Flooding,
    /// Those that the checks before it have updated.
    Layered,
}

impl Rule {
    /// The message of a check to each of its bits, given theirs.
    fn messages(self, incoming: &[f64]) -> Vec<f64> {
        let (neutral, enter): (f64, fn(f64) -> f64) = match self {
            Rule::SumProduct => (1.0, |llr| (llr / 2.0).tanh()),
            Rule::MinSum(_) => (f64::INFINITY, |llr| llr),
        };
        let both = |a: f64, b: f64| match self {
            Rule::SumProduct => a * b,
            Rule::MinSum(_) => a.abs().min(b.abs()).copysign(a.signum() * b.signum()),
        };
        let leave = |value: f64| match self {
            Rule::SumProduct => 2.0 * value.clamp(-1.0 + 1e-12, 1.0 - 1e-12).atanh(),
            Rule::MinSum(factor) => factor * value,
        };
        let entered: Vec<f64> = incoming.iter().map(|&llr| enter(llr)).collect();
        // What the bits before each one combine to, and then what the bits behind it do.
        let mut result = Vec::with_capacity(entered.len());
        let mut before = neutral;
        for &value in &entered {
            result.push(before);
            before = both(before, value);
        }
        let mut behind = neutral;
        for (result, &value) in result.iter_mut().zip(&entered).rev() {
            *result = leave(both(*result, behind));
            behind = both(behind, value);
        }
        result
    }
}

impl Tanner {
    /// Reads only the lists of the rows.
    fn new(alist: &str) -> Self {
        let numbers = |line: &str| line.split(' ').map(|number| number.parse().unwrap()).collect();
        let lines: Vec<Vec<usize>> = alist.lines().map(numbers).collect();
        let (bits, checks) = (lines[0][0], lines[0][1]);
        let list = |line: &Vec<usize>| line.iter().filter(|&&bit| bit > 0).map(|bit| bit - 1).collect();
        Self { bits, checks: lines[4 + bits..4 + bits + checks].iter().map(list).collect() }
    }

    fn satisfied(&self, word: &[bool]) -> bool {
        self.checks.iter().all(|check| check.iter().filter(|&&bit| word[bit]).count() % 2 == 0)
    }

    /// The decided word and the iterations, if the word satisfies all checks after at most `iterations_max`.
    fn decode(
        &self,
        llrs: &[f64],
        rule: Rule,
        schedule: Schedule,
        iterations_max: u32,
    ) -> Option<(Vec<bool>, u32)> {
        let mut messages: Vec<Vec<f64>> = self.checks.iter().map(|check| vec![0.0; check.len()]).collect();
        let mut sums = llrs.to_vec();
        for iteration in 0..=iterations_max {
            let decided = |bit: usize| if sums[bit] == 0.0 { llrs[bit] < 0.0 } else { sums[bit] < 0.0 };
            let word: Vec<bool> = (0..self.bits).map(decided).collect();
            if self.satisfied(&word) {
                return Some((word, iteration));
            }
            let before = sums.clone();
            for (check, messages) in self.checks.iter().zip(&mut messages) {
                let used = match schedule {
                    Schedule::Flooding => &before,
                    Schedule::Layered => &sums,
                };
                let incoming: Vec<f64> =
                    check.iter().zip(&*messages).map(|(&bit, m)| used[bit] - m).collect();
                let new = rule.messages(&incoming);
                check.iter().zip(&*messages).zip(&new).for_each(|((&bit, old), new)| sums[bit] += new - old);
                *messages = new;
            }
        }
        None
    }
}

/// Both decoders of one code.
struct Pair {
    code: Code,
    encoder: Encoder,
    decoder: Decoder,
    tanner: Tanner,
}

/// Counts over the same words.
#[derive(Debug, Default)]
struct Counts {
    words: u32,
    failed: u32,
    failed_second: u32,
    failed_both: u32,
    /// Words that both decode, but not into the same codeword.
    different: u32,
    /// Words that both decode in the same number of iterations.
    same_iterations: u32,
}

impl Pair {
    fn new(code: Code) -> Self {
        let tanner = Tanner::new(&files::write_alist(&code));
        assert_eq!((tanner.bits, tanner.checks.len()), (code.bits(), code.checks()));
        let decoder = Decoder::new(&code, MinSum { iterations_max: 50, ..MinSum::default() }).unwrap();
        Self { encoder: Encoder::new(&code).unwrap(), code, decoder, tanner }
    }

    /// Decodes words of random codewords over a channel of `regions` with both decoders. The second one gets the exact
    /// LLRs for sum-product, and the LLRs of the first one for min-sum. Flooding may take twice the iterations of
    /// layers.
    fn compare(&self, regions: &Regions, largest: u8, words: u64, rule: Rule, schedule: Schedule) -> Counts {
        let iterations_max = match schedule {
            Schedule::Flooding => 2 * self.decoder.settings().iterations_max,
            Schedule::Layered => self.decoder.settings().iterations_max,
        };
        let mut work = self.decoder.workspace();
        let quantised = regions.quantised(largest);
        let second_llrs: Vec<f64> = match rule {
            Rule::SumProduct => regions.llrs(),
            Rule::MinSum(_) => quantised.iter().map(|&llr| f64::from(llr)).collect(),
        };
        let mut counts = Counts::default();
        for number in 0..words {
            let mut stream = Stream::new(number, "second decoder");
            let sent = self.encoder.encode(&Bits::random(self.encoder.data_bits(), &mut stream));
            let region = |bit| {
                let (mut left, of) = (stream.unit(), regions.of(sent.get(bit)));
                let drawn = of.iter().position(|p| {
                    left -= p;
                    left < 0.0
                });
                drawn.unwrap_or(of.len() - 1)
            };
            let received: Vec<usize> = (0..self.code.bits()).map(region).collect();
            let llrs: Vec<i8> = received.iter().map(|&region| quantised[region]).collect();
            let floats: Vec<f64> = received.iter().map(|&region| second_llrs[region]).collect();
            let outcome = self.decoder.decode(&llrs, &mut work);
            let second = self.tanner.decode(&floats, rule, schedule, iterations_max);
            counts.words += 1;
            counts.failed += u32::from(!outcome.decoded);
            counts.failed_second += u32::from(second.is_none());
            counts.failed_both += u32::from(!outcome.decoded && second.is_none());
            if let (true, Some((word, iterations))) = (outcome.decoded, second) {
                counts.different += u32::from(work.word() != word.into_iter().collect());
                counts.same_iterations += u32::from(outcome.iterations == iterations);
            }
        }
        counts
    }
}

impl Counts {
    /// Of the words that only one decoder fails, each fails as many, within three standard deviations (Q. McNemar,
    /// "Note on the sampling error of the difference between correlated proportions or percentages", Psychometrika 12,
    /// 1947).
    fn assert_that_failures_agree(&self) {
        let (only, only_second) = (self.failed - self.failed_both, self.failed_second - self.failed_both);
        let deviation = f64::from(only + only_second).sqrt();
        assert!(f64::from(only.abs_diff(only_second)) <= 3.0 * deviation, "{self:?}");
        // Some words fail and some do not, so that the comparison says something.
        assert!(self.failed_both > 0 && 2 * self.failed_both < self.words, "{self:?}");
    }
}

/// The Hamming code: check i involves the places, counted from 1, whose number has bit i.
fn hamming() -> Code {
    let rows = (0..3).map(|bit| (0..7).filter(|place| (place + 1) >> bit & 1 == 1).collect()).collect();
    Code::from_rows(7, rows).unwrap()
}

#[test]
fn a_wrong_bit_of_the_hamming_code_by_hand() {
    // The last bit is wrong and is in all three checks, which are layers of their own.
    // Check 0 receives 16 from the bits 0, 2, 4 and -16 from bit 6. It sends 12 to bit 6 and -12 to the others, so the
    // sums are 4, 4, 4 and -4.
    // Check 1 receives 16, 4, 16, -4 from the bits 1, 2, 5, 6. It sends -3, -3, -3, 3: sums 13, 1, 13, -1.
    // Check 2 receives 16, 4, 13, -1 from the bits 3, 4, 5, 6. It sends -0.75 (rounded to -1), -1, -1 and 3.
    let decoder = Decoder::new(&hamming(), MinSum::default()).unwrap();
    let mut work = decoder.workspace();
    let outcome = decoder.decode(&[16, 16, 16, 16, 16, 16, -16], &mut work);
    assert_eq!(outcome, Outcome { decoded: true, iterations: 1, corrected: 1 });
    assert_eq!(work.sums().collect::<Vec<_>>(), [4, 13, 1, 15, 3, 12, 2]);
    assert_eq!(work.word(), Bits::zeros(7));
}

#[test]
fn all_words_of_the_hamming_code_are_decoded_alike() {
    // With the factor 0.5 the first messages are whole numbers. Later ones are rounded.
    let code = hamming();
    let settings = MinSum { normalisation: 0.5, message_max: 31, iterations_max: 20 };
    let decoder = Decoder::new(&code, settings).unwrap();
    let tanner = Tanner::new(&files::write_alist(&code));
    let mut work = decoder.workspace();
    let mut decoded = 0;
    for word in 0..128u32 {
        let llrs: Vec<i8> = (0..7).map(|bit| if word >> bit & 1 == 1 { -32 } else { 32 }).collect();
        let floats: Vec<f64> = llrs.iter().map(|&llr| f64::from(llr)).collect();
        let outcome = decoder.decode(&llrs, &mut work);
        let first = outcome.decoded.then(|| (work.word(), outcome.iterations));
        let second = tanner.decode(&floats, Rule::MinSum(0.5), Schedule::Layered, 20);
        let second = second.map(|(word, iterations)| (word.into_iter().collect(), iterations));
        assert_eq!(first, second, "{word:07b}");
        decoded += u32::from(outcome.decoded);
    }
    // The sixteen codewords, and each of them with its last bit inverted, which is in all three checks.
    assert_eq!(decoded, 32);
}

#[test]
fn a_small_3_6_code_fails_as_often() {
    let code = Description { rows: 3, columns: 6, lifting: 16, column_weight: 3, seed: 3 }.build().unwrap();
    let pair = Pair::new(code);
    for schedule in [Schedule::Flooding, Schedule::Layered] {
        let counts = pair.compare(&Regions::hard(0.04).unwrap(), 16, 1000, Rule::MinSum(0.75), schedule);
        counts.assert_that_failures_agree();
        // The code is so short that a decoder may find another codeword than the one that was sent.
        assert!(counts.different <= 3, "{schedule:?}: {counts:?}");
    }
}

#[test]
fn a_code_of_rate_5_6_fails_as_often() {
    let code = Description { rows: 6, columns: 36, lifting: 48, column_weight: 4, seed: 3 }.build().unwrap();
    let pair = Pair::new(code);
    let hard = Regions::hard(0.0125).unwrap();
    let soft = Regions::gaussian(0.49, &[0.15, 0.0, -0.15]).unwrap();
    for (regions, largest) in [(hard, 16), (soft, 31)] {
        for (rule, schedule, words) in [
            (Rule::MinSum(0.75), Schedule::Layered, 150),
            (Rule::MinSum(0.75), Schedule::Flooding, 150),
            (Rule::SumProduct, Schedule::Flooding, 50),
        ] {
            let counts = pair.compare(&regions, largest, words, rule, schedule);
            println!("{rule:?}, {schedule:?}, {} regions: {counts:?}", regions.count());
            counts.assert_that_failures_agree();
            assert_eq!(counts.different, 0, "{rule:?}, {schedule:?}: {counts:?}");
            if let (Rule::MinSum(_), Schedule::Layered) = (rule, schedule) {
                // Only rounding differs.
                assert!(counts.same_iterations > counts.words / 2, "{counts:?}");
            }
        }
    }
}

#[test]
fn words_of_4_kib_are_decoded_into_the_same_codewords() {
    let pair = Pair::new(Description::KIB_4.build().unwrap());
    for (schedule, words) in [(Schedule::Flooding, 6), (Schedule::Layered, 10)] {
        let counts = pair.compare(&Regions::hard(0.008).unwrap(), 16, words, Rule::MinSum(0.75), schedule);
        println!("{schedule:?}: {counts:?}");
        assert_eq!(counts.different, 0, "{schedule:?}: {counts:?}");
        assert!(counts.failed.max(counts.failed_second) <= 2, "{schedule:?}: {counts:?}");
    }
}
