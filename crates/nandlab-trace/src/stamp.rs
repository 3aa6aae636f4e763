//! The state of a file, and of the bytes that were read from it: what a kept trace is known by.

use nandlab_base::base::kept_folder::is_older;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

/// What identifies a state of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) mtime: (i64, i64),
    pub(crate) ctime: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let meta = file.metadata()?;
        Ok(Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            mtime: (meta.mtime(), meta.mtime_nsec()),
            ctime: (meta.ctime(), meta.ctime_nsec()),
        })
    }

    /// Whether the last change was so long before `now` that a change after `now` gives another stamp.
    pub(crate) fn is_settled(&self, now: SystemTime, age: Duration) -> bool {
        let time = |(s, ns): (i64, i64)| {
            let since = Duration::new(u64::try_from(s).ok()?, u32::try_from(ns).ok()?);
            SystemTime::UNIX_EPOCH.checked_add(since)
        };
        [self.mtime, self.ctime].into_iter().all(|t| time(t).is_some_and(|t| is_older(t, now, age)))
    }
}

/// The bytes of a source that was read to its end.
pub(crate) struct ReadBytes {
    pub(crate) hash: u128,
    pub(crate) bytes: u64,
    /// The file when it was opened, and after its last byte.
    pub(crate) before: Stamp,
    pub(crate) after: Stamp,
    /// The time at which the file was opened.
    pub(crate) opened: SystemTime,
}
