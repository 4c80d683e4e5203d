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
