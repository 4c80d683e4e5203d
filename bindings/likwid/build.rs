//! Gives the shared library the soname of LIKWID 5.2 in Debian, so that programs linked with that load it.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let vendor = env::var("CARGO_CFG_TARGET_VENDOR").unwrap_or_default();
    if env::var_os("CARGO_CFG_UNIX").is_some() && vendor != "apple" {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liblikwid.so.5.2");
    }
}
