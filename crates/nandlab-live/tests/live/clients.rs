//! Programs that others have written, where the machine has them.

use std::process::{Command, Stdio};

use nandlab_live::memory::Memory;
use nandlab_live::server::{Listener, Settings};

use crate::server::{Folder, Running};

const SIZE: u64 = 64 << 20;

/// A server of memory, and its URI.
fn server(folder: &Folder) -> (Running, String) {
    let listener = Listener::unix(&folder.socket()).unwrap();
    let uri = listener.uri();
    (Running::new(listener, Settings::default(), Memory::new(SIZE), |_| {}), uri)
}

/// Whether a program is there; says which test is skipped otherwise.
fn has(program: &str, test: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        println!("skipped: {test}, since {program} is not installed");
    }
    found.is_ok()
}

/// Runs a program; returns what it printed.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {text}{errors}");
    text
}

#[test]
fn qemu_io_reads_what_it_has_written() {
    if !has("qemu-io", "qemu_io_reads_what_it_has_written") {
        return;
    }
    let folder = Folder::new();
    let (server, uri) = server(&folder);
    let commands = [
        "write -P 0xab 4095 70000",
        "read -P 0xab 4095 70000",
        "write -f -P 3 1M 4k",
        "flush",
        "discard 64k 64k",
        "write -z 0 8k",
        "read -P 0 0 8k",
        "aio_write -P 5 2M 1M",
        "aio_flush",
        "read -P 5 2M 1M",
        "write -P 6 0 33554431",
        "read -P 6 0 33554431",
    ];
    let arguments: Vec<&str> = commands.iter().flat_map(|command| ["-c", command]).collect();
    let text = run("qemu-io", &[&["-f", "raw", &uri], &arguments[..]].concat());
    assert!(!text.contains("failed") && !text.contains("error"), "{text}");
    let report = server.end();
    assert!(
        report.writes >= 4 && report.flushes > 0 && report.trims == 1 && report.zeroings == 1,
        "{report:?}"
    );
}

#[test]
fn nbdcopy_copies_there_and_back() {
    if !has("nbdcopy", "nbdcopy_copies_there_and_back") {
        return;
    }
    let folder = Folder::new();
    let (server, uri) = server(&folder);
    let (source, target) = (folder.0.join("source"), folder.0.join("target"));
    let mut data = vec![0; SIZE as usize];
    for (number, byte) in data[1 << 20..9 << 20].iter_mut().enumerate() {
        *byte = (number * 7 / 5) as u8;
    }
    std::fs::write(&source, &data).unwrap();
    run("nbdcopy", &["--connections=4", source.to_str().unwrap(), &uri]);
    run("nbdcopy", &[&uri, target.to_str().unwrap()]);
    assert!(std::fs::read(&target).unwrap() == data, "the copy differs");
    let report = server.end();
    assert!(report.connections >= 4, "several connections are allowed: {report:?}");
    assert!(report.bytes_read < 16 << 20, "holes are not read: {report:?}");
}

#[test]
fn nbdinfo_shows_what_the_export_can_do() {
    if !has("nbdinfo", "nbdinfo_shows_what_the_export_can_do") {
        return;
    }
    let folder = Folder::new();
    let (_server, uri) = server(&folder);
    let text = run("nbdinfo", &[&uri]);
    let lines = [
        "protocol: newstyle-fixed without TLS, using structured packets",
        "export-size: 67108864",
        "base:allocation",
        "can_df: true",
        "can_fast_zero: true",
        "can_flush: true",
        "can_fua: true",
        "can_multi_conn: true",
        "can_trim: true",
        "can_zero: true",
        "is_read_only: false",
        "block_size_minimum: 1",
        "block_size_preferred: 4096",
        "block_size_maximum: 33554432",
    ];
    for line in lines {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    let map = run("nbdinfo", &["--map", &uri]);
    assert!(map.contains("67108864    3  hole,zero"), "{map}");
    assert!(run("nbdinfo", &["--list", &uri]).contains("export-size"));
}

#[test]
fn fio_verifies_what_it_has_written() {
    if !has("fio", "fio_verifies_what_it_has_written") {
        return;
    }
    if !run("fio", &["--enghelp"]).lines().any(|line| line.trim() == "nbd") {
        return println!("skipped: fio_verifies_what_it_has_written, since fio has no engine nbd");
    }
    let folder = Folder::new();
    let (server, uri) = server(&folder);
    let uri = format!("--uri={uri}");
    let job =
        ["--name=x", "--ioengine=nbd", &uri, "--rw=randwrite", "--bsrange=512-256k", "--bs_unaligned=1"];
    // The state of the verification would be a file in the current folder.
    let more = ["--iodepth=64", "--size=64m", "--verify=crc32c", "--verify_state_save=0", "--do_verify=1"];
    run("fio", &[&job[..], &more[..]].concat());
    let report = server.end();
    assert!(report.writes > 100 && report.reads > 100 && report.failed == 0, "{report:?}");
}

#[test]
fn python_with_libnbd_may_break_the_rules() {
    let test = "python_with_libnbd_may_break_the_rules";
    // The module is that of the distribution's interpreter.
    let python = "/usr/bin/python3";
    let script = r#"
import sys
import nbd
h = nbd.NBD()
h.add_meta_context("base:allocation")
h.connect_uri(sys.argv[1])
h.set_strict_mode(0)
size = h.get_size()
def errno(call):
    try:
        call()
    except nbd.Error as error:
        return error.errno
assert errno(lambda: h.pread(512, size)) == "EINVAL"
assert errno(lambda: h.pwrite(b"x" * 512, size)) == "ENOSPC"
assert errno(lambda: h.zero(512, size)) == "ENOSPC"
assert errno(lambda: h.trim(512, size)) == "EINVAL"
assert errno(lambda: h.pread(0, 0)) in ("EINVAL", None)
assert errno(lambda: h.cache(512, 0)) == "EINVAL"
assert errno(lambda: h.pwrite(bytes(40 << 20), 0)) == "EINVAL"
cookies = [h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray([n]) * 4096), n * 4096) for n in range(200)]
while h.aio_in_flight():
    h.poll(-1)
assert all(h.aio_command_completed(cookie) for cookie in cookies)
for n in range(200):
    assert h.pread(4096, n * 4096, flags=nbd.CMD_FLAG_DF) == bytes([n]) * 4096
found = []
h.block_status(1 << 20, 0, lambda context, offset, entries, error: found.append((context, entries)) or 0)
assert found[0][1][:4] == [4096, 3, 199 * 4096, 0], found
h.pwrite(b"y" * 4096, 0, flags=nbd.CMD_FLAG_FUA)
h.flush()
h.shutdown()
"#;
    let found = Command::new(python).args(["-c", "import nbd"]).stderr(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        return println!("skipped: {test}, since {python} has no module nbd");
    }
    let folder = Folder::new();
    let (_server, uri) = server(&folder);
    run(python, &["-c", script, &uri]);
}
