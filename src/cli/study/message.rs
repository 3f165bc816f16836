//! A field as the messages that carry it: one of all its values, or those of a transpose.

use crate::codec::Float;

/// A box of the field, its values x fastest.
pub struct Message<T> {
    pub sender: usize,
    pub receiver: usize,
    /// Where in the field the box begins.
    pub start: [usize; 3],
    pub extents: [usize; 3],
    pub values: Vec<T>,
    /// For each value, whether it is missing, a fill value, or beyond what is coded.
    pub fills: Vec<bool>,
}

/// The three axes of a field of any number of axes: those beyond the third are joined to it, which leaves
/// neighbours along it neighbours, and axes of one value left out.
pub fn three_axes(shape: &[usize]) -> [usize; 3] {
    let mut long = shape.iter().copied().filter(|&extent| extent != 1);
    let mut next = || long.next().unwrap_or(1);
    [next(), next(), long.product()]
}

/// The field in one message.
pub fn whole<T: Float>(extents: [usize; 3], values: &[T], fills: &[bool]) -> Vec<Message<T>> {
    vec![Message {
        sender: 0,
        receiver: 1,
        start: [0; 3],
        extents,
        values: values.to_vec(),
        fills: fills.to_vec(),
    }]
}

/// The messages of a transpose between `ranks` ranks, from pencils along x, of which each rank has a part of
/// the y axis, to pencils along y, of which it has a part of the x axis. The box that a rank keeps is
/// among them; boxes without values are not.
pub fn transpose<T: Float>(
    extents: [usize; 3],
    values: &[T],
    fills: &[bool],
    ranks: usize,
) -> Vec<Message<T>> {
    let pairs = (0..ranks).flat_map(|sender| (0..ranks).map(move |receiver| (sender, receiver)));
    pairs
        .filter_map(|(sender, receiver)| {
            let (x, width) = part(extents[0], ranks, receiver);
            let (y, height) = part(extents[1], ranks, sender);
            let (start, cut) = ([x, y, 0], [width, height, extents[2]]);
            (width * height > 0).then(|| Message {
                sender,
                receiver,
                start,
                extents: cut,
                values: copy(extents, values, start, cut),
                fills: copy(extents, fills, start, cut),
            })
        })
        .collect()
}

/// Start and length of a rank's part of an axis: as even as can be, the longer parts first.
fn part(extent: usize, ranks: usize, rank: usize) -> (usize, usize) {
    let (length, longer) = (extent / ranks, extent % ranks);
    (
        rank * length + rank.min(longer),
        length + usize::from(rank < longer),
    )
}

fn copy<T: Copy>(extents: [usize; 3], values: &[T], start: [usize; 3], cut: [usize; 3]) -> Vec<T> {
    let mut copied = Vec::with_capacity(cut.iter().product());
    for z in start[2]..start[2] + cut[2] {
        for y in start[1]..start[1] + cut[1] {
            let row = (z * extents[1] + y) * extents[0] + start[0];
            copied.extend_from_slice(&values[row..row + cut[0]]);
        }
    }
    copied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_beyond_the_third_are_joined() {
        assert_eq!(three_axes(&[128, 64, 18, 2]), [128, 64, 36]);
        assert_eq!(three_axes(&[128, 1, 64]), [128, 64, 1]);
        assert_eq!(three_axes(&[]), [1, 1, 1]);
    }

    #[test]
    fn the_messages_of_a_transpose_make_up_the_field() {
        let extents = [7, 5, 3];
        let values: Vec<f32> = (0..105).map(|i| i as f32).collect();
        let fills = vec![false; 105];
        for ranks in [2, 3, 6] {
            let messages = transpose(extents, &values, &fills, ranks);
            let mut seen: Vec<f32> = messages
                .iter()
                .flat_map(|message| message.values.iter().copied())
                .collect();
            seen.sort_by(f32::total_cmp);
            assert_eq!(seen, values);
            for message in messages {
                let [x, y, z] = message.start;
                assert_eq!(message.values[0], values[(z * 5 + y) * 7 + x]);
            }
        }
    }
}
