//! The handshake: the client's flags and its options ("Newstyle negotiation" in the protocol document).

use super::session::{AfterSkip, Phase, Session};
use super::wire::{self, Fields};

/// The longest data of an option in bytes that is looked at.
const OPTION_MAX: usize = 64 << 10;

/// The one metadata context.
const ALLOCATION: &[u8] = b"base:allocation";
/// The id of [`ALLOCATION`] in replies.
pub(super) const ALLOCATION_ID: u32 = 1;

/// What follows the reply to an option.
enum Next {
    Haggling,
    Transmission,
    Draining,
}

impl Session {
    /// Deals with the client's flags. Returns whether they are whole.
    pub(super) fn client_flags(&mut self) -> bool {
        let Some(flags) = self.whole(4).and_then(|bytes| Fields(bytes).u32()) else { return false };
        self.start += 4;
        self.fixed = flags & u32::from(wire::FLAG_FIXED_NEWSTYLE) != 0;
        self.no_zeroes = flags & u32::from(wire::FLAG_NO_ZEROES) != 0;
        let is_known = flags & !u32::from(wire::FLAG_FIXED_NEWSTYLE | wire::FLAG_NO_ZEROES) == 0;
        self.phase = if is_known { Phase::Haggling } else { Phase::Draining };
        true
    }

    /// Deals with an option. Returns whether it is whole.
    pub(super) fn option(&mut self) -> bool {
        let Some(header) = self.whole(wire::OPTION_HEADER) else { return false };
        let mut fields = Fields(header);
        let (Some(magic), Some(option), Some(len)) = (fields.u64(), fields.u32(), fields.u32()) else {
            return false;
        };
        let is_possible = magic == wire::OPTS_MAGIC && (self.fixed || option == wire::OPT_EXPORT_NAME);
        // An export name cannot be answered with an error.
        let is_too_long = len as usize > OPTION_MAX;
        if !is_possible || (is_too_long && option == wire::OPT_EXPORT_NAME) {
            self.phase = Phase::Draining;
            return true;
        }
        if is_too_long {
            self.start += wire::OPTION_HEADER;
            self.skip = len.into();
            self.after_skip = Some(AfterSkip::TooBig(option));
            return true;
        }
        let whole = wire::OPTION_HEADER + len as usize;
        if self.whole(whole).is_none() {
            return false;
        }
        let data = self.input[self.start + wire::OPTION_HEADER..self.start + whole].to_vec();
        self.start += whole;
        self.phase = match self.serve_option(option, &data) {
            Next::Haggling => Phase::Haggling,
            Next::Transmission => Phase::Transmission,
            Next::Draining => Phase::Draining,
        };
        true
    }

    fn serve_option(&mut self, option: u32, data: &[u8]) -> Next {
        if option == wire::OPT_ABORT {
            self.reply_to_option(option, wire::REP_ACK, &[]);
            return Next::Draining;
        }
        if option == wire::OPT_EXPORT_NAME {
            return self.export_name(data);
        }
        if self.is_shutting_down {
            self.reply_to_option(option, wire::REP_ERR_SHUTDOWN, &[]);
            return Next::Haggling;
        }
        let outcome = match option {
            wire::OPT_LIST => self.list(data),
            wire::OPT_INFO | wire::OPT_GO => self.info(option, data),
            wire::OPT_STRUCTURED_REPLY if data.is_empty() => {
                self.structured = true;
                Ok(())
            }
            wire::OPT_STRUCTURED_REPLY => Err(wire::REP_ERR_INVALID),
            wire::OPT_LIST_META_CONTEXT | wire::OPT_SET_META_CONTEXT => self.contexts(option, data),
            _ => Err(wire::REP_ERR_UNSUP),
        };
        self.reply_to_option(option, outcome.err().unwrap_or(wire::REP_ACK), &[]);
        if option == wire::OPT_GO && outcome.is_ok() { Next::Transmission } else { Next::Haggling }
    }

    fn export_name(&mut self, name: &[u8]) -> Next {
        let Some(placement) = self.export.find(name).filter(|_| !self.is_shutting_down) else {
            return Next::Draining;
        };
        self.placement = placement;
        let flags = self.export.flags(self.structured);
        let output = self.output.message(8 + 2 + 124);
        output.extend_from_slice(&self.export.features.size.to_be_bytes());
        output.extend_from_slice(&flags.to_be_bytes());
        if !self.no_zeroes {
            output.extend_from_slice(&[0; 124]);
        }
        Next::Transmission
    }

    fn list(&mut self, data: &[u8]) -> Result<(), u32> {
        if !data.is_empty() {
            return Err(wire::REP_ERR_INVALID);
        }
        let export = self.export.clone();
        for name in export.names() {
            let len = (name.len() as u32).to_be_bytes();
            let parts = [&len, name.as_bytes(), export.description.as_bytes()];
            self.reply_to_option(wire::OPT_LIST, wire::REP_SERVER, &parts);
        }
        Ok(())
    }

    fn info(&mut self, option: u32, data: &[u8]) -> Result<(), u32> {
        let (name, wanted) = info_request(data).ok_or(wire::REP_ERR_INVALID)?;
        let placement = self.export.find(name).ok_or(wire::REP_ERR_UNKNOWN)?;
        let export = self.export.clone();
        let flags = export.flags(self.structured).to_be_bytes();
        let info = |session: &mut Self, kind: u16, parts: [&[u8]; 3]| {
            let [a, b, c] = parts;
            session.reply_to_option(option, wire::REP_INFO, &[&kind.to_be_bytes(), a, b, c]);
        };
        info(self, wire::INFO_EXPORT, [&export.features.size.to_be_bytes(), &flags, &[]]);
        info(
            self,
            wire::INFO_BLOCK_SIZE,
            [
                &export.minimum.to_be_bytes(),
                &export.features.preferred.to_be_bytes(),
                &export.maximum.to_be_bytes(),
            ],
        );
        let wants = |kind: u16| wanted.chunks_exact(2).any(|bytes| bytes == kind.to_be_bytes());
        if wants(wire::INFO_NAME) {
            let name = if name.is_empty() { export.name.as_bytes() } else { name };
            info(self, wire::INFO_NAME, [name, &[], &[]]);
        }
        if wants(wire::INFO_DESCRIPTION) && !export.description.is_empty() {
            info(self, wire::INFO_DESCRIPTION, [export.description.as_bytes(), &[], &[]]);
        }
        // Clients that do not ask keep to 512 bytes.
        if export.minimum > 512 && !wants(wire::INFO_BLOCK_SIZE) {
            return Err(wire::REP_ERR_BLOCK_SIZE_REQD);
        }
        self.placement = placement;
        Ok(())
    }

    fn contexts(&mut self, option: u32, data: &[u8]) -> Result<(), u32> {
        let is_list = option == wire::OPT_LIST_META_CONTEXT;
        if !is_list {
            self.has_context = false;
        }
        if !self.structured {
            return Err(wire::REP_ERR_INVALID);
        }
        let (name, is_asked) = context_request(data, is_list).ok_or(wire::REP_ERR_INVALID)?;
        if self.export.find(name).is_none() {
            return Err(wire::REP_ERR_UNKNOWN);
        }
        if is_asked {
            self.has_context |= !is_list;
            let id = if is_list { 0 } else { ALLOCATION_ID };
            self.reply_to_option(option, wire::REP_META_CONTEXT, &[&id.to_be_bytes(), ALLOCATION]);
        }
        Ok(())
    }

    /// Appends a reply to an option, whose data is `parts`.
    pub(super) fn reply_to_option(&mut self, option: u32, kind: u32, parts: &[&[u8]]) {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let output = self.output.message(20 + len);
        output.extend_from_slice(&wire::REP_MAGIC.to_be_bytes());
        for number in [option, kind, len as u32] {
            output.extend_from_slice(&number.to_be_bytes());
        }
        parts.iter().for_each(|part| output.extend_from_slice(part));
    }
}

/// The export's name and the wanted items, two bytes each, of `OPT_INFO` and `OPT_GO`. `None` if the data is invalid.
fn info_request(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut fields = Fields(data);
    let name = fields.string()?;
    let count = fields.u16()?;
    let wanted = fields.bytes(2 * usize::from(count))?;
    (fields.0.is_empty() && name.len() <= wire::STRING_MAX).then_some((name, wanted))
}

/// The export's name, and whether `base:allocation` is asked for. `None` if the data is invalid.
fn context_request(data: &[u8], is_list: bool) -> Option<(&[u8], bool)> {
    let mut fields = Fields(data);
    let name = fields.string()?;
    let count = fields.u32()?;
    let mut is_asked = is_list && count == 0;
    // Each query takes at least 4 bytes of the data, so the loop ends with the data.
    for _ in 0..count {
        let query = fields.string()?;
        if query.len() > wire::STRING_MAX {
            return None;
        }
        is_asked |= query == ALLOCATION || (is_list && query == b"base:");
    }
    (fields.0.is_empty() && name.len() <= wire::STRING_MAX).then_some((name, is_asked))
}
