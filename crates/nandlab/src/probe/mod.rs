//! `Probe`: the trait with which an observer follows the events of a drive. A drive is generic over its probe; with
//! [`NoProbe`] the calls compile to nothing.

use crate::base::geometry::{Lpn, RequestId};
use crate::base::lost::{Lost, Recovered};
use crate::base::request::{Completion, Request};
use crate::base::state::{StateError, StateReader, StateWriter};
use crate::base::units::Time;
use crate::sched::{Transaction, Watcher};
use std::any::Any;

/// Observes a drive: each event calls one method once. A method does nothing unless overridden. With a host link
/// (`host.link`), `on_read_asked`, `on_flush_asked` and `on_trimmed` are called when the request has reached the drive,
/// and `on_completed` when the host has the completion.
pub trait Probe: Watcher + Any + Send + Sync {
    /// Whether the probe needs sequence numbers in the OOB (`Keeps::sequences`). The answer never changes.
    #[inline(always)]
    fn needs_sequences(&self) -> bool {
        false
    }

    /// Whether the probe observes how the drive works: the stages of requests in the drive, flash operations and their
    /// phases, accesses to DRAM and timers. If not, a set of observers may leave the methods of [`Watcher`] out, and
    /// `on_reached`, `on_begun`, `on_done`, `on_queued`, `on_ended`, `on_access`, `on_accessed`, `on_timer` and
    /// `on_decode`. The answer never changes.
    #[inline(always)]
    fn sees_work(&self) -> bool {
        true
    }

    /// Writes what the probe has to remember in a checkpoint of its drive. A probe that writes nothing begins anew in the
    /// restored drive.
    fn save(&self, _out: &mut StateWriter<'_>) {}

    /// Restores what [`Probe::save`] has written.
    ///
    /// # Errors
    /// When reading fails, or the bytes are not such a state.
    fn load(&mut self, _from: &mut StateReader<'_>) -> Result<(), StateError> {
        Ok(())
    }

    /// A request has been submitted. `slot` belongs to the request until it completes or power fails. `id` is the
    /// number of the request. `operations` is the number of flash operations queued before.
    #[inline(always)]
    fn on_submitted(&mut self, _slot: RequestId, _id: u64, _request: &Request, _operations: u64) {}

    /// The warm-up is over and the results begin. `operations` is the number of flash operations queued before.
    #[inline(always)]
    fn on_results(&mut self, _operations: u64) {}

    /// The request in `slot` has reached the drive: its command goes to the controller.
    #[inline(always)]
    fn on_reached(&mut self, _now: Time, _slot: RequestId) {}

    /// The drive begins the request in `slot`: it has crossed the link, and the controller has worked on its command.
    #[inline(always)]
    fn on_begun(&mut self, _now: Time, _slot: RequestId) {}

    /// The drive has done the request in `slot`; its completion goes to the host.
    #[inline(always)]
    fn on_done(&mut self, _now: Time, _slot: RequestId) {}

    /// A flash operation, or another try of a read, has been queued on its die.
    #[inline(always)]
    fn on_queued(&mut self, _now: Time, _transaction: &Transaction) {}

    /// A flash operation has ended, a read with its last try. Its owner is notified next, and what the drive does until
    /// the next event follows from this end.
    #[inline(always)]
    fn on_ended(&mut self, _now: Time, _transaction: &Transaction) {}

    /// An access of the request in `slot` to the DRAM of the write cache runs until `end`. Accesses end in the order in
    /// which they begin.
    #[inline(always)]
    fn on_access(&mut self, _now: Time, _end: Time, _slot: RequestId) {}

    /// The access that began first has ended.
    #[inline(always)]
    fn on_accessed(&mut self, _slot: RequestId) {}

    /// The drive acts because of a time that has come, such as that of idleness, and not because of a request or the end
    /// of an operation.
    #[inline(always)]
    fn on_timer(&mut self, _now: Time) {}

    /// A write of `lpn` by the host request in slot `request` has been admitted: from now on the write is the newest
    /// data of `lpn`. `None`: the unit is written without a request and without simulated time.
    #[inline(always)]
    fn on_write_admitted(&mut self, _request: Option<RequestId>, _lpn: Lpn, _sequence: u64) {}

    /// The host write of `lpn` has been programmed: power loss cannot lose it any more.
    #[inline(always)]
    fn on_write_durable(&mut self, _lpn: Lpn, _sequence: u64) {}

    /// A flush has reached the drive; `id` is the number of the request.
    #[inline(always)]
    fn on_flush_asked(&mut self, _id: u64) {}

    /// The flush with this request number is complete. `from_cache`: the data that it covers may be only in the write
    /// cache, which the capacitor saves.
    #[inline(always)]
    fn on_flushed(&mut self, _id: u64, _from_cache: bool) {}

    /// Power failed at `failed`. All requests and all decoding ended at that time. The last operation on a die ended,
    /// or was torn, at `off`.
    #[inline(always)]
    fn on_power_off(&mut self, _failed: Time, _off: Time) {}

    /// Power has failed and is back. `lost` has the units about which promises to the host are broken, by LPN.
    /// `recovered` is the drive after recovery.
    #[inline(always)]
    fn on_power_loss(&mut self, _lost: &[Lost], _recovered: &Recovered<'_>) {}

    /// A FUA write of `lpn` is about to be acknowledged from the write cache, which the capacitor saves.
    #[inline(always)]
    fn on_fua_cached(&mut self, _lpn: Lpn, _sequence: u64) {}

    /// A host write of `lpn` is about to be acknowledged: it is in flash, or in the write cache.
    #[inline(always)]
    fn on_write_acknowledged(&mut self, _lpn: Lpn, _sequence: u64) {}

    /// The request in slot `request` has deallocated `lpn` with this sequence number. Writes and deallocations share one
    /// numbering.
    #[inline(always)]
    fn on_trimmed(&mut self, _request: RequestId, _lpn: Lpn, _sequence: u64) {}

    /// A read of `lpn` has reached the drive; `request` is the slot of the request.
    #[inline(always)]
    fn on_read_asked(&mut self, _request: RequestId, _lpn: Lpn) {}

    /// A read of `lpn` is answered with the data of the write with this sequence number; `None`: `lpn` was never
    /// written, or has been deallocated.
    #[inline(always)]
    fn on_read_answered(&mut self, _request: RequestId, _lpn: Lpn, _sequence: Option<u64>) {}

    /// A read of `lpn` fails, because no read level decodes its unit or its translation page, or the data has been
    /// lost.
    #[inline(always)]
    fn on_read_failed(&mut self, _request: RequestId, _lpn: Lpn) {}

    /// The decoder of a read level decodes the units of a read from `start` to `end`.
    #[inline(always)]
    fn on_decode(&mut self, _start: Time, _end: Time, _channel: u32, _level: u8, _transaction: &Transaction) {
    }

    /// The request in `slot` has completed. [`Probe::on_power_off`] ends all outstanding requests without a call of
    /// this method.
    #[inline(always)]
    fn on_completed(&mut self, _slot: RequestId, _done: &Completion) {}
}

/// A probe that observes nothing and takes no time.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProbe;

impl Watcher for NoProbe {
    #[inline(always)]
    fn sees_phases(&self) -> bool {
        false
    }
}

impl Probe for NoProbe {}
