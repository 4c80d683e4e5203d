//! Names as they were written in the source.

use std::borrow::Cow;

use cpp_demangle::DemangleWrite;

/// Longer names than this stay as they are: a few bytes of a hostile one can stand for gigabytes.
const LONGEST: usize = 16 << 10;
/// As many ends of lists in a name are tried.
const MOST_ENDS: usize = 8;

/// Returns the readable form of a mangled Rust or C++ name, without the hash of Rust's; any other name as it is.
pub fn demangle(name: &str) -> Cow<'_, str> {
    demangle_as(name, Style::Whole)
}

/// Readable form of the names of C++.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Style {
    /// Templates have the type of their results, and all functions their parameters.
    #[default]
    Whole,
    /// Neither of both, as perf prints them (`DMGL_NO_OPTS`).
    Short,
    /// As files have them, mangled.
    Raw,
}

/// Returns the readable form of a mangled name, as [`demangle`], in a style.
pub(crate) fn demangle_as(name: &str, style: Style) -> Cow<'_, str> {
    if style == Style::Raw {
        return Cow::Borrowed(name);
    }
    // The version of a symbol, and `@plt`, are none of the language's.
    if name.starts_with("_Z")
        && let Some(at) = name.find('@')
    {
        let (name, rest) = name.split_at(at);
        return Cow::Owned(demangle_as(name, style).into_owned() + rest);
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return Cow::Owned(format!("{rust:#}"));
    }
    match cpp(name, style).or_else(|| cpp_without_signature(name)) {
        Some(readable) => Cow::Owned(readable),
        None => Cow::Borrowed(name),
    }
}

/// Returns the readable form of a name of C++.
fn cpp(name: &str, style: Style) -> Option<String> {
    // Compilers append `.part.0`, `.cold` and the like, which the demangler takes along.
    if !name.starts_with("_Z") || name.len() > LONGEST {
        return None;
    }
    let symbol = cpp_demangle::BorrowedSymbol::new(name.as_bytes()).ok()?;
    let options = cpp_demangle::DemangleOptions::new();
    let options = match style {
        Style::Whole | Style::Raw => options,
        Style::Short => options.no_params().no_return_type(),
    };
    let mut out = Limited(String::new());
    symbol.structured_demangle(&mut out, &options).ok()?;
    let mut name = with_literal_operators(without_empty_packs(out.0));
    // The demangler leaves that of functions in functions.
    while style == Style::Short
        && let Some(rest) = name.strip_suffix(" const")
    {
        name.truncate(rest.len());
    }
    Some(name)
}

/// Returns the readable form of an instance of a template whose types of results or parameters the demangler cannot read, as those
/// of `std::swap` (`enable_if` of a value of another template): without them.
fn cpp_without_signature(name: &str) -> Option<String> {
    let name = name.split('.').next()?;
    let ends = name.match_indices('E').map(|(at, _)| &name[..=at]);
    // Followed by a result and no parameters, the shortest that is a whole name.
    let mut ends = ends.take(MOST_ENDS).map(|name| format!("{name}vv"));
    ends.find_map(|name| cpp(&name, Style::Short))
}

/// Takes out the commas that the demangler leaves before packs of no types, as in `tuple<int, >`.
fn without_empty_packs(name: String) -> String {
    match name.contains(", >") || name.contains(", )") {
        true => name.replace(", >", ">").replace(", )", ")"),
        false => name,
    }
}

/// Writes operators of literals as C++ does: the demangler has `operator_x::operator ""` for `operator"" _x`.
fn with_literal_operators(mut name: String) -> String {
    const MARK: &str = "::operator \"\"";
    while let Some(end) = name.find(MARK) {
        let is_inside = |c: char| c.is_alphanumeric() || c == '_';
        let start = name[..end].trim_end_matches(is_inside).len();
        let suffix = &name[start..end];
        let operator = format!(
            "operator\"\" {}",
            suffix.strip_prefix("operator").unwrap_or(suffix)
        );
        name.replace_range(start..end + MARK.len(), &operator);
    }
    name
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
            (
                "_ZNSo3putEc@@GLIBCXX_3.4",
                "std::ostream::put(char)@@GLIBCXX_3.4",
            ),
            ("_ZN3foo3barEv@plt", "foo::bar()@plt"),
            (
                "_ZSt4swapIiENSt9enable_ifIXsrSt6__and_IJSt6__not_ISt15__is_tuple_likeIT_EESt21is_move_constructibleIS4_E\
                 St18is_move_assignableIS4_EEE5valueEvE4typeERS4_SE_",
                "std::swap<int>",
            ),
            ("memcpy@@GLIBC_2.14", "memcpy@@GLIBC_2.14"),
            ("qsort", "qsort"),
            ("_Z9nowhere", "_Z9nowhere"),
            ("", ""),
        ] {
            assert_eq!(demangle(name), readable);
        }
    }

    /// As perf script of perf 6.1 prints them.
    #[test]
    fn short_names_are_those_of_perf() {
        for (name, readable) in [
            ("_ZNK2ns3BoxIiE3getEi", "ns::Box<int>::get"),
            ("_ZN2ns3BoxIiEC2Ei", "ns::Box<int>::Box"),
            ("_ZN2ns3BoxIiED1Ev", "ns::Box<int>::~Box"),
            ("_ZNK2ns3BoxIiEcvlEv", "ns::Box<int>::operator long"),
            (
                "_ZNK2ns3BoxIiE4convIhEET_S3_",
                "ns::Box<int>::conv<unsigned char>",
            ),
            ("_Zli2_xy", "operator\"\" _x"),
            ("_ZN2nsli3_kmEe", "ns::operator\"\" _km"),
            ("_ZN12_GLOBAL__N_14anonEid", "(anonymous namespace)::anon"),
            ("_Z5applyIPFiiEEDTclfp_fp0_EET_i", "apply<int (*)(int)>"),
            ("_Z4packILi3EJicEEiDpT0_", "pack<3, int, char>"),
            ("_Z4packILin4EJEEiDpT0_", "pack<-4>"),
            ("_ZZ11outer_localiEN1L1mEi", "outer_local(int)::L::m"),
            (
                "_ZZ11outer_localiENKUliE_clEi",
                "outer_local(int)::{lambda(int)#1}::operator()",
            ),
            (
                "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
                "core::fmt::Write::write_fmt",
            ),
        ] {
            assert_eq!(demangle_as(name, Style::Short), readable);
        }
        assert_eq!(demangle("_Z4packILin4EJEEiDpT0_"), "int pack<-4>()");
        let whole = "ns::operator\"\" _km(long double)";
        assert_eq!(demangle("_ZN2nsli3_kmEe"), whole);
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

    #[test]
    fn readable_names_are_as_long_as_mangled_ones_may_be() {
        let [outer, inner] = ["a", "b"].map(|letter| letter.repeat(200));
        let name = format!("_ZN200{outer}200{inner}Ev");
        assert_eq!(demangle(&name), format!("{outer}::{inner}()"));
        let mut out = Limited(String::new());
        for (length, fits) in [
            (LONGEST - 2, true),
            (3, false),
            (2, true),
            (0, true),
            (1, false),
        ] {
            assert_eq!(
                out.write_string(&"x".repeat(length)).is_ok(),
                fits,
                "{length}"
            );
        }
        assert_eq!(out.0.len(), LONGEST);
    }
}
