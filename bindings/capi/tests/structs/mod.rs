//! Structs of the interface as a C program prepares them.

/// All zero.
pub(crate) fn zeroed<T: Copy>() -> T {
    // SAFETY: structs of the interface are numbers and pointers.
    unsafe { std::mem::zeroed() }
}

/// A struct of zeros with its size set, as QUIPU_INIT makes it.
macro_rules! init {
    ($type:ty) => {{
        let mut object: $type = crate::structs::zeroed();
        object.size = size_of::<$type>();
        object
    }};
}
