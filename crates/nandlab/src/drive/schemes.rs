//! The schemes: mechanisms that take part in background jobs. What one scheme needs of another is in `together.rs`.

use super::spec::Spec;
use crate::base::geometry::{LaneId, UnitId};
use crate::core::{Core, NextJob, Scheme};
use crate::migration::Migration;
use crate::probe::Probe;
use crate::refresh::Refreshing;

macro_rules! schemes {
    ($($scheme:ident: $Scheme:ty = |$spec:ident, $core:ident| $new:expr;)+) => {
        /// The schemes of a drive, on or off.
        #[derive(Debug)]
        pub(super) struct Schemes {$(
            pub(super) $scheme: $Scheme,
        )+}

        impl Schemes {
            /// The schemes with their settings in the spec.
            pub(super) fn new<P: Probe>(spec: &Spec, core: &Core<P>) -> Self {
                Self {$(
                    $scheme: {
                        #[allow(unused_variables)]
                        let ($spec, $core) = (spec, core);
                        $new
                    },
                )+}
            }

            /// Notifies all schemes of a read; see [`Scheme::on_read`].
            #[inline(always)]
            pub(super) fn on_read<P: Probe>(&mut self, core: &mut Core<P>, unit: UnitId, level: u8) {
                $(Scheme::on_read(&mut self.$scheme, core, unit, level);)+
            }

            /// The next job of a lane without a job: that of the first scheme in the list with a job for the lane.
            pub(super) fn next_job<P: Probe>(&mut self, core: &mut Core<P>, lane: LaneId) -> Option<NextJob> {
                $(
                    if let Some(job) = Scheme::next_job(&mut self.$scheme, core, lane) {
                        return Some(job);
                    }
                )+
                None
            }

            /// Power is lost: drops all state kept in RAM.
            pub(super) fn forget<P: Probe>(&mut self, core: &mut Core<P>) {
                $(Scheme::forget(&mut self.$scheme, core);)+
            }
        }
    };
}

// The order decides which scheme's job comes first.
schemes! {
    migration: Migration = |spec, core| Migration::new(&spec.migration, &core.geometry);
    refreshing: Refreshing = |spec, core| Refreshing::new(&spec.refresh, spec.seed, core);
    reclaim: crate::reclaim::Reclaim = |spec, core| crate::reclaim::Reclaim::new(&spec.reclaim, &core.geometry);
}
