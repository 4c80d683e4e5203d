//! The end of the process: registers do not end with it, so backends over registers give back what is still open.

use std::mem;
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};

use quipu_hal::Backend;

static BACKENDS: Mutex<Vec<Weak<dyn Backend>>> = Mutex::new(Vec::new());

/// Has a backend give back its registers when the process ends by exit(3) or returns from `main`.
pub(crate) fn gives_back<B: Backend + 'static>(backend: B) -> Arc<dyn Backend> {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        quipu_posix::at_exit(give_back);
    });
    let backend: Arc<dyn Backend> = Arc::new(backend);
    let mut backends = BACKENDS.lock().unwrap_or_else(PoisonError::into_inner);
    backends.retain(|backend| backend.strong_count() > 0);
    backends.push(Arc::downgrade(&backend));
    backend
}

extern "C" fn give_back() {
    // A panic must not leave the end of the process half done.
    let _ = catch_unwind(|| {
        // In a child that was forked while another thread held the lock, it is held for ever.
        let Ok(mut backends) = BACKENDS.try_lock() else {
            return;
        };
        let backends = mem::take(&mut *backends);
        for backend in backends.iter().filter_map(Weak::upgrade) {
            backend.give_back();
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use quipu_hal::{Capabilities, Group, GroupSpec, Result, Target};
    use quipu_scripted::ScriptedGroup;

    use super::*;

    /// Counts how often its registers were given back.
    struct Registers(Arc<AtomicU32>, Capabilities);

    impl Backend for Registers {
        fn name(&self) -> &'static str {
            "registers"
        }

        fn capabilities(&self) -> &Capabilities {
            &self.1
        }

        fn open(&self, spec: &GroupSpec, _: &Target) -> Result<Box<dyn Group>> {
            Ok(Box::new(ScriptedGroup::of(spec)))
        }

        fn give_back(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn all_that_are_still_there_give_back_their_registers_once() {
        let given = [(); 3].map(|()| Arc::new(AtomicU32::new(0)));
        let [first, dropped, last] = given
            .each_ref()
            .map(|count| gives_back(Registers(Arc::clone(count), Capabilities::none())));
        let place = Arc::as_ptr(&dropped).cast::<()>();
        drop(dropped);
        let another = gives_back(Registers(Arc::default(), Capabilities::none()));
        let kept = BACKENDS.lock().expect("no test panics with it");
        let is_kept = kept.iter().any(|backend| backend.as_ptr().cast() == place);
        assert!(!is_kept, "nothing is kept of a backend that is gone");
        drop(kept);
        for _ in 0..2 {
            give_back();
            let given = given.each_ref().map(|count| count.load(Ordering::Relaxed));
            assert_eq!(given, [1, 0, 1]);
        }
        drop((first, last, another));
    }
}
