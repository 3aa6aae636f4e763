//! The results of a run: `summary.json`, `smart.json`, `power.json`, tables, notes, stretches of a life, the timeline.
//! Each room declares its own section, counters and notes; this room puts them together. The set of the observers of a
//! drive is here too.

mod counters;
mod explained;
mod fdp;
mod notes;
mod placement;
mod power_json;
mod schema;
mod series;
mod smart;
mod stretch;
mod summary;
mod table;
mod taps;
mod timeline;

pub use crate::base::note::{Note, Severity};
pub use crate::base::words::duration;
pub use crate::drive::{DieSeries, Series, Window};
pub use crate::host::{SteadyState, steady_state};
pub use counters::counters;
pub use explained::{Explained, Explainer, Own, PARTS, Part, Parts, Step, Sums};
pub use fdp::fdp;
pub use placement::PlacementSummary;
pub use power_json::{PowerRecord, power};
pub use schema::schema;
pub use smart::smart;
pub use stretch::{LifeRow, Stretch};
pub use summary::{ClientSummary, PreconditionSummary, RunFacts, Summary, VerifiedSummary, Waits, summary};
pub use table::{Column, Table, Values};
pub use taps::Taps;
pub use timeline::Timeline;
