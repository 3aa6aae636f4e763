//! A client of a live drive that sends anything. The session does not panic, its memory is bounded, everything that it
//! accepts is answered, and what it sends begins with the greeting.
//!
//! `cargo fuzz run nbd`. The first two bytes of the input choose the size of the pieces and the phase of the session. Each
//! part of the stream begins with a byte that chooses its kind; the fields of a request and of an option follow, or bytes
//! as they are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{context_data, handshake, info_data, option, request, survives, write};

#[path = "../../crates/nandlab-live/tests/live/wire.rs"]
#[allow(dead_code)]
mod wire;

/// The next bytes of the input; zeros beyond its end.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn number(&mut self, len: usize) -> u64 {
        self.bytes(len).iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    fn byte(&mut self) -> u8 {
        self.number(1) as u8
    }

    /// Mostly a number that a client sends, rarely any.
    fn place(&mut self, unit: u64, raw: usize) -> u64 {
        if self.byte() % 8 > 0 { unit * self.number(2) } else { self.number(raw) }
    }

    fn part(&mut self) -> Vec<u8> {
        match self.byte() % 6 {
            0 | 1 => {
                let (flags, kind, cookie) = (self.number(1), self.number(1) % 10, self.number(1));
                let (offset, len) = (self.place(512, 8), self.place(64, 4) as u32);
                request(flags as u16, kind as u16, cookie, offset, len)
            }
            2 => {
                let (flags, cookie, offset) = (self.number(1), self.number(1), self.place(16, 8));
                let payload = vec![self.byte(); 16 * self.number(1) as usize];
                write(flags as u16, cookie, offset, &payload)
            }
            3 => {
                let number = u32::from(self.byte() % 14);
                let data = match self.byte() % 4 {
                    0 => info_data("", &[self.number(1) as u16, 3]),
                    1 => context_data("", &["base:allocation", "x:y"][..usize::from(self.byte() % 3)]),
                    2 => Vec::new(),
                    _ => {
                        let len = self.number(1) as usize;
                        self.bytes(len).to_vec()
                    }
                };
                option(number, &data)
            }
            _ => {
                let len = self.number(1) as usize;
                self.bytes(len).to_vec()
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let piece = 1 + 16 * usize::from(input.byte());
    let mut stream = match input.byte() % 4 {
        0 => Vec::new(),
        1 => wire::CLIENT_FLAGS.to_vec(),
        2 => handshake(false),
        _ => handshake(true),
    };
    while !input.0.is_empty() {
        stream.extend(input.part());
    }
    survives(1 << 20, &stream, piece);
});
