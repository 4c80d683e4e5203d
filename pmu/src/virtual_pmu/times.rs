//! Time enabled and time running, by the state machine of the kernel's "record time running and
//! time enabled for each counter" (Paul Mackerras, March 2009; `kernel/events/core.c` today).
//!
//! Times advance only through moments at which something happened, so nothing has to be updated
//! while a group counts or waits.

/// Scheduling state of a group on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum State {
    /// Pinned and not on the PMU; times stand still.
    Error,
    /// Disabled; times stand still.
    #[default]
    Off,
    /// Enabled and waiting for slots; time enabled advances.
    Inactive,
    /// Counting; both times advance.
    Active,
}

/// The times of one group on one CPU, in nanoseconds.
///
/// The totals hold while off or in error. While inactive or active the three moments do: they are
/// notional (enabled at `enabled_from` without a break, and so on), and may lie before the clock's
/// origin, hence the wrapping arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Times {
    pub(super) state: State,
    pub(super) total_enabled: u64,
    pub(super) total_running: u64,
    pub(super) enabled_from: u64,
    pub(super) running_from: u64,
    pub(super) stopped: u64,
}

impl Times {
    /// Time enabled and time running at a moment.
    pub(super) fn at(&self, now: u64) -> (u64, u64) {
        let enabled = now.wrapping_sub(self.enabled_from);
        match self.state {
            State::Error | State::Off => (self.total_enabled, self.total_running),
            State::Inactive => (enabled, self.stopped.wrapping_sub(self.running_from)),
            State::Active => (enabled, now.wrapping_sub(self.running_from)),
        }
    }

    /// From off or error to waiting.
    pub(super) fn enable(&mut self, now: u64) {
        self.state = State::Inactive;
        self.enabled_from = now.wrapping_sub(self.total_enabled);
        self.running_from = now.wrapping_sub(self.total_running);
        self.stopped = now;
    }

    /// From waiting to counting.
    pub(super) fn schedule_in(&mut self, now: u64) {
        self.state = State::Active;
        self.running_from = self
            .running_from
            .wrapping_add(now.wrapping_sub(self.stopped));
    }

    /// From counting to waiting.
    pub(super) fn schedule_out(&mut self, now: u64) {
        self.state = State::Inactive;
        self.stopped = now;
    }

    /// From waiting or counting to off or error.
    pub(super) fn stop(&mut self, now: u64, state: State) {
        (self.total_enabled, self.total_running) = self.at(now);
        self.state = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Wait(u64),
        Toggle,
        Schedule,
        Fail,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..1_000u64).prop_map(Step::Wait),
            Just(Step::Toggle),
            Just(Step::Schedule),
            Just(Step::Fail),
        ]
    }

    proptest! {
        /// The model adds up each wait by the state it was spent in.
        #[test]
        fn times_are_the_sums_of_the_waits(
            start in any::<u32>(),
            steps in prop::collection::vec(step(), 0..60),
        ) {
            let mut now = u64::from(start);
            let mut times = Times::default();
            let (mut enabled, mut running) = (0, 0);
            for step in steps {
                match (step, times.state) {
                    (Step::Wait(ns), state) => {
                        now += ns;
                        if matches!(state, State::Inactive | State::Active) {
                            enabled += ns;
                        }
                        if state == State::Active {
                            running += ns;
                        }
                    }
                    (Step::Toggle, State::Off | State::Error) => times.enable(now),
                    (Step::Toggle, _) => times.stop(now, State::Off),
                    (Step::Schedule, State::Inactive) => times.schedule_in(now),
                    (Step::Schedule, State::Active) => times.schedule_out(now),
                    (Step::Fail, State::Inactive | State::Active) => times.stop(now, State::Error),
                    _ => {}
                }
                prop_assert_eq!(times.at(now), (enabled, running));
            }
        }
    }
}
