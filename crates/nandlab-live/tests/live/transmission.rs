//! Requests and replies.

use crate::wire::{
    Answer, DF, DISC, EINVAL, EIO, ENOSPC, EPERM, ESHUTDOWN, FAST, FLUSH, FUA, NO_HOLE, READ, REQ_ONE,
    Replies, STATUS, TRIM, WRITE, ZEROES, feed, handshake, request, session, transmit, write,
};
use nandlab_live::backend::{Errno, Failure};
use nandlab_live::nbd::Command;
use proptest::prelude::*;

const SIZE: u64 = 1 << 20;
const DONE: Answer = Answer::Data(None, Vec::new());

/// The error of the only reply to `bytes`; 0 without one. Both kinds of replies must agree.
fn errno(change: fn(&mut nandlab_live::nbd::Export), bytes: &[u8]) -> u32 {
    let [simple, structured] = [false, true].map(|structured| {
        // A flush follows, which shows that the connection goes on.
        let stream = [bytes, &request(0, FLUSH, 99, 0, 0)].concat();
        let mut replies = transmit(SIZE, structured, change, &stream);
        let (cookie, answer) = replies.answer(|_| 0);
        assert_eq!(cookie, 7);
        assert_eq!(replies.answer(|_| 0), (99, DONE));
        assert!(replies.is_empty());
        match answer {
            Answer::Error(errno, text, None) => {
                assert_eq!(text.is_empty(), !structured, "structured replies say why");
                errno
            }
            _ => 0,
        }
    });
    assert_eq!(simple, structured);
    simple
}

#[test]
fn invalid_requests_are_refused_as_the_document_says() {
    let end = SIZE;
    let cases = [
        (request(0, READ, 7, end, 1), EINVAL, "a read beyond the export"),
        (request(0, READ, 7, u64::MAX, 2), EINVAL, "a read beyond 2^64"),
        (write(0, 7, end - 1, b"ab"), ENOSPC, "a write beyond the export"),
        (write(0, 7, u64::MAX, b"ab"), ENOSPC, "a write beyond 2^64"),
        (request(0, ZEROES, 7, end - 1, 2), ENOSPC, "zeroing beyond the export"),
        (request(0, TRIM, 7, end - 1, 2), EINVAL, "a trim beyond the export"),
        (request(0, READ, 7, 0, 0), EINVAL, "a read of nothing"),
        (request(0, TRIM, 7, 0, 0), EINVAL, "a trim of nothing"),
        (write(0, 7, 0, b""), EINVAL, "a write of nothing"),
        (request(0, FLUSH, 7, 512, 0), EINVAL, "a flush with an offset"),
        (request(0, FLUSH, 7, 0, 512), EINVAL, "a flush with a length"),
        (request(0, 5, 7, 0, 512), EINVAL, "CACHE, which is not offered"),
        (request(0, 8, 7, 0, 512), EINVAL, "RESIZE"),
        (request(0, 4242, 7, 0, 512), EINVAL, "an unknown command"),
        (request(NO_HOLE, READ, 7, 0, 512), EINVAL, "NO_HOLE at a read"),
        (request(DF, FLUSH, 7, 0, 0), EINVAL, "DF at a flush"),
        (write(DF, 7, 0, b"ab"), EINVAL, "DF at a write"),
        (request(REQ_ONE, TRIM, 7, 0, 512), EINVAL, "REQ_ONE at a trim"),
        (request(FAST, TRIM, 7, 0, 512), EINVAL, "FAST_ZERO at a trim"),
        (request(1 << 15, READ, 7, 0, 512), EINVAL, "an unknown flag"),
        (request(FUA, FLUSH, 7, 0, 0), 0, "FUA at a flush"),
        (request(FUA, TRIM, 7, 0, 512), 0, "FUA at a trim"),
        (request(NO_HOLE | FAST | FUA, ZEROES, 7, 0, 512), 0, "all flags of zeroing"),
    ];
    for (bytes, expected, what) in cases {
        assert_eq!(errno(|_| {}, &bytes), expected, "{what}");
    }
}

#[test]
fn requests_beyond_the_maximum_are_refused_and_their_payload_is_skipped() {
    let small: fn(&mut nandlab_live::nbd::Export) = |export| export.maximum = 65_536;
    assert_eq!(errno(small, &request(0, READ, 7, 0, 65_537)), EINVAL);
    assert_eq!(errno(small, &write(0, 7, 0, &[1; 65_537])), EINVAL);
    assert_eq!(errno(small, &write(0, 7, 0, &[1; 65_536])), 0);
    assert_eq!(errno(small, &request(0, ZEROES, 7, 0, 1 << 20)), 0, "the maximum is that of payloads");
}

#[test]
fn alignment_is_demanded_where_the_minimum_is_larger_than_a_byte() {
    let sectors: fn(&mut nandlab_live::nbd::Export) = |export| export.minimum = 512;
    assert_eq!(errno(sectors, &write(0, 7, 1, &[1; 512])), EINVAL);
    assert_eq!(errno(sectors, &write(0, 7, 512, &[1; 513])), EINVAL);
    assert_eq!(errno(sectors, &request(0, TRIM, 7, 256, 512)), EINVAL);
    assert_eq!(errno(sectors, &write(0, 7, 512, &[1; 512])), 0);
}

#[test]
fn a_read_only_export_refuses_changes() {
    let read_only: fn(&mut nandlab_live::nbd::Export) = |export| export.read_only = true;
    assert_eq!(errno(read_only, &write(0, 7, 0, b"ab")), EPERM);
    assert_eq!(errno(read_only, &request(0, TRIM, 7, 0, 512)), EPERM);
    assert_eq!(errno(read_only, &request(0, ZEROES, 7, 0, 512)), EPERM);
    assert_eq!(errno(read_only, &request(0, FLUSH, 7, 0, 0)), 0);
}

#[test]
fn what_the_drive_cannot_do_is_neither_offered_nor_accepted() {
    let plain: fn(&mut nandlab_live::nbd::Export) = |export| {
        export.features.trim = false;
        export.features.fast_zero = false;
    };
    assert_eq!(errno(plain, &request(0, TRIM, 7, 0, 512)), EINVAL);
    assert_eq!(errno(plain, &request(FAST, ZEROES, 7, 0, 512)), EINVAL);
    assert_eq!(errno(plain, &request(0, ZEROES, 7, 0, 512)), 0);
}

#[test]
fn unfragmented_reads_need_structured_replies() {
    let mut replies = transmit(SIZE, false, |_| {}, &request(DF, READ, 7, 0, 512));
    assert_eq!(replies.answer(|_| 512), (7, Answer::Error(EINVAL, String::new(), None)));
    let mut replies = transmit(SIZE, true, |_| {}, &request(DF, READ, 7, 3, 512));
    assert_eq!(replies.answer(|_| 512), (7, Answer::Data(Some(3), vec![0; 512])));
}

#[test]
fn a_shutdown_refuses_requests_and_answers_those_before() {
    let (mut session, mut memory) = session(SIZE, |_| {});
    let stream = [handshake(true), request(0, READ, 1, 0, 512)].concat();
    session.receive().extend_from_slice(&stream);
    let Some(Command::Request { call, .. }) = session.next() else { panic!("a read") };
    session.shut_down();
    let mut sent = feed(&mut session, &mut memory, &write(0, 2, 0, &[1; 512]), 100);
    session.data(call, |out| out.extend([0; 512]));
    sent.extend_from_slice(session.output());
    let mut replies = Replies::new(sent);
    replies.handshake(true);
    let (cookie, answer) = replies.answer(|_| 0);
    assert!(cookie == 2 && matches!(answer, Answer::Error(ESHUTDOWN, ..)), "{answer:?}");
    assert_eq!(replies.answer(|_| 0).0, 1);
}

#[test]
fn a_failure_says_where_to_clients_with_structured_replies() {
    for (at, expected) in [(Some(0), Some(0)), (Some(511), Some(511)), (Some(512), None), (None, None)] {
        let (mut session, _) = session(SIZE, |_| {});
        session.receive().extend_from_slice(&[handshake(true), request(0, READ, 1, 0, 512)].concat());
        let Some(Command::Request { call, .. }) = session.next() else { panic!("a read") };
        session.failed(call, Failure { errno: Errno::Io, at, text: "lost" });
        let mut replies = Replies::new(session.output().to_vec());
        replies.handshake(true);
        assert_eq!(replies.answer(|_| 0), (1, Answer::Error(EIO, "lost".into(), expected)), "{at:?}");
    }
}

#[test]
fn the_allocation_status_follows_writes() {
    let stream = [
        write(0, 1, 8192, &[1; 4096]),
        request(NO_HOLE, ZEROES, 2, 16_384, 4096),
        request(0, STATUS, 3, 0, SIZE as u32),
        request(REQ_ONE, STATUS, 4, 8192, 100),
        request(0, STATUS, 5, 8200, 8),
        request(0, STATUS, 6, 0, 0),
        request(0, STATUS, 7, SIZE, 1),
        request(DF, STATUS, 8, 0, 1),
    ]
    .concat();
    let mut replies = transmit(SIZE, true, |_| {}, &stream);
    assert_eq!(replies.answer(|_| 0), (1, DONE));
    assert_eq!(replies.answer(|_| 0), (2, DONE));
    let rest = SIZE as u32 - 20_480;
    let expected = vec![(8192, 3), (4096, 0), (4096, 3), (4096, 2), (rest, 3)];
    assert_eq!(replies.answer(|_| 0), (3, Answer::Extents(1, expected)));
    assert_eq!(replies.answer(|_| 0), (4, Answer::Extents(1, vec![(100, 0)])), "not beyond the request");
    assert_eq!(replies.answer(|_| 0), (5, Answer::Extents(1, vec![(8, 0)])));
    for cookie in 6..9 {
        let (found, answer) = replies.answer(|_| 0);
        assert!(found == cookie && matches!(answer, Answer::Error(EINVAL, _, None)), "{found} {answer:?}");
    }
    let mut replies = transmit(SIZE, false, |_| {}, &request(0, STATUS, 9, 0, 512));
    assert_eq!(
        replies.answer(|_| 0),
        (9, Answer::Error(EINVAL, String::new(), None)),
        "no context is selected"
    );
}

#[test]
fn the_status_of_a_huge_hole_is_given_in_lengths_of_32_bits() {
    let stream = [request(0, STATUS, 1, 0, u32::MAX), request(REQ_ONE, STATUS, 2, 1, u32::MAX)].concat();
    let mut replies = transmit(1 << 40, true, |export| export.minimum = 1, &stream);
    assert_eq!(replies.answer(|_| 0), (1, Answer::Extents(1, vec![(u32::MAX, 3)])));
    assert_eq!(replies.answer(|_| 0), (2, Answer::Extents(1, vec![(u32::MAX, 3)])));
}

#[test]
fn disc_ends_the_connection_after_the_outstanding_replies() {
    let (mut session, memory) = session(SIZE, |_| {});
    let stream =
        [handshake(false), request(0, READ, 1, 0, 4096), request(0, DISC, 2, 0, 0), write(0, 3, 0, b"late")];
    session.receive().extend_from_slice(&stream.concat());
    let Some(Command::Request { call, .. }) = session.next() else { panic!("a read") };
    assert_eq!(session.next(), None);
    assert!(!session.wants_input() && !session.is_over(), "the read is outstanding");
    session.data(call, |out| memory.read(0, 4096, out));
    assert!(!session.is_over(), "the reply is not sent");
    session.sent(session.output().len());
    assert!(session.is_over());
}

#[test]
fn a_wrong_magic_ends_the_connection() {
    let (mut session, mut memory) = session(SIZE, |_| {});
    let mut wrong = request(0, READ, 1, 0, 512);
    wrong[3] ^= 1;
    feed(&mut session, &mut memory, &[handshake(false), wrong].concat(), usize::MAX);
    assert!(session.is_over());
}

#[test]
fn no_more_than_256_requests_are_outstanding() {
    let (mut session, mut memory) = session(SIZE, |_| {});
    feed(&mut session, &mut memory, &handshake(false), usize::MAX);
    let requests: Vec<u8> = (0..300).flat_map(|cookie| request(0, FLUSH, cookie, 0, 0)).collect();
    session.receive().extend_from_slice(&requests);
    let mut calls = Vec::new();
    while let Some(Command::Request { call, .. }) = session.next() {
        calls.push(call);
    }
    assert_eq!((calls.len(), session.outstanding()), (256, 256));
    assert!(session.is_stalled() && !session.wants_input());
    session.done(calls.pop().unwrap());
    assert!(session.next().is_some() && session.next().is_none());
}

#[test]
fn a_client_that_does_not_read_is_left_waiting() {
    let (mut session, mut memory) = session(SIZE, |_| {});
    feed(&mut session, &mut memory, &handshake(false), usize::MAX);
    let requests: Vec<u8> = (0..1000).flat_map(|cookie| request(0, READ, cookie, 0, 65_536)).collect();
    let mut given = 0;
    let mut served = 0;
    // Nothing is ever sent.
    while session.wants_input() && given < requests.len() {
        let room = session.receive();
        let taken = (requests.len() - given).min(room.capacity() - room.len());
        room.extend_from_slice(&requests[given..given + taken]);
        given += taken;
        while let Some(Command::Request { call, .. }) = session.next() {
            session.data(call, |out| memory.read(0, 65_536, out));
            served += 1;
        }
    }
    assert!(session.is_stalled());
    assert_eq!(served, 15, "1 MiB of replies has room for 15 reads of 64 KiB");
    assert!(session.unsent() <= 1 << 20, "{} bytes", session.unsent());
}

/// A request of a valid client: flags, command, offset, length, byte of the data.
fn valid() -> impl Strategy<Value = (u16, u16, u64, u32, u8)> {
    let command =
        prop_oneof![4 => Just(READ), 4 => Just(WRITE), 1 => Just(FLUSH), 1 => Just(TRIM), 1 => Just(ZEROES)];
    let len = prop_oneof![1..100u32, 1..70_000u32, Just(4096), Just(65_536)];
    (command, 0..SIZE, len, any::<u8>(), any::<bool>()).prop_map(|(command, offset, len, byte, fua)| {
        let len = u64::from(len).min(SIZE - offset) as u32;
        let (offset, len) = if command == FLUSH { (0, 0) } else { (offset, len) };
        (u16::from(fua), command, offset, len, byte)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Requests of any length and alignment, in pieces of any length, are answered in order with what a vector has.
    #[test]
    fn replies_are_those_of_a_vector(
        requests in proptest::collection::vec(valid(), 1..60),
        structured: bool,
        piece in prop_oneof![1..40usize, 1..100_000usize, Just(usize::MAX)],
    ) {
        let mut stream = handshake(structured);
        for (&(flags, command, offset, len, byte), cookie) in requests.iter().zip(0..) {
            match command {
                WRITE => stream.extend(write(flags, cookie, offset, &vec![byte; len as usize])),
                _ => stream.extend(request(flags, command, cookie, offset, len)),
            }
        }
        let (mut session, mut memory) = session(SIZE, |_| {});
        let mut replies = Replies::new(feed(&mut session, &mut memory, &stream, piece));
        replies.handshake(structured);
        let mut twin = vec![0u8; SIZE as usize];
        for (&(_, command, offset, len, byte), expected) in requests.iter().zip(0..) {
            let range = offset as usize..offset as usize + len as usize;
            let read = |cookie: u64| if requests[cookie as usize].1 == READ { requests[cookie as usize].3 as usize } else { 0 };
            let (cookie, answer) = replies.answer(read);
            prop_assert_eq!(cookie, expected);
            match command {
                READ => prop_assert!(answer == Answer::Data(structured.then_some(offset), twin[range].to_vec())),
                _ => {
                    prop_assert_eq!(answer, DONE);
                    match command {
                        WRITE => twin[range].fill(byte),
                        FLUSH => {}
                        _ => twin[range].fill(0),
                    }
                }
            }
        }
        prop_assert!(replies.is_empty());
    }
}
