//! Columns of texts, narrowed so that lines fit on a terminal.

/// The widths to which columns beside the main one are narrowed, one after the other.
const OTHERS: [usize; 3] = [20, 10, 5];
/// The width that the main one keeps until others are at their least, and its own least.
const MAIN: [usize; 2] = [20, 8];

/// Narrows the columns at `texts` of a line of `room` characters, with two blanks between columns: long ones first, then the
/// one at `main`, which says most and keeps two fifths of the line as long as others can give way. Numbers keep their widths.
pub(crate) fn fit(widths: &mut [usize], texts: &[usize], main: usize, room: usize) {
    let others = || texts.iter().copied().filter(|at| *at != main);
    let of_main = [(room * 2 / 5).max(MAIN[0]), MAIN[0], MAIN[1]];
    for (of_others, of_main) in OTHERS.into_iter().zip(of_main) {
        narrow(widths, others(), of_others, room);
        narrow(widths, [main], of_main, room);
    }
}

/// Narrows columns, the widest first, as long as they are wider than `least` and the line does not fit.
fn narrow(
    widths: &mut [usize],
    columns: impl IntoIterator<Item = usize>,
    least: usize,
    room: usize,
) {
    let columns: Vec<usize> = columns.into_iter().collect();
    let line: usize = widths.iter().map(|width| width + 2).sum();
    for _ in room..line.saturating_sub(2) {
        let widest = columns.iter().max_by_key(|at| widths[**at]);
        match widest.filter(|at| widths[**at] > least) {
            Some(at) => widths[*at] -= 1,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_columns_give_way_to_the_main_one() {
        let fitted = |mut widths: [usize; 4], room| {
            fit(&mut widths, &[1, 2, 3], 3, room);
            widths
        };
        // It fits as it is.
        assert_eq!(fitted([8, 10, 40, 14], 78), [8, 10, 40, 14]);
        assert_eq!(fitted([8, 10, 40, 20], 78), [8, 10, 34, 20]);
        assert_eq!(fitted([8, 10, 40, 90], 78), [8, 10, 20, 34]);
        assert_eq!(fitted([8, 19, 40, 90], 78), [8, 17, 16, 31]);
        assert_eq!(fitted([8, 19, 40, 90], 58), [8, 11, 10, 23]);
        assert_eq!(fitted([8, 19, 40, 90], 48), [8, 7, 7, 20]);
        // What cannot be is as near to it as can be.
        assert_eq!(fitted([8, 19, 40, 90], 20), [8, 5, 5, 8]);
        assert_eq!(fitted([8, 3, 4, 90], 20), [8, 3, 4, 8]);
    }
}
