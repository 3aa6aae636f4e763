//! `nandlab serve`: a simulated drive as a block device. The server runs in Rust on a thread of its own; Python starts it and
//! gets its results.

use crate::errors::RunError;
#[cfg(target_os = "linux")]
use crate::errors::failure_text;
use crate::run::Outcome;
use crate::spec::Spec;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Serves a drive until the order `stop` or a signal. `ready` is called when clients can connect, with the URIs and with
/// what was resumed, if anything was: records, bytes of a torn tail, whether the session had ended cleanly. `notice` is called
/// with texts for the user meanwhile. Returns state and results at the end, as JSON, and with the option `results` those of a run.
#[cfg(target_os = "linux")]
#[pyfunction]
pub(crate) fn serve(
    py: Python<'_>,
    spec: &Spec,
    options: &Bound<'_, PyDict>,
    ready: &Bound<'_, PyAny>,
    notice: &Bound<'_, PyAny>,
) -> PyResult<(String, Option<Outcome>)> {
    if let Some(named) = spec.loaded.outside().first() {
        return Err(RunError::new_err(format!(
            "{} = \"{}\" is no built-in policy, and a live drive takes no others: replies would wait for the interpreter\n  \
             remedy: one of the policies of `nandlab spec policies`",
            named.slot, named.name
        )));
    }
    let mut wanted = linux::Wanted::of(options)?;
    wanted.options.kept = crate::kept_drives::kept(py).and_then(|kept| kept.of(&spec.loaded));
    linux::serve(py, spec, wanted, ready, notice)
}

/// The number of slow requests that a snapshot for the window explains.
#[cfg(unix)]
pub(crate) const EXPLAINED: u32 = 3;

/// Serves a drive on Linux.
#[cfg(not(target_os = "linux"))]
#[pyfunction]
pub(crate) fn serve(
    _py: Python<'_>,
    _spec: &Spec,
    _options: &Bound<'_, PyDict>,
    _ready: &Bound<'_, PyAny>,
    _notice: &Bound<'_, PyAny>,
) -> PyResult<(String, Option<Outcome>)> {
    Err(RunError::new_err("a drive can be served on Linux only"))
}

#[cfg(target_os = "linux")]
mod linux {
    use super::{EXPLAINED, Outcome, RunError, Spec, failure_text};
    use crate::replay::other_version;
    use crate::simulation::outputs;
    use nandlab::base::units::Span;
    use nandlab::drive::SnapshotError;
    use nandlab::report::RunFacts;
    use nandlab_base::recording::{Header, RecordingError, fresh_id};
    use nandlab_live::backend::Backend;
    use nandlab_live::http::Http;
    use nandlab_live::nbd::Export;
    use nandlab_live::recording::{Recorded, Recorder, RecorderError, Sync};
    use nandlab_live::server::{Ended, Listener, Server, Settings, Stop, window};
    use nandlab_live::simulated::{Kept, Options, Resumed, Simulated, Speed, Unresumed, Unserved};
    use pyo3::prelude::*;
    use pyo3::types::PyDict;
    use std::net::SocketAddr;
    use std::path::PathBuf;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
    use std::time::Duration;

    /// With `--spin` the server polls when the next event is at most this far away.
    const SPIN: Span = Span::from_ns(10_000_000);

    /// A kept drive whose session ends with a recording of at least so many bytes is saved, so that the next server need not
    /// play it. It has fewer than a million requests, which are played within some seconds.
    const CHECKPOINT_FROM: u64 = 16 << 20;

    /// Going on with a kept drive may take so long beside what its checkpoint takes; `--replay-max` gives another time. Measured:
    /// without a recording a drive of 64 GiB starts in 3 s of processor time, with this one in 4.5 s.
    const REPLAY_MAX: Span = Span::from_ns(1_500_000_000);

    /// The options of the command.
    pub(super) struct Wanted {
        socket: Option<PathBuf>,
        tcp: Option<String>,
        allow_remote: bool,
        http: Option<String>,
        orders: PathBuf,
        is_spinning: bool,
        patience: Option<Span>,
        pub(super) options: Options,
        /// The time of going on with a kept drive beyond which it is saved.
        replay_max: Span,
        /// The recording, and whether an existing one is gone on with.
        recorded: Option<(Recorded, bool)>,
        /// The named pipe of acknowledged lines.
        acks: Option<PathBuf>,
        /// Whether the results of a run are wanted.
        results: bool,
        /// The folder at which relative paths of the spec start.
        folder: String,
    }

    impl Wanted {
        pub(super) fn of(options: &Bound<'_, PyDict>) -> PyResult<Self> {
            fn value<'py, T: for<'a> FromPyObject<'a, 'py>>(
                options: &Bound<'py, PyDict>,
                name: &str,
            ) -> PyResult<Option<T>> {
                match options.get_item(name)? {
                    Some(value) if !value.is_none() => value.extract::<T>().map(Some).map_err(Into::into),
                    _ => Ok(None),
                }
            }
            let missing = |name: &str| RunError::new_err(format!("the option {name} is missing"));
            let speed = match value::<f64>(options, "speed")? {
                Some(factor) => Speed::Factor(factor),
                None => Speed::Max { gather: value(options, "gather")?.unwrap_or(1) },
            };
            let record: Option<PathBuf> = value(options, "record")?;
            let journal: Option<PathBuf> = value(options, "journal")?;
            let limit = value(options, "record_limit")?.unwrap_or(nandlab_live::recording::NO_LIMIT);
            let sync = if value(options, "sync")?.unwrap_or(false) { Sync::Data } else { Sync::None };
            let resumes = journal.is_some();
            let recorded = record.or(journal).map(|path| (Recorded { path, limit, sync }, resumes));
            Ok(Self {
                recorded,
                replay_max: value::<u64>(options, "replay_max_ns")?.map_or(REPLAY_MAX, Span::from_ns),
                acks: value(options, "acks")?,
                results: value(options, "results")?.unwrap_or(false),
                folder: value(options, "folder")?.unwrap_or_default(),
                socket: value(options, "socket")?,
                tcp: value(options, "tcp")?,
                http: value(options, "http")?,
                allow_remote: value(options, "allow_remote")?.unwrap_or(false),
                orders: value(options, "orders")?.ok_or_else(|| missing("orders"))?,
                is_spinning: value(options, "spin")?.unwrap_or(false),
                patience: value::<u64>(options, "patience_ns")?.map(Span::from_ns),
                options: Options {
                    speed,
                    memory_max: value(options, "memory")?.ok_or_else(|| missing("memory"))?,
                    explain: match value::<String>(options, "http")? {
                        Some(_) if value(options, "explain")?.unwrap_or(true) => Some(EXPLAINED),
                        Some(_) => Some(0),
                        None => None,
                    },
                    cut_every: value::<u64>(options, "cut_every_ns")?.map(Span::from_ns),
                    checkpoint: value(options, "checkpoint")?,
                    kept: None,
                },
            })
        }

        fn listeners(&self) -> Result<Vec<Listener>, String> {
            let mut listeners = Vec::new();
            if let Some(path) = &self.socket {
                listeners.push(Listener::unix(path).map_err(|error| error.to_string())?);
            }
            if let Some(address) = &self.tcp {
                listeners.push(
                    Listener::tcp(address_of(address, "10809")?, self.allow_remote)
                        .map_err(|error| error.to_string())?,
                );
            }
            Ok(listeners)
        }

        fn http(&self) -> Result<Option<Http>, String> {
            let Some(address) = &self.http else { return Ok(None) };
            let http = Http::listen(address_of(address, "8080")?, self.allow_remote);
            http.map(Some).map_err(|error| error.to_string())
        }
    }

    /// An address with its port; `port` is that of the example in the error.
    fn address_of(text: &str, port: &str) -> Result<SocketAddr, String> {
        text.parse().map_err(|_| {
            format!("{text}: no address and port\n  remedy: write an IP address and a port, such as 127.0.0.1:{port}")
        })
    }

    /// What the thread of the server tells the thread of Python.
    enum Told {
        /// Clients can connect to these URIs.
        Ready(Vec<String>, Option<Resumed>, Stop),
        /// The server has ended, with its results as JSON and, if they are wanted, those of a run.
        Ended(Box<Result<(String, Option<Outcome>), String>>),
    }

    /// Why the recording in a folder is not that of this drive, if it is not.
    fn check(header: &Header, ours: &Header) -> Result<(), String> {
        if let Some(text) = other_version(header) {
            return Err(text);
        }
        if header.spec == ours.spec {
            return Ok(());
        }
        let differs = |line: &&str, other: &str| !line.is_empty() && !other.lines().any(|of| of == *line);
        let lines = header.spec.lines().filter(|line| differs(line, &ours.spec));
        let lines: Vec<String> = lines.take(5).map(|line| format!("  there: {line}")).collect();
        Err(format!(
            "the session there is of another spec\n{}\n  remedy: serve it with the spec that it began with, or name another \
             folder with --data",
            lines.join("\n")
        ))
    }

    fn unresumed_text(unresumed: &Unresumed, recorded: &Recorded) -> String {
        let path = recorded.path.display();
        match unresumed {
            Unresumed::Recorder(error) => error.to_string(),
            Unresumed::Another(text) => format!("{path}: {text}"),
            Unresumed::Refused(text) => format!("{path}: the session cannot be resumed: {text}"),
            Unresumed::Stopped => "stopped before the session was resumed".to_owned(),
        }
    }

    /// Begins the recording of a session, or goes on with one.
    fn record(
        drive: &mut Simulated,
        recorded: &Recorded,
        resumes: bool,
        header: &Header,
        watch: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<Resumed>, String> {
        if resumes && (recorded.path.exists() || drive.is_restored()) {
            match drive.resume(recorded, |theirs| check(theirs, header), watch) {
                Ok(resumed) => return Ok(Some(resumed)),
                // The server was killed while it began its first session.
                Err(Unresumed::Recorder(RecorderError::Unread(
                    path,
                    RecordingError::Foreign | RecordingError::Header(_),
                ))) if std::fs::metadata(&path).is_ok_and(|of| of.len() < header.to_bytes().len() as u64) => {
                    std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                }
                Err(unresumed) => return Err(unresumed_text(&unresumed, recorded)),
            }
        }
        drive.record_to(Recorder::create(recorded, header).map_err(|error| error.to_string())?);
        Ok(None)
    }

    /// Builds and serves the drive.
    fn work(
        spec: &Spec,
        wanted: &Wanted,
        is_stopped: &AtomicBool,
        tell: &Sender<Told>,
        notices: &Sender<String>,
    ) -> Result<(String, Option<Outcome>), String> {
        // Errors of the sockets come before the preconditioning, which may take long.
        let listeners = wanted.listeners()?;
        let orders = Listener::unix(&wanted.orders).map_err(|error| error.to_string())?;
        let http = wanted.http()?;
        let mut watch = |_| !is_stopped.load(Ordering::Relaxed);
        if let Some((recorded, false)) = &wanted.recorded
            && recorded.path.exists()
        {
            return Err(RecorderError::Exists(recorded.path.clone()).to_string());
        }
        let mut drive = Simulated::build(&spec.loaded.spec, &wanted.options, &mut watch).map_err(|unserved| match unserved {
            Unserved::Stopped => "stopped before the drive was preconditioned".to_owned(),
            Unserved::Kept(error) => error,
            Unserved::Failed(failure) => failure_text(&failure, &spec.loaded.hash()),
            Unserved::Load(path, error) => format!(
                "{}: {error}\n  remedy: save the drive anew from this spec with --save-drive, or correct precondition.load",
                path.display()
            ),
            Unserved::Restore(path, error @ SnapshotError::Io(_)) => format!(
                "{}: {error}\n  remedy: put the files of the drive back into its folder, or name another one with --data",
                path.display()
            ),
            Unserved::Restore(path, error) => format!(
                "{}: {error}\n  remedy: serve the drive with the spec and the version that it began with, or name another \
                 folder with --data",
                path.display()
            ),
        })?;
        if let Some(note) = drive.note() {
            let _ = notices.send(note.to_owned());
        }
        let mut resumed = None;
        if let Some((recorded, resumes)) = &wanted.recorded {
            let header = Header {
                nandlab: env!("CARGO_PKG_VERSION").to_owned(),
                spec: spec.loaded.to_toml(),
                folder: wanted.folder.clone(),
                seed: spec.loaded.spec.seed,
                id: fresh_id(),
                continues: false,
            };
            if let Some(path) = wanted.options.checkpoint.clone() {
                let (recorded, header) = (recorded.clone(), header.clone());
                let (from_bytes, replay_max) = (CHECKPOINT_FROM, wanted.replay_max);
                let notices = Some(notices.clone());
                let memory_max = wanted.options.memory_max;
                drive.keep(Kept { path, recorded, header, from_bytes, replay_max, memory_max, notices });
            }
            resumed = record(&mut drive, recorded, *resumes, &header, &mut watch)?;
        }
        let spin = if wanted.is_spinning { SPIN } else { Span::ZERO };
        let usual = Settings::default();
        let patience = wanted.patience.unwrap_or(usual.patience);
        // Requests gather where replies do.
        let gathers = matches!(wanted.options.speed, Speed::Max { gather: 2.. });
        let pause = if gathers { usual.pause } else { Span::ZERO };
        let settings = Settings { pause, spin, patience, ..usual };
        let mut export = Export::new(drive.features());
        export.description = "a simulated drive".to_owned();
        let placements = &drive.drive().ftl().placements;
        if placements.is_on() {
            export.placements = placements.places().map(|place| placements.identifier(place)).collect();
        }
        let mut server = Server::new(export, listeners, settings).map_err(|error| error.to_string())?;
        server.take_orders(orders).map_err(|error| error.to_string())?;
        if let Some(path) = &wanted.acks {
            server.take_acks(path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let mut uris: Vec<String> = server.listeners().iter().map(Listener::uri).collect();
        if let Some(http) = http {
            uris.push(http.url());
            let (publisher, window) = window();
            server.publish_to(publisher);
            http.serve(window, wanted.orders.clone()).map_err(|error| format!("--http: {error}"))?;
        }
        let stop = server.stop();
        // The thread of Python waits for this one, so it hears.
        let _ = tell.send(Told::Ready(uris, resumed, stop));
        loop {
            match server.run(&mut drive) {
                Ok(Ended::Interrupted) => {}
                Ok(Ended::Stopped) => break,
                Err(error) => return Err(error.to_string()),
            }
        }
        // What its last checkpoint has left belongs to the state at the end.
        let stat = drive.end(server.now()).and_then(|()| server.stat(&mut drive));
        let outcome = (wanted.results && stat.is_ok()).then(|| {
            let spec_hash = spec.loaded.hash();
            let facts = RunFacts { complete: true, spec_hash: spec_hash.clone(), ..RunFacts::default() };
            let pts = drive.pts().cloned();
            let outputs = outputs(drive.drive_mut(), &facts, pts.as_ref(), None);
            Outcome { outputs, spec_toml: spec.loaded.to_toml(), spec_hash }
        });
        // From now on another server can go on with the drive.
        drop(drive);
        server.answer_stop(&stat);
        Ok((stat?.to_string(), outcome))
    }

    pub(super) fn serve(
        py: Python<'_>,
        spec: &Spec,
        wanted: Wanted,
        ready: &Bound<'_, PyAny>,
        notice: &Bound<'_, PyAny>,
    ) -> PyResult<(String, Option<Outcome>)> {
        let is_stopped = AtomicBool::new(false);
        let ((tell, told), (tell_notice, notices)) = (channel(), channel());
        let heard = Mutex::new((told, notices));
        std::thread::scope(|scope| {
            let (wanted, is_stopped) = (&wanted, &is_stopped);
            scope.spawn(move || {
                let outcome = work(spec, wanted, is_stopped, &tell, &tell_notice);
                let _ = tell.send(Told::Ended(Box::new(outcome)));
            });
            wait(py, &heard, is_stopped, ready, notice)
        })
    }

    /// Waits for the end of the server, and serves signals meanwhile: the first ends the server.
    fn wait(
        py: Python<'_>,
        heard: &Mutex<(Receiver<Told>, Receiver<String>)>,
        is_stopped: &AtomicBool,
        ready: &Bound<'_, PyAny>,
        notice: &Bound<'_, PyAny>,
    ) -> PyResult<(String, Option<Outcome>)> {
        let mut stop: Option<Stop> = None;
        let mut raised = Ok(());
        // Whatever Python raises ends the server; an interrupt is no error.
        let mut end = |error: PyErr, stop: &Option<Stop>| {
            if !error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) {
                raised = Err(error);
            }
            is_stopped.store(true, Ordering::Relaxed);
            stop.iter().for_each(Stop::stop);
        };
        loop {
            let (told, texts) = py.detach(|| {
                let (told, notices) = &*heard.lock().expect("only this thread locks it");
                let told = told.recv_timeout(Duration::from_millis(50));
                (told, notices.try_iter().collect::<Vec<String>>())
            });
            for text in texts {
                if let Err(error) = notice.call1((text,)) {
                    end(error, &stop);
                }
            }
            match told {
                Ok(Told::Ready(uris, resumed, handle)) => {
                    if is_stopped.load(Ordering::Relaxed) {
                        handle.stop();
                    }
                    stop = Some(handle);
                    // A signal may come while Python shows the URIs.
                    let resumed = resumed.map(|of| (of.records, of.torn, of.was_clean));
                    if let Err(error) = ready.call1((uris, resumed)) {
                        end(error, &stop);
                    }
                }
                Ok(Told::Ended(outcome)) => {
                    raised?;
                    return (*outcome).map_err(RunError::new_err);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(RunError::new_err("the server ended in a panic: this is a fault in nandlab"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Err(error) = py.check_signals() {
                end(error, &stop);
            }
        }
    }
}
