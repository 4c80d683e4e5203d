//! Reading probes.

use quipu_hal::words::{is_path, is_symbol};
use quipu_hal::{Event, Probe};

use crate::cursor::{Cursor, Fault};
use crate::modifiers::Modifiers;

impl Cursor<'_, '_> {
    /// Reads a probe after its prefix, and its modifiers: one of a `user`'s program or of the kernel.
    pub(crate) fn take_probe(
        &mut self,
        user: bool,
        on_return: bool,
    ) -> Result<(Event, Modifiers), Fault> {
        let mut probe = Probe::kernel("");
        if user {
            let path = self.take_text(is_path, "the path of a program or library")?;
            if !self.eat(':') {
                return Err(self.expected("':' and a function, or the byte in the file"));
            }
            probe.object = Some(path.into());
        }
        (probe.symbol, probe.offset) = self.take_place()?;
        probe.on_return = on_return;
        let modifiers = Modifiers::after_colon(self)?;
        Ok((probe.into(), modifiers))
    }

    /// Reads `symbol`, `symbol+offset` or `offset`.
    fn take_place(&mut self) -> Result<(Option<String>, u64), Fault> {
        if self.peek().is_some_and(|c| c.is_ascii_digit()) {
            return Ok((None, self.take_number("an offset")?));
        }
        let symbol = self.take_text(is_symbol, "a function or an offset")?;
        let offset = match self.eat('+') {
            true => self.take_number("an offset")?,
            false => 0,
        };
        Ok((Some(symbol), offset))
    }
}
