//! The server on real sockets, in a thread of the test.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nandlab_base::base::units::{Span, Time};
use nandlab_live::backend::{Backend, Completion, Errno, Failure, Features, Op, Request};
use nandlab_live::memory::Memory;
use nandlab_live::nbd::Export;
use nandlab_live::server::{Ended, ListenError, Listener, Report, ServeError, Server, Settings, Stop};

use crate::wire::{Answer, DISC, EIO, ESHUTDOWN, FLUSH, READ, Replies, handshake, request, write};

const SIZE: u64 = 1 << 24;
const MS: u64 = 1_000_000;

/// A folder that is removed with the value.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nandlab-live-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        Self(path)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server in a thread, which is stopped with the value.
pub(crate) struct Running {
    stop: Stop,
    thread: Option<JoinHandle<Report>>,
    pub(crate) tcp: Option<SocketAddr>,
}

impl Running {
    pub(crate) fn new(
        listener: Listener,
        settings: Settings,
        backend: impl Backend + Send + 'static,
        change: impl FnOnce(&mut Export),
    ) -> Self {
        let mut export = Export::new(backend.features());
        change(&mut export);
        let tcp = listener.tcp_address();
        let mut server = Server::new(export, vec![listener], settings).unwrap();
        let stop = server.stop();
        let mut backend = backend;
        let thread = std::thread::spawn(move || {
            while server.run(&mut backend).unwrap() == Ended::Interrupted {}
            server.report()
        });
        Self { stop, thread: Some(thread), tcp }
    }

    /// Memory on a Unix socket.
    pub(crate) fn memory(folder: &Folder, settings: Settings) -> Self {
        Self::new(Listener::unix(&folder.socket()).unwrap(), settings, Memory::new(SIZE), |_| {})
    }

    pub(crate) fn end(mut self) -> Report {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A client that reads and writes as the test says.
struct Client<S>(S);

fn unix(folder: &Folder) -> Client<UnixStream> {
    let stream = UnixStream::connect(folder.socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    Client(stream)
}

impl<S: Read + Write> Client<S> {
    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    fn receive(&mut self, len: usize) -> Replies {
        let mut bytes = vec![0; len];
        self.0.read_exact(&mut bytes).unwrap();
        Replies::new(bytes)
    }

    /// A handshake without structured replies.
    fn shake_hands(&mut self) {
        self.send(&handshake(false));
        self.receive(18 + 32 + 34 + 20).handshake(false);
    }

    /// Whether the server closes the connection.
    fn is_closed(&mut self) -> bool {
        let mut bytes = Vec::new();
        match self.0.read_to_end(&mut bytes) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }

    /// Sends a flush and waits for the reply.
    fn flush(&mut self, cookie: u64) {
        self.send(&request(0, FLUSH, cookie, 0, 0));
        assert_eq!(self.receive(16).answer(|_| 0), (cookie, Answer::Data(None, vec![])));
    }
}

#[test]
fn a_client_reads_what_another_has_written() {
    let folder = Folder::new();
    let server = Running::memory(&folder, Settings::default());
    let (mut first, mut second) = (unix(&folder), unix(&folder));
    first.shake_hands();
    second.shake_hands();
    first.send(&write(0, 1, 12_345, &[7; 100_000]));
    assert_eq!(first.receive(16).answer(|_| 0), (1, Answer::Data(None, vec![])));
    second.send(&request(0, READ, 2, 12_345, 100_000));
    assert_eq!(second.receive(16 + 100_000).answer(|_| 100_000), (2, Answer::Data(None, vec![7; 100_000])));
    second.send(&request(0, DISC, 3, 0, 0));
    assert!(second.is_closed());
    first.flush(4);
    let report = server.end();
    assert_eq!((report.connections, report.reads, report.writes, report.flushes), (2, 1, 1, 1));
    assert_eq!((report.bytes_read, report.bytes_written, report.failed), (100_000, 100_000, 0));
    assert!(first.is_closed());
}

#[test]
fn a_socket_is_for_the_user_alone_and_goes_with_the_server() {
    let folder = Folder::new();
    let path = folder.0.join("new folder/socket");
    let listener = Listener::unix(&path).unwrap();
    let mode = |path: &Path| path.symlink_metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert!(path.symlink_metadata().unwrap().file_type().is_socket());
    assert!(listener.uri().ends_with("/new%20folder/socket"), "{}", listener.uri());
    assert!(listener.uri().starts_with("nbd+unix:///?socket=/"), "{}", listener.uri());
    assert!(matches!(Listener::unix(&path), Err(ListenError::InUse(_))));
    drop(listener);
    assert!(!path.exists());
    // A server that was killed leaves its socket.
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    drop(Listener::unix(&path).expect("nobody listens"));
    std::fs::write(&path, "text").unwrap();
    assert!(matches!(Listener::unix(&path), Err(ListenError::NoSocket(_))));
    assert_eq!(std::fs::read(&path).unwrap(), b"text");
    std::fs::set_permissions(path.parent().unwrap(), PermissionsExt::from_mode(0o750)).unwrap();
    let refused = Listener::unix(&path.with_file_name("other")).unwrap_err();
    assert!(
        matches!(refused, ListenError::OpenFolder(_)) && refused.to_string().contains("chmod 700"),
        "{refused}"
    );
    let long = folder.0.join("x".repeat(120));
    assert!(matches!(Listener::unix(&long), Err(ListenError::System(..))));
}

#[test]
fn tcp_is_for_this_machine_unless_told_otherwise() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[::ffff:192.0.2.1]:0"] {
        assert!(
            matches!(Listener::tcp(address.parse().unwrap(), false), Err(ListenError::Remote(_))),
            "{address}"
        );
    }
    let everywhere = Listener::tcp("0.0.0.0:0".parse().unwrap(), true).unwrap();
    assert!(everywhere.uri().starts_with("nbd://0.0.0.0:"));
    let local = Listener::tcp("127.0.0.1:0".parse().unwrap(), false).unwrap();
    let server = Running::new(local, Settings::default(), Memory::new(SIZE), |_| {});
    let mut client = Client(TcpStream::connect(server.tcp.unwrap()).unwrap());
    client.shake_hands();
    client.send(&write(0, 1, 0, &[5; 1 << 20]));
    client.receive(16);
    client.send(&request(0, READ, 2, 0, 1 << 20));
    assert_eq!(client.receive(16 + (1 << 20)).answer(|_| 1 << 20).1, Answer::Data(None, vec![5; 1 << 20]));
}

#[test]
fn a_client_that_does_not_read_delays_no_other() {
    let folder = Folder::new();
    let settings = Settings { buffer_max: 1 << 20, ..Settings::default() };
    let server = Running::memory(&folder, settings);
    let (mut greedy, mut other) = (unix(&folder), unix(&folder));
    greedy.shake_hands();
    other.shake_hands();
    // The requests fit into the socket's buffer; the replies, 64 MiB, do not.
    let requests: Vec<u8> = (0..1024).flat_map(|cookie| request(0, READ, cookie, 0, 65_536)).collect();
    greedy.send(&requests);
    (0..100).for_each(|cookie| other.flush(cookie));
    for cookie in 0..1024 {
        assert_eq!(
            greedy.receive(16 + 65_536).answer(|_| 65_536),
            (cookie, Answer::Data(None, vec![0; 65_536]))
        );
    }
    other.flush(100);
    assert_eq!(server.end().reads, 1024);
}

#[test]
fn a_client_may_leave_at_any_time() {
    let folder = Folder::new();
    let server = Running::memory(&folder, Settings::default());
    let stream = [handshake(false), write(0, 1, 0, &[1; 5000]), request(0, READ, 2, 0, 1 << 20)].concat();
    for len in (0..stream.len()).step_by(97) {
        unix(&folder).send(&stream[..len]);
    }
    let mut client = unix(&folder);
    client.shake_hands();
    client.flush(1);
    drop(client);
    server.end();
}

#[test]
fn garbage_ends_its_connection_and_no_other() {
    let folder = Folder::new();
    let _server = Running::memory(&folder, Settings::default());
    let mut other = unix(&folder);
    other.shake_hands();
    let mut client = unix(&folder);
    client.send(&[0xff; 1000]);
    assert!(client.is_closed());
    let mut client = unix(&folder);
    client.shake_hands();
    client.send(&[0xff; 1000]);
    assert!(client.is_closed());
    other.flush(1);
}

#[test]
fn further_clients_wait_until_one_leaves() {
    let folder = Folder::new();
    let _server = Running::memory(&folder, Settings { connections_max: 2, ..Settings::default() });
    let (mut first, mut second, mut third) = (unix(&folder), unix(&folder), unix(&folder));
    first.shake_hands();
    second.shake_hands();
    third.0.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let waits = third.0.read(&mut [0; 1]).unwrap_err().kind();
    assert!(matches!(waits, ErrorKind::WouldBlock | ErrorKind::TimedOut), "no greeting yet");
    third.0.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    drop(first);
    third.shake_hands();
    second.flush(1);
}

#[test]
fn half_a_handshake_is_given_up_after_its_time() {
    let folder = Folder::new();
    let _server =
        Running::memory(&folder, Settings { handshake_max: Span::from_ns(200 * MS), ..Settings::default() });
    let (mut half, mut whole) = (unix(&folder), unix(&folder));
    whole.shake_hands();
    half.send(&handshake(false)[..9]);
    half.receive(18).greeting();
    assert!(half.is_closed());
    whole.flush(1);
}

/// A drive whose requests take a time, and whose reads fail where the data is lost.
struct Slow {
    memory: Memory,
    latency: Span,
    lost: u64,
    now: Time,
    waiting: VecDeque<(Time, u64, Request)>,
    done: VecDeque<(u64, Request)>,
}

impl Slow {
    fn new(latency_ms: u64) -> Self {
        let (waiting, done) = (VecDeque::new(), VecDeque::new());
        Self {
            memory: Memory::new(SIZE),
            latency: Span::from_ns(latency_ms * MS),
            lost: 4096,
            now: Time::START,
            waiting,
            done,
        }
    }
}

impl Backend for Slow {
    fn features(&self) -> Features {
        self.memory.features()
    }

    fn submit(&mut self, id: u64, now: Time, request: &Request, payload: &[u8]) -> Result<(), Failure> {
        assert!(now >= self.now, "time goes on");
        if request.op == Op::Trim {
            return Err(Failure::new(Errno::Io, "no trims"));
        }
        if request.op == Op::Write {
            self.memory.write(request.offset, payload)?;
        }
        self.waiting.push_back((now.saturating_add(self.latency), id, *request));
        Ok(())
    }

    fn advance(&mut self, now: Time) {
        assert!(now >= self.now, "time goes on");
        self.now = now;
        while self.waiting.front().is_some_and(|&(end, ..)| end <= now) {
            let (_, id, request) = self.waiting.pop_front().unwrap();
            self.done.push_back((id, request));
        }
    }

    fn completed(&mut self) -> Option<Completion> {
        let &(id, request) = self.done.front()?;
        let lost = self.lost;
        let is_lost = (request.offset..request.offset + u64::from(request.len)).contains(&lost);
        let failure = Failure { errno: Errno::Io, at: Some(lost), text: "the data is lost" };
        let result = if request.op == Op::Read && is_lost { Err(failure) } else { Ok(()) };
        if request.op != Op::Read || result.is_err() {
            self.done.pop_front();
        }
        Some(Completion { id, result, due: None })
    }

    fn take(&mut self, id: u64, out: &mut Vec<u8>) {
        let (found, request) = self.done.pop_front().unwrap();
        assert_eq!(found, id);
        self.memory.read(request.offset, request.len, out);
    }

    fn next_event(&mut self) -> Option<Time> {
        self.waiting.front().map(|&(end, ..)| end)
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test compares with the wall clock")]
fn requests_are_answered_when_the_backend_completes_them() {
    for spin in [0, 10 * MS] {
        let folder = Folder::new();
        let settings = Settings { spin: Span::from_ns(spin), ..Settings::default() };
        let server = Running::new(Listener::unix(&folder.socket()).unwrap(), settings, Slow::new(30), |_| {});
        let mut client = unix(&folder);
        client.shake_hands();
        let began = std::time::Instant::now();
        client.send(
            &[request(0, READ, 1, 0, 8192), request(0, READ, 2, 8192, 512), request(0, FLUSH, 3, 0, 0)]
                .concat(),
        );
        let mut replies = client.receive(16 + 16 + 512 + 16);
        assert!(began.elapsed() >= Duration::from_millis(30), "{:?}", began.elapsed());
        assert_eq!(replies.answer(|_| 8192), (1, Answer::Error(EIO, String::new(), None)));
        assert_eq!(replies.answer(|_| 512), (2, Answer::Data(None, vec![0; 512])));
        assert_eq!(replies.answer(|_| 0), (3, Answer::Data(None, vec![])));
        client.send(&request(0, crate::wire::TRIM, 4, 0, 512));
        assert_eq!(client.receive(16).answer(|_| 0), (4, Answer::Error(EIO, String::new(), None)));
        assert_eq!(server.end().failed, 2);
    }
}

#[test]
fn requests_of_a_client_that_has_left_end_without_it() {
    let folder = Folder::new();
    let server =
        Running::new(Listener::unix(&folder.socket()).unwrap(), Settings::default(), Slow::new(50), |_| {});
    let mut client = unix(&folder);
    client.shake_hands();
    client.send(&request(0, READ, 1, 8192, 65_536));
    let mut other = unix(&folder);
    other.shake_hands();
    drop(client);
    other.send(&request(0, READ, 2, 8192, 512));
    assert_eq!(other.receive(16 + 512).answer(|_| 512), (2, Answer::Data(None, vec![0; 512])));
    assert_eq!(server.end().reads, 2);
}

#[test]
fn a_stop_answers_what_is_outstanding_and_refuses_what_comes() {
    let folder = Folder::new();
    let server =
        Running::new(Listener::unix(&folder.socket()).unwrap(), Settings::default(), Slow::new(300), |_| {});
    let mut client = unix(&folder);
    client.shake_hands();
    client.send(&request(0, READ, 1, 8192, 512));
    std::thread::sleep(Duration::from_millis(50));
    server.stop.stop();
    while folder.socket().exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    client.send(&request(0, FLUSH, 2, 0, 0));
    assert_eq!(client.receive(16).answer(|_| 0), (2, Answer::Error(ESHUTDOWN, String::new(), None)));
    assert_eq!(client.receive(16 + 512).answer(|_| 512), (1, Answer::Data(None, vec![0; 512])));
    assert!(client.is_closed());
    let report = server.end();
    assert_eq!((report.reads, report.flushes), (1, 0));
}

#[test]
fn a_stop_waits_no_longer_than_the_grace() {
    let folder = Folder::new();
    let settings = Settings { grace: Span::from_ns(50 * MS), ..Settings::default() };
    let server =
        Running::new(Listener::unix(&folder.socket()).unwrap(), settings, Slow::new(1_000_000), |_| {});
    let mut client = unix(&folder);
    client.shake_hands();
    client.send(&request(0, READ, 1, 8192, 512));
    std::thread::sleep(Duration::from_millis(20));
    server.end();
    assert!(client.is_closed());
}

#[test]
fn an_export_that_is_not_possible_is_refused() {
    let folder = Folder::new();
    let features = Memory::new(SIZE).features();
    let base = Export::new(features);
    let cases = [
        Export { minimum: 3, ..base.clone() },
        Export { minimum: 1 << 17, ..base.clone() },
        Export { maximum: 1 << 27, ..base.clone() },
        Export { maximum: 1000, ..base.clone() },
        Export { name: "n".repeat(4097), ..base.clone() },
        Export { features: Features { preferred: 100, ..features }, ..base.clone() },
        Export { minimum: 4096, features: Features { size: 4097, ..features }, ..base.clone() },
        Export { features: Features { size: 1 << 63, ..features }, ..base.clone() },
    ];
    for export in cases {
        let listener = Listener::unix(&folder.socket()).unwrap();
        let refused = Server::new(export, vec![listener], Settings::default());
        assert!(matches!(refused, Err(ServeError::Export(_))));
    }
    assert!(matches!(Server::new(base, vec![], Settings::default()), Err(ServeError::Listeners(0))));
}
