//! The section `[output]` of the spec.

use crate::spec::{COUNT, ValueKind, int, key, section};

section! {
    /// `[output]`: files written besides the summary.
    #[derive(Clone, Debug, PartialEq)]
    pub struct OutputSpec {
        /// Number of flash operations from the start in `timeline.json` (Chrome / Perfetto format), which also has the
        /// requests submitted meanwhile; 0: no timeline.
        pub timeline_operations: u64 =
            key("output.timeline_operations", COUNT, "0", "flash operations in timeline.json; 0: no timeline"),
        /// Number of requests in `explained.json`, those that took longest, each with what it waited for; the file also
        /// has the sums over all requests. 0: no file.
        pub explain: u32 =
            key("output.explain", int(0, 10_000), "0", "slowest requests in explained.json, with what they waited for; 0: no file"),
        /// Whether to write `requests.parquet`, one row per request.
        pub requests: bool =
            key("output.requests", ValueKind::Bool, "false", "write requests.parquet, one row per request"),
        /// Highest number of rows of `series.parquet`.
        pub series_rows: u32 =
            key("output.series_rows", int(1, 1_000_000), "1000", "highest number of rows in series.parquet"),
    }
}
