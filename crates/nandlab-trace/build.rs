//! Gives the crate a hash of its own source files, `NANDLAB_TRACE_SOURCES`: the version of the parsers. A kept trace is
//! used only by the version that wrote it.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=src");
    let mut files = Vec::new();
    collect(Path::new("src"), &mut files);
    files.sort();
    // FNV-1a: the hash need not resist intent, only tell versions apart.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        let content = fs::read(&file).expect("a source file of the crate can be read");
        for byte in file.as_os_str().as_encoded_bytes().iter().chain(&[0]).chain(&content).chain(&[0]) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=NANDLAB_TRACE_SOURCES={hash:016x}");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder of the sources can be listed") {
        let path = entry.expect("the folder of the sources can be listed").path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
