//! Unit masks put together.

/// The unit masks that several disjoint masks have together.
#[derive(Debug)]
pub struct Together<'m> {
    /// The masks by their bits.
    alone: [Option<&'m str>; 256],
    /// The bits and name of one of the several that have these bits together.
    one_of: [Option<(u8, &'m str)>; 256],
}

impl<'m> Together<'m> {
    /// Returns what masks, bits and name of each, have together.
    pub fn new(masks: &[(u8, &'m str)]) -> Self {
        let mut together = Self {
            alone: [None; 256],
            one_of: [None; 256],
        };
        for &(bits, name) in masks {
            together.alone[usize::from(bits)] = Some(name);
        }
        for bits in 1..=u8::MAX {
            let is_one_of = |&&(part, _): &&(u8, &str)| {
                let rest = usize::from(bits & !part);
                let others = together.alone[rest].is_some() || together.one_of[rest].is_some();
                part != 0 && part & !bits == 0 && rest != 0 && others
            };
            together.one_of[usize::from(bits)] = masks.iter().find(is_one_of).copied();
        }
        together
    }

    /// Returns the names of several masks that have these bits together.
    pub fn names(&self, bits: u8) -> Option<Vec<&'m str>> {
        let (part, name) = self.one_of[usize::from(bits)]?;
        let mut names = vec![name];
        let mut rest = bits & !part;
        while rest != 0 {
            let at = usize::from(rest);
            let alone = self.alone[at].map(|name| (rest, name));
            let (part, name) = alone.or(self.one_of[at])?;
            names.push(name);
            rest &= !part;
        }
        Some(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_disjoint_masks_are_put_together() {
        let masks = [(1, "a"), (2, "b"), (4, "c"), (0x18, "d"), (0x30, "e")];
        let together = Together::new(&masks);
        assert_eq!(together.names(3), Some(vec!["a", "b"]));
        assert_eq!(together.names(0x1f), Some(vec!["a", "b", "c", "d"]));
        assert_eq!(together.names(0x38), None);
        assert_eq!(together.names(4), None);
        assert_eq!(together.names(0), None);
    }
}
