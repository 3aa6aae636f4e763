//! The keys `ftl.mapping_unit`, `ftl.superblock` and `ftl.buffer`, and the rules on how the FTL divides the flash
//! memory.

use crate::base::geometry::{Cell, DriveSpec, Superblock};
use crate::flash::ProgramTime;
use crate::refresh::spec::RefreshPolicySpec;
use crate::spec::{Check, Choices, FromVal, Key, Rule, Val, ValueKind, choices, key, plain, show_size};

/// `ftl.mapping_unit`: the bytes that a map entry stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingUnit {
    /// The page.
    Page,
    /// This number of bytes, a power of two, at most a page.
    Bytes(u32),
}

impl MappingUnit {
    /// The units of a page.
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

pub(super) const PATH: &str = "ftl.mapping_unit";

/// The largest number of units of a page.
const UNITS_MAX: u64 = 64;

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
    "write buffer, which gathers host writes until they fill what one program writes; 0: none",
);

pub(super) const SUPERBLOCK: Key = key(
    "ftl.superblock",
    ValueKind::Slot(Superblock::CHOICES),
    "\"plane\"",
    "the blocks that are filled, collected, erased and retired as one; with \"drive\" ftl.allocation has no effect",
);

choices! { for Superblock {
    Plane = "plane": "one block",
    Die = "die": "one block of every plane of a die",
    Drive = "drive": "one block of every plane of the drive",
} }

/// How the FTL divides the flash memory, by values that are not checked yet.
pub(super) struct LayoutValues {
    pub(super) units_per_page: u64,
    /// Planes of a lane on each of its dies.
    pub(super) planes_per_lane: u64,
    pub(super) dies_per_lane: u64,
    pub(super) units_per_program: u64,
}

pub(super) fn layout(check: &Check<'_>) -> Option<LayoutValues> {
    let units_per_page = per_page(check)?;
    let [is_of_die, is_of_drive] = ["die", "drive"].map(|of| check.is("ftl.superblock", of));
    let planes_per_lane = if is_of_die || is_of_drive { check.int("drive.planes_per_die")? } else { 1 };
    let dies = ["drive.channels", "drive.chips_per_channel", "drive.dies_per_chip"];
    let dies = dies.into_iter().map(|key| check.int(key)).product::<Option<u64>>()?;
    let dies_per_lane = if is_of_drive { dies } else { 1 };
    let pages_per_program = if is_one_shot(check) { bits(check)? * planes_per_lane } else { 1 };
    let units_per_program = units_per_page * pages_per_program;
    Some(LayoutValues { units_per_page, planes_per_lane, dies_per_lane, units_per_program })
}

fn is_one_shot(check: &Check<'_>) -> bool {
    check.is("drive.program_order", "one-shot")
}

fn bits(check: &Check<'_>) -> Option<u64> {
    Some(Cell::from_val(check.get("drive.cell")?).bits().into())
}

/// The units of a page that a spec's values give, before they are checked: at least 1.
pub(super) fn per_page(check: &Check<'_>) -> Option<u64> {
    Some(units_per_page(check.int("drive.page_size")?, check.get(PATH)?))
}

/// The units of a page of `page` bytes with the value `unit` of [`PATH`].
pub(super) fn units_per_page(page: u64, unit: &Val) -> u64 {
    match unit {
        Val::Size(bytes) => (page / bytes).max(1),
        _ => 1,
    }
}

pub(super) const RULES: &[Rule] = &[unit, superblock, one_shot, buffer, vsm, together, of_drive];

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
    }
    Some(())
}

fn superblock(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "ftl.superblock";
    let LayoutValues { planes_per_lane, .. } = layout(check)?;
    if planes_per_lane > 1 && !matches!(check.get("timing.multi_plane")?, Val::Bool(true)) {
        let message = "the blocks of a superblock are erased by one operation of several planes";
        check.error(
            &[KEY, "timing.multi_plane"],
            message,
            format!("set timing.multi_plane = true, or {KEY} = \"plane\""),
        );
    }
    Some(())
}

/// A one-shot program writes whole wordlines, in one time.
fn one_shot(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "drive.program_order";
    if !is_one_shot(check) {
        return None;
    }
    let (bits, pages) = (bits(check)?, check.int("drive.pages_per_block")?);
    if !pages.is_multiple_of(bits) {
        let message = format!("a block of {pages} pages has no whole number of wordlines of {bits} pages");
        let more = pages.next_multiple_of(bits);
        let remedy = format!("set drive.pages_per_block = {more}, or {KEY} = \"page\"");
        check.error(&[KEY, "drive.pages_per_block", "drive.cell"], message, remedy);
    }
    if matches!(ProgramTime::from_val(check.get("timing.program")?), ProgramTime::ByKind { .. }) {
        let message = "a one-shot program writes all pages of a wordline, so it has no times by page kind";
        let remedy = format!(
            "write one time or {{ fastest, slowest }}, the time of a wordline, or set {KEY} = \"page\""
        );
        check.error(&["timing.program", KEY], message, remedy);
    }
    Some(())
}

/// The write buffer gathers units, and holds a programming unit of them at least.
fn buffer(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "ftl.buffer";
    let (bytes, page) = (check.int(KEY)?, check.int("drive.page_size")?);
    if bytes == 0 {
        return None;
    }
    let LayoutValues { units_per_page, units_per_program, .. } = layout(check)?;
    let program = page / units_per_page * units_per_program;
    if units_per_program == 1 {
        let message =
            format!("a write buffer gathers mapping units, but {PATH} is the page, which a program writes");
        let remedy = format!(
            "set {PATH} below the page, such as \"4KiB\", drive.program_order = \"one-shot\", or {KEY} = \"0B\""
        );
        check.error(&[KEY, PATH], message, remedy);
    } else if bytes < program {
        let message =
            format!("a write buffer of {} has no room for what one program writes", show_size(bytes));
        check.error(
            &[KEY, "drive.page_size", "drive.program_order", "ftl.superblock"],
            message,
            format!("set {KEY} = \"{}\" at least", show_size(program)),
        );
    }
    Some(())
}

/// Susceptible bits are programmed by programming unit: while one is under way, the VSM gathers the next. The drive
/// counts the partially refreshed units of a superblock in 16 bits.
fn vsm(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "refresh.policy";
    let policy = RefreshPolicySpec::from_val(check.get(KEY)?);
    let partial = policy.partial()?;
    let LayoutValues { units_per_page, planes_per_lane, dies_per_lane, units_per_program } = layout(check)?;
    let least = 2 * units_per_program / units_per_page;
    if units_per_program > 1 && u64::from(partial.vsm_pages) < least {
        let message = format!(
            "a VSM of {} pages has no room for two programs of {} pages",
            partial.vsm_pages,
            least / 2
        );
        check.error(
            &[KEY, "drive.program_order", "ftl.superblock", PATH],
            message,
            format!("set {KEY}.partial.vsm_pages = {least} at least"),
        );
    }
    let units = check.int("drive.pages_per_block")? * units_per_page * planes_per_lane * dies_per_lane;
    if units > u16::MAX.into() {
        let most = u16::MAX;
        let message =
            format!("partial refresh knows at most {most} mapping units in a superblock, found {units}");
        let remedy = "set a larger ftl.mapping_unit or a smaller ftl.superblock, or leave out refresh.policy";
        check.error(&[KEY, PATH, "ftl.superblock", "drive.pages_per_block"], message, remedy);
    }
    Some(())
}

/// A mechanism that cannot be simulated with a division of the flash memory: its key, its name, and whether it is on.
type Other = (&'static str, &'static str, bool);

/// The mechanisms that program single pages of single blocks.
fn by_page(check: &Check<'_>) -> Option<[Other; 3]> {
    let refresh = RefreshPolicySpec::from_val(check.get("refresh.policy")?);
    let is_shared = check.is("migration.first_block", "shared");
    let is_in_flush = check.get("power.gc_in_flush").is_some_and(Val::bool);
    Some([
        ("power.gc_in_flush", "GC during the emergency flush", is_in_flush),
        ("migration.first_block", "a first block that GC shares with the host", is_shared),
        ("refresh.policy", "refresh in place", refresh.in_place().is_some()),
    ])
}

/// The mechanisms that know only units that are pages, superblocks that are blocks, and programs of one page.
fn together(check: &mut Check<'_>) -> Option<()> {
    let LayoutValues { units_per_page, planes_per_lane, dies_per_lane, .. } = layout(check)?;
    let divisions = [
        (PATH, "a mapping unit below the page", "page", units_per_page > 1),
        (
            "ftl.superblock",
            "superblocks of several planes",
            "plane",
            planes_per_lane > 1 && dies_per_lane == 1,
        ),
        ("drive.program_order", "one-shot programs", "page", is_one_shot(check)),
    ];
    let of_planes = planes_per_lane > 1 && check.int("drive.registers").unwrap_or(1) == 1;
    let others = [(
        "migration.copyback",
        "split copybacks of several planes with one register each",
        of_planes && check.is("migration.copyback", "split"),
    )];
    let others: Vec<Other> = others.into_iter().chain(by_page(check)?).filter(|other| other.2).collect();
    for (path, division, default, _) in divisions.into_iter().filter(|division| division.3) {
        for &(key, what, _) in &others {
            let message = format!("{what} and {division} cannot be simulated together yet");
            check.error(&[path, key], message, format!("set {path} = \"{default}\", or leave out {key}"));
        }
    }
    Some(())
}

/// The mechanisms that act on the die of a superblock, and do not know superblocks of several dies.
fn of_drive(check: &mut Check<'_>) -> Option<()> {
    const KEY: &str = "ftl.superblock";
    if layout(check)?.dies_per_lane == 1 {
        return None;
    }
    // The lines of the VSM go to the next units of their stream, which may be behind units that were not programmed.
    let has_capacitor = check.num("capacitor.capacitance").unwrap_or(0.0) > 0.0;
    let is_partial = RefreshPolicySpec::from_val(check.get("refresh.policy")?).partial().is_some();
    let of_die = [(
        "refresh.policy",
        "partial refresh with power loss",
        is_partial && (has_capacitor || check.cuts_power()),
    )];
    for (key, what, _) in of_die.into_iter().chain(by_page(check)?).filter(|other| other.2) {
        let message = format!("{what} and superblocks of several dies cannot be simulated together yet");
        let remedy = format!("set {KEY} = \"die\" or \"plane\", or leave out {key}");
        check.error(&[KEY, key], message, remedy);
    }
    Some(())
}
