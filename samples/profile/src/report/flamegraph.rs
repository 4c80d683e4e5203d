//! Flame graphs: stacks as a picture.

use std::path::Path;

use inferno::flamegraph;
use inferno::flamegraph::color::{Color, PaletteMap};
use quipu_viewers::OFF_CPU;

use quipu_shell::{Failure, output_file};

use super::folded::{self, part};
use super::profile::{EventProfile, Profile};

/// The blue of time off the CPU.
const ASLEEP: Color = Color {
    r: 120,
    g: 160,
    b: 220,
};

/// Draws the samples of an event into a file, weighed by what they stand for.
pub(super) fn write(path: &Path, profile: &Profile, event: &EventProfile) -> Result<(), Failure> {
    // What is narrower is not drawn.
    let percent = flamegraph::Options::default().min_width;
    let weights = event.stacks.iter().map(|(_, weight)| weight.period as f64);
    let least = (weights.sum::<f64>() * percent / 100.0) as u64;
    let mut lines = Vec::new();
    folded::each(profile, event, least, |stack, weight| {
        lines.push(format!("{stack} {weight}"));
    });
    let cut = event.cut.as_ref().map(ToString::to_string);
    draw(path, (&event.name, cut), &event.name, &lines)
}

/// Draws folded stacks into a file. With two numbers a line, the second is drawn, and its difference from the first is its colour.
///
/// # Errors
/// If there are no lines, one is no folded stack, their numbers add up to 2^63 or more, or the file cannot be written.
pub fn draw(
    path: &Path,
    (title, subtitle): (&str, Option<String>),
    event: &str,
    lines: &[String],
) -> Result<(), Failure> {
    if lines.is_empty() {
        return Err(Failure::new("there are no samples to draw"));
    }
    if !can_be_drawn(lines) {
        return Err(Failure::new(
            "cannot draw the samples: they stand for more events than 63 bits can count",
        ));
    }
    let mut options = flamegraph::Options::default();
    options.title = part(title);
    options.subtitle = subtitle;
    options.count_name = part(event);
    options.deterministic = true;
    let mut colours = PaletteMap::default();
    colours.insert(OFF_CPU, ASLEEP);
    options.palette_map = Some(&mut colours);
    let mut picture = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut picture)
        .map_err(|e| Failure::new(format_args!("cannot draw the samples: {e}")))?;
    output_file::write(path, picture)
        .map_err(|e| Failure::new(format_args!("cannot write {}: {e}", path.display())))
}

/// Returns true if the numbers of folded stacks, up to two a line, add up to less than 2^63 each: `inferno` adds and subtracts
/// them without checks.
fn can_be_drawn(lines: &[String]) -> bool {
    let mut sums = [0; 2];
    for line in lines {
        for (sum, number) in sums.iter_mut().zip(line.rsplit(' ')) {
            *sum += number.parse::<u64>().map_or(0, u128::from);
        }
    }
    sums.iter().all(|sum| *sum < 1 << 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_counter_has_is_not_drawn() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("picture.svg");
        let drawn = |lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            draw(&path, ("title", None), "cycles", &lines).map_err(|failure| failure.to_string())
        };
        assert_eq!(drawn(&["a;b 9223372036854775806", "a;c 1"]), Ok(()));
        for lines in [
            ["a;b 9223372036854775807", "a;c 1"],
            ["a;b 18446744073709551615", "a;c 18446744073709551615"],
            ["a;b 1 9223372036854775807", "a;c 1 1"],
            ["a;b 9223372036854775807 1", "a;c 1 1"],
        ] {
            let refused = drawn(&lines).unwrap_err();
            assert!(refused.contains("more events than 63 bits"), "{refused}");
        }
    }
}
