//! Notes on the SLC cache.

use super::SlcStats;
use super::spec::SlcSpec;
use crate::base::note::Note;
use crate::base::words::several;

/// The drive has an SLC cache, and nothing was written to it.
pub(crate) fn nothing_cached(stats: &SlcStats, slc: &SlcSpec) -> Option<Note> {
    if !slc.is_on() || stats.cached > 0 {
        return None;
    }
    let reason = match stats.direct {
        0 => "the host wrote nothing to flash.".to_owned(),
        direct => format!(
            "all {} of the host were written without SLC mode. With little free space the dynamic part is small \
             (slc.dynamic, precondition); slc.static and drive.op make room for a static part.",
            several(direct, "unit")
        ),
    };
    Note::info("no-slc-cache", format!("Nothing was written in SLC mode: {reason}"))
}

/// Units were written in SLC mode, and none was folded.
pub(crate) fn nothing_folded(stats: &SlcStats, slc: &SlcSpec) -> Option<Note> {
    if !slc.is_on() || stats.cached == 0 || stats.blocks > 0 {
        return None;
    }
    Note::info(
        "no-fold",
        "No block was folded: the host was never idle for slc.idle_after while a block in SLC mode was full, and the \
         SLC cache was not filled above slc.watermark. The write amplification of folding is still to come."
            .to_owned(),
    )
}

/// Preconditioning was to leave a share of the cache filled, and wrote nothing in SLC mode (`filled` units).
pub(crate) fn nothing_filled(slc: &SlcSpec, filled: u64) -> Option<Note> {
    if slc.filled == 0.0 || !slc.is_on() || filled > 0 {
        return None;
    }
    Note::info(
        "no-slc-fill",
        format!(
            "slc.filled = {} had no effect: preconditioning left no valid data, or the share is less than a block of a \
             plane. Raise precondition.used, slc.static or slc.dynamic.",
            slc.filled
        ),
    )
}
