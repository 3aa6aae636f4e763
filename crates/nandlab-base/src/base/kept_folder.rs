//! A folder of the user's cache in which results of work are kept for later runs, such as parsed traces.
//!
//! Files appear under their names by renaming, when they are complete, so that several processes may use the folder.
//! The files used longest ago are removed until the folder is within its limit; the time of a file's last use is its
//! mtime.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// An incomplete file of this age was left by a process that has ended.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);
/// Space that a small file takes on a file system.
const BLOCK: u64 = 4096;

/// A folder of kept files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFolder {
    path: PathBuf,
    bytes_max: u64,
}

impl KeptFolder {
    /// The folder `name` that the environment gives: in `$NANDLAB_CACHE`, else in `$XDG_CACHE_HOME/nandlab`, else in
    /// `~/.cache/nandlab`. `None`: nothing is kept, because `NANDLAB_CACHE` is `off` or there is no home folder.
    /// `bytes_max`: the limit of all files in the folder, in bytes.
    pub fn from_environment(name: &str, bytes_max: u64) -> Option<Self> {
        let of = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let folder = cache_folder(of("NANDLAB_CACHE"), of("XDG_CACHE_HOME"), of("HOME"))?;
        Some(Self::new(folder.join(name), bytes_max))
    }

    /// A folder, which is made when the first file is kept.
    pub fn new(path: impl Into<PathBuf>, bytes_max: u64) -> Self {
        Self { path: path.into(), bytes_max }
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The limit of all files in the folder, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Makes the folder, which only its owner can read, if it does not exist.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn make(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.path)
    }

    /// The bytes that this user may still write to the disk of the folder, which exists; `None` if it does not tell.
    pub fn bytes_free(&self) -> Option<u64> {
        let disk = rustix::fs::statvfs(&self.path).ok()?;
        disk.f_bavail.checked_mul(disk.f_frsize)
    }

    /// A new incomplete file.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn begin(&self) -> io::Result<IncompleteFile> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let now = now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = self.path.join(format!("{}-{now:x}-{count}.incomplete", std::process::id()));
        // Only the owner can read a file, because the owner of what it was made from may have restricted its readers.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(IncompleteFile { file, path, is_complete: false })
    }

    /// Removes incomplete files that were abandoned, and the files of these kinds used longest ago, until the rest is
    /// within the limit.
    pub fn sweep(&self, kinds: &[&str]) {
        let (mut entries, now) = (Vec::new(), now());
        for entry in self.entries() {
            match entry.kind() {
                Some("incomplete") if is_older(entry.modified, now, ABANDONED) => {
                    let _ = fs::remove_file(&entry.path);
                }
                Some(kind) if kinds.contains(&kind) => entries.push(entry),
                _ => {}
            }
        }
        entries.sort_by(|a, b| (a.modified, &a.path).cmp(&(b.modified, &b.path)));
        let space = |entry: &Entry| entry.meta.len().max(BLOCK);
        let mut bytes: u64 = entries.iter().map(space).sum();
        for entry in entries {
            if bytes <= self.bytes_max {
                break;
            }
            // Another process may have removed the file already.
            let _ = fs::remove_file(&entry.path);
            bytes -= space(&entry);
        }
    }

    /// The files of the folder; none if it does not exist.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        fs::read_dir(&self.path).into_iter().flatten().flatten().filter_map(|entry| {
            let meta = entry.metadata().ok().filter(Metadata::is_file)?;
            Some(Entry { path: entry.path(), modified: meta.modified().ok()?, meta })
        })
    }

    /// The number of files of the kind `kind`, and the bytes of all files.
    pub fn size(&self, kind: &str) -> (u64, u64) {
        self.entries().fold((0, 0), |(files, bytes), entry| {
            (files + u64::from(entry.kind() == Some(kind)), bytes + entry.meta.len())
        })
    }
}

/// The folder of all that is kept.
fn cache_folder(own: Option<OsString>, xdg: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    match own {
        Some(off) if off == "off" => None,
        Some(own) => Some(PathBuf::from(own)),
        // The XDG specification has relative paths ignored.
        None => match xdg.map(PathBuf::from).filter(|path| path.is_absolute()) {
            Some(xdg) => Some(xdg.join("nandlab")),
            None => Some(Path::new(&home?).join(".cache/nandlab")),
        },
    }
}

/// A file of a folder.
#[derive(Debug)]
pub struct Entry {
    /// The path of the file.
    pub path: PathBuf,
    /// The time of its last use.
    pub modified: SystemTime,
    /// What the file system tells of it.
    pub meta: Metadata,
}

impl Entry {
    /// The extension of the file's name.
    pub fn kind(&self) -> Option<&str> {
        self.path.extension().and_then(OsStr::to_str)
    }
}

/// A file that gets its name when it is complete, and is removed if it is dropped before.
#[derive(Debug)]
pub struct IncompleteFile {
    /// The file, to be written.
    pub file: File,
    path: PathBuf,
    is_complete: bool,
}

impl IncompleteFile {
    /// Gives the file its name.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn publish(mut self, name: &Path) -> io::Result<()> {
        fs::rename(&self.path, name)?;
        self.is_complete = true;
        Ok(())
    }
}

impl Drop for IncompleteFile {
    fn drop(&mut self) {
        if !self.is_complete {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Marks a file as used now; a file that cannot be marked is only removed earlier.
pub fn touch(path: &Path) {
    let _ = File::open(path).and_then(|file| file.set_modified(now()));
}

/// Whether `time` is at least `age` before `now`.
pub fn is_older(time: SystemTime, now: SystemTime, age: Duration) -> bool {
    now.duration_since(time).is_ok_and(|since| since >= age)
}

/// The time of the machine.
#[allow(clippy::disallowed_methods, reason = "ages of files; no result depends on the wall clock")]
pub fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_folder() {
        let of = |own: Option<&str>, xdg: Option<&str>, home: Option<&str>| {
            let folder = cache_folder(own.map(Into::into), xdg.map(Into::into), home.map(Into::into));
            folder.map(|folder| folder.to_str().unwrap().to_owned())
        };
        assert_eq!(of(Some("/own"), Some("/xdg"), Some("/home")).as_deref(), Some("/own"));
        assert_eq!(of(None, Some("/xdg"), Some("/home")).as_deref(), Some("/xdg/nandlab"));
        assert_eq!(of(None, Some("xdg"), Some("/home")).as_deref(), Some("/home/.cache/nandlab"));
        assert_eq!(of(None, None, Some("/home")).as_deref(), Some("/home/.cache/nandlab"));
        assert_eq!(of(Some("off"), Some("/xdg"), Some("/home")), None);
        assert_eq!(of(None, None, None), None);
    }
}
