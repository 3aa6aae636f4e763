//! The section `[gc]` of the spec, and the keys `ftl.wear_levelling` and `ftl.wear_gap`.

use super::gc;
use crate::base::policy::Choice;
use crate::base::units::Span;
use crate::ftl::WearLevelling;
use crate::ftl::needs::Need;
use crate::ftl::streams::{StreamSpec, Writer};
use crate::spec::{
    ANY_TIME, Check, Choices, Key, Policy, Rule, SHARE, SHARE_BELOW_1, ValueKind, choices, int, key,
    registered, section, show_num,
};
use std::sync::LazyLock;

pub(crate) const WEAR_LEVELLING: Key = key(
    "ftl.wear_levelling",
    ValueKind::Slot(WearLevelling::CHOICES),
    "\"dynamic\"",
    "how wear is spread over the blocks",
);

pub(crate) const WEAR_GAP: Key = key(
    "ftl.wear_gap",
    int(1, 1_000_000),
    "100",
    "static wear levelling moves a block that lags the plane's mean P/E cycles by more than this",
)
.note("assumption");

choices! { for WearLevelling {
    Dynamic = "dynamic": "the free block with the fewest P/E cycles is used next",
    Static = "static": "as \"dynamic\"; in addition, the data of blocks with few P/E cycles is moved to worn blocks",
    None = "none": "free blocks are used in the order in which they became free",
} }

/// The stream of static wear levelling: an open superblock for the units that it moves. Its job takes the free
/// superblock of GC.
pub(crate) fn wear_stream() -> StreamSpec {
    let need = Need::new("wear", "static wear levelling", 1, 0);
    StreamSpec { opens_most_worn: true, ..StreamSpec::new(2, Writer::Job, need) }
}

section! {
    /// `[gc]`: garbage collection.
    #[derive(Clone, Debug, PartialEq)]
    pub struct GcSpec {
        /// The victim policy, one of [`crate::background::gc::POLICIES`].
        pub victim: Choice =
            key("gc.victim", ValueKind::Registered(victims), "\"greedy\"", "which block is collected next"),
        /// How foreground GC shares its die with host writes.
        pub pacing: GcPacing = key(
            "gc.pacing",
            ValueKind::Slot(GcPacing::CHOICES),
            "\"proportional\"",
            "how foreground GC shares its die with host writes",
        ),
        /// Whether the die of a foreground GC job serves the host before the victim is erased.
        pub foreground: GcForeground = key(
            "gc.foreground",
            ValueKind::Slot(GcForeground::CHOICES),
            "\"interleaved\"",
            "whether the host waits for whole cleanings",
        ),
        /// Idle-time GC starts when less than this share of the units that can be free for the host is free.
        pub background_free: f64 = key(
            "gc.background_free",
            SHARE_BELOW_1,
            "0.10",
            "high watermark: idle-time GC starts when less than this share of the pages that can be free for the host is free",
        ),
        /// Foreground GC starts when less than this share of the units that can be free for the host is free.
        pub foreground_free: f64 = key(
            "gc.foreground_free",
            SHARE_BELOW_1,
            "0.05",
            "low watermark: foreground GC starts when less than this share of the pages that can be free for the host is free",
        ),
        /// Idle-time GC does not empty a victim of which more than this share is valid.
        pub idle_valid_max: f64 = key(
            "gc.idle_valid_max",
            SHARE,
            "0.75",
            "idle-time GC does not empty a victim of which more than this share is valid",
        )
        .note("assumption: GC moves at most three pages to gain one"),
        /// Time without outstanding requests after which the drive counts as idle.
        pub idle_after_ns: Span = key(
            "gc.idle_after",
            ANY_TIME,
            "\"10ms\"",
            "time without outstanding requests after which the drive counts as idle",
        )
        .note("assumption"),
    }
}

fn victims() -> &'static [Policy] {
    static ALL: LazyLock<Vec<Policy>> =
        LazyLock::new(|| gc::POLICIES.iter().map(|(info, _)| registered(info)).collect());
    &ALL
}

choices! {
    /// `gc.pacing`: how foreground GC shares its die with host writes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum GcPacing {
        /// GC gets the share of the die with which it frees a superblock when the host needs it.
        Proportional = "proportional": "GC gets the share of the die with which it frees a block when the host needs it",
        /// By age: of GC and host writes, the die serves the one that has waited longer.
        None = "none": "by age: of GC and host writes, the die serves the one that has waited longer",
    }
}

choices! {
    /// `gc.foreground`: whether the die of a foreground GC job serves the host before the victim is erased.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum GcForeground {
        /// The die serves the host between the operations of the job, as the scheduler decides.
        Interleaved = "interleaved": "the die of a foreground GC job serves the host between the job's operations",
        /// The rule of DiskSim's SSD model: the write that makes a lane short of space waits until GC has cleaned so
        /// many superblocks that no lane of its die is short, also if the die is idle. Foreground GC has the die to
        /// itself. Superblocks without valid data are erased by GC as well. A victim of translation pages is cleaned
        /// interleaved.
        Blocking = "blocking": "foreground GC has its die to itself, until no plane of the die is short of space",
    }
}

pub(crate) const RULES: &[Rule] = &[thresholds, blocking];

fn thresholds(check: &mut Check<'_>) -> Option<()> {
    let (foreground, background) = (check.num("gc.foreground_free")?, check.num("gc.background_free")?);
    if foreground >= background {
        let message = format!(
            "expected gc.foreground_free below gc.background_free, found {} and {}",
            show_num(foreground),
            show_num(background)
        );
        let remedy = "set gc.foreground_free below gc.background_free";
        check.error(&["gc.foreground_free", "gc.background_free"], message, remedy);
    }
    Some(())
}

fn blocking(check: &mut Check<'_>) -> Option<()> {
    if check.is("gc.foreground", "blocking") && check.is("gc.pacing", "proportional") {
        let message = "\"blocking\" gives GC the whole die, but gc.pacing = \"proportional\" gives it a share of the die";
        let remedy = "set gc.pacing = \"none\", or gc.foreground = \"interleaved\"";
        check.error(&["gc.foreground", "gc.pacing"], message, remedy);
    }
    Some(())
}
