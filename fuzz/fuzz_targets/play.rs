//! Arbitrary bytes become a small drive and the requests of its host. The drive must not panic or stall, must come to
//! rest, must pass its audit, and must return the right data for every read.
//!
//! `cargo fuzz run play`. The first seven bytes choose the settings of the drive; every three bytes after them are a
//! request.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandlab::drive::Drive;
use nandlab::host::{Op, Oracle, Request};
use nandlab::drive::spec::load;
use std::path::Path;

/// Settings of the drive: an input chooses one setting of each row.
const CHOICES: [&[&str]; 6] = [
    &["map = 'page'", "map = { demand = { cache = '64B' } }"],
    &["victim = 'greedy'", "victim = 'fifo'", "victim = { random = { k = 1 } }", "victim = 'cost-benefit'"],
    &["", "[cache]\nsize = '32KiB'\n", "[cache]\nsize = '32KiB'\nsync = 'punctual'\n[capacitor]\ncapacitance = '60mF'\n"],
    &["", "[migration]\npolicy = { rcopyback-greedy = { limit = 2 } }\n"],
    &["wear_levelling = 'none'", "wear_levelling = 'static'"],
    &["allocation = 'CWDP'", "allocation = 'dynamic'"],
];

fuzz_target!(|data: &[u8]| {
    let Some((drive, requests)) = data.split_at_checked(CHOICES.len() + 1) else { return };
    let [map, victim, cache, migration, wear, order] =
        std::array::from_fn(|slot| CHOICES[slot][usize::from(drive[slot]) % CHOICES[slot].len()]);
    let text = format!(
        "[drive]\nchannels = 2\nchips_per_channel = 1\nblocks_per_plane = 24\npages_per_block = 8\npage_size = '4KiB'\n\
         op = {}\n[ftl]\n{map}\n{wear}\n{order}\n[gc]\n{victim}\nidle_after = '1ms'\n[power]\n\
         cut_after_requests = 1000000\n{cache}{migration}",
        0.25 + f64::from(drive[CHOICES.len()]) / 64.0
    );
    let Ok(loaded) = load(&text, "fuzz.toml", Path::new("."), &[]) else { return };
    let mut drive = Drive::with_probe(&loaded.spec, Oracle::default());
    let sectors = drive.geometry().logical_bytes() / 512;
    for request in requests.chunks_exact(3).take(4000) {
        let op = [Op::Write, Op::Read, Op::Trim, Op::Flush, Op::Write][usize::from(request[0]) % 5];
        let first = u64::from(request[1]) * 8 * 7 % sectors;
        let len = if op == Op::Flush { 0 } else { (u64::from(request[2]) + 1).min(sectors - first) };
        let offset = if op == Op::Flush { 0 } else { first };
        let fua = request[0] & 0x80 != 0 && op == Op::Write;
        let request_of_host = Request::new(op, offset * 512, len * 512).at(drive.now()).with_fua(fua);
        drive.submit(&request_of_host).expect("the drive refuses a valid request");
        match request[0] >> 3 & 7 {
            0 => _ = drive.cut_power(),
            1 => drive.detect_budget(),
            _ => {}
        }
        while drive.outstanding() > 8 {
            assert!(drive.advance_unless_at_rest(), "requests are outstanding and no event is pending: {:?}", drive.failure());
        }
    }
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).expect("the drive does not come to rest");
    drive.audit().expect("the audit fails");
    drive.probe().verdict().expect("a read returned wrong data");
});
