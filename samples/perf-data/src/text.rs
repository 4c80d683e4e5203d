//! Text in bytes, and bytes as text.

/// Returns text up to the NUL that ends it, or all there is.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0);
    &bytes[..end.unwrap_or(bytes.len())]
}

/// Returns bytes as hexadecimal numbers of two digits, with text between them.
#[cfg(feature = "file")]
pub(crate) fn hex(bytes: &[u8], between: &str) -> String {
    let hex: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    hex.join(between)
}
