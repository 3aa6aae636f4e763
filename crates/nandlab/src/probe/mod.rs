//! `Probe`: the trait with which an observer follows the events of a drive. A drive is generic over its probe; with
//! [`NoProbe`] the calls compile to nothing.

use crate::base::geometry::{Lpn, RequestId};
use crate::base::lost::{Lost, Recovered};
use crate::base::request::{Completion, Request};
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

    /// A request has been submitted. `slot` belongs to the request until it completes or power fails. `id` is the
    /// number of the request. `operations` is the number of flash operations queued before.
    #[inline(always)]
    fn on_submitted(&mut self, _slot: RequestId, _id: u64, _request: &Request, _operations: u64) {}

    /// The warm-up is over and the results begin. `operations` is the number of flash operations queued before.
    #[inline(always)]
    fn on_results(&mut self, _operations: u64) {}

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

/// Two probes that both observe the drive.
impl<A: Probe, B: Probe> Probe for (A, B) {
    fn needs_sequences(&self) -> bool {
        self.0.needs_sequences() || self.1.needs_sequences()
    }

    fn on_submitted(&mut self, slot: RequestId, id: u64, request: &Request, operations: u64) {
        self.0.on_submitted(slot, id, request, operations);
        self.1.on_submitted(slot, id, request, operations);
    }
    fn on_results(&mut self, operations: u64) {
        self.0.on_results(operations);
        self.1.on_results(operations);
    }
    fn on_write_admitted(&mut self, request: Option<RequestId>, lpn: Lpn, sequence: u64) {
        self.0.on_write_admitted(request, lpn, sequence);
        self.1.on_write_admitted(request, lpn, sequence);
    }
    fn on_write_acknowledged(&mut self, lpn: Lpn, sequence: u64) {
        self.0.on_write_acknowledged(lpn, sequence);
        self.1.on_write_acknowledged(lpn, sequence);
    }
    fn on_write_durable(&mut self, lpn: Lpn, sequence: u64) {
        self.0.on_write_durable(lpn, sequence);
        self.1.on_write_durable(lpn, sequence);
    }
    fn on_flush_asked(&mut self, id: u64) {
        self.0.on_flush_asked(id);
        self.1.on_flush_asked(id);
    }
    fn on_flushed(&mut self, id: u64, from_cache: bool) {
        self.0.on_flushed(id, from_cache);
        self.1.on_flushed(id, from_cache);
    }
    fn on_power_off(&mut self, failed: Time, off: Time) {
        self.0.on_power_off(failed, off);
        self.1.on_power_off(failed, off);
    }
    fn on_power_loss(&mut self, lost: &[Lost], recovered: &Recovered<'_>) {
        self.0.on_power_loss(lost, recovered);
        self.1.on_power_loss(lost, recovered);
    }
    fn on_fua_cached(&mut self, lpn: Lpn, sequence: u64) {
        self.0.on_fua_cached(lpn, sequence);
        self.1.on_fua_cached(lpn, sequence);
    }
    fn on_trimmed(&mut self, request: RequestId, lpn: Lpn, sequence: u64) {
        self.0.on_trimmed(request, lpn, sequence);
        self.1.on_trimmed(request, lpn, sequence);
    }
    fn on_read_asked(&mut self, request: RequestId, lpn: Lpn) {
        self.0.on_read_asked(request, lpn);
        self.1.on_read_asked(request, lpn);
    }
    fn on_decode(&mut self, start: Time, end: Time, channel: u32, level: u8, transaction: &Transaction) {
        self.0.on_decode(start, end, channel, level, transaction);
        self.1.on_decode(start, end, channel, level, transaction);
    }
    fn on_read_failed(&mut self, request: RequestId, lpn: Lpn) {
        self.0.on_read_failed(request, lpn);
        self.1.on_read_failed(request, lpn);
    }
    fn on_read_answered(&mut self, request: RequestId, lpn: Lpn, sequence: Option<u64>) {
        self.0.on_read_answered(request, lpn, sequence);
        self.1.on_read_answered(request, lpn, sequence);
    }
    fn on_completed(&mut self, slot: RequestId, done: &Completion) {
        self.0.on_completed(slot, done);
        self.1.on_completed(slot, done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::geometry::DieId;
    use crate::base::units::Span;
    use crate::drive::spec;
    use crate::drive::{Drive, IDLE_LIMIT};
    use crate::host::Op;
    use crate::sched::Phase;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// If the pair of probes did not pass on a method, that method would do nothing in a pair, without an error.
    #[test]
    fn a_pair_of_probes_passes_on_every_method() {
        pair_passes_on(include_str!("mod.rs"), 10);
        pair_passes_on(include_str!("../sched/watcher.rs"), 4);
    }

    /// Records the name of each event.
    #[derive(Debug, Default)]
    struct Names(Vec<&'static str>);

    macro_rules! record {
        ($($method:ident($($argument:ty),*);)+) => {$(
            fn $method(&mut self, $(_: $argument),*) {
                self.0.push(stringify!($method));
            }
        )+};
    }

    impl Watcher for Names {
        record! {
            on_issue(Time, DieId, &Transaction);
            on_joined(Time, DieId, &Transaction, &Transaction);
            on_phase(Time, Time, DieId, u32, Phase, &Transaction);
            on_suspend(Time, Time, DieId);
            on_resume(Time, DieId);
        }
    }

    impl Probe for Names {
        fn needs_sequences(&self) -> bool {
            true
        }

        record! {
            on_submitted(RequestId, u64, &Request, u64);
            on_write_admitted(Option<RequestId>, Lpn, u64);
            on_write_durable(Lpn, u64);
            on_flush_asked(u64);
            on_flushed(u64, bool);
            on_power_off(Time, Time);
            on_power_loss(&[Lost], &Recovered<'_>);
            on_write_acknowledged(Lpn, u64);
            on_trimmed(RequestId, Lpn, u64);
            on_read_asked(RequestId, Lpn);
            on_read_answered(RequestId, Lpn, Option<u64>);
            on_read_failed(RequestId, Lpn);
            on_decode(Time, Time, u32, u8, &Transaction);
            on_completed(RequestId, &Completion);
        }
    }

    #[test]
    fn both_probes_of_a_pair_observe_every_event() {
        let text = "[drive]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 2\n\
                    blocks_per_plane = 16\npages_per_block = 8\npage_size = '4KiB'\nop = 0.5\n[timing]\nmulti_plane = true\n\
                    suspend.program = { enter = '9us', resume = '4us', min_progress = '0us', max = 1 }\n\
                    [ftl]\nallocation = 'PCWD'\n[ecc]\nlevels = 'laldpc'\n[reliability]\nrber = 'vth'\nread_disturb = 1e-3\n";
        let spec = spec::load(text, "test.toml", Path::new("."), &[]).expect("the spec is valid").spec;
        let mut drive = Drive::with_probe(&spec, (Names::default(), Names::default()));
        let mut submit = |op: Op, pages: u64| {
            let len = if op == Op::Flush { 0 } else { pages * 4096 };
            let request = Request { arrival: drive.now(), op, fua: false, offset: 0, len };
            drive.submit(&request).expect("the request fits");
            drive.run_until_idle(IDLE_LIMIT).expect("the drive comes to rest");
        };
        submit(Op::Write, 4);
        // Each read adds 0.001 to the RBER. The last read level does not decode an RBER of 0.013.
        for _ in 0..16 {
            submit(Op::Read, 1);
        }
        submit(Op::Flush, 0);
        submit(Op::Trim, 1);
        // A read suspends a program.
        let request =
            |op: Op, offset: u64, now: Time| Request { arrival: now, op, fua: false, offset, len: 4096 };
        drive.submit(&request(Op::Write, 0, drive.now())).expect("the request fits");
        drive.advance(drive.now() + Span::from_ns(100_000));
        drive.submit(&request(Op::Read, 4096, drive.now())).expect("the request fits");
        drive.run_until_idle(IDLE_LIMIT).expect("the drive comes to rest");
        drive.cut_power();
        let (first, second) = drive.probe();
        assert_eq!(first.0, second.0);
        let seen: BTreeSet<&str> = first.0.iter().copied().collect();
        assert_eq!(seen.len(), 19, "{seen:?}");
    }

    fn pair_passes_on(source: &str, more_than: usize) {
        let source = source.split("#[cfg(test)]").next().expect("the tests come last");
        let (of_trait, of_pair) =
            source.split_once("for (A, B)").expect("there is an implementation for pairs");
        let names = |text: &str| -> Vec<String> {
            let mut names: Vec<String> = text
                .split("    fn on_")
                .skip(1)
                .map(|rest| format!("on_{}", rest.split('(').next().unwrap()))
                .collect();
            names.sort();
            names
        };
        let all = names(of_trait);
        assert!(all.len() > more_than, "{all:?}");
        assert_eq!(names(of_pair), all);
        assert_eq!(of_trait.matches("    #[inline(always)]\n    fn on_").count(), all.len());
        for name in &all {
            for part in 0..2 {
                assert_eq!(of_pair.matches(&format!("self.{part}.{name}(")).count(), 1, "{name}");
            }
        }
    }
}
