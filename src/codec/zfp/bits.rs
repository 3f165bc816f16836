//! Bit strings in 64-bit words, the lowest bit of the first word first.

use super::ahead::{CACHE_LINE, prefetch_far};

/// Appends bit strings to the words of a stream. Past the end it writes nothing and remembers that.
pub struct BitWriter<'a> {
    words: &'a mut [u64],
    /// The word being filled.
    at: usize,
    /// Its bits so far, `fill` of them.
    pending: u64,
    fill: u32,
    overflow: bool,
}

impl<'a> BitWriter<'a> {
    pub fn new(words: &'a mut [u64]) -> Self {
        BitWriter {
            words,
            at: 0,
            pending: 0,
            fill: 0,
            overflow: false,
        }
    }

    /// Appends the first `bits` bits of `source`, which must hold that many.
    #[inline(always)]
    pub fn append(&mut self, source: &[u64], bits: usize) {
        let (whole, rest) = (bits / 64, (bits % 64) as u32);
        let fill = self.fill;
        let full = (fill as usize + bits) / 64;
        let Some(target) = self.words.get_mut(self.at..self.at + full) else {
            self.overflow = true;
            return;
        };
        if fill == 0 && rest == 0 {
            copy_words(&source[..whole], target);
            self.at += full;
            return;
        }
        let mut pending = self.pending;
        for (target, &word) in target.iter_mut().zip(&source[..whole]) {
            *target = pending | word << fill;
            pending = word >> 1 >> (63 - fill);
        }
        if rest > 0 {
            let last = source[whole] & low_bits(rest);
            pending |= last << fill;
            if full > whole {
                target[whole] = pending;
                pending = last >> 1 >> (63 - fill);
            }
        }
        self.pending = pending;
        self.at += full;
        self.fill = (fill + rest) % 64;
    }

    /// The next `count` words, if the words so far are whole and there are so many; see [`Self::skip`].
    #[inline(always)]
    pub fn next_words(&mut self, count: usize) -> Option<&mut [u64]> {
        if self.fill > 0 || self.overflow {
            return None;
        }
        let (words, rest) = self.words.get_mut(self.at..)?.split_at_mut_checked(count)?;
        // Those after them will be asked for next.
        for line in rest[..count.min(rest.len())].chunks(CACHE_LINE / size_of::<u64>()) {
            prefetch_far(line.as_ptr());
        }
        Some(words)
    }

    /// Goes on after `count` words, which [`Self::next_words`] gave and which have been written.
    #[inline(always)]
    pub fn skip(&mut self, count: usize) {
        self.at += count;
    }

    /// Writes the last, partial word, its other bits zero. Returns the number of words written, or
    /// `None` when they did not all fit.
    pub fn finish(self) -> Option<usize> {
        if self.overflow {
            return None;
        }
        if self.fill > 0 {
            *self.words.get_mut(self.at)? = self.pending;
        }
        Some(self.at + usize::from(self.fill > 0))
    }

    /// Whether something did not fit.
    pub fn is_full(&self) -> bool {
        self.overflow
    }

    /// Bits appended so far.
    pub fn position(&self) -> usize {
        self.at * 64 + self.fill as usize
    }
}

/// In eights, because calls to copy so few words would take longer.
#[inline(always)]
fn copy_words(source: &[u64], target: &mut [u64]) {
    let (eights, words) = source.as_chunks::<8>();
    let (target_eights, target_words) = target.as_chunks_mut::<8>();
    for (target, eight) in target_eights.iter_mut().zip(eights) {
        *target = *eight;
    }
    for (target, word) in target_words.iter_mut().zip(words) {
        *target = *word;
    }
}

/// A word whose low `count` bits are set; `count` is at most 64.
#[inline(always)]
pub fn low_bits(count: u32) -> u64 {
    u64::MAX.unbounded_shr(64 - count)
}

/// Bits that [`peek`] is sure to give.
pub const PEEKED: u32 = 57;

/// The bytes of the words of a stream, in order.
#[inline(always)]
pub fn bytes_of(words: &[u64]) -> &[u8] {
    const {
        assert!(
            cfg!(target_endian = "little"),
            "streams are words of little-endian bytes"
        )
    };
    // SAFETY: the same memory; any eight bytes of a word are bytes.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// At least [`PEEKED`] bits from bit `position` on; zeros past the end.
#[inline(always)]
pub fn peek(bytes: &[u8], position: usize) -> u64 {
    let at = position / 8;
    let word = match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(&eight) => u64::from_le_bytes(eight),
        None => last_bytes(bytes, at),
    };
    word >> (position % 8)
}

#[cold]
#[inline(never)]
fn last_bytes(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    for (byte, &there) in eight.iter_mut().zip(bytes.get(at..).unwrap_or(&[])) {
        *byte = there;
    }
    u64::from_le_bytes(eight)
}

/// All 64 bits from bit `position` on; zeros past the end.
#[inline(always)]
pub fn peek_word(bytes: &[u8], position: usize) -> u64 {
    // (Two words shifted into one would be an instruction that is slow on some machines.)
    peek(bytes, position) & 0xffff_ffff | peek(bytes, position + 32) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appended_bits_are_read_back() {
        let source = [
            0x0123_4567_89ab_cdef,
            0xfedc_ba98_7654_3210,
            0x5555_5555_3333_3333,
        ];
        let lengths = [1, 63, 64, 65, 7, 128, 130, 3, 0, 61, 192];
        let mut words = vec![0; 16];
        let mut writer = BitWriter::new(&mut words);
        for &bits in &lengths {
            writer.append(&source, bits);
        }
        let total: usize = lengths.iter().sum();
        assert_eq!(writer.position(), total);
        assert_eq!(writer.finish(), Some(total.div_ceil(64)));
        let mut at = 0;
        for &bits in &lengths {
            for bit in 0..bits {
                let expected = source[bit / 64] >> (bit % 64) & 1;
                let read = peek_word(bytes_of(&words), at + bit);
                assert_eq!(read & 1, expected, "bit {bit} of {bits}");
            }
            at += bits;
        }
        let words = [u64::MAX; 2];
        assert_eq!(peek_word(bytes_of(&words), 128), 0);
        assert_eq!(peek_word(bytes_of(&words), 1 << 40), 0);
        assert_eq!(peek_word(bytes_of(&words), 120), 0xff);
        assert_eq!(peek_word(bytes_of(&words), 67), u64::MAX >> 3);
    }

    #[test]
    fn a_full_stream_is_reported_and_not_overrun() {
        let mut words = vec![0; 2];
        let mut writer = BitWriter::new(&mut words);
        writer.append(&[u64::MAX, u64::MAX], 120);
        writer.append(&[u64::MAX], 9);
        assert_eq!(writer.finish(), None);
        assert_eq!(words[0], u64::MAX);

        let mut words = vec![0; 2];
        let mut writer = BitWriter::new(&mut words);
        writer.append(&[u64::MAX, u64::MAX], 120);
        writer.append(&[u64::MAX], 8);
        assert_eq!(writer.finish(), Some(2));
        assert_eq!(words, [u64::MAX; 2]);
    }
}
