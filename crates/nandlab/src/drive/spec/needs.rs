//! The superblocks that the mechanisms of a spec need in each lane.

use super::Spec;
use super::streams::StreamSettings;
use crate::demand_map::MapSpec;
use crate::flash::ShapeId;
use crate::ftl::WearLevelling;
use crate::ftl::needs::{Demands, Fitted, SuperblockNeeds, fit, op_for};
use crate::ftl::streams::StreamSpec;

/// The streams of a spec's drive.
pub fn streams(spec: &Spec) -> Vec<StreamSpec> {
    let geometry = spec.geometry();
    let settings = StreamSettings {
        handles: spec.placement.handles,
        persistent: spec.placement.persistent_bits(),
        shares_first_superblock: spec.migration.shares_first_block(),
        levels_wear: spec.ftl.wear_levelling == WearLevelling::Static,
        has_demand_map: matches!(spec.ftl.map, MapSpec::Demand { .. }),
        unit_bytes: geometry.unit_bytes,
        copybacks_max: spec.migration.policy.copybacks_max(),
        has_combinations: spec.refresh.policy.partial().is_some(),
        slc: spec.has_slc_mode().then(|| spec.slc.fixed(&spec.drive, &geometry)),
        added: spec.ftl.streams.added,
    };
    settings.streams()
}

/// The properties of a spec on which the needs depend.
pub fn demands(spec: &Spec) -> Demands {
    let geometry = spec.geometry();
    let shapes = spec.shapes(&geometry);
    let shape = shapes.first();
    let unit_bytes = u64::from(geometry.unit_bytes);
    let has_capacitor = spec.capacitor.capacitance_f > 0.0;
    Demands {
        lanes: geometry.lanes.into(),
        blocks_per_superblock: geometry.blocks_per_superblock().into(),
        bad_blocks: spec.drive.bad_blocks,
        seed: spec.seed,
        units_per_superblock: shape.units.into(),
        units_per_flush_superblock: if spec.flushes_in_slc_mode() {
            shapes[ShapeId::SLC].units.into()
        } else {
            shape.units.into()
        },
        unit_bytes,
        units_per_program: shape.units_per_program.into(),
        logical_units: geometry.logical_units.into(),
        streams: streams(spec),
        groups: spec.placement.groups.into(),
        flushed_units: has_capacitor.then(|| (spec.cache.size_bytes + spec.ftl.buffer_bytes) / unit_bytes),
    }
}

/// The needs of every mechanism of a spec, per lane.
pub fn superblock_needs(spec: &Spec) -> SuperblockNeeds {
    SuperblockNeeds::new(&demands(spec))
}

/// The least `drive.op`, in steps of 0.001, at which uniform random writes to a spec's drive have a write amplification
/// of at most `waf_max` under FIFO cleaning; `None` if no op up to 100 is enough.
pub fn op_for_waf(spec: &Spec, waf_max: f64) -> Option<f64> {
    op_for(&demands(spec), spec.drive.blocks_per_plane.into(), waf_max)
}

/// A spec's drive scaled by [`fit`], so that `bytes` are at least `times` times its spare bytes.
pub fn fit_to_writes(spec: &Spec, bytes: u64, times: f64) -> Option<Fitted> {
    fit(&demands(spec), spec.drive.blocks_per_plane, spec.drive.op, bytes, times)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two planes of 128 blocks of 32 KiB, which is 4 MiB per plane. GC alone needs three blocks of a plane.
    #[test]
    fn a_drive_is_fitted_to_the_bytes_written() {
        let text = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 2\n\
                    blocks_per_plane = 128\npages_per_block = 8\npage_size = '4KiB'\nop = 0.25\n";
        let spec = super::super::load(text, "test", std::path::Path::new("."), &[]).unwrap().spec;
        let share = |blocks: u32, op: f64| {
            let mut spec = spec.clone();
            (spec.drive.blocks_per_plane, spec.drive.op) = (blocks, op);
            superblock_needs(&spec).spare_share(blocks.into())
        };
        let spare = |blocks: u32, op: f64| {
            let pages = 2 * u64::from(blocks) * 8;
            (pages - (pages as f64 / (1.0 + op)) as u64) * 4096
        };
        // Of 2048 pages 1638 are logical (2048 / 1.25) and 410 spare, which is 1.6 MiB.
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
        // Even the smallest drive has three spare blocks in each of the two planes; `bytes` is one less than five
        // times as much.
        assert_eq!(fit_to_writes(&spec, 5 * 2 * 3 * 32768 - 1, 5.0), None);
    }

    /// Eight planes of 128 blocks, of which one in twenty is bad: spare bytes and the WAF are those of the drawn
    /// blocks. With op = 0.4 the drive has 8,192 / 1.4 = 5,851 logical pages.
    #[test]
    fn a_fitted_drive_and_the_op_for_a_waf_allow_for_bad_blocks() {
        let text = "seed = 3\n[drive]\nchannels = 2\nchips_per_channel = 2\ndies_per_chip = 1\nplanes_per_die = 2\n\
                    blocks_per_plane = 128\npages_per_block = 8\npage_size = '4KiB'\nop = 0.4\nbad_blocks = 0.05\n";
        let spec = super::super::load(text, "test", std::path::Path::new("."), &[]).unwrap().spec;
        let at = |blocks: u32, op: f64| {
            let mut spec = spec.clone();
            (spec.drive.blocks_per_plane, spec.drive.op) = (blocks, op);
            let geometry = spec.geometry();
            let spare = u64::from(geometry.good_units() - geometry.logical_units) * 4096;
            (superblock_needs(&spec), geometry, spare)
        };
        let share = |blocks: u32, op: f64| {
            let (needs, geometry, _) = at(blocks, op);
            needs.spare_share_mean(blocks.into(), &geometry.bad)
        };
        let (_, _, spare) = at(128, 0.4);
        assert!(spare < (8_192 - 5_851) * 4096, "no block is bad");
        for bytes in [5 * spare, 5 * spare - 1, 3 * spare] {
            let fitted = fit_to_writes(&spec, bytes, 5.0).unwrap();
            let (needs, geometry, spare) = at(fitted.blocks_per_plane, fitted.op);
            assert_eq!(fitted.spare_bytes, spare);
            assert!(
                5 * spare <= bytes && needs.fit(geometry.fewest_superblocks().into()),
                "{fitted:?} for {bytes}"
            );
            assert!(share(fitted.blocks_per_plane, fitted.op) >= share(128, 0.4), "{fitted:?}");
        }
        let waf = |op: f64| {
            let (needs, geometry, _) = at(128, op);
            needs.waf_uniform_fifo(128, &geometry.bad).unwrap_or(f64::INFINITY)
        };
        let op = op_for_waf(&spec, 5.0).unwrap();
        assert!(waf(op) <= 5.0 && waf(op - 0.001) > 5.0, "{} at {op}", waf(op));
    }
}
