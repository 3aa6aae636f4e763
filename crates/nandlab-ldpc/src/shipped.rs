//! Codes that come with the crate, with what was measured of them.
//!
//! Everything was measured with `examples/shipped.rs`, the default decoder ([`MinSum`](crate::MinSum)), LLRs of at most 16
//! for hard decisions and 31 otherwise, and 2,000 to 6,000 frames at most points; a test sends frames again. The frame error rates
//! are those of [`Mixture`](crate::Mixture). Numbers of errors at which 16,000 to 48,000 frames showed fewer than 3 failures count as
//! never failing, so a table ends at a rate that is well above what this leaves out. No table is a capability at
//! rates such as 1e-15: error floors, which begin below 1e-4 if there are any, were not measured.

use crate::construct::Description;
use crate::llr::REFERENCES_MAX;

/// The most iterations of the decoder with which the codes were measured.
pub const ITERATIONS_MAX: u32 = 30;

/// A code with what was measured of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shipped {
    /// The rate: data bits of all bits, as a fraction in text.
    pub rate: &'static str,
    /// Data bytes of a codeword.
    pub data_bytes: u32,
    /// How the code is made.
    pub description: Description,
    /// Raw bit error rates of hard decisions, ascending, with the frame error rates at them.
    pub fer: &'static [(f64, f64)],
    /// Raw bit error rates of hard decisions divided by [`Shipped::boundary`], ascending, with mean and standard deviation
    /// of the iterations of decoded codewords.
    pub iterations: &'static [(f64, f64, f64)],
    /// How much more a region counts that is sure of its bits
    /// ([`Regions::difficulty`](crate::Regions::difficulty)): calibrated, by least squares of the logarithms of the
    /// boundaries below. With it the difficulty is the same at all of them within 4 % of the raw bit error rate.
    pub certainty: f64,
    /// For one to seven references, a quarter of a standard deviation apart at a Gaussian boundary: the raw bit error rate
    /// of one reference at which 1 % of the frames fail.
    pub equidistant: [f64; REFERENCES_MAX],
    /// The same for references that give most information.
    pub most_informative: [f64; REFERENCES_MAX],
    /// How far the difficulty is off at each boundary of `equidistant`: the raw bit error rate of hard decisions that are
    /// as difficult as the channel there, divided by [`Shipped::boundary`]. What the difficulty predicts of a channel with
    /// as many references is off by about as much.
    pub equidistant_residual: [f64; REFERENCES_MAX],
    /// The same for `most_informative`.
    pub most_informative_residual: [f64; REFERENCES_MAX],
}

impl Shipped {
    /// The raw bit error rate of hard decisions at a frame error rate of 1 %.
    pub fn boundary(&self) -> f64 {
        self.equidistant[0]
    }

    /// The frame error rate of hard decisions at a raw bit error rate. Between the measured ones its logit is linear in
    /// the logarithm of the raw bit error rate; below and above, the line goes on.
    pub fn error_rate(&self, rber: f64) -> f64 {
        let at = |&(rber, rate): &(f64, f64)| (libm::log(rber), logit(rate));
        let rate = on_line(self.fer, at, libm::log(rber.max(1e-9)));
        1.0 / (1.0 + libm::exp(-rate))
    }

    /// The raw bit error rate of hard decisions at a frame error rate, in 0..1; the inverse of [`Shipped::error_rate`].
    pub fn rber_at(&self, rate: f64) -> f64 {
        let at = |&(rber, rate): &(f64, f64)| (logit(rate), libm::log(rber));
        libm::exp(on_line(self.fer, at, logit(rate)))
    }

    /// The lowest frame error rate that was measured.
    pub fn rate_min(&self) -> f64 {
        self.fer[0].1
    }

    /// Mean and standard deviation of the iterations of a decoded codeword at `margin`, the raw bit error rate divided by
    /// [`Shipped::boundary`]; linear between the measured margins, constant below and above.
    pub fn iterations_at(&self, margin: f64) -> (f64, f64) {
        let margin = margin.clamp(self.iterations[0].0, self.iterations[self.iterations.len() - 1].0);
        let mean = on_line(self.iterations, |row| (row.0, row.1), margin);
        (mean, on_line(self.iterations, |row| (row.0, row.2), margin))
    }
}

fn logit(rate: f64) -> f64 {
    libm::log(rate / (1.0 - rate))
}

/// The value at `x` of the line through the two rows around it, or through the two rows at an end.
fn on_line<T>(rows: &[T], at: impl Fn(&T) -> (f64, f64), x: f64) -> f64 {
    let above = rows.partition_point(|row| at(row).0 < x).clamp(1, rows.len() - 1);
    let ((x0, y0), (x1, y1)) = (at(&rows[above - 1]), at(&rows[above]));
    y0 + (x - x0) / (x1 - x0) * (y1 - y0)
}

/// The codes, by rate and size.
pub static SHIPPED: [Shipped; 4] = [
    Shipped {
        rate: "8/9",
        data_bytes: 4096,
        description: Description { rows: 8, columns: 72, lifting: 512, column_weight: 4, seed: 1 },
        fer: &[
            (0.007382, 1e-4),   // standard error 1.8e-6
            (0.007525, 3e-4),   // standard error 4.6e-6
            (0.007696, 1e-3),   // standard error 1.3e-5
            (0.007871, 3e-3),   // standard error 3.5e-5
            (0.008088, 1e-2),   // standard error 9.9e-5
            (0.008322, 3e-2),   // standard error 2.5e-4
            (0.008642, 1e-1),   // standard error 6.3e-4
            (0.008882, 2e-1),   // standard error 1.1e-3
            (0.009350, 5e-1),   // standard error 1.7e-3
            (0.009831, 8e-1),   // standard error 1.5e-3
            (0.010302, 9.5e-1), // standard error 7.7e-4
            (0.010712, 9.9e-1), // standard error 6.0e-4
        ],
        iterations: &[
            (0.02, 1.00, 0.06),
            (0.1, 1.27, 0.44),
            (0.2, 1.96, 0.20),
            (0.3, 2.02, 0.15),
            (0.4, 2.29, 0.45),
            (0.5, 2.85, 0.37),
            (0.6, 3.08, 0.29),
            (0.7, 3.61, 0.52),
            (0.8, 4.25, 0.55),
            (0.85, 4.69, 0.73),
            (0.9, 5.24, 0.97),
            (0.95, 6.06, 1.57),
            (1.0, 7.16, 2.25),
            (1.05, 8.89, 3.54),
            (1.1, 10.88, 4.59),
            (1.2, 15.21, 5.86),
        ],
        certainty: 0.082,
        equidistant: [0.00809, 0.01036, 0.01258, 0.01459, 0.01631, 0.01764, 0.01864],
        most_informative: [0.00809, 0.01447, 0.01718, 0.01833, 0.01894, 0.01926, 0.01955],
        equidistant_residual: [1.0, 1.0053, 1.012, 1.012, 1.0183, 1.0143, 1.0163],
        most_informative_residual: [1.0, 0.9939, 1.0226, 0.9904, 0.9933, 0.9759, 0.9815],
    },
    Shipped {
        rate: "8/9",
        data_bytes: 2048,
        description: Description { rows: 8, columns: 72, lifting: 256, column_weight: 4, seed: 1 },
        fer: &[
            (0.006656, 1e-4),   // standard error 2.2e-6
            (0.006847, 3e-4),   // standard error 5.8e-6
            (0.007077, 1e-3),   // standard error 1.7e-5
            (0.007312, 3e-3),   // standard error 4.4e-5
            (0.007607, 1e-2),   // standard error 1.2e-4
            (0.007925, 3e-2),   // standard error 3.0e-4
            (0.008365, 1e-1),   // standard error 7.7e-4
            (0.008697, 2e-1),   // standard error 1.3e-3
            (0.009351, 5e-1),   // standard error 2.1e-3
            (0.010033, 8e-1),   // standard error 1.8e-3
            (0.010711, 9.5e-1), // standard error 1.0e-3
            (0.011308, 9.9e-1), // standard error 1.1e-3
        ],
        iterations: &[
            (0.02, 0.93, 0.25),
            (0.1, 1.14, 0.35),
            (0.2, 1.75, 0.43),
            (0.3, 1.99, 0.14),
            (0.4, 2.11, 0.32),
            (0.5, 2.48, 0.50),
            (0.6, 2.91, 0.42),
            (0.7, 3.25, 0.48),
            (0.8, 3.83, 0.65),
            (0.85, 4.18, 0.77),
            (0.9, 4.55, 0.90),
            (0.95, 5.11, 1.45),
            (1.0, 5.84, 1.98),
            (1.05, 6.90, 2.85),
            (1.1, 8.02, 3.65),
            (1.2, 10.68, 5.11),
        ],
        certainty: 0.093,
        equidistant: [0.00761, 0.00977, 0.01202, 0.01399, 0.01564, 0.01700, 0.01787],
        most_informative: [0.00761, 0.01384, 0.01659, 0.01775, 0.01834, 0.01872, 0.01895],
        equidistant_residual: [1.0, 1.0019, 1.0174, 1.016, 1.0183, 1.0163, 1.0096],
        most_informative_residual: [1.0, 0.9869, 1.0275, 0.9927, 0.9953, 0.9808, 0.9832],
    },
    Shipped {
        rate: "16/17",
        data_bytes: 4096,
        description: Description { rows: 8, columns: 136, lifting: 256, column_weight: 4, seed: 1 },
        fer: &[
            (0.002774, 1e-4),   // standard error 2.1e-6
            (0.002865, 3e-4),   // standard error 5.3e-6
            (0.002975, 1e-3),   // standard error 1.5e-5
            (0.003088, 3e-3),   // standard error 3.9e-5
            (0.003230, 1e-2),   // standard error 1.1e-4
            (0.003383, 3e-2),   // standard error 2.7e-4
            (0.003596, 1e-1),   // standard error 7.2e-4
            (0.003756, 2e-1),   // standard error 1.2e-3
            (0.004074, 5e-1),   // standard error 2.0e-3
            (0.004406, 8e-1),   // standard error 1.6e-3
            (0.004736, 9.5e-1), // standard error 8.6e-4
            (0.005027, 9.9e-1), // standard error 7.9e-4
        ],
        iterations: &[
            (0.02, 0.89, 0.32),
            (0.1, 1.18, 0.38),
            (0.2, 1.79, 0.41),
            (0.3, 2.00, 0.17),
            (0.4, 2.13, 0.33),
            (0.5, 2.48, 0.50),
            (0.6, 2.86, 0.43),
            (0.7, 3.22, 0.51),
            (0.8, 3.71, 0.67),
            (0.85, 4.07, 0.80),
            (0.9, 4.47, 1.23),
            (0.95, 4.97, 1.54),
            (1.0, 5.64, 1.98),
            (1.05, 6.48, 2.62),
            (1.1, 7.62, 3.70),
            (1.2, 9.96, 4.94),
        ],
        certainty: 0.122,
        equidistant: [0.00323, 0.00437, 0.00558, 0.00673, 0.00781, 0.00860, 0.00918],
        most_informative: [0.00323, 0.00665, 0.00829, 0.00899, 0.00934, 0.00959, 0.00968],
        equidistant_residual: [1.0, 1.0077, 1.019, 1.0175, 1.0335, 1.0222, 1.0194],
        most_informative_residual: [1.0, 0.9892, 1.0338, 0.9888, 0.9894, 0.9738, 0.9705],
    },
    Shipped {
        rate: "16/17",
        data_bytes: 2048,
        description: Description { rows: 8, columns: 136, lifting: 128, column_weight: 4, seed: 1 },
        fer: &[
            (0.002321, 1e-4),   // standard error 4.0e-6
            (0.002439, 3e-4),   // standard error 8.9e-6
            (0.002582, 1e-3),   // standard error 2.3e-5
            (0.002731, 3e-3),   // standard error 5.7e-5
            (0.002919, 1e-2),   // standard error 1.6e-4
            (0.003125, 3e-2),   // standard error 4.1e-4
            (0.003415, 1e-1),   // standard error 1.1e-3
            (0.003637, 2e-1),   // standard error 1.8e-3
            (0.004082, 5e-1),   // standard error 3.1e-3
            (0.004557, 8e-1),   // standard error 2.7e-3
            (0.005038, 9.5e-1), // standard error 1.7e-3
            (0.005467, 9.9e-1), // standard error 1.8e-3
        ],
        iterations: &[
            (0.02, 0.60, 0.49),
            (0.1, 1.04, 0.25),
            (0.2, 1.48, 0.50),
            (0.3, 1.85, 0.38),
            (0.4, 2.02, 0.28),
            (0.5, 2.21, 0.43),
            (0.6, 2.50, 0.56),
            (0.7, 2.85, 0.87),
            (0.8, 3.22, 0.75),
            (0.85, 3.41, 0.81),
            (0.9, 3.77, 1.37),
            (0.95, 4.13, 1.76),
            (1.0, 4.46, 1.78),
            (1.05, 5.12, 3.00),
            (1.1, 5.36, 2.68),
            (1.2, 6.65, 3.48),
        ],
        certainty: 0.143,
        equidistant: [0.00292, 0.00398, 0.00509, 0.00619, 0.00724, 0.00809, 0.00873],
        most_informative: [0.00292, 0.00616, 0.00784, 0.00849, 0.00887, 0.00909, 0.00923],
        equidistant_residual: [1.0, 1.0061, 1.0097, 1.0075, 1.0247, 1.0237, 1.0298],
        most_informative_residual: [1.0, 0.9805, 1.0427, 0.9853, 0.9941, 0.9709, 0.9753],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Channel, Codewords, Decoder, MinSum, Regions, measure, rber_of_difficulty};

    fn code(rate: &str, data_bytes: u32) -> &'static Shipped {
        SHIPPED
            .iter()
            .find(|code| (code.rate, code.data_bytes) == (rate, data_bytes))
            .expect("the code is shipped")
    }

    #[test]
    fn tables_are_in_order_and_rates_are_those_of_the_codes() {
        for code in &SHIPPED {
            let Description { rows, columns, lifting, .. } = code.description;
            let rate = f64::from(columns - rows) / f64::from(columns);
            let (data, all) = code.rate.split_once('/').unwrap();
            assert_eq!(rate, data.parse::<f64>().unwrap() / all.parse::<f64>().unwrap());
            assert_eq!((columns - rows) * lifting, 8 * code.data_bytes);
            assert!(code.fer.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
            assert!(code.iterations.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
            let hard = Regions::hard(code.boundary()).unwrap().equivocation();
            for (of, spacing) in [(&code.equidistant, Some(0.25)), (&code.most_informative, None)] {
                assert!(of.is_sorted_by(|a, b| a < b), "more references decode more");
                // What a code decodes leaves at most 1 - rate unknown, and the equivocations differ by at most a third.
                for (references, &rber) in (1..).zip(of) {
                    let unknown = Regions::of_boundary(rber, references, spacing).unwrap().equivocation();
                    assert!(unknown < 1.0 - rate && unknown < 1.35 * hard, "{references} {unknown}");
                }
            }
            let boundary = code.rber_at(0.01);
            assert!((boundary / code.boundary() - 1.0).abs() < 2e-3, "{boundary}");
        }
    }

    /// The boundaries of soft decisions follow from that of hard decisions, with one constant for each code.
    #[test]
    fn the_difficulty_is_the_same_at_all_boundaries() {
        for code in &SHIPPED {
            let both = [(&code.equidistant, Some(0.25)), (&code.most_informative, None)];
            let channels: Vec<Regions> = both
                .into_iter()
                .flat_map(|(of, spacing)| {
                    (2..).zip(&of[1..]).map(move |(count, &rber)| Regions::of_boundary(rber, count, spacing))
                })
                .collect::<Result<_, _>>()
                .unwrap();
            let errors = |certainty: f64| -> Vec<f64> {
                let equivalent = |of: &Regions| rber_of_difficulty(of.difficulty(certainty), certainty);
                channels.iter().map(|of| (equivalent(of) / code.boundary()).ln()).collect()
            };
            let squares = |certainty: f64| errors(certainty).iter().map(|error| error * error).sum::<f64>();
            let least = squares(code.certainty);
            assert!(squares(code.certainty - 1e-3) > least && squares(code.certainty + 1e-3) > least);
            let worst = errors(code.certainty).into_iter().fold(0.0, |max: f64, error| max.max(error.abs()));
            assert!(worst < 0.042, "{} {}: {worst}", code.rate, code.data_bytes);
            let residuals: Vec<f64> = [&code.equidistant_residual, &code.most_informative_residual]
                .into_iter()
                .flat_map(|of| of[1..].iter().map(|residual| residual.ln()))
                .collect();
            for (residual, error) in residuals.iter().zip(errors(code.certainty)) {
                assert!(
                    (residual - error).abs() < 1e-4,
                    "{} {}: {residual} {error}",
                    code.rate,
                    code.data_bytes
                );
            }
            assert_eq!((code.equidistant_residual[0], code.most_informative_residual[0]), (1.0, 1.0));
            // Mutual information alone is off by far more.
            assert!(squares(0.0) > 8.0 * least, "{} {least}", squares(0.0));
        }
    }

    #[test]
    fn the_curves_pass_through_their_points_and_go_on_as_lines() {
        let code = code("8/9", 4096);
        for &(rber, rate) in code.fer {
            assert!((code.error_rate(rber) / rate - 1.0).abs() < 1e-9);
            assert!((code.rber_at(rate) / rber - 1.0).abs() < 1e-9);
        }
        for rate in [1e-6, 3e-3, 0.37, 0.999] {
            assert!((code.error_rate(code.rber_at(rate)) / rate - 1.0).abs() < 1e-9);
        }
        assert!(code.error_rate(0.0) < 1e-9 && code.error_rate(0.5) > 0.999);
        let (mean, deviation) = code.iterations_at(0.75);
        let [(_, low, _), (_, high, _)] =
            [0.7, 0.8].map(|at| *code.iterations.iter().find(|row| row.0 == at).unwrap());
        assert!((mean - low.midpoint(high)).abs() < 1e-9 && deviation > 0.0);
        assert_eq!(code.iterations_at(9.0).0, code.iterations[code.iterations.len() - 1].1);
    }

    /// Frames of other seeds than those of the tables: of every code at three points, with one, three and seven
    /// references. The decoder is that of the tables.
    #[test]
    fn frames_fail_as_the_tables_say() {
        for code in &SHIPPED {
            let built = code.description.build().unwrap();
            let decoder = Decoder::new(&built, MinSum::default()).unwrap();
            let codewords = Codewords::zero(built.bits());
            let rber = code.rber_at(0.2);
            let hard = Channel::binary_symmetric(rber, 16).unwrap();
            let counts = measure(&decoder, &hard, &codewords, 77, 0..600);
            // Four standard deviations of 600 frames.
            assert!(
                (counts.error_rate() - 0.2).abs() < 4.0 * (0.2f64 * 0.8 / 600.0).sqrt(),
                "{} {counts:?}",
                code.rate
            );
            let easy = Channel::binary_symmetric(0.8 * code.boundary(), 16).unwrap();
            let counts = measure(&decoder, &easy, &codewords, 78, 0..100);
            let (mean, deviation) = code.iterations_at(0.8);
            assert_eq!(counts.failed + counts.wrong, 0);
            assert!(
                (counts.iterations_mean() - mean).abs() < 4.0 * deviation / 10.0 + 0.02,
                "{} {counts:?}",
                code.rate
            );
            for references in [3usize, 7] {
                // Five percent above and below the boundary of 1 %: 2 to 30 %, and nearly none.
                let rber = code.equidistant[references - 1];
                let at = |rber: f64| {
                    let regions = Regions::of_boundary(rber, references, Some(0.25)).unwrap();
                    let llrs = regions.quantised(31);
                    measure(&decoder, &Channel::Regions { regions, llrs }, &codewords, 79, 0..500).failed
                };
                let (above, below) = (at(1.05 * rber), at(0.95 * rber));
                assert!(
                    (10..150).contains(&above) && below < 8,
                    "{} {references}: {above}, {below}",
                    code.rate
                );
            }
        }
    }
}
