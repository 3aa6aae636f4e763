//! The clients of `workload.clients`: a synthetic workload for each, with random streams of its own.
//!
//! A run takes the requests of each client by [`Source::next_of`] when the client is to submit them, since the order of the
//! clients depends on the drive. [`Source::next_request`] is for what only looks at the requests, such as `spec fit`: the
//! clients take turns.

use super::SyntheticSource;
use super::synthetic::Place;
use crate::error::{ErrorKind, TraceError};
use crate::source::Source;
use nandlab_base::base::request::{Op, Request};
use nandlab_base::clients::ClientSpec;

/// How often and how far clients are played.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The number of times that each client plays its requests (`workload.repeat`).
    pub rounds: u32,
    /// The most requests that [`Source::next_request`] returns; 0: no limit. The runner limits those of `next_of`.
    pub requests_max: u64,
}

/// The source of `workload.clients`.
pub struct ClientsSource {
    clients: Vec<Client>,
    logical_bytes: u64,
    seed: u64,
    limits: Limits,
    /// The client whose turn it is, and the requests so far, of `next_request`.
    turn: usize,
    taken: u64,
}

struct Client {
    spec: ClientSpec,
    source: SyntheticSource,
    round: u32,
    /// Writes since the last flush.
    unflushed: u64,
    /// Whether the next request is a flush.
    flushes: bool,
    has_ended: bool,
}

fn open(
    client: &ClientSpec,
    number: usize,
    logical_bytes: u64,
    seed: u64,
) -> Result<SyntheticSource, TraceError> {
    let key = format!("workload.clients[{number}]");
    let (begin, bytes) = client.span.bytes(logical_bytes, client.align_bytes);
    SyntheticSource::within(&client.synthetic(), &Place { begin, bytes, key: &key, client: number }, seed)
}

impl ClientsSource {
    /// The clients on a drive of `logical_bytes`, with the run's `seed`.
    ///
    /// # Errors
    /// As [`SyntheticSource::open`], for any client.
    pub fn open(
        clients: &[ClientSpec],
        logical_bytes: u64,
        seed: u64,
        limits: Limits,
    ) -> Result<Self, TraceError> {
        let of = |(number, spec): (usize, &ClientSpec)| {
            let source = open(spec, number, logical_bytes, seed)?;
            let spec = spec.clone();
            Ok(Client { spec, source, round: 1, unflushed: 0, flushes: false, has_ended: false })
        };
        let clients = clients.iter().enumerate().map(of).collect::<Result<_, TraceError>>()?;
        Ok(Self { clients, logical_bytes, seed, limits, turn: 0, taken: 0 })
    }
}

impl Source for ClientsSource {
    fn next_request(&mut self) -> Option<Result<Request, TraceError>> {
        if self.limits.requests_max > 0 && self.taken == self.limits.requests_max {
            return None;
        }
        for _ in 0..self.clients.len() {
            let client = self.turn;
            self.turn = (self.turn + 1) % self.clients.len();
            if let Some(request) = self.next_of(client) {
                self.taken += 1;
                return Some(request);
            }
        }
        None
    }

    fn next_of(&mut self, number: usize) -> Option<Result<Request, TraceError>> {
        let client = &mut self.clients[number];
        if client.has_ended {
            return None;
        }
        if std::mem::take(&mut client.flushes) {
            return Some(Ok(Request::flush()));
        }
        let request = match client.source.next_request() {
            None if client.round < self.limits.rounds => {
                client.round += 1;
                match open(&client.spec, number, self.logical_bytes, self.seed) {
                    Ok(source) => client.source = source,
                    Err(error) => return Some(Err(error)),
                }
                client.source.next_request()
            }
            request => request,
        };
        match &request {
            None => client.has_ended = true,
            Some(Ok(request)) if request.op == Op::Write && client.spec.flush_every > 0 => {
                client.unflushed += 1;
                if client.unflushed == client.spec.flush_every {
                    (client.unflushed, client.flushes) = (0, true);
                }
            }
            Some(_) => {}
        }
        request
    }

    fn progress(&self) -> f64 {
        let rounds = f64::from(self.limits.rounds);
        let of = |client: &Client| (f64::from(client.round - 1) + client.source.progress()) / rounds;
        let done: f64 = self.clients.iter().map(of).sum();
        done / self.clients.len() as f64
    }
}

/// Refuses clients whose number of requests depends on the run.
///
/// # Errors
/// A client has a duration.
pub(crate) fn read_again(clients: &[ClientSpec], what: &str) -> Result<(), TraceError> {
    let Some(number) = clients.iter().position(|client| client.duration.is_some()) else { return Ok(()) };
    Err(TraceError::new(
        ErrorKind::Setting,
        format!(
            "workload.clients[{number}].duration: the number of requests of \"{}\" depends on the run, and {what} needs it \
             before",
            clients[number].name
        ),
        "set a number of requests instead of a duration",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandlab_base::base::units::Span;
    use nandlab_base::clients::{Bound, ClientSpan, LatencyFrom};
    use nandlab_base::workload::{Address, Arrival};

    const DRIVE: u64 = 1 << 30;
    const ONCE: Limits = Limits { rounds: 1, requests_max: 0 };

    fn client(address: Address) -> ClientSpec {
        ClientSpec {
            name: "a".to_owned(),
            requests: 2000,
            read_fraction: 0.3,
            trim_fraction: 0.1,
            sizes: vec![(4096, 3.0), (16_384, 1.0)],
            address,
            span: ClientSpan { from: Bound::Share(0.0), to: Bound::Share(0.3) },
            align_bytes: 4096,
            flush_every: 0,
            arrival: Arrival::QueueDepth(1),
            start: Span::ZERO,
            duration: None,
            think_time: Span::ZERO,
            outstanding: None,
            latency_from: LatencyFrom::Due,
            placement: 0,
        }
    }

    fn of(source: &mut ClientsSource, client: usize) -> Vec<Request> {
        std::iter::from_fn(|| source.next_of(client)).map(Result::unwrap).collect()
    }

    const EVERY: [Address; 4] =
        [Address::Sequential, Address::Uniform, Address::Zipf(0.9), Address::Hot { hot: 0.2, share: 0.8 }];

    #[test]
    fn the_first_client_makes_the_requests_of_a_synthetic_workload() {
        for address in EVERY {
            let client = client(address);
            let synthetic = nandlab_base::workload::SyntheticSpec { span: 0.3, ..client.synthetic() };
            let mut single = SyntheticSource::open(&synthetic, DRIVE, 7).unwrap();
            let single: Vec<_> = std::iter::from_fn(|| single.next_request()).map(Result::unwrap).collect();
            for clients in [vec![client.clone()], vec![client.clone(), client]] {
                let mut source = ClientsSource::open(&clients, DRIVE, 7, ONCE).unwrap();
                assert_eq!(of(&mut source, 0), single);
                assert!(
                    clients.len() == 1 || of(&mut source, 1) != single,
                    "the second client has its own streams"
                );
            }
        }
    }

    #[test]
    fn addresses_are_within_the_span() {
        for address in EVERY {
            let (from, to) = (Bound::Bytes((64 << 20) + 512), Bound::Bytes((65 << 20) + 5000));
            let client = ClientSpec { span: ClientSpan { from, to }, ..client(address) };
            let mut source = ClientsSource::open(&[client.clone(), client], DRIVE, 7, ONCE).unwrap();
            for number in [1, 0] {
                let requests = of(&mut source, number);
                let begin = requests.iter().map(|request| request.offset).min().unwrap();
                let end = requests.iter().map(|request| request.offset + request.len).max().unwrap();
                assert_eq!((begin, end), ((64 << 20) + 4096, (65 << 20) + 4096), "{address:?}");
            }
        }
    }

    #[test]
    fn a_flush_follows_after_so_many_writes_also_across_rounds() {
        let client = ClientSpec { flush_every: 3, requests: 10, ..client(Address::Uniform) };
        let limits = Limits { rounds: 5, requests_max: 0 };
        let requests = of(&mut ClientsSource::open(&[client], DRIVE, 1, limits).unwrap(), 0);
        let mut writes = 0;
        for request in &requests {
            match request.op {
                Op::Write => writes += 1,
                Op::Flush => assert_eq!(std::mem::take(&mut writes), 3),
                _ => {}
            }
            assert!(writes <= 3);
        }
        let others: Vec<_> = requests.iter().filter(|request| request.op != Op::Flush).collect();
        assert_eq!(others.len(), 50);
        assert!((0..40).all(|n| others[n] == others[n + 10]), "each round makes the same requests");
    }

    #[test]
    fn one_after_another_the_clients_take_turns_up_to_the_limit() {
        let short = ClientSpec { requests: 3, ..client(Address::Sequential) };
        let long = ClientSpec { requests: 9, ..client(Address::Sequential) };
        let limits = Limits { rounds: 1, requests_max: 10 };
        let mut source = ClientsSource::open(&[short, long], DRIVE, 1, limits).unwrap();
        assert_eq!(std::iter::from_fn(|| source.next_request()).count(), 10);
        assert!((source.progress() - f64::midpoint(1.0, 7.0 / 9.0)).abs() < 1e-9);
        let mut all = ClientsSource::open(&[client(Address::Uniform)], DRIVE, 1, ONCE).unwrap();
        assert_eq!(std::iter::from_fn(|| all.next_request()).count(), 2000);
    }

    #[test]
    fn what_reads_the_workload_before_the_run_refuses_a_duration() {
        let timed = ClientSpec { duration: Some(Span::from_ns(5)), ..client(Address::Uniform) };
        let error = read_again(&[client(Address::Uniform), timed], "a life").unwrap_err().to_string();
        assert!(
            error.contains("workload.clients[1].duration") && error.contains("a life needs it"),
            "{error}"
        );
        assert!(read_again(&[client(Address::Uniform)], "a life").is_ok());
    }
}
