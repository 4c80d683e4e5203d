//! Build IDs that are shorter than 20 bytes, which older tools have padded with zeros.

use quipu_symbols::{AddressOwner, FileIdentity, Mapped, Processes, Symbolizer, build_id_of};

use crate::built::Built;

#[test]
fn a_padded_id_is_that_of_the_file_with_the_short_one() {
    const TEST: &str = "a_padded_id_is_that_of_the_file_with_the_short_one";
    let source = "int function(void) { return 1; }";
    let Some(built) = Built::library(TEST, source, &["-Wl,--build-id=md5"]) else {
        return;
    };
    let library = built.path("a.so");
    let id = build_id_of(&library).expect("the linker made one");
    assert_eq!(id.len(), 16);
    let named = |id: &[u8], of_mapping: bool| {
        let path = library.to_string_lossy().into_owned().into_bytes();
        let len = std::fs::metadata(&library).expect("a file").len();
        let mapped = Mapped::new(0x10_0000..0x10_0000 + len, 0, path.as_slice());
        let (mapped, symbolizer) = match of_mapping {
            true => (
                mapped.of(FileIdentity::BuildId(id.into())),
                Symbolizer::new(),
            ),
            false => (
                mapped,
                Symbolizer::new().with_build_ids([(path, id.to_vec())]),
            ),
        };
        let mut processes = Processes::new();
        processes.map(1, mapped);
        let mut symbolizer = symbolizer;
        (0x10_0000..0x10_0000 + len).any(|address| {
            let mut found = Vec::new();
            let owner = AddressOwner::Process(1);
            symbolizer.resolve(&processes, owner, address, &mut found);
            found[0].name.as_deref() == Some("function")
        })
    };
    let mut padded = id.clone();
    padded.resize(20, 0);
    let mut other = padded.clone();
    other[19] = 1;
    for of_mapping in [false, true] {
        assert!(named(&id, of_mapping) && named(&padded, of_mapping));
        assert!(!named(&other, of_mapping));
    }
}
