//! The section `[slc]` of the spec.

use crate::base::geometry::{Cell, DriveSpec, Geometry, KindTimes, ProgramOrder};
use crate::base::units::Span;
use crate::flash::{Ageing, CellTimes, EccSpec, ProgramTime, Shape};
use crate::ftl::SlcShare;
use crate::sched::TimingSpec;
use crate::spec::{
    ANY_TIME, Check, Choices, FromVal, OPERATION, Rule, SHARE, Section, Val, ValueKind, choices, int, key,
    num, plain, section,
};

section! {
    /// `[slc]`: the SLC cache.
    #[derive(Clone, Debug, PartialEq)]
    pub struct SlcSpec {
        /// Bytes in SLC mode of the static part, rounded up to whole superblocks in every lane.
        pub static_bytes: u64 = key(
            "slc.static",
            ValueKind::Size { min: 0, max: 1 << 50, step: 1 },
            "\"0MiB\"",
            "bytes of the SLC cache that the drive has whatever it is filled with, out of its spare blocks (drive.op)",
        ),
        /// Share of the dynamic part.
        pub dynamic: f64 = key(
            "slc.dynamic",
            SHARE,
            "0.0",
            "share of the free blocks that the SLC cache may take beyond slc.static",
        ),
        /// What a host write does when the cache is full.
        pub when_full: WhenFull = key(
            "slc.when_full",
            ValueKind::Slot(WhenFull::CHOICES),
            "\"direct\"",
            "what a host write does when the SLC cache is full",
        ),
        /// Time without outstanding requests after which folding begins, if the drive counts as idle.
        pub idle_after_ns: Span = key(
            "slc.idle_after",
            ANY_TIME,
            "\"10ms\"",
            "time without outstanding requests after which folding begins, not before gc.idle_after",
        )
        .note("assumption: reviews of drives see the cache empty within seconds"),
        /// Share of the superblocks that may be in SLC mode above which folding begins while the host is busy.
        pub watermark: f64 = key(
            "slc.watermark",
            SHARE,
            "1.0",
            "folding begins while the host is busy when more than this share of the SLC cache is filled",
        ),
        /// tR in SLC mode.
        pub read_ns: Span = key("slc.read", OPERATION, "\"30us\"", "tR in SLC mode")
            .note("a fork of FEMU: 30 µs read, 80 µs program"),
        /// tPROG in SLC mode.
        pub program_ns: Span = key("slc.program", OPERATION, "\"80us\"", "tPROG in SLC mode")
            .note("a fork of FEMU: 30 µs read, 80 µs program"),
        /// tBERS in SLC mode; `None`: that without SLC mode.
        pub erase_ns: Option<Span> = key(
            "slc.erase",
            ERASE,
            "\"native\"",
            "tBERS in SLC mode",
        ) => |values, path| values.get(path).and_then(|erase| match erase {
            Val::Tag("native", None) => None,
            time => Some(time.span()),
        }),
        /// P/E cycles of a superblock that is only used in SLC mode at which it retires.
        pub endurance: u32 = key(
            "slc.endurance",
            int(1, 10_000_000),
            "30000",
            "P/E cycles in SLC mode after which a block is retired; a cycle wears it drive.endurance / slc.endurance as \
             much as one without SLC mode",
        )
        .note("assumption: ten times the endurance of TLC"),
        /// The RBER of a page in SLC mode, as a factor of that of a page without it.
        pub rber_factor: f64 = key(
            "slc.rber_factor",
            num(0.0, 1.0),
            "0.01",
            "RBER of a page in SLC mode, as a factor of that of an LSB page after the same wear, age and reads",
        )
        .note("assumption"),
        /// Share of the cache that preconditioning leaves filled.
        pub filled: f64 = key(
            "slc.filled",
            SHARE,
            "0.0",
            "share of the SLC cache that a preconditioned drive starts with filled",
        ),
    }
}

const ERASE: ValueKind = ValueKind::Either(&[
    OPERATION,
    ValueKind::Slot(&[plain("native", "that of the block without SLC mode (timing.erase)")]),
]);

choices! {
    /// `slc.when_full`: what a host write does when the SLC cache is full.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum WhenFull {
        /// The write is written without SLC mode.
        Direct = "direct": "the write is written without SLC mode",
        /// The write waits until folding has made room.
        Fold = "fold": "the write waits until folding has made room",
    }
}

/// Rows of a block in SLC mode: its wordlines. On several dies programs are striped by the rows of a one-shot program of
/// the cell, so a block then has whole stripes: up to two wordlines are not used.
fn rows(drive: &DriveSpec, dies_per_lane: u32) -> u32 {
    let is_striped = dies_per_lane > 1 && drive.program_order == ProgramOrder::OneShot;
    rows_of(drive.pages_per_block.into(), drive.cell.bits().into(), is_striped) as u32
}

/// Superblocks of every lane for `bytes` in SLC mode.
fn fixed_superblocks(bytes: u64, lanes: u64, superblock_bytes: u64) -> u64 {
    bytes.div_ceil((lanes * superblock_bytes).max(1))
}

impl SlcSpec {
    /// Whether the drive has an SLC cache.
    pub fn is_on(&self) -> bool {
        self.static_bytes > 0 || self.dynamic > 0.0
    }

    /// Units of a superblock in SLC mode.
    pub(crate) fn units(drive: &DriveSpec, geometry: &Geometry) -> u32 {
        rows(drive, geometry.dies_per_lane) * geometry.units_per_full_row()
    }

    /// Superblocks of the static part in every lane.
    pub(crate) fn fixed(&self, drive: &DriveSpec, geometry: &Geometry) -> u64 {
        let units = Self::units(drive, geometry);
        let bytes = u64::from(units) * u64::from(geometry.unit_bytes);
        fixed_superblocks(self.static_bytes, geometry.lanes.into(), bytes)
    }

    /// The superblocks of every lane that the host may have in SLC mode.
    pub(crate) fn share(&self, drive: &DriveSpec, geometry: &Geometry) -> SlcShare {
        SlcShare {
            fixed: self.fixed(drive, geometry) as u32,
            dynamic: self.dynamic,
            waits: self.when_full == WhenFull::Fold,
        }
    }

    /// The shape of superblocks in SLC mode, and how their cells age.
    pub(crate) fn shape(
        &self,
        drive: &DriveSpec,
        timing: &TimingSpec,
        ecc: &EccSpec,
        geometry: &Geometry,
        native: &Shape,
    ) -> (Shape, Ageing) {
        let rows = rows(drive, geometry.dies_per_lane);
        let steps = ProgramTime::Uniform(self.program_ns).steps(Cell::Slc, rows, 1, 1);
        let times = CellTimes {
            read: Some(KindTimes::uniform(self.read_ns)),
            erase_ns: self.erase_ns.unwrap_or(native.erase_ns),
            ..timing.times(geometry)
        };
        // A level has the sensing that it adds to that of the first level.
        let mut ecc = ecc.clone();
        let first = ecc.levels.first().and_then(|level| level.sense);
        for level in &mut ecc.levels {
            level.sense = level.sense.zip(first).map(|(sense, first)| {
                KindTimes::uniform(self.read_ns + sense.lsb_ns.saturating_sub(first.lsb_ns))
            });
        }
        let ageing = Ageing {
            endurance_of_first: drive.endurance,
            endurance: self.endurance,
            rber_factor: self.rber_factor,
        };
        (Shape::new(geometry, Cell::Slc, drive.program_order, &steps, &times, &ecc), ageing)
    }
}

/// The superblocks of the static part in every lane of a drive with `lanes` lanes, whose superblocks have `units` units of
/// `unit_bytes` bytes in SLC mode; `None` without this mode.
pub(crate) fn fixed_of(check: &Check<'_>, lanes: u64, units: u64, unit_bytes: u64) -> Option<u64> {
    let bytes = check.int("slc.static")?;
    has_mode(check).then(|| fixed_superblocks(bytes, lanes, units * unit_bytes))
}

/// Whether a drive has superblocks in SLC mode: an SLC cache, or an emergency flush in this mode.
pub(crate) fn has_mode(check: &Check<'_>) -> bool {
    let is_above_0 = |key: &str| check.num(key).is_some_and(|value| value > 0.0);
    check.int("slc.static").is_some_and(|bytes| bytes > 0)
        || is_above_0("slc.dynamic")
        || check.is("capacitor.flush_mode", "slc") && is_above_0("capacitor.capacitance")
}

/// Rows of a block in SLC mode ([`rows`]), for rules: `bits` are those of a cell, and `is_striped` says whether a superblock
/// on several dies is programmed a wordline at a time.
pub(crate) fn rows_of(pages_per_block: u64, bits: u64, is_striped: bool) -> u64 {
    let rows = pages_per_block / bits;
    if is_striped { rows / bits * bits } else { rows }
}

pub(crate) const RULES: &[Rule] = &[has_bits, has_effect, has_one_placement, has_one_stream];

/// Blocks in SLC mode have the data of all classes of `ftl.streams`.
fn has_one_stream(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "ftl.streams";
    if has_mode(check) && check.get(KEY).is_some() && !check.is(KEY, "none") {
        let message = "SLC mode would mix the streams into which hot and cold data is divided";
        let remedy = "set ftl.streams = \"none\", or slc.static = \"0MiB\", slc.dynamic = 0 and \
                      capacitor.flush_mode = \"native\"";
        check.error(&[KEY, "slc.static", "slc.dynamic", "capacitor.flush_mode"], message, remedy);
    }
    Some(())
}

/// Blocks in SLC mode have the data of all placements.
fn has_one_placement(check: &mut Check<'_>) -> Option<()> {
    const KEYS: [&str; 3] = ["placement.handles", "placement.groups", "placement.reclaim_unit"];
    let is_on = KEYS.iter().any(|key| check.int(key).is_some_and(|count| count > 1));
    if is_on && has_mode(check) {
        let message = "SLC mode would mix the data of placement handles, which have blocks of their own";
        let remedy = "set slc.static = \"0MiB\", slc.dynamic = 0 and capacitor.flush_mode = \"native\", or take [placement] out";
        check.error(
            &["slc.static", "slc.dynamic", "capacitor.flush_mode", KEYS[0], KEYS[1], KEYS[2]],
            message,
            remedy,
        );
    }
    Some(())
}

/// Cells of one bit have no other mode, and a block needs a wordline.
fn has_bits(check: &mut Check<'_>) -> Option<()> {
    let is_on = has_mode(check);
    let bits = u64::from(Cell::from_val(check.get("drive.cell")?).bits());
    if is_on && bits == 1 {
        let message = "cells of one bit (drive.cell = \"slc\") have no SLC mode besides";
        let remedy = "set drive.cell = \"tlc\" or another cell of several bits, or slc.static = \"0MiB\" and slc.dynamic = 0";
        check.error(&["slc.static", "slc.dynamic", "drive.cell"], message, remedy);
        return None;
    }
    let is_striped = check.is("ftl.superblock", "drive") && check.is("drive.program_order", "one-shot");
    let least = if is_striped { bits * bits } else { bits };
    if is_on && check.int("drive.pages_per_block")? < least {
        let message = format!("a block of fewer than {least} pages has too few wordlines for SLC mode");
        let remedy = format!("set drive.pages_per_block to at least {least}");
        check.error(&["drive.pages_per_block", "slc.static", "slc.dynamic"], message, remedy);
    }
    Some(())
}

/// The other keys have no effect without an SLC cache.
fn has_effect(check: &mut Check<'_>) -> Option<()> {
    // A preset with a cache may be used without it.
    if has_mode(check) || check.is_set("slc.static") || check.is_set("slc.dynamic") {
        return None;
    }
    let key = <SlcSpec as Section>::KEYS.iter().map(|key| key.path).find(|key| check.is_set(key))?;
    let message = "no effect, because the drive has no SLC cache";
    let remedy = format!("take {key} out, or set slc.dynamic = 1.0 or slc.static = \"6GB\"");
    check.error(&[key, "slc.static", "slc.dynamic"], message, remedy);
    Some(())
}
