//! The folder of kept drives, and the build of nandlab that they are of.

use nandlab::drive::kept::KeptDrives;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::OnceLock;
use twox_hash::XxHash3_128;

/// The file of this library, as Python has loaded it.
static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();

/// The build of nandlab: its version, and a hash of the compiled core. `None` if Python has not loaded it from a file.
#[pyfunction]
pub(crate) fn build_identity(py: Python<'_>) -> Option<String> {
    learn_file(py);
    build()
}

fn learn_file(py: Python<'_>) {
    FILE.get_or_init(|| py.import("nandlab._core").ok()?.getattr("__file__").ok()?.extract().ok());
}

fn build() -> Option<String> {
    static BUILD: OnceLock<Option<String>> = OnceLock::new();
    let of = || {
        let library = std::fs::read(FILE.get()?.as_ref()?).ok()?;
        let hash = (XxHash3_128::oneshot(&library) >> 64) as u64;
        Some(format!("{}+{hash:016x}", env!("CARGO_PKG_VERSION")))
    };
    BUILD.get_or_init(of).clone()
}

/// The kept drives of this user; `None` if no drives are kept.
pub(crate) fn kept(py: Python<'_>) -> Option<KeptDrives> {
    learn_file(py);
    KeptDrives::from_environment(build)
}

/// The folder of kept drives, their number and bytes, and the limit in bytes; `None` if no drives are kept.
#[pyfunction]
pub(crate) fn kept_drives(py: Python<'_>) -> Option<(PathBuf, u64, u64, u64)> {
    let kept = kept(py)?;
    let (drives, bytes) = kept.size();
    Some((kept.folder().path().to_path_buf(), drives, bytes, kept.folder().bytes_max()))
}
