//! Times that several keys make together: all that is simulated ends, and ages are counted in 32 bits of seconds.

use super::super::build;
use super::super::kind::Val;
use super::super::quantity::{show_num, show_time};
use super::super::slots::OPERATION_NS_MAX;
use super::Check;
use crate::base::units::{Span, Time};
use crate::base::words::duration;
use crate::flash::AgeClock;
use crate::spec::Arrival;

impl Check<'_> {
    /// The last simulated time, and what ends there.
    fn end(&self) -> Option<(Time, String)> {
        let scale = self.num("reliability.clock_scale")?;
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

    /// Requests that are known to come after the end of simulated time.
    pub(super) fn arrivals_end(&mut self) -> Option<()> {
        const KEY: &str = "workload.arrival";
        let synthetic = self.r.get("workload.synthetic").map(|val| val.field("requests").int());
        let requests = synthetic.or_else(|| self.r.get("workload.requests").map(Val::int))?;
        let most = self.int("workload.requests_max").filter(|&most| most > 0).unwrap_or(u64::MAX);
        let requests = requests.saturating_mul(self.int("workload.repeat")?).min(most);
        let val = self.r.get(KEY)?;
        if let Val::Tag("bursts", Some(bursts)) = val
            && build::burst_requests(bursts) == 0
        {
            return None;
        }
        let arrival = build::arrival(val, || 1.0);
        let (end, what) = self.end()?;
        let is_late = |number: u64| arrival.at(number, Time::START).is_none_or(|at| at > end);
        if !is_late(requests.saturating_sub(1)) {
            return Some(());
        }
        // Arrivals ascend.
        let in_time = super::least(0, requests, is_late).unwrap_or(requests);
        let message = format!("of {requests} requests only {in_time} arrive before the end: {what}");
        let remedy = match arrival {
            Arrival::Iops(_) => {
                format!("at least iops = {}, or fewer requests", ceil(requests as f64 / end.seconds()))
            }
            _ => "a shorter idle, or fewer requests".to_owned(),
        };
        self.error(
            &[KEY, "workload.synthetic", "workload.repeat", "reliability.clock_scale"],
            message,
            remedy,
        );
        Some(())
    }

    /// Spans of the scaled clock, in simulated time: not nothing, and not more than there is.
    pub(super) fn scaled_times(&mut self) -> Option<()> {
        const SCALE: &str = "reliability.clock_scale";
        let scale = self.num(SCALE)?;
        let mut spans: Vec<(&str, u64)> = Vec::new();
        if self.r.get("refresh.policy").is_some_and(|val| val.tag() != "none")
            && let Some(Val::List(lines)) = self.r.get("refresh.interval")
        {
            spans.extend(lines.iter().map(|line| ("refresh.interval", line.field("every").int())));
        }
        if self.r.get("cache.dirty_budget").is_some_and(|val| val.tag() == "measured") {
            let keys = ["capacitor.detect_every", "capacitor.detect_grace"];
            spans.extend(keys.into_iter().filter_map(|key| Some((key, self.int(key)?))));
        }
        if self.num("capacitor.capacitance").is_some_and(|farad| farad > 0.0) {
            spans.extend(self.int("capacitor.recharge").map(|ns| ("capacitor.recharge", ns)));
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
                if simulated < 1.0 { "a longer time, or a lower" } else { "a shorter time, or a higher" };
            self.error(&[key, SCALE], message, format!("{remedy} {SCALE}"));
            break;
        }
        Some(())
    }

    /// A page takes no longer over a path than an operation may.
    pub(super) fn transfers(&mut self) -> Option<()> {
        let bytes = self.int("drive.page_size")?;
        let longest = Span::from_ns(OPERATION_NS_MAX).seconds();
        let told = |seconds: f64| {
            let (seconds, longest) = (duration(seconds), duration(longest));
            format!("takes {seconds} for a page of {bytes} bytes, and at most {longest} are simulated")
        };
        let seconds_at = |mb_per_s: f64| bytes as f64 / (mb_per_s * 1e6);
        let faster = || format!("at least {}", ceil(bytes as f64 / longest / 1e6));
        if let Some(link @ Val::Table(_)) = self.r.get("host.link") {
            let mb_per_s = link.field("mb_per_s").num();
            if seconds_at(mb_per_s) > longest {
                let message = format!("mb_per_s = {} {}", show_num(mb_per_s), told(seconds_at(mb_per_s)));
                self.error(&["host.link", "drive.page_size"], message, faster());
            }
        }
        if let Some(Val::Num(mb_per_s)) = self.r.get("timing.off_chip_mb_per_s") {
            let seconds = seconds_at(*mb_per_s);
            if seconds > longest {
                self.error(&["timing.off_chip_mb_per_s", "drive.page_size"], told(seconds), faster());
            }
        }
        let ns_per_byte = self.num("timing.channel_ns_per_byte")?;
        let seconds = bytes as f64 * ns_per_byte * 1e-9;
        if seconds > longest {
            let remedy = format!("at most {}", (OPERATION_NS_MAX / bytes).max(1));
            self.error(&["timing.channel_ns_per_byte", "drive.page_size"], told(seconds), remedy);
        }
        Some(())
    }

    /// Power fails while there is time.
    pub(super) fn power_cut(&mut self) -> Option<()> {
        let at = self.int("power.cut_at")?;
        let (end, what) = self.end()?;
        if Time::from_ns(at) > end {
            let message = format!("{} is after the end: {what}", show_time(at));
            self.error(&["power.cut_at", "reliability.clock_scale"], message, "an earlier time".into());
        }
        Some(())
    }
}

/// The number, or the next larger one of three digits.
fn ceil(value: f64) -> String {
    let unit = libm::pow(10.0, libm::floor(libm::log10(value)) - 2.0);
    format!("{:e}", libm::ceil(value / unit) * unit)
}
