//! Tests of the SLC cache on whole drives are in `crates/nandlab/tests/drive/slc.rs`.
