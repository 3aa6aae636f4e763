//! Bytes to be sent, in chunks: what is sent leaves, without the rest being moved.

use std::collections::VecDeque;

/// Bytes that a chunk has room for; a longer message has a chunk of its own.
const CHUNK: usize = 256 << 10;
/// Memory of empty chunks in bytes that is kept.
pub(super) const KEEP: usize = 4 << 20;

/// Bytes to be sent. Takes at most twice their memory, and 4 MiB and one chunk beyond.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// The last chunk is the one that bytes are appended to. No other is empty.
    chunks: VecDeque<Vec<u8>>,
    /// Bytes of the first chunk that were sent.
    sent: usize,
    /// Bytes of all chunks but the last.
    before_last: usize,
    /// Empty chunks; the last one was used last.
    spare: Vec<Vec<u8>>,
    /// Memory of `spare` in bytes.
    spare_bytes: usize,
}

impl Output {
    /// Number of bytes that are not sent.
    pub(super) fn len(&self) -> usize {
        self.before_last + self.chunks.back().map_or(0, Vec::len) - self.sent
    }

    /// The first bytes that are not sent; empty if there are none.
    pub(super) fn first(&self) -> &[u8] {
        self.chunks.front().map_or(&[], |chunk| &chunk[self.sent..])
    }

    /// Memory in bytes.
    pub(super) fn capacity(&self) -> usize {
        self.chunks.iter().map(Vec::capacity).sum::<usize>() + self.spare_bytes
    }

    /// Makes room for a message of `len` bytes, and returns where it is to be appended.
    pub(super) fn message(&mut self, len: usize) -> &mut Vec<u8> {
        let has_room = self.chunks.back().is_some_and(|last| last.capacity() - last.len() >= len);
        if !has_room {
            let chunk = match self.spare.iter().rposition(|chunk| chunk.capacity() >= len) {
                Some(number) => {
                    let chunk = self.spare.remove(number);
                    self.spare_bytes -= chunk.capacity();
                    chunk
                }
                None => Vec::with_capacity(len.max(CHUNK)),
            };
            match self.chunks.back_mut() {
                Some(last) if last.is_empty() => {
                    let empty = std::mem::replace(last, chunk);
                    self.keep(empty);
                }
                Some(last) => {
                    self.before_last += last.len();
                    self.chunks.push_back(chunk);
                }
                None => self.chunks.push_back(chunk),
            }
        }
        self.chunks.back_mut().expect("there is a chunk with room")
    }

    /// Takes the first `len` bytes of [`Output::first`] away.
    pub(super) fn sent(&mut self, len: usize) {
        self.sent += len;
        let is_last = self.chunks.len() == 1;
        let Some(first) = self.chunks.front_mut() else { return };
        debug_assert!(self.sent <= first.len());
        if self.sent < first.len() {
            return;
        }
        self.sent = 0;
        if is_last && first.capacity() <= CHUNK {
            return first.clear();
        }
        let mut chunk = self.chunks.pop_front().expect("a chunk was sent");
        if !is_last {
            self.before_last -= chunk.len();
        }
        chunk.clear();
        self.keep(chunk);
    }

    /// Keeps an empty chunk for later, if little memory is kept so far.
    fn keep(&mut self, chunk: Vec<u8>) {
        if self.spare_bytes + chunk.capacity() <= KEEP {
            self.spare_bytes += chunk.capacity();
            self.spare.push(chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Messages come out as they went in, in any pieces, and the memory is as stated.
        #[test]
        fn bytes_leave_in_order(
            steps in proptest::collection::vec(
                (prop_oneof![1..100usize, 1..CHUNK, CHUNK - 20..2 * CHUNK], any::<u8>(), prop_oneof![Just(0), 1..3 * CHUNK]),
                1..40,
            ),
        ) {
            let (mut output, mut twin) = (Output::default(), VecDeque::new());
            for (len, byte, sends) in steps {
                let message = output.message(len);
                let room = message.capacity() - message.len();
                prop_assert!(room >= len);
                message.resize(message.len() + len, byte);
                twin.resize(twin.len() + len, byte);
                let mut left = sends;
                while left > 0 && output.len() > 0 {
                    let first = output.first();
                    prop_assert!(!first.is_empty());
                    let part = first.len().min(left);
                    prop_assert!(first[..part].iter().eq(twin.iter().take(part)));
                    twin.drain(..part);
                    output.sent(part);
                    left -= part;
                }
                prop_assert_eq!(output.len(), twin.len());
                prop_assert!(output.capacity() <= 2 * output.len() + KEEP + 4 * CHUNK, "{} bytes", output.capacity());
            }
        }
    }
}
