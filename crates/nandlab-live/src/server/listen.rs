//! Sockets on which clients connect.

use std::fs::{DirBuilder, Metadata, Permissions};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// Why a [`Listener`] cannot be made.
#[derive(Debug)]
pub enum ListenError {
    /// The folder of a Unix socket is open to other users.
    OpenFolder(PathBuf),
    /// There is a file with the path of the Unix socket, which is no socket.
    NoSocket(PathBuf),
    /// Another server listens on the Unix socket.
    InUse(PathBuf),
    /// The address is not that of this machine alone.
    Remote(SocketAddr),
    /// The system refuses; the text says what.
    System(String, io::Error),
}

impl std::fmt::Display for ListenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OpenFolder(folder) => write!(
                f,
                "the folder {} is open to other users: name a socket in a folder that does not exist yet, or that only you \
                 may enter (chmod 700)",
                folder.display()
            ),
            Self::NoSocket(path) => {
                write!(f, "{} exists and is no socket: name another path", path.display())
            }
            Self::InUse(path) => {
                write!(f, "a server listens on {} already: stop it, or name another path", path.display())
            }
            Self::Remote(address) => write!(
                f,
                "{address} can be reached from other machines, and NBD has no passwords: listen on 127.0.0.1 or ::1, or \
                 allow remote clients"
            ),
            Self::System(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System(_, error) => Some(error),
            _ => None,
        }
    }
}

#[derive(Debug)]
enum Socket {
    Unix {
        socket: UnixListener,
        path: PathBuf,
        /// Device and inode of the socket's file.
        file: (u64, u64),
    },
    Tcp(TcpListener),
}

/// A socket on which clients connect. The file of a Unix socket is removed with the listener.
#[derive(Debug)]
pub struct Listener(Socket);

impl Listener {
    /// Listens on a Unix socket with mode 0600. Its folder is made with mode 0700 if it does not exist. A socket that a
    /// server has left there is replaced.
    ///
    /// # Errors
    /// When the folder belongs to another user or others may enter it, when the path is used, or when the system refuses,
    /// for example a path of more than 107 bytes.
    pub fn unix(path: &Path) -> Result<Self, ListenError> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        close_folder(folder)?;
        remove_left_socket(path)?;
        let system = |error| ListenError::System(format!("cannot listen on {}", path.display()), error);
        let socket = UnixListener::bind(path).map_err(system)?;
        let listen = || {
            std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
            socket.set_nonblocking(true)?;
            path.symlink_metadata()
        };
        let file = listen().map_err(system)?;
        Ok(Self(Socket::Unix { socket, path: path.to_owned(), file: identity(&file) }))
    }

    /// Listens on a TCP address; port 0 lets the system choose one.
    ///
    /// # Errors
    /// When other machines could connect and `allow_remote` is not set, or when the system refuses.
    pub fn tcp(address: SocketAddr, allow_remote: bool) -> Result<Self, ListenError> {
        if !address.ip().to_canonical().is_loopback() && !allow_remote {
            return Err(ListenError::Remote(address));
        }
        let system = |error| ListenError::System(format!("cannot listen on {address}"), error);
        let socket = TcpListener::bind(address).map_err(system)?;
        socket.set_nonblocking(true).map_err(system)?;
        Ok(Self(Socket::Tcp(socket)))
    }

    /// The URI of the default export, as clients take it
    /// (<https://github.com/NetworkBlockDevice/nbd/blob/master/doc/uri.md>).
    pub fn uri(&self) -> String {
        match &self.0 {
            Socket::Unix { path, .. } => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                let escaped = path.as_os_str().as_encoded_bytes().iter().map(|&byte| match byte {
                    b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                        char::from(byte).to_string()
                    }
                    _ => format!("%{byte:02X}"),
                });
                format!("nbd+unix:///?socket={}", escaped.collect::<String>())
            }
            Socket::Tcp(_) => {
                self.tcp_address().map_or_else(String::new, |address| format!("nbd://{address}"))
            }
        }
    }

    /// The address of a TCP listener.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match &self.0 {
            Socket::Unix { .. } => None,
            Socket::Tcp(socket) => socket.local_addr().ok(),
        }
    }

    /// A client that has connected, without blocking.
    pub(super) fn accept(&self) -> io::Result<OwnedFd> {
        match &self.0 {
            Socket::Unix { socket, .. } => {
                let (stream, _) = socket.accept()?;
                stream.set_nonblocking(true)?;
                Ok(stream.into())
            }
            Socket::Tcp(socket) => {
                let (stream, _) = socket.accept()?;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Ok(stream.into())
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Socket::Unix { socket, .. } => socket.as_fd(),
            Socket::Tcp(socket) => socket.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Socket::Unix { path, file, .. } = &self.0
            && path.symlink_metadata().is_ok_and(|found| identity(&found) == *file)
        {
            // A file that somebody else has removed meanwhile needs no removal.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Device and inode of a file.
fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Makes the folder for the user alone, or checks that it is.
fn close_folder(folder: &Path) -> Result<(), ListenError> {
    let system = |error| ListenError::System(format!("cannot use the folder {}", folder.display()), error);
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(system(error)),
    }
    let found = folder.metadata().map_err(system)?;
    let is_ours = found.uid() == rustix::process::geteuid().as_raw();
    if found.is_dir() && is_ours && found.mode() & 0o077 == 0 {
        Ok(())
    } else {
        Err(ListenError::OpenFolder(folder.to_owned()))
    }
}

/// Removes a socket on which nobody listens.
fn remove_left_socket(path: &Path) -> Result<(), ListenError> {
    let Ok(found) = path.symlink_metadata() else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(ListenError::NoSocket(path.to_owned()));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path)
            .map_err(|error| ListenError::System(format!("cannot replace {}", path.display()), error)),
        _ => Err(ListenError::InUse(path.to_owned())),
    }
}
