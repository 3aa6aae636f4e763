//! The slots that policies in Python fill: what a policy sees, the calls for its decisions, and its hooks.

use super::Chosen;
use super::events::Watching;
use super::instance::Instance;
use super::memory::{Borrowed, Column, LentSlice, Views, references};
use nandlab::base::geometry::{LaneId, Lpn, PageKind, SuperblockId};
use nandlab::base::policy::{PolicyError, PolicySlot};
use nandlab::base::rng::Stream;
use nandlab::demand_map::MapEviction;
use nandlab::drive::Policies;
use nandlab::flash::{ReadView, StartPolicy, Superblock, SuperblockState};
use nandlab::ftl::{Candidates, VictimPolicy};
use nandlab::host::streams::StreamPolicy;
use nandlab::migration::{MigrationPolicy, VictimView};
use nandlab::write_cache::CacheSlot;
use nandlab::write_cache::eviction::{CachedOrder, EvictionPolicy};
use nandlab::write_cache::sync::{CacheView, Coldness, SyncPolicy};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};

/// The methods that decide, by slot. Each slot needs its first method.
pub(crate) const DECISIONS: &[(PolicySlot, &[&str])] = &[
    (PolicySlot::Victim, &["pick"]),
    (PolicySlot::CacheEviction, &["pick"]),
    (PolicySlot::Sync, &["syncs_when_idle", "evicts_dirty_first"]),
    (PolicySlot::Migration, &["copies_back"]),
    (PolicySlot::MapEviction, &["evict"]),
    (PolicySlot::Start, &["start"]),
    (PolicySlot::Streams, &["stream"]),
];

/// Fills a slot. `chosen` and `stream` are called for each object: when the drive is built, and after a power loss,
/// which destroys the state of most policies.
pub(crate) fn fill(
    policies: Policies,
    slot: PolicySlot,
    name: String,
    chosen: impl Fn() -> Chosen + Send + Sync + 'static,
    stream: impl Fn() -> Stream + Send + Sync + 'static,
) -> Policies {
    let make = move || Python::attach(|py| Instance::new(py, chosen(), stream()));
    match slot {
        PolicySlot::Victim => policies.with_victim(name, move |_| Box::new(Victim::new(make()))),
        PolicySlot::CacheEviction => {
            policies.with_cache_eviction(name, move || Box::new(Eviction::new(make())))
        }
        PolicySlot::Sync => policies.with_cache_sync(name, move || Box::new(Syncing::new(make()))),
        PolicySlot::Migration => policies.with_migration(name, move || Box::new(Migration::new(make()))),
        PolicySlot::MapEviction => {
            policies.with_map_eviction(name, move |entries| Box::new(Mapped::new(make(), entries)))
        }
        PolicySlot::Start => policies.with_read_start(name, move |_| Box::new(Starting::new(make()))),
        PolicySlot::Streams => policies.with_streams(name, move || Box::new(Streaming::new(make()))),
        PolicySlot::Wear => unreachable!("the slot is not open"),
    }
}

/// Calls a method that a policy must have.
fn call<'py>(
    py: Python<'py>,
    instance: &Instance,
    method: Option<&Py<PyAny>>,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) -> Result<Bound<'py, PyAny>, PolicyError> {
    instance.check(py)?;
    let method = method.expect("the declaration checks that the class has the method");
    method.bind(py).call1(arguments).map_err(|error| instance.failed(py, error))
}

/// A number that a policy has returned; `None` for None.
fn number(answer: &Bound<'_, PyAny>, wanted: &str) -> Result<Option<u32>, PolicyError> {
    if answer.is_none() {
        return Ok(None);
    }
    // A bool is an int to Python.
    if answer.is_instance_of::<pyo3::types::PyBool>() {
        return Err(Instance::impossible(answer, wanted));
    }
    answer.extract().map(Some).map_err(|_| Instance::impossible(answer, wanted))
}

fn truth(answer: &Bound<'_, PyAny>) -> Result<bool, PolicyError> {
    answer.extract().map_err(|_| Instance::impossible(answer, "True or False"))
}

/// A value that the class or the object states, such as `cold_share`; `default` if it states none.
fn stated<T>(py: Python<'_>, instance: &Instance, name: &str, default: T) -> T
where
    T: for<'a, 'py> FromPyObject<'a, 'py>,
{
    let value = instance.object(py).getattr(name).ok();
    value.and_then(|value| value.extract().ok()).unwrap_or(default)
}

// ----------------------------------------------------------------------------------------------------------- gc.victim

/// The arrays of a lane over its superblocks, in this order.
const COLUMNS: [Column; 7] = [
    Column { dtype: "u4", offset: offset_of!(Superblock, valid) },
    Column { dtype: "u8", offset: offset_of!(Superblock, closed_at) },
    Column { dtype: "u4", offset: offset_of!(Superblock, pe_cycles) },
    Column { dtype: "u4", offset: offset_of!(Superblock, reads) },
    Column { dtype: "u4", offset: offset_of!(Superblock, programmed) },
    Column { dtype: "u2", offset: offset_of!(Superblock, linked) },
    Column { dtype: "u1", offset: offset_of!(Superblock, state) },
];

/// The superblocks of a lane, as a victim policy sees them.
#[pyclass(frozen, module = "nandlab._core")]
pub(crate) struct Lane {
    #[pyo3(get)]
    number: u32,
    now: AtomicU64,
    #[pyo3(get)]
    valid: Py<PyAny>,
    #[pyo3(get)]
    closed_at: Py<PyAny>,
    #[pyo3(get)]
    erases: Py<PyAny>,
    #[pyo3(get)]
    reads: Py<PyAny>,
    #[pyo3(get)]
    programmed: Py<PyAny>,
    #[pyo3(get)]
    linked: Py<PyAny>,
    #[pyo3(get)]
    state: Py<PyAny>,
    #[pyo3(get)]
    units: Py<PyAny>,
    superblocks: LentSlice<Superblock>,
}

/// The first of the full superblocks with the least score, or with the greatest one; no score that is not a number.
fn best<T: PartialOrd + Copy>(
    superblocks: &[Superblock],
    scores: impl Fn(usize) -> T,
    is_least: bool,
) -> Option<u32> {
    let mut found: Option<(T, usize)> = None;
    for (at, superblock) in superblocks.iter().enumerate() {
        if superblock.state != SuperblockState::Full {
            continue;
        }
        let score = scores(at);
        let is_better = match found {
            Some((other, _)) if is_least => score < other,
            Some((other, _)) => score > other,
            None => score.partial_cmp(&score).is_some(),
        };
        if is_better {
            found = Some((score, at));
        }
    }
    found.map(|(_, at)| at as u32)
}

impl Lane {
    fn with<T>(&self, look: impl FnOnce(&[Superblock]) -> T) -> PyResult<T> {
        self.superblocks.with(look).ok_or_else(|| {
            PyValueError::new_err(
                "the lane can be looked at during the call of pick() only, to which it was given",
            )
        })
    }

    /// The full block whose entry in `scores` is the best; `None` if `scores` is no array of `T`.
    fn best_of<T: pyo3::buffer::Element + PartialOrd>(
        &self,
        scores: &Bound<'_, PyAny>,
        is_least: bool,
    ) -> PyResult<Option<Option<u32>>> {
        let py = scores.py();
        let Ok(buffer) = pyo3::buffer::PyBuffer::<T>::get(scores) else { return Ok(None) };
        let blocks = self.with(<[Superblock]>::len)?;
        if buffer.shape() != [blocks] {
            let text = format!("expected an array of {blocks} scores, one for each block of the lane");
            return Err(PyValueError::new_err(text));
        }
        let found = match buffer.as_slice(py) {
            Some(slice) => self.with(|all| best(all, |at| slice[at].get(), is_least))?,
            None => {
                let copy = buffer.to_vec(py)?;
                self.with(|all| best(all, |at| copy[at], is_least))?
            }
        };
        Ok(Some(found))
    }

    fn best(&self, scores: &Bound<'_, PyAny>, is_least: bool) -> PyResult<Option<u32>> {
        let is = |array: &Py<PyAny>| array.as_ptr() == scores.as_ptr();
        if is(&self.valid) {
            return self.with(|all| best(all, |at| all[at].valid, is_least));
        }
        if is(&self.closed_at) {
            return self.with(|all| best(all, |at| all[at].closed_at, is_least));
        }
        if let Some(found) = self.best_of::<f64>(scores, is_least)? {
            return Ok(found);
        }
        if let Some(found) = self.best_of::<u32>(scores, is_least)? {
            return Ok(found);
        }
        if let Some(found) = self.best_of::<i64>(scores, is_least)? {
            return Ok(found);
        }
        if let Some(found) = self.best_of::<u64>(scores, is_least)? {
            return Ok(found);
        }
        let converted = scores.py().import("numpy")?.call_method1("asarray", (scores, "f8"))?;
        self.best_of::<f64>(&converted, is_least)?
            .ok_or_else(|| PyValueError::new_err("expected an array of numbers"))
    }
}

#[pymethods]
impl Lane {
    /// The numbers of the full blocks, in rising order, as an array.
    #[getter]
    fn full<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let numbers = self.with(|all| -> Vec<u8> {
            let full = (0i64..).zip(all).filter(|(_, superblock)| superblock.state == SuperblockState::Full);
            full.flat_map(|(number, _)| number.to_ne_bytes()).collect()
        })?;
        let bytes = pyo3::types::PyBytes::new(py, &numbers);
        py.import("numpy")?.call_method1("frombuffer", (bytes, "i8"))
    }

    /// The full block with the least score; `None` without one.
    fn least(&self, scores: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        self.best(scores, true)
    }

    /// The full block with the greatest score; `None` without one.
    fn greatest(&self, scores: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        self.best(scores, false)
    }

    #[classattr]
    const FREE: u8 = SuperblockState::Free as u8;
    #[classattr]
    const OPEN: u8 = SuperblockState::Open as u8;
    #[classattr]
    const FULL: u8 = SuperblockState::Full as u8;
    #[classattr]
    const VICTIM: u8 = SuperblockState::Victim as u8;
    #[classattr]
    const RETIRED: u8 = SuperblockState::Retired as u8;
    #[classattr]
    const BAD: u8 = SuperblockState::Bad as u8;
    #[classattr]
    const CACHED: u8 = SuperblockState::Cached as u8;

    #[getter]
    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.valid.bind(py).len()
    }
}

/// What a lane's decisions have in common.
struct Seen {
    views: Views,
    lane: Py<Lane>,
}

impl Seen {
    fn new(py: Python<'_>, of: &Candidates<'_>) -> PyResult<Self> {
        let views = Views::new(py, of.superblocks, &COLUMNS)?;
        let numpy = py.import("numpy")?;
        let units = match of.shapes.only() {
            Some(shape) => {
                let value = numpy.call_method1("uint32", (shape.units,))?;
                numpy.call_method1("broadcast_to", (value, of.superblocks.len()))?
            }
            None => {
                let units: Vec<u32> =
                    (0..of.superblocks.len()).map(|at| of.shapes.at(at as u32).units).collect();
                let units = numpy.call_method1("array", (units, "u4"))?;
                units.call_method1("setflags", (false,))?;
                units
            }
        };
        let [valid, closed_at, erases, reads, programmed, linked, state] =
            std::array::from_fn(|number| views.array(py, number));
        let (number, now) = (of.lane.0, AtomicU64::new(0));
        let units = units.unbind();
        let lane = Py::new(
            py,
            Lane {
                number,
                now,
                valid,
                closed_at,
                erases,
                reads,
                programmed,
                linked,
                state,
                units,
                superblocks: LentSlice::default(),
            },
        )?;
        Ok(Self { views, lane })
    }

    /// Whether the arrays are those of these superblocks, whose shapes are constant.
    fn is_of(&self, of: &Candidates<'_>) -> bool {
        self.views.are_of(of.superblocks) && of.shapes.only().is_some()
    }

    /// Whether Python has kept neither the lane nor one of its arrays. The lane and the views hold one reference each.
    fn is_returned(&self, py: Python<'_>) -> bool {
        references(self.lane.bind(py)) == 1 && self.views.all_returned(py, 1)
    }
}

/// A victim policy.
struct Victim {
    watching: Watching,
    pick: Option<Py<PyAny>>,
    seen: Vec<Option<Seen>>,
}

impl Victim {
    const HOOKS: &[&str] = &["on_closed"];

    fn new(instance: Instance) -> Self {
        Python::attach(|py| Self::of(py, Watching::new(py, instance, Self::HOOKS)))
    }

    fn of(py: Python<'_>, watching: Watching) -> Self {
        let pick = watching.instance.method(py, "pick");
        Self { watching, pick, seen: Vec::new() }
    }

    fn decide(&mut self, py: Python<'_>, of: &Candidates<'_>) -> Result<Option<u32>, PolicyError> {
        self.watching.before_decision(py)?;
        let instance = &self.watching.instance;
        let index = of.lane.index();
        if self.seen.len() <= index {
            self.seen.resize_with(index + 1, || None);
        }
        if !self.seen[index].as_ref().is_some_and(|seen| seen.is_of(of)) {
            let seen = Seen::new(py, of).map_err(|error| instance.failed(py, error))?;
            self.seen[index] = Some(seen);
        }
        let seen = self.seen[index].as_ref().expect("the lane has been seen");
        seen.lane.get().now.store(of.now.ns(), Ordering::Relaxed);
        let lent = &seen.lane.get().superblocks;
        let answer = lent.lend(of.superblocks, || call(py, instance, self.pick.as_ref(), (&seen.lane,)));
        let answer = answer.and_then(|answer| number(&answer, "the number of a block, or None"));
        if !seen.is_returned(py) {
            seen.views.keep_watch(py);
            self.seen[index] = None;
            // An exception refers to the frame of the call, and so to its views.
            answer.as_ref().map_err(Clone::clone)?;
            return Err(Instance::has_kept());
        }
        answer
    }
}

impl VictimPolicy for Victim {
    fn pick(&mut self, lane: &Candidates) -> Result<Option<u32>, PolicyError> {
        Python::attach(|py| self.decide(py, lane))
    }

    fn on_closed(&mut self, lane: LaneId, superblock: u32) {
        self.watching.add(0, superblock, lane.0);
    }

    fn fork(&self) -> Box<dyn VictimPolicy> {
        Python::attach(|py| Box::new(Self::of(py, self.watching.copy(py, Self::HOOKS))))
    }
}

// ------------------------------------------------------------------------------------------------------ cache.eviction

/// The cached units, as an eviction policy sees them during its call.
#[pyclass(frozen, module = "nandlab._core")]
pub(crate) struct Cache(Borrowed);

impl Cache {
    fn with<T>(&self, look: impl FnOnce(&CachedOrder<'_>) -> T) -> PyResult<T> {
        self.0.with(look).ok_or_else(|| {
            PyValueError::new_err(
                "the cache can be looked at during the call of pick() only, to which it was given",
            )
        })
    }
}

#[pymethods]
impl Cache {
    #[getter]
    fn capacity(&self) -> PyResult<u32> {
        self.with(|order| order.capacity())
    }

    #[getter]
    fn dirty(&self) -> PyResult<u32> {
        self.with(|order| order.dirty_units())
    }

    fn __len__(&self) -> PyResult<usize> {
        self.with(|order| order.len() as usize)
    }

    /// The slot of the least recently used unit; `None` without units.
    #[getter]
    fn least_recently_used(&self) -> PyResult<Option<u32>> {
        self.with(|order| order.least_recently_used().map(|slot| slot.0))
    }

    /// The slots of the `most` least recently used units, the least recently used one first, as an array.
    #[pyo3(signature = (most=None))]
    fn by_use<'py>(&self, py: Python<'py>, most: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        let slots = self.with(|order| -> Vec<u8> {
            let slots = order.by_use().take(most.unwrap_or(usize::MAX));
            slots.flat_map(|slot| slot.0.to_ne_bytes()).collect()
        })?;
        let bytes = pyo3::types::PyBytes::new(py, &slots);
        py.import("numpy")?.call_method1("frombuffer", (bytes, "u4"))
    }

    /// The slot of the first clean unit among the `most` least recently used ones; `None` if there is none.
    #[pyo3(signature = (most=None))]
    fn first_clean(&self, most: Option<usize>) -> PyResult<Option<u32>> {
        self.with(|order| {
            let mut slots = order.by_use().take(most.unwrap_or(usize::MAX));
            slots.find(|&slot| order.is_clean(slot)).map(|slot| slot.0)
        })
    }

    fn is_clean(&self, slot: u32) -> PyResult<bool> {
        self.of_slot(slot, |order, slot| order.is_clean(slot))
    }

    fn lpn(&self, slot: u32) -> PyResult<u32> {
        self.of_slot(slot, |order, slot| order.lpn(slot).0)
    }

    fn __contains__(&self, slot: u32) -> PyResult<bool> {
        self.with(|order| order.contains(CacheSlot(slot)))
    }
}

impl Cache {
    fn of_slot<T>(&self, slot: u32, look: impl FnOnce(&CachedOrder<'_>, CacheSlot) -> T) -> PyResult<T> {
        self.with(|order| order.contains(CacheSlot(slot)).then(|| look(order, CacheSlot(slot))))?
            .ok_or_else(|| PyValueError::new_err(format!("slot {slot} has no page that can be evicted")))
    }
}

/// An eviction policy of the write cache.
#[derive(Debug)]
struct Eviction {
    watching: Watching,
    pick: Option<Py<PyAny>>,
    cache: Py<Cache>,
}

impl Eviction {
    const HOOKS: &[&str] = &["on_insert", "on_hit", "on_remove"];

    fn new(instance: Instance) -> Self {
        Python::attach(|py| {
            let pick = instance.method(py, "pick");
            let cache = Py::new(py, Cache(Borrowed::default())).expect("a class without conditions");
            Self { watching: Watching::new(py, instance, Self::HOOKS), pick, cache }
        })
    }
}

impl EvictionPolicy for Eviction {
    fn pick(&mut self, order: &CachedOrder<'_>) -> Result<Option<CacheSlot>, PolicyError> {
        Python::attach(|py| {
            self.watching.before_decision(py)?;
            let (instance, cache) = (&self.watching.instance, &self.cache);
            let answer = cache.get().0.lend(order, || call(py, instance, self.pick.as_ref(), (cache,)))?;
            Ok(number(&answer, "the number of a slot, or None")?.map(CacheSlot))
        })
    }

    fn watches(&self) -> bool {
        self.watching.watches()
    }

    fn on_inserted(&mut self, slot: CacheSlot, lpn: Lpn) {
        self.watching.add(0, slot.0, lpn.0);
    }

    fn on_used(&mut self, slot: CacheSlot, lpn: Lpn) {
        self.watching.add(1, slot.0, lpn.0);
    }

    fn on_removed(&mut self, slot: CacheSlot, lpn: Lpn) {
        self.watching.add(2, slot.0, lpn.0);
    }
}

// ---------------------------------------------------------------------------------------------------------- cache.sync

/// The counts of the write cache, as a sync policy sees them.
#[pyclass(frozen, module = "nandlab._core")]
pub(crate) struct CacheCounts {
    #[pyo3(get)]
    dirty: u32,
    #[pyo3(get)]
    writing: u32,
    #[pyo3(get)]
    budget: u32,
    #[pyo3(get)]
    capacity: u32,
    /// Whether the least recently used dirty unit is cold; `None` if every dirty unit is being written back.
    #[pyo3(get)]
    oldest_is_cold: Option<bool>,
}

/// A sync policy of the write cache.
#[derive(Debug)]
struct Syncing {
    instance: Instance,
    idle: Option<Py<PyAny>>,
    first: Option<Py<PyAny>>,
    keeps_budget: bool,
    cold_share: f64,
    syncs_at_once: bool,
    protects: bool,
}

impl Syncing {
    fn new(instance: Instance) -> Self {
        Python::attach(|py| Self {
            idle: instance.method(py, "syncs_when_idle"),
            first: instance.method(py, "evicts_dirty_first"),
            keeps_budget: stated(py, &instance, "keeps_budget", true),
            cold_share: stated(py, &instance, "cold_share", 0.0),
            syncs_at_once: stated(py, &instance, "syncs_at_once", false),
            protects: stated(py, &instance, "protects", false),
            instance,
        })
    }

    fn ask(&self, method: Option<&Py<PyAny>>, cache: &CacheView) -> Result<bool, PolicyError> {
        Python::attach(|py| {
            self.instance.check(py)?;
            let Some(method) = method else { return Ok(false) };
            let &CacheView { dirty, writing, budget, capacity, oldest_dirty } = cache;
            let oldest_is_cold = match oldest_dirty {
                Coldness::None => None,
                Coldness::Warm => Some(false),
                Coldness::Cold => Some(true),
            };
            let counts = CacheCounts { dirty, writing, budget, capacity, oldest_is_cold };
            truth(&call(py, &self.instance, Some(method), (counts,))?)
        })
    }
}

impl SyncPolicy for Syncing {
    fn keeps_budget(&self) -> bool {
        self.keeps_budget
    }

    fn cold_share(&self) -> f64 {
        self.cold_share
    }

    fn syncs_at_once(&self) -> bool {
        self.syncs_at_once
    }

    fn syncs_when_idle(&self, cache: &CacheView) -> Result<bool, PolicyError> {
        self.ask(self.idle.as_ref(), cache)
    }

    fn evicts_dirty_first(&self, cache: &CacheView) -> Result<bool, PolicyError> {
        self.ask(self.first.as_ref(), cache)
    }

    fn protects(&self) -> bool {
        self.protects
    }
}

// ---------------------------------------------------------------------------------------------------- migration.policy

/// A migration policy.
#[derive(Debug)]
struct Migration {
    instance: Instance,
    copies_back: Option<Py<PyAny>>,
    watches_buffer: bool,
}

impl Migration {
    fn new(instance: Instance) -> Self {
        Python::attach(|py| Self {
            copies_back: instance.method(py, "copies_back"),
            watches_buffer: stated(py, &instance, "watches_buffer", false),
            instance,
        })
    }
}

impl MigrationPolicy for Migration {
    fn copies_back(&mut self, view: &VictimView) -> Result<bool, PolicyError> {
        Python::attach(|py| {
            let arguments = (view.is_urgent, view.buffer);
            truth(&call(py, &self.instance, self.copies_back.as_ref(), arguments)?)
        })
    }

    fn watches_buffer(&self) -> bool {
        self.watches_buffer
    }
}

// --------------------------------------------------------------------------------------------- ftl.map.demand.eviction

/// An eviction policy of the mapping cache.
#[derive(Debug)]
struct Mapped {
    watching: Watching,
    evict: Option<Py<PyAny>>,
}

impl Mapped {
    const HOOKS: &[&str] = &["on_insert", "on_hit", "on_level"];

    fn new(instance: Instance, entries: u32) -> Self {
        Python::attach(|py| {
            let _ = instance.object(py).setattr("capacity", entries);
            let evict = instance.method(py, "evict");
            Self { watching: Watching::new(py, instance, Self::HOOKS), evict }
        })
    }
}

impl MapEviction for Mapped {
    fn on_inserted(&mut self, lpn: Lpn, level: u8) {
        self.watching.add(0, lpn.0, level.into());
    }

    fn on_hit(&mut self, lpn: Lpn) {
        self.watching.add(1, lpn.0, 0);
    }

    fn on_level(&mut self, lpn: Lpn, level: u8) {
        self.watching.add(2, lpn.0, level.into());
    }

    fn evict(&mut self) -> Result<Lpn, PolicyError> {
        Python::attach(|py| {
            self.watching.before_decision(py)?;
            let answer = call(py, &self.watching.instance, self.evict.as_ref(), ())?;
            let wanted = "the LPN of a cached entry";
            number(&answer, wanted)?.map(Lpn).ok_or_else(|| Instance::impossible(&answer, wanted))
        })
    }
}

// ----------------------------------------------------------------------------------------------------------- ecc.start

/// A read, as a start policy sees it.
#[pyclass(frozen, module = "nandlab._core")]
pub(crate) struct FlashRead(ReadView);

#[pymethods]
impl FlashRead {
    #[classattr]
    const SLC: u8 = PageKind::Slc as u8;
    #[classattr]
    const LSB: u8 = PageKind::Lsb as u8;
    #[classattr]
    const CSB: u8 = PageKind::Csb as u8;
    #[classattr]
    const MSB: u8 = PageKind::Msb as u8;

    #[getter]
    fn now(&self) -> u64 {
        self.0.now.ns()
    }

    #[getter]
    fn lpn(&self) -> u32 {
        self.0.lpn.0
    }

    #[getter]
    fn block(&self) -> u32 {
        self.0.superblock.0
    }

    #[getter]
    fn unit(&self) -> u32 {
        self.0.index
    }

    #[getter]
    fn kind(&self) -> u8 {
        self.0.kind as u8
    }

    #[getter]
    fn reads(&self) -> u32 {
        self.0.reads
    }

    #[getter]
    fn erases(&self) -> u32 {
        self.0.hints.pe_cycles
    }

    #[getter]
    fn age_s(&self) -> u32 {
        self.0.hints.age_s
    }

    #[getter]
    fn levels(&self) -> u8 {
        self.0.levels
    }

    #[getter]
    fn unit_level(&self) -> u8 {
        self.0.hints.unit
    }

    #[getter]
    fn block_level(&self) -> u8 {
        self.0.hints.superblock
    }

    #[getter]
    fn drive_level(&self) -> u8 {
        self.0.hints.drive
    }

    #[getter]
    fn needed(&self) -> u8 {
        self.0.hints.needed
    }
}

/// A start policy.
#[derive(Debug)]
struct Starting {
    watching: Watching,
    start: Option<Py<PyAny>>,
    loads_block_level: bool,
}

impl Starting {
    const HOOKS: &[&str] = &["on_decoded", "on_erased"];

    fn new(instance: Instance) -> Self {
        Python::attach(|py| Self {
            start: instance.method(py, "start"),
            loads_block_level: stated(py, &instance, "loads_block_level", false),
            watching: Watching::new(py, instance, Self::HOOKS),
        })
    }
}

impl StartPolicy for Starting {
    fn level(&mut self, read: &ReadView) -> Result<u8, PolicyError> {
        Python::attach(|py| {
            self.watching.before_decision(py)?;
            let answer = call(py, &self.watching.instance, self.start.as_ref(), (FlashRead(*read),))?;
            let wanted = || format!("a read level from 1 to {}", read.levels);
            let level =
                number(&answer, "").ok().flatten().filter(|level| (1..=read.levels.into()).contains(level));
            level.map(|level| level as u8).ok_or_else(|| Instance::impossible(&answer, &wanted()))
        })
    }

    fn loads_superblock_level(&self) -> bool {
        self.loads_block_level
    }

    fn on_decoded(&mut self, superblock: SuperblockId, level: u8) {
        self.watching.add(0, superblock.0, level.into());
    }

    fn on_erased(&mut self, superblock: SuperblockId) {
        self.watching.add(1, superblock.0, 0);
    }
}

// ---------------------------------------------------------------------------------------------------------- ftl.streams

/// A policy that divides the host's writes into streams.
#[derive(Debug)]
struct Streaming {
    watching: Watching,
    stream: Option<Py<PyAny>>,
}

impl Streaming {
    const HOOKS: &[&str] = &["on_written", "on_opened", "on_erased"];

    fn new(instance: Instance) -> Self {
        Python::attach(|py| Self {
            stream: instance.method(py, "stream"),
            watching: Watching::new(py, instance, Self::HOOKS),
        })
    }
}

impl StreamPolicy for Streaming {
    fn class(&mut self, lpn: Lpn, written: u64) -> Result<u8, PolicyError> {
        Python::attach(|py| {
            self.watching.before_decision(py)?;
            let answer = call(py, &self.watching.instance, self.stream.as_ref(), (lpn.0, written))?;
            let wanted = "the number of a stream of the drive, from 0";
            let class = number(&answer, wanted)?.and_then(|class| u8::try_from(class).ok());
            class.ok_or_else(|| Instance::impossible(&answer, wanted))
        })
    }

    fn on_written(&mut self, lpn: Lpn, class: u8, superblock: SuperblockId, opened: bool) {
        self.watching.add(0, lpn.0, class.into());
        if opened {
            self.watching.add(1, superblock.0, class.into());
        }
    }

    fn on_erased(&mut self, superblock: SuperblockId, _written: u64) {
        self.watching.add(2, superblock.0, 0);
    }
}
