//! Numbers on the command line, refused in plain words.

use std::str::FromStr;

/// Reads a whole number that is one of some, which `what` says in words.
fn number<T: FromStr>(text: &str, what: &str, is_fine: impl Fn(&T) -> bool) -> Result<T, String> {
    let number = text.trim().parse().ok().filter(is_fine);
    number.ok_or_else(|| format!("expected {what}"))
}

/// Reads a number of at least one.
pub fn positive<T: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<T, String> {
    number(text, "a positive whole number", |number| {
        *number >= T::from(1)
    })
}

/// Reads a number of at least zero.
pub fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    number(text, "a whole number", |_| true)
}

/// Reads a share of it all.
pub fn percent(text: &str) -> Result<f64, String> {
    number(text, "a number of percent", |percent: &f64| {
        percent.is_finite() && *percent >= 0.0
    })
}

/// Reads a level of top-down analysis.
pub fn level_of_topdown(text: &str) -> Result<u8, String> {
    number(text, "1 or 2", |level| matches!(level, 1 | 2))
}

/// Reads the number of pages of a ring.
pub fn pages(text: &str) -> Result<u32, String> {
    number(text, "a power of two, at most 1048576", |pages: &u32| {
        pages.is_power_of_two() && *pages <= 1 << 20
    })
}

/// Reads a number of milliseconds, at least one.
pub fn milliseconds(text: &str) -> Result<u64, String> {
    number(text, "a positive number of milliseconds", |ms| *ms > 0)
}

/// Reads a delay in milliseconds.
pub fn delay(text: &str) -> Result<i64, String> {
    number(text, "a number of milliseconds, or -1", |ms| *ms >= -1)
}

/// Reads a number of bytes: with B, K, M or G behind it, or none of them.
pub fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (digits, unit) = match text.char_indices().last() {
        Some((at, unit)) if !unit.is_ascii_digit() => (&text[..at], unit),
        _ => (text, 'B'),
    };
    let shift = match unit.to_ascii_uppercase() {
        'B' => Some(0),
        'K' => Some(10),
        'M' => Some(20),
        'G' => Some(30),
        _ => None,
    };
    let bytes = shift.and_then(|shift| digits.parse::<u64>().ok()?.checked_mul(1 << shift));
    let expected = || "expected a positive number of bytes with B, K, M or G, like 100M".to_owned();
    bytes.filter(|bytes| *bytes > 0).ok_or_else(expected)
}

/// Reads a level of compression.
pub fn level(text: &str) -> Result<i32, String> {
    number(text, "a level from 0 to 22", |level| {
        (0..=22).contains(level)
    })
}

/// Reads a number of files, at least one.
pub fn files(text: &str) -> Result<usize, String> {
    number(text, "a positive number of files", |files| *files > 0)
}

/// Reads how often something is done.
pub fn times(text: &str) -> Result<u32, String> {
    number(text, "a whole number; 0 is until Ctrl-C", |_| true)
}

/// Reads the id of a process or thread.
pub fn id(text: &str) -> Result<i32, String> {
    let refused = |expected| match text.chars().all(|c| c.is_ascii_digit() || c == '-') {
        true => expected,
        false => format!("{expected}; `pgrep -d, {text}` prints those of a name"),
    };
    number(text, "the number of a process or thread", |id| *id > 0).map_err(refused)
}

/// Reads the id of a process or thread of a recording, where 0 is idle.
pub fn recorded_id(text: &str) -> Result<i32, String> {
    number(text, "the number of a process or thread", |_| true)
}

/// Reads a counter of pctr(4).
pub fn counter(text: &str) -> Result<u8, String> {
    number(text, "a counter from 0 to 3", |counter| *counter < 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_is_said_in_words() {
        assert_eq!(milliseconds("250"), Ok(250));
        assert_eq!(
            (delay("-1"), times("0"), counter("3")),
            (Ok(-1), Ok(0), Ok(3))
        );
        for text in ["0", "-5", "abc", "", "99999999999999999999"] {
            let refused = milliseconds(text).expect_err(text);
            assert_eq!(refused, "expected a positive number of milliseconds");
        }
        assert!(positive::<u32>("0").is_err() && positive::<u64>("1").is_ok());
        let of_a_name = id("firefox").expect_err("a name");
        assert!(of_a_name.ends_with("; `pgrep -d, firefox` prints those of a name"));
        let expected = "expected the number of a process or thread";
        assert_eq!(id("-1"), Err(expected.to_owned()));
        assert!(counter("4").is_err() && delay("-2").is_err());
    }

    #[test]
    fn shares_levels_and_pages_have_bounds() {
        assert_eq!((percent("0.5"), level_of_topdown("2")), (Ok(0.5), Ok(2)));
        assert!(percent("-1").is_err() && percent("nan").is_err() && percent("inf").is_err());
        assert!(level_of_topdown("0").is_err() && level_of_topdown("3").is_err());
        assert!(whole::<usize>("0").is_ok() && whole::<usize>("-1").is_err());
        for (text, is_fine) in [
            ("1", true),
            ("1048576", true),
            ("0", false),
            ("3", false),
            ("2097152", false),
        ] {
            assert_eq!(pages(text).is_ok(), is_fine, "{text}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(
            (size("7"), size("2k"), size("3G")),
            (Ok(7), Ok(2048), Ok(3 << 30))
        );
        for text in ["", "M", "0", "-1K", "3T", "1.5M", "17179869184G", "1é"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
