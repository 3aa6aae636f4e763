//! Allocation: the 24 static orders, and dynamic allocation.

use crate::common::{TINY, spec};
use nandlab::base::geometry::{Geometry, LaneId, Lpn};
use nandlab::base::units::Time;
use nandlab::drive::Drive;
use nandlab::drive::spec::{Allocation, Spec};
use nandlab::ftl::allocation::Allocator;
use nandlab::host::Request;
use nandlab::sched::Timing;
use nandlab::sched::{Device, FlashOp};

fn orders() -> Vec<String> {
    let mut all = Vec::new();
    for a in "CWDP".chars() {
        for b in "CWDP".chars() {
            for c in "CWDP".chars() {
                for d in "CWDP".chars() {
                    let order: String = [a, b, c, d].into_iter().collect();
                    if "CWDP".chars().all(|letter| order.contains(letter)) {
                        all.push(order);
                    }
                }
            }
        }
    }
    assert_eq!(all.len(), 24);
    all
}

/// 2 channels of 3 chips of 4 dies of 5 planes. All sizes differ, so that an exchange of two letters changes the
/// result.
const ALL_DIFFERENT: &str = "[drive]\nchannels = 2\nchips_per_channel = 3\ndies_per_chip = 4\nplanes_per_die = 5\n\
     blocks_per_plane = 8\npages_per_block = 4\npage_size = '4KiB'\ncell = 'mlc'\nop = 1.1\n";

/// Returns channel, chip, die and plane of consecutive LPNs under `order`. The first letter of the order counts up
/// fastest, like the last digit of a number.
fn visits(order: &str, sizes: [(char, u32); 4]) -> Vec<(u32, u32, u32, u32)> {
    let size = |letter: char| sizes.iter().find(|s| s.0 == letter).expect("the letter is one of the four").1;
    let letters: Vec<char> = order.chars().collect();
    let mut out = Vec::new();
    for fourth in 0..size(letters[3]) {
        for third in 0..size(letters[2]) {
            for second in 0..size(letters[1]) {
                for first in 0..size(letters[0]) {
                    let at = |letter: char| {
                        let digits = [first, second, third, fourth];
                        digits[letters.iter().position(|&l| l == letter).expect("the letter is in the order")]
                    };
                    out.push((at('C'), at('W'), at('D'), at('P')));
                }
            }
        }
    }
    out
}

#[test]
fn every_static_order_visits_the_dimensions_in_the_order_of_its_name() {
    for order in orders() {
        let spec = spec(ALL_DIFFERENT, &[&format!("ftl.allocation={order}")]);
        let drive = Drive::new(&spec);
        let visits = visits(&order, [('C', 2), ('W', 3), ('D', 4), ('P', 5)]);
        assert_eq!(visits.len(), 120);
        for lpn in 0..drive.geometry().logical_units {
            let (channel, chip, die, plane) = visits[lpn as usize % 120];
            // A channel has 12 dies, a chip 4 dies, a die 5 planes.
            let expected = LaneId(channel * 60 + chip * 20 + die * 5 + plane);
            let home = drive.ftl().allocator.home(Lpn(lpn));
            assert_eq!(home, expected, "LPN {lpn} under {order}");
            let on = drive.geometry().die_of(home);
            assert_eq!((on.0, drive.geometry().channel_of(on)), (channel * 12 + chip * 4 + die, channel));
        }
    }
}

#[test]
fn writes_go_to_the_planes_of_the_order() {
    for order in orders() {
        let text = ALL_DIFFERENT.replace("planes_per_die = 5", "planes_per_die = 2");
        let spec = spec(&text, &[&format!("ftl.allocation={order}")]);
        let mut drive = Drive::new(&spec);
        let bytes = drive.geometry().logical_bytes();
        for _ in 0..2 {
            let request = Request::write(0, bytes).at(drive.now());
            drive.submit(&request).unwrap();
            drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
            let visits = visits(&order, [('C', 2), ('W', 3), ('D', 4), ('P', 2)]);
            for lpn in 0..drive.geometry().logical_units {
                let (channel, chip, die, plane) = visits[lpn as usize % 48];
                let at = drive.ftl().map.get(Lpn(lpn)).unwrap();
                let shown = drive.geometry().show(at).to_string();
                let expected = format!("c{channel}.d{}.p{plane}.", chip * 4 + die);
                assert!(
                    shown.starts_with(&expected),
                    "LPN {lpn} under {order} is at {shown}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn static_orders_that_differ_place_data_differently() {
    let placed: Vec<Vec<LaneId>> = orders()
        .iter()
        .map(|order| {
            let drive = Drive::new(&spec(ALL_DIFFERENT, &[&format!("ftl.allocation={order}")]));
            (0..120).map(|lpn| drive.ftl().allocator.home(Lpn(lpn))).collect()
        })
        .collect();
    for (i, one) in placed.iter().enumerate() {
        assert!(placed[..i].iter().all(|other| other != one));
    }
}

fn device(spec: &Spec) -> (Geometry, Device) {
    let geometry = Geometry::new(&spec.drive);
    let timing = Timing::new(&spec.timing, &geometry, spec.shapes(&geometry));
    let device = Device::new(&geometry, timing, spec.timing.scheduler, spec.timing.multi_plane, None, false);
    (geometry, device)
}

#[test]
fn dynamic_allocation_visits_idle_dies_in_turn_and_takes_the_lane_with_most_room() {
    let spec = spec(ALL_DIFFERENT, &["ftl.allocation=dynamic"]);
    let (geometry, device) = device(&spec);
    let mut allocator = Allocator::new(Allocation::Dynamic, &geometry, 1);
    // Lane 3 of each die has the most room; dies 5 and 6 have no room.
    let room = |lane: LaneId| {
        let (die, lane) = (lane.0 / 5, lane.0 % 5);
        (die != 5 && die != 6).then_some(if lane == 3 { 9 } else { lane })
    };
    let with_room: Vec<u32> = (0..24).filter(|&die| die != 5 && die != 6).collect();
    for round in 0..66 {
        let die = with_room[round % 22];
        let chosen = allocator.choose(&geometry, &device, 0, room);
        assert_eq!(chosen, Some(LaneId(die * 5 + 3)), "choice {round}");
    }
    assert_eq!(allocator.choose(&geometry, &device, 0, |_| None), None);
    // The search continues after the die chosen last, even after a failed choice.
    assert_eq!(allocator.choose(&geometry, &device, 0, room), Some(LaneId(3)));
}

#[test]
fn dynamic_allocation_avoids_loaded_dies() {
    let mut drive = Drive::new(&spec(TINY, &["drive.chips_per_channel=2", "ftl.allocation=dynamic"]));
    let write = |drive: &mut Drive, lpn: u64, units: u64| {
        let request = Request::write(lpn * 4096, units * 4096).at(drive.now());
        drive.submit(&request).unwrap();
    };
    write(&mut drive, 0, 4);
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    let die = |drive: &Drive, lpn| {
        let geometry = drive.geometry();
        geometry.die_of(geometry.lane_of(geometry.superblock_of(drive.ftl().map.get(Lpn(lpn)).unwrap())))
    };
    let dies: Vec<u32> = (0..4).map(|lpn| die(&drive, lpn).0).collect();
    assert_eq!(dies, [0, 1, 2, 3]);
    // Five reads of LPN 2 load its die. The next twelve writes go to the other three dies, four to each. The loads are
    // then 4, 4, 5 and 4.
    for _ in 0..5 {
        let request = Request::read(2 * 4096, 4096).at(drive.now());
        drive.submit(&request).unwrap();
    }
    write(&mut drive, 100, 12);
    let mut count = [0; 4];
    for lpn in 100..112 {
        count[die(&drive, lpn).index()] += 1;
    }
    assert_eq!(count, [4, 4, 0, 4]);
    drive.run_until_idle(nandlab::drive::IDLE_LIMIT).unwrap();
    drive.audit().unwrap();
}

/// Returns the simulated time of 400 writes of every eighth LPN, at queue depth 32, on 4 dies of 2 planes.
fn stride(allocation: &str) -> f64 {
    let sets =
        ["drive.chips_per_channel=2", "drive.blocks_per_plane=128", &format!("ftl.allocation={allocation}")];
    let mut drive = Drive::new(&spec(TINY, &sets));
    let mut next = 0;
    while next < 400 || drive.outstanding() > 0 {
        while next < 400 && drive.outstanding() < 32 {
            let offset = next * 8 * 4096;
            let request = Request::write(offset, 4096).at(drive.now());
            drive.submit(&request).unwrap();
            next += 1;
        }
        assert!(drive.advance_to_completion(Time::NEVER));
        drive.completions().for_each(drop);
    }
    assert_eq!(drive.stats().flash_total(FlashOp::Program), 400, "GC has programmed pages");
    drive.now().ns() as f64
}

/// Under any static order of 8 planes every eighth LPN goes to the same plane. So one die does all the work, in a time
/// known in closed form. Dynamic allocation uses all four dies and needs a quarter of that time, plus the first
/// transfers on the shared channels.
#[test]
fn dynamic_allocation_of_a_stride_is_faster_than_static_orders_by_the_number_of_dies() {
    let (transfer, program) = (10_240.0, 900_000.0);
    let dynamic = stride("dynamic");
    assert!((dynamic / (100.0 * (transfer + program)) - 1.0).abs() < 0.01, "{dynamic}");
    for order in ["CWDP", "PDWC", "WCPD"] {
        let fixed = stride(order);
        assert_eq!(fixed, 400.0 * (transfer + program), "{order}");
        assert!(fixed / dynamic > 3.95, "{order}: {fixed} / {dynamic}");
    }
}
