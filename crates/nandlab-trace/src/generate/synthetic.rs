//! Synthetic workloads: a mix of reads, writes and TRIMs with chosen sizes and addresses.
//!
//! Arrivals are 1 us apart. These times are placeholders, because a synthetic workload has no arrival times of its own;
//! the run's `arrival` (a queue depth or a rate) replaces them.
//!
//! The span is the part of the logical capacity, from address 0, that the workload uses. Addresses are multiples of
//! `align_bytes`; here slot n is the address n * `align_bytes`. A request that would end beyond the span is moved down
//! to end within the span. Sequential addressing advances with every request, whatever its operation, and starts over
//! if the next request does not fit into the rest of the span. A random permutation of the slots maps Zipf ranks to
//! slots. With `hot`, the slots of the lowest ranks under this permutation are hot.
//!
//! A client of `workload.clients` is a synthetic workload whose span may begin elsewhere.

use super::{Scatter, Zipf};
use crate::error::{ErrorKind, TraceError};
use crate::source::Source;
use nandlab_base::base::request::{Op, Request};
use nandlab_base::base::rng::Stream;
use nandlab_base::base::units::{Time, US};
use nandlab_base::clients::stream_name;
use nandlab_base::workload::{Address, SyntheticSpec};

enum Pick {
    Sequential { next: u64 },
    Uniform,
    Zipf { zipf: Zipf, scatter: Scatter },
    Hot { slots: u64, share: f64, scatter: Scatter },
}

/// The source of `workload.synthetic`.
pub struct SyntheticSource {
    made: u64,
    requests: u64,
    trim_fraction: f64,
    read_fraction: f64,
    /// Sizes in bytes and their cumulative weights.
    sizes: Vec<(u64, f64)>,
    align: u64,
    /// The first byte of the span.
    begin: u64,
    span_bytes: u64,
    slots: u64,
    pick: Pick,
    ops: Stream,
    lengths: Stream,
    addresses: Stream,
}

/// The part of the logical space that a workload addresses, and the names of its keys and random streams.
pub(super) struct Place<'a> {
    pub(super) begin: u64,
    pub(super) bytes: u64,
    /// The key of the workload, for errors.
    pub(super) key: &'a str,
    /// The number of the client; 0 for a workload without clients.
    pub(super) client: usize,
}

impl SyntheticSource {
    /// A workload on a drive of `logical_bytes`, with the run's `seed`.
    ///
    /// # Errors
    /// A span smaller than the largest request; an impossible share, exponent, size, weight or alignment.
    pub fn open(spec: &SyntheticSpec, logical_bytes: u64, seed: u64) -> Result<Self, TraceError> {
        let end = libm::floor(logical_bytes as f64 * spec.span) as u64;
        let bytes = end.checked_div(spec.align_bytes).unwrap_or(0) * spec.align_bytes;
        Self::within(spec, &Place { begin: 0, bytes, key: "workload.synthetic", client: 0 }, seed)
    }

    /// As [`SyntheticSource::open`], in the part `place` of the logical space.
    pub(super) fn within(spec: &SyntheticSpec, place: &Place<'_>, seed: u64) -> Result<Self, TraceError> {
        let impossible = |key: &str, message: String, remedy: &str| {
            TraceError::new(ErrorKind::Setting, format!("{}.{key}: {message}", place.key), remedy)
        };
        for (key, share) in [
            ("read_fraction", spec.read_fraction),
            ("trim_fraction", spec.trim_fraction),
            ("span", spec.span),
        ] {
            if !(0.0..=1.0).contains(&share) {
                return Err(impossible(
                    key,
                    format!("expected a share, found {share}"),
                    "use a number from 0 to 1",
                ));
            }
        }
        if spec.align_bytes == 0 {
            return Err(impossible("align", "expected a size above 0, found 0".into(), "use 512 or 4096"));
        }
        let mut total = 0.0;
        let sizes: Vec<_> = spec
            .sizes
            .iter()
            .map(|&(size, weight)| {
                total += weight;
                (size, total)
            })
            .collect();
        let weights_sound =
            spec.sizes.iter().all(|s| s.0 > 0 && s.1 >= 0.0) && total > 0.0 && total.is_finite();
        if !weights_sound {
            return Err(impossible(
                "size",
                "expected sizes above 0 and weights of at least 0 with a sum above 0".into(),
                "use for example \"4KiB\"",
            ));
        }
        let span_bytes = place.bytes;
        let largest = sizes.iter().map(|s| s.0).max().unwrap_or(0);
        if largest > span_bytes {
            return Err(impossible(
                "span",
                format!(
                    "expected a span of at least the largest request, {largest} bytes, found {span_bytes} bytes"
                ),
                &format!("raise {0}.span, or lower {0}.size", place.key),
            ));
        }
        let slots = span_bytes / spec.align_bytes;
        let stream = |name: &str| Stream::new(seed, &stream_name(place.client, name));
        let mut scattering = stream("scatter");
        let pick = match spec.address {
            Address::Sequential => Pick::Sequential { next: 0 },
            Address::Uniform => Pick::Uniform,
            Address::Zipf(s) if s >= 0.0 && s.is_finite() => {
                Pick::Zipf { zipf: Zipf::new(slots, s), scatter: Scatter::new(slots, &mut scattering) }
            }
            Address::Zipf(s) => {
                return Err(impossible(
                    "address.zipf",
                    format!("expected an exponent of at least 0, found {s}"),
                    "use for example 0.9",
                ));
            }
            Address::Hot { hot, share } if (0.0..=1.0).contains(&hot) && (0.0..=1.0).contains(&share) => {
                let hot_slots = (libm::round(slots as f64 * hot) as u64).clamp(1, slots);
                Pick::Hot { slots: hot_slots, share, scatter: Scatter::new(slots, &mut scattering) }
            }
            Address::Hot { hot, share } => {
                return Err(impossible(
                    "address",
                    format!("expected hot and share from 0 to 1, found {hot} and {share}"),
                    "use for example hot = 0.2, share = 0.8",
                ));
            }
        };
        Ok(Self {
            made: 0,
            requests: spec.requests,
            trim_fraction: spec.trim_fraction,
            read_fraction: spec.read_fraction,
            sizes,
            align: spec.align_bytes,
            begin: place.begin,
            span_bytes,
            slots,
            pick,
            ops: stream("op"),
            lengths: stream("size"),
            addresses: stream("address"),
        })
    }

    fn len(&mut self) -> u64 {
        if let [(size, _)] = self.sizes[..] {
            return size;
        }
        let total = self.sizes.last().map_or(0.0, |s| s.1);
        let u = self.lengths.unit() * total;
        let at = self.sizes.partition_point(|s| s.1 <= u).min(self.sizes.len() - 1);
        self.sizes[at].0
    }

    fn offset(&mut self, len: u64) -> u64 {
        let random = &mut self.addresses;
        let highest = (self.span_bytes - len) / self.align;
        let slot = match &mut self.pick {
            Pick::Sequential { next } => {
                if *next > highest {
                    *next = 0;
                }
                let slot = *next;
                *next += len.div_ceil(self.align);
                slot
            }
            Pick::Uniform => random.below(highest + 1),
            Pick::Zipf { zipf, scatter } => scatter.at(zipf.next(random) - 1),
            Pick::Hot { slots, share, scatter } => {
                let is_hot = *slots == self.slots || random.unit() < *share;
                let rank =
                    if is_hot { random.below(*slots) } else { *slots + random.below(self.slots - *slots) };
                scatter.at(rank)
            }
        };
        self.begin + slot.min(highest) * self.align
    }
}

impl Source for SyntheticSource {
    fn next_request(&mut self) -> Option<Result<Request, TraceError>> {
        if self.made == self.requests {
            return None;
        }
        let arrival = Time::from_ns(self.made.saturating_mul(US.ns()));
        self.made += 1;
        // Both numbers are drawn for every request, so that the draws for reads do not depend on `trim_fraction`.
        let (trim, read) = (self.ops.unit() < self.trim_fraction, self.ops.unit() < self.read_fraction);
        let op = match (trim, read) {
            (true, _) => Op::Trim,
            (false, true) => Op::Read,
            (false, false) => Op::Write,
        };
        let len = self.len();
        let offset = self.offset(len);
        Some(Ok(Request::new(op, offset, len).at(arrival)))
    }

    fn progress(&self) -> f64 {
        if self.requests == 0 { 1.0 } else { self.made as f64 / self.requests as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVE: u64 = 1 << 30;

    fn spec(address: Address) -> SyntheticSpec {
        SyntheticSpec {
            requests: 100_000,
            read_fraction: 0.3,
            trim_fraction: 0.1,
            sizes: vec![(4096, 3.0), (16_384, 1.0)],
            address,
            span: 0.5,
            align_bytes: 4096,
        }
    }

    fn all(spec: &SyntheticSpec, seed: u64) -> Vec<Request> {
        let mut source = SyntheticSource::open(spec, DRIVE, seed).unwrap();
        std::iter::from_fn(|| source.next_request()).map(Result::unwrap).collect()
    }

    const EVERY: [Address; 4] =
        [Address::Sequential, Address::Uniform, Address::Zipf(0.9), Address::Hot { hot: 0.2, share: 0.8 }];

    #[test]
    fn mix_sizes_and_span_follow_the_spec() {
        for address in EVERY {
            let requests = all(&spec(address), 1);
            let share = |test: &dyn Fn(&Request) -> bool| {
                requests.iter().filter(|r| test(r)).count() as f64 / requests.len() as f64
            };
            assert!((share(&|r| r.op == Op::Trim) - 0.1).abs() < 0.005);
            assert!((share(&|r| r.op == Op::Read) - 0.27).abs() < 0.005);
            assert!((share(&|r| r.len == 16_384) - 0.25).abs() < 0.005);
            assert!(requests.iter().all(|r| r.offset + r.len <= DRIVE / 2 && r.offset % 4096 == 0));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_requests() {
        for address in EVERY {
            assert_eq!(all(&spec(address), 5), all(&spec(address), 5));
        }
        assert_ne!(all(&spec(Address::Uniform), 5), all(&spec(Address::Uniform), 6));
    }

    #[test]
    fn sequential_advances_and_starts_over() {
        let requests = all(&SyntheticSpec { sizes: vec![(1 << 20, 1.0)], ..spec(Address::Sequential) }, 1);
        assert!(requests.windows(2).all(|w| w[1].offset == (w[0].offset + (1 << 20)) % (DRIVE / 2)));
    }

    #[test]
    fn hot_share_goes_to_the_hot_slots() {
        let mut spec = spec(Address::Hot { hot: 0.2, share: 0.8 });
        spec.sizes = vec![(4096, 1.0)];
        spec.requests = 400_000;
        let mut counts = std::collections::BTreeMap::new();
        for request in all(&spec, 3) {
            *counts.entry(request.offset).or_insert(0u64) += 1;
        }
        let mut counts: Vec<_> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let hot: u64 = counts[..131_072 / 5].iter().sum();
        // The first fifth of the sorted counts has slightly more requests than the hot slots.
        assert!((hot as f64 / 400_000.0 - 0.8).abs() < 0.01, "{hot}");
    }

    #[test]
    fn impossible_settings_are_refused() {
        let good = spec(Address::Uniform);
        for bad in [
            SyntheticSpec { span: 0.0, ..good.clone() },
            SyntheticSpec { read_fraction: 1.5, ..good.clone() },
            SyntheticSpec { trim_fraction: f64::NAN, ..good.clone() },
            SyntheticSpec { sizes: vec![], ..good.clone() },
            SyntheticSpec { sizes: vec![(0, 1.0)], ..good.clone() },
            SyntheticSpec { sizes: vec![(4096, -1.0)], ..good.clone() },
            SyntheticSpec { align_bytes: 0, ..good.clone() },
            SyntheticSpec { address: Address::Zipf(-1.0), ..good.clone() },
            SyntheticSpec { address: Address::Hot { hot: 2.0, share: 0.5 }, ..good.clone() },
        ] {
            let error = SyntheticSource::open(&bad, DRIVE, 1).err().expect("the settings are refused");
            assert_eq!(error.kind(), ErrorKind::Setting);
            assert!(error.to_string().contains("workload.synthetic."), "{error}");
        }
    }
}
