//! Every trace reader returns requests or an error for arbitrary bytes; it never panics.
//!
//! `cargo fuzz run trace_formats`. The first byte chooses `lenient` and the device, the second byte the format (or
//! detection); the rest is the content of the file, plain or compressed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandlab::drive::spec::{DeviceChoice, TraceSpec};
use nandlab::base::units::Time;
use nandlab_trace::{formats, open_bytes};

fuzz_target!(|data: &[u8]| {
    let [choice, format, content @ ..] = data else { return };
    let choice = *choice;
    // Each input is read by one reader only, because most of the cost of an input is the start of the reader thread.
    let format = formats().nth(usize::from(*format) % (formats().len() + 1)).map(|f| f.name().into());
    let device = match choice >> 1 & 3 {
        0 | 1 => None,
        2 => Some(DeviceChoice::One("0".into())),
        _ => Some(DeviceChoice::Concatenate),
    };
    let spec =
        TraceSpec { format, device, lenient: (choice & 1 == 1).then_some(1.0), ..TraceSpec::new("fuzz") };
    let Ok(mut source) = open_bytes(&spec, content) else { return };
    let mut last = Time::START;
    // A limit, because a short input may decompress to a very long trace.
    for _ in 0..100_000 {
        let Some(Ok(request)) = source.next_request() else { break };
        assert!(request.arrival >= last && request.offset.checked_add(request.len).is_some());
        last = request.arrival;
    }
});
