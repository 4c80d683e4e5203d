//! Small histograms of one line.

/// Returns the counts of values in bins between the least and the largest; what is above `most` is in the last bin.
fn bins(values: &[f64], least: f64, most: f64, bins: usize) -> Vec<usize> {
    let mut counts = vec![0; bins];
    let width = (most - least) / bins as f64;
    for value in values {
        let bin = if width > 0.0 {
            ((value - least) / width) as usize
        } else {
            0
        };
        counts[bin.min(bins - 1)] += 1;
    }
    counts
}

/// Returns a line for each command, over the same values, as wide as `width`. The last bin has the values above those of
/// nineteen in twenty, so that one that is far out does not press the others into the first.
pub(super) fn lines(values: &[Vec<f64>], width: usize) -> Vec<String> {
    const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let mut all: Vec<f64> = values.iter().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (all.first(), all.get(all.len() * 19 / 20).or(all.last()))
    else {
        return vec![String::new(); values.len()];
    };
    let most = most + (most - least) / width as f64;
    let of_each = values.iter().map(|values| {
        let counts = bins(values, *least, most, width);
        let highest = counts.iter().copied().max().unwrap_or(0).max(1);
        let line: String = counts
            .iter()
            .map(|count| HEIGHTS[(count * 8).div_ceil(highest)])
            .collect();
        line.trim_end().to_owned()
    });
    of_each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_share_their_bins() {
        let drawn = lines(&[vec![1.0, 1.0, 2.0], vec![4.0, 4.0, 4.0]], 4);
        assert_eq!(drawn, ["█▄", "   █"].map(str::to_owned));
        assert_eq!(lines(&[vec![5.0], vec![5.0]], 4), ["█", "█"]);
        assert_eq!(lines(&[vec![], vec![]], 4), ["", ""]);
    }
}
