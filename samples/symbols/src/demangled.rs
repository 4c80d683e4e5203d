//! Names as they were written in the source.

use std::borrow::Cow;

use cpp_demangle::DemangleWrite;

/// Longer names than this stay as they are: a few bytes of a hostile one can stand for gigabytes.
const LONGEST: usize = 16 << 10;

/// Returns the readable form of a mangled Rust or C++ name, without the hash of Rust's; any other name as it is.
pub fn demangle(name: &str) -> Cow<'_, str> {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return Cow::Owned(format!("{rust:#}"));
    }
    // Compilers append `.part.0`, `.cold` and the like, which the demangler takes along.
    if name.starts_with("_Z") && name.len() <= LONGEST {
        let mut out = Limited(String::new());
        let readable = cpp_demangle::BorrowedSymbol::new(name.as_bytes())
            .ok()
            .and_then(|symbol| {
                let options = cpp_demangle::DemangleOptions::new();
                symbol.structured_demangle(&mut out, &options).ok()
            });
        if readable.is_some() {
            return Cow::Owned(out.0);
        }
    }
    Cow::Borrowed(name)
}

/// Text that does not grow beyond [`LONGEST`].
struct Limited(String);

impl DemangleWrite for Limited {
    fn write_string(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_its_own() {
        for (name, readable) in [
            (
                "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
                "core::fmt::Write::write_fmt",
            ),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
            ),
            ("_ZN3foo3barEv.part.0", "foo::bar() [clone .part.0]"),
            ("qsort", "qsort"),
            ("_Z9nowhere", "_Z9nowhere"),
            ("", ""),
        ] {
            assert_eq!(demangle(name), readable);
        }
    }

    #[test]
    fn names_that_would_explode_stay_as_they_are() {
        // Each level of this template doubles the one before.
        let mut name = String::from("_Z1fI");
        for i in 0..64 {
            name.push_str(&format!("1aIS{i}_S{i}_E"));
        }
        let name = format!("{name}Evv");
        assert!(demangle(&name).len() <= LONGEST);
        let long = format!("_Z{}", "1a".repeat(LONGEST));
        assert_eq!(demangle(&long), long);
    }
}
