//! Lists of CPUs.

use quipu_hal::{Error, ErrorKind, Result};

/// No system numbers its CPUs beyond this; Linux's largest `NR_CPUS` is 8192.
const MAX_CPUS: u32 = 1 << 16;

/// Reads a list of CPUs as people type it and Linux writes it: `0-3,8,10-11`.
///
/// The result is in ascending order, each CPU once. An empty text is an empty list.
///
/// # Errors
/// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when it is not such a list, or goes
/// beyond CPU 65535.
pub fn parse_cpu_list(text: &str) -> Result<Vec<u32>> {
    let fail = |reason: String| {
        let end = text.char_indices().nth(40).map_or(text.len(), |(at, _)| at);
        let quoted = format!("{:?}", &text[..end]);
        Error::new(
            ErrorKind::InvalidConfiguration,
            format!("read the list of CPUs `{}`", &quoted[1..quoted.len() - 1]),
        )
        .with_reason(reason)
    };
    let text = text.trim_ascii();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    // For each CPU up to the last, so that a list that repeats itself stays small.
    let mut listed: Vec<bool> = Vec::new();
    for item in text.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let Some((first, last)) = number(first).zip(number(last)) else {
            return Err(fail("it is written like 0-3,8".into()));
        };
        if first > last {
            return Err(fail(format!("{first}-{last} runs backwards")));
        }
        if last >= MAX_CPUS {
            return Err(fail(format!("there is no CPU {last}")));
        }
        let range = first as usize..last as usize + 1;
        if listed.len() < range.end {
            listed.resize(range.end, false);
        }
        listed[range].fill(true);
    }
    let mut cpus = Vec::new();
    for (cpu, is_listed) in (0..).zip(listed) {
        if is_listed {
            cpus.push(cpu);
        }
    }
    Ok(cpus)
}

fn number(text: &str) -> Option<u32> {
    let digits = text.trim_ascii();
    // A sign is no part of a number.
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    are_digits.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_sorted_and_without_repetition() {
        for (text, cpus) in [
            ("", vec![]),
            ("0\n", vec![0]),
            ("0-3,8,10-11", vec![0, 1, 2, 3, 8, 10, 11]),
            ("5,1-2, 2-4", vec![1, 2, 3, 4, 5]),
            ("0-5,1-2,7", vec![0, 1, 2, 3, 4, 5, 7]),
            ("65535", vec![65535]),
        ] {
            assert_eq!(parse_cpu_list(text).unwrap(), cpus, "{text}");
        }
        let times = if cfg!(miri) { 2 } else { 10_000 };
        let repeated = "0-65535,".repeat(times) + "0";
        assert_eq!(parse_cpu_list(&repeated).unwrap().len(), 65536);
    }

    #[test]
    fn hostile_lists_are_refused_without_allocating() {
        for text in [
            "0-4294967295",
            "65536",
            "3-1",
            "-",
            "1-",
            "-1",
            "a",
            "0,,1",
            "0,",
            "99999999999",
            "1-2-3",
        ] {
            let e = parse_cpu_list(text).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidConfiguration, "{text}");
        }
    }
}
