//! Tests of the numbers that follow from the keys. Tests on whole drives are in `crates/nandlab/tests/drive/slc.rs`.

use super::spec::rows_of;

/// A block has as many rows in SLC mode as whole wordlines. With stripes of one-shot programs it has whole stripes, of as
/// many rows as a cell has bits.
#[test]
fn a_row_in_slc_mode_is_a_wordline() {
    assert_eq!([1, 2, 3].map(|bits| rows_of(192, bits, false)), [192, 96, 64]);
    assert_eq!([2, 3].map(|bits| rows_of(17, bits, false)), [8, 5]);
    assert_eq!([2, 3].map(|bits| rows_of(192, bits, true)), [96, 63]);
}
