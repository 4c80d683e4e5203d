//! Readings that are not what was counted.

use std::mem::swap;

use quipu_hal::{Count, Error, ErrorKind, Group, MaxRate, ReadBuf, Reading, Result};

use super::tamper::{Defect, Mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        each(
            "times-swapped",
            "time enabled and time running change places",
            |r| {
                swap(&mut r.time_enabled, &mut r.time_running);
                swap(&mut r.raw_time_enabled, &mut r.raw_time_running);
            },
        ),
        each(
            "jump-as-count",
            "nothing says how much a counter can count",
            |r| r.max_rate = MaxRate::NONE,
        ),
        each("times-missing", "every time is 0", |r| {
            *r = Reading::new(r.value, 0, 0);
        }),
        each("times-in-microseconds", "times are in microseconds", |r| {
            for time in times(r) {
                *time /= 1_000;
            }
        }),
        each("waiting-is-running", "time running is time enabled", |r| {
            r.time_running = r.time_enabled;
            r.raw_time_running = r.raw_time_enabled;
        }),
        each("waiting-is-disabled", "time enabled is time running", |r| {
            r.time_enabled = r.time_running;
            r.raw_time_enabled = r.raw_time_running;
        }),
        each(
            "estimate-as-fact",
            "the value is scaled already, and called exact",
            |r| {
                if let Count::Estimated(estimate) = r.count() {
                    r.value = u64::try_from(estimate).unwrap_or(u64::MAX);
                    r.time_running = r.time_enabled;
                }
            },
        ),
        each(
            "zero-for-not-counted",
            "a group that never ran reads 0, as a fact",
            |r| {
                if r.count() == Count::NotCounted {
                    r.time_running = r.time_enabled;
                }
            },
        ),
        each(
            "never-exact",
            "time running falls short by a nanosecond",
            |r| {
                r.time_running = r.time_running.saturating_sub(1);
            },
        ),
        each(
            "times-ignore-reset",
            "the times go on over a reset like the raw ones",
            |r| {
                r.time_enabled = r.raw_time_enabled;
                r.time_running = r.raw_time_running;
            },
        ),
        each(
            "raw-times-reset",
            "the raw times start over at a reset like the others",
            |r| {
                r.raw_time_enabled = r.time_enabled;
                r.raw_time_running = r.time_running;
            },
        ),
        each("one-more", "every value is one too high", |r| r.value += 1),
        each("in-tens", "values are rounded down to tens", |r| {
            r.value -= r.value % 10;
        }),
        each("32-bit-values", "values are cut to 32 bits", |r| {
            r.value &= 0xffff_ffff;
        }),
        whole(
            "members-reversed",
            "readings come in the wrong order",
            |buf| {
                for part in 0..buf.parts().len() {
                    buf[part].reverse();
                }
            },
        ),
        whole(
            "leader-for-all",
            "every member has the leader's value",
            |buf| {
                for part in 0..buf.parts().len() {
                    let leader = buf[part][0].value;
                    buf[part].iter_mut().for_each(|r| r.value = leader);
                }
            },
        ),
        whole("leader-alone-timed", "only the leader has times", |buf| {
            for part in 0..buf.parts().len() {
                for reading in buf[part].iter_mut().skip(1) {
                    *reading = Reading::new(reading.value, 0, 0);
                }
            }
        }),
        Mutant::of(
            "torn-snapshot",
            "every second member is a read behind",
            Torn::default(),
        ),
        Mutant::of(
            "stale-buffer",
            "a buffer that was read into before is left as it is",
            Stale,
        ),
        Mutant::of(
            "backwards",
            "every second read is one lower",
            Backwards::default(),
        ),
        Mutant::of(
            "times-lag",
            "times are those of the read before",
            LateTimes::default(),
        ),
        Mutant::of(
            "any-buffer",
            "a buffer of any shape is filled as far as it goes",
            AnyBuffer,
        ),
        Mutant::of(
            "error-state-hidden",
            "a group in the error state reads 0",
            ErrorHidden,
        ),
        Mutant::of(
            "error-state-forgotten",
            "reading a group in the error state enables it",
            Forgotten,
        ),
        Mutant::of(
            "error-state-for-ever",
            "a group never leaves the error state",
            ForEver::default(),
        ),
    ]
}

fn times(r: &mut Reading) -> [&mut u64; 4] {
    [
        &mut r.time_enabled,
        &mut r.time_running,
        &mut r.raw_time_enabled,
        &mut r.raw_time_running,
    ]
}

#[derive(Clone)]
struct Falsified(fn(&mut ReadBuf), fn(&mut Reading));

fn whole(name: &'static str, defect: &'static str, falsify: fn(&mut ReadBuf)) -> Mutant {
    Mutant::of(name, defect, Falsified(falsify, |_| {}))
}

fn each(name: &'static str, defect: &'static str, falsify: fn(&mut Reading)) -> Mutant {
    Mutant::of(name, defect, Falsified(|_| {}, falsify))
}

impl Defect for Falsified {
    fn read(&mut self, group: &mut dyn Group, out: &mut ReadBuf) -> Result<()> {
        group.read(out)?;
        (self.0)(out);
        for part in 0..out.parts().len() {
            out[part].iter_mut().for_each(self.1);
        }
        Ok(())
    }
}

#[derive(Clone, Default)]
struct Torn(Option<ReadBuf>);

impl Defect for Torn {
    fn read(&mut self, group: &mut dyn Group, out: &mut ReadBuf) -> Result<()> {
        group.read(out)?;
        let now = out.clone();
        if let Some(before) = &self.0 {
            for part in 0..out.parts().len() {
                for member in (1..out.members()).step_by(2) {
                    out[part][member] = before[part][member];
                }
            }
        }
        self.0 = Some(now);
        Ok(())
    }
}

#[derive(Clone)]
struct Stale;

impl Defect for Stale {
    fn read(&mut self, group: &mut dyn Group, out: &mut ReadBuf) -> Result<()> {
        let used = out.parts().len() * out.members() > 0 && out[0][0].value > 0;
        if used { Ok(()) } else { group.read(out) }
    }
}

#[derive(Clone, Default)]
struct Backwards(bool);

impl Defect for Backwards {
    fn read(&mut self, group: &mut dyn Group, out: &mut ReadBuf) -> Result<()> {
        group.read(out)?;
        self.0 = !self.0;
        if self.0 {
            for reading in &mut out[0] {
                reading.value = reading.value.saturating_sub(1);
            }
        }
        Ok(())
    }
}

#[derive(Clone, Default)]
struct LateTimes(Option<ReadBuf>);

impl Defect for LateTimes {
    fn read(&mut self, group: &mut dyn Group, out: &mut ReadBuf) -> Result<()> {
        group.read(out)?;
        let before = self.0.replace(out.clone());
        for (part, member) in each_place(out) {
            let mut late = before
                .as_ref()
                .map_or(Reading::default(), |b| b[part][member]);
            late.value = out[part][member].value;
            out[part][member] = late;
        }
        Ok(())
    }
}

fn each_place(buf: &ReadBuf) -> impl Iterator<Item = (usize, usize)> + use<> {
    let members = buf.members();
    (0..buf.parts().len()).flat_map(move |part| (0..members).map(move |member| (part, member)))
}

#[derive(Clone)]
struct AnyBuffer;

impl Defect for AnyBuffer {
    fn read(&mut self, group: &mut dyn Group, out: &mut ReadBuf) -> Result<()> {
        let mut own = group.read_buf();
        group.read(&mut own)?;
        for (part, member) in each_place(out) {
            if part < own.parts().len() && member < own.members() {
                out[part][member] = own[part][member];
            }
        }
        Ok(())
    }
}

fn in_error_state(result: &Result<()>) -> bool {
    let kind = result.as_ref().map_err(Error::kind);
    kind == Err(ErrorKind::CounterInErrorState)
}

#[derive(Clone)]
struct ErrorHidden;

impl Defect for ErrorHidden {
    fn read(&mut self, group: &mut dyn Group, out: &mut ReadBuf) -> Result<()> {
        let result = group.read(out);
        if in_error_state(&result) {
            Ok(())
        } else {
            result
        }
    }
}

#[derive(Clone)]
struct Forgotten;

impl Defect for Forgotten {
    fn read(&mut self, group: &mut dyn Group, out: &mut ReadBuf) -> Result<()> {
        let result = group.read(out);
        if in_error_state(&result) && group.enable().is_ok() && group.read(out).is_ok() {
            return Ok(());
        }
        result
    }
}

#[derive(Clone, Default)]
struct ForEver(bool);

impl Defect for ForEver {
    fn read(&mut self, group: &mut dyn Group, out: &mut ReadBuf) -> Result<()> {
        let result = group.read(out);
        self.0 |= in_error_state(&result);
        result
    }

    fn enable(&mut self, group: &mut dyn Group) -> Result<()> {
        // The suite enables before it reads, so whether it is in the error state is asked here.
        let state = group.read(&mut group.read_buf());
        if self.0 || in_error_state(&state) {
            Ok(())
        } else {
            group.enable()
        }
    }
}
