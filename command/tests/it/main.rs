//! Tests of suspended commands.
#![cfg(unix)]

mod suspended;
