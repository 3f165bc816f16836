//! Integers and bytes exactly: the first byte of each item, then the second of each and so on, compressed by LZ4 (the
//! `lz4_flex` crate). High bytes of indices are alike, so that they all but vanish.
//!
//! The length of the compressed bytes leads them, in a word.

use lz4_flex::block;

/// Codes items of `width` bytes. Returns the words it takes; `None` where there are not as many, or the items
/// themselves would take no more.
pub fn encode(items: &[u8], width: usize, room: &mut [u64]) -> Option<usize> {
    let planes = transposed(items, width, items.len() / width);
    let compressed = block::compress(&planes);
    let words = 1 + compressed.len().div_ceil(8);
    if 8 * words >= items.len() {
        return None;
    }
    let (head, rest) = room.get_mut(..words)?.split_first_mut()?;
    *head = compressed.len() as u64;
    for (word, bytes) in rest.iter_mut().zip(compressed.chunks(8)) {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(padded);
    }
    Some(words)
}

/// The items that [`encode`] was given; `false` where the words cannot be what it made.
pub fn decode(words: &[u64], width: usize, target: &mut [u8]) -> bool {
    read(words, width, target).is_some()
}

fn read(words: &[u64], width: usize, target: &mut [u8]) -> Option<()> {
    let (&length, rest) = words.split_first()?;
    let bytes: Vec<u8> = rest.iter().flat_map(|word| word.to_le_bytes()).collect();
    let compressed = bytes.get(..usize::try_from(length).ok()?)?;
    let mut planes = vec![0; target.len()];
    let length = block::decompress_into(compressed, &mut planes).ok()?;
    if length != target.len() {
        return None;
    }
    target.copy_from_slice(&transposed(&planes, target.len() / width, width));
    Some(())
}

/// The bytes of a matrix whose rows are `row` bytes, `rows` of them, column by column.
fn transposed(bytes: &[u8], row: usize, rows: usize) -> Vec<u8> {
    let mut columns = Vec::with_capacity(bytes.len());
    for column in 0..row {
        columns.extend((0..rows).map(|index| bytes[index * row + column]));
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_comes_back() {
        for width in [1, 2, 4, 8] {
            let items: Vec<u8> = (0..5000u64)
                .flat_map(|i| (1000 + 3 * i).to_le_bytes()[..width].to_vec())
                .collect();
            let mut room = vec![0; items.len() / 8 + 8];
            let words = encode(&items, width, &mut room).unwrap();
            assert!(16 * words < items.len() || width == 1, "{width}: {words}");
            let mut back = vec![0; items.len()];
            assert!(decode(&room[..words], width, &mut back));
            assert_eq!(back, items);
            assert!(!decode(&room[..words / 2], width, &mut back));
            assert!(!decode(&room[..words], width, &mut back[..items.len() / 2]));
            assert!(!decode(&[], width, &mut back));
        }
    }

    #[test]
    fn what_does_not_get_shorter_is_refused() {
        let mut state = 1u32;
        let noise: Vec<u8> = (0..4096)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        assert_eq!(encode(&noise, 1, &mut [0; 600]), None);
        assert_eq!(encode(&[], 4, &mut []), None);
    }
}
