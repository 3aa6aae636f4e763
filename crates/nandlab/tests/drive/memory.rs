//! The memory of a drive: its parts count about what is estimated from the spec.

use crate::mechanisms::MECHANISMS;
use nandlab::drive::Drive;
use nandlab::probe::NoProbe;
use nandlab::runner::memory::Memory;

/// The estimate has room for what grows during the run (waiting entries, alarms of refresh), and is no less than what the
/// parts count, but for rounding.
#[test]
fn estimates_are_what_the_parts_of_a_drive_count() {
    for mechanism in MECHANISMS {
        let spec = mechanism.spec();
        let Memory { pages, map, blocks, caches, .. } = Memory::reserved(&spec, false);
        let estimated = (pages + map + blocks + caches) as f64;
        let counted = Drive::with_probe(&spec, NoProbe).bytes() as f64;
        let ratio = estimated / counted;
        assert!(
            (0.999..1.06).contains(&ratio),
            "{}: {estimated} estimated, {counted} counted",
            mechanism.name
        );
    }
}
