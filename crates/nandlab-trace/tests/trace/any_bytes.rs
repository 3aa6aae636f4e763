//! For arbitrary bytes every trace reader returns requests or an error; it never panics or hangs.

use crate::common::*;
use nandlab_base::base::rng::Stream;
use nandlab_base::base::units::Time;
use nandlab_base::workload::{DeviceChoice, TraceFormat, TraceSpec};
use nandlab_trace::{formats, open_bytes};
use proptest::prelude::*;

const SAMPLES: [&str; 17] = [
    "128166372003061629,hm,0,Write,7014912,4096,26\n128166372003061729,hm,0,Read,7014912,4096,26\n",
    "0,20941264,8192,W,0.551706,Alpha/NT\n0,303567,3584,w,1.000000\n",
    "  8,33  11       14     0.312455739  5026  D  WS 178688 + 512 [fio]\n  8,33  1 1 0.4 5 D FN [x]\nCPU0 (8,33):\n",
    "fio version 2 iolog\n/dev/sda add\n/dev/sda write 12419072 8192\n/dev/sda wait 10 0\n/dev/sda sync\n",
    "fio version 3 iolog\n1499 /dev/sda open\n1499 /dev/sda write 12419072 8192\n1500 /dev/sda trim 0 8192\n",
    "97900000 0 287641400 128 1\n97900001 1 287641400 128 0\n",
    "5265.313 0 6357144 8 0\n5265.413 0 6357144 8 9\n",
    "0,R,126703644672,4096,1577808000000626\n1,W,126703644672,4096,1577808000000627\n",
    "1538323200,12910952,128,0,1063\n1538323200,12910952,128,1,1063\n",
    "Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.133076000,0.000806000,R,0,899056122368,131072\n",
    "1000000 4 syslogd 16 8 W 6 0 0a\n2000000 4 a big daemon 8 8 R 6 0 0b\n",
    "3,10.0,W,8192,4096\n3,10.001,R,4096,4096\n",
    "version,time,op,size,lbn\n1,5.5,42,4096,16\n1,5.501,53,0,0\n",
    "BeginHeader\nDiskRead, TimeStamp, ByteOffset, IOSize, DiskNum\nEndHeader\nDiskRead, 10, 0x200, 0x200, 0\n",
    "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n0.5 a b 2 vda WS 16 4096 0.1\n0.5 fio 2 vda FF 0 0 0.1\n",
    "# tracer\n fio-54 [002] ..... 80.25: block_rq_issue: 259,0 WS 4096 () 16 + 8 [fio]\nCPU:2 [LOST 3 EVENTS]\n",
    "\0\0\0\0\0\u{2}\0\0\u{1}\0\0\0*\0\0\u{1}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
];

/// Every format by name, and detection.
fn ways() -> impl Iterator<Item = Option<TraceFormat>> {
    formats().map(|format| Some(format.name().into())).chain([None])
}

/// Reads `content` in every way, and returns the number of requests. The length of `content` determines the device choice
/// and `lenient`.
fn through_every_reader(content: &[u8]) -> u64 {
    ways().zip(content.len()..).map(|(format, choice)| through(content, format, choice)).sum()
}

/// Reads `content` as `format`, and returns the number of requests; `choice` determines the device choice and `lenient`.
fn through(content: &[u8], format: Option<TraceFormat>, choice: usize) -> u64 {
    let lenient = choice.is_multiple_of(2).then_some(1.0);
    let device = match choice / 2 % 3 {
        0 => None,
        1 => Some(DeviceChoice::One("0".into())),
        _ => Some(DeviceChoice::Concatenate),
    };
    let spec = TraceSpec { format, device, lenient, ..spec("bytes") };
    let Ok(mut source) = open_bytes(&spec, content) else { return 0 };
    let (mut last, mut requests) = (Time::START, 0);
    while let Some(request) = source.next_request() {
        let Ok(request) = request else { break };
        assert!(request.arrival >= last);
        assert!(request.offset.checked_add(request.len).is_some());
        last = request.arrival;
        requests += 1;
    }
    assert!(source.next_request().is_none());
    assert!((0.0..=1.0).contains(&source.progress()));
    requests
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arbitrary_bytes_never_panic(content in prop::collection::vec(any::<u8>(), 0..2000)) {
        through_every_reader(&content);
    }

    #[test]
    fn arbitrary_fields_never_panic(content in "([0-9RWDFNx.,:+ -]{0,30}[\n]?){0,20}") {
        through_every_reader(content.as_bytes());
    }
}

#[test]
fn samples_are_read() {
    for sample in SAMPLES {
        let is_read =
            ways().any(|format| (0..6).any(|choice| through(sample.as_bytes(), format.clone(), choice) > 0));
        assert!(is_read, "{sample}");
    }
}

/// Replaces the fuzz target `trace_formats` where cargo-fuzz is not installed.
#[test]
fn mutated_samples_never_panic() {
    let mut random = Stream::new(1, "mutations");
    for _ in 0..3_000 {
        let mut content = SAMPLES[random.below(SAMPLES.len() as u64) as usize].as_bytes().repeat(2);
        for _ in 0..1 + random.below(4) {
            if content.is_empty() {
                break;
            }
            let at = random.below(content.len() as u64) as usize;
            match random.below(6) {
                0 => content[at] = random.below(256) as u8,
                1 => content[at] ^= 1 << random.below(8),
                2 => drop(content.remove(at)),
                3 => content.insert(at, b"0,.- \n9eR"[random.below(9) as usize]),
                4 => content.truncate(at),
                _ => {
                    let piece = content[at..(at + 12).min(content.len())].to_vec();
                    let to = random.below(content.len() as u64) as usize;
                    content.splice(to..to, piece);
                }
            }
        }
        through_every_reader(&content);
    }
}
