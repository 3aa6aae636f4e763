//! The spec parser returns a spec or a list of errors for arbitrary text; it never panics. An accepted spec has the same
//! hash after it is printed and parsed again.
//!
//! `cargo fuzz run spec`.
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
