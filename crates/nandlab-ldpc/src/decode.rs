//! The layered normalised min-sum decoder.
//!
//! **Algorithm.** A layer is a block row of the parity-check matrix. A layer uses the sums that the layers before it
//! have already updated, which needs about half the iterations of a flooding schedule (M. M. Mansour and N. R.
//! Shanbhag, "High-throughput LDPC decoders", IEEE Trans. VLSI Syst. 11(6), 2003). A check's message to a bit has the
//! product of the signs of its other bits, and the least of their magnitudes times a factor below 1 (J. Chen and M. P.
//! C. Fossorier, "Near optimum universal belief propagation based decoding of low-density parity check codes", IEEE
//! Trans. Commun. 50(3), 2002). Sums and messages are 8 bits wide and saturate.
//!
//! **Lanes.** No bit is in two checks of a layer, so the checks of a layer are computed side by side, each in a lane of
//! the vector registers. Loops over arrays of constant length become vector instructions of any target, without
//! `unsafe`. `gather` and `scatter` are functions of their own that are never inlined: otherwise the compiler moves the
//! scaling of two magnitudes for each check into the loop over its bits.
//!
//! **Memory.** A block column has its `lifting` sums and, behind them, a margin: a copy of the first sums. So the lanes
//! of a circulant are contiguous, whatever its shift. A layer writes a sum of the margin either there or at the start
//! of the block column; after the layer the newer one is copied over the other. Check messages are in the order in
//! which a decoding passes them.

use crate::bits::Bits;
use crate::code::Code;
use crate::error::LdpcError;

/// Lanes of the widest chunk. A layer is cut into chunks of 64, 32, 16, 8, 4, 2 and 1 lanes, the widest first.
const LANES_MAX: usize = 64;

/// The settings of a [`Decoder`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinSum {
    /// The factor of the magnitudes of check messages, in 1/256..=1; rounded to a multiple of 1/256. 1 is min-sum
    /// without normalisation.
    ///
    /// Of hard decisions of [`Description::KIB_4`](crate::Description::KIB_4) at a raw bit error rate of 0.0085, 4.9 %
    /// fail with 0.65, 4.3 % with 0.6875, 5.9 % with 0.75 and 11 % with 0.8125 (2,500 words of the LLRs 16 and -16;
    /// 1,500 for the last one).
    pub normalisation: f64,
    /// Iterations after which a word counts as failed, at least 1.
    pub iterations_max: u32,
    /// The largest magnitude of a check message, in 1..=127.
    ///
    /// A sum is one LLR and the messages of the bit's checks. It does not saturate if the largest LLR and `message_max`
    /// times the column weight are at most 127 together; then the decoder treats bits of both values alike.
    pub message_max: u8,
}

impl Default for MinSum {
    /// The factor 0.75, 30 iterations, and messages that leave LLRs up to 31 with the column weight 4.
    fn default() -> Self {
        Self { normalisation: 0.75, iterations_max: 30, message_max: 24 }
    }
}

/// The result of a decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the decided word satisfies all checks. It may be another codeword than the one that was sent.
    pub decoded: bool,
    /// Iterations computed, in `0..=iterations_max`; 0 if the hard decisions satisfied all checks.
    pub iterations: u32,
    /// Bits in which the decided word differs from the hard decisions.
    pub corrected: u32,
}

/// A layered normalised min-sum decoder of one code.
#[derive(Clone, Debug)]
pub struct Decoder {
    settings: MinSum,
    /// The normalisation factor in 1/256.
    factor: u16,
    bits: usize,
    lifting: usize,
    /// Sums in the margin of a block column: the lanes of the widest chunk of this code.
    margin: usize,
    edges: usize,
    /// The most circulants of a layer.
    weight_max: usize,
    layers: Vec<Layer>,
    /// Where the lanes of each circulant begin among the sums, chunk by chunk.
    starts: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Layer {
    /// Circulants of the layer.
    weight: usize,
    chunks: Vec<Chunk>,
    margins: Vec<Margin>,
}

/// Consecutive lanes of a layer.
#[derive(Clone, Debug)]
struct Chunk {
    /// Number of lanes, a power of 2.
    lanes: usize,
    /// Index of its first one among [`Decoder::starts`].
    starts: usize,
    /// Index of its first one among the check messages.
    messages: usize,
}

/// The margin of a block column after a layer.
#[derive(Clone, Debug)]
struct Margin {
    /// Where the block column begins among the sums.
    base: usize,
    /// Of this many first sums the newer one is in the margin. Of the others it is at the start of the block column.
    written: usize,
}

/// The memory of decodings, which each decoding uses anew.
#[derive(Clone, Debug)]
pub struct Workspace {
    bits: usize,
    lifting: usize,
    margin: usize,
    /// The LLRs of the last word, laid out like the sums.
    received: Vec<i8>,
    sums: Vec<i8>,
    /// Bytes that are negative where the decided bit is 1.
    decided: Vec<i8>,
    /// The check messages of the last iteration.
    messages: Vec<i8>,
    /// The bit messages of one chunk.
    incoming: Vec<i8>,
}

impl Workspace {
    /// The word that the last decoding decided, whether it satisfies all checks or not. Before the first one, zeros.
    pub fn word(&self) -> Bits {
        let mut word = Bits::zeros(0);
        for block in self.decided.chunks_exact(self.lifting + self.margin) {
            for lanes in block[..self.lifting].chunks(64) {
                word.append(signs(lanes), lanes.len());
            }
        }
        word
    }

    /// The LLR sums of the last decoding, bit by bit: the LLR of the bit and the messages of its checks. Before the
    /// first one, zeros.
    pub fn sums(&self) -> impl Iterator<Item = i8> + '_ {
        let blocks = self.sums.chunks_exact(self.lifting + self.margin);
        blocks.flat_map(|block| block[..self.lifting].iter().copied())
    }
}

impl Decoder {
    /// The decoder of `code` with `settings`.
    ///
    /// # Errors
    ///
    /// If a setting is out of its range.
    pub fn new(code: &Code, settings: MinSum) -> Result<Self, LdpcError> {
        let MinSum { normalisation, iterations_max, message_max } = settings;
        let factor = libm::round(normalisation * 256.0);
        if !(1.0..=256.0).contains(&factor) {
            return Err(LdpcError::new(
                format!("the normalisation factor {normalisation} is not in 1/256..=1"),
                "choose a factor from 0.5 to 1; 0.75 is usual",
            ));
        }
        if iterations_max == 0 {
            return Err(LdpcError::new(
                "no iteration is allowed",
                "choose iterations_max of at least 1; 30 is usual",
            ));
        }
        if !(1..=127).contains(&message_max) {
            return Err(LdpcError::new(
                format!("the largest message {message_max} is not in 1..=127"),
                "choose message_max so that it and the largest LLR fit in 8 bits; 24 is usual",
            ));
        }
        let lifting = code.lifting();
        let margin = 1 << lifting.min(LANES_MAX).ilog2();
        let mut starts = Vec::new();
        let mut messages = 0;
        let layer = |row: usize| {
            let circulants = code.circulants(row);
            let base = |column: u32| column as usize * (lifting + margin);
            let mut margins: Vec<Margin> = circulants
                .iter()
                .map(|circulant| Margin { base: base(circulant.column), written: 0 })
                .collect();
            let mut chunks = Vec::new();
            let mut first = 0;
            while first < lifting {
                let lanes = 1 << (lifting - first).min(LANES_MAX).ilog2();
                chunks.push(Chunk { lanes, starts: starts.len(), messages });
                for (circulant, margin) in circulants.iter().zip(&mut margins) {
                    let start = (circulant.shift as usize + first) % lifting;
                    starts.push((margin.base + start) as u32);
                    if start + lanes > lifting {
                        margin.written = start + lanes - lifting;
                    }
                }
                messages += lanes * circulants.len();
                first += lanes;
            }
            Layer { weight: circulants.len(), chunks, margins }
        };
        Ok(Self {
            settings,
            factor: factor as u16,
            bits: code.bits(),
            lifting,
            margin,
            edges: code.edges(),
            weight_max: code.row_weight_max(),
            layers: (0..code.block_rows()).map(layer).collect(),
            starts,
        })
    }

    /// The settings of the decoder.
    pub fn settings(&self) -> MinSum {
        self.settings
    }

    /// Bits of a codeword, and so LLRs of a word.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// The memory that a decoding needs.
    pub fn workspace(&self) -> Workspace {
        let padded = self.bits / self.lifting * (self.lifting + self.margin);
        Workspace {
            bits: self.bits,
            lifting: self.lifting,
            margin: self.margin,
            received: vec![0; padded],
            sums: vec![0; padded],
            decided: vec![0; padded],
            messages: vec![0; self.edges],
            incoming: vec![0; self.weight_max * self.margin],
        }
    }

    /// Decodes a word from the LLRs of its bits.
    ///
    /// The LLR of a bit is the logarithm of the probability of 0 over that of 1, in any unit: min-sum decoding does not
    /// depend on the unit, apart from the resolution. -128 counts as -127. The hard decision of a bit is 1 if its LLR
    /// is negative; if the sum of a bit is 0, its hard decision remains.
    ///
    /// # Panics
    ///
    /// If there is not one LLR for each bit, or if `work` belongs to a decoder of another code.
    pub fn decode(&self, llrs: &[i8], work: &mut Workspace) -> Outcome {
        assert_eq!(llrs.len(), self.bits, "a word of the code has {} LLRs", self.bits);
        let sizes = (work.bits, work.lifting, work.messages.len(), work.incoming.len());
        let fits = sizes == (self.bits, self.lifting, self.edges, self.weight_max * self.margin);
        assert!(fits, "the workspace belongs to the decoder of another code");
        let stride = self.lifting + self.margin;
        for (block, llrs) in work.received.chunks_exact_mut(stride).zip(llrs.chunks_exact(self.lifting)) {
            let (body, margin) = block.split_at_mut(self.lifting);
            body.iter_mut().zip(llrs).for_each(|(to, &llr)| *to = llr.max(-127));
            margin.copy_from_slice(&body[..self.margin]);
        }
        work.sums.copy_from_slice(&work.received);
        work.decided.copy_from_slice(&work.received);
        let mut iterations = 0;
        let mut decoded = self.satisfied(&work.decided);
        while !decoded && iterations < self.settings.iterations_max {
            for layer in &self.layers {
                if iterations == 0 {
                    self.update::<true>(layer, work);
                } else {
                    self.update::<false>(layer, work);
                }
            }
            iterations += 1;
            for ((decided, &sum), &received) in work.decided.iter_mut().zip(&work.sums).zip(&work.received) {
                *decided = if sum == 0 { received } else { sum };
            }
            decoded = self.satisfied(&work.decided);
        }
        let blocks = work.decided.chunks_exact(stride).zip(work.received.chunks_exact(stride));
        let corrected =
            blocks.map(|(to, from)| differences(&to[..self.lifting], &from[..self.lifting])).sum();
        Outcome { decoded, iterations, corrected }
    }

    /// Whether the decided word satisfies all checks.
    fn satisfied(&self, decided: &[i8]) -> bool {
        self.layers.iter().all(|layer| {
            layer.chunks.iter().all(|chunk| {
                let starts = &self.starts[chunk.starts..][..layer.weight];
                match chunk.lanes {
                    64 => even::<64>(starts, decided),
                    32 => even::<32>(starts, decided),
                    16 => even::<16>(starts, decided),
                    8 => even::<8>(starts, decided),
                    4 => even::<4>(starts, decided),
                    2 => even::<2>(starts, decided),
                    _ => even::<1>(starts, decided),
                }
            })
        })
    }

    /// Updates the messages of a layer and the sums of its bits. In the first iteration there are no messages yet.
    fn update<const FIRST: bool>(&self, layer: &Layer, work: &mut Workspace) {
        for chunk in &layer.chunks {
            let starts = &self.starts[chunk.starts..][..layer.weight];
            let messages = &mut work.messages[chunk.messages..][..layer.weight * chunk.lanes];
            let update = match chunk.lanes {
                64 => Self::update_chunk::<64, FIRST>,
                32 => Self::update_chunk::<32, FIRST>,
                16 => Self::update_chunk::<16, FIRST>,
                8 => Self::update_chunk::<8, FIRST>,
                4 => Self::update_chunk::<4, FIRST>,
                2 => Self::update_chunk::<2, FIRST>,
                _ => Self::update_chunk::<1, FIRST>,
            };
            update(self, starts, &mut work.sums, messages, &mut work.incoming);
        }
        for &Margin { base, written } in &layer.margins {
            let (body, margin) = work.sums[base..][..self.lifting + self.margin].split_at_mut(self.lifting);
            match (body.first_chunk_mut::<LANES_MAX>(), margin.first_chunk_mut::<LANES_MAX>()) {
                (Some(head), Some(margin)) => merge(head, margin, written),
                _ => {
                    body[..written].copy_from_slice(&margin[..written]);
                    margin[written..].copy_from_slice(&body[written..self.margin]);
                }
            }
        }
    }

    fn update_chunk<const L: usize, const FIRST: bool>(
        &self,
        starts: &[u32],
        sums: &mut [i8],
        messages: &mut [i8],
        incoming: &mut [i8],
    ) {
        let (messages, incoming) = (messages.as_chunks_mut::<L>().0, incoming.as_chunks_mut::<L>().0);
        let mut checks =
            Checks { signs: [0; L], least: [127; L], second: [127; L], to_others: [0; L], change: [0; L] };
        gather::<L, FIRST>(starts, sums, messages, incoming, &mut checks);
        for i in 0..L {
            let scale = |magnitude: u8| ((u16::from(magnitude) * self.factor + 128) >> 8) as u8;
            let capped = |magnitude: u8| scale(magnitude).min(self.settings.message_max) as i8;
            checks.to_others[i] = capped(checks.least[i]);
            checks.change[i] = checks.to_others[i] ^ capped(checks.second[i]);
        }
        scatter(starts, sums, messages, incoming, &checks);
    }
}

/// The checks of a chunk, side by side.
struct Checks<const L: usize> {
    /// Bytes whose sign is the product of the signs of the bit messages.
    signs: [i8; L],
    /// The least magnitude of a bit message.
    least: [u8; L],
    /// The second least magnitude, the same as the least if several bit messages have it.
    second: [u8; L],
    /// The magnitude of the messages to all bits but that with the least magnitude.
    to_others: [i8; L],
    /// What makes of it the magnitude of the message to the bit with the least magnitude, by exclusive or.
    change: [i8; L],
}

/// The magnitude of a message; that of -128 is 128.
#[inline(always)]
fn magnitude(message: i8) -> u8 {
    (message as u8).min((message as u8).wrapping_neg())
}

/// Computes the bit messages of a chunk, their signs and their two least magnitudes.
#[inline(never)]
fn gather<const L: usize, const FIRST: bool>(
    starts: &[u32],
    sums: &[i8],
    messages: &[[i8; L]],
    incoming: &mut [[i8; L]],
    checks: &mut Checks<L>,
) {
    let Checks { mut signs, mut least, mut second, .. } = *checks;
    for ((&start, message), incoming) in starts.iter().zip(messages).zip(incoming) {
        let sums: &[i8; L] = sums[start as usize..].first_chunk().expect("the lanes end in the margin");
        for i in 0..L {
            let value = if FIRST { sums[i] } else { sums[i].saturating_sub(message[i]) };
            incoming[i] = value;
            signs[i] ^= value;
            second[i] = second[i].min(least[i].max(magnitude(value)));
            least[i] = least[i].min(magnitude(value));
        }
    }
    (checks.signs, checks.least, checks.second) = (signs, least, second);
}

/// Computes the check messages of a chunk, and adds them to the bit messages.
#[inline(never)]
fn scatter<const L: usize>(
    starts: &[u32],
    sums: &mut [i8],
    messages: &mut [[i8; L]],
    incoming: &[[i8; L]],
    checks: &Checks<L>,
) {
    for ((&start, message), incoming) in starts.iter().zip(messages).zip(incoming) {
        let sums: &mut [i8; L] =
            sums[start as usize..].first_chunk_mut().expect("the lanes end in the margin");
        for i in 0..L {
            let value = incoming[i];
            let is_least = if magnitude(value) == checks.least[i] { -1 } else { 0 };
            let size = checks.to_others[i] ^ (checks.change[i] & is_least);
            // -1 if the message is negative. For -1, the exclusive or and the subtraction negate.
            let negative = (checks.signs[i] ^ value) >> 7;
            message[i] = (size ^ negative).wrapping_sub(negative);
            sums[i] = value.saturating_add(message[i]);
        }
    }
}

/// Whether all checks of a chunk involve an even number of bits that are decided to be 1.
fn even<const L: usize>(starts: &[u32], decided: &[i8]) -> bool {
    let mut signs = [0i8; L];
    for &start in starts {
        let decided: &[i8; L] = decided[start as usize..].first_chunk().expect("the lanes end in the margin");
        for i in 0..L {
            signs[i] ^= decided[i];
        }
    }
    signs.iter().fold(0, |any, &sign| any | sign) >= 0
}

/// -1 for as many lanes as are written in the margin, then 0, if it is read from the right place on.
const WRITTEN: [i8; 2 * LANES_MAX] = {
    let mut mask = [0; 2 * LANES_MAX];
    let mut lane = 0;
    while lane < LANES_MAX {
        mask[lane] = -1;
        lane += 1;
    }
    mask
};

/// Makes the margin and the first sums of a block column equal, where the first `written` of the margin are newer.
fn merge(head: &mut [i8; LANES_MAX], margin: &mut [i8; LANES_MAX], written: usize) {
    let mask: &[i8; LANES_MAX] =
        WRITTEN[LANES_MAX - written..].first_chunk().expect("a layer writes at most the margin");
    for i in 0..LANES_MAX {
        let newer = head[i] ^ ((head[i] ^ margin[i]) & mask[i]);
        head[i] = newer;
        margin[i] = newer;
    }
}

/// The signs of at most 64 bytes, that of the first one in bit 0.
fn signs(bytes: &[i8]) -> u64 {
    let (eights, rest) = bytes.as_chunks::<8>();
    let eights = eights.iter().rev().fold(0, |signs, eight| {
        let lowest = u64::from_le_bytes(eight.map(|byte| byte as u8)) >> 7 & 0x0101_0101_0101_0101;
        // The factor moves bit 8 i to bit 56 + i.
        signs << 8 | lowest.wrapping_mul(0x0102_0408_1020_4080) >> 56
    });
    let rest = rest.iter().rev().fold(0, |signs, &byte| signs << 1 | u64::from(byte < 0));
    if rest == 0 { eights } else { eights | rest << (bytes.len() / 8 * 8) }
}

/// Number of places at which the signs differ.
fn differences(a: &[i8], b: &[i8]) -> u32 {
    // Sums of at most 255 places fit in a byte.
    let few = |(a, b): (&[i8], &[i8])| {
        let places = a.iter().zip(b).map(|(a, b)| ((a ^ b) as u8) >> 7);
        u32::from(places.fold(0u8, |count, differs| count.wrapping_add(differs)))
    };
    a.chunks(255).zip(b.chunks(255)).map(few).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::construct::Description;
    use crate::encode::Encoder;
    use nandlab_base::base::rng::Stream;
    use proptest::prelude::*;

    fn decoder(code: &Code) -> Decoder {
        Decoder::new(code, MinSum::default()).unwrap()
    }

    #[test]
    fn one_iteration_by_hand() {
        // Check 0 involves the bits 0, 1, 2, check 1 the bits 1, 2, 3. Check 0 receives 8, 12, -4 and sends -3, -3, 6,
        // so the sums are 5, 9, 2. Check 1 receives 9, 2, 20 and sends 1.5, 6.75, 1.5, rounded to 2, 7, 2.
        let code = Code::from_rows(4, vec![vec![0, 1, 2], vec![1, 2, 3]]).unwrap();
        assert_eq!(code.lifting(), 1);
        let decoder = decoder(&code);
        let mut work = decoder.workspace();
        let outcome = decoder.decode(&[8, 12, -4, 20], &mut work);
        assert_eq!(outcome, Outcome { decoded: true, iterations: 1, corrected: 1 });
        assert_eq!(work.sums().collect::<Vec<_>>(), [5, 11, 9, 22]);
        assert_eq!(work.word(), Bits::zeros(4));
    }

    #[test]
    fn a_codeword_needs_no_iteration_and_zero_llrs_stay_decided() {
        let code = Code::from_rows(4, vec![vec![0, 1, 2], vec![1, 2, 3]]).unwrap();
        let decoder = decoder(&code);
        let mut work = decoder.workspace();
        let outcome = decoder.decode(&[-1, -1, 0, -128], &mut work);
        assert_eq!(outcome, Outcome { decoded: true, iterations: 0, corrected: 0 });
        assert_eq!(work.word(), [true, true, false, true].into_iter().collect());
        // Two erasures in one check are never resolved: all messages to them are 0.
        let code = Code::from_rows(3, vec![vec![0, 1, 2]]).unwrap();
        let decoder = Decoder::new(&code, MinSum { iterations_max: 7, ..MinSum::default() }).unwrap();
        let outcome = decoder.decode(&[-5, 0, 0], &mut decoder.workspace());
        assert_eq!(outcome, Outcome { decoded: false, iterations: 7, corrected: 0 });
    }

    #[test]
    fn a_check_of_one_bit_makes_it_0_and_a_check_of_none_says_nothing() {
        let code = Code::from_rows(2, vec![vec![0], vec![], vec![0, 1]]).unwrap();
        let decoder = decoder(&code);
        let mut work = decoder.workspace();
        let outcome = decoder.decode(&[-3, -2], &mut work);
        assert_eq!(outcome, Outcome { decoded: true, iterations: 1, corrected: 2 });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// A lifting size is a matter of speed: the same matrix with single bits as blocks gives the same messages. The
        /// order of layers is the same, and no two checks of a layer share a bit.
        #[test]
        fn circulants_decode_like_single_bits(
            rows in 2u32..5, more in 1u32..6, lifting in 24u32..150, seed: u64, rber in 0.0..0.1f64,
        ) {
            let description = Description { rows, columns: rows + more, lifting, column_weight: 2, seed };
            let code = description.build().unwrap();
            let bits = code.bits();
            let ones = |check| code.bits_of(check).map(|bit| bit as u32).collect::<Vec<_>>();
            let blocks = (0..code.checks()).map(ones);
            let circulants = |row: Vec<u32>| row.iter().map(|&column| crate::Circulant { column, shift: 0 }).collect();
            let single = Code::new(1, bits as u32, blocks.map(circulants).collect()).unwrap();
            let mut stream = Stream::new(seed, "llrs");
            let llrs: Vec<i8> = (0..bits)
                .map(|_| {
                    let size = 1 + stream.below(31) as i8;
                    if stream.unit() < rber { -size } else { size }
                })
                .collect();
            let (decoder, single) = (decoder(&code), decoder(&single));
            let (mut work, mut single_work) = (decoder.workspace(), single.workspace());
            prop_assert_eq!(decoder.decode(&llrs, &mut work), single.decode(&llrs, &mut single_work));
            prop_assert_eq!(work.word(), single_work.word());
            prop_assert!(work.sums().eq(single_work.sums()));
        }

        /// Adding a codeword to the sent word changes signs, and nothing else.
        #[test]
        fn all_codewords_are_decoded_alike(
            lifting in 24u32..150, seed: u64, rber in 0.0..0.1f64, largest in 1u64..=55,
        ) {
            let description = Description { rows: 4, columns: 10, lifting, column_weight: 3, seed };
            let code = description.build().unwrap();
            let encoder = Encoder::new(&code).unwrap();
            let mut stream = Stream::new(seed, "llrs");
            let codeword = encoder.encode(&Bits::random(encoder.data_bits(), &mut stream));
            let draw = |_| {
                let size = 1 + stream.below(largest) as i8;
                if stream.unit() < rber { -size } else { size }
            };
            let llrs: Vec<i8> = (0..code.bits()).map(draw).collect();
            let add = |at: usize| if codeword.get(at) { -llrs[at] } else { llrs[at] };
            let others: Vec<i8> = (0..code.bits()).map(add).collect();
            let decoder = decoder(&code);
            let mut work = decoder.workspace();
            let outcome = decoder.decode(&llrs, &mut work);
            let mut word = work.word();
            prop_assert_eq!(decoder.decode(&others, &mut work), outcome);
            word.add(&codeword);
            prop_assert_eq!(work.word(), word.clone());
            prop_assert_eq!(code.has(&word), outcome.decoded);
            let corrected = (0..code.bits()).filter(|&at| word.get(at) != (others[at] < 0)).count();
            prop_assert_eq!(outcome.corrected as usize, corrected);
        }

        #[test]
        fn signs_are_packed_from_the_first_byte_on(bytes in prop::collection::vec(any::<i8>(), 0..=64)) {
            let packed = signs(&bytes);
            for (at, &byte) in bytes.iter().enumerate() {
                prop_assert_eq!(packed >> at & 1 == 1, byte < 0);
            }
            prop_assert!(bytes.len() == 64 || packed >> bytes.len() == 0);
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let code = Code::from_rows(3, vec![vec![0, 1, 2]]).unwrap();
        let refused = |settings| Decoder::new(&code, settings).unwrap_err().message().to_owned();
        let usual = MinSum::default();
        for normalisation in [0.0, 1.1, f64::NAN, -1.0] {
            assert!(refused(MinSum { normalisation, ..usual }).contains("is not in 1/256..=1"));
        }
        assert!(refused(MinSum { iterations_max: 0, ..usual }).contains("no iteration"));
        assert!(refused(MinSum { message_max: 0, ..usual }).contains("is not in 1..=127"));
        assert!(refused(MinSum { message_max: 128, ..usual }).contains("is not in 1..=127"));
    }
}
