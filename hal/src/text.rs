//! The text form of events: names, terms, modifiers and groups, both ways.
