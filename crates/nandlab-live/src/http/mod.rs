//! A window on a live drive over HTTP: one page, its data, and metrics.
//!
//! A thread of its own answers. It gets snapshots over bounded queues (`server::Publisher`), so the thread of the drive
//! never waits for it, and it gives orders over the socket for orders, like any other program.
//!
//! | request | answer | with the token |
//! |---|---|---|
//! | `GET /`, `/page.js`, `/page.css` | the page, which has no data | no |
//! | `GET /snapshot` | state and history as JSON | yes |
//! | `GET /explained/N` | what a slow request waited for, as JSON | yes |
//! | `GET /metrics` | metrics in the text format of OpenMetrics 1.0 | yes |
//! | `POST /cut`, `/restore`, `/detect` | the answer to the order, as JSON | yes |
//!
//! **Who may ask.** The token is made anew for each server. It is in the fragment of the page's address, which a browser
//! sends to nobody, and in the header `Authorization: Bearer` of requests for data; a page of another site can send neither.
//! There are no cookies. The header `Host` has to name the address of the window, so that a name of another site that leads
//! to this machine is of no use (DNS rebinding), and `Origin`, if there is one, has to be the window's own. The page loads
//! nothing from elsewhere, and its content security policy forbids that.

mod history;
mod metrics;
mod service;

use crate::server::Window;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

/// Why a window cannot be opened.
#[derive(Debug)]
pub enum HttpError {
    /// The address is not that of this machine alone.
    Remote(SocketAddr),
    /// The system refuses; the text says what.
    System(String, io::Error),
}

impl std::fmt::Display for HttpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Remote(address) => write!(
                f,
                "{address} can be reached from other machines, and HTTP sends the token of the window in the clear: listen on \
                 127.0.0.1 or ::1, or allow remote clients"
            ),
            Self::System(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for HttpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System(_, error) => Some(error),
            Self::Remote(_) => None,
        }
    }
}

/// A window that listens and is not served yet.
#[derive(Debug)]
pub struct Http {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
    allows_remote: bool,
}

impl Http {
    /// Listens on an address; port 0 lets the system choose one.
    ///
    /// # Errors
    /// When other machines could connect and `allow_remote` is not set, or when the system refuses.
    pub fn listen(address: SocketAddr, allow_remote: bool) -> Result<Self, HttpError> {
        let is_local = address.ip().to_canonical().is_loopback();
        if !is_local && !allow_remote {
            return Err(HttpError::Remote(address));
        }
        let listen = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let system = |error| HttpError::System(format!("cannot listen on {address}"), error);
        let (listener, bound) = listen().map_err(system)?;
        let token =
            token().map_err(|error| HttpError::System("cannot make a token for --http".to_owned(), error))?;
        Ok(Self { listener, address: bound, token, allows_remote: !is_local })
    }

    /// The address of the page, with the token in its fragment.
    pub fn url(&self) -> String {
        format!("http://{}/#{}", self.address, self.token)
    }

    /// Serves the window in a thread of its own, until the other end of `window` is dropped. `orders` is the socket for
    /// orders of the drive.
    ///
    /// # Errors
    /// When the system has no further thread.
    pub fn serve(self, window: Window, orders: PathBuf) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("window".to_owned());
        thread.spawn(move || service::serve(self, window, orders)).map(drop)
    }
}

/// 128 random bits in hexadecimal digits.
fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
