//! What a result says: write amplification in bytes, the steady state, and what never happened.

use crate::common::{Stream, drive, one};
use nandlab::host::Op;
use nandlab::stats::{RunFacts, Values, smart, summary};
