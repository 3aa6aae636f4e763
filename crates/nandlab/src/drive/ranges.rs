//! Placements by address: `placement.ranges`.

use crate::ftl::placement::PlacementRange;

/// Ranges of bytes that do not overlap, in ascending order.
#[derive(Debug, Default)]
pub(super) struct Ranges(Box<[Range]>);

#[derive(Clone, Copy, Debug)]
struct Range {
    from: u64,
    to: u64,
    placement: u16,
}

impl Ranges {
    pub(super) fn new(ranges: &[PlacementRange], logical_bytes: u64) -> Self {
        let bytes = |range: &PlacementRange| Range {
            from: range.from.bytes(logical_bytes),
            to: range.to.bytes(logical_bytes),
            placement: range.placement,
        };
        let mut ranges: Box<[Range]> = ranges.iter().map(bytes).collect();
        ranges.sort_unstable_by_key(|range| range.from);
        Self(ranges)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The placement of a write whose first byte is at `offset`; 0 outside the ranges.
    pub(super) fn find(&self, offset: u64) -> u16 {
        let after = self.0.partition_point(|range| range.from <= offset);
        after
            .checked_sub(1)
            .map(|at| self.0[at])
            .filter(|range| offset < range.to)
            .map_or(0, |range| range.placement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandlab_base::clients::Bound;

    #[test]
    fn a_write_belongs_to_the_range_of_its_first_byte() {
        let range = |from, to, placement| PlacementRange { from, to, placement };
        let ranges = [
            range(Bound::Share(0.5), Bound::Share(0.75), 2),
            range(Bound::Bytes(0), Bound::Bytes(100), 1),
            range(Bound::Bytes(100), Bound::Bytes(200), 3),
        ];
        let ranges = Ranges::new(&ranges, 1000);
        let found = [0, 99, 100, 199, 200, 499, 500, 749, 750, u64::MAX].map(|offset| ranges.find(offset));
        assert_eq!(found, [1, 1, 3, 3, 0, 0, 2, 2, 0, 0]);
        assert_eq!(Ranges::default().find(0), 0);
    }
}
