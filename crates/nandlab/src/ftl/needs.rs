//! What a plane needs beyond the pages of its LPNs, mechanism by mechanism. The one sum of that serves the FTL, the spec
//! check, the emergency flush and `avail_spare`.
//!
//! A host write waits when the host's stream has no page left and only the blocks kept from it are free. All other blocks
//! are then full, or open for an internal stream. An open block may hold garbage that nothing can collect before the
//! block is full. So GC can gain room if, beyond the valid pages, a plane has the blocks that are kept free, a block for
//! each stream that may be open, and one block's worth of garbage.

use crate::base::geometry::logical_pages;

/// Bytes of an entry of a translation page: a physical page number.
pub const MAP_ENTRY_BYTES: u64 = 4;

/// What one mechanism needs of every plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// The mechanism, as errors name it.
    pub what: &'static str,
    /// Blocks that its streams may be filling while the host waits.
    pub open: u64,
    /// Free blocks that the host's stream leaves to it.
    pub free: u64,
    /// Valid pages that it adds to those of the host, at most.
    pub valid_pages: u64,
}

/// What of a spec decides it: the spec check tries other numbers of blocks and pages.
#[derive(Clone, Copy, Debug)]
pub struct Demands {
    /// Planes of the drive.
    pub planes: u64,
    /// Pages of a block.
    pub pages_per_block: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Logical pages of the drive.
    pub logical_pages: u64,
    /// Static wear levelling is on.
    pub levels_wear: bool,
    /// The map is in flash.
    pub has_demand_map: bool,
    /// Most copybacks in a row.
    pub copybacks_max: u64,
    /// Partial refresh writes combination pages.
    pub has_combinations: bool,
    /// Pages of the write cache, if a capacitor flushes them when power fails.
    pub flushed_pages: Option<u64>,
}

impl Demands {
    /// Those of the same drive with so many blocks a plane and this over-provisioning.
    pub fn at(&self, blocks_per_plane: u64, op: f64) -> Self {
        let pages = self.planes * blocks_per_plane * self.pages_per_block;
        Self { logical_pages: logical_pages(pages, op), ..*self }
    }
}

/// The needs of every mechanism, by plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockNeeds {
    /// GC: open for what it moves; free for the job under way.
    pub gc: Need,
    /// Static wear levelling: open for what it moves. Its job takes the block that GC's would.
    pub wear: Need,
    /// The demand map: open for translation pages, free so that write-backs go on while the host waits, and the
    /// translation pages themselves.
    pub mapping: Need,
    /// Copybacks: open for every number in a row, free so that a job may open one beside what it moves off-chip.
    pub copyback: Need,
    /// Partial refresh: open and free for combination pages.
    pub combination: Need,
    /// The emergency flush: free, room for the write cache spread over the planes, and what the job under way has taken of
    /// it when power fails.
    pub flush: Need,
    /// Valid pages of the host's, at most.
    pub host_pages: u64,
    /// Pages of a block.
    pub pages_per_block: u64,
}

/// Blocks' worth of garbage that there is for GC to gain from, if all the rest is used up.
pub const GAIN_BLOCKS: u64 = 1;

impl BlockNeeds {
    /// The needs that follow.
    pub fn new(d: &Demands) -> Self {
        let need = |what, is_there: bool, open, free| {
            let on = u64::from(is_there);
            Need { what, open: on * open, free: on * free, valid_pages: 0 }
        };
        let map_pages = d.logical_pages.div_ceil(d.page_bytes / MAP_ENTRY_BYTES).div_ceil(d.planes);
        // A cache holds no more than there is.
        let flushed_pages = d.flushed_pages.map(|pages| pages.min(d.logical_pages));
        let row_pages = d.planes * d.pages_per_block;
        let flush_blocks = flushed_pages.map_or(0, |pages| pages.div_ceil(row_pages) + 1);
        Self {
            gc: need("GC", true, 1, 1),
            wear: need("static wear levelling", d.levels_wear, 1, 0),
            mapping: Need {
                valid_pages: if d.has_demand_map { map_pages } else { 0 },
                ..need("translation pages", d.has_demand_map, 1, 1)
            },
            copyback: need("copybacks", d.copybacks_max > 0, d.copybacks_max, 1),
            combination: need("combination pages of partial refresh", d.has_combinations, 1, 1),
            flush: need("what is dirty at power loss", flush_blocks > 0, 0, flush_blocks),
            host_pages: d.logical_pages.div_ceil(d.planes),
            pages_per_block: d.pages_per_block,
        }
    }

    /// The names of the mechanisms in the output, in the order of [`BlockNeeds::all`].
    pub const NAMES: [&str; 6] = ["gc", "wear", "mapping", "copyback", "combination", "flush"];

    /// Every mechanism's.
    pub fn all(&self) -> [Need; 6] {
        [self.gc, self.wear, self.mapping, self.copyback, self.combination, self.flush]
    }

    /// Blocks that internal streams may be filling while the host waits.
    pub fn open(&self) -> u64 {
        self.all().iter().map(|need| need.open).sum()
    }

    /// Free blocks that the host's stream leaves to others.
    pub fn free(&self) -> u64 {
        self.all().iter().map(|need| need.free).sum()
    }

    /// Free blocks that the job under way may take: one for what it moves off-chip, one for what it copies back.
    pub fn job(&self) -> u64 {
        self.gc.free + self.copyback.free
    }

    /// Valid pages of a plane, at most: the host's and the translation pages.
    pub fn valid_pages(&self) -> u64 {
        self.host_pages + self.all().iter().map(|need| need.valid_pages).sum::<u64>()
    }

    /// Pages of a plane that the streams of the host and of GC share, all needs met: what over-provisioning is left.
    pub fn usable_pages(&self, blocks_per_plane: u64) -> u64 {
        (blocks_per_plane * self.pages_per_block)
            .saturating_sub((self.open() + self.free()) * self.pages_per_block)
    }

    /// Effective over-provisioning of a plane of so many blocks: usable pages beyond the valid ones, as a share of these.
    /// Less than 0 where the needs leave too few.
    pub fn spare_share(&self, blocks_per_plane: u64) -> f64 {
        let valid = self.valid_pages().max(1) as f64;
        (self.usable_pages(blocks_per_plane) as f64 - valid) / valid
    }

    /// Blocks that a plane needs beyond its valid pages.
    pub fn blocks(&self) -> u64 {
        self.open() + self.free() + GAIN_BLOCKS
    }

    /// Whether a plane of so many blocks has all that.
    pub fn fit(&self, blocks_per_plane: u64) -> bool {
        blocks_per_plane * self.pages_per_block >= self.valid_pages() + self.blocks() * self.pages_per_block
    }
}

/// Write amplification of uniform random writes under FIFO cleaning, of so much effective over-provisioning: with
/// a = 1 + `spare_share` it is a / (a + W(-a e^-a)), W being the Lambert function (L. Xiang and B. Kurkoski, ICNC 2012; see
/// `gc.victim = "fifo"`). `None` without over-provisioning, where it has no bound.
///
/// It is 1 / y, y being the share of a victim that is garbage: 1 - y = e^(-a y).
pub fn waf_uniform_fifo(spare_share: f64) -> Option<f64> {
    if spare_share <= 0.0 {
        return None;
    }
    let a = 1.0 + spare_share;
    let is_below = |y: f64| -f64::exp_m1(-a * y) > y;
    // e^-x <= 1 - x + x^2 / 2 makes this end the lower one.
    let (mut low, mut high) = (2.0 * spare_share / (a * a), 1.0);
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(1.0 / high)
}

/// The least over-provisioning in steps of 0.001 at which [`waf_uniform_fifo`] of a drive with so many blocks a plane is at most
/// `waf_max`; `None` where none up to 100 is.
pub fn op_for(demands: &Demands, blocks_per_plane: u64, waf_max: f64) -> Option<f64> {
    least_op(demands, blocks_per_plane, |needs| {
        waf_uniform_fifo(needs.spare_share(blocks_per_plane)).is_some_and(|waf| waf <= waf_max)
    })
}

/// A drive that is scaled to a workload by [`fit`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    /// `drive.blocks_per_plane`.
    pub blocks_per_plane: u32,
    /// `drive.op`.
    pub op: f64,
    /// Raw less logical bytes.
    pub spare_bytes: u64,
}

/// The largest drive of no more blocks a plane than this one, and with the same effective over-provisioning
/// ([`BlockNeeds::spare_share`], at least), whose spare bytes so many bytes are `times` times as much as. `None` where there is
/// no such drive: then too little is written.
pub fn fit(demands: &Demands, blocks_per_plane: u32, op: f64, bytes: u64, times: f64) -> Option<Fitted> {
    let share = BlockNeeds::new(demands).spare_share(blocks_per_plane.into());
    let fitted = |blocks_per_plane: u32, op: f64| {
        let pages = demands.planes * u64::from(blocks_per_plane) * demands.pages_per_block;
        let spare_bytes = (pages - logical_pages(pages, op)) * demands.page_bytes;
        let fitted = Fitted { blocks_per_plane, op, spare_bytes };
        (spare_bytes as f64 * times <= bytes as f64).then_some(fitted)
    };
    let smaller = |blocks_per_plane: u32| {
        let blocks = u64::from(blocks_per_plane);
        let is_enough = |needs: &BlockNeeds| needs.fit(blocks) && needs.spare_share(blocks) >= share;
        fitted(blocks_per_plane, least_op(demands, blocks, is_enough)?)
    };
    // The fewer blocks, the fewer spare bytes; and of too few no op makes a drive.
    fitted(blocks_per_plane, op).or_else(|| (1..blocks_per_plane).rev().find_map(smaller))
}

/// The least over-provisioning in steps of 0.001 at which a drive with so many blocks a plane has pages for the host and needs that
/// are `enough`; `None` where none up to 100 is.
fn least_op(demands: &Demands, blocks_per_plane: u64, enough: impl Fn(&BlockNeeds) -> bool) -> Option<f64> {
    const STEPS_MAX: u64 = 100_000;
    let op = |step: u64| step as f64 / 1e3;
    let is_enough = |step: u64| {
        let needs = BlockNeeds::new(&demands.at(blocks_per_plane, op(step)));
        needs.host_pages > 0 && enough(&needs)
    };
    if !is_enough(STEPS_MAX) {
        return None;
    }
    let (mut low, mut high) = (0, STEPS_MAX);
    while low < high {
        let middle = u64::midpoint(low, high);
        if is_enough(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(op(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of a / (a + W(-a e^-a)) with 40 digits, W by Newton's method.
    #[test]
    fn fifo_amplifies_as_the_closed_form_says() {
        let known = [
            (0.001, 500.666_777_748_2),
            (0.01, 50.667_774_824_46),
            (0.07, 7.817_159_681_236),
            (0.28, 2.481_360_987_047),
            (1.0, 1.255_000_974_916),
            (3.0, 1.020_228_479_461),
        ];
        for (spare_share, waf) in known {
            let found = waf_uniform_fifo(spare_share).unwrap();
            assert!((found / waf - 1.0).abs() < 1e-9, "{spare_share}: {found}, not {waf}");
        }
        assert_eq!(waf_uniform_fifo(0.0), None);
        assert_eq!(waf_uniform_fifo(-0.1), None);
    }
}
