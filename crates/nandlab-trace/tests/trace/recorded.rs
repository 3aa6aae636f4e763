//! Recordings of live drives as traces.

use crate::common::*;
use nandlab_base::base::request::{Op, Request, Tag};
use nandlab_base::base::units::Time;
use nandlab_base::recording::{Entry, Event, Header};
use nandlab_base::workload::TraceSpec;
use nandlab_trace::open_bytes;

/// A recording of these events, each with its time in nanoseconds.
fn recording(events: &[(u64, Event)]) -> Vec<u8> {
    let text = String::new;
    let header = Header { nandlab: text(), spec: text(), folder: text(), seed: 1, id: 9, continues: false };
    let (mut bytes, mut encoder) = (header.to_bytes(), header.encoder());
    for &(at, event) in events {
        encoder.append(&mut bytes, &Entry { at: Time::from_ns(at), event, data: &[] });
    }
    bytes
}

fn requests(bytes: &[u8]) -> Result<Vec<Request>, String> {
    let mut source = open_bytes(&spec("session"), bytes).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    while let Some(request) = source.next_request() {
        all.push(request.map_err(|error| error.to_string())?);
    }
    assert_eq!(source.format(), Some("recording"));
    Ok(all)
}

fn events() -> Vec<(u64, Event)> {
    let at = |arrival, request: Request| Event::Request(request.at(Time::from_ns(arrival)));
    vec![
        (5_000, Event::Mark),
        (
            7_000,
            at(7_000, Request::write(4096, 512).with_fua(true).with_tag(Tag { queue: 0, placement: 300 })),
        ),
        (9_000, at(8_000, Request::read(1, 3))),
        (9_000, Event::Cut),
        (9_000, Event::Restore),
        // A step of a request that waited for the one before arrives with an earlier time.
        (90_000, at(7_500, Request::trim(8192, 4096))),
        (90_001, at(90_001, Request::flush())),
        (90_002, Event::Stop),
    ]
}

#[test]
fn a_recording_is_a_trace_of_its_requests() {
    let found = requests(&recording(&events())).unwrap();
    let placements: Vec<_> = found.iter().map(|request| request.tag.placement).collect();
    assert_eq!(placements, [300, 0, 0, 0]);
    let of = |request: &Request| (request.arrival.ns(), request.op, request.fua, request.offset, request.len);
    let found: Vec<_> = found.iter().map(of).collect();
    assert_eq!(
        found,
        [
            (0, Op::Write, true, 4096, 512),
            (500, Op::Trim, false, 8192, 4096),
            (1_000, Op::Read, false, 1, 3),
            (83_001, Op::Flush, false, 0, 0),
        ]
    );
}

#[test]
fn a_torn_recording_is_read_to_its_last_whole_record() {
    let bytes = recording(&events());
    assert_eq!(requests(&bytes[..bytes.len() - 20]).unwrap().len(), 3);
}

#[test]
fn a_damaged_recording_is_an_error_that_names_the_record() {
    let mut bytes = recording(&events());
    let at = bytes.len() - 60;
    bytes[at] ^= 1;
    let text = requests(&bytes).unwrap_err();
    assert!(
        text.contains("record 4") && text.matches("remedy").count() == 1 && text.contains("damaged"),
        "{text}"
    );
    assert!(text.contains("session"), "{text}");
    let text = requests(&bytes[..30]).unwrap_err();
    assert!(text.contains("header"), "{text}");
    let named = TraceSpec { format: Some("recording".into()), ..spec("session") };
    let text = match open_bytes(&named, &b"0,1,2,W,3\n"[..]) {
        Ok(mut source) => source.next_request().unwrap().unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    assert!(text.contains("the file ends after 10 of the record's 32 bytes"), "{text}");
}
