//! Interactions between mechanisms. No mechanism imports another one: a mechanism declares its queries to others as a
//! trait, which is implemented here (`Jobs`, `BackedUp`, `AtPowerLoss`).
//!
//! The list has what one scheme does to the state of another: the rule, its reason, where it is, and its test in
//! `crates/nandlab/tests/drive/together.rs` or in the file named. A meeting that is a call from one scheme to the other
//! is in this file; a meeting through state in the core is where that state is read. The random runs and the power cuts
//! draw the four schemes in all combinations, each with or without reclaim (`crates/nandlab/tests/common/schemes.rs`);
//! a rule without a test is covered by these runs only.
//!
//! Copybacks:
//!
//! - A unit that is copied back keeps its age and its read level. Reason: a copyback corrects nothing. In
//!   `Drive::on_copied_back`. Test: `a_copyback_keeps_age_errors_and_read_level_and_a_correction_resets_them`.
//! - A unit that is copied back also keeps the errors that reads and programs in place of its old superblock have
//!   caused; the measured limit counts these errors. Reason: a copyback senses and programs these errors with the data.
//!   In `Core::take_over_errors`, `Migration::allows`. Test: the test of the rule before,
//!   `the_measured_limit_includes_read_disturb`.
//! - A unit that is copied back keeps its due time, whenever its new superblock was opened. Reason: a superblock is due
//!   when its oldest data is. In `Drive::keep_age` in `events.rs`, `AtPowerLoss::on_copied_back`: `Refresh::age_as`. Test:
//!   `a_copied_back_unit_keeps_its_due_time` in `refresh.rs`.
//! - A unit that is copied back keeps its known errors (EC-Cache). Reason: the copy has the same bit errors. In
//!   `Drive::on_copied_back`: `ErrorCache::move_unit`. Test:
//!   `known_errors_move_with_a_copyback_and_are_dropped_with_a_correction`.
//! - Units of a refresh job and translation pages are moved off-chip. Reason: a copyback corrects nothing; a
//!   translation page is programmed in turn with write-backs. In `Migration::copyback_stream`. Test:
//!   `translation_pages_are_never_copied_back` in `migration.rs`.
//! - The mode selector reads the load of the write cache or of the write buffer. Reason: the cache or buffer is the
//!   paper's write buffer. In `Jobs::copyback_stream`: `Caching::load`, `Buffer::load`. Test:
//!   `the_mode_selector_considers_the_buffer_and_urgency` in `migration.rs`.
//! - After refresh in place a superblock has copyback count 0. Reason: all its valid data has been corrected. In
//!   `Refresh::end_in_place`. Test: `refresh_in_place_resets_the_copyback_count`.
//!
//! Read levels:
//!
//! - A host write, an off-chip move and a refresh (also in place) reset the remembered level of a unit to 1. Reason:
//!   the data is young. In `Map::on_written`, `Map::on_moved`, `Refresh::on_reprogrammed`. Test:
//!   `a_copyback_keeps_age_errors_and_read_level_and_a_correction_resets_them`,
//!   `a_conventional_refresh_resets_the_level`.
//! - A partial refresh resets the level when the link is made, not while the bits wait in the VSM. Reason: until the
//!   bits are in flash no error is corrected. In `Partial::on_line_programmed`. Test:
//!   `the_read_level_falls_when_a_unit_is_linked_not_when_it_is_read_for_the_vsm`.
//! - A read at full strength sets no level for its superblock and for the drive. Reason: every such read ends at the
//!   last level. In `Reads::remember`. Test: `a_read_at_full_strength_does_not_change_the_remembered_level`.
//! - Neither a write nor a correction lowers the level of the drive; power loss forgets it. Reason: the level of the
//!   drive is no level of a unit, and is in RAM. In `Reads::remember`, `ReadLevels::forget`. Test:
//!   `the_level_of_the_drive_is_that_of_all_pages_until_power_is_lost` in `read_levels.rs`.
//! - An entry that is brought into the mapping cache starts at the level of its superblock. Reason: the entry's own
//!   level was lost at its eviction. In `Mapping::bring_in`. Test:
//!   `a_loaded_entry_starts_at_the_level_of_its_superblock` in `demand_map.rs`.
//! - After its errors have become known, the reads of a unit start at level 1 again. Reason: known errors are corrected
//!   before decoding. In `Drive::on_decoded` in `reads.rs`: `ErrorCache::on_decoded`. Test:
//!   `known_errors_count_as_corrected_at_the_next_read`.
//! - Known errors and links of a unit end when the unit that replaces it has been programmed, or with a TRIM. Reason:
//!   until then the old unit may be read again. In `Drive::on_unit_programmed`, `Drive::trim`, `AtPowerLoss::on_unit_obsolete`:
//!   `Refreshing::on_unit_obsolete`. Test: `an_entry_is_dropped_with_its_unit` in `ec_cache.rs`,
//!   `a_link_ends_when_the_unit_that_replaces_its_unit_is_in_flash` in `partial_by_hand.rs`.
//!
//! Partial refresh:
//!
//! - A partially refreshed unit that is moved is merged: it goes to a superblock of copyback count 0, its data is
//!   young, and it has no link. Reason: a copyback would move only one of its two parts. In `Migration::copy_back`.
//!   Test: `a_partially_refreshed_unit_is_merged_and_never_copied_back`,
//!   `a_unit_whose_bits_wait_in_the_vsm_is_not_copied_back`.
//! - A combination page is moved off-chip; its links follow. Reason: the combination page holds the only good copy of
//!   its bits. In `Migration::copyback_stream`; `Jobs::on_moved`. Test:
//!   `a_combination_page_moves_off_chip_with_its_links`.
//! - While free superblocks are few, refresh is conventional instead of partial. Reason: a partially refreshed
//!   superblock stays and returns no free superblock. In `Partial::takes`. Test:
//!   `with_few_free_superblocks_refresh_is_conventional` in `partial_by_hand.rs`.
//! - When half of the grace of a superblock is over, the VSM is programmed if it has bits of the superblock. The job of
//!   the lane is promoted if it works on the superblock or the superblock is next; if the lane has no job, the refresh
//!   starts. Reason: the superblock is refreshed only when its bits are in flash. In `Drive::hurry`. Test:
//!   `a_line_that_is_not_full_is_programmed_at_half_of_the_grace` in `partial_by_hand.rs`.
//! - Combination pages take no unit of a lane that GC needs for a gain. Reason: otherwise writes fail on a drive that
//!   is not worn out. In `Ftl::has_combination_room`. Test:
//!   `combination_pages_do_not_take_the_spare_units_that_gc_needs` in `random_runs.rs`.
//! - Programs to superblocks of combination pages are in the class of refresh, also those of GC. Reason: the units of a
//!   superblock are programmed in order, and lines and jobs of two classes write to one stream. In `Core::class_of`.
//!   Test: `the_host_reads_what_it_wrote` draws `refresh.priority`.
//! - `partial-aware` takes, of the superblocks with the fewest valid units, the one with the fewest links. Reason:
//!   moving a linked unit reads two units. In `Superblock::linked` in `background/gc/partial_aware.rs`. Test:
//!   `partial_aware_picks_the_fewest_valid_then_the_fewest_partially_refreshed` in `victims.rs`.
//!
//! Jobs:
//!
//! - Refresh and reclaim are background jobs: while space is short they begin after GC; the superblock of a refresh in
//!   place or of a partial refresh stays. Reason: a lane has one job. In `Schemes::next_job`, `Jobs::refresh_unit`,
//!   `Jobs::end_staying`. Test: `refresh_and_gc_together_lose_no_data` in `refresh.rs`.
//! - In a lane with due superblocks and superblocks to be reclaimed, refresh begins first. Reason: a due superblock has
//!   a deadline; the order of the scheme list decides. In `Schemes::next_job`.
//! - While a stream uses LSB pages only, a job reserves more superblocks. Reason: a superblock then has room for half
//!   as many units. In `Ftl::superblocks_for`. Test: `a_stream_that_uses_only_lsb_pages_needs_more_superblocks`.
//!
//! Reclaim:
//!
//! - A reclaim resets the remembered level of the units that it moves to 1. Reason: the move corrects the data. In
//!   `Map::on_moved`. Test: `a_reclaimed_unit_is_read_at_level_1_again` in `reclaim/tests.rs`.
//! - Linked units of a reclaimed superblock are merged. Reason: the superblock is emptied like a victim of GC. In
//!   `Reclaim::next_job`: `NextJob::stays` is false. Test: `a_reclaimed_superblock_of_linked_units_is_merged` in
//!   `reclaim/tests.rs`.
//! - A read of a linked unit also counts for the superblock of its combination page; when that superblock is reclaimed,
//!   the links follow. Reason: a pread senses both pages. In `Drive::on_page_out`; `Jobs::on_moved`. Test:
//!   `the_superblock_of_combination_pages_is_reclaimed_by_the_reads_of_the_linked_units` in `reclaim/tests.rs`.
//! - The units of a reclaimed superblock are moved off-chip. Reason: a copyback would copy the errors that the reads
//!   have caused. In `NextJob::corrects` in `Migration::copyback_stream`. Test:
//!   `reclaim_moves_units_off_chip_while_gc_copies_units_back` in `reclaim/tests.rs`.
//! - Host reads that hit the write cache count for no superblock. Reason: flash is not read. In `Caching::read`. Test:
//!   `reads_that_hit_the_write_cache_disturb_no_superblock` in `reclaim/tests.rs`.
//! - Power loss drops the queue of reclaim; the read counts of superblocks survive. Reason: the queue is in RAM, the
//!   read counts are in a record of the firmware: a later read that passes the limit queues the superblock again. In
//!   `Reclaim::power_lost`. Test: `a_reclaim_that_power_loss_interrupts_is_begun_again_and_loses_nothing` in
//!   `reclaim/tests.rs`.
//!
//! SLC cache:
//!
//! - Superblocks in SLC mode are no candidates of GC and of static wear levelling; a lane that is short of space folds
//!   those beyond the static part before GC looks for a victim. Reason: a fold always gains units. In `Ftl::close`:
//!   `SuperblockState::Cached`; `Jobs::fold_for_room` in `Background::start_gc`. Test:
//!   `the_logical_capacity_stays_writable` in `slc.rs`, `each_mechanism_needs_exactly_its_superblocks` in `space.rs`.
//! - A fold asks the migration policy like GC, and may copy pages back: the copy takes over their errors in SLC mode, and is
//!   the first copyback in a row. Refresh and reclaim move units out of SLC mode off-chip. Reason: a die programs what its
//!   registers hold, whichever mode it was sensed in. In `Migration::copyback_stream`, `Core::take_over_errors`. Test:
//!   `a_fold_by_copyback_takes_the_array_times_only`, `errors_in_slc_mode_move_with_a_fold_by_copyback` in `slc.rs`.
//! - Refresh of a due superblock in SLC mode, and reclaim of one that is read often, move its units to superblocks without
//!   this mode, as a fold does; a partial refresh does not take it. Reason: the data leaves the cache anyway. In
//!   `Refresh::next_job`, `Reclaim::next_job`, `Partial::takes`. Test: `a_due_block_in_slc_mode_is_refreshed_out_of_it` in
//!   `slc.rs`.
//! - A fold for which a write waits precedes refresh and reclaim. Reason: some data may always be due, and the write would
//!   wait for ever. In `Background::start_next_job`, `Core::waits_for_fold`. Test: `a_write_does_not_wait_for_refresh` in
//!   `slc.rs`.
//! - A fold resets the remembered read level of the units that it moves to 1. Reason: the move corrects the data. In
//!   `Map::on_moved`. Test: `a_fold_resets_the_read_level` in `slc.rs`.
//! - A TRIM may leave a superblock in SLC mode without valid units: it is erased without a fold. Reason: there is nothing
//!   to move. In `Core::look_if_dead`. Test: `a_fold_moves_valid_pages_only` in `slc.rs`.
//! - Write-backs of the write cache are written in SLC mode like writes of the host; translation pages, combination pages
//!   and copies are not. Reason: they are writes of the host. In `Writes::lane_for`. Test: `the_host_reads_what_it_wrote`
//!   draws `[slc]`.
//! - An SLC cache excludes placement handles, and so does an emergency flush in SLC mode. Reason: the cache is written in
//!   the order of the writes and would mix the data of the handles. In `has_one_placement` in `slc/spec.rs`. Test:
//!   `an_slc_cache_excludes_placement_handles` in `slc.rs`.
//! - Bad blocks and retirement: a superblock retires by the sum of the wear of both modes. In `Array::cycles_of_erase`,
//!   `Core::retires`. Test: `wear_adds_up_over_the_modes` in `slc.rs`.
//! - While power loss may tear a program, the host's stream in SLC mode uses all pages. Reason: a wordline has one page in
//!   this mode. In `Ftl::set_host_lsb_only`.
//! - An emergency flush and a detection write in SLC mode with `capacitor.flush_mode = "slc"`: more superblocks are kept
//!   free, and the capability follows from the programs of the mode. Folding empties what they have written. In
//!   `Ftl::take_flush_superblock`, `FlushCost::new`, `SuperblockNeeds::new`. Test:
//!   `an_emergency_flush_in_slc_mode_is_quicker_and_needs_more_blocks` in `slc.rs`.
//! - After a power loss the mark in the OOB says that a superblock is in SLC mode; its stream goes on in the open one, and
//!   recovery folds where it needs room. In `Offline::find_state`, `Return::resume_streams`,
//!   `Return::collect_in_recovery`. Test: `a_power_loss_leaves_the_modes_of_blocks` in `slc.rs`.
//!
//! Capacitor and detection:
//!
//! - The VSM reduces the dirty budget. Reason: the same energy saves it. In `PowerBackup::begin`: `FlushCost::new` in
//!   `capacitor/cost.rs`. Test: `the_vsm_reduces_the_capability_by_its_lines`.
//! - A detection programs the VSM before it drains the capacitor. Until the capacitor is charged again due units are
//!   written as a whole, also those of a job under way. Reason: an empty capacitor would not save the VSM. In
//!   `BackedUp::begin_sync`, `BackedUp::is_synced`; `Partial::takes`, `Partial::enter_vsm`. Test:
//!   `a_detection_programs_the_vsm_before_it_drains_the_capacitor`,
//!   `partial_refresh_pauses_until_the_capacitor_is_charged_again`.
//! - Until the capacitor is charged again no unit is refreshed in place, and the capacitor counts as empty only when no
//!   program in place is under way. Reason: a torn program in place would destroy the only copy. In
//!   `Refresh::may_reprogram`; `BackedUp::is_reprogramming`.
//! - A detection writes clean units of the cache once more; the map entries of these units stay cached and are updated.
//!   Reason: GC and recovery take the rewritten units for the newest data. In `BackedUp::take_clean`,
//!   `BackedUp::on_rewrite_queued`, `BackedUp::end_rewrite`. Test: `the_stages_of_a_detection_take_their_time` in
//!   `capacitor.rs`.
//! - While the capacitor is drained GC begins only for a waiting write, and dead superblocks stay. Reason: the
//!   detection measures a flush, so other operations are kept to a minimum. In `Background::start_gc`,
//!   `Core::look_if_dead`.
//! - Before a detection drains the capacitor, what was flushed to the cache is written back, and from then on flash
//!   acknowledges flushes and FUA writes. Reason: an empty capacitor would not save it. In `BackedUp::set_budget`:
//!   `Host::set_backed`. Test: `a_detection_first_writes_back_what_was_flushed_to_the_cache` in `flush_to.rs`.
//! - A write-back allocates its unit as a host write does, and looks up its map entry when it is written. Reason: the
//!   unit is mapped when the write-back is admitted. In `host::WriteBacks`; `Caching::continue_write_back`. Test:
//!   `the_map_entry_of_a_write_is_looked_up_at_its_write_back` in `write_cache.rs`.
//! - A write to a unit whose write-through program is under way waits while more units are dirty than the budget
//!   allows. Reason: the write would be acknowledged beyond what the capacitor saves. In `Caching::try_write`. Test:
//!   `a_write_to_a_unit_that_is_being_written_through_respects_the_budget` in `random_runs.rs`.
//!
//! Power loss:
//!
//! - Pending records of deallocations take a unit of the dirty budget, and at power loss are flushed before the dirty
//!   units. Reason: the capacitor saves what a flush acknowledged from the cache covers; a unit of records saves more
//!   than a dirty unit. In `Host::trim_units`, `Caching::room`, `Drive::bound_trim_records`;
//!   `Drive::dirty_at_power_loss`, `Drive::end_trims`. Test: `records_of_trims_take_a_unit_of_the_budget`,
//!   `the_emergency_flush_writes_the_records_of_trims_before_the_dirty_units` in `flush_to.rs`.
//! - At power loss the VSM is flushed after the dirty units. Reason: the loss of the VSM loses work but no data. In
//!   `Outage::begin_line_programs`; `AtPowerLoss::lines`, `AtPowerLoss::place_lines`, `AtPowerLoss::stage`. Test:
//!   `power_loss_saves_the_dirty_units_before_the_vsm`.
//! - The emergency flush, a detection and recovery pack units into pages; the capability counts the units of whole
//!   pages. Reason: a page is programmed as a whole, and its program takes the energy. In `Core::fill_program`,
//!   `Return::program_in_recovery`; `FlushCost::units`. Test: `the_emergency_flush_packs_units_into_pages`,
//!   `the_capability_counts_the_units_of_whole_pages`, `recovery_completes_partial_units_in_one_page` in
//!   `units_power_loss.rs`.
//! - The acknowledged units of the write buffer are flushed at power loss; until the capacitor is charged again the
//!   buffer acknowledges no unit before its program has ended. Reason: the units are dirty data in RAM, like those of
//!   the write cache; an empty capacitor would not save them. In `Drive::buffered_at_power_loss`; `BackedUp::set_budget`:
//!   `Buffer::set_budget`. Test: `a_capacitor_saves_the_write_buffer` in `units_power_loss.rs`.
//! - A copyback that ends after power has failed is counted, and its data keeps its due time. A superblock whose first
//!   program ends after power has failed ages from that time. Reason: these operations are like any other. In
//!   `AtPowerLoss::count_copyback`, `AtPowerLoss::on_copied_back`, `AtPowerLoss::on_first_program`.
//! - A superblock whose combination page was torn keeps its due time from before the partial refresh. Reason: its links
//!   are lost, so its errors are uncorrected again. In `Partial::age_without_links`. Test:
//!   `a_superblock_whose_links_are_torn_by_power_loss_is_due_again`.
//! - An emergency flush writes to superblocks of copyback count 0; a superblock opened for copybacks that never began
//!   has count 0 again. Reason: the superblock's data has been through no copyback. In `ftl/flush_programs.rs`,
//!   `Return::rebuild_map`. Test: `an_emergency_flush_goes_to_superblocks_of_copyback_count_0`.
//! - After a power loss the mode selector reads the load of an empty buffer. Reason: the write cache is empty. In
//!   `Caching::power_lost`. Test: `power_loss_empties_the_buffer_of_the_mode_selector`.
//! - After a power loss translation pages that differ from the map are written back. Reason: their changes were in RAM.
//!   In `Mapping::find_stale_pages`.
//!
//! Placement handles:
//!
//! - Data of a persistently isolated handle is moved off-chip; copybacks mix the data of all others. Reason: copybacks of
//!   each handle by itself would take an open superblock for each number of consecutive copybacks. In
//!   `Migration::copyback_stream`. Test: `data_of_a_persistent_handle_is_never_copied_back` in `placement.rs`.
//! - Static wear levelling moves data of a persistently isolated handle to the superblock that GC fills with this handle,
//!   which need not be the most worn one. Reason: the superblock that it fills with cold data mixes handles. In
//!   `Streams::of_jobs`. Test: `data_stays_with_its_handle_and_in_its_group_under_gc` in `placement.rs`.
//! - Combination pages and translation pages are in no handle's superblocks, and mix all handles. Reason: they are data of
//!   the controller. In `Core::audit_placement`.
//! - A dirty unit of the write cache has the handle of its newest write. Reason: the write-back is that write. In
//!   `Caching::placement_of`. Test: `writes_with_two_placements_go_to_two_open_superblocks` in `tags.rs`.
//! - A write replaces newer data in the write buffer only if it has the same placement. Reason: the unit of the other is in
//!   another superblock. In `Host::replace_buffered`. Test: as before.
//! - The emergency flush writes each handle's units to superblocks of this handle, in its reclaim group. Reason: recovery
//!   then finds the data where it belongs. Each place may leave a program part-filled, and each handle a superblock of each
//!   die. In `in_order_of_programs`, `FlushPrograms`; `FlushCost::units`. Test:
//!   `an_emergency_flush_pads_the_last_program_of_each_handle` in `placement.rs`,
//!   `a_flush_saves_what_is_promised_whatever_the_placements_of_the_units` in `capability.rs`.
//! - A detection writes clean units of handle 0, or dummy units, to superblocks of handle 0. Reason: it measures energy, and
//!   what it writes is no data of the host's. In `BackedUp::take_clean`.
//! - GC that goes on in an emergency flush leaves out superblocks of persistently isolated handles. Reason: its room is that of
//!   the stream in which GC mixes handles. In `Outage::victim` of `cleaning.rs`.
//! - A superblock that is due for refresh while a handle fills it is closed, and the handle goes on in another reclaim unit:
//!   the event of NVMe's time limit. In `Core::close_open`. Test: `a_reclaim_unit_that_is_open_too_long_is_closed` in
//!   `placement.rs`.
//!
//! A scheme that is off:
//!
//! - A scheme that is off counts nothing. Reason: it is the baseline of its paper. Test:
//!   `a_scheme_that_is_off_is_inactive_and_the_others_are_active`.

use super::Drive;
use super::mechanisms::Schemes;
use super::spec::{FlushOrder, FlushTo};
use super::stats::Sampled;
use crate::background::{Background, JobSchemes};
use crate::base::geometry::{CacheSlot, LaneId, Lpn, SuperblockId, UnitId};
use crate::capacitor::{BackedSchemes, PowerBackup};
use crate::core::{CopyBack, Core, Map, NextJob, Offline, Queued, Refreshed};
use crate::demand_map::Mapping;
use crate::ftl::placement::Place;
use crate::ftl::{AllocatedUnit, StreamId};
use crate::host::{Buffer, DataPath, Host, Trims};
use crate::power_loss::{self, Attempt, Dirty, Outage, PowerLoss, Return};
use crate::probe::Probe;
use crate::refresh::{Partial, Refreshing};
use crate::sched::{FlashOp, Owner, Transaction};
use crate::write_cache::Caching;
use std::collections::BTreeSet;

/// The path of a unit between host and flash, with the demand map of this drive.
pub(super) type Path = DataPath<Option<Mapping>>;

/// The mechanisms that background jobs query.
pub(super) struct Jobs<'a> {
    schemes: &'a mut Schemes,
    caching: Option<&'a mut Caching>,
}

impl<P: Probe> JobSchemes<P> for Jobs<'_> {
    fn next_job(&mut self, core: &mut Core<P>, lane: LaneId) -> Option<NextJob> {
        self.schemes.next_job(core, lane)
    }

    fn refresh_unit(&mut self, core: &mut Core<P>, lane: LaneId, read: &Transaction) -> Refreshed {
        self.schemes.refreshing.refresh_unit(core, lane, read)
    }

    fn end_staying(&mut self, core: &mut Core<P>, lane: LaneId, superblock: SuperblockId) {
        self.schemes.refreshing.end_staying(core, lane, superblock);
    }

    /// The policy `rcopyback` decides by the load of the write buffer: the write cache or `ftl.buffer`.
    fn copyback_stream(
        &mut self,
        core: &mut Core<P>,
        host: &mut Host,
        lane: LaneId,
        victim: SuperblockId,
        job: &NextJob,
    ) -> Option<StreamId> {
        let Self { schemes, caching } = self;
        let buffer = |core: &Core<P>| match (caching, &mut host.buffer) {
            (Some(caching), _) => caching.load(core.now()),
            (None, Some(buffer)) => buffer.load(core.now()),
            (None, None) => 0.0,
        };
        schemes.migration.copyback_stream(core, lane, victim, job, buffer)
    }

    fn may_copy_back(&mut self, core: &mut Core<P>, lane: LaneId, stream: StreamId, unit: UnitId) -> bool {
        self.schemes.migration.may_copy_back(core, lane, stream, unit)
    }

    fn on_left_over(&mut self) {
        self.schemes.migration.stats.left_over += 1;
    }

    fn copy_back(&mut self, core: &mut Core<P>, copyback: CopyBack<'_>) -> Queued {
        self.schemes.migration.copy_back(core, copyback)
    }

    fn awaited_fold(&mut self, core: &mut Core<P>, lane: LaneId) -> Option<NextJob> {
        self.schemes.slc.as_mut()?.awaited_fold(core, lane)
    }

    fn fold_for_room(&mut self, core: &mut Core<P>, lane: LaneId) -> Option<NextJob> {
        self.schemes.slc.as_mut()?.fold_for_room(core, lane)
    }

    /// A combination page has moved: its entries now belong to its new place.
    fn on_moved(&mut self, _core: &mut Core<P>, lpn: Lpn, to: UnitId) {
        if let Some(partial) = &mut self.schemes.refreshing.partial {
            partial.stage(lpn, to);
        }
    }
}

/// The mechanisms that the capacitor backs up.
pub(super) struct BackedUp<'a> {
    /// Whether FUA writes and flushes are acknowledged from the write cache or the write buffer while its budget is
    /// above 0 (`cache.flush_to` = `cache`, and a capacitor).
    acknowledges: bool,
    caching: &'a mut Option<Caching>,
    path: &'a mut Path,
    refreshing: &'a mut Refreshing,
}

impl<P: Probe> BackedSchemes<P> for BackedUp<'_> {
    fn cache_units(&self) -> u32 {
        let buffer = self.path.host.buffer.as_ref();
        let of_buffer = buffer.map_or(0, Buffer::capacity);
        self.caching.as_ref().map_or(of_buffer, |caching| caching.cache.memory())
    }

    fn budget_units(&self, share: f64, saved: f64) -> Option<u32> {
        let Some(Caching { cache, .. }) = &*self.caching else {
            return self.path.host.buffer.as_ref().map(|buffer| buffer.budget_of(share, saved));
        };
        Some(cache.budget_of(share))
    }

    fn is_bounded(&self) -> bool {
        self.caching.is_none() && self.path.host.buffer.is_some()
    }

    /// A budget above 0 is set only while the capacitor is charged.
    fn set_budget(&mut self, core: &mut Core<P>, units: u32) {
        if let Some(buffer) = &mut self.path.host.buffer {
            buffer.set_budget(units);
        }
        if let Some(caching) = self.caching {
            caching.set_budget(units);
        }
        if self.acknowledges {
            self.path.host.set_backed(core, units > 0);
        }
    }

    /// The capacitor also backs up the VSM, so the VSM is emptied before the capacitor is drained.
    fn begin_sync(&mut self, core: &mut Core<P>) {
        if let Some(partial) = &mut self.refreshing.partial {
            partial.empty_vsm(core);
        }
        core.close_buffered();
        if let Some(caching) = self.caching {
            caching.sync_more(core, self.path);
        }
    }

    fn is_synced(&self) -> bool {
        let in_buffer = self.path.host.buffer.as_ref().map_or(0, Buffer::acknowledged);
        let is_synced =
            in_buffer == 0 && self.caching.as_ref().is_none_or(|caching| caching.cache.unflushed() == 0);
        is_synced && !self.refreshing.partial.as_ref().is_some_and(Partial::has_lines_under_way)
    }

    fn take_clean(
        &mut self,
        core: &mut Core<P>,
        next_slot: &mut u32,
        group: u16,
    ) -> Option<(CacheSlot, Lpn, u64)> {
        let caching = self.caching.as_mut()?;
        let (cache, whole) = (&mut caching.cache, caching.whole);
        let slot = cache.next_clean(next_slot, whole)?;
        if !core.placements().is_single() {
            let unit = core.unit_of(cache.entry(slot).lpn)?;
            (core.place_of(unit) == Place { group, handle: 0 }).then_some(())?;
        }
        let epoch = self.path.host.epochs.open();
        self.path.host.epochs.join_unit(epoch);
        cache.begin_rewrite(slot, epoch);
        let (lpn, sequence) = (cache.entry(slot).lpn, cache.entry(slot).sequence);
        self.path.map.keep_entry(core, lpn);
        Some((slot, lpn, sequence))
    }

    fn on_rewrite_queued(&mut self, core: &mut Core<P>, lpn: Lpn) {
        self.path.map.on_written(core, lpn);
    }

    fn end_rewrite(&mut self, core: &mut Core<P>, slot: CacheSlot) {
        if let Some(caching) = self.caching {
            caching.end_write_back(core, self.path, slot);
        }
    }

    /// A reprogram in place must not be torn.
    fn is_reprogramming(&self) -> bool {
        self.refreshing.refresh.is_reprogramming()
    }
}

/// The mechanisms that are notified of power loss and recovery.
pub(super) struct AtPowerLoss<'a> {
    schemes: &'a mut Schemes,
}

impl<P: Probe> power_loss::Schemes<P> for AtPowerLoss<'_> {
    fn on_first_program(&mut self, core: &mut Core<P>, superblock: SuperblockId) {
        self.schemes.refreshing.refresh.age_from_power_loss(core, superblock);
    }

    /// Data that has been copied back keeps its age.
    fn on_copied_back(&mut self, to: SuperblockId, from: SuperblockId) {
        self.schemes.refreshing.refresh.age_as_from_power_loss(to, from);
    }

    fn count_copyback(&mut self, in_a_row: u8) {
        self.schemes.migration.stats.on_copyback(in_a_row);
    }

    fn on_erased(&mut self, core: &mut Core<P>, superblock: SuperblockId) {
        self.schemes.refreshing.on_erased(core, superblock);
    }

    fn on_unit_obsolete(&mut self, core: &mut Core<P>, unit: UnitId) {
        self.schemes.refreshing.on_unit_obsolete(core, unit);
    }

    fn on_blank(&mut self, first: UnitId, end: UnitId) {
        if let Some(partial) = &mut self.schemes.refreshing.partial {
            partial.links.blank(first, end);
        }
    }

    fn lines(&mut self, under_way: &[Transaction]) -> Vec<Lpn> {
        self.schemes
            .refreshing
            .partial
            .as_mut()
            .map_or_else(Vec::new, |partial| partial.lines_at_power_loss(under_way))
    }

    fn place_lines(&mut self, core: &mut Core<P>) -> Option<AllocatedUnit> {
        self.schemes.refreshing.partial.as_ref()?.place_lines_at_power_loss(core)
    }

    fn stage(&mut self, lpn: Lpn, to: UnitId) {
        if let Some(partial) = &mut self.schemes.refreshing.partial {
            partial.stage(lpn, to);
        }
    }
}

impl<P: Probe> Drive<P> {
    /// Calls `work` with the write cache, if there is one.
    pub(super) fn with_cache(&mut self, work: impl FnOnce(&mut Caching, &mut Core<P>, &mut Path)) {
        if let Some(cache) = &mut self.caching {
            work(cache, &mut self.core, &mut self.path);
        }
    }

    /// Calls `work` with the background jobs.
    pub(super) fn with_background<R>(
        &mut self,
        work: impl FnOnce(&mut Background, &mut Core<P>, &mut Path, &mut Jobs) -> R,
    ) -> R {
        let Self { background, core, path, schemes, caching, .. } = self;
        work(background, core, path, &mut Jobs { schemes, caching: caching.as_mut() })
    }

    /// Calls `work` with the capacitor and its detection.
    pub(super) fn with_power<R>(
        &mut self,
        work: impl FnOnce(&mut PowerBackup, &mut Core<P>, &mut BackedUp) -> R,
    ) -> R {
        let acknowledges = self.acknowledges_from_cache();
        let Self { power, core, caching, path, schemes, .. } = self;
        work(power, core, &mut BackedUp { acknowledges, caching, path, refreshing: &mut schemes.refreshing })
    }

    /// Whether FUA writes and flushes are acknowledged from the write cache or the write buffer while the capacitor is
    /// charged and the dirty budget is above 0.
    pub(super) fn acknowledges_from_cache(&self) -> bool {
        let has_memory = self.caching.is_some() || self.path.host.buffer.is_some();
        has_memory && self.power.capacitor.is_some() && self.spec.cache.flush_to == FlushTo::Cache
    }

    /// Deallocations have been recorded while the capacitor backs up the write cache or the write buffer. Makes them
    /// durable if their records fill a unit, or if the dirty budget has no room for their unit.
    pub(super) fn bound_trim_records(&mut self) {
        let unit_bytes = self.core.geometry().unit_bytes;
        let [_, budget, dirty] = self.dirty_units();
        let trims = &mut self.path.host.trims;
        // Beside the records there is room for at least one dirty unit.
        let has_room = dirty.max(1) + trims.units(unit_bytes) <= budget;
        if trims.fill_unit(unit_bytes) || !has_room {
            trims.make_durable();
        }
    }

    /// Checks that the capacitor saves all that a flush has acknowledged from the write cache or the write buffer.
    ///
    /// # Errors
    /// If it is more than the budget.
    pub(super) fn audit_budget(&self) -> Result<(), String> {
        let host = &self.path.host;
        let [unflushed, budget] = match (&self.caching, &host.buffer) {
            (Some(caching), _) => [caching.cache.unflushed(), caching.cache.budget()],
            (None, Some(buffer)) => [buffer.acknowledged(), buffer.budget()],
            (None, None) => return Ok(()),
        };
        let trims = host.trim_units(&self.core);
        if host.is_backed && unflushed + trims > budget {
            return Err(format!(
                "{unflushed} units with unflushed acknowledged writes and {trims} units of TRIM records exceed the budget \
                 of {budget} units"
            ));
        }
        Ok(())
    }

    /// Returns the units whose acknowledged writes were lost earlier, because their write-back failed or an earlier
    /// recovery could not complete them. The list of these units is in RAM, which power loss destroys. Units marked as
    /// lost in the OOB are left out, because flash keeps the mark.
    pub(super) fn lost_earlier(&mut self) -> Vec<Lpn> {
        let Self { caching, core, .. } = self;
        let lost = caching.as_mut().map(|caching| std::mem::take(&mut caching.lost));
        let is_marked = |lpn: Lpn| core.unit_of(lpn).is_some_and(|unit| core.flash().is_lost(unit));
        let lost = lost.into_iter().flatten().filter(|&(_, acknowledged)| acknowledged != 0);
        lost.map(|(lpn, _)| Lpn(lpn)).filter(|&lpn| !is_marked(lpn)).collect()
    }

    /// Returns the units to be flushed in their order: first the units of records of deallocations, because one such
    /// unit saves the most; then the dirty units. If programs under way end (`finishes`), units whose dirty sectors are
    /// all in such a program are left out.
    pub(super) fn dirty_at_power_loss(&self, finishes: bool, loss: &mut PowerLoss) -> Vec<Dirty> {
        let Some(caching) = &self.caching else { return self.buffered_at_power_loss(finishes, loss) };
        let cache = &caching.cache;
        let capacitor = &self.spec.capacitor;
        let metadata = self.metadata_units();
        let is_first = |lpn: Lpn| capacitor.flush_order == FlushOrder::Metadata && lpn.0 < metadata;
        let order = cache.flush_order(capacitor.flush_order == FlushOrder::Newest, is_first);
        (loss.dirty_pages, loss.unflushed_pages) = (order.len() as u32, cache.unflushed());
        let mut is_programming = vec![false; cache.slots_used()];
        if finishes {
            for transaction in power_loss::under_way(&self.core) {
                if let (FlashOp::Program, Owner::CacheUnit(slot)) = (transaction.kind, transaction.owner) {
                    is_programming[slot.index()] = true;
                }
            }
        }
        let needs_flush = |&slot: &CacheSlot| cache.entry(slot).dirty != 0 || !is_programming[slot.index()];
        let dirty = |slot: CacheSlot| {
            let entry = cache.entry(slot);
            Dirty {
                lpn: entry.lpn,
                place: self.core.placements().place(caching.placement_of(slot)),
                sequence: entry.sequence,
                has_unflushed: if is_programming[slot.index()] {
                    entry.acknowledged != 0
                } else {
                    entry.unflushed() != 0
                },
                is_partial: entry.valid != caching.whole && self.core.unit_of(entry.lpn).is_some(),
                is_lost: entry.lost != 0,
                is_saved: false,
            }
        };
        loss.trim_pages = self.path.host.trim_units(&self.core);
        let trims = (0..loss.trim_pages).map(|_| Dirty::trims());
        trims.chain(order.into_iter().filter(needs_flush).map(dirty)).collect()
    }

    /// Returns the units to be flushed of a drive with a write buffer, in their order: those of records of deallocations,
    /// then the units of the buffer that are not in flash. If programs under way end (`finishes`), units in such a program
    /// are left out.
    fn buffered_at_power_loss(&self, finishes: bool, loss: &mut PowerLoss) -> Vec<Dirty> {
        let Some(buffer) = &self.path.host.buffer else { return Vec::new() };
        let unflushed = buffer.unflushed(&self.core);
        (loss.dirty_pages, loss.unflushed_pages) = (unflushed.len() as u32, unflushed.len() as u32);
        let stamp = |unit| self.core.sequence_of(unit);
        let under_way = if finishes { power_loss::under_way(&self.core) } else { Vec::new() };
        let programs = under_way.iter().filter(|transaction| transaction.kind == FlashOp::Program);
        let ending: BTreeSet<u64> = programs.map(|transaction| stamp(transaction.unit)).collect();
        let mut units: Vec<(u64, Lpn)> =
            unflushed.into_iter().map(|(lpn, sequence)| (sequence, Lpn(lpn))).collect();
        units.retain(|(sequence, _)| !ending.contains(sequence));
        units.sort_by_key(|&(sequence, lpn)| match self.spec.capacitor.flush_order {
            FlushOrder::Oldest => (true, sequence),
            FlushOrder::Newest => (true, u64::MAX - sequence),
            FlushOrder::Metadata => (lpn.0 >= self.metadata_units(), sequence),
        });
        loss.trim_pages = self.path.host.trim_units(&self.core);
        let trims = (0..loss.trim_pages).map(|_| Dirty::trims());
        let place = |lpn| self.core.unit_of(lpn).map_or_else(Place::default, |unit| self.core.place_of(unit));
        let dirty = |(sequence, lpn)| Dirty {
            lpn,
            place: place(lpn),
            sequence,
            has_unflushed: true,
            is_partial: false,
            is_lost: false,
            is_saved: false,
        };
        trims.chain(units.into_iter().map(dirty)).collect()
    }

    /// The number of units at the start of the logical space that `capacitor.flush_order = "metadata"` flushes first.
    fn metadata_units(&self) -> u32 {
        (self.spec.capacitor.metadata_bytes / u64::from(self.core.geometry().unit_bytes)) as u32
    }

    /// Recovery could not complete these units of the write cache, so their data is lost: of each unit the LPN and
    /// the sequence number of its newest acknowledged write.
    pub(super) fn on_not_recovered(&mut self, lost: &[(Lpn, u64)]) {
        if let Some(caching) = &mut self.caching {
            caching.lost.extend(lost.iter().map(|&(lpn, sequence)| (lpn.0, sequence)));
        }
    }

    /// The capacitor is empty: no unit may be dirty.
    pub(super) fn forbid_dirty_units(&mut self) {
        if let Some(caching) = &mut self.caching {
            caching.cache.set_budget(0);
        }
        if let Some(buffer) = &mut self.path.host.buffer {
            buffer.set_budget(0);
        }
    }

    /// Calls `work` with the drive at the moment when power fails.
    pub(super) fn with_power_loss<R>(
        &mut self,
        work: impl FnOnce(&mut Outage<'_, P, AtPowerLoss<'_>>, &mut Sampled<'_>) -> R,
    ) -> R {
        let Self { core, schemes, losses, recorder, path, caching, power, background, .. } = self;
        let (remapped, slc) = (Vec::new(), schemes.slc_units());
        let mut outage = Outage { core: Offline::new(core), schemes: &mut AtPowerLoss { schemes }, remapped };
        let record = &mut path.host.record;
        let mut sampled = Sampled { recorder, record, caching, power, victims: &background.stats, slc };
        let result = work(&mut outage, &mut sampled);
        losses.remapped = outage.remapped;
        result
    }

    /// Calls `work` with the drive while it is rebuilt from flash.
    pub(super) fn with_return<R>(
        &mut self,
        attempt: &mut Attempt,
        work: impl FnOnce(&mut Return<'_, P, AtPowerLoss<'_>>, &Trims) -> R,
    ) -> R {
        let Self { core, schemes, path, power, .. } = self;
        let is_guarded = power.capacitor.is_some();
        let schemes = &mut AtPowerLoss { schemes };
        let core = Offline::new(core);
        work(&mut Return { core, schemes, is_guarded, attempt }, &path.host.trims)
    }

    /// A copyback has ended: changes the map, and moves the known errors to the new unit.
    #[inline(never)]
    pub(super) fn on_copied_back(&mut self, done: &Transaction) {
        let Self { core, path, schemes, .. } = self;
        let source = done.replaces.expect("a copyback has a source");
        if core.geometry().first_of_page(done.unit) == done.unit {
            let to = core.geometry().superblock_of(done.unit);
            schemes.migration.stats.on_copyback(core.superblock(to).copybacks());
        }
        if core.end_copyback(done, source) {
            let lane = core.geometry().lane_of(core.geometry().superblock_of(source));
            path.map.on_moved(core, lane, done.lpn, false);
            if let Some(cache) = &mut schemes.refreshing.error_cache {
                cache.move_unit(core.known_mut(), source, done.unit);
            }
        }
    }

    /// A unit of a superblock that is refreshed without an erase has to be written elsewhere.
    pub(super) fn write_elsewhere(&mut self, lane: LaneId, read: &Transaction) {
        self.with_background(|jobs, core, path, around| jobs.write_elsewhere(core, path, around, lane, read));
    }

    /// At least half of the grace of a due superblock is over. Programs the susceptible bits of the superblock that are
    /// in the VSM, and promotes the job that refreshes the superblock. If the lane has no job, tries to start one.
    pub(super) fn hurry(&mut self, superblock: SuperblockId) {
        let Self { core, background, schemes, .. } = self;
        let refreshing = &mut schemes.refreshing;
        let lane = core.geometry().lane_of(superblock);
        if let Some(partial) = &mut refreshing.partial
            && partial.holds_up(core, superblock)
        {
            partial.empty_vsm(core);
        }
        let is_next = core.victim(lane) == Some(superblock) || refreshing.refresh.is_next(lane, superblock);
        if background.hurry(core, lane, is_next) {
            refreshing.refresh.on_promoted();
        } else if !core.has_job(lane) && !core.is_short(lane) {
            core.wake(crate::core::Wake::Due(lane));
        }
    }
}
