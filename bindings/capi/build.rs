//! Gives the shared library its soname. cargo-c, which installs it, gives it the same.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let of = |key: &str| env::var(key).unwrap_or_default();
    let is_elf =
        env::var_os("CARGO_CFG_UNIX").is_some() && of("CARGO_CFG_TARGET_VENDOR") != "apple";
    if is_elf {
        // Until 1.0 a minor version may change the interface, as for Cargo.
        let (major, minor) = (of("CARGO_PKG_VERSION_MAJOR"), of("CARGO_PKG_VERSION_MINOR"));
        let version = match &*major {
            "0" => format!("0.{minor}"),
            _ => major,
        };
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libquipu.so.{version}");
    }
}
