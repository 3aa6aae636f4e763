//! Tables of functions of P/E cycles and age. The nodes of a table are computed when first needed.
//!
//! The axes are divided as in an HDR histogram (high dynamic range): every octave of (P/E + 32) has 32 equal parts, and
//! every octave of (age + `FIRST` s) has 16. `FIRST` is 4096, or less for a function that changes within minutes. So
//! the exponent and mantissa bits of a float give the cell of a point and the position within the cell, without a
//! logarithm. A node is computed at the first look-up in a cell beside the node, from the node's coordinates only, so a
//! value does not depend on earlier look-ups. Between nodes the fourth root of the function is bilinear. RBERs grow by
//! powers of age and cycles; their fourth root is nearly linear, so a few hundred nodes per axis suffice, and two
//! multiplications undo the root. Where the function is monotone, so is the table.

/// The largest P/E count in the table; higher counts are looked up as this count.
const PE_MAX: u32 = (1 << 24) - 1;

/// An axis whose octaves of (value + first) are cut into 2^bits parts each.
#[derive(Debug)]
pub(super) struct Axis {
    pub(super) bits: u32,
    pub(super) first: f64,
}

const PE: Axis = Axis { bits: 5, first: 32.0 };
const PE_NODES: usize = PE.nodes(PE_MAX);

impl Axis {
    const fn shift(&self) -> u32 {
        52 - self.bits
    }

    const fn base(&self) -> u64 {
        self.first.to_bits() >> self.shift()
    }

    /// The number of nodes for values up to `max`.
    pub(super) const fn nodes(&self, max: u32) -> usize {
        (((max as f64 + self.first).to_bits() >> self.shift()) - self.base()) as usize + 2
    }

    /// The node at or below a value, and the position of the value between this node and the next (0 to 1).
    #[inline]
    pub(super) fn split(&self, value: u32) -> (usize, f64) {
        let bits = (f64::from(value) + self.first).to_bits();
        let rest = bits & ((1 << self.shift()) - 1);
        (
            (((bits >> self.shift()) - self.base()) as usize),
            rest as i64 as f64 / (1u64 << self.shift()) as f64,
        )
    }

    /// The value at a node.
    pub(super) fn value(&self, node: usize) -> f64 {
        f64::from_bits((node as u64 + self.base()) << self.shift()) - self.first
    }
}

/// Tables of `N` functions of P/E cycles and age, each from 0 to 1.
pub(super) struct Grid<const N: usize, const FIRST: u32> {
    /// Fourth roots by function, P/E node and age node; 0 for a node that is not yet computed. Parts of the zeroed
    /// allocation that are never accessed take no memory.
    roots: Vec<f32>,
}

impl<const N: usize, const FIRST: u32> Grid<N, FIRST> {
    const AGE: Axis = Axis { bits: 4, first: FIRST as f64 };
    const AGE_NODES: usize = Self::AGE.nodes(u32::MAX);

    pub(super) fn new() -> Self {
        Self { roots: vec![0.0; N * PE_NODES * Self::AGE_NODES] }
    }

    /// The value of function `which` at a point. `compute` returns the values of all functions at (P/E cycles, age in
    /// seconds).
    #[inline]
    pub(super) fn at(
        &mut self,
        which: usize,
        pe_cycles: u32,
        age_s: u32,
        compute: impl FnMut(f64, f64) -> [f64; N],
    ) -> f64 {
        let (row, down) = PE.split(pe_cycles.min(PE_MAX));
        let (column, right) = Self::AGE.split(age_s);
        let corner = (which * PE_NODES + row) * Self::AGE_NODES + column;
        let mut q = self.corners(corner);
        // One branch for all four nodes, which is not taken once the nodes are computed. `f32::min` would be slower,
        // because it handles NaN.
        let less = |a: f32, b: f32| if a < b { a } else { b };
        if less(less(q[0], q[1]), less(q[2], q[3])) == 0.0 {
            self.fill(row, column, compute);
            q = self.corners(corner);
        }
        let q = q.map(f64::from);
        let above = q[0] + right * (q[1] - q[0]);
        let below = q[2] + right * (q[3] - q[2]);
        let root = above + down * (below - above);
        let square = root * root;
        square * square
    }

    #[inline]
    fn corners(&self, corner: usize) -> [f32; 4] {
        let roots = &self.roots[corner..][..Self::AGE_NODES + 2];
        [roots[0], roots[1], roots[Self::AGE_NODES], roots[Self::AGE_NODES + 1]]
    }

    #[cold]
    #[inline(never)]
    fn fill(&mut self, row: usize, column: usize, mut compute: impl FnMut(f64, f64) -> [f64; N]) {
        for (row, column) in [(row, column), (row, column + 1), (row + 1, column), (row + 1, column + 1)] {
            let node = row * Self::AGE_NODES + column;
            if self.roots[node] != 0.0 {
                continue;
            }
            let values = compute(PE.value(row), Self::AGE.value(column));
            for (which, value) in values.into_iter().enumerate() {
                let root = libm::sqrt(libm::sqrt(value)) as f32;
                // 0 means not computed, so a value of 0 is stored as the least positive normal number, whose fourth
                // power is 2e-152.
                self.roots[which * PE_NODES * Self::AGE_NODES + node] = root.max(f32::MIN_POSITIVE);
            }
        }
    }
}

impl<const N: usize, const FIRST: u32> std::fmt::Debug for Grid<N, FIRST> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known = self.roots.iter().filter(|root| **root != 0.0).count();
        write!(f, "Grid({known} of {} nodes known)", self.roots.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_cover_all_values_and_small_pe_counts_are_nodes() {
        type Usual = Grid<1, 4096>;
        type Young = Grid<1, 1>;
        for (axis, max, nodes) in [
            (PE, PE_MAX, PE_NODES),
            (Usual::AGE, u32::MAX, Usual::AGE_NODES),
            (Young::AGE, u32::MAX, Young::AGE_NODES),
        ] {
            assert_eq!(axis.split(0), (0, 0.0));
            assert_eq!(axis.value(0), 0.0);
            let (last, part) = axis.split(max);
            assert_eq!(last + 2, nodes);
            assert!((0.0..1.0).contains(&part));
            for value in [1, 31, 33, 4095, 4097, 86_400, max] {
                let (node, part) = axis.split(value);
                let (low, high) = (axis.value(node), axis.value(node + 1));
                assert_eq!(low + part * (high - low), f64::from(value), "{value} between {low} and {high}");
            }
        }
        assert!((0..=32).all(|cycles| PE.split(cycles) == (cycles as usize, 0.0)));
    }

    #[test]
    fn the_table_holds_values_of_0_and_1_and_reaches_its_corners() {
        let mut grid = Grid::<2, 4096>::new();
        let compute = |_: f64, _: f64| [0.0, 1.0];
        for (pe, age) in [(0, 0), (u32::MAX, 0), (0, u32::MAX), (u32::MAX, u32::MAX), (5000, 3600)] {
            assert!(grid.at(0, pe, age, compute) < 1e-100);
            assert_eq!(grid.at(1, pe, age, compute), 1.0);
        }
    }
}
