//! The observer of a simulated drive that knows the data of each version.
//!
//! It keeps the payload of a write as a version of each of its units when the drive admits the unit, and copies the data of a
//! read when the drive answers a unit with a version. So a read returns what the drive says, whatever the drive has done with
//! the unit since it was written.

use std::collections::{BTreeSet, VecDeque};

use nandlab::base::lost::{Lost, Promise, Recovered};
use nandlab::base::state::{State, StateError, StateReader, StateWriter, Value};
use nandlab::host::{Completion, Op, Request};
use nandlab::probe::Probe;
use nandlab::sched::Watcher;
use nandlab_base::base::huge::Huge;
use nandlab_base::base::ids::{Lpn, RequestId};
use nandlab_base::base::units::Time;

use crate::backend::{Errno, Failure};
use crate::contents::Contents;
use crate::simulated::checkpoint::Session;

/// Data beyond this number of bytes keeps no memory when its request has ended.
const KEEP: usize = 1 << 20;
/// The most buffers that are kept for later requests.
const SPARE_MAX: usize = 512;

pub(super) const UNREADABLE: &str = "the data has been lost, or cannot be read any more";
const NO_ROOM: &str = "there is no room for the data of the drive";

/// What a request is for, so that its end finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The request of a client, by the id that the server gave it.
    Client(u64),
    /// A step of a job, by the key of the job.
    Job(u64),
    /// A request that is played from a recording.
    Nobody,
}

/// An outstanding request of the drive.
#[derive(Debug)]
struct Outstanding {
    purpose: Purpose,
    op: Op,
    offset: u64,
    len: u64,
    /// The payload of a write; empty for zeros. The data of a read.
    data: Vec<u8>,
    /// Units of a write that are not admitted.
    left: u64,
    failure: Option<Failure>,
}

/// The end of a request in the drive, in the order of [`nandlab::drive::Drive::completions`].
#[derive(Debug)]
pub(super) struct Ended {
    /// The number of the request in the drive.
    pub(super) number: u64,
    pub(super) purpose: Purpose,
    /// The data of a read; empty otherwise.
    pub(super) data: Vec<u8>,
    pub(super) failure: Option<Failure>,
}

/// The observer.
#[derive(Debug)]
pub(super) struct Data {
    pub(super) contents: Contents,
    unit_bytes: u64,
    /// By LPN the version of its newest write; 0: deallocated, or not written since preconditioning.
    newest: Huge<u64>,
    /// Versions whose data could not be kept, lacks bytes that are lost, or is in the place of newer data that a power loss
    /// has destroyed. Version 0 stands for no data.
    unreadable: BTreeSet<(u32, u64)>,
    /// What the next request that is submitted is for, with the payload of a write.
    given: Option<(Purpose, Vec<u8>)>,
    /// By slot of the drive.
    outstanding: Vec<Option<Outstanding>>,
    /// Units of outstanding writes that are not admitted.
    reserved: u64,
    ended: VecDeque<Ended>,
    spare: Vec<Vec<u8>>,
    /// Versions written since versions that nobody can read were last dropped.
    pub(super) written: u64,
    /// Times that power has failed.
    pub(super) power_losses: u64,
    /// Units about which the last power loss has broken a promise.
    pub(super) lost: Vec<Lost>,
    zeros: Vec<u8>,
    /// Of a checkpoint: what the session has to remember.
    pub(super) session: Session,
}

/// A search for versions that nobody can read any more.
#[derive(Debug)]
pub(super) struct Sweep {
    contents: Contents,
    newest: Huge<u64>,
}

impl Sweep {
    /// Drops the versions that are neither among those of `in_flash` nor the newest one of their LPN.
    pub(super) fn retain(&mut self, in_flash: impl Iterator<Item = (Lpn, u64)>) {
        let newest = self.newest.iter().zip(0..).filter(|&(&version, _)| version > 0);
        self.contents.retain_only(in_flash.chain(newest.map(|(&version, lpn)| (Lpn(lpn), version))));
    }
}

impl Data {
    /// The most bytes of memory for `units` logical units: the newest version of each, and their copy in a [`Sweep`].
    pub(super) fn bytes_max(units: u64) -> u64 {
        2 * size_of::<u64>() as u64 * units
    }

    pub(super) fn new(units: u32, contents: Contents) -> Self {
        let unit_bytes = contents.unit_bytes();
        Self {
            contents,
            unit_bytes: unit_bytes.into(),
            newest: Huge::zeroed(units as usize),
            unreadable: BTreeSet::new(),
            given: None,
            outstanding: Vec::new(),
            reserved: 0,
            ended: VecDeque::new(),
            spare: Vec::new(),
            written: 0,
            power_losses: 0,
            lost: Vec::new(),
            zeros: vec![0; unit_bytes as usize],
            session: Session::default(),
        }
    }

    /// A buffer without bytes.
    fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes a buffer back.
    pub(super) fn give_back(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() > 0 && buffer.capacity() <= KEEP && self.spare.len() < SPARE_MAX {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// Makes sure that there is room for a write of `units` units with data.
    pub(super) fn reserve(&mut self, units: u64) -> bool {
        self.contents.reserve(self.reserved + units).is_ok()
    }

    /// The next request that is submitted is for `purpose`. A write without payload writes zeros.
    pub(super) fn give(&mut self, purpose: Purpose, payload: &[u8]) {
        let mut buffer = self.buffer();
        buffer.extend_from_slice(payload);
        self.given = Some((purpose, buffer));
    }

    /// The request that was given was refused.
    pub(super) fn take_given_back(&mut self) {
        if let Some((_, buffer)) = self.given.take() {
            self.give_back(buffer);
        }
    }

    /// The next request that has ended, if it is this one.
    pub(super) fn ended_as(&mut self, number: u64) -> Option<Ended> {
        self.ended.pop_front_if(|ended| ended.number == number)
    }

    /// Whether a version cannot be read, although the drive has it.
    pub(super) fn is_unreadable(&self, lpn: Lpn, version: u64) -> bool {
        self.unreadable.contains(&(lpn.0, version))
    }

    /// The newest version of an LPN; 0: none, or that of preconditioning.
    pub(super) fn newest(&self, lpn: Lpn) -> u64 {
        self.newest[lpn.index()]
    }

    /// The number of units.
    pub(super) fn units(&self) -> u32 {
        self.newest.len() as u32
    }

    /// Ends all outstanding requests without a completion, and returns what they were for.
    pub(super) fn abandon(&mut self) -> Vec<Purpose> {
        self.reserved = 0;
        let ended: Vec<Outstanding> = self.outstanding.iter_mut().filter_map(Option::take).collect();
        ended
            .into_iter()
            .map(|request| {
                self.give_back(request.data);
                request.purpose
            })
            .collect()
    }

    /// Takes away what a sweep needs, so that it may look at the drive.
    pub(super) fn begin_sweep(&mut self) -> Sweep {
        let empty = Contents::new(0, self.unit_bytes as u32, 0);
        let contents = std::mem::replace(&mut self.contents, empty);
        Sweep { contents, newest: std::mem::replace(&mut self.newest, Huge::zeroed(0)) }
    }

    /// Takes back what [`Data::begin_sweep`] has given away.
    pub(super) fn end_sweep(&mut self, sweep: Sweep) {
        (self.contents, self.newest, self.written) = (sweep.contents, sweep.newest, 0);
    }

    /// The part of a request that is in a unit: its first byte in the request, its first byte in the unit, its length.
    fn part(&self, offset: u64, len: u64, lpn: Lpn) -> (usize, u32, usize) {
        let start = u64::from(lpn.0) * self.unit_bytes;
        let (from, to) = (offset.max(start), (offset + len).min(start + self.unit_bytes));
        ((from - offset) as usize, (from - start) as u32, (to - from) as usize)
    }

    /// The outstanding request in a slot.
    fn of(&mut self, slot: RequestId) -> Option<&mut Outstanding> {
        self.outstanding.get_mut(slot.index())?.as_mut()
    }

    /// Keeps the data of a unit that the drive has admitted.
    fn admit(&mut self, request: &mut Outstanding, lpn: Lpn, version: u64) {
        let (first, at, len) = self.part(request.offset, request.len, lpn);
        let data =
            if request.data.is_empty() { &self.zeros[..len] } else { &request.data[first..first + len] };
        let before = self.newest[lpn.index()];
        let is_whole = len as u64 == self.unit_bytes;
        let lacks = !is_whole && self.is_unreadable(lpn, before);
        if !self.unreadable.is_empty() {
            self.unreadable.remove(&(lpn.0, version));
        }
        let kept = if is_whole {
            self.contents.write(lpn, version, data)
        } else {
            self.contents.write_part(lpn, version, (before > 0).then_some(before), at, data)
        };
        if kept.is_err() {
            request.failure.get_or_insert(Failure::new(Errno::NoSpace, NO_ROOM));
        }
        if kept.is_err() || lacks {
            self.unreadable.insert((lpn.0, version));
        }
        self.newest[lpn.index()] = version;
        self.written += 1;
        self.reserved -= u64::from(request.left > 0);
        request.left = request.left.saturating_sub(1);
    }

    /// Copies the data with which the drive answers a unit of a read.
    fn answer(&mut self, request: &mut Outstanding, lpn: Lpn, version: Option<u64>) {
        let (first, at, len) = self.part(request.offset, request.len, lpn);
        let out = &mut request.data[first..first + len];
        let is_read = !self.unreadable.contains(&(lpn.0, version.unwrap_or(0)))
            && match version {
                None | Some(0) => {
                    out.fill(0);
                    true
                }
                Some(version) => self.contents.read_into(lpn, version, at, out).is_ok(),
            };
        if !is_read {
            self.fail(request, lpn);
        }
    }

    /// A unit of a read cannot be read.
    fn fail(&self, request: &mut Outstanding, lpn: Lpn) {
        let at = request.offset.max(u64::from(lpn.0) * self.unit_bytes);
        let first = request.failure.and_then(|failure| failure.at).map_or(at, |other| other.min(at));
        request.failure = Some(Failure { errno: Errno::Io, at: Some(first), text: UNREADABLE });
    }

    /// Calls `change` with a request that is out of its slot meanwhile.
    fn with(&mut self, slot: RequestId, change: impl FnOnce(&mut Self, &mut Outstanding)) {
        let Some(mut request) = self.outstanding.get_mut(slot.index()).and_then(Option::take) else { return };
        change(self, &mut request);
        self.outstanding[slot.index()] = Some(request);
    }
}

impl Watcher for Data {
    fn sees_phases(&self) -> bool {
        false
    }
}

impl Probe for Data {
    fn needs_sequences(&self) -> bool {
        true
    }

    fn sees_work(&self) -> bool {
        false
    }

    /// No request is outstanding at a checkpoint.
    fn save(&self, out: &mut StateWriter<'_>) {
        self.session.save(out);
        self.newest.save_state(out);
        self.unreadable.save_state(out);
        self.written.save(out);
        self.power_losses.save(out);
        self.contents.save(out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        self.session = Value::load(from)?;
        self.newest.load_state(from)?;
        self.unreadable.load_state(from)?;
        self.written = Value::load(from)?;
        self.power_losses = Value::load(from)?;
        self.contents.load(from)
    }

    fn on_submitted(&mut self, slot: RequestId, _id: u64, request: &Request, _operations: u64) {
        let Some((purpose, mut data)) = self.given.take() else { return };
        let mut left = 0;
        match request.op {
            Op::Read => data.resize(request.len as usize, 0),
            Op::Write => {
                left = (request.offset + request.len).div_ceil(self.unit_bytes)
                    - request.offset / self.unit_bytes;
                self.reserved += left;
            }
            Op::Trim | Op::Flush => {}
        }
        if self.outstanding.len() <= slot.index() {
            self.outstanding.resize_with(slot.index() + 1, || None);
        }
        let (op, offset, len) = (request.op, request.offset, request.len);
        self.outstanding[slot.index()] =
            Some(Outstanding { purpose, op, offset, len, data, left, failure: None });
    }

    fn on_write_admitted(&mut self, request: Option<RequestId>, lpn: Lpn, version: u64) {
        match request {
            Some(slot) if self.of(slot).is_some() => {
                self.with(slot, |data, request| data.admit(request, lpn, version));
            }
            // Preconditioning writes zeros.
            _ => self.newest[lpn.index()] = version,
        }
    }

    fn on_trimmed(&mut self, _request: RequestId, lpn: Lpn, _sequence: u64) {
        self.newest[lpn.index()] = 0;
        self.unreadable.remove(&(lpn.0, 0));
    }

    fn on_read_answered(&mut self, slot: RequestId, lpn: Lpn, version: Option<u64>) {
        self.with(slot, |data, request| data.answer(request, lpn, version));
    }

    fn on_read_failed(&mut self, slot: RequestId, lpn: Lpn) {
        self.with(slot, |data, request| data.fail(request, lpn));
    }

    fn on_completed(&mut self, slot: RequestId, done: &Completion) {
        let Some(request) = self.outstanding.get_mut(slot.index()).and_then(Option::take) else { return };
        let Outstanding { purpose, op, mut data, left, failure, .. } = request;
        self.reserved -= left;
        if op != Op::Read {
            self.give_back(std::mem::take(&mut data));
        }
        self.ended.push_back(Ended { number: done.id, purpose, data, failure });
    }

    fn on_power_off(&mut self, _failed: Time, _off: Time) {
        self.abandon();
        self.power_losses += 1;
    }

    fn on_power_loss(&mut self, lost: &[Lost], recovered: &Recovered<'_>) {
        let version = |lpn| match (recovered.content)(lpn) {
            nandlab::base::lost::Content::Write(version) => version,
            _ => 0,
        };
        match recovered.changed {
            Some(changed) => {
                changed.iter().filter(|lpn| lpn.0 < recovered.units).for_each(|&lpn| {
                    self.newest[lpn.index()] = version(lpn);
                });
                debug_assert!(self.newest.iter().zip(0..).all(|(&newest, lpn)| newest == version(Lpn(lpn))));
            }
            None => {
                let lpns = (0..).map(Lpn);
                self.newest.iter_mut().zip(lpns).for_each(|(newest, lpn)| *newest = version(lpn));
            }
        }
        self.lost.clear();
        self.lost.extend_from_slice(lost);
        // What a flush covers and what was in flash must not read as older data or zeros without an error.
        let is_error = |lost: &&Lost| {
            !lost.is_trim
                && (lost.promise == Promise::Covered
                    || lost.promise == Promise::Acknowledged && lost.was_in_flash)
        };
        let newest = &self.newest;
        self.unreadable
            .extend(lost.iter().filter(is_error).map(|lost| (lost.lpn.0, newest[lost.lpn.index()])));
    }
}
