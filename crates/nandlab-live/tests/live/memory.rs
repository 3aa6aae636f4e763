//! The drive in memory against a vector.

use nandlab_base::base::units::Time;
use nandlab_live::backend::{Backend, Extent, Op, Request};
use nandlab_live::memory::Memory;
use proptest::prelude::*;

/// Not a multiple of a page.
const SIZE: u64 = 10 * 4096 + 1000;

fn request() -> impl Strategy<Value = (Request, u8)> {
    let op = prop_oneof![
        2 => Just(Op::Read),
        4 => Just(Op::Write),
        1 => Just(Op::Trim),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(no_hole, fast)| Op::WriteZeroes { no_hole, fast }),
    ];
    let edge = prop_oneof![0..SIZE, (0..11u64).prop_map(|page| page * 4096), Just(SIZE)];
    (op, edge.clone(), edge, prop_oneof![Just(0u8), any::<u8>()]).prop_filter_map(
        "an empty range",
        |(op, a, b, byte)| {
            let (offset, end) = (a.min(b), a.max(b));
            (offset < end).then_some((
                Request { op, offset, len: (end - offset) as u32, fua: false, placement: 0 },
                byte,
            ))
        },
    )
}

/// What the memory says of the allocation of a range, byte by byte.
fn status(memory: &mut Memory, offset: u64, len: u64, max: usize) -> Vec<(bool, bool)> {
    let mut extents: Vec<Extent> = Vec::new();
    memory.extents(offset, len, max, &mut extents);
    assert!(!extents.is_empty() && extents.len() <= max && extents.iter().all(|extent| extent.len > 0));
    let kinds: Vec<(bool, bool)> = extents.iter().map(|extent| (extent.hole, extent.zero)).collect();
    assert!(kinds.windows(2).all(|pair| pair[0] != pair[1]), "neighbours differ: {extents:?}");
    extents.iter().flat_map(|extent| vec![(extent.hole, extent.zero); extent.len as usize]).collect()
}

proptest! {
    #[test]
    fn memory_reads_like_a_vector(steps in proptest::collection::vec(request(), 1..60)) {
        let mut memory = Memory::new(SIZE);
        let mut twin = vec![0u8; SIZE as usize];
        for (request, byte) in steps {
            let range = request.offset as usize..request.offset as usize + request.len as usize;
            let payload = vec![byte; range.len()];
            let payload = if request.op == Op::Write { &payload[..] } else { &[] };
            memory.submit(9, Time::START, &request, payload).unwrap();
            prop_assert_eq!(memory.completed().map(|completion| (completion.id, completion.result)), Some((9, Ok(()))));
            prop_assert_eq!(memory.completed(), None);
            match request.op {
                Op::Read => {
                    let mut out = Vec::new();
                    memory.take(9, &mut out);
                    prop_assert_eq!(&out[..], &twin[range.clone()]);
                }
                Op::Write => twin[range.clone()].fill(byte),
                _ => twin[range.clone()].fill(0),
            }
            let statuses = status(&mut memory, 0, SIZE, usize::MAX);
            prop_assert_eq!(statuses.len() as u64, SIZE);
            for (&(hole, zero), &byte) in statuses.iter().zip(&twin) {
                prop_assert!((!hole || zero) && (!zero || byte == 0), "a hole reads as zeros, and zeros are zeros");
            }
            if matches!(request.op, Op::WriteZeroes { no_hole: true, .. }) {
                prop_assert!(statuses[range.clone()].iter().all(|&(hole, _)| !hole), "no hole was asked for");
            }
            let first = status(&mut memory, request.offset, request.len.into(), 1);
            prop_assert_eq!(&first[..], &statuses[range.clone()][..first.len()]);
        }
        let mut out = Vec::new();
        memory.read(0, SIZE as u32, &mut out);
        prop_assert_eq!(out, twin);
    }
}

#[test]
fn zeros_take_no_memory_and_freed_memory_is_used_again() {
    let mut memory = Memory::new(1 << 40);
    let zeros = vec![0; 1 << 20];
    (0..1000).for_each(|number| memory.write(number << 30, &zeros).unwrap());
    assert_eq!(memory.allocated_bytes(), 0);
    let ones = vec![1; 1 << 20];
    for number in 0..100u64 {
        memory.write(number << 30, &ones).unwrap();
        memory.zero(number << 30, 1 << 20, true);
    }
    assert!(memory.allocated_bytes() <= 16 << 20, "{} bytes", memory.allocated_bytes());
}
