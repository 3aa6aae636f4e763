//! Rules over several keys: what each value allows on its own can still be an impossible drive.

mod times;

use super::build::burst_requests;
use super::kind::Val;
use super::layers::{Layers, Place};
use super::node::shorten;
use super::quantity::{Dimension, show_num, show_real, show_time};
use super::resolve::Resolved;
use super::{CopybackLimitSpec, RefreshPolicySpec};
use crate::base::geometry::logical_pages;
use crate::ftl::needs::{BlockNeeds, Demands, GAIN_BLOCKS, Need};

/// PPNs are 32 bits wide; one value is the niche and one is spare.
const PAGES_MAX: u64 = (1 << 32) - 2;

/// Checks everything; errors are added to `layers`.
pub(super) fn check(r: &Resolved, layers: &mut Layers) {
    // A rule whose keys could not be read says nothing.
    let mut check = Check { r, layers };
    check.page_size();
    check.gc_thresholds();
    check.gc_foreground();
    check.endurance();
    check.program();
    check.layers_of_a_block();
    check.workload();
    check.bursts();
    check.arrivals_end();
    check.scaled_times();
    check.transfers();
    check.power_cut();
    check.levels();
    check.errors_are_looked_at();
    check.vth();
    check.retention();
    check.cache_is_there();
    check.measured_budget();
    check.capacitor_energy();
    check.temperatures();
    check.detections();
    check.flush_concurrency();
    check.flush_order();
    check.copyback_limit();
    check.susceptible_ratio();
    check.known_errors();
    check.refresh_in_place();
    if let Some(capacity) = check.pages_fit() {
        check.reserve(&capacity);
        check.precondition(&capacity);
        check.requests_fit(&capacity);
    }
}

struct Check<'a> {
    r: &'a Resolved,
    layers: &'a mut Layers,
}

/// Page counts of the drive.
struct Capacity {
    planes: u64,
    blocks_per_plane: u64,
    pages_per_block: u64,
    pages_per_plane: u64,
    pages: u64,
    logical_pages: u64,
    page_bytes: u64,
    op: f64,
    /// What the mechanisms need of each plane follows from these.
    demands: Demands,
}

impl Capacity {
    /// What a plane needs, of a drive with so many blocks a plane and this op.
    fn needs(&self, blocks_per_plane: u64, op: f64) -> BlockNeeds {
        let pages = self.planes * blocks_per_plane * self.pages_per_block;
        BlockNeeds::new(&Demands { logical_pages: logical_pages(pages, op), ..self.demands })
    }
}

impl Check<'_> {
    fn int(&self, path: &str) -> Option<u64> {
        self.r.get(path).map(Val::int)
    }

    fn num(&self, path: &str) -> Option<f64> {
        self.r.get(path).map(Val::num)
    }

    /// Whether translation pages take room in flash.
    fn has_demand_map(&self) -> bool {
        self.r.get("ftl.map").is_some_and(|val| val.tag() == "demand")
    }

    /// An error in an item of a list, at the item's own line.
    fn error_in_list(&mut self, key: &str, index: usize, name: &str, message: String, remedy: &str) {
        // Only what was written can be wrong.
        let Some(place) = self.r.items.get(key).and_then(|item| item.place.clone()) else { return };
        let line = place.line.map(|line| self.layers.line_of_item(key, index).unwrap_or(line));
        self.layers.error(&Place { line, ..place }, &format!("{key}[{index}].{name}"), message, remedy);
    }

    /// An error at the key of the highest layer that had a say; the first of these on a tie.
    fn error(&mut self, keys: &[&str], message: String, remedy: String) {
        let mut worst: Option<(&str, &Place)> = None;
        for key in keys {
            if let Some(place) = self.r.items.get(key).and_then(|item| item.place.as_ref())
                && worst.is_none_or(|(_, other)| place.rank > other.rank)
            {
                worst = Some((key, place));
            }
        }
        let nowhere = Place { origin: "defaults".into(), line: None, rank: 0 };
        let (key, place) = worst.unwrap_or((keys[0], &nowhere));
        self.layers.error(place, key, message, remedy);
    }

    fn page_size(&mut self) {
        let Some(bytes) = self.int("drive.page_size").filter(|bytes| !bytes.is_power_of_two()) else {
            return;
        };
        let nearest = super::quantity::show_size(bytes.next_power_of_two());
        let message = format!("{bytes} bytes are not a power of two");
        self.error(&["drive.page_size"], message, format!("the next is \"{nearest}\""));
    }

    fn gc_thresholds(&mut self) -> Option<()> {
        let (foreground, background) = (self.num("gc.foreground_free")?, self.num("gc.background_free")?);
        if foreground >= background {
            let message = format!(
                "foreground GC at {} free is not below background GC at {}",
                show_num(foreground),
                show_num(background)
            );
            let remedy = "set gc.foreground_free below gc.background_free";
            self.error(&["gc.foreground_free", "gc.background_free"], message, remedy.into());
        }
        Some(())
    }

    fn gc_foreground(&mut self) -> Option<()> {
        let (foreground, pacing) = (self.r.get("gc.foreground")?.tag(), self.r.get("gc.pacing")?.tag());
        if foreground == "blocking" && pacing == "proportional" {
            let message =
                "\"blocking\" gives a cleaning its whole die, and gc.pacing = \"proportional\" a share of it";
            let remedy = "set gc.pacing = \"none\", or gc.foreground = \"interleaved\"";
            self.error(&["gc.foreground", "gc.pacing"], message.into(), remedy.into());
        }
        Some(())
    }

    fn endurance(&mut self) -> Option<()> {
        let (endurance, cycles) = (self.int("drive.endurance")?, self.int("reliability.pe_cycles")?);
        if endurance <= cycles {
            let message = format!("blocks start with {cycles} P/E cycles and retire at {endurance}");
            let remedy =
                format!("set drive.endurance above {cycles}, or reliability.pe_cycles below {endurance}");
            self.error(&["reliability.pe_cycles", "drive.endurance"], message, remedy);
        }
        Some(())
    }

    fn program(&mut self) -> Option<()> {
        let Val::Table(fields) = self.r.get("timing.program")? else { return None };
        let cell = self.r.get("drive.cell")?.tag();
        let keys = ["timing.program", "drive.cell"];
        if fields[0].0 == "lsb" {
            if cell == "slc" {
                let remedy = "write one time, or set drive.cell = \"mlc\", \"3d-mlc\" or \"3d-tlc\"";
                self.error(&keys, "a cell of \"slc\" has no MSB page".into(), remedy.into());
            }
            return Some(());
        }
        if !cell.starts_with("3d-") {
            let message = format!("program times by layer, and a cell of \"{cell}\" has no layers");
            let remedy = "write one time or { lsb, msb }, or set drive.cell = \"3d-mlc\" or \"3d-tlc\"";
            self.error(&keys, message, remedy.into());
        }
        let (fastest, slowest) = (fields[0].1.int(), fields[1].1.int());
        if fastest > slowest {
            let message = "the fastest layer is slower than the slowest".into();
            self.error(&["timing.program"], message, "exchange the two".into());
        }
        Some(())
    }

    fn layers_of_a_block(&mut self) -> Option<()> {
        let (layers, pages) = (self.int("drive.layers")?, self.int("drive.pages_per_block")?);
        if layers > pages {
            let message = format!("{layers} layers, but a block has {pages} pages");
            let remedy =
                format!("set drive.layers to at most {pages}, or drive.pages_per_block to at least {layers}");
            self.error(&["drive.layers", "drive.pages_per_block", "drive.cell"], message, remedy);
        }
        Some(())
    }

    fn workload(&mut self) -> Option<()> {
        let synthetic = self.r.get("workload.synthetic")?;
        let (reads, trims) = (synthetic.field("read_fraction").num(), synthetic.field("trim_fraction").num());
        if reads + trims > 1.0 {
            let message =
                format!("{} reads and {} TRIMs are more than all requests", show_num(reads), show_num(trims));
            let remedy = "read_fraction + trim_fraction must be at most 1";
            self.error(&["workload.synthetic"], message, remedy.into());
        }
        if self.r.get("workload.arrival").is_some_and(|val| val.tag() == "trace") {
            let message = "a synthetic workload has no arrival times of its own".into();
            let remedy = "write arrival = { queue_depth = 32 } or arrival = { iops = 20000 }";
            self.error(&["workload.arrival", "workload.synthetic"], message, remedy.into());
        }
        Some(())
    }

    fn bursts(&mut self) -> Option<()> {
        let Val::Tag("bursts", Some(bursts)) = self.r.get("workload.arrival")? else { return None };
        let requests = bursts.field("requests").int();
        if burst_requests(bursts) == 0 {
            let message = format!(
                "at_once = {:?} of {requests} requests is less than one",
                bursts.field("at_once").num()
            );
            let remedy = format!("at_once must be at least {:?}", 1.0 / requests as f64);
            self.error(&["workload.arrival"], message, remedy);
        }
        Some(())
    }

    /// A further level corrects more and senses no less: what it adds is what an incremental retry pays.
    fn levels(&mut self) -> Option<()> {
        const KEY: &str = "ecc.levels";
        let Val::List(levels) = self.r.get(KEY)? else { return None };
        for (i, pair) in (1..).zip(levels.windows(2)) {
            let (before, level) = (&pair[0], &pair[1]);
            let (low, high) = (before.field("rber_max").num(), level.field("rber_max").num());
            if high <= low {
                let (low, high) = (show_num(low), show_num(high));
                let message = format!("{high} is not above the {low} of the level before it");
                self.error_in_list(
                    KEY,
                    i,
                    "rber_max",
                    message,
                    "order the levels by rber_max, each above the last",
                );
            }
            for name in ["sense", "transfer"] {
                let (low, high) = (before.field(name).int(), level.field(name).int());
                if high < low {
                    let (low, high) = (show_time(low), show_time(high));
                    let message = format!("{high} is less than the {low} of the level before it");
                    let remedy = format!("a level adds to the one before it: write at least \"{low}\"");
                    self.error_in_list(KEY, i, name, message, &remedy);
                }
            }
        }
        Some(())
    }

    /// What bounds the dirty pages does nothing without pages.
    fn cache_is_there(&mut self) -> Option<()> {
        let (size, page) = (self.int("cache.size")?, self.int("drive.page_size")?);
        if size >= page {
            return Some(());
        }
        let remedy =
            |key: &str, without: &str| format!("set cache.size to a page or more, or {key} = {without}");
        let sync = self.r.get("cache.sync")?.tag().to_owned();
        if sync != "none" {
            let message = format!("\"{sync}\" has no effect without a write cache");
            self.error(&["cache.sync", "cache.size"], message, remedy("cache.sync", "\"none\""));
        }
        let budget = self.r.get("cache.dirty_budget")?.clone();
        if budget != Val::Num(1.0) {
            let message = match budget {
                Val::Num(share) => format!("{} has no effect without a write cache", show_num(share)),
                _ => "\"measured\" has no effect without a write cache".into(),
            };
            self.error(&["cache.dirty_budget", "cache.size"], message, remedy("cache.dirty_budget", "1.0"));
        }
        Some(())
    }

    /// A budget is measured with a capacitor, for a policy that keeps one.
    fn measured_budget(&mut self) -> Option<()> {
        if self.r.get("cache.dirty_budget")?.tag() != "measured" {
            return None;
        }
        if self.num("capacitor.capacitance") == Some(0.0) {
            let message = "\"measured\" needs a capacitor".into();
            let remedy = "set capacitor.capacitance, such as \"75mF\", or cache.dirty_budget = 1.0";
            self.error(&["cache.dirty_budget", "capacitor.capacitance"], message, remedy.into());
        }
        let has_cache = self.int("cache.size")? >= self.int("drive.page_size")?;
        if has_cache && self.r.get("cache.sync")?.tag() == "none" {
            let message =
                "\"measured\" has no effect with cache.sync = \"none\", which keeps no budget".into();
            let remedy = "set cache.sync, such as \"smart\", or cache.dirty_budget = 1.0";
            self.error(&["cache.dirty_budget", "cache.sync"], message, remedy.into());
        }
        Some(())
    }

    /// Eq. 1 must leave some energy, and a flush must cost some: a detection goes on until there is none.
    fn capacitor_energy(&mut self) -> Option<()> {
        let (full, least) = (self.num("capacitor.voltage")?, self.num("capacitor.voltage_min")?);
        if least >= full {
            let shown = |volts| shorten(&show_real(volts, Dimension::Voltage));
            let message =
                format!("the least voltage {} is not below the {} of charging", shown(least), shown(full));
            let remedy = "set capacitor.voltage_min below capacitor.voltage";
            self.error(&["capacitor.voltage_min", "capacitor.voltage"], message, remedy.into());
        }
        let keys = ["capacitor.controller_power", "capacitor.program_power"];
        if self.num("capacitor.capacitance")? > 0.0 && keys.iter().all(|key| self.num(key) == Some(0.0)) {
            let message = "with no power in the controller and none in programs the capacitor never empties";
            let remedy = "set one of them above 0, such as capacitor.controller_power = \"1W\"";
            self.error(&keys, message.into(), remedy.into());
        }
        Some(())
    }

    fn temperatures(&mut self) -> Option<()> {
        const KEY: &str = "capacitor.temperature";
        let Val::List(profile) = self.r.get(KEY)? else { return None };
        let first = profile.first()?.field("from").int();
        if first > 0 {
            let message = format!("begins {} after the start", show_time(first));
            self.error_in_list(KEY, 0, "from", message, "the first is from \"0d\"");
        }
        for (i, pair) in (1..).zip(profile.windows(2)) {
            let (before, from) = (pair[0].field("from").int(), pair[1].field("from").int());
            if from <= before {
                let (before, from) = (show_time(before), show_time(from));
                let message = format!("{from} is not after the {before} before it");
                self.error_in_list(
                    KEY,
                    i,
                    "from",
                    message,
                    "order the temperatures by time, each after the last",
                );
            }
        }
        Some(())
    }

    fn detections(&mut self) -> Option<()> {
        let every = self.int("capacitor.detect_every")?;
        let shown = show_time(every);
        let (grace, recharge) = (self.int("capacitor.detect_grace")?, self.int("capacitor.recharge")?);
        if grace > every {
            let message = format!(
                "a detection waits {} for an idle time and the next is due after {shown}",
                show_time(grace)
            );
            let remedy = format!(
                "set capacitor.detect_grace to at most \"{shown}\", or capacitor.detect_every higher"
            );
            self.error(&["capacitor.detect_grace", "capacitor.detect_every"], message, remedy);
        }
        if recharge >= every {
            let message =
                format!("charging takes {} and the next detection is due after {shown}", show_time(recharge));
            let remedy =
                format!("set capacitor.recharge below \"{shown}\", or capacitor.detect_every higher");
            self.error(&["capacitor.recharge", "capacitor.detect_every"], message, remedy);
        }
        Some(())
    }

    fn flush_concurrency(&mut self) -> Option<()> {
        const KEYS: [&str; 4] = [
            "capacitor.flush_concurrency",
            "drive.channels",
            "drive.chips_per_channel",
            "drive.dies_per_chip",
        ];
        let programs = self.int(KEYS[0])?;
        let dies = KEYS[1..].iter().try_fold(1, |dies, key| Some(dies * self.int(key)?))?;
        if programs > dies {
            let message = format!("{programs} programs at a time, but the drive has {dies} dies");
            let remedy = format!("set capacitor.flush_concurrency to at most {dies}, or 0 for every die");
            self.error(&KEYS, message, remedy);
        }
        Some(())
    }

    fn flush_order(&mut self) -> Option<()> {
        let order = self.r.get("capacitor.flush_order")?.tag();
        if order == "metadata" && self.int("capacitor.metadata")? == 0 {
            let message = "\"metadata\" has no effect with capacitor.metadata = \"0B\"".into();
            let remedy = "set capacitor.metadata, such as \"64MiB\", or capacitor.flush_order = \"oldest\"";
            self.error(&["capacitor.flush_order", "capacitor.metadata"], message, remedy.into());
        }
        Some(())
    }

    /// What has no effect is refused: read levels without levels, bit errors that nobody looks at.
    fn errors_are_looked_at(&mut self) -> Option<()> {
        let errors = self.r.get("reliability.rber")?.tag();
        for key in ["reliability.read_disturb", "reliability.copyback_error"] {
            if errors == "none" && self.num(key).is_some_and(|rber| rber > 0.0) {
                let message = "has no effect with reliability.rber = \"none\"".into();
                let remedy = format!("set reliability.rber, or {key} = 0.0");
                self.error(&[key, "reliability.rber"], message, remedy);
            }
        }
        if self.r.get("ecc.levels")?.tag() != "none" {
            return Some(());
        }
        for (key, without) in [("ecc.start", "first"), ("ecc.retry", "full")] {
            let Some(val) = self.r.get(key).filter(|val| val.tag() != without) else { continue };
            let message = format!("\"{}\" has no effect with ecc.levels = \"none\"", val.tag());
            let remedy = format!("set ecc.levels, such as \"laldpc\", or {key} = \"{without}\"");
            self.error(&[key, "ecc.levels"], message, remedy);
        }
        if errors != "none" {
            let message = "nothing looks at bit errors with ecc.levels = \"none\"".into();
            let remedy = "set ecc.levels, such as \"laldpc\", or reliability.rber = \"none\"";
            self.error(&["reliability.rber", "ecc.levels"], message, remedy.into());
        }
        Some(())
    }

    fn vth(&mut self) -> Option<()> {
        let (errors, cell) = (self.r.get("reliability.rber")?.tag(), self.r.get("drive.cell")?.tag());
        if errors == "vth" && !["mlc", "3d-mlc"].contains(&cell) {
            let message = format!("\"vth\" describes cells of two bits, and drive.cell is \"{cell}\"");
            let remedy = "set drive.cell = \"mlc\" or \"3d-mlc\", or reliability.rber to a table or \"none\"";
            self.error(&["reliability.rber", "drive.cell"], message, remedy.into());
        }
        Some(())
    }

    fn retention(&mut self) -> Option<()> {
        let Val::List(ages) = self.r.get("reliability.retention")? else { return None };
        let sum: f64 = ages.iter().map(|age| age.field("share").num()).sum();
        if (sum - 1.0).abs() > 1e-9 {
            let message = format!("the shares add up to {}", (sum * 1e12).round() / 1e12);
            self.error(&["reliability.retention"], message, "shares that add up to 1".into());
        }
        Some(())
    }

    /// `None` also when the pages do not fit: what follows would only repeat it.
    fn pages_fit(&mut self) -> Option<Capacity> {
        const COUNTS: [&str; 6] = [
            "drive.blocks_per_plane",
            "drive.pages_per_block",
            "drive.channels",
            "drive.chips_per_channel",
            "drive.dies_per_chip",
            "drive.planes_per_die",
        ];
        let mut counts = [0; 6];
        for (count, path) in counts.iter_mut().zip(COUNTS) {
            *count = self.int(path)?;
        }
        let [blocks_per_plane, pages_per_block, outer @ ..] = counts;
        let (op, page_bytes) = (self.num("drive.op")?, self.int("drive.page_size")?);
        // The ranges of the six keys keep this product below 2^61.
        let pages: u64 = counts.iter().product();
        if pages > PAGES_MAX {
            let message =
                format!("{pages} pages in all, more than the {PAGES_MAX} a 32-bit page number holds");
            self.error(&COUNTS, message, "fewer or larger pages".into());
            return None;
        }
        let planes: u64 = outer.iter().product();
        Some(Capacity {
            planes,
            blocks_per_plane,
            pages_per_block,
            pages_per_plane: blocks_per_plane * pages_per_block,
            pages,
            logical_pages: logical_pages(pages, op),
            page_bytes,
            op,
            demands: Demands {
                planes,
                pages_per_block,
                page_bytes,
                logical_pages: logical_pages(pages, op),
                levels_wear: self.r.get("ftl.wear_levelling").is_some_and(|val| val.tag() == "static"),
                has_demand_map: self.has_demand_map(),
                copybacks_max: self.copybacks_max(),
                has_combinations: self.refreshes_partially(),
                flushed_pages: self.flushed_pages(page_bytes),
            },
        })
    }

    /// Pages that a flush by the capacitor can have to write.
    fn flushed_pages(&self, page_bytes: u64) -> Option<u64> {
        self.num("capacitor.capacitance").filter(|farad| *farad > 0.0)?;
        Some(self.int("cache.size")? / page_bytes)
    }

    fn reserve(&mut self, c: &Capacity) {
        let needs = c.needs(c.blocks_per_plane, c.op);
        if needs.fit(c.blocks_per_plane) && c.logical_pages > 0 {
            return;
        }
        let spare = c.pages_per_plane.saturating_sub(needs.host_pages);
        let map_blocks = needs.mapping.valid_pages as f64 / c.pages_per_block as f64;
        let mut parts: Vec<String> = needs.all().iter().filter_map(need_text).collect();
        parts.push(format!("{GAIN_BLOCKS} of garbage for GC to gain from"));
        if map_blocks > 0.0 {
            parts.push(format!("{map_blocks:.1} of translation pages"));
        }
        let message = format!(
            "a plane has {:.1} blocks beyond its logical pages and needs {:.1}: {}",
            spare as f64 / c.pages_per_block as f64,
            needs.blocks() as f64 + map_blocks,
            parts.join(", ")
        );
        // With room for them, logical and translation pages are no more than the physical ones, of which every one has
        // its 32-bit number.
        let enough_blocks = least(c.blocks_per_plane, 1 << 20, |blocks| c.needs(blocks, c.op).fit(blocks));
        // In steps of 0.001, which is how people write it.
        let of = |op: u64| c.needs(c.blocks_per_plane, op as f64 / 1e3);
        let enough_op = least(0, 100_000, |op| of(op).fit(c.blocks_per_plane))
            .filter(|&op| of(op).host_pages > 0 && of(op).blocks() < c.blocks_per_plane);
        let remedy = match (enough_op, enough_blocks) {
            (Some(op), Some(blocks)) => {
                format!("drive.op = {} or drive.blocks_per_plane = {blocks} would do", op as f64 / 1e3)
            }
            (None, Some(blocks)) => format!("drive.blocks_per_plane = {blocks} would do"),
            (Some(op), None) => format!("drive.op = {} would do", op as f64 / 1e3),
            (None, None) => "more blocks a plane and a larger op".into(),
        };
        let mut keys = vec!["drive.op", "drive.blocks_per_plane", "drive.pages_per_block"];
        if enough_op.is_none() {
            keys.swap(0, 1);
        }
        let asks = |need: &Need| need.open + need.free > 0;
        if asks(&needs.mapping) {
            keys.push("ftl.map");
        }
        if asks(&needs.flush) {
            keys.extend(["capacitor.capacitance", "cache.size"]);
        }
        if asks(&needs.copyback) {
            keys.push("migration.policy");
        }
        if asks(&needs.combination) {
            keys.push("refresh.policy");
        }
        self.error(&keys, message, remedy);
    }

    fn refreshes_partially(&self) -> bool {
        self.r.get("refresh.policy").is_some_and(|val| val.tag() == "partial")
    }

    /// Susceptible bits by the model need the model.
    fn susceptible_ratio(&mut self) -> Option<()> {
        const KEY: &str = "refresh.policy";
        let policy = self.r.get(KEY).filter(|val| val.tag() == "partial")?;
        let is_vth = super::build::refresh_policy(policy).partial()?.susceptible_ratio.is_none();
        if is_vth && self.r.get("reliability.rber")?.tag() != "vth" {
            let message = "susceptible_ratio = \"vth\" asks for the voltage model, and there is none";
            let remedy = "set reliability.rber = \"vth\", or a number such as 0.0788";
            self.error(&[KEY, "reliability.rber"], message.into(), remedy.into());
        }
        Some(())
    }

    /// Without errors there are no positions to keep.
    fn known_errors(&mut self) -> Option<()> {
        const KEY: &str = "refresh.policy";
        super::build::refresh_policy(self.r.get(KEY)?).ec_cache()?;
        if self.r.get("reliability.rber")?.tag() == "none" {
            let message = "\"ec-cache\" has no effect with reliability.rber = \"none\"";
            let remedy = "set reliability.rber, such as \"vth\", or refresh.policy = \"fcr\"";
            self.error(&[KEY, "reliability.rber"], message.into(), remedy.into());
        }
        Some(())
    }

    /// A page that is reprogrammed in place is nowhere else: its program must not be torn.
    fn refresh_in_place(&mut self) -> Option<()> {
        const KEY: &str = "refresh.policy";
        let RefreshPolicySpec::Fcr(fcr) = super::build::refresh_policy(self.r.get(KEY)?) else { return None };
        if fcr.reprogram_error > 0.0 && !fcr.in_place {
            let message = "reprogram_error has no effect without in_place = true";
            let remedy = "set in_place = true, or reprogram_error = 0.0";
            self.error(&[KEY], message.into(), remedy.into());
        }
        if fcr.reprogram_error > 0.0 && self.r.get("reliability.rber")?.tag() == "none" {
            let message = "reprogram_error has no effect with reliability.rber = \"none\"";
            let remedy = "set reliability.rber, such as \"vth\", or reprogram_error = 0.0";
            self.error(&[KEY, "reliability.rber"], message.into(), remedy.into());
        }
        let is_cut = self.int("power.cut_after_requests").is_some_and(|requests| requests > 0)
            || self.r.get("power.cut_at").is_some();
        if fcr.in_place && is_cut && self.num("capacitor.capacitance")? == 0.0 {
            let message =
                "in_place = true loses data when power fails amid a program, and there is no capacitor";
            let remedy = "set capacitor.capacitance, such as \"75mF\", or in_place = false";
            self.error(&[KEY, "capacitor.capacitance"], message.into(), remedy.into());
        }
        Some(())
    }

    fn copyback_limit(&mut self) -> Option<()> {
        const KEY: &str = "migration.policy";
        match super::build::migration(self.r.get(KEY)?).limit {
            CopybackLimitSpec::Table(lines) => {
                if let Some(pair) = lines.windows(2).find(|pair| pair[1].0 <= pair[0].0) {
                    let message = format!(
                        "limit: pe = {} is not above the {} of the line before it",
                        pair[1].0, pair[0].0
                    );
                    self.error(&[KEY], message, "order the lines by pe, each above the last".into());
                }
            }
            // Without levels any page counts as readable.
            CopybackLimitSpec::Measured { .. } if self.r.get("ecc.levels")?.tag() == "none" => {
                let message =
                    "the limit \"measured\" asks for the read level of a page, and there are no read levels";
                let remedy = "set ecc.levels, such as \"laldpc\", or another limit";
                self.error(&[KEY, "ecc.levels"], message.into(), remedy.into());
            }
            CopybackLimitSpec::Fixed(_) | CopybackLimitSpec::Measured { .. } => {}
        }
        Some(())
    }

    /// The most copybacks in a row of any page.
    fn copybacks_max(&self) -> u64 {
        self.r.get("migration.policy").map_or(0, |val| super::build::migration(val).copybacks_max().into())
    }

    fn precondition(&mut self, c: &Capacity) -> Option<()> {
        let (used, valid) = (self.num("precondition.used")?, self.num("precondition.valid")?);
        let keys = ["precondition.used", "precondition.valid", "precondition.method", "drive.op"];
        let valid_pages = used * valid * c.pages as f64;
        if valid_pages > c.logical_pages as f64 {
            let message = format!(
                "{used} used of which {valid} is valid are {:.4} of the physical pages, more than the logical {:.4}",
                used * valid,
                c.logical_pages as f64 / c.pages as f64
            );
            let most = (c.logical_pages as f64 / c.pages as f64 / used * 1e3).floor() / 1e3;
            self.error(&keys, message, format!("with used = {used}, valid = {most} is the most"));
        }
        let needs = c.needs(c.blocks_per_plane, c.op);
        // The host opens one block more, and translation pages are written after the fill.
        let map_blocks = needs.mapping.open + needs.mapping.valid_pages.div_ceil(c.pages_per_block);
        let reserve = needs.free() + 1 + map_blocks;
        let most = c.blocks_per_plane.saturating_sub(reserve) as f64 / c.blocks_per_plane as f64;
        if used > most {
            let message = format!(
                "{used} used leaves a plane less than the {reserve} blocks that it needs at the start{}",
                if needs.mapping.valid_pages > 0 { ", translation pages included" } else { "" }
            );
            let remedy = format!("used = {} is the most", (most * 1e3).floor() / 1e3);
            let mut keys =
                vec!["precondition.used", "precondition.method", "drive.blocks_per_plane", "ftl.map"];
            if needs.flush.free > 0 {
                keys.extend(["capacitor.capacitance", "cache.size"]);
            }
            self.error(&keys, message, remedy);
        }
        Some(())
    }

    /// A synthetic request must fit into the span it is aimed at.
    fn requests_fit(&mut self, c: &Capacity) -> Option<()> {
        let synthetic = self.r.get("workload.synthetic")?;
        let Val::Sizes(sizes) = synthetic.field("size") else { return None };
        let largest = sizes.last()?.0;
        let span = (synthetic.field("span").num() * (c.logical_pages * c.page_bytes) as f64) as u64;
        if largest.max(synthetic.field("align").int()) > span {
            let message = format!("requests of up to {largest} bytes do not fit into a span of {span} bytes");
            self.error(&["workload.synthetic"], message, "smaller requests, or a larger span".into());
        }
        Some(())
    }
}

/// What a mechanism needs, as the error says it; `None` of one that needs nothing.
fn need_text(need: &Need) -> Option<String> {
    let blocks = [(need.open, "open"), (need.free, "free")];
    let blocks: Vec<String> = blocks
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    (!blocks.is_empty()).then(|| format!("{} for {}", blocks.join(" and "), need.what))
}

/// The least number in a range from which on `enough` holds.
fn least(low: u64, high: u64, enough: impl Fn(u64) -> bool) -> Option<u64> {
    if !enough(high) {
        return None;
    }
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low + (high - low) / 2;
        if enough(middle) { high = middle } else { low = middle + 1 }
    }
    Some(low)
}
