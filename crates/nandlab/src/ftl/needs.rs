//! The superblocks that a lane needs beyond the units of its LPNs, by mechanism. The FTL, the spec check, the emergency
//! flush and `avail_spare` all use the same needs.
//!
//! A host write waits when the host's stream has no unit left and the only free superblocks are those kept from the
//! host. All other superblocks are then full, or open for an internal stream. An open superblock may hold garbage,
//! which cannot be collected before the superblock is full. With a shared first superblock a write also waits while the
//! units left in the open superblock are promised to GC's job; this ends with the job. So GC can gain units if, beyond
//! the valid units, a lane has the superblocks that are kept free, a superblock for each internal stream that may have
//! an open superblock, and one superblock's worth of garbage.
//!
//! All other garbage of the lane is then in full superblocks, and with at least one superblock's worth of it every job
//! of GC gains units, until a superblock is free. The jobs of static wear levelling, refresh and reclaim take the free
//! superblock of GC. `crates/nandlab/tests/drive/space.rs` constructs the state in which a write waits for each
//! mechanism, and shows that with one superblock fewer no write can proceed. For the static part of an SLC cache it is one
//! fewer than without the valid units in this part, on which the need does not count ([`StreamSpec::slc`]).

use super::streams::{StreamSpec, Writer};
use crate::base::bad_blocks::{BadBlocks, Planes};
use crate::base::geometry::logical_units;

/// The need in every lane: of one stream, or of all streams of one mechanism.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// The name of the mechanism in results.
    pub name: &'static str,
    /// The name of the mechanism in errors.
    pub what: &'static str,
    /// Superblocks that the streams of the mechanism may have open while the host waits.
    pub open: u64,
    /// Free superblocks that the host's stream leaves to the mechanism.
    pub free: u64,
    /// The largest number of valid units that the mechanism adds to those of the host.
    pub valid_units: u64,
}

impl Need {
    /// The need of a mechanism named `name` in results and `what` in errors, for `open` open superblocks and `free`
    /// free ones.
    pub fn new(name: &'static str, what: &'static str, open: u64, free: u64) -> Self {
        Self { name, what, open, free, valid_units: 0 }
    }
}

/// The values of a spec from which the needs follow.
#[derive(Clone, Debug)]
pub struct Demands {
    /// Lanes of the drive.
    pub lanes: u64,
    /// Blocks of a superblock.
    pub blocks_per_superblock: u64,
    /// Share of the blocks that are bad from the factory.
    pub bad_blocks: f64,
    /// The seed from which the bad blocks are drawn.
    pub seed: u64,
    /// Units of a superblock.
    pub units_per_superblock: u64,
    /// Units of a superblock to which an emergency flush writes.
    pub units_per_flush_superblock: u64,
    /// Bytes of a unit.
    pub unit_bytes: u64,
    /// Units of a programming unit.
    pub units_per_program: u64,
    /// Logical units of the drive.
    pub logical_units: u64,
    /// The streams of the drive, as the mechanisms declare them.
    pub streams: Vec<StreamSpec>,
    /// Reclaim groups. All units that an emergency flush has to write may be of one of them.
    pub groups: u64,
    /// Units of the write cache, or of the write buffer, if a capacitor provides the energy to flush them at power
    /// loss.
    pub flushed_units: Option<u64>,
}

impl Demands {
    /// The values of the same drive with `blocks_per_plane` blocks per plane and over-provisioning `op`.
    pub fn at(&self, blocks_per_plane: u64, op: f64) -> Self {
        let units = self.lanes * blocks_per_plane * self.units_per_superblock;
        Self { logical_units: logical_units(units, op), ..self.clone() }
    }

    /// The bad blocks of the drive with `blocks_per_plane` blocks per plane.
    pub fn bad(&self, blocks_per_plane: u64) -> BadBlocks {
        let planes = Planes {
            count: (self.lanes * self.blocks_per_superblock) as u32,
            blocks: blocks_per_plane as u32,
            per_lane: self.blocks_per_superblock as u32,
        };
        BadBlocks::draw(self.bad_blocks, self.seed, planes)
    }
}

/// The needs of every mechanism in a lane: the sum over the declared streams, and the need of the emergency flush.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuperblockNeeds {
    /// By mechanism, in the order of the declarations; the emergency flush is the last.
    by: Vec<Need>,
    /// Free superblocks that the streams of background jobs need.
    job: u64,
    /// The largest number of valid units of the host.
    pub host_units: u64,
    /// Units of a superblock.
    pub units_per_superblock: u64,
    /// Units of a programming unit.
    pub units_per_program: u64,
}

/// The garbage, in superblocks, that GC always needs in order to gain units.
pub const GAIN_SUPERBLOCKS: u64 = 1;

impl SuperblockNeeds {
    /// The needs that follow from `d`.
    pub fn new(d: &Demands) -> Self {
        let mut by: Vec<Need> = Vec::new();
        let mut job = 0;
        for stream in &d.streams {
            let valid_units = stream.lpns.valid_units(d.logical_units).div_ceil(d.lanes);
            let need = Need { valid_units, ..stream.need };
            job += if stream.writer == Writer::Job { need.free } else { 0 };
            match by.iter_mut().find(|sum| sum.name == need.name) {
                Some(sum) => {
                    sum.open += need.open;
                    sum.free += need.free;
                    sum.valid_units += need.valid_units;
                }
                None => by.push(need),
            }
        }
        // The emergency flush needs free superblocks for the units of the write cache, spread over the lanes of a reclaim
        // group, and one more in place of the superblock that the job under way has taken when power fails. A cache never
        // holds more units than the drive has. Each placement handle beyond the first may leave one superblock of a lane
        // part-filled; and each place one program. The flush writes no class of `ftl.streams` apart.
        let is_host =
            |stream: &&StreamSpec| matches!(stream.writer, Writer::Host { .. }) && stream.class == 0;
        let handles = d.streams.iter().filter(is_host).count() as u64;
        let padding = (handles * d.groups).saturating_sub(1) * (d.units_per_program - 1);
        let flushed_units = d.flushed_units.map(|units| units.min(d.logical_units) + padding);
        let one_of_each_lane = d.lanes / d.groups * d.units_per_flush_superblock;
        let flush_superblocks =
            flushed_units.map_or(0, |units| units.div_ceil(one_of_each_lane) + handles.max(1));
        by.push(Need::new("flush", "the emergency flush", 0, flush_superblocks));
        Self {
            by,
            job,
            host_units: d.logical_units.div_ceil(d.lanes),
            units_per_superblock: d.units_per_superblock,
            units_per_program: d.units_per_program,
        }
    }

    /// The needs by mechanism, in the order of the declarations.
    pub fn all(&self) -> &[Need] {
        &self.by
    }

    /// The need of the mechanism that results call `name`; without a stream of it the need is 0.
    pub fn of(&self, name: &str) -> Need {
        self.by.iter().find(|need| need.name == name).copied().unwrap_or_default()
    }

    /// Superblocks that internal streams may have open while the host waits.
    pub fn open(&self) -> u64 {
        self.by.iter().map(|need| need.open).sum()
    }

    /// Free superblocks that the host's stream leaves to the mechanisms.
    pub fn free(&self) -> u64 {
        self.by.iter().map(|need| need.free).sum()
    }

    /// Free superblocks that the job under way may take: one for units moved off-chip and, with copybacks, one for
    /// units copied back.
    pub fn job(&self) -> u64 {
        self.job
    }

    /// The largest number of valid units of a lane: those of the host and the translation pages.
    pub fn valid_units(&self) -> u64 {
        self.host_units + self.by.iter().map(|need| need.valid_units).sum::<u64>()
    }

    /// The room of a lane of `superblocks` superblocks for valid units and garbage: its units without those of the open
    /// and free superblocks that the mechanisms need.
    pub fn usable_units(&self, superblocks: u64) -> u64 {
        (superblocks * self.units_per_superblock)
            .saturating_sub((self.open() + self.free()) * self.units_per_superblock)
    }

    /// Effective over-provisioning of a lane of `superblocks` superblocks: usable units beyond the valid units, as a
    /// share of the valid units. Negative if the usable units are fewer than the valid units.
    pub fn spare_share(&self, superblocks: u64) -> f64 {
        let valid = self.valid_units().max(1) as f64;
        (self.usable_units(superblocks) as f64 - valid) / valid
    }

    /// [`SuperblockNeeds::spare_share`], mean of the lanes of a drive with `blocks_per_plane` blocks per plane, of
    /// which `bad` are bad.
    pub fn spare_share_mean(&self, blocks_per_plane: u64, bad: &BadBlocks) -> f64 {
        let of_lane = |missing: u32| Some(self.spare_share(blocks_per_plane - u64::from(missing)));
        bad.mean(of_lane).unwrap_or(0.0)
    }

    /// [`waf_uniform_fifo`], mean of the lanes of a drive as in [`SuperblockNeeds::spare_share_mean`], to which the
    /// host writes equally.
    pub fn waf_uniform_fifo(&self, blocks_per_plane: u64, bad: &BadBlocks) -> Option<f64> {
        bad.mean(|missing| waf_uniform_fifo(self.spare_share(blocks_per_plane - u64::from(missing))))
    }

    /// Superblocks that a lane needs beyond its valid units.
    pub fn superblocks(&self) -> u64 {
        self.open() + self.free() + GAIN_SUPERBLOCKS
    }

    /// Garbage, in units, that may be spread so thinly over the `superblocks` superblocks of a lane that no superblock
    /// has a programming unit's worth, without which emptying a superblock gains nothing. 0 if a program writes one
    /// unit.
    pub fn thin_units(&self, superblocks: u64) -> u64 {
        superblocks * (self.units_per_program - 1)
    }

    /// Whether a lane of `superblocks` superblocks has room for the valid units and all needs.
    pub fn fit(&self, superblocks: u64) -> bool {
        superblocks * self.units_per_superblock
            >= self.valid_units()
                + self.superblocks() * self.units_per_superblock
                + self.thin_units(superblocks)
    }
}

/// The WAF of uniform random writes under FIFO cleaning with effective over-provisioning `spare_share`. `None` if
/// `spare_share` is 0 or negative, because the WAF then has no bound.
///
/// With a = 1 + `spare_share` the WAF is a / (a + W(-a e^-a)), where W is the Lambert function (L. Xiang and B.
/// Kurkoski, ICNC 2012; see `gc.victim = "fifo"`). It is computed as 1 / y, where y is the share of garbage in a
/// victim, from 1 - y = e^(-a y).
pub fn waf_uniform_fifo(spare_share: f64) -> Option<f64> {
    if spare_share <= 0.0 {
        return None;
    }
    let a = 1.0 + spare_share;
    let is_below = |y: f64| -f64::exp_m1(-a * y) > y;
    // The lower end is at most the solution, because e^-x <= 1 - x + x^2 / 2.
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

/// The least over-provisioning, in steps of 0.001, at which [`waf_uniform_fifo`] of a drive with `blocks_per_plane`
/// blocks per plane is at most `waf_max`. `None` if no over-provisioning up to 100 is enough.
pub fn op_for(demands: &Demands, blocks_per_plane: u64, waf_max: f64) -> Option<f64> {
    let bad = demands.bad(blocks_per_plane);
    least_op(demands, blocks_per_plane, |needs| {
        needs.waf_uniform_fifo(blocks_per_plane, &bad).is_some_and(|waf| waf <= waf_max)
    })
}

/// A drive scaled to a workload by [`fit`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    /// `drive.blocks_per_plane`.
    pub blocks_per_plane: u32,
    /// `drive.op`.
    pub op: f64,
    /// Spare bytes: raw bytes, without those of bad blocks, less logical bytes.
    pub spare_bytes: u64,
}

/// Scales a drive to a workload of `bytes` bytes: the largest drive whose spare bytes are at most `bytes / times`. The
/// drive has at most `blocks_per_plane` blocks per plane, and at least the effective over-provisioning of the given
/// drive ([`SuperblockNeeds::spare_share_mean`]). `None` if `bytes` is too small for any such drive.
pub fn fit(demands: &Demands, blocks_per_plane: u32, op: f64, bytes: u64, times: f64) -> Option<Fitted> {
    let given = u64::from(blocks_per_plane);
    let share = SuperblockNeeds::new(demands).spare_share_mean(given, &demands.bad(given));
    let fitted = |blocks_per_plane: u32, op: f64| {
        let superblocks = demands.lanes * u64::from(blocks_per_plane);
        let bad = demands.bad(blocks_per_plane.into()).missing;
        let logical = logical_units(superblocks * demands.units_per_superblock, op);
        let spare_units = ((superblocks - bad) * demands.units_per_superblock).saturating_sub(logical);
        let spare_bytes = spare_units * demands.unit_bytes;
        let fitted = Fitted { blocks_per_plane, op, spare_bytes };
        (spare_bytes as f64 * times <= bytes as f64).then_some(fitted)
    };
    let smaller = |blocks_per_plane: u32| {
        let superblocks = u64::from(blocks_per_plane);
        let bad = demands.bad(superblocks);
        let fewest = superblocks - u64::from(bad.most_missing);
        let is_enough =
            |needs: &SuperblockNeeds| needs.fit(fewest) && needs.spare_share_mean(superblocks, &bad) >= share;
        fitted(blocks_per_plane, least_op(demands, superblocks, is_enough)?)
    };
    // Fewer blocks have fewer spare bytes. With too few blocks no over-provisioning meets the needs.
    fitted(blocks_per_plane, op).or_else(|| (1..blocks_per_plane).rev().find_map(smaller))
}

/// The least over-provisioning, in steps of 0.001, at which a drive with `blocks_per_plane` blocks per plane has units
/// for the host and its needs meet the condition `enough`. `None` if no over-provisioning up to 100 meets it.
fn least_op(
    demands: &Demands,
    blocks_per_plane: u64,
    enough: impl Fn(&SuperblockNeeds) -> bool,
) -> Option<f64> {
    const STEPS_MAX: u64 = 100_000;
    let op = |step: u64| step as f64 / 1e3;
    let is_enough = |step: u64| {
        let needs = SuperblockNeeds::new(&demands.at(blocks_per_plane, op(step)));
        needs.host_units > 0 && enough(&needs)
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

    /// The expected values are a / (a + W(-a e^-a)), computed with 40 digits, and W by Newton's method.
    #[test]
    fn waf_of_fifo_agrees_with_the_closed_form() {
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
