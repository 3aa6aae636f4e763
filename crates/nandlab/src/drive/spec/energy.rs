//! The section `[energy]` of the spec.

use crate::flash::ProgramTime;
use crate::spec::{Dimension, Follows, FromVal, JOULES, Resolved, Val, WATTS, key, section};

const POWER: &str = "capacitor.program_power";

/// The largest energy that a spec accepts.
const JOULES_MAX: f64 = 1e6;

const NOTE: &str = "assumption: 3.3 V x 25 mA (typical array current in ONFI MLC datasheets) x the default time of the operation";

section! {
    /// `[energy]`: joules per operation and idle watts.
    #[derive(Clone, Debug, PartialEq)]
    #[allow(missing_docs)]
    pub struct EnergySpec {
        pub read_j: f64 = key("energy.read", JOULES, "\"4.1uJ\"", "energy to sense a page").note(NOTE),
        pub program_j: f64 =
            key("energy.program", JOULES, "\"74uJ\"", "energy to program a page")
                .note(NOTE)
                .follows(Follows::Derived { key: POWER, by: energy_of_a_program }),
        pub erase_j: f64 = key("energy.erase", JOULES, "\"289uJ\"", "energy to erase a block").note(NOTE),
        pub transfer_j_per_byte: f64 =
            key("energy.transfer_per_byte", JOULES, "\"80pJ\"", "energy to move a byte over the channel")
                .note("assumption: 3.3 V x 10 mA x 2.5 ns"),
        pub idle_w: f64 = key("energy.idle", WATTS, "\"50mW\"", "power drawn all the time")
            .note("assumption: idle figure of consumer SATA datasheets"),
    }
}

/// `energy.program` in joules, from `capacitor.program_power`: a program of mean duration takes this energy at this
/// power. A spec may state either; the other one follows.
fn energy_of_a_program(values: &Resolved) -> Option<Val> {
    let program = ProgramTime::from_val(values.get("timing.program")?);
    let joules = values.get(POWER)?.num() * program.mean_s();
    Some(Val::Si(joules.min(JOULES_MAX), Dimension::Energy))
}
