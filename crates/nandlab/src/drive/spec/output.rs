//! `[output]`.

use crate::spec::{COUNT, ValueKind, int, key, section};

section! {
    /// `[output]`: what is written beside the summary.
    #[derive(Clone, Debug, PartialEq)]
    pub struct OutputSpec {
        /// `timeline.json` (Chrome / Perfetto) of the first this many flash operations and the requests meanwhile; 0: none.
        pub timeline_operations: u64 =
            key("output.timeline_operations", COUNT, "0", "flash operations in timeline.json; 0: none"),
        /// `requests.parquet`, one row a request.
        pub requests: bool =
            key("output.requests", ValueKind::Bool, "false", "write requests.parquet, one row a request"),
        /// Rows of `series.parquet` at most.
        pub series_rows: u32 =
            key("output.series_rows", int(1, 1_000_000), "1000", "rows of series.parquet at most"),
    }
}
