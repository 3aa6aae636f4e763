//! The RBER of the layers of a 3D block relative to one another (`reliability.rber.vth-tlc.layers`).
//!
//! A page has the factor ratio^u of its layer, where u is 1 in the worst layer and 0 in the layers that are farthest from
//! it, and falls by the same amount from each layer to the next. The factors are divided by their mean over the pages of
//! a block, so this mean is 1. The factor depends on the layer alone: the layers of all blocks are alike.
//!
//! Y. Luo, S. Ghose, Y. Cai, E. F. Haratsch and O. Mutlu, "Improving 3D NAND flash memory lifetime by tolerating early
//! retention loss and process variation", Proc. ACM Meas. Anal. Comput. Syst. 2(3), 2018, found that the mean error rates
//! of the layers of a 3D MLC chip differ significantly. Assumptions: the ratio, the place of the worst layer, and the
//! course between the layers.

use super::LayerSpread;

/// The factor of each row, which depends on its layer.
#[derive(Clone, Debug)]
pub struct LayerFactors {
    by_row: Box<[f64]>,
}

impl LayerFactors {
    /// The factors of the `rows` rows of a block, which are spread evenly over at least two layers.
    pub fn new(spread: &LayerSpread, rows: u32, layers: u32) -> Self {
        let top = layers - 1;
        let worst = libm::round(spread.worst * f64::from(top)) as u32;
        let farthest = worst.max(top - worst);
        let of_row = |row: u32| {
            let layer = (u64::from(row) * u64::from(layers) / u64::from(rows)) as u32;
            let nearness = 1.0 - f64::from(layer.abs_diff(worst)) / f64::from(farthest);
            libm::pow(spread.ratio, nearness)
        };
        let mut by_row: Box<[f64]> = (0..rows).map(of_row).collect();
        let mean = by_row.iter().sum::<f64>() / f64::from(rows);
        by_row.iter_mut().for_each(|factor| *factor /= mean);
        Self { by_row }
    }

    /// The factor of the pages of a row.
    #[inline]
    pub fn of_row(&self, row: u32) -> f64 {
        self.by_row[row as usize]
    }

    /// The least and the greatest factor of a block.
    pub fn range(&self) -> (f64, f64) {
        self.by_row
            .iter()
            .fold((f64::INFINITY, 0.0), |(low, high), &factor| (low.min(factor), high.max(factor)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: five layers of two rows, the worst in the middle, have 1, 2, 4, 2, 1 before the division by 2.
    #[test]
    fn factors_of_five_layers_by_hand() {
        let factors = LayerFactors::new(&LayerSpread { ratio: 4.0, worst: 0.5 }, 10, 5);
        let found: Vec<f64> = (0..10).map(|row| factors.of_row(row)).collect();
        for (found, told) in found.iter().zip([0.5, 0.5, 1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 0.5, 0.5]) {
            assert!((found - told).abs() < 1e-15, "{found} {told}");
        }
        let (low, high) = factors.range();
        assert!((high / low - 4.0).abs() < 1e-12);
    }

    #[test]
    fn the_mean_is_1_and_the_worst_layer_has_the_ratio_wherever_it_is() {
        for worst in [0.0, 0.1, 0.3, 0.5, 0.77, 1.0] {
            for (rows, layers) in [(2112, 176), (6, 2), (100, 7), (64, 64)] {
                let factors = LayerFactors::new(&LayerSpread { ratio: 3.0, worst }, rows, layers);
                let mean = (0..rows).map(|row| factors.of_row(row)).sum::<f64>() / f64::from(rows);
                let (low, high) = factors.range();
                assert!((mean - 1.0).abs() < 1e-12 && (high / low - 3.0).abs() < 1e-12, "{worst} {layers}");
                let place = (worst * f64::from(layers - 1)).round() as u32;
                let row = (0..rows).find(|row| row * layers / rows == place);
                assert_eq!(factors.of_row(row.expect("every layer has a row")), high, "{worst} {layers}");
            }
        }
    }
}
