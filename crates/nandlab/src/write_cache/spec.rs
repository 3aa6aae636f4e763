//! The section `[cache]` of the spec.

use super::{eviction, sync};
use crate::base::policy::Choice;
use crate::base::units::Span;
use crate::spec::{
    Check, Choices, FromVal, OVERHEAD, Policy, Rule, SHARE, Val, ValueKind, choices, key, plain, registered,
    section, show_num,
};
use std::sync::LazyLock;

section! {
    /// `[cache]`: the write cache.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CacheSpec {
        /// Size of the write cache in bytes; less than a unit: no cache.
        pub size_bytes: u64 = key(
            "cache.size",
            ValueKind::Size { min: 0, max: 1 << 40, step: 512 },
            "\"0MiB\"",
            "size of the write cache; less than a mapping unit: no cache",
        ),
        /// DRAM access time of each unit that the host reads from or writes to the cache.
        pub access_ns: Span = key(
            "cache.access",
            OVERHEAD,
            "\"1us\"",
            "DRAM access time of each mapping unit that the host reads from or writes to the cache",
        )
        .note("assumption: 4 KiB at some GB/s"),
        /// The sync policy, one of [`crate::write_cache::sync::POLICIES`].
        pub sync: Choice = key(
            "cache.sync",
            ValueKind::Registered(syncs),
            "\"none\"",
            "when dirty pages are written back ahead of eviction",
        ),
        /// The eviction policy, one of [`crate::write_cache::eviction::POLICIES`].
        pub eviction: Choice = key(
            "cache.eviction",
            ValueKind::Registered(evictions),
            "\"lru\"",
            "which page leaves a full write cache",
        ),
        /// The limit to the number of dirty units.
        pub dirty_budget: DirtyBudget = key(
            "cache.dirty_budget",
            DIRTY_BUDGET,
            "1.0",
            "share of the write cache or the write buffer that may be dirty; without effect on a cache with cache.sync = \
             \"none\"",
        ),
        /// What a read that misses does without a slot.
        pub read_room: ReadRoom = key(
            "cache.read_room",
            ValueKind::Slot(ReadRoom::CHOICES),
            "\"skip\"",
            "what a read that misses does if there is neither a free slot nor a clean page to evict",
        ),
        /// What acknowledges FUA writes and host flushes while the capacitor is charged.
        pub flush_to: FlushTo = key(
            "cache.flush_to",
            ValueKind::Slot(FlushTo::CHOICES),
            "\"cache\"",
            "what acknowledges FUA writes and host flushes while the capacitor is charged; without effect without a \
             capacitor, or without a write cache and a write buffer",
        ),
    }
}

choices! {
    /// `cache.read_room`: what a read that misses does if there is neither a free slot nor a clean unit to evict.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ReadRoom {
        /// The read is answered from flash, and its unit is not cached.
        Skip = "skip": "the read is answered from flash, and its page is not cached",
        /// The read takes a slot before it is read from flash; it waits for the slot until a dirty unit has been
        /// written back.
        Wait = "wait":
            "capacitor paper, Section III-B: the read waits for a slot until a dirty page has been written back, then \
             it is read from flash into the slot",
    }
}

choices! {
    /// `cache.flush_to`: what acknowledges FUA writes and host flushes while the capacitor is charged. At any other
    /// time, and while the dirty budget is 0, flash does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FlushTo {
        /// The data is in flash.
        Flash = "flash": "the data is in flash",
        /// The data is in the write cache or the write buffer, whose dirty units the capacitor saves.
        Cache = "cache":
            "the data is in the write cache or the write buffer, whose dirty pages the capacitor saves",
    }
}

fn syncs() -> &'static [Policy] {
    static ALL: LazyLock<Vec<Policy>> =
        LazyLock::new(|| sync::POLICIES.iter().map(|(info, _)| registered(info)).collect());
    &ALL
}

fn evictions() -> &'static [Policy] {
    static ALL: LazyLock<Vec<Policy>> =
        LazyLock::new(|| eviction::POLICIES.iter().map(|(info, _)| registered(info)).collect());
    &ALL
}

/// `cache.dirty_budget`: the limit to the number of dirty units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DirtyBudget {
    /// A share of the cache or the buffer.
    Share(f64),
    /// The budget that budget detection derives from the units that the capacitor can save; before the first detection,
    /// the budget derived from the capacitor's state at the start.
    Measured,
}

const DIRTY_BUDGET: ValueKind = ValueKind::Either(&[
    SHARE,
    ValueKind::Slot(&[plain(
        "measured",
        "budget detection sets the budget from the number of pages that the capacitor can save",
    )]),
]);

impl FromVal for DirtyBudget {
    fn from_val(val: &Val) -> Self {
        match val {
            Val::Num(share) => Self::Share(*share),
            Val::Tag("measured", None) => Self::Measured,
            _ => val.is_no("dirty budget"),
        }
    }
}

pub(crate) const RULES: &[Rule] = &[is_there, measured_budget];

/// Whether the write cache has room for a unit.
fn has_cache(check: &Check<'_>) -> Option<bool> {
    let unit = match check.get("ftl.mapping_unit")? {
        Val::Size(bytes) => *bytes,
        _ => check.int("drive.page_size")?,
    };
    Some(check.int("cache.size")? >= unit)
}

/// Sync policy, eviction policy, dirty budget and read room have no effect without a write cache.
fn is_there(check: &mut Check<'_>) -> Option<()> {
    if has_cache(check)? {
        return Some(());
    }
    let remedy = |key: &str, without: &str| format!("set cache.size to a page or more, or {key} = {without}");
    let sync = check.tag("cache.sync")?;
    if sync != "none" {
        let message = format!("\"{sync}\" has no effect without a write cache");
        check.error(&["cache.sync", "cache.size"], message, remedy("cache.sync", "\"none\""));
    }
    let eviction = check.tag("cache.eviction")?;
    if eviction != "lru" {
        let message = format!("\"{eviction}\" has no effect without a write cache");
        check.error(&["cache.eviction", "cache.size"], message, remedy("cache.eviction", "\"lru\""));
    }
    let budget = check.get("cache.dirty_budget")?;
    if *budget != Val::Num(1.0) && check.int("ftl.buffer")? == 0 {
        let message = match budget {
            Val::Num(share) => format!("{} has no effect without a write cache or buffer", show_num(*share)),
            _ => "\"measured\" has no effect without a write cache or buffer".into(),
        };
        check.error(&["cache.dirty_budget", "cache.size"], message, remedy("cache.dirty_budget", "1.0"));
    }
    let room = check.tag("cache.read_room")?;
    if room != "skip" {
        let message = format!("\"{room}\" has no effect without a write cache");
        check.error(&["cache.read_room", "cache.size"], message, remedy("cache.read_room", "\"skip\""));
    }
    Some(())
}

/// A measured budget needs a capacitor and, with a cache, a sync policy that keeps a budget.
fn measured_budget(check: &mut Check<'_>) -> Option<()> {
    if check.tag("cache.dirty_budget")? != "measured" {
        return None;
    }
    if check.num("capacitor.capacitance") == Some(0.0) {
        let message = "\"measured\" needs a capacitor";
        let remedy = "set capacitor.capacitance, such as \"75mF\", or cache.dirty_budget = 1.0";
        check.error(&["cache.dirty_budget", "capacitor.capacitance"], message, remedy);
    }
    if has_cache(check)? && check.tag("cache.sync")? == "none" {
        let message = "\"measured\" has no effect with cache.sync = \"none\", which keeps no budget";
        let remedy = "set cache.sync, such as \"smart\", or cache.dirty_budget = 1.0";
        check.error(&["cache.dirty_budget", "cache.sync"], message, remedy);
    }
    Some(())
}
