//! Arbitrary bytes through every trace reader: requests or an error, never a panic.
//!
//! `cargo fuzz run trace_formats`. The first byte chooses leniency and device, the rest is the file; it may turn out
//! to be compressed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandlab::spec::{DeviceChoice, TraceSpec};
use nandlab_trace::{formats, open_bytes};

fuzz_target!(|data: &[u8]| {
    let Some((&choice, content)) = data.split_first() else { return };
    let device = match choice >> 1 & 3 {
        0 | 1 => None,
        2 => Some(DeviceChoice::One("0".into())),
        _ => Some(DeviceChoice::Concatenate),
    };
    for format in formats().iter().map(|f| Some(f.name.to_owned())).chain([None]) {
        let spec = TraceSpec {
            path: "fuzz".into(),
            format,
            device: device.clone(),
            lenient: choice & 1 == 1,
            time_unit_ns: None,
        };
        let Ok(mut source) = open_bytes(&spec, content) else { continue };
        let mut last = 0;
        // A few bytes may decompress to very many.
        for _ in 0..100_000 {
            let Some(Ok(request)) = source.next_request() else { break };
            assert!(request.arrival >= last && request.offset.checked_add(request.len).is_some());
            last = request.arrival;
        }
    }
});
