//! Negotiation, option by option.

use crate::wire::{
    ACK, CLIENT_FLAGS, ERR_BLOCK_SIZE_REQD, ERR_INVALID, ERR_SHUTDOWN, ERR_TOO_BIG, ERR_UNKNOWN, ERR_UNSUP,
    INFO, META_CONTEXT, Replies, SERVER, context_data, feed, info_data, option, session, write,
};
use nandlab_live::memory::Memory;
use nandlab_live::nbd::{Command, Session};

const SIZE: u64 = 1 << 20;

/// Sends the client's flags and options; returns the replies after the greeting, and whether the connection is over.
fn haggle(options: &[Vec<u8>]) -> (Replies, bool) {
    haggle_with(&CLIENT_FLAGS, options)
}

fn haggle_with(flags: &[u8], options: &[Vec<u8>]) -> (Replies, bool) {
    let (mut session, mut memory) = session(SIZE, |export| {
        export.name = "drive".into();
        export.description = "a test".into();
    });
    let stream = [flags, &options.concat()].concat();
    let mut replies = Replies::new(feed(&mut session, &mut memory, &stream, usize::MAX));
    replies.greeting();
    (replies, session.is_over())
}

#[test]
fn go_describes_the_export() {
    for name in ["", "drive"] {
        let (mut replies, is_over) = haggle(&[option(7, &info_data(name, &[1, 2, 3, 77]))]);
        let (informations, last) = replies.options();
        assert_eq!((last, is_over), (ACK, false));
        let data: Vec<&[u8]> = informations.iter().map(|reply| &*reply.data).collect();
        // HAS_FLAGS, SEND_FLUSH, SEND_FUA, SEND_TRIM, SEND_WRITE_ZEROES, CAN_MULTI_CONN, SEND_FAST_ZERO.
        let export = [&[0, 0][..], &SIZE.to_be_bytes(), &0b1001_0110_1101u16.to_be_bytes()].concat();
        let block_size =
            [&[0, 3][..], &1u32.to_be_bytes(), &4096u32.to_be_bytes(), &(32u32 << 20).to_be_bytes()];
        assert_eq!(data, [&*export, &block_size.concat(), b"\x00\x01drive", b"\x00\x02a test"]);
        assert!(informations.iter().all(|reply| reply.kind == INFO && reply.option == 7));
        assert!(replies.is_empty());
    }
}

#[test]
fn a_placement_is_named_with_the_export() {
    let with_handles = |export: &mut nandlab_live::nbd::Export| {
        export.name = "drive".into();
        export.placements = vec![0, 2, 0x8002];
    };
    let exchange = |session: &mut Session, options: &[Vec<u8>]| {
        let stream = [&CLIENT_FLAGS[..], &options.concat()].concat();
        let mut replies = Replies::new(feed(session, &mut Memory::new(SIZE), &stream, usize::MAX));
        replies.greeting();
        replies
    };
    let (mut of_list, _) = session(SIZE, with_handles);
    let (exports, last) = exchange(&mut of_list, &[option(3, &[])]).options();
    let names: Vec<&[u8]> = exports.iter().map(|export| &export.data[4..]).collect();
    assert_eq!((names, last), (vec![&b"drive"[..], b"handle-0", b"handle-2", b"handle-32770"], ACK));
    for (name, placement) in [
        ("", Some(0)),
        ("drive", Some(0)),
        ("handle-2", Some(2)),
        ("handle-32770", Some(0x8002)),
        ("handle-1", None),
    ] {
        // A client may look at another export before it chooses one.
        let (mut by_go, _) = session(SIZE, with_handles);
        let asked = [option(6, &info_data("handle-2", &[])), option(7, &info_data(name, &[1]))];
        let mut replies = exchange(&mut by_go, &asked);
        assert_eq!(replies.options().1, ACK);
        let (informations, last) = replies.options();
        assert_eq!(last, if placement.is_some() { ACK } else { ERR_UNKNOWN }, "{name}");
        let (mut by_name, _) = session(SIZE, with_handles);
        exchange(&mut by_name, &[option(1, name.as_bytes())]);
        for mut session in [by_go, by_name] {
            assert_eq!(session.is_transmitting(), placement.is_some(), "{name}");
            session.receive().extend(write(0, 1, 0, &[7; 512]));
            let written = session.next().map(|command| match command {
                Command::Request { request, .. } => request.placement,
                Command::Status { .. } => panic!("no question"),
            });
            assert_eq!(written, placement, "{name}");
        }
        if name == "handle-2" {
            assert_eq!(informations[2].data, b"\x00\x01handle-2");
        }
    }
    // Without placements there are no such exports.
    let (mut replies, _) = haggle(&[option(6, &info_data("handle-0", &[]))]);
    assert_eq!(replies.options().1, ERR_UNKNOWN);
}

#[test]
fn a_client_must_ask_for_a_minimum_beyond_a_sector() {
    for (minimum, wanted, expected) in
        [(512, &[][..], ACK), (512, &[3], ACK), (1024, &[], ERR_BLOCK_SIZE_REQD), (1024, &[0, 3], ACK)]
    {
        for number in [6, 7] {
            let (mut session, mut memory) = session(SIZE, |export| export.minimum = minimum);
            let stream = [&CLIENT_FLAGS[..], &option(number, &info_data("", wanted))].concat();
            let mut replies = Replies::new(feed(&mut session, &mut memory, &stream, usize::MAX));
            replies.greeting();
            let (informations, last) = replies.options();
            assert_eq!(last, expected, "minimum {minimum}, {wanted:?}");
            assert_eq!(informations[1].data[2..6], minimum.to_be_bytes(), "the client can ask again");
            assert_eq!(session.is_transmitting(), number == 7 && expected == ACK);
        }
    }
}

#[test]
fn info_leaves_the_client_haggling() {
    let (mut replies, _) = haggle(&[option(6, &info_data("", &[])), option(3, &[])]);
    assert_eq!(replies.options().1, ACK);
    let (exports, last) = replies.options();
    assert_eq!((exports[0].kind, last), (SERVER, ACK));
    assert_eq!(exports[0].data, b"\x00\x00\x00\x05drivea test");
}

#[test]
fn export_name_goes_on_without_a_reply_header() {
    let expected = [&SIZE.to_be_bytes()[..], &0b1001_0110_1101u16.to_be_bytes()].concat();
    let (mut replies, is_over) = haggle(&[option(1, b"drive")]);
    assert_eq!((replies.take(10), is_over), (expected.clone(), false));
    assert!(replies.is_empty(), "the client wants no zeroes");
    for flags in [[0, 0, 0, 0], [0, 0, 0, 1]] {
        let (mut replies, _) = haggle_with(&flags, &[option(1, b"drive")]);
        assert_eq!(replies.take(134), [&expected[..], &[0; 124]].concat());
        assert!(replies.is_empty());
    }
}

#[test]
fn structured_replies_allow_unfragmented_reads() {
    let (mut replies, _) = haggle(&[option(8, &[]), option(7, &info_data("", &[]))]);
    assert_eq!(replies.options().1, ACK);
    let flags = replies.options().0[0].data[10..].to_vec();
    assert_eq!(u16::from_be_bytes(flags.try_into().unwrap()), 0b1001_1110_1101, "SEND_DF");
}

#[test]
fn the_only_context_is_base_allocation() {
    let cases: [(u32, &str, &[&str], &[u32]); 8] = [
        (10, "", &["base:allocation"], &[1]),
        (10, "drive", &["x-other:a", "base:allocation", "base:allocation"], &[1]),
        (10, "", &["base:"], &[]),
        (10, "", &["base:unknown", "nonsense", ""], &[]),
        (10, "", &[], &[]),
        (9, "", &[], &[0]),
        (9, "", &["base:"], &[0]),
        (9, "", &["x-other:"], &[]),
    ];
    for (number, name, queries, ids) in cases {
        let (mut replies, _) = haggle(&[option(8, &[]), option(number, &context_data(name, queries))]);
        assert_eq!(replies.options().1, ACK);
        let (contexts, last) = replies.options();
        assert_eq!(last, ACK, "{queries:?}");
        assert!(contexts.iter().all(|context| context.kind == META_CONTEXT));
        let found: Vec<Vec<u8>> = contexts.into_iter().map(|context| context.data).collect();
        let expected: Vec<Vec<u8>> =
            ids.iter().map(|id| [&id.to_be_bytes()[..], b"base:allocation"].concat()).collect();
        assert_eq!(found, expected, "option {number}, {queries:?}");
    }
}

#[test]
fn invalid_and_unknown_options_are_refused_and_haggling_goes_on() {
    let long_name = "n".repeat(4097);
    let long_query = "q".repeat(4097);
    let cases = [
        (option(5, &[]), ERR_UNSUP, "STARTTLS"),
        (option(11, &[]), ERR_UNSUP, "EXTENDED_HEADERS"),
        (option(4, b"drive"), ERR_UNSUP, "PEEK_EXPORT"),
        (option(4_000_000_000, &[1; 1000]), ERR_UNSUP, "a number that does not exist"),
        (option(3, b"x"), ERR_INVALID, "LIST with data"),
        (option(8, b"x"), ERR_INVALID, "STRUCTURED_REPLY with data"),
        (option(7, &[]), ERR_INVALID, "GO without data"),
        (option(7, &[0, 0, 0, 9, 0, 0]), ERR_INVALID, "GO with a name beyond its data"),
        (option(7, &[0, 0, 0, 0, 0, 2, 0, 3]), ERR_INVALID, "GO with fewer items than it says"),
        (option(7, &[0, 0, 0, 0, 0, 0, 0, 3]), ERR_INVALID, "GO with more items than it says"),
        (option(7, &[0xff; 6]), ERR_INVALID, "GO with a name of 4 GiB"),
        (option(7, &info_data(&long_name, &[])), ERR_INVALID, "GO with a name of 4,097 bytes"),
        (option(7, &info_data("other", &[])), ERR_UNKNOWN, "GO with another name"),
        (option(6, &info_data("other", &[])), ERR_UNKNOWN, "INFO with another name"),
        (
            option(10, &context_data("", &["base:allocation"])),
            ERR_INVALID,
            "contexts without structured replies",
        ),
        (option(9, &context_data("", &[])), ERR_INVALID, "list of contexts without structured replies"),
        (option(6, &[0; 70_000]), ERR_TOO_BIG, "70,000 bytes of data"),
        (option(77, &[0; 70_000]), ERR_TOO_BIG, "70,000 bytes of an unknown option"),
    ];
    for (bytes, expected, what) in cases {
        let (mut replies, is_over) = haggle(&[bytes, option(3, &[])]);
        assert_eq!(replies.options(), (vec![], expected), "{what}");
        assert_eq!((replies.options().1, is_over), (ACK, false), "LIST after {what}");
    }
    let contexts = [
        (context_data("other", &["base:allocation"]), ERR_UNKNOWN),
        (context_data("", &[&long_query]), ERR_INVALID),
        (vec![0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff], ERR_INVALID),
        (vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9, b'b'], ERR_INVALID),
        (vec![0, 0, 0, 0, 0, 0, 0, 0, 0], ERR_INVALID),
    ];
    for (data, expected) in contexts {
        let (mut replies, _) = haggle(&[option(8, &[]), option(10, &data)]);
        replies.options();
        assert_eq!(replies.options(), (vec![], expected), "{data:?}");
    }
}

#[test]
fn what_cannot_be_answered_ends_the_connection() {
    let mut wrong_magic = option(3, &[]);
    wrong_magic[0] ^= 1;
    let cases: [(&[u8], Vec<u8>, &str); 5] = [
        (&[0, 0, 0, 7], option(3, &[]), "an unknown client flag"),
        (&CLIENT_FLAGS, wrong_magic, "a wrong magic"),
        (&CLIENT_FLAGS, option(1, b"other"), "EXPORT_NAME of another export"),
        (&CLIENT_FLAGS, option(1, &[b'n'; 70_000]), "EXPORT_NAME with a name of 70,000 bytes"),
        (&[0, 0, 0, 0], option(7, &info_data("", &[])), "GO without fixed newstyle"),
    ];
    for (flags, bytes, what) in cases {
        let (replies, is_over) = haggle_with(flags, &[bytes, option(3, &[])]);
        assert!(replies.is_empty() && is_over, "{what}");
    }
}

#[test]
fn abort_is_acknowledged_and_ends_the_connection() {
    for data in [&[][..], b"with data"] {
        let (mut replies, is_over) = haggle(&[option(2, data), option(3, &[])]);
        assert_eq!((replies.options().1, is_over), (ACK, true));
        assert!(replies.is_empty());
    }
}

#[test]
fn a_server_that_is_being_shut_down_refuses_options() {
    let (mut session, mut memory) = session(SIZE, |_| {});
    session.shut_down();
    let stream = [&CLIENT_FLAGS[..], &option(7, &info_data("", &[])), &option(2, &[])].concat();
    let mut replies = Replies::new(feed(&mut session, &mut memory, &stream, usize::MAX));
    replies.greeting();
    assert_eq!(replies.options(), (vec![], ERR_SHUTDOWN));
    assert_eq!(replies.options(), (vec![], ACK));
    assert!(session.is_over());
}

#[test]
fn a_handshake_may_come_byte_by_byte_and_half() {
    let whole = crate::wire::handshake(true);
    let (mut session_of_pieces, mut memory) = session(SIZE, |_| {});
    let in_pieces = feed(&mut session_of_pieces, &mut memory, &whole, 1);
    let (mut session_of_all, mut memory) = session(SIZE, |_| {});
    assert_eq!(in_pieces, feed(&mut session_of_all, &mut memory, &whole, usize::MAX));
    for len in 0..whole.len() {
        let (mut session, mut memory) = session(SIZE, |_| {});
        feed(&mut session, &mut memory, &whole[..len], usize::MAX);
        assert!(!session.is_transmitting() && !session.is_over() && session.wants_input(), "{len} bytes");
        session.end_of_input();
        assert!(session.is_over(), "a client that leaves after {len} bytes");
    }
}
