//! The regions of a thread and what was counted in them: a tree of calls.

use std::mem;
use std::time::{Duration, Instant};

use quipu::{Counts, Error, ErrorKind, Result};

use crate::region::Region;

/// The node of what is in no region.
pub(crate) const OUTSIDE: usize = 0;

/// The regions that a thread has entered, each below the one from which it was entered. A region that is entered again
/// inside of itself is the same node: trees stay as small as the program has names.
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    /// The nodes that were entered and not left, the outermost first.
    inside: Vec<usize>,
    /// The nodes of each region, by its place among the names.
    places: Vec<Places>,
    /// The last time that a region was entered or left, and the counts of then.
    last: Counts,
    last_time: Instant,
    /// Sentences on what was done wrong, each once.
    pub(crate) mistakes: Vec<String>,
}

/// The nodes of a region.
#[derive(Default)]
struct Places {
    /// One for each region that it was entered from.
    nodes: Vec<usize>,
    /// The one that the thread is inside of.
    inside: Option<usize>,
}

/// A region that was entered from another one.
pub(crate) struct Node {
    pub(crate) region: Option<Region>,
    pub(crate) parent: usize,
    pub(crate) calls: u64,
    /// The times that it was entered and not left.
    pub(crate) inside: u32,
    /// The beginning of the outermost call that is not left.
    begun: Counts,
    begun_time: Instant,
    /// With and without what was counted in regions inside of it.
    pub(crate) counts: Counts,
    pub(crate) own: Counts,
    pub(crate) elapsed: Duration,
    pub(crate) own_elapsed: Duration,
    /// The shortest and the longest call; of recursions, the outermost.
    pub(crate) shortest: Duration,
    pub(crate) longest: Duration,
}

impl Node {
    fn new(region: Option<Region>, parent: usize, zero: &Counts, now: Instant) -> Self {
        Self {
            region,
            parent,
            calls: 0,
            inside: 0,
            begun: zero.clone(),
            begun_time: now,
            counts: zero.clone(),
            own: zero.clone(),
            elapsed: Duration::ZERO,
            own_elapsed: Duration::ZERO,
            shortest: Duration::MAX,
            longest: Duration::ZERO,
        }
    }
}

impl Tree {
    /// Returns the tree of a thread whose counts are these now; `zero` are counts of the set that was not read.
    pub(crate) fn new(zero: &Counts, now: &Counts) -> Self {
        let begun = Instant::now();
        Self {
            nodes: vec![Node::new(None, OUTSIDE, zero, begun)],
            inside: Vec::new(),
            places: Vec::new(),
            last: now.clone(),
            last_time: begun,
            mistakes: Vec::new(),
        }
    }

    /// Returns the node that a region has if it is entered now, and makes room for it, so that entering allocates nothing.
    pub(crate) fn node_of(&mut self, region: Region, zero: impl FnOnce() -> Counts) -> usize {
        if self.inside.len() == self.inside.capacity() {
            self.inside.reserve(1);
        }
        if self.places.len() <= region.place() {
            self.places.resize_with(region.place() + 1, Places::default);
        }
        let places = &mut self.places[region.place()];
        if let Some(node) = places.inside {
            return node;
        }
        let parent = self.inside.last().copied().unwrap_or(OUTSIDE);
        let mut known = places.nodes.iter().copied();
        if let Some(node) = known.find(|node| self.nodes[*node].parent == parent) {
            return node;
        }
        let node = Node::new(Some(region), parent, &zero(), self.last_time);
        places.nodes.push(self.nodes.len());
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Enters a node at the time of these counts, which are those of the last time afterwards.
    pub(crate) fn enter(&mut self, node: usize, now: &mut Counts) -> Result<()> {
        let time = self.pass(now)?;
        let entered = &mut self.nodes[node];
        entered.calls += 1;
        entered.inside += 1;
        if entered.inside == 1 {
            entered.begun.clone_from(now);
            entered.begun_time = time;
        }
        if let Some(region) = entered.region {
            self.places[region.place()].inside = Some(node);
        }
        self.inside.push(node);
        mem::swap(&mut self.last, now);
        Ok(())
    }

    /// Checks that a region is the innermost one.
    pub(crate) fn check_innermost(&self, region: Region) -> Result<()> {
        let innermost = self.inside.last().map(|node| &self.nodes[*node]);
        let innermost = innermost.and_then(|node| node.region);
        if innermost == Some(region) {
            return Ok(());
        }
        let reason = match innermost {
            Some(inner) if self.is_inside(region) => {
                format!("{} is inside of it, and was not left", inner.name_alone())
            }
            _ => "this thread has not entered it, or has left it already".to_owned(),
        };
        Err(refused(region).with_reason(reason))
    }

    fn is_inside(&self, region: Region) -> bool {
        let places = self.places.get(region.place());
        places.is_some_and(|places| places.inside.is_some())
    }

    /// Leaves the innermost node at the time of these counts.
    pub(crate) fn leave(&mut self, now: &mut Counts) -> Result<()> {
        let time = self.pass(now)?;
        let Some(node) = self.inside.pop() else {
            return Ok(());
        };
        let left = &mut self.nodes[node];
        left.inside -= 1;
        if left.inside == 0 {
            left.counts.add_since(&left.begun, now)?;
            let took = time.saturating_duration_since(left.begun_time);
            left.elapsed += took;
            left.shortest = left.shortest.min(took);
            left.longest = left.longest.max(took);
            if let Some(region) = left.region {
                self.places[region.place()].inside = None;
            }
        }
        mem::swap(&mut self.last, now);
        Ok(())
    }

    /// Adds what was counted since the last time to the innermost node, and returns the time.
    fn pass(&mut self, now: &Counts) -> Result<Instant> {
        let time = Instant::now();
        let innermost = self.inside.last().copied().unwrap_or(OUTSIDE);
        let innermost = &mut self.nodes[innermost];
        innermost.own.add_since(&self.last, now)?;
        innermost.own_elapsed += time.saturating_duration_since(self.last_time);
        self.last_time = time;
        Ok(time)
    }

    /// Adds what was counted up to the end of the thread.
    pub(crate) fn finish(&mut self, now: &Counts) {
        if self.pass(now).is_ok() {
            self.last.clone_from(now);
        }
    }

    /// Forgets what was counted in a region.
    pub(crate) fn reset(&mut self, region: Region, zero: &Counts) -> Result<()> {
        if self.is_inside(region) {
            let attempted = format!("reset the region {}", region.name_alone());
            let error = Error::new(ErrorKind::InvalidConfiguration, attempted);
            return Err(error.with_reason("the thread is inside of it"));
        }
        let nodes = self.places.get(region.place()).map(|places| &places.nodes);
        for node in nodes.into_iter().flatten() {
            let node = &mut self.nodes[*node];
            *node = Node::new(Some(region), node.parent, zero, node.begun_time);
        }
        Ok(())
    }

    /// Notes a mistake.
    pub(crate) fn note(&mut self, error: &Error) {
        let mistake = format!("{error:#}");
        if !self.mistakes.contains(&mistake) {
            self.mistakes.push(mistake);
        }
    }
}

/// Returns the error of a region that cannot be left.
fn refused(region: Region) -> Error {
    let attempted = format!("leave the region {}", region.name_alone());
    Error::new(ErrorKind::InvalidConfiguration, attempted)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use quipu::{Backend, Count, EventSet, Reading};
    use quipu_scripted::{Scripted, ScriptedGroup};

    use super::*;

    /// A thread whose counter says what the test says.
    struct Scene {
        set: EventSet,
        now: Counts,
        tree: Tree,
        reading: Arc<[AtomicU64; 3]>,
    }

    impl Scene {
        fn new() -> Self {
            let reading: Arc<[AtomicU64; 3]> = Arc::default();
            let shared = Arc::clone(&reading);
            let backend = Scripted::new("scene", move |spec, _| {
                let shared = Arc::clone(&shared);
                Ok(ScriptedGroup::of(spec).reading(move |out| {
                    let [value, enabled, running] =
                        [0, 1, 2].map(|at| shared[at].load(Ordering::Relaxed));
                    out[0].fill(Reading::new(value, enabled, running));
                    Ok(())
                }))
            });
            let backend: Arc<dyn Backend> = Arc::new(backend);
            let mut builder = EventSet::builder();
            let builder = builder.events("page-faults").expect("an event");
            let set = builder.backends([backend]).open().expect("it opens");
            let now = set.counts();
            let tree = Tree::new(&now, &now);
            Self {
                set,
                now,
                tree,
                reading,
            }
        }

        /// Counts so many events, while the counter is there for a part of the time.
        fn count(&self, value: u64, enabled: u64, running: u64) {
            for (at, more) in [value, enabled, running].into_iter().enumerate() {
                self.reading[at].fetch_add(more, Ordering::Relaxed);
            }
        }

        fn begin(&mut self, region: Region) {
            let node = self.tree.node_of(region, || self.set.counts());
            self.set.read(&mut self.now).expect("scripted");
            self.tree
                .enter(node, &mut self.now)
                .expect("its own counts");
        }

        fn end(&mut self, region: Region) {
            self.tree.check_innermost(region).expect("the innermost");
            self.set.read(&mut self.now).expect("scripted");
            self.tree.leave(&mut self.now).expect("its own counts");
        }

        /// Returns calls, the count and the own count of each node behind the first.
        fn nodes(&self) -> Vec<(&str, u64, Count, Count)> {
            let count = |counts: &Counts| {
                let event = counts.by_name("page-faults").expect("it was asked for");
                event.total().expect("it was counted")
            };
            let nodes = self.tree.nodes.iter();
            let nodes = nodes.map(|node| {
                let name = node.region.map_or("outside", Region::name);
                (name, node.calls, count(&node.counts), count(&node.own))
            });
            nodes.collect()
        }
    }

    #[test]
    fn counts_are_with_and_without_what_is_inside() {
        use Count::Exact;
        let [a, b] = ["tree a", "tree b"].map(Region::named);
        let mut scene = Scene::new();
        scene.count(1, 1, 1);
        for _ in 0..2 {
            scene.begin(a);
            scene.count(10, 1, 1);
            scene.begin(b);
            scene.count(100, 1, 1);
            // Inside of itself, by way of another one.
            scene.begin(a);
            scene.count(1000, 1, 1);
            scene.end(a);
            scene.end(b);
            scene.end(a);
        }
        scene.begin(b);
        scene.count(10_000, 1, 1);
        scene.end(b);
        scene.count(2, 1, 1);
        scene.set.read(&mut scene.now).expect("scripted");
        scene.tree.finish(&scene.now);
        assert_eq!(
            scene.nodes(),
            [
                ("outside", 0, Exact(0), Exact(3)),
                ("tree a", 4, Exact(2220), Exact(2020)),
                ("tree b", 2, Exact(2200), Exact(200)),
                ("tree b", 1, Exact(10_000), Exact(10_000)),
            ]
        );
    }

    #[test]
    fn a_sum_of_turns_is_an_estimate_and_one_without_a_turn_is_nothing() {
        let [long, short] = ["tree long", "tree short"].map(Region::named);
        let mut scene = Scene::new();
        for (region, value, running) in
            [(long, 100, 10), (short, 0, 0), (long, 50, 5), (short, 0, 0)]
        {
            scene.begin(region);
            scene.count(value, 10, running);
            scene.end(region);
        }
        let counts: Vec<_> = scene
            .nodes()
            .into_iter()
            .skip(1)
            .map(|node| node.2)
            .collect();
        assert_eq!(counts, [Count::Estimated(200), Count::NotCounted]);
    }

    #[test]
    fn a_region_is_reset_from_outside() {
        let region = Region::named("tree reset");
        let mut scene = Scene::new();
        scene.begin(region);
        scene.count(7, 1, 1);
        let zero = scene.set.counts();
        let error = scene.tree.reset(region, &zero).expect_err("inside");
        assert!(error.to_string().contains("tree reset"), "{error}");
        scene.end(region);
        assert_eq!(
            scene.nodes()[1],
            ("tree reset", 1, Count::Exact(7), Count::Exact(7))
        );
        scene.tree.reset(region, &zero).expect("outside");
        assert_eq!(
            scene.nodes()[1],
            ("tree reset", 0, Count::Exact(0), Count::Exact(0))
        );
    }
}
