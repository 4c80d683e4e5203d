//! The text that events are displayed as; `quipu-text` tests that it reads back.

use quipu_hal::Event;

#[test]
fn control_characters_are_written_as_escapes() {
    let named = Event::Named("a b\n\u{1b}'\\é".into());
    assert_eq!(named.to_string(), r"'a b\u{a}\u{1b}\'\\é'");
}
