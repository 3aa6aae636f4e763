//! The list of the mechanisms of a drive. What one mechanism needs of another is in `together.rs`.

use super::spec::Spec;
use super::{Drive, Policies};
use crate::base::geometry::LaneId;
use crate::core::{Core, Mechanism, NextJob, Offline};
use crate::migration::Migration;
use crate::probe::Probe;
use crate::reclaim::Reclaim;
use crate::refresh::Refreshing;
use crate::slc::Slc;

/// Does the same work with each mechanism of a drive: `each_mechanism!(&mut self, |mechanism| work)`, or with `&self`.
/// Each use is compiled once for each type of mechanism. The work may leave the function with `?` or `return`.
///
/// The list: the mechanisms in the order in which a drive calls them, the schemes last. The order of the schemes decides
/// which scheme's job comes first.
macro_rules! each_mechanism {
    (&mut $drive:ident, |$mechanism:ident| $work:expr) => {
        each_mechanism!(@all $drive (&mut) $mechanism $work);
    };
    (&$drive:ident, |$mechanism:ident| $work:expr) => {
        each_mechanism!(@all $drive (&) $mechanism $work);
    };
    (&mut schemes of $schemes:ident, |$scheme:ident| $work:expr) => {
        each_mechanism!(@schemes ($schemes) (&mut) $scheme $work);
    };
    (@all $drive:ident $borrow:tt $mechanism:ident $work:expr) => {
        each_mechanism!(@each ($drive) $borrow $mechanism $work;
            reads, path.map, caching, path.host, path.writes, background, power);
        each_mechanism!(@schemes ($drive.schemes) $borrow $mechanism $work);
    };
    (@schemes $of:tt $borrow:tt $mechanism:ident $work:expr) => {
        each_mechanism!(@each $of $borrow $mechanism $work; migration, refreshing, reclaim, slc);
    };
    (@each $of:tt $borrow:tt $mechanism:ident $work:expr; $($($field:ident).+),+) => {
        $(each_mechanism!(@one $of $borrow $mechanism $work; $($field).+);)+
    };
    (@one ($($of:tt)+) ($($borrow:tt)+) $mechanism:ident $work:expr; $($field:tt)+) => {{
        let $mechanism = $($borrow)+ $($of)+.$($field)+;
        $work
    }};
}

pub(super) use each_mechanism;

/// The schemes of a drive, on or off: the mechanisms that begin or take part in background jobs.
#[derive(Debug)]
pub(super) struct Schemes {
    pub(super) migration: Migration,
    pub(super) refreshing: Refreshing,
    pub(super) reclaim: Reclaim,
    /// The SLC cache; `None` without one.
    pub(super) slc: Option<Slc>,
}

impl Schemes {
    /// The schemes with their settings in the spec.
    pub(super) fn new<P: Probe>(spec: &Spec, policies: &Policies, core: &Core<P>) -> Self {
        Self {
            migration: Migration::new(&spec.migration, policies.migration(spec), core),
            refreshing: Refreshing::new(&spec.refresh, spec.seed, core),
            reclaim: Reclaim::new(&spec.reclaim, core),
            slc: Slc::new(&spec.slc, spec.gc.idle_after_ns, core),
        }
    }

    /// Units of the host programmed in SLC mode, and without it on a drive with an SLC cache.
    pub(super) fn slc_units(&self) -> [u64; 2] {
        self.slc.as_ref().map_or([0; 2], |slc| [slc.stats.cached, slc.stats.direct])
    }

    /// The next job of a lane without a job: that of the first scheme in the list with a job for the lane.
    pub(super) fn next_job<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId) -> Option<NextJob> {
        each_mechanism!(&mut schemes of self, |scheme| {
            let job = scheme.next_job(core, lane);
            if job.is_some() {
                return job;
            }
        });
        None
    }
}

impl<P: Probe> Drive<P> {
    /// The flash and the map have been loaded or taken over; see [`Mechanism::loaded`].
    pub(super) fn loaded(&mut self) {
        let mut offline = Offline::new(&mut self.core);
        each_mechanism!(&mut self, |mechanism| mechanism.loaded(&mut offline));
    }

    /// The drive begins to work at the present time; see [`Mechanism::began`].
    pub(super) fn began(&mut self) {
        let mut offline = Offline::new(&mut self.core);
        each_mechanism!(&mut self, |mechanism| mechanism.began(&mut offline));
    }
}
