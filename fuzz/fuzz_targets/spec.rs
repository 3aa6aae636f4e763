//! Arbitrary text through the spec parser: a spec that can be simulated or errors that say where, never a panic.
//!
//! `cargo fuzz run spec`. A spec that is accepted prints to one that is accepted and is the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandlab::drive::spec::load;
use std::path::Path;

fuzz_target!(|text: &str| {
    match load(text, "fuzz.toml", Path::new("."), &[]) {
        Ok(loaded) => {
            let again = load(&loaded.to_toml(), "again.toml", Path::new("."), &[]);
            let again = again.unwrap_or_else(|errors| panic!("what was printed is refused: {errors}"));
            assert_eq!(again.hash(), loaded.hash());
        }
        Err(errors) => assert!(!errors.to_string().is_empty() && !errors.all().is_empty()),
    }
});
