//! The write streams of a drive. In each lane a stream fills an open superblock of its own.
//!
//! A mechanism declares its streams as data ([`StreamSpec`]), in a function of its `spec.rs` or `mod.rs`;
//! `drive/spec/streams.rs` calls these functions. Allocation, the needs of space, recovery and saved drives follow from
//! the declarations.

use super::COPYBACKS_MAX;
use super::needs::Need;
use super::placement::HANDLES_MAX;
use crate::base::geometry::Lpn;
use crate::base::state::value;
use crate::flash::copybacks_of;
use std::ops::Range;

/// The number of a stream of a drive, from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(u8);

impl StreamId {
    /// The stream of host writes with placement handle 0, to which detection and preconditioning write too, and the
    /// emergency flush for the data of this handle.
    /// Every drive declares it first.
    pub const HOST: Self = Self(0);
    /// The stream of the host's units that GC moves off-chip, except those of persistently isolated handles. Every drive
    /// declares it second.
    pub const GC: Self = Self(1);

    /// The number as an array index.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// The largest number of streams of a drive.
pub const STREAMS_MAX: usize = 32;

/// The numbers of a saved drive ([`StreamSpec::number`]) that are not those of placement handles: host and GC 0 and 1,
/// static wear levelling 2, translation pages 3, combination pages 4, copybacks from 5 on. The handles from 1 on follow,
/// and then GC of each persistently isolated handle.
pub const FIXED_NUMBERS: u8 = 5 + COPYBACKS_MAX;

/// The number in a saved drive of the stream of the host in SLC mode, and its mark.
const SLC: u8 = 63;
/// The mark of the host's superblocks with handle 0, on a drive with several handles; those of the other handles follow,
/// and then those of GC of each persistently isolated handle.
const HANDLE_MARKS: u8 = COPYBACKS_MAX + 1;

/// The largest number of classes beside class 0 into which a policy of `ftl.streams` divides the writes of handle 0.
pub const CLASSES_MAX: u8 = 7;

/// The numbers in a saved drive of the streams of classes, and then that of GC for class 1.
const CLASS_NUMBERS: u8 = FIXED_NUMBERS + 2 * HANDLES_MAX as u8;

/// The marks of the superblocks of classes, and then that of GC for class 1.
const CLASS_MARKS: u8 = HANDLE_MARKS + 2 * HANDLES_MAX as u8;

/// The number of a handle that is within [`HANDLES_MAX`].
fn number_of(handle: u16) -> u8 {
    assert!(handle < HANDLES_MAX, "a drive has at most {HANDLES_MAX} placement handles");
    handle as u8
}

/// Who writes to a stream. The class of the programs follows from it (`Core::class_of`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The host, and the write cache for the host, with this placement handle.
    Host {
        /// The handle.
        handle: u16,
    },
    /// The background job of the lane.
    Job,
    /// The demand map.
    Map,
    /// A scheme, for data of its own. Its programs have the class of refresh.
    Internal,
    /// The host, and the write cache for the host, with any placement. The superblocks are in SLC mode.
    Slc,
}

/// The LPNs of the units of a stream whose data is not the host's. They follow those of the host, stream by stream in
/// the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnLpns {
    /// None: the stream has data of the host.
    None,
    /// One for each so many logical units of the drive. All may be valid at a time, so they count in the need.
    PerLogical(u32),
    /// One for each so many units of the drive. The mechanism uses them only while there is room, so they do not count
    /// in the need.
    PerUnit(u32),
}

impl OwnLpns {
    /// The number of LPNs in a drive with `logical` logical units and `units` units.
    pub fn count(self, logical: u32, units: u32) -> u32 {
        match self {
            Self::None => 0,
            Self::PerLogical(each) => logical.div_ceil(each),
            Self::PerUnit(each) => units / each,
        }
    }

    /// The most valid units that count in the need, in a drive with `logical` logical units.
    pub(super) fn valid_units(self, logical: u64) -> u64 {
        match self {
            Self::PerLogical(each) => logical.div_ceil(each.into()),
            Self::None | Self::PerUnit(_) => 0,
        }
    }
}

/// A stream as its mechanism declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSpec {
    /// The number of the stream in a saved drive, the same whatever other streams a drive has. The streams of a drive
    /// have their [`StreamId`] in the order of these numbers.
    pub number: u8,
    /// Who writes to the stream.
    pub writer: Writer,
    /// The name of the mechanism, and the superblocks that the stream adds to its need.
    pub need: Need,
    /// The LPNs of the units.
    pub lpns: OwnLpns,
    /// The mark that the OOB of the stream's superblocks has: how recovery knows the open superblock of the stream. Up
    /// to [`COPYBACKS_MAX`] it is the number of consecutive copybacks that every unit has gone through. Streams with
    /// the same mark cannot be told apart; recovery continues GC's stream first, then the others in their order.
    /// Superblocks with LPNs of a stream's own ([`StreamSpec::lpns`]) need no mark.
    pub mark: u8,
    /// Whether the stream opens the free superblock with the most P/E cycles.
    pub opens_most_worn: bool,
    /// The persistently isolated handle to whose data GC moves only data of this handle; `None`: the stream is not of
    /// such a handle alone.
    pub gc_of: Option<u16>,
    /// Of a stream of the host: the class of `ftl.streams` into which the drive has told the writes. Of a stream of GC:
    /// the class of the data that GC moves to it, out of the superblocks of this class. 0: none.
    pub class: u8,
}

impl StreamSpec {
    /// A stream without a mark and without LPNs of its own.
    pub fn new(number: u8, writer: Writer, need: Need) -> Self {
        Self {
            number,
            writer,
            need,
            lpns: OwnLpns::None,
            mark: 0,
            opens_most_worn: false,
            gc_of: None,
            class: 0,
        }
    }

    /// The stream of host writes with a placement handle. Handles above 0 need an open superblock each. `is_marked`:
    /// superblocks of the handle can be told from others, as on drives with several handles they have to.
    ///
    /// # Panics
    /// If a drive cannot have that many handles.
    pub fn host(handle: u16, is_marked: bool) -> Self {
        let need = Need::new("host", "the placement handles", u64::from(handle > 0), 0);
        let (number, mark) =
            (number_of(handle), if is_marked { HANDLE_MARKS + number_of(handle) } else { 0 });
        let in_saved_drive = if handle == 0 { 0 } else { FIXED_NUMBERS + number - 1 };
        Self::new(in_saved_drive, Writer::Host { handle }, need).marked(mark)
    }

    /// The stream to which GC moves the data of a persistently isolated handle: an open superblock.
    ///
    /// # Panics
    /// If a drive cannot have that many handles.
    pub fn gc_of(handle: u16) -> Self {
        let (handles, number) = (HANDLES_MAX as u8, number_of(handle));
        let stream = Self::new(FIXED_NUMBERS + handles + number, Writer::Job, Need::new("gc", "GC", 1, 0));
        Self { gc_of: Some(handle), ..stream.marked(HANDLE_MARKS + handles + number) }
    }

    /// The stream of host writes with placement handle 0 that a policy of `ftl.streams` tells to a class above 0: an open
    /// superblock.
    ///
    /// # Panics
    /// If a drive cannot have that many classes.
    pub fn class(class: u8) -> Self {
        assert!(
            (1..=CLASSES_MAX).contains(&class),
            "a drive has at most {CLASSES_MAX} classes beside class 0"
        );
        let need = Need::new("streams", "ftl.streams", 1, 0);
        let stream = Self::new(CLASS_NUMBERS + class - 1, Writer::Host { handle: 0 }, need);
        Self { class, ..stream.marked(CLASS_MARKS + class - 1) }
    }

    /// The stream to which GC moves the data of class 1: an open superblock.
    pub fn gc_of_class() -> Self {
        let need = Need::new("streams", "ftl.streams", 1, 0);
        let stream = Self::new(CLASS_NUMBERS + CLASSES_MAX, Writer::Job, need);
        Self { class: 1, ..stream.marked(CLASS_MARKS + CLASSES_MAX) }
    }

    /// The stream of the host's units that GC moves off-chip: an open superblock, unless GC shares that of the host,
    /// and a free superblock for the job under way.
    pub fn gc(shares_first_superblock: bool) -> Self {
        Self::new(1, Writer::Job, Need::new("gc", "GC", u64::from(!shares_first_superblock), 1))
    }

    /// The stream of the host in SLC mode, to which the other streams of the host leave `free` superblocks. Its open
    /// superblock has units left only while no write of the host waits, and is folded when it has none. A translation
    /// page may wait meanwhile (`has_map`): then the open superblock is a need, unless it is one of the `free` ones.
    ///
    /// A write that waits finds at least one valid unit in each of the `free` superblocks, because a full superblock
    /// without valid units is erased. The need does not count on these units: after an emergency flush a lane may have
    /// as many valid units outside its static part.
    pub fn slc(free: u64, has_map: bool) -> Self {
        let need = Need::new("slc", "the SLC cache", u64::from(has_map && free == 0), free);
        Self::new(SLC, Writer::Slc, need).marked(SLC)
    }

    /// The same stream with a mark.
    #[must_use]
    pub fn marked(self, mark: u8) -> Self {
        Self { mark, ..self }
    }

    /// The same stream with LPNs of its own.
    #[must_use]
    pub fn with_lpns(self, lpns: OwnLpns) -> Self {
        Self { lpns, ..self }
    }

    /// Consecutive copybacks that the units of the stream have gone through.
    pub fn copybacks(&self) -> u8 {
        copybacks_of(self.mark)
    }
}

/// The streams of a drive.
#[derive(Clone, Debug)]
pub struct Streams {
    specs: Box<[StreamSpec]>,
    /// By stream: its own LPNs.
    lpns: Box<[Range<u32>]>,
    /// The streams of the host: by placement handle, then by class of `ftl.streams` from class 1 on, and then that of the
    /// host in SLC mode, if there is one.
    hosts: Box<[StreamId]>,
    /// The number of placement handles.
    handles: u16,
    /// The number of streams of the host without that in SLC mode.
    natives: usize,
    /// The stream of the host in SLC mode.
    slc: Option<StreamId>,
    /// By stream, one bit: whether it is a stream of the host.
    host_bits: u32,
    /// By stream, one bit: whether a scheme writes to it, for data of its own.
    internal_bits: u32,
    /// The stream of the demand map.
    map: Option<StreamId>,
    /// The stream that jobs of static wear levelling fill with units of the host: the one that opens the most worn
    /// superblocks, or that of GC.
    wear: StreamId,
    /// By mark, the stream to which jobs move units of superblocks with this mark; empty unless GC keeps the data of some
    /// handle by itself.
    gc_by_mark: Box<[StreamId]>,
    /// By mark, the handles whose data a superblock of the host may have, one bit each.
    handles_by_mark: Box<[u16]>,
}

impl Streams {
    /// The declared streams. `logical` and `units` are the numbers of logical and of all units of the drive.
    ///
    /// # Panics
    /// If two streams have the same number, the first two are not those of the host and of GC, or there are more than
    /// [`STREAMS_MAX`].
    pub fn new(declared: &[StreamSpec], logical: u32, units: u32) -> Self {
        let mut specs = declared.to_vec();
        specs.sort_by_key(|stream| stream.number);
        assert!(
            specs.windows(2).all(|pair| pair[0].number < pair[1].number),
            "two streams have the same number"
        );
        assert!(specs.len() <= STREAMS_MAX, "a drive has at most {STREAMS_MAX} streams");
        let first_two = [specs[0].writer, specs[1].writer];
        assert_eq!(first_two, [Writer::Host { handle: 0 }, Writer::Job], "the first streams are host and GC");
        let ids = || (0..).map(StreamId);
        let mut next = logical;
        let lpns = specs.iter().map(|stream| {
            let first = next;
            next += stream.lpns.count(logical, units);
            first..next
        });
        let lpns = lpns.collect();
        let host = |spec: &StreamSpec| match spec.writer {
            Writer::Host { handle } => Some((spec.class, handle)),
            _ => None,
        };
        let hosts: Box<[StreamId]> =
            ids().zip(&specs).filter(|(_, spec)| host(spec).is_some()).map(|(id, _)| id).collect();
        let of_handles = hosts.iter().filter(|id| specs[id.index()].class == 0).count() as u16;
        let expected = (0..of_handles).map(|handle| (0, handle)).chain((1..).map(|class| (class, 0)));
        let is_dense =
            hosts.iter().zip(expected).all(|(id, number)| host(&specs[id.index()]) == Some(number));
        assert!(is_dense, "placement handles, and classes, are declared in their order");
        let mut gc_by_mark = Vec::new();
        let mut own_gc_bits = 0;
        for (id, spec) in ids().zip(&specs) {
            if spec.writer == Writer::Job && spec.class > 0 {
                // Data that GC has moved once is moved with all other data from then on.
                gc_by_mark.resize(1 + usize::from(u8::MAX), StreamId::GC);
                let of_class = hosts[usize::from(of_handles) + usize::from(spec.class) - 1];
                gc_by_mark[usize::from(specs[of_class.index()].mark)] = id;
            }
            let Some(handle) = spec.gc_of else { continue };
            gc_by_mark.resize(1 + usize::from(u8::MAX), StreamId::GC);
            own_gc_bits |= 1 << handle;
            for mark in [spec.mark, specs[hosts[usize::from(handle)].index()].mark] {
                gc_by_mark[usize::from(mark)] = id;
            }
        }
        // GC keeps the data of handle 0 by itself, whatever class it had.
        if own_gc_bits & 1 != 0 {
            let own = gc_by_mark[usize::from(specs[0].mark)];
            for spec in specs.iter().filter(|spec| spec.class > 0) {
                let to = &mut gc_by_mark[usize::from(spec.mark)];
                *to = if *to == StreamId::GC { own } else { *to };
            }
        }
        // Jobs mix the data of all handles that have no GC of their own.
        let mixed = !own_gc_bits & (u16::MAX >> (u16::BITS - u32::from(of_handles)));
        let mut handles_by_mark: Box<[u16]> = vec![mixed; 1 + usize::from(u8::MAX)].into();
        for spec in specs.iter().rev().filter(|spec| spec.mark > 0) {
            let of_class = (spec.class > 0).then_some(0);
            let handle = host(spec).map(|(_, handle)| handle).or(spec.gc_of).or(of_class);
            handles_by_mark[usize::from(spec.mark)] = handle.map_or(mixed, |handle| 1 << handle);
        }
        let find =
            |is: fn(&StreamSpec) -> bool| ids().zip(&specs).find(|(_, spec)| is(spec)).map(|(id, _)| id);
        let (natives, slc) = (hosts.len(), find(|spec| spec.writer == Writer::Slc));
        let hosts: Box<[StreamId]> = hosts.iter().copied().chain(slc).collect();
        let internal = ids().zip(&specs).filter(|(_, spec)| spec.writer == Writer::Internal);
        Self {
            internal_bits: internal.map(|(id, _)| 1 << id.0).sum(),
            host_bits: hosts.iter().map(|id| 1 << id.0).sum(),
            hosts,
            natives,
            slc,
            handles: of_handles,
            map: find(|spec| spec.writer == Writer::Map),
            wear: find(|spec| spec.opens_most_worn).unwrap_or(StreamId::GC),
            gc_by_mark: gc_by_mark.into(),
            handles_by_mark,
            lpns,
            specs: specs.into(),
        }
    }

    /// The numbers of all streams, in their order.
    #[inline(always)]
    pub fn ids(&self) -> impl Iterator<Item = StreamId> + use<> {
        (0..self.specs.len() as u8).map(StreamId)
    }

    /// The number of streams.
    pub fn count(&self) -> usize {
        self.specs.len()
    }

    /// The declaration of a stream.
    #[inline(always)]
    pub fn spec(&self, stream: StreamId) -> &StreamSpec {
        &self.specs[stream.index()]
    }

    /// The first stream of the mechanism `name`; `None` if the drive has no such stream.
    pub fn find(&self, name: &str) -> Option<StreamId> {
        self.ids().find(|&id| self.spec(id).need.name == name)
    }

    /// The first stream of the mechanism `name`.
    ///
    /// # Panics
    /// If the drive has no such stream.
    pub fn named(&self, name: &str) -> StreamId {
        self.find(name).unwrap_or_else(|| panic!("the drive has no stream `{name}`"))
    }

    /// The stream with the number `number` in saved drives.
    pub fn numbered(&self, number: usize) -> Option<StreamId> {
        self.ids().find(|&id| usize::from(self.spec(id).number) == number)
    }

    /// The streams, the first one preferred, that may have filled a superblock with this mark. `owner`: the stream to
    /// which an LPN in the superblock belongs, if it is not an LPN of the host.
    pub fn candidates(&self, owner: Option<StreamId>, mark: u8) -> impl Iterator<Item = StreamId> {
        let others = self.ids().filter(|&id| id != StreamId::GC);
        std::iter::once(StreamId::GC).chain(others).filter(move |&id| match owner {
            Some(owner) => id == owner,
            None => self.spec(id).lpns == OwnLpns::None && self.spec(id).mark == mark,
        })
    }

    /// The stream with a mark above 0.
    pub fn marked(&self, mark: u8) -> Option<StreamId> {
        debug_assert!(mark > 0, "streams without a mark cannot be told apart");
        self.ids().find(|&id| self.spec(id).mark == mark)
    }

    /// The mark here of a superblock that has a mark in a saved drive; `None` if no drive has such a mark. The drive that was
    /// saved may have had classes that this one does not have: their data is that of handle 0.
    pub fn loaded_mark(&self, mark: u8) -> Option<u8> {
        let is_known = mark <= COPYBACKS_MAX || self.marked(mark).is_some();
        let is_of_class = (CLASS_MARKS..=CLASS_MARKS + CLASSES_MAX).contains(&mark);
        let of_handle_0 = is_of_class.then(|| self.spec(StreamId::HOST).mark);
        is_known.then_some(mark).or(of_handle_0)
    }

    /// The stream of host writes with a placement handle; `None` if none is declared for it.
    #[inline]
    pub fn host(&self, handle: u16) -> Option<StreamId> {
        (handle < self.handles).then(|| self.of_handle(handle))
    }

    /// The stream of host writes with a placement handle that the drive has.
    #[inline(always)]
    pub fn of_handle(&self, handle: u16) -> StreamId {
        self.hosts[usize::from(handle)]
    }

    /// The stream of host writes with handle 0 that are of a class.
    ///
    /// # Panics
    /// If the drive does not have the class.
    #[inline]
    pub fn of_class(&self, class: u8) -> StreamId {
        match class {
            0 => StreamId::HOST,
            class => self.hosts[usize::from(self.handles) + usize::from(class) - 1],
        }
    }

    /// The handle whose data the host writes to a stream; `None` if it is not a stream of the host.
    #[inline]
    pub fn handle_of(&self, stream: StreamId) -> Option<u16> {
        match self.spec(stream).writer {
            Writer::Host { handle } => Some(handle),
            _ => None,
        }
    }

    /// The streams of the host without that in SLC mode: by placement handle, and then by class of `ftl.streams` from class 1
    /// on.
    pub fn natives(&self) -> &[StreamId] {
        &self.hosts[..self.natives]
    }

    /// The streams of the host: the native ones ([`Streams::natives`]), and that in SLC mode as the last, if there is one.
    pub fn hosts(&self) -> &[StreamId] {
        &self.hosts
    }

    /// The mark of superblocks in SLC mode.
    pub fn slc_mark(&self) -> u8 {
        SLC
    }

    /// The stream of the host in SLC mode; `None` without one.
    #[inline(always)]
    pub fn slc(&self) -> Option<StreamId> {
        self.slc
    }

    /// The sum of a number over the streams of the host. Most drives have one.
    #[inline(always)]
    pub fn sum_of_hosts(&self, number: impl Fn(StreamId) -> u32) -> u32 {
        let mut sum = number(StreamId::HOST);
        if self.hosts.len() > 1 {
            sum += self.hosts[1..].iter().map(|&stream| number(stream)).sum::<u32>();
        }
        sum
    }

    /// Whether a stream is one of the host's.
    #[inline(always)]
    pub fn is_host(&self, stream: StreamId) -> bool {
        stream == StreamId::HOST || self.host_bits >> stream.0 & 1 != 0
    }

    /// Whether a scheme writes to a stream, for data of its own ([`Writer::Internal`]).
    #[inline(always)]
    pub fn is_internal(&self, stream: StreamId) -> bool {
        self.internal_bits >> stream.0 & 1 != 0
    }

    /// Whether only the background job of the lane writes to the stream. A stream of [`Writer::Internal`] counts as
    /// such: partial refresh also writes to its stream without a job, but not while a program may be torn.
    pub fn is_of_jobs(&self, stream: StreamId) -> bool {
        matches!(self.spec(stream).writer, Writer::Job | Writer::Internal)
    }

    /// The stream of the demand map; `None` without one.
    #[inline(always)]
    pub fn map(&self) -> Option<StreamId> {
        self.map
    }

    /// The stream to which a job moves units of the host off-chip from a superblock with the mark that `mark` returns.
    #[inline(always)]
    pub fn of_jobs(&self, mark: impl FnOnce() -> u8, is_wear: bool) -> StreamId {
        if !self.gc_by_mark.is_empty() {
            let stream = self.gc_by_mark[usize::from(mark())];
            if stream != StreamId::GC {
                return stream;
            }
        }
        if is_wear { self.wear } else { StreamId::GC }
    }

    /// Whether jobs move units of the host to a stream off-chip, except those of static wear levelling.
    #[inline]
    pub fn is_gc(&self, stream: StreamId) -> bool {
        let spec = self.spec(stream);
        stream == StreamId::GC || spec.gc_of.is_some() || spec.writer == Writer::Job && spec.class > 0
    }

    /// The handles whose data a superblock of the host with this mark may have, one bit each.
    #[inline]
    pub fn handles_in(&self, mark: u8) -> u16 {
        self.handles_by_mark[usize::from(mark)]
    }

    /// The LPNs that only `stream` has.
    pub fn lpns(&self, stream: StreamId) -> Range<u32> {
        self.lpns[stream.index()].clone()
    }

    /// The stream that has `lpn` as an LPN of its own; `None` for an LPN of the host and for no LPN.
    pub fn owner_of(&self, lpn: Lpn) -> Option<StreamId> {
        self.ids().find(|id| self.lpns[id.index()].contains(&lpn.0))
    }
}

value! { StreamId { ..tuple index } }

#[cfg(test)]
mod tests {
    use super::*;

    /// The declarations in another order than that of the numbers: copybacks, combination pages, translation pages.
    fn streams() -> Streams {
        let job = |copybacks: u8| {
            StreamSpec::new(4 + copybacks, Writer::Job, Need::new("copyback", "", 1, 0)).marked(copybacks)
        };
        let own = |number, writer, name, lpns| {
            StreamSpec::new(number, writer, Need::new(name, "", 1, 1)).with_lpns(lpns)
        };
        let declared = [
            StreamSpec::host(0, true),
            StreamSpec::gc(false),
            job(1),
            job(2),
            own(4, Writer::Internal, "combination", OwnLpns::PerUnit(4)),
            own(3, Writer::Map, "mapping", OwnLpns::PerLogical(8)),
            StreamSpec::host(1, true),
        ];
        Streams::new(&declared, 20, 40)
    }

    #[test]
    fn streams_are_numbered_in_the_order_of_their_numbers_in_saved_drives() {
        let streams = streams();
        let numbers: Vec<u8> = streams.ids().map(|stream| streams.spec(stream).number).collect();
        assert_eq!(numbers, [0, 1, 3, 4, 5, 6, FIXED_NUMBERS]);
        assert_eq!((streams.named("host"), streams.named("gc")), (StreamId::HOST, StreamId::GC));
        assert_eq!(streams.numbered(2), None);
        assert_eq!(streams.hosts(), [StreamId::HOST, StreamId(6)]);
        assert_eq!(
            [0, 1, 2].map(|placement| streams.host(placement)),
            [Some(StreamId(0)), Some(StreamId(6)), None]
        );
        let hosts: Vec<bool> = streams.ids().map(|stream| streams.is_host(stream)).collect();
        assert_eq!(hosts, [true, false, false, false, false, false, true]);
    }

    /// 20 logical units need three translation pages of eight entries, with the LPNs 20 to 22; the ten LPNs of
    /// combination pages, a quarter of 40 units, follow.
    #[test]
    fn the_lpns_of_the_streams_follow_those_of_the_host() {
        let streams = streams();
        assert_eq!(streams.lpns(streams.named("mapping")), 20..23);
        assert_eq!(streams.lpns(streams.named("combination")), 23..33);
        let owner = |lpn| streams.owner_of(Lpn(lpn)).map(|stream| streams.spec(stream).need.name);
        let owners = [19, 20, 22, 23, 32, 33, u32::MAX].map(owner);
        let (map, combination) = (Some("mapping"), Some("combination"));
        assert_eq!(owners, [None, map, map, combination, combination, None, None]);
    }

    #[test]
    fn a_superblock_is_of_the_streams_with_its_mark_or_of_the_owner_of_its_lpns() {
        let streams = streams();
        let of = |owner, mark| streams.candidates(owner, mark).collect::<Vec<_>>();
        assert_eq!(of(None, 0), [StreamId::GC]);
        assert_eq!(of(None, 2), [streams.marked(2).unwrap()]);
        assert_eq!(of(None, HANDLE_MARKS), [StreamId::HOST]);
        assert_eq!(of(None, HANDLE_MARKS + 1), [streams.host(1).unwrap()]);
        assert_eq!(of(None, 3), []);
        let map = streams.named("mapping");
        assert_eq!(of(Some(map), 0), [map]);
    }

    #[test]
    fn without_a_mark_of_the_host_gc_is_preferred() {
        let streams = Streams::new(&[StreamSpec::host(0, false), StreamSpec::gc(false)], 20, 40);
        assert!(streams.candidates(None, 0).eq([StreamId::GC, StreamId::HOST]));
    }

    /// Handle 1 is persistently isolated: jobs move its units to a stream of its own, whatever they are moved for.
    #[test]
    fn units_of_a_persistently_isolated_handle_are_moved_to_a_stream_of_its_own() {
        let mut declared: Vec<_> = (0..3).map(|handle| StreamSpec::host(handle, true)).collect();
        declared.extend([StreamSpec::gc(false), StreamSpec::gc_of(1)]);
        let wear = StreamSpec::new(2, Writer::Job, Need::new("wear", "", 1, 0));
        declared.push(StreamSpec { opens_most_worn: true, ..wear });
        let streams = Streams::new(&declared, 20, 40);
        let wear = streams.named("wear");
        let own = streams.ids().find(|&id| streams.spec(id).gc_of == Some(1)).unwrap();
        let marks = [0, 1, 2].map(|handle| streams.spec(streams.host(handle).unwrap()).mark);
        for (mark, to, handles) in [
            (0, [StreamId::GC, wear], 0b101),
            (marks[0], [StreamId::GC, wear], 0b001),
            (marks[1], [own, own], 0b010),
            (marks[2], [StreamId::GC, wear], 0b100),
            (streams.spec(own).mark, [own, own], 0b010),
        ] {
            assert_eq!([false, true].map(|is_wear| streams.of_jobs(|| mark, is_wear)), to, "mark {mark}");
            assert_eq!(streams.handles_in(mark), handles, "mark {mark}");
        }
        assert!(streams.is_gc(own) && streams.is_gc(StreamId::GC) && !streams.is_gc(wear));
    }
}
