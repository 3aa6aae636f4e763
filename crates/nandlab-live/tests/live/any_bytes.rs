//! Bytes that no client sends: a fuzzer in miniature. Whatever comes, a session does not panic, its memory is bounded, and
//! what it sends are whole replies.

use crate::wire::{
    ANY_MAXIMUM, ANY_MEMORY_MAX, FLUSH, READ, Replies, STATUS, TRIM, WRITE, ZEROES, context_data, handshake,
    info_data, option, request, serve, session, survives, write,
};
use proptest::prelude::*;

const SIZE: u64 = 1 << 20;
/// A part of a stream that is valid on its own, in some phase.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let data = prop_oneof![
        Just(info_data("", &[0, 1, 2, 3])),
        Just(info_data("other", &[])),
        Just(context_data("", &["base:allocation", "x-y:z"])),
        Just(Vec::new()),
        proptest::collection::vec(any::<u8>(), 0..40),
    ];
    let offset = prop_oneof![0..SIZE, any::<u64>()];
    let len = prop_oneof![0..5000u32, any::<u32>()];
    prop_oneof![
        (0..14u32, data).prop_map(|(number, data)| option(number, &data)),
        any::<bool>().prop_map(handshake),
        (0..32u16, 0..10u16, any::<u64>(), offset, len)
            .prop_map(|(flags, kind, cookie, offset, len)| request(flags, kind, cookie, offset, len)),
        (0..SIZE, 0..5000usize).prop_map(|(offset, len)| write(0, 1, offset, &vec![3; len])),
        prop_oneof![Just(READ), Just(WRITE), Just(TRIM), Just(ZEROES), Just(STATUS), Just(FLUSH)]
            .prop_map(|kind| request(0, kind, 2, 0, 4096)),
    ]
}

proptest! {
    #[test]
    fn random_bytes_are_survived(
        bytes in proptest::collection::vec(any::<u8>(), 0..3000),
        begins_well: bool,
        piece in 1..4000usize,
    ) {
        let stream = if begins_well { [handshake(true), bytes].concat() } else { bytes };
        survives(SIZE, &stream, piece);
    }

    #[test]
    fn parts_in_any_order_are_survived(parts in proptest::collection::vec(part(), 0..30), piece in 1..10_000usize) {
        survives(SIZE, &[handshake(true), parts.concat()].concat(), piece);
        survives(SIZE, &[vec![0, 0, 0, 3], parts.concat()].concat(), piece);
    }

    #[test]
    fn changed_streams_are_survived(
        parts in proptest::collection::vec(part(), 1..12),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 1..6),
        piece in 1..10_000usize,
    ) {
        let mut stream = [handshake(true), parts.concat()].concat();
        for (at, byte, how) in changes {
            let at = at.index(stream.len());
            match how {
                0 => stream[at] ^= byte,
                1 => stream.insert(at, byte),
                _ => { stream.remove(at); }
            }
            if stream.is_empty() {
                break;
            }
        }
        survives(SIZE, &stream, piece);
    }
}

/// The lengths that a client can claim are 32 bits. None of them may be allocated before the bytes have come.
#[test]
fn claimed_lengths_take_no_memory() {
    for len in [65_537, 1 << 20, 1 << 30, u32::MAX] {
        let mut long_option = b"IHAVEOPT".to_vec();
        long_option.extend(7u32.to_be_bytes());
        long_option.extend(len.to_be_bytes());
        survives(SIZE, &[vec![0, 0, 0, 3], long_option].concat(), usize::MAX);
        survives(SIZE, &[handshake(false), request(0, WRITE, 1, 0, len)].concat(), usize::MAX);
    }
}

/// A payload that is too long is skipped, however long it is, and the request after it is served.
#[test]
fn a_skipped_payload_takes_no_memory() {
    let (mut session, mut memory) = session(SIZE, |export| export.maximum = ANY_MAXIMUM);
    let mut sent = Vec::new();
    session.receive().extend([handshake(false), request(0, WRITE, 1, 0, 64 << 20)].concat());
    serve(&mut session, &mut memory, &mut sent);
    let mut left = 64usize << 20;
    while left > 0 {
        let room = session.receive();
        let taken = left.min(room.capacity() - room.len());
        room.resize(room.len() + taken, 9);
        left -= taken;
        serve(&mut session, &mut memory, &mut sent);
        assert!(session.buffered_bytes() <= ANY_MEMORY_MAX);
    }
    session.receive().extend(request(0, FLUSH, 2, 0, 0));
    serve(&mut session, &mut memory, &mut sent);
    let mut replies = Replies::new(sent);
    replies.handshake(false);
    let answers = [replies.answer(|_| 0).0, replies.answer(|_| 0).0];
    assert_eq!((answers, replies.is_empty()), ([1, 2], true));
}

/// A client that sends options and reads nothing is left waiting.
#[test]
fn options_without_end_take_no_memory() {
    let (mut session, _) = session(SIZE, |export| export.maximum = ANY_MAXIMUM);
    let options = option(3, &[]).repeat(1000);
    session.receive().extend([0, 0, 0, 3]);
    let mut rounds = 0;
    while session.next().is_none() && session.wants_input() {
        let room = session.receive();
        room.extend_from_slice(&options[..(room.capacity() - room.len()).min(options.len()) / 16 * 16]);
        rounds += 1;
        assert!(rounds < 1000 && session.buffered_bytes() <= ANY_MEMORY_MAX);
    }
    assert!(session.is_stalled());
}
