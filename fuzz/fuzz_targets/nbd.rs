//! Arbitrary bytes from a client of a live drive. The session does not panic, its memory is bounded, everything that it
//! accepts is answered, and what it sends begins with the greeting.
//!
//! `cargo fuzz run nbd`. The first two bytes choose the size of the pieces and the phase in which the others arrive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{Replies, feed, handshake, session};

#[path = "../../crates/nandlab-live/tests/live/wire.rs"]
#[allow(dead_code)]
mod wire;

/// The largest request.
const MAXIMUM: u32 = 65_536;
/// As in the tests of `nandlab-live`: what a session may keep with requests of [`MAXIMUM`].
const MEMORY_MAX: u64 = (65_536 + 28 + (256 << 10)) + 2 * ((1 << 20) + 65_536 + 64) + (5 << 20);

fuzz_target!(|data: &[u8]| {
    let Some((&[piece, phase], bytes)) = data.split_first_chunk::<2>() else { return };
    let mut stream = match phase % 3 {
        0 => Vec::new(),
        1 => handshake(false),
        _ => handshake(true),
    };
    stream.extend(bytes);
    let (mut session, mut memory) = session(1 << 20, |export| export.maximum = MAXIMUM);
    let sent = feed(&mut session, &mut memory, &stream, 1 + 16 * usize::from(piece));
    assert!(session.buffered_bytes() <= MEMORY_MAX, "{} bytes", session.buffered_bytes());
    assert_eq!(session.outstanding(), 0, "everything is answered");
    Replies::new(sent).greeting();
});
