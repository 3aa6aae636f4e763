//! Arbitrary text through the spec parser: the result is a spec or a list of errors, never a panic.
//!
//! `cargo fuzz run spec`. An accepted spec, printed and parsed again, has the same hash.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandlab::drive::spec::load;
use std::path::Path;

fuzz_target!(|text: &str| {
    match load(text, "fuzz.toml", Path::new("."), &[]) {
        Ok(loaded) => {
            let again = load(&loaded.to_toml(), "again.toml", Path::new("."), &[]);
            let again = again.unwrap_or_else(|errors| panic!("the printed spec is refused: {errors}"));
            assert_eq!(again.hash(), loaded.hash());
        }
        Err(errors) => assert!(!errors.to_string().is_empty() && !errors.all().is_empty()),
    }
});
