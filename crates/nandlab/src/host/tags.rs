//! Statistics of the host's requests by queue and by placement.
//!
//! They are kept from the first request on whose [`Tag`] is not 0; the requests before it count for queue 0 and
//! placement 0. A drive whose requests have no tags keeps none.

use super::{Latency, Request};
use crate::base::state::value;
use crate::base::units::Span;
use std::collections::BTreeMap;

/// Latencies and bytes of completed requests with one queue, or one placement, by operation; `None`: no such request.
#[derive(Clone, Debug, Default)]
pub struct ByOp(pub [Option<Box<Latency>>; 4]);

impl ByOp {
    fn record(&mut self, ns: Span, request: &Request) {
        let latency = self.0[request.op as usize].get_or_insert_with(|| Box::new(Latency::new()));
        latency.record(ns.ns(), request.len);
    }
}

/// The requests that completed without failure, by tag.
#[derive(Clone, Debug)]
pub struct ByTag {
    /// By queue.
    pub queues: BTreeMap<u16, ByOp>,
    /// By placement.
    pub placements: BTreeMap<u16, ByOp>,
}

impl ByTag {
    /// The statistics after requests without tags, whose latencies are `so_far`.
    pub(super) fn after(so_far: &[Latency; 4]) -> Self {
        let untagged = || {
            let by_op =
                so_far.each_ref().map(|latency| (latency.count > 0).then(|| Box::new(latency.clone())));
            let has_any = by_op.iter().any(Option::is_some);
            has_any.then_some((0, ByOp(by_op))).into_iter().collect()
        };
        Self { queues: untagged(), placements: untagged() }
    }

    /// A request has completed without failure after the time `ns`.
    pub(super) fn record(&mut self, ns: Span, request: &Request) {
        self.queues.entry(request.tag.queue).or_default().record(ns, request);
        self.placements.entry(request.tag.placement).or_default().record(ns, request);
    }
}

value! { ByOp { ..tuple latency } }
value! { ByTag { queues, placements } }
