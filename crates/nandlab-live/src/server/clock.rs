//! The clock of the server, and the timer that ends a wait.

use nandlab_base::base::units::Time;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io;
use rustix::time::{ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

/// Nanoseconds of a second.
pub(super) const SECOND: u64 = 1_000_000_000;

/// The time since the server began to run, by the monotonic clock of the system. A live drive serves real programs, so
/// this is the one place where a wall clock is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start_ns: u64,
}

/// Nanoseconds of the monotonic clock.
fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

impl Clock {
    /// A clock that begins now.
    pub(super) fn start() -> Self {
        Self { start_ns: monotonic_ns() }
    }

    /// The present time.
    pub(super) fn now(&self) -> Time {
        Time::from_ns(monotonic_ns() - self.start_ns)
    }
}

/// A timer that becomes readable at a time. A timer of the kernel is not subject to the slack of 50 us that the timeouts of
/// epoll_wait and ppoll have (prctl(2), PR_SET_TIMERSLACK).
#[derive(Debug)]
pub(super) struct Timer {
    fd: OwnedFd,
    /// The time for which it is set.
    at: Option<Time>,
}

impl Timer {
    /// A timer that is not set.
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Self { fd: rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?, at: None })
    }

    /// Sets the timer, or with `None` lets it never become readable. It is not readable until then.
    pub(super) fn set(&mut self, clock: &Clock, at: Option<Time>) -> io::Result<()> {
        if self.at == at {
            return Ok(());
        }
        // An absolute time of 0 would turn the timer off; the clock of the system is beyond it.
        let ns = at.map_or(0, |at| clock.start_ns.saturating_add(at.ns()).min(i64::MAX as u64));
        let it_value = Timespec { tv_sec: (ns / SECOND) as i64, tv_nsec: (ns % SECOND) as _ };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::time::timerfd_settime(
            &self.fd,
            TimerfdTimerFlags::ABSTIME,
            &Itimerspec { it_interval, it_value },
        )?;
        self.at = at;
        Ok(())
    }

    /// The time for which the timer is set.
    pub(super) fn at(&self) -> Option<Time> {
        self.at
    }

    /// Makes the timer unreadable after its time has come.
    pub(super) fn rang(&mut self) {
        let mut count = [0; 8];
        // Nothing to read means that the timer was set again meanwhile.
        let _ = rustix::io::read(&self.fd, &mut count);
        self.at = None;
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
