//! `ecc.levels = { codec = ... }`: read levels from an LDPC code.
//!
//! Level L senses with L references at each boundary. The RBER of a page at a level is the equivalent one
//! (`reliability/soft.rs`), so the code has one limit for all levels, a frame error rate by RBER, and iterations by RBER.
//! All three are measured tables of `nandlab_ldpc`; a run draws no frames.
//!
//! **Failures.** A page has several codewords and fails if one of them does: FER = 1 - (1 - FER of a codeword)^n. Either
//! a level decodes every page up to the RBER at which this rate has a given value. Or a hash of the seed, the page and
//! its P/E cycles draws a share u, and the level decodes the page while the rate is below u. The draw is the same for all
//! levels and all reads of the data: voltages, not the sensing, make a page hard to decode. (Assumption; noise of the
//! sensing itself would make a further try at the same level worth while.) A draw is one of [`DRAWS`] equal shares, so
//! failures that are rarer than half of a share are never drawn: the tables end there too.
//!
//! **Decode time.** Mean and standard deviation of the iterations of a decoded codeword are a function of the margin, the
//! RBER divided by that at a frame error rate of 1 %. Of a page that fails, the expected number of failed codewords takes
//! the most iterations. The codewords of a read follow one another in one decoder.

use super::super::reliability::{hash, quantile};
use crate::base::geometry::UnitId;
use crate::base::rng::Stream;
use crate::base::units::Span;
use nandlab_ldpc::{ITERATIONS_MAX, Shipped};

/// Equally likely draws of the share of pages that are easier to decode, a power of two.
const DRAWS: usize = 512;

/// `ecc.levels.codec`, as far as it does not concern single levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodecSpec {
    /// The code with its measured tables.
    pub code: &'static Shipped,
    /// Which pages a level decodes.
    pub failures: Failures,
    /// Time of an iteration of a codeword.
    pub iteration_ns: Span,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// The seed of the run.
    pub seed: u64,
    /// Whether the entries of a read-retry table are tried before soft sensing.
    pub shifts: bool,
}

/// `ecc.levels.codec.fer`: which pages a level decodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Failures {
    /// Failures are drawn from the frame error rate.
    Drawn,
    /// A level decodes every page whose frame error rate is below this value, and no other page.
    Limit(f64),
}

impl CodecSpec {
    /// Codewords of a page.
    pub fn codewords(&self) -> u32 {
        self.page_bytes.div_ceil(self.code.data_bytes)
    }

    /// The frame error rate of a codeword at which a page of [`CodecSpec::codewords`] fails with the probability `rate`.
    pub fn of_codeword(&self, rate: f64) -> f64 {
        -libm::expm1(libm::log1p(-rate) / f64::from(self.codewords()))
    }

    /// The RBER of hard decisions at which a page fails with the probability `rate`.
    pub fn rber_at(&self, rate: f64) -> f64 {
        self.code.rber_at(self.of_codeword(rate))
    }

    /// The limit of the RBER of hard decisions: that of `fer`, or that at which half of the pages fail.
    pub fn limit(&self) -> f64 {
        match self.failures {
            Failures::Drawn => self.rber_at(0.5),
            Failures::Limit(rate) => self.rber_at(rate),
        }
    }

    /// The decode time of a page at 0.8 of the boundary, where most pages of a level are read.
    pub fn nominal_ns(&self) -> Span {
        let (mean, _) = self.code.iterations_at(0.8);
        time(f64::from(self.codewords()) * mean, self.iteration_ns)
    }
}

/// The code of a drive.
#[derive(Clone, Debug)]
pub struct Codec {
    spec: CodecSpec,
    /// [`CodecSpec::limit`].
    limit: f64,
    /// The limit of the RBER by draw; one limit if nothing is drawn.
    limits: Box<[f64]>,
    /// The deviation of a decode time by draw, in standard deviations.
    deviations: Box<[f64]>,
    /// Keys of the draws of failures and of decode times.
    keys: [u64; 2],
}

impl Codec {
    /// The code of a validated spec.
    pub fn new(spec: &CodecSpec) -> Self {
        let shares = || (0..DRAWS).map(|draw| (draw as f64 + 0.5) / DRAWS as f64);
        let limit = spec.limit();
        let limits = match spec.failures {
            Failures::Drawn => shares().map(|share| spec.rber_at(share)).collect(),
            Failures::Limit(_) => [limit].into(),
        };
        let mut stream = Stream::new(spec.seed, "ecc.codec");
        Self {
            spec: *spec,
            limit,
            limits,
            deviations: shares().map(quantile).collect(),
            keys: [stream.bits(), stream.bits()],
        }
    }

    /// The limit of the RBER of hard decisions: that of `fer`, or that at which half of the pages fail.
    pub fn limit(&self) -> f64 {
        self.limit
    }

    /// Whether the entries of a read-retry table are tried before soft sensing.
    pub fn shifts(&self) -> bool {
        self.spec.shifts
    }

    /// The RBER below which every level decodes the page whose first unit is `page`, in a block with these P/E cycles.
    #[inline]
    pub fn limit_of(&self, page: UnitId, pe_cycles: u32) -> f64 {
        if self.limits.len() == 1 {
            return self.limits[0];
        }
        self.limits[(hash(hash(self.keys[0], pe_cycles), page.0) >> 32) as usize % DRAWS]
    }

    /// The time of decoding `bytes` of data at this equivalent RBER. `has_failed`: a codeword fails. `order` draws the
    /// deviation from the mean.
    pub fn decode_ns(&self, rber: f64, bytes: u32, has_failed: bool, order: u64) -> Span {
        let code = self.spec.code;
        let codewords = f64::from(bytes.div_ceil(code.data_bytes).max(1));
        let failed = if has_failed {
            // The expected number of failed codewords, given that one has failed.
            let rate = code.error_rate(rber);
            let any = -libm::expm1(codewords * libm::log1p(-rate));
            if any > 0.0 { (codewords * rate / any).clamp(1.0, codewords) } else { 1.0 }
        } else {
            0.0
        };
        let (mean, deviation) = code.iterations_at(rber / code.boundary());
        let draw = hash(hash(self.keys[1], (order >> 32) as u32), order as u32) >> 32;
        let decoded = codewords - failed;
        let spread = libm::sqrt(decoded) * deviation * self.deviations[draw as usize % DRAWS];
        // At least one pass over the checks, at most all iterations of each codeword.
        let iterations = (decoded * mean + spread).clamp(decoded, decoded * f64::from(ITERATIONS_MAX));
        time(iterations + failed * f64::from(ITERATIONS_MAX), self.spec.iteration_ns)
    }

    /// The time of decoding `bytes` of data of which no codeword is decoded.
    pub fn all_failed_ns(&self, bytes: u32) -> Span {
        let codewords = bytes.div_ceil(self.spec.code.data_bytes).max(1);
        self.spec.iteration_ns * u64::from(codewords * ITERATIONS_MAX)
    }
}

/// The time of a number of iterations, which need not be whole.
fn time(iterations: f64, iteration_ns: Span) -> Span {
    Span::from_ns(libm::round(iterations * iteration_ns.ns() as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::US;
    use nandlab_ldpc::SHIPPED;

    fn spec(failures: Failures) -> CodecSpec {
        let code = SHIPPED.iter().find(|code| code.rate == "8/9" && code.data_bytes == 4096).unwrap();
        CodecSpec { code, failures, iteration_ns: US, page_bytes: 16_384, seed: 1, shifts: false }
    }

    #[test]
    fn a_page_of_four_codewords_has_the_limit_of_its_worst() {
        let spec = spec(Failures::Limit(0.1));
        assert_eq!(spec.codewords(), 4);
        let rate = spec.code.error_rate(spec.limit());
        assert!((1.0 - (1.0 - rate).powi(4) - 0.1).abs() < 1e-6, "{rate}");
        let codec = Codec::new(&spec);
        assert_eq!(codec.limit_of(UnitId(7), 3), spec.limit());
    }

    #[test]
    fn drawn_failures_have_the_frame_error_rate_of_a_page() {
        let codec = Codec::new(&spec(Failures::Drawn));
        for (rber, n) in [(0.0084, 40_000), (0.0088, 40_000), (0.0079, 80_000)] {
            let failed = (0..n).filter(|&page| rber >= codec.limit_of(UnitId(page), 5)).count() as f64;
            let rate = 1.0 - (1.0 - spec(Failures::Drawn).code.error_rate(rber)).powi(4);
            let deviation = (f64::from(n) * rate * (1.0 - rate)).sqrt();
            // A draw is one of 512 shares.
            let share = f64::from(n) / DRAWS as f64;
            assert!(
                (failed - f64::from(n) * rate).abs() < 4.0 * deviation + share,
                "{rber}: {failed} of {n}, {rate}"
            );
        }
        let limit = |page, pe| codec.limit_of(UnitId(page), pe);
        assert!((0..20).any(|pe| limit(1, pe) != limit(1, pe + 1)), "another program is another draw");
        assert_eq!(limit(1, 1), Codec::new(&spec(Failures::Drawn)).limit_of(UnitId(1), 1));
    }

    #[test]
    fn decode_times_have_mean_and_spread_of_the_curve_and_failures_take_all_iterations() {
        let spec = spec(Failures::Drawn);
        let codec = Codec::new(&spec);
        let rber = 0.95 * spec.code.boundary();
        let times: Vec<f64> =
            (0..20_000).map(|order| codec.decode_ns(rber, 16_384, false, order).ns() as f64 / 1e3).collect();
        let (mean, deviation) = spec.code.iterations_at(0.95);
        let of_times = times.iter().sum::<f64>() / 20_000.0;
        assert!((of_times - 4.0 * mean).abs() < 0.05, "{of_times}, {mean}");
        let variance = times.iter().map(|time| (time - of_times).powi(2)).sum::<f64>() / 20_000.0;
        assert!((variance.sqrt() / (2.0 * deviation) - 1.0).abs() < 0.05, "{variance}, {deviation}");
        // Part of a codeword is decoded as a whole one. One codeword has at least one pass, and hardly more without errors.
        let part = codec.decode_ns(0.0, 512, false, 3);
        assert!(part >= US && part.ns() < 1300, "{part:?}");
        // Far above the boundary all four codewords fail.
        assert_eq!(codec.decode_ns(0.02, 16_384, true, 3), codec.all_failed_ns(16_384));
        assert_eq!(codec.all_failed_ns(16_384), 120 * US);
        // Far below, one of them does.
        let one = codec.decode_ns(0.005, 16_384, true, 3).ns() as f64 / 1e3;
        assert!((30.0 + 3.0..45.0).contains(&one), "{one}");
    }
}
