//! One thread that serves a [`Backend`] to many clients.
//!
//! The thread waits in epoll for clients, for the next event of the backend, and for [`Stop`]. What one wait reports is
//! served as a whole: every client's requests are submitted first, then the backend works, and the replies of a client are
//! sent together. Sending each reply on its own would cost a system call a request.

mod acks;
mod clock;
mod lateness;
mod listen;
mod orders;
mod pauses;
mod publish;

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;

use nandlab_base::base::units::{Span, Time};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec};
use rustix::fd::OwnedFd;
use rustix::io::Errno as SystemError;
use rustix::net::{RecvFlags, SendFlags};

use crate::backend::{Backend, Extent, Op, Order, Pace};
use crate::nbd::{Call, Command, Export, ExportError, Session};
use crate::slots::Slots;
use crate::snapshot::Client;
use acks::Acks;
use clock::{Clock, SECOND, Timer};
use lateness::Lateness;
pub use listen::{ListenError, Listener};
use orders::{Line, Orderer};
use pauses::Pauses;
pub use publish::{Publisher, Window, window};
use serde_json::{Value, json};

/// Bytes of replies that are sent before further answers are asked for. So many are still in the processor's cache.
const SEND: usize = 256 << 10;

/// epoll's data of the timer. No connection has such a key, since a place with this number would need 2^32 connections.
const TIMER: u64 = u64::MAX;
/// epoll's data of [`Stop`].
const STOP: u64 = u64::MAX - 1;
/// epoll's data of the last listener; that of the listener n is n less.
const LISTENER: u64 = u64::MAX - 2;
/// The most listeners of a server.
const LISTENERS_MAX: u64 = 64;
/// epoll's data of the listener for orders.
const ORDER_LISTENER: u64 = LISTENER - LISTENERS_MAX;
/// epoll's data of the pipe of acknowledged lines.
const ACKS: u64 = ORDER_LISTENER - 1;
/// In epoll's data of a connection that gives orders, beside its key.
const ORDERER: u64 = 1 << 63;
/// The most connections that give orders at a time.
const ORDERERS_MAX: usize = 16;

/// How a [`Server`] treats its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The most connections at a time. Further clients wait until one is closed.
    pub connections_max: usize,
    /// The limit in bytes of the replies of one connection that are not sent yet, with those of outstanding requests. A
    /// client that does not read is left waiting from then on. A single reply may be longer.
    pub buffer_max: u64,
    /// The time that a client has for the handshake, after which it is disconnected.
    pub handshake_max: Span,
    /// The time that outstanding requests have when the server is stopped, after which their clients are disconnected.
    pub grace: Span,
    /// The length of the pauses in which requests gather, if the backend waits for no time; 0 for none. Pauses are made
    /// while clients have so many requests outstanding that this saves processor time and costs no throughput.
    pub pause: Span,
    /// The longest time for which the time of a backend with [`Pace::Clients`] waits for a client that has fewer requests
    /// outstanding than before and sends nothing. Each wait in vain halves it, down to a tenth, and each other wait doubles it.
    pub patience: Span,
    /// The server polls without sleeping when the next event of the backend is at most this far away.
    pub spin: Span,
}

impl Default for Settings {
    /// 64 connections, 64 MiB of replies each, 30 s for a handshake, 5 s of grace, pauses of 20 us, 10 ms of
    /// patience, no spinning.
    fn default() -> Self {
        Self {
            connections_max: 64,
            buffer_max: 64 << 20,
            handshake_max: Span::from_ns(30 * SECOND),
            grace: Span::from_ns(5 * SECOND),
            pause: Span::from_ns(20_000),
            patience: Span::from_ns(10_000_000),
            spin: Span::ZERO,
        }
    }
}

/// Why a [`Server`] cannot run.
#[derive(Debug)]
pub enum ServeError {
    /// The export is not possible.
    Export(ExportError),
    /// A server has from 1 to 64 listeners.
    Listeners(usize),
    /// The system refuses something without which no client can be served.
    System(io::Error),
}

impl std::fmt::Display for ServeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Export(error) => error.fmt(f),
            Self::Listeners(number) => {
                write!(f, "a server has from 1 to {LISTENERS_MAX} listeners, not {number}")
            }
            Self::System(error) => write!(f, "the server cannot wait for its clients: {error}"),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Export(error) => Some(error),
            Self::Listeners(_) => None,
            Self::System(error) => Some(error),
        }
    }
}

impl From<SystemError> for ServeError {
    fn from(error: SystemError) -> Self {
        Self::System(error.into())
    }
}

/// Stops a [`Server`] from another thread.
#[derive(Clone, Debug)]
pub struct Stop(Arc<OwnedFd>);

impl Stop {
    fn new() -> rustix::io::Result<Self> {
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        Ok(Self(Arc::new(rustix::event::eventfd(0, flags)?)))
    }

    /// Lets the server end: outstanding requests are completed, further ones are refused, and [`Server::run`] returns.
    pub fn stop(&self) {
        // The only error of a valid counter is that it is full, and then the server is told already.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

/// How [`Server::run`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// [`Stop::stop`] was called, and every connection is closed.
    Stopped,
    /// A signal has interrupted a wait. [`Server::run`] may be called again and goes on.
    Interrupted,
}

/// What a server has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Clients that have connected.
    pub connections: u64,
    /// Requests that the backend was given, by operation.
    pub reads: u64,
    /// See `reads`.
    pub writes: u64,
    /// See `reads`.
    pub trims: u64,
    /// See `reads`.
    pub zeroings: u64,
    /// See `reads`.
    pub flushes: u64,
    /// Questions for the allocation status.
    pub statuses: u64,
    /// Bytes of the reads that the backend was given.
    pub bytes_read: u64,
    /// Bytes of the writes that the backend was given.
    pub bytes_written: u64,
    /// Requests that the backend refused or failed.
    pub failed: u64,
    /// Times that a client with fewer requests outstanding than before was waited for in vain ([`Settings::patience`]).
    pub silences: u64,
    /// Waits for events; the requests divided by them say how well requests gather.
    pub waits: u64,
}

impl Report {
    /// Requests that the backend was given, without questions for the allocation status.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes + self.trims + self.zeroings + self.flushes
    }
}

/// A client.
#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    session: Session,
    /// The events that epoll reports.
    interest: EventFlags,
    /// The connection is in the list of those to be served.
    is_active: bool,
    /// Replies were given or sent since the last look at the session's commands.
    has_progress: bool,
    /// The most requests outstanding since the client was last waited for in vain.
    depth: u32,
    /// Since when the client, which has fewer requests outstanding than `depth`, sends nothing.
    silent_since: Option<Time>,
    /// How long such a client is waited for.
    patience: Span,
    /// The number of the connection, and what the client has asked for.
    number: u64,
    asked: Report,
}

/// A request that the backend has.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    connection: u64,
    call: Call,
    /// When the request arrived.
    arrival: Time,
}

/// A server.
#[derive(Debug)]
pub struct Server {
    export: Arc<Export>,
    settings: Settings,
    epoll: OwnedFd,
    timer: Timer,
    stop: Stop,
    listeners: Vec<Listener>,
    /// The listeners are not looked at: there are too many connections, or the system has no further file.
    is_closed: bool,
    /// When the listeners are looked at again, if no connection is closed before.
    opens_at: Option<Time>,
    /// The listener for orders.
    orders: Option<Listener>,
    orderers: Slots<Orderer>,
    /// Those that have stopped the server, who are answered at the end.
    stoppers: Vec<Orderer>,
    /// Lines that programs have acknowledged.
    acks: Option<Acks>,
    /// Where snapshots go.
    publisher: Option<Publisher>,
    connections: Slots<Connection>,
    lateness: Lateness,
    outstanding: Slots<Outstanding>,
    /// The connections that may have something to do.
    active: Vec<u64>,
    /// The connections whose replies are being sent; empty between calls.
    sending: Vec<u64>,
    /// The connections by the time at which their handshake has to be over.
    handshakes: VecDeque<(Time, u64)>,
    clock: Option<Clock>,
    /// The time at which the last wait ended, or an earlier one if nobody needs it.
    now: Time,
    pauses: Pauses,
    /// When the remaining connections are cut; set when the server is stopped.
    ends_at: Option<Time>,
    report: Report,
    extents: Vec<Extent>,
    /// Data of reads whose client is gone.
    nowhere: Vec<u8>,
}

impl Server {
    /// A server of `export` on `listeners`.
    ///
    /// # Errors
    /// When the export is not possible, when there is no listener or more than 64, or when the system refuses.
    pub fn new(export: Export, listeners: Vec<Listener>, settings: Settings) -> Result<Self, ServeError> {
        export.check().map_err(ServeError::Export)?;
        if listeners.is_empty() || listeners.len() as u64 > LISTENERS_MAX {
            return Err(ServeError::Listeners(listeners.len()));
        }
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let (timer, stop) = (Timer::new()?, Stop::new()?);
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN)?;
        epoll::add(&epoll, &*stop.0, EventData::new_u64(STOP), EventFlags::IN)?;
        for (listener, number) in listeners.iter().zip(0..) {
            epoll::add(&epoll, listener, EventData::new_u64(LISTENER - number), EventFlags::IN)?;
        }
        Ok(Self {
            export: Arc::new(export),
            settings,
            epoll,
            timer,
            stop,
            listeners,
            is_closed: false,
            opens_at: None,
            orders: None,
            orderers: Slots::new(),
            stoppers: Vec::new(),
            acks: None,
            publisher: None,
            connections: Slots::new(),
            lateness: Lateness::new(),
            outstanding: Slots::new(),
            active: Vec::new(),
            sending: Vec::new(),
            handshakes: VecDeque::new(),
            clock: None,
            now: Time::START,
            pauses: Pauses::new(settings.pause),
            ends_at: None,
            report: Report::default(),
            extents: Vec::new(),
            nowhere: Vec::new(),
        })
    }

    /// What stops this server.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// The listeners, until the server is stopped.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Takes orders on a further socket (`orders`).
    ///
    /// # Errors
    /// When the system refuses.
    pub fn take_orders(&mut self, listener: Listener) -> Result<(), ServeError> {
        epoll::add(&self.epoll, &listener, EventData::new_u64(ORDER_LISTENER), EventFlags::IN)?;
        self.orders = Some(listener);
        Ok(())
    }

    /// Takes lines that programs have acknowledged from a named pipe: each counts from the time at which it is read.
    ///
    /// # Errors
    /// When the pipe cannot be opened.
    pub fn take_acks(&mut self, path: &Path) -> Result<(), ServeError> {
        let acks = Acks::open(path).map_err(ServeError::System)?;
        epoll::add(&self.epoll, &acks, EventData::new_u64(ACKS), EventFlags::IN)?;
        self.acks = Some(acks);
        Ok(())
    }

    /// Gives a snapshot of the drive to a window now and then.
    pub fn publish_to(&mut self, publisher: Publisher) {
        self.publisher = Some(publisher);
    }

    /// Publishes a snapshot if one is due, and if the window has taken an earlier one.
    fn publish(&mut self, backend: &mut impl Backend, now: Time) {
        let Some(mut snapshot) = self.publisher.as_mut().and_then(|publisher| publisher.begin(now)) else {
            return;
        };
        snapshot.at = now;
        backend.snapshot(&mut snapshot);
        self.add_own(&mut snapshot.stat, backend.pace());
        snapshot.clients.clear();
        for connection in self.connections.values().filter(|of| of.session.is_transmitting()) {
            let outstanding = connection.session.outstanding();
            let Report { reads, writes, trims, zeroings, flushes, bytes_read, bytes_written, .. } =
                connection.asked;
            snapshot.clients.push(Client {
                number: connection.number,
                reads,
                writes,
                others: trims + zeroings + flushes,
                bytes_read,
                bytes_written,
                outstanding,
                placement: connection.session.placement(),
            });
        }
        if let Some(publisher) = &self.publisher {
            publisher.give(snapshot);
        }
    }

    /// State and results of the backend and of the server so far, as the order `stat` answers.
    ///
    /// # Errors
    /// When the backend takes no orders.
    pub fn stat(&mut self, backend: &mut impl Backend) -> Result<Value, String> {
        let mut stat = backend.order(self.now, Order::Stat)?;
        self.add_own(&mut stat, backend.pace());
        Ok(stat)
    }

    /// Answers those who have stopped the server, when the backend has ended too.
    pub fn answer_stop(&mut self, answer: &Result<Value, String>) {
        for mut orderer in self.stoppers.drain(..) {
            orderer.answer(&answer_of(answer));
            // Nothing more can be done for a connection that does not take its answer.
            orderer.send();
        }
    }

    /// Adds to the state of the backend what the server knows.
    fn add_own(&self, stat: &mut Value, pace: Pace) {
        let Report { connections, statuses, bytes_read, bytes_written, failed, silences, waits, .. } =
            self.report;
        stat["server"] = json!({
            "connections": connections,
            "open": self.connections.len(),
            "requests": self.report.requests(),
            "reads": self.report.reads,
            "writes": self.report.writes,
            "trims": self.report.trims,
            "zeroings": self.report.zeroings,
            "flushes": self.report.flushes,
            "statuses": statuses,
            "bytes_read": bytes_read,
            "bytes_written": bytes_written,
            "failed": failed,
            "silences": silences,
            "waits": waits,
        });
        stat["lateness"] = if pace == Pace::Clock { self.lateness.json() } else { Value::Null };
    }

    /// The time of the server's clock at its last wait.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What the server has done so far.
    pub fn report(&self) -> Report {
        self.report
    }

    /// Serves clients until [`Stop::stop`] is called or a signal arrives. The backend's time begins with the first call.
    /// Requests of clients that left early may be outstanding in the backend afterwards.
    ///
    /// # Errors
    /// When the system refuses to wait for clients. An error of one client ends its connection only.
    pub fn run(&mut self, backend: &mut impl Backend) -> Result<Ended, ServeError> {
        let clock = match self.clock {
            Some(clock) => clock,
            None => {
                if backend.pace() == Pace::Clock {
                    self.lateness.measure_timer(&Clock::start())?;
                }
                *self.clock.insert(Clock::start())
            }
        };
        let mut events = Vec::with_capacity(64);
        loop {
            let silence = self.next_silence().filter(|_| backend.pace() == Pace::Clients);
            let event = silence.or_else(|| backend.next_event());
            let polls = self.set_timer(&clock, event)?;
            // A client that is waited for sends several requests in a pause.
            if let Some(pause) = self.pauses.pause()
                && (event.is_none() || silence.is_some())
            {
                std::thread::sleep(pause);
            }
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            self.report.waits += 1;
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), polls.then_some(&at_once)) {
                Ok(_) => {}
                Err(SystemError::INTR) => return Ok(Ended::Interrupted),
                Err(error) => return Err(error.into()),
            }
            if backend.pace() != Pace::None || self.has_times() {
                self.now = clock.now();
            }
            let now = self.now;
            for event in &events {
                match event.data.u64() {
                    TIMER => self.timer.rang(),
                    STOP => self.begin_to_stop(clock.now())?,
                    data if data > ORDER_LISTENER => {
                        self.accept((LISTENER - data) as usize, clock.now(), backend.is_off())?;
                    }
                    ORDER_LISTENER => self.accept_orders(),
                    ACKS => {
                        if let Some(acks) = &mut self.acks {
                            acks.read(|line| backend.acknowledged(clock.now(), line));
                        }
                    }
                    key if key & ORDERER != 0 => self.take_order(key & !ORDERER, backend)?,
                    key => self.receive(key, event.flags)?,
                }
            }
            let before = self.report.requests();
            self.serve(backend, now)?;
            self.pauses.served(self.report.requests() - before, || clock.now());
            self.keep_times(now)?;
            if self.publisher.is_some() {
                self.publish(backend, now);
            }
            if backend.has_ended() && self.ends_at.is_none() {
                self.begin_to_stop(now)?;
            }
            if self.ends_at.is_some_and(|end| self.connections.len() == 0 || now >= end) {
                self.connections = Slots::new();
                self.orderers = Slots::new();
                self.orders = None;
                return Ok(Ended::Stopped);
            }
        }
    }

    /// Whether the server itself waits for a time.
    fn has_times(&self) -> bool {
        !self.handshakes.is_empty() || self.opens_at.is_some() || self.ends_at.is_some()
    }

    /// Sets the timer to the next time at which the server has something to do without a client. Returns whether it is now,
    /// or so soon that waiting is not worth it.
    fn set_timer(&mut self, clock: &Clock, event: Option<Time>) -> Result<bool, ServeError> {
        while let Some(&(_, key)) = self.handshakes.front()
            && self.connections.get_mut(key).is_none_or(|connection| connection.session.is_transmitting())
        {
            self.handshakes.pop_front();
        }
        let handshake = self.handshakes.front().map(|&(end, _)| end);
        let snapshot = self.publisher.as_ref().map(Publisher::next);
        let next = [event, handshake, self.opens_at, self.ends_at, snapshot].into_iter().flatten().min();
        let polls = next.is_some_and(|next| next <= clock.now().saturating_add(self.settings.spin));
        // The end of a client's silence moves with each reply: a timer that is early is set again only when it rings.
        let is_early = self.timer.at().is_some_and(|at| next.is_some_and(|next| at <= next));
        let may_ring_early = is_early && self.next_silence().is_some();
        if !polls && !may_ring_early {
            self.timer.set(clock, next)?;
        }
        Ok(polls)
    }

    /// Does what is due at a time of the server's own.
    fn keep_times(&mut self, now: Time) -> Result<(), ServeError> {
        while let Some(&(end, key)) = self.handshakes.front()
            && end <= now
        {
            self.handshakes.pop_front();
            if self.connections.get_mut(key).is_some_and(|connection| !connection.session.is_transmitting()) {
                self.close(key)?;
            }
        }
        if self.opens_at.is_some_and(|at| at <= now) {
            self.open()?;
        }
        Ok(())
    }

    /// Refuses new clients and requests; the outstanding ones have some time left.
    fn begin_to_stop(&mut self, now: Time) -> Result<(), ServeError> {
        if self.ends_at.is_some() {
            return Ok(());
        }
        epoll::delete(&self.epoll, &*self.stop.0)?;
        self.listeners.clear();
        self.opens_at = None;
        self.ends_at = Some(now.saturating_add(self.settings.grace));
        for key in self.connections.keys() {
            if let Some(connection) = self.connections.get_mut(key) {
                connection.session.shut_down();
                (connection.depth, connection.silent_since) = (0, None);
            }
            self.activate(key);
        }
        Ok(())
    }

    /// Accepts the clients that wait at a listener, as many as there may be.
    fn accept(&mut self, number: usize, now: Time, is_off: bool) -> Result<(), ServeError> {
        while let Some(listener) = self.listeners.get(number) {
            if self.connections.len() >= self.settings.connections_max {
                return self.close_listeners(None);
            }
            let socket = match listener.accept() {
                Ok(socket) => socket,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The client has left before it was accepted, or a signal has come.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted
                    ) =>
                {
                    continue;
                }
                // Too many files or too little memory. The listener would be reported again at once.
                Err(_) => return self.close_listeners(Some(now.saturating_add(Span::from_ns(SECOND)))),
            };
            if is_off {
                // A drive without power answers nobody.
                continue;
            }
            let session = Session::new(self.export.clone(), self.settings.buffer_max);
            let interest = EventFlags::IN;
            let patience = self.settings.patience;
            let connection = Connection {
                socket,
                session,
                interest,
                is_active: false,
                has_progress: false,
                depth: 0,
                silent_since: None,
                patience,
                number: self.report.connections + 1,
                asked: Report::default(),
            };
            let key = self.connections.insert(connection);
            let connection = self.connections.get_mut(key).expect("inserted above");
            if epoll::add(&self.epoll, &connection.socket, EventData::new_u64(key), interest).is_err() {
                // Too little memory: the client is disconnected, and the next ones wait a second.
                self.connections.remove(key);
                return self.close_listeners(Some(now.saturating_add(Span::from_ns(SECOND))));
            }
            self.report.connections += 1;
            self.handshakes.push_back((now.saturating_add(self.settings.handshake_max), key));
            self.activate(key);
        }
        Ok(())
    }

    /// Looks at no listener until a connection is closed, or until the time `opens_at`.
    fn close_listeners(&mut self, opens_at: Option<Time>) -> Result<(), ServeError> {
        self.is_closed = true;
        self.opens_at = opens_at;
        self.watch_listeners(EventFlags::empty())
    }

    /// Looks at the listeners again.
    fn open(&mut self) -> Result<(), ServeError> {
        self.is_closed = false;
        self.opens_at = None;
        self.watch_listeners(EventFlags::IN)
    }

    fn watch_listeners(&self, interest: EventFlags) -> Result<(), ServeError> {
        for (listener, number) in self.listeners.iter().zip(0..) {
            epoll::modify(&self.epoll, listener, EventData::new_u64(LISTENER - number), interest)?;
        }
        Ok(())
    }

    /// Lets [`Server::serve`] look at a connection.
    fn activate(&mut self, key: u64) {
        if let Some(connection) = self.connections.get_mut(key)
            && !connection.is_active
        {
            connection.is_active = true;
            self.active.push(key);
        }
    }

    /// Cuts a connection. Its outstanding requests end without a reply.
    fn close(&mut self, key: u64) -> Result<(), ServeError> {
        // The kernel takes a closed socket out of epoll, since there is no other descriptor of it.
        self.connections.remove(key);
        if self.is_closed { self.open() } else { Ok(()) }
    }

    /// Power has failed: sends the replies that there are, and ends the connections without further ones.
    fn end_all(&mut self, now: Time) {
        for id in self.outstanding.keys() {
            self.outstanding.remove(id);
        }
        for key in self.connections.keys() {
            if let Some(connection) = self.connections.get_mut(key) {
                connection.session.abandon();
                (connection.depth, connection.silent_since) = (0, None);
            }
            // A client that does not take the replies has as long as for a handshake.
            self.handshakes.push_back((now.saturating_add(self.settings.handshake_max), key));
            self.activate(key);
        }
    }

    /// Accepts connections that give orders.
    fn accept_orders(&mut self) {
        while let Some(Ok(socket)) = self.orders.as_ref().map(Listener::accept) {
            // One more than there may be is disconnected.
            if self.orderers.len() >= ORDERERS_MAX {
                continue;
            }
            let key = self.orderers.insert(Orderer::new(socket));
            let orderer = self.orderers.get_mut(key).expect("inserted above");
            let data = EventData::new_u64(ORDERER | key);
            if epoll::add(&self.epoll, &orderer.socket, data, EventFlags::IN).is_err() {
                self.orderers.remove(key);
            }
        }
    }

    /// Carries out what a connection orders.
    fn take_order(&mut self, key: u64, backend: &mut impl Backend) -> Result<(), ServeError> {
        let Some(mut orderer) = self.orderers.remove(key) else { return Ok(()) };
        let mut is_well = orderer.receive();
        while let Some(line) = orderer.next() {
            if line == Line::Stop {
                self.begin_to_stop(self.now)?;
                // What it sends further is not looked at. The kernel would report it again and again.
                let _ = epoll::delete(&self.epoll, &orderer.socket);
                self.stoppers.push(orderer);
                return Ok(());
            }
            let answer = self.order(line, backend);
            orderer.answer(&answer_of(&answer));
        }
        is_well = orderer.send() && is_well;
        if is_well {
            let has_output = orderer.has_output();
            let key = self.orderers.insert(orderer);
            let mut interest = EventFlags::IN;
            interest.set(EventFlags::OUT, has_output);
            let orderer = self.orderers.get_mut(key).expect("inserted above");
            let data = EventData::new_u64(ORDERER | key);
            if epoll::modify(&self.epoll, &orderer.socket, data, interest).is_err() {
                self.orderers.remove(key);
            }
        }
        Ok(())
    }

    fn order(&mut self, line: Line, backend: &mut impl Backend) -> Result<Value, String> {
        match line {
            Line::Stop | Line::Unknown => {
                Err("unknown order: it is stat, smart, fdp, state, cut, restore, cut-in-recovery, detect, update-handle, \
                     save, mark or stop"
                    .to_owned())
            }
            Line::Order(Order::Stat) => self.stat(backend),
            Line::Mark(text) => backend.order(self.now, Order::Mark(&text)),
            Line::Order(order) => {
                let outcome = backend.order(self.now, order);
                // What was completed before power failed is sent before the connections end.
                self.answer(backend);
                if backend.take_power_loss() {
                    self.end_all(self.now);
                }
                outcome
            }
        }
    }

    /// Receives once what a client has sent.
    fn receive(&mut self, key: u64, flags: EventFlags) -> Result<(), ServeError> {
        let Some(connection) = self.connections.get_mut(key) else { return Ok(()) };
        let is_gone = flags.intersects(EventFlags::HUP | EventFlags::ERR);
        let mut is_cut = false;
        if !is_gone && !flags.contains(EventFlags::IN) {
            // There is room for replies only.
        } else if connection.session.wants_input() {
            let room = spare_capacity(connection.session.receive());
            match rustix::net::recv(&connection.socket, room, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => {
                    connection.session.end_of_input();
                    is_cut = is_gone;
                }
                Ok(_) => {
                    // A part of a request breaks the silence too.
                    if let Some(since) = &mut connection.silent_since {
                        *since = self.now;
                    }
                }
                Err(SystemError::AGAIN | SystemError::INTR) => {}
                Err(_) => is_cut = true,
            }
        } else if is_gone {
            is_cut = true;
        } else {
            let interest = connection.interest - EventFlags::IN;
            is_cut = !connection.watch(&self.epoll, key, interest);
        }
        if is_cut {
            return self.close(key);
        }
        self.activate(key);
        Ok(())
    }

    /// Submits the commands of the active connections, lets the backend work, and sends the replies, until nothing more
    /// can be done without waiting.
    fn serve(&mut self, backend: &mut impl Backend, now: Time) -> Result<(), ServeError> {
        if backend.pace() == Pace::Clients {
            self.end_silences(now);
        }
        loop {
            for number in 0..self.active.len() {
                self.submit(self.active[number], backend, now);
            }
            if self.next_silence().is_some() {
                backend.settle();
            } else {
                backend.advance(now);
            }
            self.answer(backend);
            if backend.take_power_loss() {
                self.end_all(now);
            }
            // The system may run a client before it returns from the call that sends.
            if let Some(clock) = &self.clock {
                self.lateness.sent(|| clock.now());
            }
            std::mem::swap(&mut self.active, &mut self.sending);
            for number in 0..self.sending.len() {
                self.send(self.sending[number])?;
            }
            self.sending.clear();
            if self.active.is_empty() {
                return Ok(());
            }
        }
    }

    /// Submits the commands that a client has sent.
    fn submit(&mut self, key: u64, backend: &mut impl Backend, now: Time) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.has_progress = false;
        let before = self.report.requests();
        while let Some(command) = connection.session.next() {
            match command {
                Command::Request { call, request, payload } => {
                    self.report.count(request.op, request.len.into());
                    connection.asked.count(request.op, request.len.into());
                    let id = self.outstanding.insert(Outstanding { connection: key, call, arrival: now });
                    if let Err(failure) = backend.submit(id, now, &request, payload) {
                        self.outstanding.remove(id);
                        self.report.failed += 1;
                        connection.session.failed(call, failure);
                    }
                }
                Command::Status { call, offset, len, max } => {
                    self.report.statuses += 1;
                    self.extents.clear();
                    backend.extents(offset, len.into(), max, &mut self.extents);
                    connection.session.extents(call, &self.extents);
                }
            }
        }
        if backend.pace() == Pace::Clients && self.report.requests() > before {
            let outstanding = connection.session.outstanding();
            if outstanding < connection.depth {
                connection.silent_since = Some(now);
            } else {
                if connection.silent_since.take().is_some() {
                    let patience = Span::from_ns(2 * connection.patience.ns());
                    connection.patience = patience.min(self.settings.patience);
                }
                connection.depth = outstanding;
            }
        }
    }

    /// When the first client that has fewer requests outstanding than before, and sends nothing, has been waited for long
    /// enough; `None` if there is no such client.
    fn next_silence(&self) -> Option<Time> {
        let end =
            |connection: &Connection| Some(connection.silent_since?.saturating_add(connection.patience));
        self.connections.values().filter_map(end).min()
    }

    /// Waits no longer for clients that were silent for long enough.
    fn end_silences(&mut self, now: Time) {
        for connection in self.connections.values_mut() {
            if connection.silent_since.is_some_and(|since| since.saturating_add(connection.patience) <= now) {
                connection.silent_since = None;
                connection.depth = connection.session.outstanding();
                let least = Span::from_ns(self.settings.patience.ns() / 10);
                connection.patience = Span::from_ns(connection.patience.ns() / 2).max(least);
                self.report.silences += 1;
            }
        }
    }

    /// Turns the completions of the backend into replies.
    fn answer(&mut self, backend: &mut impl Backend) {
        while let Some(completion) = backend.completed() {
            let id = completion.id;
            let Some(Outstanding { connection: key, call, arrival }) = self.outstanding.remove(id) else {
                // A request of a connection that a power loss has ended.
                continue;
            };
            self.report.failed += u64::from(completion.result.is_err());
            if let Some(due) = completion.due {
                self.lateness.add(arrival, due);
            }
            let Some(connection) = self.connections.get_mut(key) else {
                if completion.result.is_ok() && call.is_read() {
                    backend.take(id, &mut self.nowhere);
                    self.nowhere = Vec::new();
                }
                continue;
            };
            match completion.result {
                Ok(()) if call.is_read() => connection.session.data(call, |out| backend.take(id, out)),
                Ok(()) => connection.session.done(call),
                Err(failure) => connection.session.failed(call, failure),
            }
            connection.has_progress = true;
            if connection.depth > connection.session.outstanding() && self.ends_at.is_none() {
                connection.silent_since.get_or_insert(self.now);
            }
            // An error is met again by the send that follows the answers.
            if connection.session.unsent() >= SEND && !connection.interest.contains(EventFlags::OUT) {
                connection.send();
            }
            self.activate(key);
        }
    }

    /// Sends what a client can take, and decides what its connection waits for.
    fn send(&mut self, key: u64) -> Result<(), ServeError> {
        let Some(connection) = self.connections.get_mut(key) else { return Ok(()) };
        connection.is_active = false;
        let is_well = connection.send();
        let session = &mut connection.session;
        let is_idle = session.outstanding() == 0 && session.unsent() == 0;
        if !is_well || session.is_over() || (is_idle && self.ends_at.is_some()) {
            return self.close(key);
        }
        // A session that takes commands has no further one, but a stalled one may.
        if session.is_stalled() && connection.has_progress {
            self.activate(key);
            return Ok(());
        }
        let mut interest = connection.interest;
        if session.wants_input() {
            interest |= EventFlags::IN;
        }
        interest.set(EventFlags::OUT, session.unsent() > 0);
        if connection.watch(&self.epoll, key, interest) { Ok(()) } else { self.close(key) }
    }
}

/// The line that answers an order.
fn answer_of(answer: &Result<Value, String>) -> Value {
    match answer {
        Ok(answer) => json!({ "ok": answer }),
        Err(text) => json!({ "error": text }),
    }
}

impl Connection {
    /// Sends as much as the client can take. Returns whether the connection is still well.
    fn send(&mut self) -> bool {
        while self.session.unsent() > 0 {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match rustix::net::send(&self.socket, self.session.output(), flags) {
                Ok(len) => {
                    self.session.sent(len);
                    self.has_progress = true;
                }
                Err(SystemError::AGAIN) => return true,
                Err(SystemError::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Lets epoll report other events than so far. Returns whether it does.
    fn watch(&mut self, epoll: &OwnedFd, key: u64, interest: EventFlags) -> bool {
        if interest == self.interest {
            return true;
        }
        self.interest = interest;
        epoll::modify(epoll, &self.socket, EventData::new_u64(key), interest).is_ok()
    }
}

impl Report {
    /// Counts a request.
    fn count(&mut self, op: Op, len: u64) {
        match op {
            Op::Read => {
                self.reads += 1;
                self.bytes_read += len;
            }
            Op::Write => {
                self.writes += 1;
                self.bytes_written += len;
            }
            Op::Trim => self.trims += 1,
            Op::WriteZeroes { .. } => self.zeroings += 1,
            Op::Flush => self.flushes += 1,
        }
    }
}
