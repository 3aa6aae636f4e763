//! `precondition.map_reads`: maps the units that a workload reads before it writes them.
//!
//! The order of the requests of several clients depends on the drive. So a unit is mapped that a client reads before that
//! client writes it, whatever the others do.
//!
//! A first pass through the workload finds these units and writes each that is not mapped, in no simulated time. SSDsim
//! calls this step preprocessing the trace.

use super::{Runner, Source, Stopped};
use crate::base::geometry::Lpn;
use crate::drive::Drive;
use crate::host::Op;
use crate::probe::Probe;

/// Takes all requests of `runner`'s source without simulating time, and maps each unmapped unit that is read before it
/// is written. Calls `watch` every 16,384 requests, always with the share 0, and stops if `watch` returns `false`.
/// Returns the number of units mapped, or `None` if stopped.
///
/// # Errors
/// As [`Runner::run`].
pub fn map_reads<S: Source, P: Probe>(
    runner: &mut Runner<S>,
    drive: &mut Drive<P>,
    watch: &mut dyn FnMut(f64) -> bool,
) -> Result<Option<u64>, Stopped<S::Error>> {
    const STRIDE: u64 = 1 << 14;
    let unit_bytes = u64::from(drive.geometry().unit_bytes);
    let units = drive.geometry().logical_units;
    let mut written = vec![0u64; units.div_ceil(64) as usize];
    let (mut mapped, mut seen, mut client) = (0, 0u64, 0);
    while let Some(request) = runner.take(drive)? {
        seen += 1;
        if seen % STRIDE == 0 && !watch(0.0) {
            return Ok(None);
        }
        if !matches!(request.op, Op::Read | Op::Write) || request.len == 0 {
            continue;
        }
        let last = (request.offset.saturating_add(request.len) - 1) / unit_bytes;
        if request.tag.queue != client {
            client = request.tag.queue;
            written.fill(0);
        }
        // Units beyond the capacity are left out here; in the run the drive refuses their request.
        for lpn in request.offset / unit_bytes..=last.min(u64::from(units) - 1) {
            let (word, bit) = (lpn as usize / 64, 1 << (lpn % 64));
            let is_known = written[word] & bit != 0;
            written[word] |= bit;
            let lpn = Lpn(lpn as u32);
            if request.op == Op::Read && !is_known && drive.ftl().map.get(lpn).is_none() {
                if drive.write_if_room(lpn).is_none() {
                    return Err(Stopped::Failed(drive.failure().expect("the drive is worn out").clone()));
                }
                mapped += 1;
            }
        }
    }
    drive.settle();
    drive.failure().map_or(Ok(Some(mapped)), |failure| Err(Stopped::Failed(failure.clone())))
}
