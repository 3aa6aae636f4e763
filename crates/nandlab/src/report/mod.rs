//! What a run says: the summary, its tables, its notes.

mod notes;
mod power_json;
mod series;
mod steady;
mod stretch;
mod summary;
mod table;
mod timeline;

pub use crate::base::note::{Note, Severity};
pub use crate::base::words::duration;
pub use power_json::power;
pub use series::{DieSeries, Series, Window};
pub(crate) use steady::{Count, Rounds};
pub use steady::{SteadyState, steady_state};
pub use stretch::Stretch;
pub use summary::{RunFacts, smart, summary};
pub use table::{Column, Table, Values};
pub use timeline::Timeline;
