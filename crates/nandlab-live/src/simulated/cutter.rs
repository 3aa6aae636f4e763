//! Power cuts at chosen instants of a recorded session.
//!
//! A [`Cutter`] plays the session up to an instant. A process forks there: the child cuts the power, lets the drive recover, and
//! writes the image of the drive, while the parent goes on. Nothing else is shared: the child reads no further record, and the
//! contents are in memory.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use nandlab::base::lost::Lost;
use nandlab::drive::spec::Spec;
use nandlab_base::base::ids::Lpn;
use nandlab_base::recording::{Recording, RecordingError};

use super::{Entry, Event, Options, RecoveryCut, Simulated, Span, Speed, Time, Unserved, Version};
use crate::memory::is_zero;
use crate::player::Player;

/// Bytes of the buffer of an image: units that follow one another are written together.
const WRITE: usize = 1 << 20;

/// A record that was read and is not given yet.
#[derive(Debug)]
struct Ahead {
    at: Time,
    event: Event,
    data: Vec<u8>,
}

/// What a cut has cost.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The simulated time of the cut.
    pub at: Time,
    /// Whether power has failed once more in recovery.
    pub is_cut_again: bool,
    /// The simulated time until the drive was ready again.
    pub recovery: Span,
    /// Units about which a promise is broken, by LPN.
    pub lost: Vec<Lost>,
    /// Units that cannot be read after the recovery, by LPN.
    pub unreadable: Vec<u32>,
}

/// Plays a session, and cuts its power.
#[derive(Debug)]
pub struct Cutter {
    drive: Simulated,
    recording: Recording<BufReader<File>>,
    player: Player,
    ahead: Option<Ahead>,
    /// Records that were given.
    given: u64,
    /// Lines that were acknowledged.
    acknowledged: u64,
    /// Units that cannot be read after the cut, by LPN.
    unreadable: Vec<u32>,
}

impl Cutter {
    /// The session of a recording, before its first record. The data of the drive stays in memory, at most `memory_max` bytes
    /// of it. `watch` is called while the drive is preconditioned.
    ///
    /// # Errors
    /// When the drive cannot be built, see [`Unserved`].
    pub fn new(
        recording: Recording<BufReader<File>>,
        spec: &Spec,
        memory_max: u64,
        watch: nandlab::drive::Watch<'_>,
    ) -> Result<Self, Unserved> {
        let options = Options {
            speed: Speed::Max { gather: 1 },
            memory_max,
            cut_every: None,
            explain: None,
            checkpoint: None,
            kept: None,
        };
        let mut drive = Simulated::build(spec, &options, watch)?;
        drive.keeps_all = true;
        Ok(Self {
            drive,
            recording,
            player: Player::default(),
            ahead: None,
            given: 0,
            acknowledged: 0,
            unreadable: Vec::new(),
        })
    }

    /// Bytes of a unit.
    pub fn unit_bytes(&self) -> u64 {
        self.drive.unit_bytes
    }

    /// Lines that programs have acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Whether power is off.
    pub fn is_off(&self) -> bool {
        self.player.is_off()
    }

    /// Plays the session up to a time, with the records of that time. Returns whether a record is left.
    ///
    /// # Errors
    /// When the recording cannot be read, is not one of this drive, or has more data than there is memory.
    pub fn advance(&mut self, to: Time) -> Result<bool, String> {
        loop {
            if self.ahead.is_none() {
                let text = |error: RecordingError| format!("{error}\n  remedy: {}", error.remedy());
                let Some(entry) = self.recording.next().map_err(text)? else { break };
                let Entry { at, event, data } = entry;
                self.ahead = Some(Ahead { at, event, data: data.to_vec() });
            }
            let Some(ahead) = self.ahead.take_if(|ahead| ahead.at <= to) else { break };
            let Ahead { at, event, data } = ahead;
            let entry = Entry { at, event, data: &data };
            let given = self.drive.give_entry(&mut self.player, &entry);
            given.map_err(|why| format!("record {} of the recording: {why}", self.given))?;
            self.given += 1;
            self.acknowledged += u64::from(event == Event::Acknowledged);
            if let Some(failure) = self.drive.drive().failure() {
                return Err(failure.to_string());
            }
        }
        if !self.is_off() && to != Time::NEVER {
            self.drive.drive.advance(to);
            self.drive.collect();
        }
        Ok(self.ahead.is_some())
    }

    /// Power fails now, and returns. With `again` it fails once more this time after it has returned, if recovery takes longer.
    /// Power must be on. The session cannot be played on afterwards.
    pub fn cut(&mut self, again: Option<Span>) -> Cut {
        let drive = &mut self.drive.drive;
        let at = drive.now();
        drive.lose_power();
        let is_cut_again = again.is_some_and(|after| drive.cut_recovery(RecoveryCut::After(after)));
        if is_cut_again || again.is_none() {
            drive.restore_power();
        }
        let recovery = drive.now().saturating_sub(at);
        let lost = self.drive.data().lost.clone();
        let units = self.drive.data().units();
        self.unreadable = (0..units).filter(|&lpn| self.is_unreadable(Lpn(lpn))).collect();
        Cut { at, is_cut_again, recovery, lost, unreadable: self.unreadable.clone() }
    }

    /// Whether reads of a unit fail.
    fn is_unreadable(&mut self, lpn: Lpn) -> bool {
        let is_lost = self.drive.drive.version(lpn) == Version::Lost;
        let data = self.drive.data();
        is_lost || data.is_unreadable(lpn, data.newest(lpn))
    }

    /// Writes what the drive has now to a new file, for this user alone: zeros are holes. The units of `put_back`, which a cut
    /// has lost, have the data that was promised.
    ///
    /// # Errors
    /// When the file exists or cannot be written.
    pub fn image(&mut self, path: &Path, put_back: &[Lost]) -> io::Result<()> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let unit_bytes = self.drive.unit_bytes as usize;
        let size = self.drive.drive.geometry().logical_bytes();
        file.set_len(size)?;
        let unreadable = std::mem::take(&mut self.unreadable);
        let data = self.drive.data();
        let (mut buffer, mut begin) = (Vec::with_capacity(WRITE + unit_bytes), 0u64);
        let mut unit = vec![0; unit_bytes];
        let mut lost = put_back.iter().peekable();
        let flush = |buffer: &mut Vec<u8>, begin: u64| {
            let result = if buffer.is_empty() { Ok(()) } else { file.write_all_at(buffer, begin) };
            buffer.clear();
            result
        };
        for lpn in 0..data.units() {
            while lost.next_if(|lost| lost.lpn.0 < lpn).is_some() {}
            let version = match lost.next_if(|lost| lost.lpn.0 == lpn) {
                Some(lost) if lost.is_trim => 0,
                Some(lost) => lost.sequence,
                None if unreadable.binary_search(&lpn).is_ok() => 0,
                None => data.newest(Lpn(lpn)),
            };
            let at = u64::from(lpn) * unit_bytes as u64;
            let is_data = version > 0 && {
                data.contents.read_into(Lpn(lpn), version, 0, &mut unit).map_err(io::Error::other)?;
                !is_zero(&unit)
            };
            if !is_data || buffer.len() >= WRITE {
                flush(&mut buffer, begin)?;
            }
            if is_data {
                if buffer.is_empty() {
                    begin = at;
                }
                let len = (size - at).min(unit_bytes as u64) as usize;
                buffer.extend_from_slice(&unit[..len]);
            }
        }
        flush(&mut buffer, begin)?;
        self.unreadable = unreadable;
        Ok(())
    }
}
