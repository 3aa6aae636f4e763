//! An image with units that cannot be read, against a vector of bytes.

use std::collections::BTreeSet;

use nandlab_base::base::units::Time;
use nandlab_live::backend::{Backend, Errno, Op, Request};
use nandlab_live::image::Image;
use proptest::prelude::*;

const UNIT: u64 = 4096;
/// The last unit is shorter.
const SIZE: u64 = 9 * UNIT + 1000;

fn request() -> impl Strategy<Value = (Request, u8)> {
    let op = prop_oneof![
        3 => Just(Op::Read),
        3 => Just(Op::Write),
        1 => Just(Op::WriteZeroes { no_hole: false, fast: false }),
        1 => Just(Op::Trim),
        1 => Just(Op::Flush),
    ];
    let edge = prop_oneof![0..SIZE, (0..10u64).prop_map(|unit| unit * UNIT), Just(SIZE)];
    (op, edge.clone(), edge, any::<u8>()).prop_filter_map("an empty range", |(op, a, b, byte)| {
        let (offset, end) = (a.min(b), a.max(b));
        (offset < end)
            .then_some((Request { op, offset, len: (end - offset) as u32, fua: false, placement: 0 }, byte))
    })
}

proptest! {
    /// The twin has a byte's value and, by unit, whether it can be read.
    #[test]
    fn lost_units_fail_and_the_others_read_as_written(
        lost in proptest::collection::btree_set(0..10u64, 0..4),
        steps in proptest::collection::vec(request(), 1..40),
    ) {
        let folder = crate::server::Folder::new();
        let path = folder.0.join("image");
        let mut twin: Vec<u8> = (0..SIZE).map(|at| (at / 100) as u8).collect();
        std::fs::write(&path, &twin).unwrap();
        let mut image = Image::open(&path, UNIT, lost.clone()).unwrap();
        let mut lost: BTreeSet<u64> = lost;
        for (id, (request, byte)) in steps.into_iter().enumerate() {
            let range = request.offset as usize..request.offset as usize + request.len as usize;
            let payload = vec![byte; range.len()];
            let payload = if request.op == Op::Write { &payload[..] } else { &[] };
            let answer = image.submit(id as u64, Time::START, &request, payload);
            let bad = range.clone().find(|&at| lost.contains(&(at as u64 / UNIT)));
            if let (Op::Read, Some(first)) = (request.op, bad) {
                let failure = answer.unwrap_err();
                prop_assert_eq!((failure.errno, failure.at), (Errno::Io, Some(first as u64)));
                prop_assert_eq!(image.completed(), None);
                continue;
            }
            prop_assert_eq!(answer, Ok(()));
            prop_assert_eq!(image.completed().map(|of| (of.id, of.result)), Some((id as u64, Ok(()))));
            if request.op == Op::Read {
                let mut out = Vec::new();
                image.take(id as u64, &mut out);
                prop_assert_eq!(&out[..], &twin[range.clone()]);
            } else if matches!(request.op, Op::Write | Op::WriteZeroes { .. }) {
                twin[range.clone()].fill(if request.op == Op::Write { byte } else { 0 });
                lost.retain(|unit| {
                    let of = (unit * UNIT) as usize..((unit + 1) * UNIT).min(SIZE) as usize;
                    of.start < range.start || range.end < of.end
                });
            }
        }
        prop_assert_eq!(std::fs::read(&path).unwrap(), twin);
    }
}
