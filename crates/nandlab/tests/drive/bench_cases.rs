//! The cases of the standing benchmark: what each of them measures happens in it.
//!
//! The case "all four" once measured the baselines: no page was copied back, no level was remembered, and no budget was
//! reached.

#[allow(dead_code, unreachable_pub, reason = "the benchmark is a program of its own")]
#[path = "../../benches/standing.rs"]
mod standing;

use standing::{SCHEMES, Scheme, play_observed};

#[test]
fn the_mechanisms_of_each_case_act() {
    for case in &SCHEMES {
        let (drive, operations) = case.play_small();
        assert_eq!(case.idle(&drive), [""; 0], "{}", case.name);
        assert!(operations > 100_000, "{}: {operations}", case.name);
        if case.name == case.than {
            // What a case adds does not happen in the case with which it is compared.
            for other in SCHEMES.iter().filter(|other| other.than == case.name && other.name != case.name) {
                assert!(!other.idle(&drive).is_empty(), "{} acts in {}", other.name, case.name);
            }
        }
    }
}

#[test]
fn without_a_scheme_its_mechanisms_are_idle() {
    let (drive, _) = Scheme::named("baselines").play_small();
    assert_eq!(
        Scheme::named("all four").idle(&drive),
        [
            "first tries above level 1",
            "partially refreshed pages",
            "reads of a combination page",
            "copybacks",
            "victims off-chip",
            "syncs of dirty pages",
            "budget detections",
            "updates blocked by the budget",
        ]
    );
}

/// The observer sees each request, and changes nothing.
#[test]
fn explaining_changes_no_page_operation() {
    assert_eq!(play_observed(), Scheme::named("plain").play_small().1);
}
