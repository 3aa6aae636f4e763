//! The spec key `ftl.allocation`.

use super::allocation::Allocation;
use crate::spec::{FromVal, Key, Policy, Val, ValueKind, key, plain};

pub(crate) const ALLOCATION: Key = key(
    "ftl.allocation",
    ValueKind::Slot(&ALLOCATIONS),
    "\"CWDP\"",
    "the lane of a host write, by default a plane",
);

const DYNAMIC: &str = "dynamic";

/// The static orders, fastest-varying dimension first.
const ORDERS: [&str; 24] = [
    "CWDP", "CWPD", "CDWP", "CDPW", "CPWD", "CPDW", "WCDP", "WCPD", "WDCP", "WDPC", "WPCD", "WPDC", "DCWP",
    "DCPW", "DWCP", "DWPC", "DPCW", "DPWC", "PCWD", "PCDW", "PWCD", "PWDC", "PDCW", "PDWC",
];

/// The choices: the static orders, then `dynamic`.
const ALLOCATIONS: [Policy; 25] = {
    let mut all = [plain(DYNAMIC, "the die with the fewest operations queued or under way"); 25];
    let mut i = 0;
    while i < ORDERS.len() {
        all[i] = plain(ORDERS[i], "static: the dimension of the first letter varies fastest");
        i += 1;
    }
    all[0].doc = "static: channel varies fastest, then chip (way), die, plane";
    all
};

impl FromVal for Allocation {
    fn from_val(val: &Val) -> Self {
        match val.tag() {
            DYNAMIC => Self::Dynamic,
            order if ORDERS.contains(&order) => {
                Self::Static(order.as_bytes().try_into().expect("an order has four letters"))
            }
            _ => val.is_no("allocation"),
        }
    }
}
