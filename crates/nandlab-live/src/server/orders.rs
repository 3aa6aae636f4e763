//! Orders from outside the protocol, over a Unix socket of their own.
//!
//! An order is a line with a word, such as `stat`. A text may follow the word of a mark; a time in nanoseconds follows that
//! of a cut in recovery, and a placement identifier that of an update of a handle. The answer is a line of JSON: an object
//! with the key `ok` or `error`.

use rustix::buffer::spare_capacity;
use rustix::fd::OwnedFd;
use rustix::io::Errno as SystemError;
use rustix::net::{RecvFlags, SendFlags};

use crate::backend::Order;
use nandlab_base::base::units::Span;

/// The longest line.
const LINE_MAX: usize = 1024;
/// Bytes of answers that are not sent; a connection beyond it is closed.
const OUTPUT_MAX: usize = 64 << 20;

/// A line of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// For the backend.
    Order(Order<'static>),
    /// A mark for the recording.
    Mark(String),
    /// The server ends.
    Stop,
    /// Nothing that is known.
    Unknown,
}

impl Line {
    fn of(text: &[u8]) -> Self {
        match text.trim_ascii() {
            b"stat" => Self::Order(Order::Stat),
            b"smart" => Self::Order(Order::Smart),
            b"fdp" => Self::Order(Order::Fdp),
            b"state" => Self::Order(Order::State),
            b"cut" => Self::Order(Order::Cut),
            b"restore" => Self::Order(Order::Restore),
            b"detect" => Self::Order(Order::Detect),
            b"save" => Self::Order(Order::Save),
            b"stop" => Self::Stop,
            b"mark" => Self::Mark(String::new()),
            line => {
                let after =
                    |word: &[u8]| Some(String::from_utf8_lossy(line.strip_prefix(word)?).into_owned());
                if let Some(text) = after(b"mark ") {
                    Self::Mark(text)
                } else if let Some(ns) = after(b"cut-in-recovery ").and_then(|text| text.parse().ok()) {
                    Self::Order(Order::CutInRecovery(Span::from_ns(ns)))
                } else if let Some(identifier) = after(b"update-handle ").and_then(|text| text.parse().ok()) {
                    Self::Order(Order::UpdateHandle(identifier))
                } else {
                    Self::Unknown
                }
            }
        }
    }
}

/// A connection that gives orders.
#[derive(Debug)]
pub(super) struct Orderer {
    pub(super) socket: OwnedFd,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Orderer {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self { socket, input: Vec::new(), output: Vec::new() }
    }

    /// Receives once. Returns whether the connection is still well.
    pub(super) fn receive(&mut self) -> bool {
        self.input.reserve(LINE_MAX);
        match rustix::net::recv(&self.socket, spare_capacity(&mut self.input), RecvFlags::DONTWAIT) {
            Ok((_, 0)) => false,
            Ok(_) | Err(SystemError::AGAIN | SystemError::INTR) => true,
            Err(_) => false,
        }
    }

    /// The next order that was received whole.
    pub(super) fn next(&mut self) -> Option<Line> {
        let end = match self.input.iter().position(|&byte| byte == b'\n') {
            Some(end) => end,
            None if self.input.len() < LINE_MAX => return None,
            None => self.input.len() - 1,
        };
        let line = Line::of(&self.input[..end]);
        self.input.drain(..=end);
        Some(line)
    }

    /// Appends an answer.
    pub(super) fn answer(&mut self, answer: &serde_json::Value) {
        self.output.extend_from_slice(answer.to_string().as_bytes());
        self.output.push(b'\n');
    }

    /// Sends as much as the other side can take. Returns whether the connection is still well.
    pub(super) fn send(&mut self) -> bool {
        while !self.output.is_empty() {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match rustix::net::send(&self.socket, &self.output, flags) {
                Ok(len) => drop(self.output.drain(..len)),
                Err(SystemError::AGAIN) => return self.output.len() <= OUTPUT_MAX,
                Err(SystemError::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Whether an answer is not sent.
    pub(super) fn has_output(&self) -> bool {
        !self.output.is_empty()
    }
}
