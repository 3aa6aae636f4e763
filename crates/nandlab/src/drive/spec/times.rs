//! Rules on times that follow from several keys: simulated time is limited to 2^62 ns, and ages to 2^31 s.

use super::least;
use crate::base::units::{Span, Time};
use crate::base::words::duration;
use crate::flash::AgeClock;
use crate::spec::{Check, FromVal, OPERATION_NS_MAX, Rule, Val, show_num, show_time};
use nandlab_base::clients::ClientSpec;
use nandlab_base::workload::{Arrival, burst_requests};

pub(super) const RULES: &[Rule] = &[arrivals_end, clients_end, scaled_times, transfers, power_cut];

/// The last simulated time, and the text that states the reason.
fn end(check: &Check<'_>) -> Option<(Time, String)> {
    let scale = check.num("reliability.clock_scale")?;
    let end = AgeClock::new(scale).end();
    let scale = show_num(scale);
    let what = match end {
        Time::LIMIT => "simulated time ends after 146 years (2^62 ns)".to_owned(),
        _ => format!(
            "with reliability.clock_scale = {scale} simulated time ends after {}, where ages reach 68 years (2^31 s)",
            duration(end.seconds())
        ),
    };
    Some((end, what))
}

/// Refuses a workload with requests that are known to arrive after the end of simulated time.
fn arrivals_end(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "workload.arrival";
    let synthetic = check.get("workload.synthetic").map(|val| val.field("requests").int());
    let requests = synthetic.or_else(|| check.get("workload.requests").map(Val::int))?;
    let most = check.int("workload.requests_max").filter(|&most| most > 0).unwrap_or(u64::MAX);
    let requests = requests.saturating_mul(check.int("workload.repeat")?).min(most);
    let val = check.get(KEY)?;
    if let Val::Tag("bursts", Some(bursts)) = val
        && burst_requests(bursts) == 0
    {
        return None;
    }
    let arrival = Arrival::new(val, || 1.0);
    let (end, what) = end(check)?;
    let is_late = |number: u64| arrival.at(number, Time::START).is_none_or(|at| at > end);
    if !is_late(requests.saturating_sub(1)) {
        return Some(());
    }
    // Arrivals ascend.
    let in_time = least(0, requests, is_late).unwrap_or(requests);
    let message = format!("of {requests} requests only {in_time} arrive before the end: {what}");
    let remedy = match arrival {
        Arrival::Iops(_) | Arrival::Poisson(_) => {
            format!("set at least iops = {}, or fewer requests", ceil(requests as f64 / end.seconds()))
        }
        _ => "set a shorter idle, or fewer requests".to_owned(),
    };
    check.error(&[KEY, "workload.synthetic", "workload.repeat", "reliability.clock_scale"], message, remedy);
    Some(())
}

/// Refuses clients with requests that are known to be due after the end of simulated time.
fn clients_end(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "workload.clients";
    let clients = check.get(KEY)?.list();
    let repeat = check.int("workload.repeat")?;
    let (end, what) = end(check)?;
    for (i, val) in clients.iter().enumerate() {
        if matches!(val.field("arrival"), Val::Tag("bursts", Some(bursts)) if burst_requests(bursts) == 0) {
            continue;
        }
        let client = ClientSpec::from_val(val);
        let start = Time::START + client.start;
        let last = client.requests.saturating_mul(repeat).saturating_sub(1);
        let is_late = |at: Time| at.saturating_add(client.start) > end;
        if start > end {
            let message = format!("{} is after the end: {what}", show_time(client.start.ns()));
            check.error_in_list(KEY, i, "start", message, "set an earlier start");
        } else if client.duration.is_none() && client.arrival.at(last, Time::START).is_none_or(is_late) {
            let message =
                format!("not all of its {} requests are due before the end: {what}", client.requests);
            check.error_in_list(
                KEY,
                i,
                "arrival",
                message,
                "set a higher rate, a shorter idle, or fewer requests",
            );
        }
    }
    Some(())
}

/// Spans of the scaled clock must be at least 1 ns and at most 2^62 ns of simulated time.
fn scaled_times(check: &mut Check<'_>) -> Option<()> {
    const SCALE: &str = "reliability.clock_scale";
    let scale = check.num(SCALE)?;
    let mut spans: Vec<(&str, u64)> = Vec::new();
    if check.tag("refresh.policy").is_some_and(|policy| policy != "none")
        && let Some(Val::List(lines)) = check.get("refresh.interval")
    {
        spans.extend(lines.iter().map(|line| ("refresh.interval", line.field("every").int())));
    }
    if check.is("cache.dirty_budget", "measured") {
        let keys = ["capacitor.detect_every", "capacitor.detect_grace"];
        spans.extend(keys.into_iter().filter_map(|key| Some((key, check.int(key)?))));
    }
    if check.num("capacitor.capacitance").is_some_and(|farad| farad > 0.0) {
        spans.extend(check.int("capacitor.recharge").map(|ns| ("capacitor.recharge", ns)));
    }
    let shown = show_num(scale);
    for (key, ns) in spans {
        let simulated = ns as f64 / scale;
        let message = if simulated > Span::LIMIT.ns() as f64 {
            format!(
                "{} at {SCALE} = {shown} is {} of simulated time, which ends after 146 years (2^62 ns)",
                show_time(ns),
                duration(simulated * 1e-9)
            )
        } else if ns > 0 && simulated < 1.0 {
            format!("{} at {SCALE} = {shown} is less than a nanosecond of simulated time", show_time(ns))
        } else {
            continue;
        };
        let remedy =
            if simulated < 1.0 { "set a longer time, or a lower" } else { "set a shorter time, or a higher" };
        check.error(&[key, SCALE], message, format!("{remedy} {SCALE}"));
        break;
    }
    Some(())
}

/// The transfer of a page over link, off-chip path or channel must not take longer than the longest operation.
fn transfers(check: &mut Check<'_>) -> Option<()> {
    let bytes = check.int("drive.page_size")?;
    let longest = Span::from_ns(OPERATION_NS_MAX).seconds();
    let too_long = |seconds: f64| {
        let (seconds, longest) = (duration(seconds), duration(longest));
        format!("expected at most {longest} for a page of {bytes} bytes, found {seconds}")
    };
    let seconds_at = |mb_per_s: f64| bytes as f64 / (mb_per_s * 1e6);
    let faster = || format!("set at least {}", ceil(bytes as f64 / longest / 1e6));
    if let Some(link @ Val::Table(_)) = check.get("host.link") {
        let mb_per_s = link.field("mb_per_s").num();
        if seconds_at(mb_per_s) > longest {
            let message = format!("mb_per_s = {}: {}", show_num(mb_per_s), too_long(seconds_at(mb_per_s)));
            check.error(&["host.link", "drive.page_size"], message, faster());
        }
    }
    let off_chip = check.get("timing.off_chip_mb_per_s").map_or([None; 2], |val| match val {
        Val::Num(mb_per_s) => [Some(("", *mb_per_s)), None],
        Val::Table(_) => ["read", "write"].map(|way| Some((way, val.field(way).num()))),
        _ => [None; 2],
    });
    for (way, mb_per_s) in off_chip.into_iter().flatten() {
        if seconds_at(mb_per_s) > longest {
            let what =
                if way.is_empty() { String::new() } else { format!("{way} = {}: ", show_num(mb_per_s)) };
            let message = format!("{what}{}", too_long(seconds_at(mb_per_s)));
            check.error(&["timing.off_chip_mb_per_s", "drive.page_size"], message, faster());
        }
    }
    let ns_per_byte = check.num("timing.channel_ns_per_byte")?;
    let seconds = bytes as f64 * ns_per_byte * 1e-9;
    if seconds > longest {
        let remedy = format!("set at most {}", (OPERATION_NS_MAX / bytes).max(1));
        check.error(&["timing.channel_ns_per_byte", "drive.page_size"], too_long(seconds), remedy);
    }
    Some(())
}

/// The injected power loss must not be after the end of simulated time.
fn power_cut(check: &mut Check<'_>) -> Option<()> {
    let at = check.int("power.cut_at")?;
    let (end, what) = end(check)?;
    if Time::from_ns(at) > end {
        let message = format!("{} is after the end: {what}", show_time(at));
        check.error(&["power.cut_at", "reliability.clock_scale"], message, "set an earlier time");
    }
    Some(())
}

/// The number rounded up to three significant digits.
fn ceil(value: f64) -> String {
    let unit = libm::pow(10.0, libm::floor(libm::log10(value)) - 2.0);
    format!("{:e}", libm::ceil(value / unit) * unit)
}
