//! What a plane needs beyond the pages of its LPNs. Each mechanism says what it needs; the one sum of that serves the
//! FTL, the spec check, the emergency flush and `avail_spare`.
//!
//! A host write waits when the host's stream has no page left and only the blocks kept from it are free. All other blocks
//! are then full, or open for an internal stream. An open block may hold garbage that nothing can collect before the
//! block is full. So GC can gain room if, beyond the valid pages, a plane has the blocks that are kept free, a block for
//! each stream that may be open, and one block's worth of garbage.

use super::WearLevelling;
use crate::base::geometry::DriveSpec;
use crate::base::geometry::Geometry;
use crate::demand_map::MapSpec;
use crate::spec::Spec;

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
    /// Those of a spec.
    pub fn of(spec: &Spec) -> Self {
        let d = &spec.drive;
        let planes = [d.channels, d.chips_per_channel, d.dies_per_chip, d.planes_per_die];
        let planes: u64 = planes.into_iter().map(u64::from).product();
        let pages_per_block = u64::from(d.pages_per_block);
        let page_bytes = u64::from(d.page_size_bytes);
        let pages = planes * u64::from(d.blocks_per_plane) * pages_per_block;
        let has_capacitor = spec.capacitor.capacitance_f > 0.0;
        Self {
            planes,
            pages_per_block,
            page_bytes,
            logical_pages: crate::base::geometry::logical_pages(pages, d.op),
            levels_wear: spec.ftl.wear_levelling == WearLevelling::Static,
            has_demand_map: matches!(spec.ftl.map, MapSpec::Demand { .. }),
            copybacks_max: spec.migration.copybacks_max().into(),
            has_combinations: spec.refresh.policy.partial().is_some(),
            flushed_pages: has_capacitor.then(|| spec.cache.size_bytes / page_bytes),
        }
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

    /// Those of a spec.
    pub fn of(spec: &Spec) -> Self {
        Self::new(&Demands::of(spec))
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

/// The least `drive.op` in steps of 0.001 at which [`waf_uniform_fifo`] of a spec's drive is at most `waf_max`; `None` where
/// none up to 100 is.
pub fn op_for_waf(spec: &Spec, waf_max: f64) -> Option<f64> {
    let blocks_per_plane = u64::from(spec.drive.blocks_per_plane);
    least_op(spec, |needs| {
        waf_uniform_fifo(needs.spare_share(blocks_per_plane)).is_some_and(|waf| waf <= waf_max)
    })
}

/// A drive that is scaled to a workload by [`fit_to_writes`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    /// `drive.blocks_per_plane`.
    pub blocks_per_plane: u32,
    /// `drive.op`.
    pub op: f64,
    /// Raw less logical bytes.
    pub spare_bytes: u64,
}

/// The largest drive of no more blocks a plane than a spec's, and with the same effective over-provisioning
/// ([`BlockNeeds::spare_share`], at least), whose spare bytes so many bytes are `times` times as much as. `None` where there is
/// no such drive: then too little is written.
pub fn fit_to_writes(spec: &Spec, bytes: u64, times: f64) -> Option<Fitted> {
    let share = BlockNeeds::of(spec).spare_share(spec.drive.blocks_per_plane.into());
    let spare_bytes = |blocks_per_plane: u32, op: f64| {
        let drive = DriveSpec { blocks_per_plane, op, ..spec.drive.clone() };
        let geometry = Geometry::new(&drive);
        geometry.raw_bytes() - geometry.logical_bytes()
    };
    let is_enough = |fitted: &Fitted| fitted.spare_bytes as f64 * times <= bytes as f64;
    let (blocks_per_plane, op) = (spec.drive.blocks_per_plane, spec.drive.op);
    let whole = Fitted { blocks_per_plane, op, spare_bytes: spare_bytes(blocks_per_plane, op) };
    if is_enough(&whole) {
        return Some(whole);
    }
    let with = |blocks_per_plane: u32| {
        let mut scaled = spec.clone();
        scaled.drive.blocks_per_plane = blocks_per_plane;
        let blocks = u64::from(blocks_per_plane);
        let op = least_op(&scaled, |needs| needs.fit(blocks) && needs.spare_share(blocks) >= share)?;
        let fitted = Fitted { blocks_per_plane, op, spare_bytes: spare_bytes(blocks_per_plane, op) };
        is_enough(&fitted).then_some(fitted)
    };
    // The fewer blocks, the fewer spare bytes; and of too few no op makes a drive.
    (1..whole.blocks_per_plane).rev().find_map(with)
}

/// The least `drive.op` in steps of 0.001 at which a drive has pages for the host and needs that are `enough`; `None` where none
/// up to 100 is.
fn least_op(spec: &Spec, enough: impl Fn(&BlockNeeds) -> bool) -> Option<f64> {
    const STEPS_MAX: u64 = 100_000;
    let demands = Demands::of(spec);
    let blocks_per_plane = u64::from(spec.drive.blocks_per_plane);
    let pages = demands.planes * blocks_per_plane * demands.pages_per_block;
    let op = |step: u64| step as f64 / 1e3;
    let is_enough = |step: u64| {
        let needs = BlockNeeds::new(&Demands {
            logical_pages: crate::base::geometry::logical_pages(pages, op(step)),
            ..demands
        });
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

    /// By hand: planes of 4 MiB and 128 blocks of 32 KiB, GC alone, which needs three.
    #[test]
    fn a_drive_is_fitted_to_what_is_written() {
        let text = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 2\n\
                    blocks_per_plane = 128\npages_per_block = 8\npage_size = '4KiB'\nop = 0.25\n";
        let spec = crate::spec::load(text, "test", std::path::Path::new("."), &[]).unwrap().spec;
        let share = |blocks: u32, op: f64| {
            let mut spec = spec.clone();
            (spec.drive.blocks_per_plane, spec.drive.op) = (blocks, op);
            BlockNeeds::of(&spec).spare_share(blocks.into())
        };
        let spare = |blocks: u32, op: f64| {
            let pages = 2 * u64::from(blocks) * 8;
            (pages - (pages as f64 / (1.0 + op)) as u64) * 4096
        };
        // 409 or 410 of 2048 pages are spare: 1.6 MiB.
        let whole = Fitted { blocks_per_plane: 128, op: 0.25, spare_bytes: spare(128, 0.25) };
        assert_eq!(fit_to_writes(&spec, 5 * whole.spare_bytes, 5.0), Some(whole));
        for bytes in [5 * whole.spare_bytes - 1, 4 << 20, 2 << 20] {
            let fitted = fit_to_writes(&spec, bytes, 5.0).unwrap();
            let Fitted { blocks_per_plane: blocks, op, spare_bytes } = fitted;
            assert_eq!(spare_bytes, spare(blocks, op));
            assert!(5 * spare_bytes <= bytes && blocks < 128 && op > 0.25, "{fitted:?} for {bytes}");
            assert!(
                share(blocks, op) >= share(128, 0.25) && share(blocks, op - 0.001) < share(128, 0.25),
                "{fitted:?}"
            );
        }
        // Not even the smallest drive has so little to spare: three blocks a plane.
        assert_eq!(fit_to_writes(&spec, 5 * 2 * 3 * 32768 - 1, 5.0), None);
    }
}
