//! What is known of the registers of a CPU while its counters are taken.

/// The registers of one CPU: what they held, and what was written to them.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(super) found: Box<[Found]>,
    /// What the global control held.
    pub(super) global: u64,
    /// Which overflow bits were set.
    pub(super) status: u64,
    /// By slot: what the control holds while the counter counts.
    pub(super) words: Box<[u64]>,
    /// By slot: what was written to the control last.
    pub(crate) written: Box<[u64]>,
    pub(super) counting: Box<[bool]>,
    /// By slot: whether there is anything to put back.
    pub(super) touched: Box<[bool]>,
    /// The slots that were not put back, because somebody else has taken them meanwhile.
    pub(super) left: Vec<usize>,
}

/// What the registers of one counter held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(super) control: u64,
    pub(super) value: u64,
}

impl Taken {
    pub(super) fn new(found: Vec<Found>, global: u64, status: u64) -> Self {
        let slots = found.len();
        Self {
            words: vec![0; slots].into(),
            written: found.iter().map(|found| found.control).collect(),
            counting: vec![false; slots].into(),
            touched: vec![false; slots].into(),
            left: Vec::new(),
            found: found.into(),
            global,
            status,
        }
    }
}
