//! Data that a pointer points to, in the forms that libtraceevent has of the kernel's: addresses of networks and hardware, UUIDs and
//! bytes (`Documentation/core-api/printk-formats.rst`).

use std::net::Ipv6Addr;

use crate::text::hex;
use crate::trace_format::unsigned;

/// Returns the number of letters after `%p` that say what is printed.
pub(super) fn letters(rest: &str) -> usize {
    let (len, more, most) = match rest.as_bytes() {
        [b'I' | b'i', b'4', ..] => (2, "hnbl", 1),
        [b'I' | b'i', b'6', ..] => (2, "c", 1),
        [b'I' | b'i', b'S', ..] => (2, "pfschnbl", usize::MAX),
        [b'M' | b'm', ..] => (1, "FR", 1),
        [b'U', ..] => (1, "LlBb", 1),
        [b'h', ..] => (1, "CDN", 1),
        [b'S' | b's' | b'F' | b'f', ..] => (1, "", 0),
        _ => (0, "", 0),
    };
    let after = rest[len..].chars().take(most);
    len + after.take_while(|letter| more.contains(*letter)).count()
}

/// Returns the text of the bytes that a pointer points to, of raw ones as many as the width says; `None` where the letters ask
/// for the address.
pub(super) fn text(letters: &str, bytes: &[u8], width: Option<usize>) -> Option<String> {
    Some(match letters.as_bytes() {
        [b'I' | b'i', b'4', ..] => ipv4(letters, bytes),
        [b'I' | b'i', b'6', ..] => ipv6(letters, bytes),
        [b'I' | b'i', ..] => socket(letters, bytes),
        [b'M' | b'm', ..] => mac(letters, bytes),
        [b'U', ..] => uuid(letters, bytes),
        [b'h', order @ ..] => {
            let between = match order {
                [b'C'] => ":",
                [b'D'] => "-",
                [b'N'] => "",
                _ => " ",
            };
            hex(&bytes[..bytes.len().min(width.unwrap_or(1))], between)
        }
        _ => return None,
    })
}

fn ipv4(letters: &str, bytes: &[u8]) -> String {
    let Ok(mut address) = <[u8; 4]>::try_from(bytes) else {
        return "INVALIDIPv4".to_owned();
    };
    // The order of the host, or of small machines.
    if letters.contains('l') || letters.contains('h') && cfg!(target_endian = "little") {
        address.reverse();
    }
    let zeros = letters.starts_with('i');
    let parts = address.map(|part| match zeros {
        true => format!("{part:03}"),
        false => part.to_string(),
    });
    parts.join(".")
}

fn ipv6(letters: &str, bytes: &[u8]) -> String {
    let Ok(mut address) = <[u8; 16]>::try_from(bytes) else {
        return "INVALIDIPv6".to_owned();
    };
    if letters.starts_with('i') {
        return hex(bytes, "");
    }
    if !letters.contains('c') {
        let parts = bytes.chunks(2).map(|part| hex(part, ""));
        return parts.collect::<Vec<_>>().join(":");
    }
    // An address of IPv4 within one site (ISATAP, RFC 5214); those that are mapped are written so already.
    if matches!(address[8..12], [0 | 2, 0, 0x5e, 0xfe]) {
        address[12..].copy_from_slice(&[0, 1, 0, 1]);
        let start = Ipv6Addr::from(address).to_string();
        let start = start.strip_suffix("1:1").unwrap_or_default();
        return format!("{start}{}", ipv4("", &bytes[12..]));
    }
    Ipv6Addr::from(address).to_string()
}

/// Returns the text of a socket's address (`struct sockaddr`).
fn socket(letters: &str, bytes: &[u8]) -> String {
    const INET: u64 = 2;
    const INET6: u64 = 10;
    let port = match *bytes {
        [_, _, high, low, ..] if letters.contains('p') => Some(u16::from_be_bytes([high, low])),
        _ => None,
    };
    // What is too short is no address of its kind.
    let part = |at, len, whole| match bytes.len() >= whole {
        true => &bytes[at..at + len],
        false => &[],
    };
    match (bytes.get(..2).map_or(0, unsigned), port) {
        (INET, None) => ipv4(letters, part(4, 4, 16)),
        (INET, Some(port)) => format!("{}:{port}", ipv4(letters, part(4, 4, 16))),
        (INET6, None) => ipv6(letters, part(8, 16, 28)),
        (INET6, Some(port)) => format!("[{}]:{port}", ipv6(letters, part(8, 16, 28))),
        _ => String::new(),
    }
}

fn mac(letters: &str, bytes: &[u8]) -> String {
    let Ok(mut address) = <[u8; 6]>::try_from(bytes) else {
        return "INVALIDMAC".to_owned();
    };
    if letters.ends_with('R') {
        address.reverse();
    }
    let between = match letters {
        "MF" => "-",
        "M" | "MR" => ":",
        _ => "",
    };
    hex(&address, between)
}

fn uuid(letters: &str, bytes: &[u8]) -> String {
    let Ok(mut id) = <[u8; 16]>::try_from(bytes) else {
        return "INVALIDUUID".to_owned();
    };
    if letters.ends_with(['l', 'L']) {
        id[..4].reverse();
        id[4..6].reverse();
        id[6..8].reverse();
    }
    let parts = [&id[..4], &id[4..6], &id[6..8], &id[8..10], &id[10..]];
    let text = parts.map(|part| hex(part, "")).join("-");
    match letters.ends_with(['L', 'B']) {
        true => text.to_uppercase(),
        false => text,
    }
}
