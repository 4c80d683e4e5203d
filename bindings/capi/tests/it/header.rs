//! The committed header is what the source says.

use std::path::Path;
use std::{env, fs};

use cbindgen::{Builder, Config};

/// The modules with something public, in the order in which a reader of the header wants them.
const MODULES: [&str; 17] = [
    "status",
    "last_error",
    "machine",
    "config",
    "set",
    "set/events",
    "reading",
    "set/overhead",
    "regions",
    "sampler",
    "cpu_info",
    "database",
    "names",
    "cpu",
    "encoding",
    "time_stamp",
    "sim",
];

#[test]
fn the_header_is_generated_from_the_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    let builder = MODULES
        .iter()
        .fold(Builder::new().with_config(config), |b, module| {
            b.with_src(root.join(format!("src/{module}.rs")))
        });
    let mut generated = Vec::new();
    builder.generate().expect("a header").write(&mut generated);
    let generated = String::from_utf8(generated).expect("text");

    let committed = root.join("include/quipu.h");
    if env::var_os("QUIPU_BLESS").is_some() {
        fs::write(&committed, &generated).expect("the header can be written");
    }
    let committed = fs::read_to_string(&committed).expect("the header");
    let differs = generated
        .lines()
        .zip(committed.lines())
        .find(|(a, b)| a != b);
    assert!(
        generated == committed,
        "include/quipu.h is not what the source says (generated, committed): {differs:#?}\n\
         QUIPU_BLESS=1 cargo test -p quipu-capi --test it header writes it"
    );
}
