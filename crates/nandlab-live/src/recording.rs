//! The recorder of a session: the file is the journal of the drive.
//!
//! Records gather in memory and are written before a reply leaves ([`Recorder::commit`]), so what a client was told
//! outlives this process. With [`Sync::Data`] the file is synchronized with the disk before the reply to a flush or a write
//! with FUA, so it outlives the machine.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nandlab_base::recording::{Encoder, Entry, Header, Recording, RecordingError};
use rustix::fs::FlockOperation;

use crate::simulated::beside;

/// Records beyond so many bytes are written before the next reply is due.
const PENDING_MAX: usize = 4 << 20;
/// The usual limit of a file: none.
pub const NO_LIMIT: u64 = u64::MAX;

/// What is done before the reply to a flush or a write with FUA leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// The records are given to the system: they outlive this process.
    None,
    /// The records are on the disk, too (`fdatasync`).
    Data,
}

/// How a session is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The file.
    pub path: PathBuf,
    /// The most bytes of the file.
    pub limit: u64,
    /// What is done before the reply to a flush.
    pub sync: Sync,
}

/// Why a session cannot be recorded, or cannot go on.
#[derive(Debug)]
pub enum RecorderError {
    /// The file cannot be made, opened or changed.
    Io(PathBuf, io::Error),
    /// The file exists.
    Exists(PathBuf),
    /// Another process writes the file.
    Locked(PathBuf),
    /// The file cannot be read as a recording.
    Unread(PathBuf, RecordingError),
}

impl std::fmt::Display for RecorderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(path, error) => {
                write!(f, "{}: the recording cannot be written: {error}", path.display())
            }
            Self::Exists(path) => {
                write!(
                    f,
                    "{} exists\n  remedy: name another file for the recording, or remove this one",
                    path.display()
                )
            }
            Self::Locked(path) => write!(
                f,
                "{} is in use: another server records its session there\n  remedy: stop that server, or name another place",
                path.display()
            ),
            Self::Unread(path, error) => {
                write!(f, "{}: {error}\n  remedy: {}", path.display(), error.remedy())
            }
        }
    }
}

impl std::error::Error for RecorderError {}

/// Records a session.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: File,
    encoder: Encoder,
    /// Records that are not written.
    pending: Vec<u8>,
    /// Bytes of the file up to the last whole record.
    end: u64,
    limit: u64,
    sync: Sync,
    is_synced: bool,
    /// Why the file takes no further record.
    failure: Option<String>,
}

impl Recorder {
    /// A new recording, for this user alone.
    ///
    /// # Errors
    /// When the file exists or cannot be made.
    pub fn create(recorded: &Recorded, header: &Header) -> Result<Self, RecorderError> {
        let recorder = Self::create_unsynced(recorded, header)?;
        if let Err(error) = recorder.file.sync_all().and_then(|()| sync_folder(&recorded.path)) {
            // A file without a whole header is of no use to anyone.
            let _ = std::fs::remove_file(&recorded.path);
            return Err(RecorderError::Io(recorded.path.clone(), error));
        }
        Ok(recorder)
    }

    fn create_unsynced(recorded: &Recorded, header: &Header) -> Result<Self, RecorderError> {
        let Recorded { path, limit, sync } = recorded;
        let failed = |error| RecorderError::Io(path.clone(), error);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => RecorderError::Exists(path.clone()),
            _ => failed(error),
        })?;
        lock(path, &file)?;
        let bytes = header.to_bytes();
        if let Err(error) = file.write_all_at(&bytes, 0) {
            let _ = std::fs::remove_file(path);
            return Err(failed(error));
        }
        Ok(Self::new(path, file, header.encoder(), bytes.len() as u64, *limit, *sync))
    }

    /// A new recording in the place of another one, which it replaces when its header is on the disk.
    ///
    /// # Errors
    /// When the file cannot be made. The other one is then as before.
    pub fn replace(recorded: &Recorded, header: &Header) -> Result<Self, RecorderError> {
        let mut recorder = Self::create_beside(recorded, header)?;
        let failed = |error| RecorderError::Io(recorded.path.clone(), error);
        recorder.file.sync_all().map_err(failed)?;
        std::fs::rename(&recorder.path, &recorded.path).map_err(failed)?;
        sync_folder(&recorded.path).map_err(failed)?;
        recorder.is_in_place(recorded);
        Ok(recorder)
    }

    /// A new recording beside another one, whose header may not be on the disk.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub(crate) fn create_beside(recorded: &Recorded, header: &Header) -> Result<Self, RecorderError> {
        let new = Recorded { path: beside(&recorded.path), ..recorded.clone() };
        // One is left if a process was killed here.
        let _ = std::fs::remove_file(&new.path);
        Self::create_unsynced(&new, header)
    }

    /// The file, for another thread that waits until it is on the disk.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// The file, which was made beside another one, has its place and its name now.
    pub(crate) fn is_in_place(&mut self, recorded: &Recorded) {
        self.path.clone_from(&recorded.path);
    }

    /// The recording with this `id` takes its place if it is still beside another one.
    ///
    /// # Errors
    /// When another server writes it, or the file cannot be renamed.
    pub(crate) fn find(recorded: &Recorded, id: u64) -> Result<(), RecorderError> {
        let open = |path: &Path| {
            let file = File::open(path).ok()?;
            let recording = Recording::open(BufReader::new(&file)).ok()?;
            (recording.header().id == id).then_some(file)
        };
        let path = beside(&recorded.path);
        if open(&recorded.path).is_some() {
            return Ok(());
        }
        let Some(file) = open(&path) else { return Ok(()) };
        lock(&path, &file)?;
        let failed = |error| RecorderError::Io(path.clone(), error);
        std::fs::rename(&path, &recorded.path).and_then(|()| sync_folder(&recorded.path)).map_err(failed)
    }

    /// Tries again to write the records that the file did not take. Returns whether it has them now.
    pub(crate) fn retry(&mut self) -> bool {
        self.failure = None;
        self.commit()
    }

    /// The file takes no further record.
    pub(crate) fn give_up(&mut self, why: &str) {
        self.fail(why);
    }

    fn new(path: &Path, file: File, encoder: Encoder, end: u64, limit: u64, sync: Sync) -> Self {
        let path = path.to_owned();
        Self { path, file, encoder, pending: Vec::new(), end, limit, sync, is_synced: true, failure: None }
    }

    /// Opens a recording to go on with it: reads it with `read`, which takes every record, and drops a torn tail.
    ///
    /// # Errors
    /// When the file is in use, cannot be read or is damaged, or when `read` fails.
    pub fn resume<E: From<RecorderError>>(
        recorded: &Recorded,
        read: impl FnOnce(&mut Recording<BufReader<File>>, u64) -> Result<(), E>,
    ) -> Result<Self, E> {
        let Recorded { path, limit, sync } = recorded;
        let failed = |error| RecorderError::Io(path.clone(), error);
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        lock(path, &file)?;
        let unread = |error| RecorderError::Unread(path.clone(), error);
        let reader = BufReader::with_capacity(1 << 20, file.try_clone().map_err(failed)?);
        let mut recording = Recording::open(reader).map_err(unread)?;
        let bytes = file.metadata().map_err(failed)?.len();
        read(&mut recording, bytes)?;
        while recording.next().map_err(unread)?.is_some() {}
        let end = recording.whole();
        if recording.torn() > 0 {
            file.set_len(end).and_then(|()| file.sync_all()).map_err(failed)?;
        }
        Ok(Self::new(path, file, recording.encoder(), end, *limit, *sync))
    }

    /// Adds a record.
    pub fn add(&mut self, entry: &Entry<'_>) {
        if self.failure.is_some() {
            return;
        }
        self.encoder.append(&mut self.pending, entry);
        if self.pending.len() >= PENDING_MAX {
            self.commit();
        }
    }

    /// Gives all records to the system. Returns whether that has succeeded, now and before.
    #[inline]
    pub fn commit(&mut self) -> bool {
        if self.pending.is_empty() { self.failure.is_none() } else { self.write() }
    }

    fn write(&mut self) -> bool {
        let end = self.end.saturating_add(self.pending.len() as u64);
        if self.failure.is_some() {
            return false;
        }
        if end > self.limit {
            return self.fail("it would be longer than --record-limit");
        }
        match self.file.write_all_at(&self.pending, self.end) {
            Ok(()) => {
                (self.end, self.is_synced) = (end, false);
                self.pending.clear();
                true
            }
            Err(error) => self.fail(&error.to_string()),
        }
    }

    /// Makes sure that all records are on the disk, if they have to be before the reply to a flush.
    pub fn sync(&mut self) -> bool {
        if self.sync == Sync::None || self.is_synced {
            return self.failure.is_none();
        }
        self.synchronize()
    }

    fn synchronize(&mut self) -> bool {
        match self.file.sync_data() {
            Ok(()) => {
                self.is_synced = true;
                self.failure.is_none()
            }
            Err(error) => self.fail(&error.to_string()),
        }
    }

    /// Ends the recording: all records are on the disk.
    ///
    /// # Errors
    /// Why the file has not taken all records.
    pub fn end(&mut self) -> Result<(), String> {
        self.commit();
        if self.failure.is_none() {
            self.synchronize();
        }
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// The file takes no further record, and ends with its last whole one.
    fn fail(&mut self, why: &str) -> bool {
        // Nothing more can be done if even that fails; a torn tail is dropped by readers.
        let _ = self.file.set_len(self.end);
        self.failure.get_or_insert(format!(
            "{}: the recording cannot grow: {why}\n  remedy: make room, and serve again: the recording holds the session \
             up to the last reply",
            self.path.display()
        ));
        false
    }

    /// Why the file takes no further record.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.end
    }

    /// The most bytes of the file.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }
}

/// Makes the name of a new file outlive the machine.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Keeps other processes from writing the file. A file that has lost its name to another one while it was opened is in use:
/// the server that has renamed the other one works.
fn lock(path: &Path, file: &File) -> Result<(), RecorderError> {
    let failed = |error| RecorderError::Io(path.to_owned(), error);
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Err(RecorderError::Locked(path.to_owned())),
        Err(error) => return Err(failed(error.into())),
    }
    let number = |of: std::fs::Metadata| (of.dev(), of.ino());
    let (ours, named) = (file.metadata().map_err(failed)?, std::fs::metadata(path));
    if named.is_ok_and(|named| number(named) == number(ours)) {
        Ok(())
    } else {
        Err(RecorderError::Locked(path.to_owned()))
    }
}
