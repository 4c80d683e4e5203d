//! Stacks as a tree: each is a frame and the stack of its caller.

use foldhash::HashMap;

/// A stack of [`Stacks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(u32);

/// Stacks, each once.
#[derive(Debug, Clone, Default)]
pub struct Stacks {
    /// The caller and the frame of each.
    nodes: Vec<(Option<StackId>, usize)>,
    known: HashMap<(Option<StackId>, usize), StackId>,
}

impl Stacks {
    /// Returns the stack of a frame that this stack called; of the outermost frame without one.
    ///
    /// # Panics
    /// If there are more than 2^32 stacks.
    pub fn push(&mut self, caller: Option<StackId>, frame: usize) -> StackId {
        let nodes = &mut self.nodes;
        *self.known.entry((caller, frame)).or_insert_with(|| {
            let id = u32::try_from(nodes.len()).expect("no more than 2^32 stacks");
            nodes.push((caller, frame));
            StackId(id)
        })
    }

    /// Returns the stack of frames from the outermost on; `None` of none.
    ///
    /// # Panics
    /// If there are more than 2^32 stacks.
    pub fn push_all(&mut self, frames: impl IntoIterator<Item = usize>) -> Option<StackId> {
        let frames = frames.into_iter();
        frames.fold(None, |caller, frame| Some(self.push(caller, frame)))
    }

    /// Returns the frames of a stack, the innermost first.
    pub fn frames(&self, stack: Option<StackId>) -> impl Iterator<Item = usize> {
        let mut next = stack;
        std::iter::from_fn(move || {
            let (caller, frame) = self.nodes[next?.index()];
            next = caller;
            Some(frame)
        })
    }

    /// Returns the caller's stack and the frame of a stack.
    pub(crate) fn node(&self, stack: StackId) -> (Option<StackId>, usize) {
        self.nodes[stack.index()]
    }
}

impl StackId {
    /// Returns its position in the order in which stacks were made: a caller is before what it called.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_once_and_know_their_frames() {
        let mut stacks = Stacks::default();
        let outer = stacks.push(None, 7);
        let inner = stacks.push_all([7, 8, 7]);
        assert_eq!(stacks.push_all([7]), Some(outer));
        assert_eq!(stacks.push_all([7, 8, 7]), inner);
        assert_eq!(stacks.frames(inner).collect::<Vec<_>>(), [7, 8, 7]);
        assert_eq!(stacks.push_all([]), None);
        assert_eq!(stacks.nodes.len(), 3);
    }
}
