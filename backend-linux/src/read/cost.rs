//! The cost of both ways to read a group: a hypervisor may intercept the instruction that reads a counter, and
//! a system call is cheaper then.

/// The reads that are timed both ways.
const ROUNDS: u32 = 4;

/// The way in which a read is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    UserSpace,
    SystemCall,
    /// Both, to see which is quicker.
    Both,
}

/// The quickest read of a group in each way so far, in ns.
#[derive(Debug)]
pub(super) struct Cost {
    rounds: u32,
    user_space: u64,
    system_call: u64,
}

impl Cost {
    pub(super) fn new() -> Self {
        Self {
            rounds: 0,
            user_space: u64::MAX,
            system_call: u64::MAX,
        }
    }

    /// Takes what one read cost in each way, in ns.
    pub(super) fn add(&mut self, user_space: u64, system_call: u64) {
        self.rounds += 1;
        self.user_space = self.user_space.min(user_space);
        self.system_call = self.system_call.min(system_call);
    }

    /// Returns the way of the next read: the quicker one, once enough reads were timed.
    pub(super) fn way(&self) -> Way {
        if self.rounds < ROUNDS {
            Way::Both
        } else if self.user_space <= self.system_call {
            Way::UserSpace
        } else {
            Way::SystemCall
        }
    }

    /// Returns both in ns: in user space, and by system call.
    pub(super) fn each(&self) -> (u64, u64) {
        (self.user_space, self.system_call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quickest_of_some_reads_decides() {
        let mut cost = Cost::new();
        for (user_space, system_call) in [(90, 50), (30, 80), (70, 40), (60, 60)] {
            assert_eq!(cost.way(), Way::Both);
            cost.add(user_space, system_call);
        }
        assert_eq!(cost.way(), Way::UserSpace);
        cost.add(u64::MAX, 29);
        assert_eq!(cost.way(), Way::SystemCall);
    }
}
