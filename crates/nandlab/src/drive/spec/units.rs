//! The key `ftl.mapping_unit`, and its rules.

use crate::base::geometry::DriveSpec;
use crate::copyback::spec::MigrationPolicySpec;
use crate::refresh::spec::RefreshPolicySpec;
use crate::spec::{Check, FromVal, Key, Rule, Val, ValueKind, key, plain, show_size};

/// `ftl.mapping_unit`: the bytes that a map entry stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingUnit {
    /// The flash page.
    Page,
    /// This number of bytes, a power of two, at most a page.
    Bytes(u32),
}

impl MappingUnit {
    /// The mapping units of a flash page.
    pub fn per_page(self, drive: &DriveSpec) -> u32 {
        match self {
            Self::Page => 1,
            Self::Bytes(bytes) => drive.page_size_bytes / bytes,
        }
    }
}

impl FromVal for MappingUnit {
    fn from_val(val: &Val) -> Self {
        match val {
            Val::Tag("page", None) => Self::Page,
            Val::Size(bytes) => Self::Bytes(u32::try_from(*bytes).unwrap_or(u32::MAX)),
            val => val.is_no("mapping unit"),
        }
    }
}

const PATH: &str = "ftl.mapping_unit";

/// The largest number of mapping units of a flash page.
const UNITS_MAX: u64 = 64;

/// The largest number of mapping units of a block.
const BLOCK_UNITS_MAX: u64 = 1 << 15;

pub(super) const MAPPING_UNIT: Key = key(
    PATH,
    ValueKind::Either(&[
        ValueKind::Size { min: 512, max: 1 << 20, step: 512 },
        ValueKind::Slot(&[plain("page", "the flash page")]),
    ]),
    "\"page\"",
    "bytes that a map entry stands for, a power of two; several units share a flash page",
);

pub(super) const BUFFER: Key = key(
    "ftl.buffer",
    ValueKind::Size { min: 0, max: 1 << 30, step: 512 },
    "\"0B\"",
    "write buffer, which gathers the mapping units of host writes until they fill a flash page; 0: none",
);

/// The mapping units of a flash page that a spec's values give, before they are checked: at least 1.
pub(super) fn per_page(check: &Check<'_>) -> Option<u64> {
    let page = check.int("drive.page_size")?;
    match check.get(PATH)? {
        Val::Size(bytes) => Some((page / bytes).max(1)),
        _ => Some(1),
    }
}

pub(super) const RULES: &[Rule] = &[unit, buffer, together];

fn unit(check: &mut Check<'_>) -> Option<()> {
    let &Val::Size(bytes) = check.get(PATH)? else { return None };
    let page = check.int("drive.page_size")?;
    if !bytes.is_power_of_two() {
        super::geometry::no_power_of_two(check, PATH, bytes);
    } else if bytes > page {
        let (bytes, page) = (show_size(bytes), show_size(page));
        let message = format!("a mapping unit of {bytes} is larger than a page of {page}");
        check.error(&[PATH, "drive.page_size"], message, format!("set {PATH} = \"{page}\" at most"));
    } else if page / bytes > UNITS_MAX {
        let least = show_size(page / UNITS_MAX);
        let message = format!("expected at most {UNITS_MAX} mapping units in a page, found {}", page / bytes);
        check.error(&[PATH, "drive.page_size"], message, format!("set {PATH} = \"{least}\" at least"));
    } else if page / bytes * check.int("drive.pages_per_block")? > BLOCK_UNITS_MAX {
        let units = page / bytes * check.int("drive.pages_per_block")?;
        let message = format!("expected at most {BLOCK_UNITS_MAX} mapping units in a block, found {units}");
        let remedy = format!("set a larger {PATH}, or fewer drive.pages_per_block");
        check.error(&[PATH, "drive.pages_per_block"], message, remedy);
    }
    Some(())
}

/// The write buffer gathers units, and holds a flash page of them at least.
fn buffer(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "ftl.buffer";
    let (bytes, page) = (check.int(KEY)?, check.int("drive.page_size")?);
    if bytes == 0 {
        return None;
    }
    if per_page(check)? == 1 {
        let message = format!("a write buffer gathers mapping units, but {PATH} is the page");
        let remedy = format!("set {PATH} below the page, such as \"4KiB\", or {KEY} = \"0B\"");
        check.error(&[KEY, PATH], message, remedy);
    } else if bytes < page {
        let message = format!("a write buffer of {} has no room for a page", show_size(bytes));
        check.error(
            &[KEY, "drive.page_size"],
            message,
            format!("set {KEY} = \"{}\" at least", show_size(page)),
        );
    }
    if check.int("cache.size")? >= page / per_page(check)? {
        let message = "a write cache and a write buffer cannot be simulated together yet";
        check.error(&[KEY, "cache.size"], message, format!("set {KEY} = \"0B\" or cache.size = \"0B\""));
    }
    Some(())
}

/// The mechanisms that work by page and not yet by mapping unit.
fn together(check: &mut Check<'_>) -> Option<()> {
    if per_page(check)? == 1 {
        return None;
    }
    let migration = MigrationPolicySpec::from_val(check.get("migration.policy")?);
    let refresh = RefreshPolicySpec::from_val(check.get("refresh.policy")?);
    let others: [(&str, &str, bool); 4] = [
        ("migration.policy", "copybacks", migration.copybacks_max() > 0),
        (
            "migration.first_block",
            "a first block that GC shares with the host",
            check.is("migration.first_block", "shared"),
        ),
        (
            "refresh.policy",
            "this refresh policy",
            refresh.partial().is_some() || refresh.in_place().is_some() || refresh.ec_cache().is_some(),
        ),
        (
            "power.gc_in_flush",
            "GC during the emergency flush",
            check.get("power.gc_in_flush").is_some_and(Val::bool),
        ),
    ];
    for (key, what, is_on) in others {
        if is_on {
            let message =
                format!("{what} and a mapping unit below the page cannot be simulated together yet");
            check.error(&[PATH, key], message, format!("set {PATH} = \"page\", or leave out {key}"));
        }
    }
    Some(())
}
