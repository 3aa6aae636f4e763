//! The answers to requests.

use super::Http;
use super::history::History;
use super::metrics::metrics;
use crate::server::Window;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::TryRecvError;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

/// How often new snapshots are looked for.
const LOOK: Duration = Duration::from_millis(200);
/// The most connections at a time; further ones wait.
const CONNECTIONS_MAX: u32 = 32;
/// The time for the header of a request, and for the answer to an order.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest answer to an order.
const ANSWER_MAX: u64 = 64 << 20;

const PAGE: &str = include_str!("page/index.html");
const SCRIPT: &str = include_str!("page/page.js");
const STYLE: &str = include_str!("page/page.css");

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const JSON: &str = "application/json";

/// What the requests share.
struct Shared {
    history: RefCell<History>,
    address: SocketAddr,
    token: String,
    allows_remote: bool,
    orders: PathBuf,
    connections: Cell<u32>,
}

/// Serves the window until the server of the drive has ended.
pub(super) fn serve(http: Http, window: Window, orders: PathBuf) {
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
    let shared = Rc::new(Shared {
        history: RefCell::new(History::default()),
        address: http.address,
        token: http.token,
        allows_remote: http.allows_remote,
        orders,
        connections: Cell::new(0),
    });
    let local = LocalSet::new();
    local.block_on(&runtime, async move {
        let Ok(listener) = TcpListener::from_std(http.listener) else { return };
        tokio::task::spawn_local(accept(listener, shared.clone()));
        loop {
            loop {
                match window.filled.try_recv() {
                    Ok(snapshot) => {
                        let done = shared.history.borrow_mut().take(snapshot);
                        if let Some(done) = done {
                            // There is room for every snapshot that is under way.
                            let _ = window.empty.try_send(done);
                        }
                    }
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    });
}

async fn accept(listener: TcpListener, shared: Rc<Shared>) {
    loop {
        if shared.connections.get() >= CONNECTIONS_MAX {
            tokio::time::sleep(LOOK).await;
            continue;
        }
        let Ok((stream, _)) = listener.accept().await else {
            // Too many files, or the client has left.
            tokio::time::sleep(LOOK).await;
            continue;
        };
        shared.connections.set(shared.connections.get() + 1);
        let shared = shared.clone();
        tokio::task::spawn_local(async move {
            let answer = |request| {
                let shared = shared.clone();
                async move { Ok::<_, Infallible>(shared.answer(&request).await) }
            };
            let mut builder = hyper::server::conn::http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE).keep_alive(false);
            let served = builder.serve_connection(TokioIo::new(stream), service_fn(answer));
            // Header, order and answer. A client that breaks its connection harms nobody else, and one that does not take
            // its answer loses its place.
            let _ = tokio::time::timeout(3 * PATIENCE, served).await;
            shared.connections.set(shared.connections.get() - 1);
        });
    }
}

type Answer = Response<Full<Bytes>>;

fn answer(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    answer
}

fn refused(status: StatusCode, text: &str) -> Answer {
    answer(status, JSON, json!({ "error": text }).to_string())
}

impl Shared {
    async fn answer(&self, request: &Request<Incoming>) -> Answer {
        if !self.is_addressed(request.headers()) {
            return refused(
                StatusCode::MISDIRECTED_REQUEST,
                "the header Host is not the address of this window",
            );
        }
        if !self.is_of_the_page(request.headers()) {
            return refused(StatusCode::FORBIDDEN, "the request comes from another page");
        }
        let path = request.uri().path();
        let order = match path {
            "/cut" | "/restore" | "/detect" => Some(&path[1..]),
            _ => None,
        };
        let wanted = if order.is_some() { Method::POST } else { Method::GET };
        let is_known = order.is_some()
            || matches!(path, "/" | "/page.js" | "/page.css" | "/snapshot" | "/metrics")
            || path.starts_with("/explained/");
        if !is_known {
            return refused(StatusCode::NOT_FOUND, "there is nothing at this address");
        }
        if *request.method() != wanted {
            let mut answer = refused(StatusCode::METHOD_NOT_ALLOWED, "another method is needed");
            let allowed = if order.is_some() { "POST" } else { "GET" };
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
            return answer;
        }
        match path {
            "/" => return answer(StatusCode::OK, "text/html; charset=utf-8", PAGE),
            "/page.js" => return answer(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT),
            "/page.css" => return answer(StatusCode::OK, "text/css; charset=utf-8", STYLE),
            _ => {}
        }
        if !self.has_token(request.headers()) {
            let mut answer = refused(StatusCode::UNAUTHORIZED, "the token is missing or wrong");
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return answer;
        }
        if let Some(order) = order {
            return self.give(order).await;
        }
        let history = self.history.borrow();
        match path {
            "/metrics" => answer(
                StatusCode::OK,
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                metrics(&history),
            ),
            "/snapshot" => match history.to_json() {
                Some(value) => answer(StatusCode::OK, JSON, value.to_string()),
                None => refused(StatusCode::SERVICE_UNAVAILABLE, "there is no snapshot of the drive yet"),
            },
            _ => {
                let id = path.strip_prefix("/explained/").and_then(|id| id.parse().ok());
                match id.and_then(|id| history.explained(id)) {
                    Some(value) => answer(StatusCode::OK, JSON, value.to_string()),
                    None => refused(StatusCode::NOT_FOUND, "this request is no longer known"),
                }
            }
        }
    }

    /// Whether the header Host is an address of the window.
    fn is_addressed(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        host.to_str().is_ok_and(|host| self.is_own(host))
    }

    /// Whether a host with its port is that of the window: its address, or `localhost`. A window that other machines may
    /// reach has further addresses, and any of them will do, but no name.
    fn is_own(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !name.ends_with(':') && !port.ends_with(']') => (name, port),
            _ => (host, "80"),
        };
        if port.parse() != Ok(self.address.port()) {
            return false;
        }
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        inner.parse::<IpAddr>().is_ok_and(|ip| ip == self.address.ip() || self.allows_remote)
    }

    /// Whether the header Origin, if there is one, is that of the window's page.
    fn is_of_the_page(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST);
        headers.get_all(header::ORIGIN).iter().all(|origin| {
            let origin = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
            origin.is_some_and(|origin| host.is_some_and(|host| host.as_bytes() == origin.as_bytes()))
        })
    }

    /// Whether the token is there. The time of the comparison does not depend on where it differs.
    fn has_token(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let Some(given) = given.and_then(|given| given.strip_prefix(b"Bearer ")) else { return false };
        let token = self.token.as_bytes();
        given.len() == token.len()
            && given.iter().zip(token).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }

    /// Gives an order to the drive.
    async fn give(&self, order: &str) -> Answer {
        let given = tokio::time::timeout(PATIENCE, self.ask(order)).await;
        let Ok(Ok(text)) = given else {
            return refused(StatusCode::BAD_GATEWAY, "the drive does not answer");
        };
        let Ok(value) = serde_json::from_slice::<Value>(&text) else {
            return refused(StatusCode::BAD_GATEWAY, "the drive does not answer");
        };
        let status = if value.get("ok").is_some() { StatusCode::OK } else { StatusCode::CONFLICT };
        answer(status, JSON, value.to_string())
    }

    async fn ask(&self, order: &str) -> std::io::Result<Vec<u8>> {
        let mut socket = UnixStream::connect(&self.orders).await?;
        socket.write_all(format!("{order}\n").as_bytes()).await?;
        let (mut text, mut part) = (Vec::new(), [0; 4096]);
        while !text.ends_with(b"\n") && (text.len() as u64) < ANSWER_MAX {
            match socket.read(&mut part).await? {
                0 => break,
                len => text.extend_from_slice(&part[..len]),
            }
        }
        Ok(text)
    }
}
