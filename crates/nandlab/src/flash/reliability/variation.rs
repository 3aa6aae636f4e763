//! Variation from page to page (`reliability.page_variation`): a factor of each page's RBER.
//!
//! The factor is lognormal with mean 1: exp(S z - S^2 / 2), where S is the spec's value and z is standard normal. A
//! hash of the run's seed and the number of the page's first unit draws one of 4096 equally likely factors, so no
//! memory per page is needed, and a read costs a hash and a look-up. The factors are those of the middle quantiles of
//! 4096 equal shares of the normal distribution: z lies between -3.67 and 3.67. They are divided by their mean, so that
//! the mean over the factors is exactly 1.
//!
//! If the layers of a block differ, a page also has the factor of its layer ([`LayerFactors`]).

use super::noise::upper;
use super::{LayerFactors, RBER_MAX};
use crate::base::geometry::UnitId;
use crate::base::rng::{Stream, mixed};
use std::sync::LazyLock;

/// Number of factors, a power of two.
const FACTORS: usize = 4096;

/// The middle quantiles of the shares, the same for all drives: they take 20 ms, a hundred times as long as the factors.
static QUANTILES: LazyLock<Box<[f64]>> =
    LazyLock::new(|| (0..FACTORS).map(|index| quantile((index as f64 + 0.5) / FACTORS as f64)).collect());

/// The factor of each page's RBER.
#[derive(Debug)]
pub struct PageVariation {
    key: u64,
    factors: Box<[f64]>,
    layers: Option<LayerFactors>,
}

impl PageVariation {
    /// The factors of a run with `seed`; `None` if all pages have the same RBER.
    pub fn new(spread: f64, layers: Option<LayerFactors>, seed: u64) -> Option<Self> {
        if spread == 0.0 && layers.is_none() {
            return None;
        }
        let mut factors: Box<[f64]> = QUANTILES.iter().map(|z| libm::exp(spread * z)).collect();
        let mean = factors.iter().sum::<f64>() / FACTORS as f64;
        factors.iter_mut().for_each(|factor| *factor /= mean);
        Some(Self { key: Stream::new(seed, "reliability.page_variation").bits(), factors, layers })
    }

    /// The factor of the page whose first unit is `page`.
    #[inline]
    pub fn factor(&self, page: UnitId) -> f64 {
        self.factors[(hash(self.key, page.0) >> 52) as usize]
    }

    /// The RBER of the page whose first unit is `page`, 0 to 0.5, if `mean` is the mean of pages with the same history.
    /// `row` is the page's number in its block.
    #[inline]
    pub(crate) fn rber(&self, page: UnitId, mean: f64, row: impl FnOnce() -> u32) -> f64 {
        let of_layer = self.layers.as_ref().map_or(1.0, |layers| layers.of_row(row()));
        (self.factor(page) * of_layer * mean).min(RBER_MAX)
    }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) of a number, such as that of a page's first unit.
#[inline]
pub(in crate::flash) fn hash(key: u64, page: u32) -> u64 {
    mixed(key.wrapping_add(u64::from(page).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// The z below which the share `share` of the standard normal distribution lies, by bisection.
pub(in crate::flash) fn quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-9.0, 9.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if 1.0 - upper(middle) < share { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_variation_there_are_no_factors() {
        assert!(PageVariation::new(0.0, None, 1).is_none());
    }

    /// Known quantiles of the standard normal distribution.
    #[test]
    fn quantiles_are_those_of_the_normal_distribution() {
        for (share, z) in [(0.5, 0.0), (0.841_344_746, 1.0), (0.022_750_132, -2.0), (0.999, 3.090_232_306)] {
            assert!((quantile(share) - z).abs() < 1e-6, "{share}: {}", quantile(share));
        }
    }

    /// The mean of the factors is 1. The logarithms have the spread S, less the tails beyond 3.67.
    #[test]
    fn the_factors_have_mean_1_and_the_spread_of_the_spec() {
        for spread in [0.1, 0.5, 1.0, 2.0] {
            let factors = PageVariation::new(spread, None, 7).expect("there is variation").factors;
            let mean =
                |value: &dyn Fn(f64) -> f64| factors.iter().map(|&f| value(f)).sum::<f64>() / FACTORS as f64;
            assert!((mean(&|factor| factor) - 1.0).abs() < 1e-12);
            let middle = mean(&f64::ln);
            let deviation = mean(&|factor| (factor.ln() - middle).powi(2)).sqrt();
            assert!((deviation / spread - 1.0).abs() < 1e-3, "{spread}: {deviation}");
        }
        // Up to S = 1 the mean of the logarithms is -S^2 / 2 as without the missing tails: there exp(S z) has less than
        // 0.4 % of its mean.
        let factors = PageVariation::new(1.0, None, 7).expect("there is variation").factors;
        let middle = factors.iter().map(|factor| factor.ln()).sum::<f64>() / FACTORS as f64;
        assert!((middle + 0.5).abs() < 4e-3, "{middle}");
    }

    /// With S = 0.5 a factor is above x where z is above (ln x + S^2 / 2) / S: for x = 2 above 1.636, which are 5.09 % of
    /// the pages, for x = 0.5 above -1.136, which are 87.2 %. Of 100,000 pages these shares have standard errors of
    /// 0.07 % and 0.11 %.
    #[test]
    fn the_share_of_pages_above_a_factor_is_that_of_the_normal_distribution() {
        for seed in [1, 2, 3] {
            let variation = PageVariation::new(0.5, None, seed).expect("there is variation");
            let above = |limit: f64| {
                (0..100_000).filter(|&page| variation.factor(UnitId(page)) > limit).count() as f64 / 1e5
            };
            assert!((above(2.0) - 0.0509).abs() < 4.0 * 0.0007, "{}", above(2.0));
            assert!((above(0.5) - 0.872).abs() < 4.0 * 0.0011, "{}", above(0.5));
            // Neighbouring pages are independent: 5.09 % of the pages after a page above 2 are above 2 too.
            let pairs = (0..100_000).filter(|&page| variation.factor(UnitId(page)) > 2.0);
            let (mut both, mut all) = (0.0, 0.0);
            for page in pairs {
                all += 1.0;
                both += f64::from(u8::from(variation.factor(UnitId(page + 1)) > 2.0));
            }
            assert!((both / all - 0.0509_f64).abs() < 4.0 * 0.0031, "{}", both / all);
        }
    }

    #[test]
    fn the_seed_determines_the_factors() {
        let factors = |seed| {
            let variation = PageVariation::new(0.5, None, seed).expect("there is variation");
            (0..100).map(|page| variation.factor(UnitId(page))).collect::<Vec<_>>()
        };
        assert_eq!(factors(1), factors(1));
        assert_ne!(factors(1), factors(2));
    }

    #[test]
    fn no_rber_is_above_one_half() {
        let variation = PageVariation::new(2.0, None, 1).expect("there is variation");
        let most = (0..10_000).map(|page| variation.rber(UnitId(page), 0.3, || 0)).fold(0.0, f64::max);
        assert_eq!(most, RBER_MAX);
    }
}
