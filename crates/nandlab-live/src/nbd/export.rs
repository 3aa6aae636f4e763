//! What clients are told about the drive that is served.

use super::wire;
use crate::backend::Features;

/// The largest read or write in bytes that an export allows by default: 32 MiB, which clients assume without a word from the
/// server ("Block size constraints" in the protocol document).
pub const MAXIMUM_DEFAULT: u32 = 32 << 20;

/// An export: a drive as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Name of the export. Clients find it by this name and by the empty name; at most 4,096 bytes.
    pub name: String,
    /// A description for people; at most 4,096 bytes.
    pub description: String,
    /// Smallest length and alignment of a request in bytes: a power of two from 1 to 65,536.
    pub minimum: u32,
    /// Largest read or write in bytes: a multiple of `minimum`, at least 65,536, at most 64 MiB.
    pub maximum: u32,
    /// Whether writes, trims and zeroing are refused.
    pub read_only: bool,
    /// What the drive can do.
    pub features: Features,
    /// The placement identifiers of the drive. Each is an export of its own with the same bytes, such as handle-2: the
    /// writes of its connections have the identifier. Empty for a drive without placement handles.
    pub placements: Vec<u16>,
}

/// Why an [`Export`] cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportError(String);

impl std::fmt::Display for ExportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ExportError {}

/// The name of the export whose connections write with a placement identifier.
fn handle_name(placement: u16) -> String {
    format!("handle-{placement}")
}

impl Export {
    /// An export with the empty name, which allows requests of any length and alignment up to 32 MiB.
    pub fn new(features: Features) -> Self {
        Self {
            name: String::new(),
            description: String::new(),
            minimum: 1,
            maximum: MAXIMUM_DEFAULT,
            read_only: false,
            features,
            placements: Vec::new(),
        }
    }

    /// Checks the ranges that the fields state.
    ///
    /// # Errors
    /// When a value is outside its range; the text names it.
    pub fn check(&self) -> Result<(), ExportError> {
        let Features { size, preferred, .. } = self.features;
        let refuse = |text: String| Err(ExportError(text));
        if self.name.len() > wire::STRING_MAX || self.description.len() > wire::STRING_MAX {
            return refuse("the name or the description of the export has more than 4,096 bytes".into());
        }
        if !self.minimum.is_power_of_two() || self.minimum > 65_536 {
            return refuse(format!(
                "the minimum block size {} is no power of two up to 65,536",
                self.minimum
            ));
        }
        if !preferred.is_power_of_two() || preferred < self.minimum.max(512) || preferred > self.maximum {
            return refuse(format!(
                "the preferred block size {preferred} is no power of two from 512 to the maximum"
            ));
        }
        if !self.maximum.is_multiple_of(self.minimum) || !(65_536..=64 << 20).contains(&self.maximum) {
            return refuse(format!(
                "the maximum block size {} is no multiple of the minimum from 65,536 bytes to 64 MiB",
                self.maximum
            ));
        }
        if !size.is_multiple_of(self.minimum.into()) || i64::try_from(size).is_err() {
            return refuse(format!("the size {size} is no multiple of the minimum block size below 2^63"));
        }
        Ok(())
    }

    /// The placement of a connection that names the export `name`; `None` if there is no such export.
    pub(super) fn find(&self, name: &[u8]) -> Option<u16> {
        if name.is_empty() || name == self.name.as_bytes() {
            return Some(0);
        }
        self.placements.iter().copied().find(|&placement| name == handle_name(placement).as_bytes())
    }

    /// The names of the exports: its own, and those of its placements.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        [self.name.clone()].into_iter().chain(self.placements.iter().map(|&placement| handle_name(placement)))
    }

    /// The transmission flags.
    pub(super) fn flags(&self, structured: bool) -> u16 {
        let mut flags = wire::FLAG_HAS_FLAGS
            | wire::FLAG_SEND_FLUSH
            | wire::FLAG_SEND_FUA
            | wire::FLAG_SEND_WRITE_ZEROES
            | wire::FLAG_CAN_MULTI_CONN;
        for (is_set, flag) in [
            (self.read_only, wire::FLAG_READ_ONLY),
            (self.features.trim, wire::FLAG_SEND_TRIM),
            (self.features.fast_zero, wire::FLAG_SEND_FAST_ZERO),
            (structured, wire::FLAG_SEND_DF),
        ] {
            if is_set {
                flags |= flag;
            }
        }
        flags
    }
}
