//! Estimates the memory of a run from the spec, before the drive is built.
//!
//! The operating system zeroes the arrays of the map and the OOB lazily: an entry that is never written takes no
//! memory. So the estimate counts the entries that preconditioning and the workload write. For a workload whose number
//! of requests is unknown it counts all entries.

use crate::base::geometry::Geometry;
use crate::demand_map::{ENTRY_BYTES, Mapping};
use crate::drive::spec::{
    Address, EcCacheSpec, MapSpec, PreconditionSpec, RberSpec, RefreshPolicySpec, Source, Spec, SyntheticSpec,
};
use crate::drive::spec::{StreamsSpec, streams};
use crate::flash::{CopybackErrors, Ecc, Rare, Superblock};
use crate::ftl::streams::StreamSpec;
use crate::host::streams::Classes;
use crate::host::{Oracle, Promises};
use crate::report::{Explainer, Table};
use crate::sched::Device;
use crate::write_cache;

/// Bytes of a huge page of the operating system, the preferred unit of memory for large arrays.
const HUGE_PAGE: u64 = 2 << 20;

/// Bytes of the program, its tables of the reliability model and its statistics: the measured memory of a run of a
/// small drive less that of an empty process.
const FIXED_BYTES: u64 = 6 << 20;

/// Bytes that a superblock takes in addition to [`Superblock`]: its entries in the free list, in the index of victims
/// and in the lists of the victim policy, and the number of its shape.
const SUPERBLOCK_EXTRA_BYTES: u64 = 17;

/// Bytes of a slot of the mapping cache, without the arrays by LPN.
const MAP_ENTRY_BYTES: u64 = 32;

/// Bytes of an entry of EC-Cache.
const ERROR_ENTRY_BYTES: u64 = 24;

/// Bytes of a flash operation in the timeline with its request and arrow, and their JSON text in Rust and in Python.
/// Measured with a million operations, each a page read for a request of its own (1,600 bytes if half of the operations
/// are writes).
const OPERATION_BYTES: u64 = 1760;

/// Bytes of the latencies of a client's requests with one operation.
const LATENCY_BYTES: u64 = 290_000;

/// Bytes of a request in `requests.parquet`: six columns in the core, and the arrays that Python builds from these
/// columns. Measured with four million requests.
const REQUEST_BYTES: u64 = 100;

/// Estimated upper bounds of the memory that a run takes, in bytes, by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Arrays with an entry per physical unit: the OOB and the unit states of the schemes.
    pub pages: u64,
    /// Arrays with an entry per logical unit: the map and the unit states of the schemes.
    pub map: u64,
    /// Arrays with an entry per superblock.
    pub blocks: u64,
    /// Entries of the mapping cache, the write cache and EC-Cache.
    pub caches: u64,
    /// The oracle, the reference model of `--verify`.
    pub oracle: u64,
    /// The records of the timeline and of `requests.parquet`.
    pub records: u64,
    /// The program itself, and the largest temporary need: that of preconditioning, recovery or writing results.
    pub fixed: u64,
}

impl Memory {
    /// Memory that a run of this spec takes, with the oracle if `verify` is set.
    pub fn of(spec: &Spec, verify: bool) -> Self {
        let geometry = spec.geometry();
        Self::with(spec, verify, &Touched::of(spec, geometry))
    }

    /// Address space that a run of this spec takes: all entries of all arrays count, written or not.
    pub fn reserved(spec: &Spec, verify: bool) -> Self {
        let geometry = spec.geometry();
        let (physical, logical) = (geometry.units.into(), geometry.logical_units.into());
        let touched = Touched { physical, logical, ..Touched::of(spec, geometry) };
        Self::with(spec, verify, &touched)
    }

    fn with(spec: &Spec, verify: bool, touched: &Touched) -> Self {
        let geometry = &touched.geometry;
        let (units, superblocks) = (u64::from(geometry.units), u64::from(geometry.superblocks));
        let logical_units = u64::from(geometry.logical_units);
        let ecc = Ecc::new(&spec.ecc);
        let (refresh, has_errors) = (&spec.refresh.policy, spec.reliability.rber != RberSpec::None);
        let keeps_sequences = verify || spec.models_power_loss();
        let is_cut = spec.power.cut_after_requests > 0 || spec.power.cut_at_ns.is_some();
        let has_ages = ecc.has_levels() && has_errors;
        let copies_back = spec.migration.policy.copybacks_max() > 0;
        let keeps_copied = copies_back && spec.reliability.copyback != CopybackErrors::Constant;
        let when = |is: bool, bytes: u64| if is { bytes } else { 0 };

        // Bytes per physical unit in arrays that are zeroed lazily and in arrays that are filled at once. The valid
        // bits are separate.
        let lazily_zeroed =
            when(!keeps_sequences, 4) + when(keeps_sequences, 8) + when(spec.placement.is_on(), 1);
        let filled_at_once = when(keeps_sequences, 4)
            + when(refresh.hot_reads().is_some(), 1)
            + when(refresh.partial().is_some(), 16)
            + when(refresh.ec_cache().is_some(), 12);
        let shapes = spec.shapes(geometry);
        let per_age = shapes.units_per_age(copies_back, refresh.partial().is_some());
        let ages = units / u64::from(per_age) * (when(has_ages, 4) + when(has_ages && keeps_copied, 8));
        let valid_bits = superblocks * u64::from(shapes.units_max().div_ceil(64)) * 8;

        // Bytes per logical unit, and the number of translation pages, whose LPNs follow those of the host.
        let demand = match spec.ftl.map {
            MapSpec::Demand { cache_bytes, write_back, .. } => Some((cache_bytes, write_back)),
            MapSpec::Page => None,
        };
        let has_cache = spec.cache.size_bytes >= u64::from(geometry.unit_bytes);
        let entries_per_page = u64::from(geometry.unit_bytes) / 4;
        let translation_pages = logical_units.div_ceil(entries_per_page);
        let translation_bytes =
            demand.map_or(0, |(_, write_back)| translation_pages * Mapping::bytes_per_page(write_back));
        let of_own =
            |stream: &StreamSpec| u64::from(stream.lpns.count(geometry.logical_units, geometry.units));
        let own_lpns: u64 = streams(spec).iter().map(of_own).sum();
        let bytes_per_lpn = 4
            + when(demand.is_some(), 5)
            + when(demand.is_some() && verify, 4)
            + when(demand.is_none() && ecc.keeps_unit_levels(), 1)
            + when(keeps_sequences, Promises::BYTES_PER_LPN)
            + when(has_cache, 4);
        let StreamsSpec { policy, .. } = &spec.ftl.streams;
        let classes = Classes::bytes(policy, logical_units, superblocks);
        // Recovery has an array of the newest unit of each LPN and builds a second map; by then the entries of the
        // write cache have been freed.
        let recovery = when(is_cut, touched.logical * (8 + when(demand.is_some(), 5) - when(has_cache, 4)));

        let entries =
            |bytes: u64, entry_bytes: u64| (bytes / entry_bytes).min(touched.asked).min(logical_units);
        let map_entries = demand.map_or(0, |(bytes, _)| entries(bytes, ENTRY_BYTES));
        let cached_units = entries(spec.cache.size_bytes, geometry.unit_bytes.into());
        let hot_units = |cache: &EcCacheSpec| (touched.asked / u64::from(cache.hot_reads.max(1))).min(units);
        let error_entries = refresh
            .ec_cache()
            .map_or(0, |cache| (cache.size_bytes / ERROR_ENTRY_BYTES).min(hot_units(cache)));
        let oracle = Oracle::BYTES_PER_LPN * logical_units
            + logical_units / 8
            + Oracle::BYTES_PER_WRITTEN_LPN * touched.asked.min(logical_units);
        // Latencies of reads, writes, TRIMs and flushes of each client, and of each placement.
        let count = spec.workload.as_ref().map_or(0, |workload| workload.clients().len() as u64);
        let placements = u64::from(spec.placement.handles) * u64::from(spec.placement.groups);
        let clients = if count == 0 && placements == 1 { 0 } else { 4 * (count.max(1) + placements) };
        // Preconditioning, recovery and writing results never overlap in time.
        let temporary =
            touched.precondition_bytes.max(recovery).max(superblocks * Table::BYTES_PER_SUPERBLOCK);
        Self {
            pages: touched.physical * lazily_zeroed + units * filled_at_once + ages + valid_bits,
            map: touched.logical * bytes_per_lpn + 4 * own_lpns + translation_bytes + classes,
            blocks: superblocks
                * ((size_of::<Superblock>() + size_of::<Rare>()) as u64
                    + SUPERBLOCK_EXTRA_BYTES
                    + when(spec.reclaim.is_on(), 1)
                    + when(spec.has_slc_mode(), 4)
                    + when(spec.placement.reclaim_unit > 1, 4)
                    + when(*refresh != RefreshPolicySpec::None, 4 + 24))
                + when(geometry.blocks_per_superblock() > 1, 4 * u64::from(geometry.blocks()))
                + when(geometry.dies_per_lane > 1, 4 * superblocks * u64::from(geometry.dies_per_lane))
                + when(spec.timing.multi_plane, Device::multi_plane_bytes(geometry.superblocks_on_dies())),
            caches: map_entries * MAP_ENTRY_BYTES
                + cached_units * size_of::<write_cache::CachedUnit>() as u64
                + error_entries * ERROR_ENTRY_BYTES,
            oracle: when(verify, oracle),
            records: when(spec.output.explain > 0, Explainer::bytes(spec.output.explain))
                + spec.output.timeline_operations.min(touched.operations).saturating_mul(OPERATION_BYTES)
                + when(spec.output.requests, touched.recorded.saturating_mul(REQUEST_BYTES)),
            fixed: FIXED_BYTES + clients.saturating_mul(LATENCY_BYTES) + temporary,
        }
    }

    /// The sum of all fields, in bytes.
    pub fn total(&self) -> u64 {
        [self.pages, self.map, self.blocks, self.caches, self.oracle, self.records, self.fixed]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// The remedy for a run that takes too much memory: the keys that make the largest part smaller.
    pub fn remedy(&self) -> &'static str {
        let parts = [
            (
                self.pages + self.map + self.blocks,
                "a smaller drive: drive.blocks_per_plane, or larger pages: drive.page_size",
            ),
            (self.caches, "smaller caches: ftl.map.demand.cache, cache.size, refresh.policy.ec-cache.size"),
            (self.oracle, "leave out --verify, or a smaller drive: drive.blocks_per_plane"),
            (
                self.records,
                "record less: output.requests = false, output.timeline_operations, output.explain",
            ),
        ];
        parts.into_iter().max_by_key(|&(bytes, _)| bytes).map_or("", |(_, remedy)| remedy)
    }
}

/// Estimated upper bounds of the units that a run writes, and of the number of its requests and operations.
struct Touched {
    geometry: Geometry,
    /// Physical units written.
    physical: u64,
    /// Logical units written.
    logical: u64,
    /// Requests in `requests.parquet`; 0 if the number of requests of the workload is unknown.
    recorded: u64,
    /// Unit accesses of all host requests: the sum of the units that each request addresses.
    asked: u64,
    /// Flash operations.
    operations: u64,
    /// Temporary bytes of preconditioning beyond those that map and OOB take later in the run.
    precondition_bytes: u64,
}

impl Touched {
    fn of(spec: &Spec, geometry: Geometry) -> Self {
        let (units, logical_units) = (u64::from(geometry.units), u64::from(geometry.logical_units));
        let lanes = u64::from(geometry.lanes);
        let (filled, mapped) = match spec.precondition {
            PreconditionSpec::None => (0, 0),
            PreconditionSpec::Fill { used, valid, .. } => {
                let filled = used * units as f64;
                (filled as u64, ((filled * valid) as u64).min(logical_units))
            }
            PreconditionSpec::Load(_) | PreconditionSpec::Pts { .. } => (units, logical_units),
        };
        let (requests, asked, physical, logical) =
            Self::by_workload(spec, geometry.unit_bytes.into(), logical_units);
        let in_lanes = |units: u64| (units * 4).div_ceil(lanes).next_multiple_of(HUGE_PAGE) * lanes / 4;
        let physical = filled.saturating_add(in_lanes(physical.min(units))).min(units);
        let logical = mapped.max(logical).min(logical_units);
        // The fill has two arrays by the LPNs of one lane at a time, which are freed before the workload writes the
        // rest of map and OOB.
        let drawn =
            if matches!(spec.precondition, PreconditionSpec::Fill { .. }) { 8 * mapped / lanes } else { 0 };
        let precondition_bytes = drawn.saturating_sub(4 * (physical - filled + logical - mapped));
        let operations = requests.saturating_mul(64).saturating_add(physical);
        let recorded = if requests == u64::MAX { 0 } else { requests };
        Self { geometry, physical, logical, recorded, asked, operations, precondition_bytes }
    }

    /// Estimated upper bounds of the number of requests of the workload, of their unit accesses, and of the physical
    /// and logical units that they write; `u64::MAX` where the workload gives no bound.
    fn by_workload(spec: &Spec, unit_bytes: u64, logical_units: u64) -> (u64, u64, u64, u64) {
        let Some(workload) = &spec.workload else { return (u64::MAX, u64::MAX, u64::MAX, u64::MAX) };
        let requests_max = if workload.requests_max > 0 { workload.requests_max } else { u64::MAX };
        let clients = workload.clients();
        if !clients.is_empty() {
            let shares = clients.iter().map(|client| {
                let (_, bytes) =
                    client.span.bytes(logical_units.saturating_mul(unit_bytes), client.align_bytes);
                let span = bytes as f64 / unit_bytes as f64;
                Self::by_synthetic(spec, &client.synthetic(), unit_bytes, span, u64::MAX)
            });
            let (requests, asked, physical, logical) = shares.fold((0u64, 0u64, 0u64, 0u64), |sum, of| {
                let add = u64::saturating_add;
                (add(sum.0, of.0), add(sum.1, of.1), add(sum.2, of.2), add(sum.3, of.3))
            });
            return (requests.min(requests_max), asked, physical, logical);
        }
        let Source::Synthetic(synthetic) = &workload.source else {
            return (requests_max, u64::MAX, u64::MAX, u64::MAX);
        };
        let span = synthetic.span * logical_units as f64;
        Self::by_synthetic(spec, synthetic, unit_bytes, span, requests_max)
    }

    /// [`Self::by_workload`] of a synthetic workload that addresses `span` units, and of at most `requests_max` requests.
    fn by_synthetic(
        spec: &Spec,
        synthetic: &SyntheticSpec,
        unit_bytes: u64,
        span: f64,
        requests_max: u64,
    ) -> (u64, u64, u64, u64) {
        let repeat = spec.workload.as_ref().map_or(1, |workload| workload.repeat);
        let requests = synthetic.requests.saturating_mul(repeat.into()).min(requests_max);
        let weights: f64 = synthetic.sizes.iter().map(|&(_, weight)| weight).sum();
        let weighted_units =
            |&(bytes, weight): &(u64, f64)| (bytes.div_ceil(unit_bytes) + 1) as f64 * weight / weights;
        let units_per_request: f64 = synthetic.sizes.iter().map(weighted_units).sum();
        let writes = requests as f64 * (1.0 - synthetic.read_fraction - synthetic.trim_fraction).max(0.0);
        let written = writes * units_per_request;
        // A write to a random address touches one huge page of the map, which has 4 bytes per entry.
        let reach =
            if synthetic.address == Address::Sequential { written } else { writes * HUGE_PAGE as f64 / 4.0 };
        // On a preconditioned drive GC also writes units: a WAF of 8 is assumed.
        let is_full = spec.precondition != PreconditionSpec::None;
        let physical = if is_full { written * 8.0 } else { written };
        (requests, (requests as f64 * units_per_request) as u64, physical as u64, span.min(reach) as u64)
    }
}
