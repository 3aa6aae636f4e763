//! Checkpoints: the exact state of a drive in the middle of its work, so that another process goes on with it.
//!
//! A checkpoint has everything that changes while a drive works: flash, map and OOB; sequence numbers, ages, wear; queues,
//! clocks, operations under way and the requests outstanding; the dirty units of the write cache and the write buffer;
//! the capacitor; random streams; counters, histograms, the series. A restored drive goes on as the saved one does:
//! every later result is the same to the byte. What the settings determine is not saved. So a checkpoint is restored by
//! the version of nandlab that wrote it, into a drive that was built from the same spec.
//!
//! A probe saves what it has to remember ([`Probe::save`]): the oracle does, the timeline begins anew. A policy from
//! outside is not saved, so a drive with such a policy has no checkpoints. A drive whose power is off, or which has failed,
//! has none either.
//!
//! `core/sections.rs` has the format of the file. The first section, `checkpoint`, has the version and a hash of the
//! spec. The next sections are those of [`each_part!`], each the [`State`] of a part of the drive. The last one,
//! `observers`, is that of the probe.
//!
//! A saved drive (`drive/snapshot.rs`) is something else: it has only what preconditioning makes, and drives with other
//! settings may load it.

use super::mechanisms::Schemes;
use super::together::Path;
use super::{Drive, SaveError, SnapshotError};
use crate::base::state::{State, StateError, StateReader, StateWriter, Value, load_part, save_part};
use crate::core::{SectionKind, SectionReader, SectionWriter};
use crate::probe::Probe;
use crate::spec::hash;
use std::io::{Read, Write};

const CHECKPOINT: SectionKind = section("checkpoint");
const OBSERVERS: SectionKind = section("observers");

/// The version of nandlab, which has to be the same, is the version of every section.
const fn section(name: &'static str) -> SectionKind {
    SectionKind { name, version: 1 }
}

/// Does the same work with each part of a drive: `each_part!(drive, State::save_state, save_part, |name, part, state|
/// work)`, where `state` is the function that saves or restores this part. A field of the drive that is not in the list
/// does not compile.
macro_rules! each_part {
    ($drive:ident, $state:path, $part:path, |$name:ident, $field:ident, $with:ident| $work:expr) => {{
        let Drive {
            core,
            path: Path { host, map, writes },
            caching,
            power,
            losses,
            schemes: Schemes { migration, refreshing, reclaim, slc },
            reads,
            recorder,
            pace,
            background,
            failure: _,
            ranges: _,
            spec: _,
            policies: _,
        } = $drive;
        each_part!(@one "core", core, $state, $name, $field, $with, $work);
        each_part!(@one "reads", reads, $state, $name, $field, $with, $work);
        each_part!(@one "map", map, $part, $name, $field, $with, $work);
        each_part!(@one "write cache", caching, $part, $name, $field, $with, $work);
        each_part!(@one "host", host, $state, $name, $field, $with, $work);
        each_part!(@one "waiting writes", writes, $state, $name, $field, $with, $work);
        each_part!(@one "background", background, $state, $name, $field, $with, $work);
        each_part!(@one "capacitor", power, $state, $name, $field, $with, $work);
        each_part!(@one "migration", migration, $state, $name, $field, $with, $work);
        each_part!(@one "refresh", refreshing, $state, $name, $field, $with, $work);
        each_part!(@one "reclaim", reclaim, $state, $name, $field, $with, $work);
        each_part!(@one "slc", slc, $part, $name, $field, $with, $work);
        each_part!(@one "power losses", losses, $state, $name, $field, $with, $work);
        each_part!(@one "series", recorder, $state, $name, $field, $with, $work);
        each_part!(@one "fast-forward", pace, $state, $name, $field, $with, $work);
    }};
    (@one $of:literal, $part:ident, $state:path, $name:ident, $field:ident, $with:ident, $work:expr) => {{
        let ($name, $field, $with) = (section($of), $part, $state);
        $work
    }};
}

/// The number of the parts.
const PARTS: usize = 15;

impl<P: Probe> Drive<P> {
    /// What a drive and the drive that restores its checkpoint must have in common: the version of nandlab, a hash of
    /// the spec, and whether the probe needs sequence numbers.
    fn identity(&self) -> (String, String, bool) {
        let spec = hash(&format!("{:?}", self.spec));
        (env!("CARGO_PKG_VERSION").to_owned(), spec, self.core.probe.needs_sequences())
    }

    /// Checks that the drive can have a checkpoint now: it works, has power, and has no policy from outside. Requests
    /// may be outstanding and operations under way.
    ///
    /// # Errors
    /// If not.
    pub fn may_checkpoint(&self) -> Result<(), SaveError> {
        if let Some((slot, name)) = self.policies.names().next() {
            return Err(SaveError::Outside { slot, name: name.to_owned() });
        }
        if self.failure.is_some() {
            return Err(SaveError::Failed);
        }
        if self.core.state().is_off {
            return Err(SaveError::Off);
        }
        Ok(())
    }

    /// Writes a checkpoint: the exact state of the drive, with what is under way.
    ///
    /// # Errors
    /// When writing fails, and for a drive that has no checkpoints ([`Drive::may_checkpoint`]).
    pub fn checkpoint(&self, out: impl Write) -> Result<(), SaveError> {
        self.may_checkpoint()?;
        assert!(!self.core.has_wakes(), "a drive reacts to all changes before a call returns");
        let mut out = SectionWriter::new(out, PARTS + 2)?;
        write(&mut out, CHECKPOINT, &|out| self.identity().save(out))?;
        each_part!(self, State::save_state, save_part, |kind, part, save| {
            write(&mut out, kind, &|out| save(part, out))?;
        });
        write(&mut out, OBSERVERS, &|out| self.core.probe.save(out))?;
        Ok(out.finish()?)
    }

    /// Restores a checkpoint in this fresh drive, which must have been built from the same spec.
    ///
    /// # Errors
    /// When reading fails, and if the file is damaged, is no checkpoint, or is of another spec or version. After an error
    /// the drive must not be used.
    ///
    /// # Panics
    /// On a drive that has been written, or that has a policy from outside.
    pub fn restore(&mut self, input: impl Read) -> Result<(), SnapshotError> {
        assert!(self.is_fresh(), "only a fresh drive can be restored");
        assert!(
            self.policies.names().next().is_none(),
            "a drive with a policy from outside has no checkpoints"
        );
        let mut input = SectionReader::new(input)?;
        let mut identity = (String::new(), String::new(), false);
        read(&mut input, CHECKPOINT, |from| {
            identity = Value::load(from)?;
            Ok(())
        })?;
        let (version, spec, needs_sequences) = self.identity();
        if identity.0 != version {
            return Err(SnapshotError::OtherVersion { theirs: identity.0, mine: version });
        }
        if identity.1 != spec {
            return Err(SnapshotError::OtherSpec);
        }
        if identity.2 != needs_sequences {
            return Err(SnapshotError::OtherProbe);
        }
        each_part!(self, State::load_state, load_part, |kind, part, load| {
            read(&mut input, kind, |from| load(part, from))?;
        });
        read(&mut input, OBSERVERS, |from| self.core.probe.load(from))?;
        input.finish()
    }
}

/// Writes a section, whose length is counted first.
fn write(
    out: &mut SectionWriter<impl Write>,
    kind: SectionKind,
    save: &dyn Fn(&mut StateWriter<'_>),
) -> Result<(), SaveError> {
    let mut counting = StateWriter::counting();
    save(&mut counting);
    out.begin(kind, counting.finish()?)?;
    let mut sink = |bytes: &[u8]| out.put_bytes(bytes);
    let mut writer = StateWriter::to(&mut sink);
    save(&mut writer);
    writer.finish()?;
    Ok(())
}

/// Reads a section.
fn read(
    input: &mut SectionReader<impl Read>,
    kind: SectionKind,
    load: impl FnOnce(&mut StateReader<'_>) -> Result<(), StateError>,
) -> Result<(), SnapshotError> {
    input.begin(kind)?;
    let left = input.left();
    let mut source = |bytes: &mut [u8]| input.get_bytes(bytes);
    let mut reader = StateReader::of(&mut source, left);
    load(&mut reader)?;
    Ok(reader.end()?)
}
