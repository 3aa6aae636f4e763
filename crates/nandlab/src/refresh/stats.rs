//! What is counted of refresh.

use crate::base::numbers::number;
use crate::base::units::Span;
use crate::drive::{Drive, PartialState};
use crate::probe::Probe;
use serde_json::{Value, json};

/// Blocks refreshed, and how well that kept to its times.
#[derive(Clone, Debug, Default)]
pub struct RefreshStats {
    /// Blocks that were due and held valid data.
    pub blocks: u64,
    /// Valid pages in them when their refresh began.
    pub pages: u64,
    /// Blocks that were refreshed more than the grace after they were due.
    pub late_blocks: u64,
    /// The longest that one was overdue, in seconds on the scaled clock.
    pub overdue_max_s: u32,
    /// From the beginning of each block's refresh to its end, added up, in nanoseconds.
    pub busy_ns: Span,
    /// Of the blocks, those refreshed partially, and those refreshed conventionally because free blocks were few.
    pub partial_blocks: u64,
    /// See `partial_blocks`.
    pub blocks_while_off: u64,
    /// Pages whose susceptible bits alone were moved, and those written elsewhere though their block was refreshed
    /// partially: read often, with too many susceptible bits, without room in the VSM.
    pub partial_pages: u64,
    /// See `partial_pages`.
    pub hot_pages: u64,
    /// See `partial_pages`.
    pub too_susceptible: u64,
    /// See `partial_pages`.
    pub without_room: u64,
    /// Susceptible data in bytes, combination pages that it went to, bytes of these left empty.
    pub susceptible_bytes: u64,
    /// See `susceptible_bytes`.
    pub combination_pages: u64,
    /// See `susceptible_bytes`.
    pub padding_bytes: u64,
    /// Host reads of partially refreshed pages.
    pub host_preads: u64,
    /// Partially refreshed pages that GC, wear levelling or refresh made whole.
    pub promoted_pages: u64,
    /// Blocks refreshed in place, and pages of theirs that were reprogrammed (the others were written elsewhere).
    pub blocks_in_place: u64,
    /// See `blocks_in_place`.
    pub pages_in_place: u64,
    /// Host reads of pages with known errors, and those of them that decoded at a lower level than without.
    pub cached_reads: u64,
    /// See `cached_reads`.
    pub lower_level_reads: u64,
    /// Pages whose known errors had to make room for others'.
    pub known_errors_evicted: u64,
    /// Refreshes that were put before the host's writes because their grace was running out.
    pub promoted: u64,
}

impl RefreshStats {
    /// Adds what others have counted.
    pub(crate) fn add(&mut self, other: &Self) {
        self.blocks += other.blocks;
        self.pages += other.pages;
        self.late_blocks += other.late_blocks;
        self.overdue_max_s = self.overdue_max_s.max(other.overdue_max_s);
        self.busy_ns += other.busy_ns;
        self.partial_blocks += other.partial_blocks;
        self.blocks_while_off += other.blocks_while_off;
        self.partial_pages += other.partial_pages;
        self.hot_pages += other.hot_pages;
        self.too_susceptible += other.too_susceptible;
        self.without_room += other.without_room;
        self.susceptible_bytes += other.susceptible_bytes;
        self.combination_pages += other.combination_pages;
        self.padding_bytes += other.padding_bytes;
        self.host_preads += other.host_preads;
        self.promoted_pages += other.promoted_pages;
        self.blocks_in_place += other.blocks_in_place;
        self.pages_in_place += other.pages_in_place;
        self.cached_reads += other.cached_reads;
        self.lower_level_reads += other.lower_level_reads;
        self.known_errors_evicted += other.known_errors_evicted;
        self.promoted += other.promoted;
    }

    /// `refresh` of the summary.
    pub(crate) fn json<P: Probe>(&self, drive: &Drive<P>) -> Value {
        let partial = drive.partial_refresh().map(|state| self.partial_json(&state));
        let ec_cache = drive.error_cache().map(|state| {
            json!({
                "entries": state.entries,
                "bytes": state.bytes,
                "hits": self.cached_reads,
                "lower_level_reads": self.lower_level_reads,
                "evictions": self.known_errors_evicted,
            })
        });
        json!({
            "blocks": self.blocks,
            "pages": self.pages,
            "load": drive.refresh_load().map(number),
            "late_blocks": self.late_blocks,
            "overdue_blocks": drive.overdue_blocks(),
            "overdue_max_s": self.overdue_max_s,
            "busy_s": self.busy_ns.seconds(),
            "block_mean_s": if self.blocks == 0 { 0.0 } else { self.busy_ns.seconds() / self.blocks as f64 },
            "promoted": self.promoted,
            "blocks_in_place": self.blocks_in_place,
            "pages_in_place": self.pages_in_place,
            "ec_cache": ec_cache,
            "partial": partial,
        })
    }

    fn partial_json(&self, state: &PartialState) -> Value {
        json!({
            "blocks": self.partial_blocks,
            "blocks_while_off": self.blocks_while_off,
            "pages": self.partial_pages,
            "hot_pages": self.hot_pages,
            "too_susceptible_pages": self.too_susceptible,
            "pages_without_room": self.without_room,
            "susceptible_bytes": self.susceptible_bytes,
            "combination_pages": self.combination_pages,
            "padding_bytes": self.padding_bytes,
            "host_preads": self.host_preads,
            "promoted_pages": self.promoted_pages,
            "linked_pages": state.linked_pages,
            "linked_pages_max": state.linked_pages_max,
            "mapping_bytes": state.mapping_bytes,
            "vsm_bytes": state.vsm_bytes,
            "on_share": state.on_share,
        })
    }
}
