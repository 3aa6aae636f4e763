//! Metrics in the text format of OpenMetrics 1.0 (<https://prometheus.io/docs/specs/om/open_metrics_spec/>): names end
//! with their unit, counters with `_total`, and the text ends with `# EOF`.

use super::history::{History, number};
use nandlab::report::{PARTS, Part};
use serde_json::Value;
use std::fmt::Write;

/// The text of metric families.
struct Text(String);

impl Text {
    /// Begins a family. `unit` is empty, or the end of the name.
    fn family(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        let _ = writeln!(self.0, "# TYPE nandlab_{name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.0, "# UNIT nandlab_{name} {unit}");
        }
        let _ = writeln!(self.0, "# HELP nandlab_{name} {help}");
    }

    /// Adds a sample; `labels` are `name="value"` pairs of our own names.
    fn sample(&mut self, name: &str, labels: &str, value: f64) {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let _ = writeln!(self.0, "nandlab_{name}{labels} {value}");
    }

    /// Adds a sample for each value of a label; `path` is the place of its number in `of`.
    fn by(&mut self, name: &str, label: &str, values: &[&str], of: &Value, path: impl Fn(&str) -> String) {
        for value in values {
            self.sample(name, &format!("{label}=\"{value}\""), number(of, &path(value)));
        }
    }

    /// Adds a sample for each entry of the object at `path`; its key is the value of the label.
    fn each(&mut self, name: &str, label: &str, of: &Value, path: &str) {
        for (value, count) in object(of, path) {
            self.sample(name, &format!("{label}=\"{value}\""), count.as_f64().unwrap_or(0.0));
        }
    }

    fn gauge(&mut self, name: &str, unit: &str, help: &str, value: f64) {
        self.family(name, "gauge", unit, help);
        self.sample(name, "", value);
    }
}

/// The metrics of the last snapshot. Before the first one there are none.
pub(super) fn metrics(history: &History) -> String {
    let mut text = Text(String::new());
    if let Some(last) = history.last() {
        let (stat, state) = (&last.stat, &last.state);
        text.gauge("power_on", "", "Whether the drive has power.", f64::from(u8::from(is_on(state))));
        text.family("simulated_seconds", "counter", "seconds", "Simulated time.");
        text.sample("simulated_seconds_total", "", number(stat, "/simulated_s"));
        text.family("requests", "counter", "", "Requests that completed without failure.");
        let ops = ["read", "write", "trim", "flush"];
        text.by("requests_total", "op", &ops, stat, |op| format!("/host/{op}/count"));
        text.family("requests_failed", "counter", "", "Requests that the drive refused or failed.");
        text.sample("requests_failed_total", "", number(stat, "/server/failed"));
        text.family(
            "host_bytes",
            "counter",
            "bytes",
            "Bytes of the requests that completed without failure.",
        );
        text.by("host_bytes_total", "op", &ops[..3], stat, |op| format!("/host/{op}/bytes"));
        text.family(
            "request_latency_seconds",
            "summary",
            "seconds",
            "Simulated latency of all requests so far.",
        );
        for op in ops {
            let of = |name: &str| number(stat, &format!("/latency_us/{op}/{name}")) * 1e-6;
            let count = number(stat, &format!("/host/{op}/count"));
            for (share, name) in [("0.5", "p50"), ("0.95", "p95"), ("0.99", "p99"), ("0.999", "p999")] {
                let labels = format!("op=\"{op}\",quantile=\"{share}\"");
                text.sample("request_latency_seconds", &labels, of(name));
            }
            text.sample("request_latency_seconds_count", &format!("op=\"{op}\""), count);
            text.sample("request_latency_seconds_sum", &format!("op=\"{op}\""), of("mean") * count);
        }
        text.gauge("outstanding_requests", "", "Requests without a reply.", number(stat, "/outstanding"));
        text.gauge(
            "write_amplification_ratio",
            "ratio",
            "Bytes programmed for each byte of completed host writes, so far.",
            number(stat, "/waf"),
        );
        if stat.pointer("/placement").is_some_and(Value::is_object) {
            placement(&mut text, stat);
        }
        text.family(
            "flash_operations",
            "counter",
            "",
            "Pages read, programmed and copied back, and blocks erased, by cause.",
        );
        for kind in ["read", "program", "erase", "copyback"] {
            for (cause, count) in object(state, &format!("/flash/{kind}")) {
                let labels = format!("kind=\"{kind}\",cause=\"{cause}\"");
                text.sample("flash_operations_total", &labels, count.as_f64().unwrap_or(0.0));
            }
        }
        text.family(
            "wait_seconds",
            "counter",
            "seconds",
            "What requests have waited for, summed over the requests that this server has explained.",
        );
        for part in (0..PARTS).map(Part::of) {
            let seconds = last.parts.ns(part) as f64 * 1e-9;
            text.sample("wait_seconds_total", &format!("part=\"{}\"", part.name()), seconds);
        }
        text.family(
            "explained_requests",
            "counter",
            "",
            "Reads and writes that this server has explained: all of them, or under load those of a part of the time.",
        );
        text.sample("explained_requests_total", "", number(state, "/explained"));
        text.family("dies", "gauge", "", "Dies by what they do.");
        text.each("dies", "state", state, "/dies");
        text.family("superblocks", "gauge", "", "Superblocks by state.");
        text.each("superblocks", "state", state, "/superblocks");
        if state.pointer("/slc").is_some_and(Value::is_object) {
            text.family("slc_host_units", "counter", "units", "Units that the host wrote, by mode.");
            for (mode, path) in [("slc", "/slc/cached"), ("native", "/slc/direct")] {
                text.sample("slc_host_units_total", &format!("mode=\"{mode}\""), number(state, path));
            }
            text.family("slc_folded_units", "counter", "units", "Units folded, by reason.");
            text.each("slc_folded_units_total", "reason", state, "/slc/folded");
            text.gauge("slc_superblocks", "", "Superblocks in SLC mode.", number(state, "/slc/blocks"));
        }
        text.family("pe_cycles", "gauge", "", "P/E cycles of the superblocks.");
        text.by("pe_cycles", "of", &["min", "mean", "max"], state, |of| format!("/pe_cycles/{of}"));
        text.gauge("background_jobs", "", "Lanes with a background job.", number(state, "/jobs"));
        for (of, what) in [
            ("buffer", "the write buffer"),
            ("cache", "the write cache"),
            ("dirty", "what the capacitor saves"),
        ] {
            if state.pointer(&format!("/{of}")).is_some_and(Value::is_object) {
                let name = format!("{of}_units");
                text.family(&name, "gauge", "units", &format!("Size, budget and use of {what}."));
                text.by(&name, "of", &["size", "budget", "used"], state, |value| format!("/{of}/{value}"));
            }
        }
        if state.pointer("/capacitor").is_some_and(Value::is_object) {
            text.gauge(
                "capacitor_energy_joules",
                "joules",
                "Energy of the capacitor.",
                number(state, "/capacitor/energy_j"),
            );
        }
        text.family("read_retries", "counter", "", "Further tries of page reads.");
        text.sample("read_retries_total", "", number(state, "/retries"));
        text.family("uncorrectable_pages", "counter", "pages", "Page reads that no read level decoded.");
        text.sample("uncorrectable_pages_total", "", number(state, "/uncorrectable"));
        text.family("waiting_units", "counter", "units", "Units of writes that waited for room in flash.");
        text.sample("waiting_units_total", "", number(state, "/waiting_writes"));
        text.family("power_losses", "counter", "", "Power losses.");
        text.sample("power_losses_total", "", number(stat, "/power_losses"));
        text.family(
            "lost_units",
            "counter",
            "units",
            "Units whose writes a power loss has lost, by what was promised.",
        );
        let promises = ["covered", "acknowledged", "in_flight"];
        text.by("lost_units_total", "promise", &promises, state, |promise| format!("/losses/{promise}"));
        text.gauge("connections", "", "Connections.", number(stat, "/server/open"));
    }
    text.0 + "# EOF\n"
}

/// The metrics of a drive with placement handles.
fn placement(text: &mut Text, stat: &Value) {
    text.gauge(
        "fdp_write_amplification_ratio",
        "ratio",
        "MBMW / HBMW: bytes of user data programmed for each byte of completed host writes.",
        number(stat, "/placement/waf"),
    );
    for (name, unit, key, help) in [
        (
            "placement_host_bytes",
            "bytes",
            "host_bytes",
            "Bytes programmed for the host, by placement identifier.",
        ),
        (
            "placement_copied_bytes",
            "bytes",
            "copied_bytes",
            "Bytes copied by GC and others, by placement identifier.",
        ),
        ("placement_erases", "", "erases", "Superblocks erased that had data of one identifier alone."),
    ] {
        text.family(name, "counter", unit, help);
        for (placement, of) in object(stat, "/placement/handles") {
            let labels = format!("placement=\"{placement}\"");
            text.sample(&format!("{name}_total"), &labels, of[key].as_f64().unwrap_or(0.0));
        }
    }
    text.family("fdp_events", "counter", "", "Events of placement handles and reclaim units.");
    text.each("fdp_events_total", "type", stat, "/placement/events");
}

fn is_on(state: &Value) -> bool {
    state.pointer("/power").and_then(Value::as_str) == Some("on")
}

fn object<'a>(value: &'a Value, path: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value.pointer(path).and_then(Value::as_object).into_iter().flatten()
}
