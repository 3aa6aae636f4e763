//! How much memory the state of a drive takes, before any of it is there.
//!
//! The map and the OOB are zeroed lazily: what is never written takes no memory. So the estimate counts what preconditioning
//! and the workload write of them, and all of it where a workload does not say how much that is.

use crate::base::geometry::Geometry;
use crate::demand_map::{ENTRY_BYTES, TranslationPage};
use crate::drive::spec::{
    Address, EcCacheSpec, MapSpec, PreconditionSpec, RberSpec, RefreshPolicySpec, Source, Spec,
};
use crate::flash::{Block, Ecc};
use crate::host::Oracle;
use crate::report::Table;
use crate::sched::Device;
use crate::write_cache;

/// What is written in one go by the kernel, where it can: a huge page.
const HUGE_PAGE: u64 = 2 << 20;

/// Bytes of the program itself, its tables of the physics and its statistics: measured, a run of a small drive less an empty
/// one.
const FIXED_BYTES: u64 = 6 << 20;

/// Bytes by block that are not [`Block`]: its places in the free list, the victims' index and the policy's own lists.
const BLOCK_EXTRA_BYTES: u64 = 16;

/// Bytes of a slot of the mapping cache beside the arrays by LPN.
const MAP_ENTRY_BYTES: u64 = 32;

/// Bytes of an entry of the cache of known errors.
const KNOWN_ENTRY_BYTES: u64 = 24;

/// Bytes of a flash operation in the timeline with its request and arrow, their text in Rust and in Python: measured with a
/// million of them, each the read of a page for a request of its own (with one half of them writes: 1,600).
const OPERATION_BYTES: u64 = 1760;

/// Bytes of a request in `requests.parquet`, six columns in the core and what Python makes of them: measured with four
/// million of them.
const REQUEST_BYTES: u64 = 100;

/// The memory that a run takes at most, in bytes, by what takes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// By physical page: the OOB and what the schemes keep.
    pub pages: u64,
    /// By logical page: the map, and what the schemes keep.
    pub map: u64,
    /// By block.
    pub blocks: u64,
    /// By page of the caches: mapping cache, write cache, known errors.
    pub caches: u64,
    /// The reference model of `--verify`.
    pub oracle: u64,
    /// What is recorded: timeline, requests.
    pub records: u64,
    /// The rest.
    pub fixed: u64,
}

impl Memory {
    /// What a run of this spec takes, `verify`: with the oracle.
    pub fn of(spec: &Spec, verify: bool) -> Self {
        let geometry = Geometry::new(&spec.drive);
        Self::with(spec, verify, &geometry, &Touched::of(spec, &geometry))
    }

    /// The address space that it takes, whether written or not.
    pub fn reserved(spec: &Spec, verify: bool) -> Self {
        let geometry = Geometry::new(&spec.drive);
        let (physical, logical) = (geometry.pages.into(), geometry.logical_pages.into());
        let touched = Touched { physical, logical, ..Touched::of(spec, &geometry) };
        Self::with(spec, verify, &geometry, &touched)
    }

    fn with(spec: &Spec, verify: bool, geometry: &Geometry, touched: &Touched) -> Self {
        let (pages, blocks) = (u64::from(geometry.pages), u64::from(geometry.blocks));
        let host_pages = u64::from(geometry.logical_pages);
        let ecc = Ecc::new(&spec.ecc);
        let (refresh, has_errors) = (&spec.refresh.policy, spec.reliability.rber != RberSpec::None);
        let is_stamped = verify || spec.models_power_loss();
        let is_cut = spec.power.cut_after_requests > 0 || spec.power.cut_at_ns.is_some();
        let has_ages = ecc.has_levels() && has_errors;
        let when = |is: bool, bytes: u64| if is { bytes } else { 0 };

        // By physical page; a bit says whether the page is valid.
        let lazily = when(!is_stamped, 4) + when(is_stamped, 8);
        let at_once = when(is_stamped, 4)
            + when(has_ages, 4)
            + when(refresh.hot_reads().is_some(), 1)
            + when(refresh.knows_errors(), 8)
            + when(refresh.partial().is_some(), 8)
            + when(refresh.ec_cache().is_some(), 4);
        let valid_bits = blocks * u64::from(geometry.pages_per_block.div_ceil(64)) * 8;

        // By logical page, and the pages behind those of the host.
        let demand = match spec.ftl.map {
            MapSpec::Demand { cache_bytes, .. } => Some(cache_bytes),
            MapSpec::Page => None,
        };
        let has_cache = spec.cache.size_bytes >= u64::from(geometry.page_bytes);
        let entries_per_page = u64::from(geometry.page_bytes) / 4;
        let translation_pages = if demand.is_some() { host_pages.div_ceil(entries_per_page) } else { 0 };
        let of_lpn = 4
            + when(demand.is_some(), 5)
            + when(demand.is_some() && verify, 4)
            + when(demand.is_none() && ecc.keeps_page_levels(), 1)
            + when(has_cache, 4);
        // Recovery finds the newest page of each LPN, and makes the map anew beside the one before; the write cache is gone.
        let recovery = when(is_cut, touched.logical * (8 + when(demand.is_some(), 5) - when(has_cache, 4)));

        let capacity = |bytes: u64, each: u64| (bytes / each).min(touched.asked).min(host_pages);
        let map_entries = demand.map_or(0, |bytes| capacity(bytes, ENTRY_BYTES));
        let cached_pages = capacity(spec.cache.size_bytes, geometry.page_bytes.into());
        let hot_pages = |cache: &EcCacheSpec| (touched.asked / u64::from(cache.hot_reads.max(1))).min(pages);
        let known = refresh
            .ec_cache()
            .map_or(0, |cache| (cache.size_bytes / KNOWN_ENTRY_BYTES).min(hot_pages(cache)));
        let oracle = Oracle::BYTES_PER_LPN * host_pages + host_pages / 8 + 4 * touched.asked.min(host_pages);
        // One after the other: preconditioning, recovery, results.
        let for_a_time = touched.transient.max(recovery).max(blocks * Table::BYTES_PER_BLOCK);
        Self {
            pages: touched.physical * lazily + pages * at_once + valid_bits,
            map: touched.logical * of_lpn + translation_pages * size_of::<TranslationPage>() as u64,
            blocks: blocks
                * (size_of::<Block>() as u64
                    + BLOCK_EXTRA_BYTES
                    + when(*refresh != RefreshPolicySpec::None, 4 + 24))
                + when(spec.timing.multi_plane, Device::multi_plane_bytes(geometry)),
            caches: map_entries * MAP_ENTRY_BYTES
                + cached_pages * size_of::<write_cache::CachedPage>() as u64
                + known * KNOWN_ENTRY_BYTES,
            oracle: when(verify, oracle),
            records: spec.output.timeline_operations.min(touched.operations).saturating_mul(OPERATION_BYTES)
                + when(spec.output.requests, touched.recorded.saturating_mul(REQUEST_BYTES)),
            fixed: FIXED_BYTES + for_a_time,
        }
    }

    /// All of it, in bytes.
    pub fn total(&self) -> u64 {
        [self.pages, self.map, self.blocks, self.caches, self.oracle, self.records, self.fixed]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// The key that makes most of it smaller, and how.
    pub fn remedy(&self) -> &'static str {
        let parts = [
            (
                self.pages + self.map + self.blocks,
                "a smaller drive: drive.blocks_per_plane, or larger pages: drive.page_size",
            ),
            (self.caches, "smaller caches: ftl.map.demand.cache, cache.size, refresh.policy.ec-cache.size"),
            (self.oracle, "leave out --verify, or a smaller drive: drive.blocks_per_plane"),
            (self.records, "record less: output.requests = false, output.timeline_operations"),
        ];
        parts.into_iter().max_by_key(|&(bytes, _)| bytes).map_or("", |(_, remedy)| remedy)
    }
}

/// What a run writes of a drive, at most.
struct Touched {
    /// Physical and logical pages.
    physical: u64,
    logical: u64,
    /// Requests that are known to come; 0 where the workload does not say how many.
    recorded: u64,
    /// Pages that the host asks for.
    asked: u64,
    /// Flash operations.
    operations: u64,
    /// Bytes that preconditioning takes for itself.
    transient: u64,
}

impl Touched {
    fn of(spec: &Spec, geometry: &Geometry) -> Self {
        let (pages, host_pages) = (u64::from(geometry.pages), u64::from(geometry.logical_pages));
        let planes = u64::from(geometry.planes);
        let (filled, mapped) = match spec.precondition {
            PreconditionSpec::None => (0, 0),
            PreconditionSpec::Fill { used, valid, .. } => {
                let filled = used * pages as f64;
                (filled as u64, ((filled * valid) as u64).min(host_pages))
            }
            PreconditionSpec::Load(_) | PreconditionSpec::Pts { .. } => (pages, host_pages),
        };
        let (requests, asked, physical, logical) = Self::by_workload(spec, geometry);
        let of_plane = |pages: u64| (pages * 4).div_ceil(planes).next_multiple_of(HUGE_PAGE) * planes / 4;
        let physical = filled.saturating_add(of_plane(physical.min(pages))).min(pages);
        let logical = mapped.max(logical).min(host_pages);
        // The fill draws the LPNs of one plane at a time, before the workload writes what is left of map and OOB.
        let drawn =
            if matches!(spec.precondition, PreconditionSpec::Fill { .. }) { 4 * mapped / planes } else { 0 };
        let transient = drawn.saturating_sub(4 * (physical - filled + logical - mapped));
        let operations = requests.saturating_mul(64).saturating_add(physical);
        let recorded = if requests == u64::MAX { 0 } else { requests };
        Self { physical, logical, recorded, asked, operations, transient }
    }

    /// Requests, the pages that they ask for, and the physical and logical pages that they touch; all there are where the
    /// workload does not say.
    fn by_workload(spec: &Spec, geometry: &Geometry) -> (u64, u64, u64, u64) {
        let Some(workload) = &spec.workload else { return (u64::MAX, u64::MAX, u64::MAX, u64::MAX) };
        let most = if workload.requests_max > 0 { workload.requests_max } else { u64::MAX };
        let Source::Synthetic(synthetic) = &workload.source else {
            return (most, u64::MAX, u64::MAX, u64::MAX);
        };
        let requests = synthetic.requests.saturating_mul(workload.repeat.into()).min(most);
        let page = u64::from(geometry.page_bytes);
        let weights: f64 = synthetic.sizes.iter().map(|&(_, weight)| weight).sum();
        let of_size = |&(bytes, weight): &(u64, f64)| (bytes.div_ceil(page) + 1) as f64 * weight / weights;
        let of_request: f64 = synthetic.sizes.iter().map(of_size).sum();
        let writes = requests as f64 * (1.0 - synthetic.read_fraction - synthetic.trim_fraction).max(0.0);
        let written = writes * of_request;
        let span = synthetic.span * f64::from(geometry.logical_pages);
        // Writes at random places touch a huge page each.
        let reach =
            if synthetic.address == Address::Sequential { written } else { writes * HUGE_PAGE as f64 / 4.0 };
        // GC writes again as much as the host, and more: a drive that is full is written everywhere.
        let is_full = spec.precondition != PreconditionSpec::None;
        let physical = if is_full { written * 8.0 } else { written };
        (requests, (requests as f64 * of_request) as u64, physical as u64, span.min(reach) as u64)
    }
}
