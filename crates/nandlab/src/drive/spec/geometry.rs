//! The section `[drive]` of the spec.

use crate::base::geometry::{Cell, DriveSpec, ProgramOrder};
use crate::spec::{
    Check, Choices, Follows, Key, Rule, Val, ValueKind, When, choices, int, key, num, section, show_size,
};

/// `drive.preset`: the preset on which the spec is based.
pub(super) const PRESET: Key =
    key("drive.preset", ValueKind::Text, "", "a preset to start from; other keys of the spec override it");

/// The largest number of blocks in a plane.
pub(super) const BLOCKS_MAX: u64 = 1 << 20;

/// `drive.capacity`: another way to state `drive.blocks_per_plane`.
pub(super) const CAPACITY: Key = key(
    "drive.capacity",
    ValueKind::Size { min: 512, max: 1 << 60, step: 1 },
    "",
    "least logical size, such as \"960GB\" (GB: 10^9 bytes), instead of blocks_per_plane, which is rounded up",
);

/// The keys that exclude each other.
pub(super) const EXCLUSIVE: &[&str] = &["drive.blocks_per_plane", CAPACITY.path];

section! { for DriveSpec {
    channels = key("drive.channels", int(1, 64), "4", "number of channels"),
    chips_per_channel = key("drive.chips_per_channel", int(1, 64), "4", "chips on a channel"),
    dies_per_chip = key("drive.dies_per_chip", int(1, 32), "1", "dies in a chip"),
    planes_per_die = key("drive.planes_per_die", int(1, 32), "2", "planes in a die"),
    blocks_per_plane = key("drive.blocks_per_plane", int(1, BLOCKS_MAX), "256", "blocks in a plane")
        .follows(Follows::Derived { key: CAPACITY.path, by: super::capacity::blocks_for_capacity }),
    pages_per_block = key("drive.pages_per_block", int(1, 1 << 15), "64", "pages in a block"),
    page_size_bytes = key(
        "drive.page_size",
        ValueKind::Size { min: 512, max: 1 << 20, step: 512 },
        "\"4KiB\"",
        "bytes in a page; a power of two",
    ),
    cell = key("drive.cell", ValueKind::Slot(Cell::CHOICES), "\"mlc\"", "cell technology"),
    layers = key("drive.layers", int(1, 1024), "32", "layers of a 3D block; pages are spread evenly over them")
        .when(STACKED)
        => |values, path| values.get(path).map_or(1, |layers| layers.int() as u32),
    op = key("drive.op", num(0.0, 100.0), "0.07", "over-provisioning: (raw - logical) / logical"),
    bad_blocks = key(
        "drive.bad_blocks",
        num(0.0, 0.1),
        "0.0",
        "share of the blocks that are bad from the factory, drawn per plane; data sheets guarantee 0.02 at most",
    ),
    endurance =
        key("drive.endurance", int(1, 10_000_000), "3000", "P/E cycles after which a block is retired"),
    registers = key(
        "drive.registers",
        int(1, 2),
        "1",
        "page registers of a plane; with 2, host reads may use the plane of a copyback that waits for its program",
    )
    .when(When::Is("migration.copyback", &["split"]))
        => |values, path| values.get(path).map_or(1, |registers| registers.int() as u32),
    program_order = key(
        "drive.program_order",
        ValueKind::Slot(ProgramOrder::CHOICES),
        "\"page\"",
        "what one program operation of a plane writes",
    ),
} }

choices! { for ProgramOrder {
    Page = "page": "a page",
    OneShot = "one-shot": "all pages of a wordline",
} }

const STACKED: When = When::Is("drive.cell", &["3d-mlc", "3d-tlc"]);

choices! { for Cell {
    Slc = "slc": "one bit per cell",
    Mlc = "mlc": "two bits per cell, planar",
    Tlc = "tlc": "three bits per cell, planar",
    Mlc3d = "3d-mlc": "two bits per cell, stacked",
    Tlc3d = "3d-tlc": "three bits per cell, stacked",
} }

pub(super) const PAGE_SIZE: Rule = page_size;

fn page_size(check: &mut Check<'_>) -> Option<()> {
    let bytes = check.int("drive.page_size").filter(|bytes| !bytes.is_power_of_two())?;
    no_power_of_two(check, "drive.page_size", bytes);
    Some(())
}

/// Reports that the size `bytes` of `key` is no power of two.
pub(super) fn no_power_of_two(check: &mut Check<'_>, key: &str, bytes: u64) {
    let nearest = show_size(bytes.next_power_of_two());
    let message = format!("expected a power of two, found {bytes} bytes");
    check.error(&[key], message, format!("write \"{nearest}\", or another power of two"));
}

pub(super) const RULES: &[Rule] = &[endurance, read, levels, program, layers_of_a_block];

fn endurance(check: &mut Check<'_>) -> Option<()> {
    let (endurance, cycles) = (check.int("drive.endurance")?, check.int("reliability.pe_cycles")?);
    if endurance <= cycles {
        let message = format!("blocks start with {cycles} P/E cycles and retire at {endurance}");
        let remedy =
            format!("set drive.endurance above {cycles}, or reliability.pe_cycles below {endurance}");
        check.error(&["reliability.pe_cycles", "drive.endurance"], message, remedy);
    }
    Some(())
}

/// Times by page kind need a cell type with these page kinds.
fn by_kind(check: &mut Check<'_>, key: &str, times: &Val) -> Option<()> {
    let cell = check.tag("drive.cell")?;
    let keys = [key, "drive.cell"];
    if cell == "slc" {
        let remedy = "write one time, or set drive.cell = \"mlc\", \"tlc\", \"3d-mlc\" or \"3d-tlc\"";
        check.error(&keys, "a cell of \"slc\" has no MSB pages", remedy);
    } else if cell.ends_with("mlc") && !matches!(times.field("csb"), Val::Tag("mean", None)) {
        let message = format!("a cell of \"{cell}\" has no CSB pages");
        let what = if key == "ecc.levels" { "sense" } else { key };
        let remedy = format!("write {what} without csb, or set drive.cell = \"tlc\" or \"3d-tlc\"");
        check.error(&keys, message, remedy);
    }
    Some(())
}

fn read(check: &mut Check<'_>) -> Option<()> {
    let times = check.get("timing.read").filter(|times| matches!(times, Val::Table(_)))?.clone();
    by_kind(check, "timing.read", &times)
}

fn levels(check: &mut Check<'_>) -> Option<()> {
    let levels = match check.get("ecc.levels")? {
        Val::List(levels) => levels.as_slice(),
        Val::Tag("retry", Some(table)) => std::slice::from_ref(table.as_ref()),
        _ => return None,
    };
    let mut by_kinds =
        levels.iter().map(|level| level.field("sense")).filter(|sense| matches!(sense, Val::Table(_)));
    by_kinds.next().and_then(|sense| by_kind(check, "ecc.levels", sense))
}

/// Program times by page kind or by layer need a cell type with page kinds or layers.
fn program(check: &mut Check<'_>) -> Option<()> {
    let times = check.get("timing.program")?.clone();
    let Val::Table(fields) = &times else { return None };
    if fields[0].0 == "lsb" {
        return by_kind(check, "timing.program", &times);
    }
    let cell = check.tag("drive.cell")?;
    let keys = ["timing.program", "drive.cell"];
    if !cell.starts_with("3d-") {
        let message = format!("program times by layer need layers, but a cell of \"{cell}\" has none");
        let remedy = "write one time or { lsb, msb }, or set drive.cell = \"3d-mlc\" or \"3d-tlc\"";
        check.error(&keys, message, remedy);
    }
    let (fastest, slowest) = (fields[0].1.int(), fields[1].1.int());
    if fastest > slowest {
        let message = "the fastest layer is slower than the slowest";
        check.error(&["timing.program"], message, "exchange fastest and slowest");
    }
    Some(())
}

fn layers_of_a_block(check: &mut Check<'_>) -> Option<()> {
    let (layers, pages) = (check.int("drive.layers")?, check.int("drive.pages_per_block")?);
    if layers > pages {
        let message = format!("{layers} layers, but a block has {pages} pages");
        let remedy =
            format!("set drive.layers to at most {pages}, or drive.pages_per_block to at least {layers}");
        check.error(&["drive.layers", "drive.pages_per_block", "drive.cell"], message, remedy);
    }
    Some(())
}
