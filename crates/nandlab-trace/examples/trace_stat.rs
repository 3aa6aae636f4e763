//! `trace_stat [--speed] FILE|PROFILE...` prints the statistics of trace files and profiles as JSON. With `--speed` it
//! prints instead the rate at which each of them is read, in millions of requests per second.

use nandlab_base::workload::{Arrival, Beyond, DeviceChoice};
use nandlab_base::workload::{ProfileSpec, Source, TraceSpec, WorkloadSpec};
use nandlab_trace::{TraceError, open, profile, stat};

fn main() -> Result<(), TraceError> {
    let mut speed = false;
    for argument in std::env::args().skip(1) {
        if argument == "--speed" {
            speed = true;
            continue;
        }
        let source = match profile(&argument) {
            Some(p) => Source::Profile(ProfileSpec { name: p.name.into(), requests: None }),
            None => Source::Trace(TraceSpec {
                device: (!speed).then_some(DeviceChoice::Concatenate),
                ..TraceSpec::new(&argument)
            }),
        };
        let arrival = Arrival::Trace { time_scale: 1.0 };
        let workload = WorkloadSpec {
            source,
            arrival,
            beyond: Beyond::Wrap,
            whole_pages: false,
            requests_max: 0,
            warm_up: 0,
            repeat: 1,
        };
        let mut source = open(&workload, 1 << 42, 1, None)?;
        if speed {
            #[allow(clippy::disallowed_methods)]
            let start = std::time::Instant::now();
            let mut n = 0u64;
            while let Some(request) = source.next_request() {
                request?;
                n += 1;
            }
            let seconds = start.elapsed().as_secs_f64();
            println!("{argument}: {n} requests, {:.2} M/s", n as f64 / seconds / 1e6);
        } else {
            println!("{:#}", stat(&mut *source)?.to_json());
        }
    }
    Ok(())
}
