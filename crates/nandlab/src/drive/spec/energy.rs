//! The section `[energy]` of the spec.

use crate::spec::{JOULES, WATTS, key, section};

const NOTE: &str = "assumption: 3.3 V x 25 mA (typical array current in ONFI MLC datasheets) x the default time of the operation";

section! {
    /// `[energy]`: joules per operation and idle watts.
    #[derive(Clone, Debug, PartialEq)]
    #[allow(missing_docs)]
    pub struct EnergySpec {
        pub read_j: f64 = key("energy.read", JOULES, "\"4.1uJ\"", "energy to sense a page").note(NOTE),
        pub program_j: f64 =
            key("energy.program", JOULES, "\"74uJ\"", "energy to program a page").note(NOTE),
        pub erase_j: f64 = key("energy.erase", JOULES, "\"289uJ\"", "energy to erase a block").note(NOTE),
        pub transfer_j_per_byte: f64 =
            key("energy.transfer_per_byte", JOULES, "\"80pJ\"", "energy to move a byte over the channel")
                .note("assumption: 3.3 V x 10 mA x 2.5 ns"),
        pub idle_w: f64 = key("energy.idle", WATTS, "\"50mW\"", "power drawn all the time")
            .note("assumption: idle figure of consumer SATA datasheets"),
    }
}
