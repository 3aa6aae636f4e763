//! Large arrays that are touched at random: zeroed lazily by the kernel, and backed by huge pages where it can.

use std::ops::{Deref, DerefMut};

/// A fixed-size array of plain numbers, all zero at first.
///
/// Pages never touched take no memory. Huge pages keep a random access at one cache miss instead of a miss and a
/// page walk, which is what the maps of a large drive live by.
#[derive(Debug)]
pub struct Huge<T>(Vec<T>);

impl<T: Clone + Default> Huge<T> {
    /// `len` zeroes.
    pub(crate) fn zeroed(len: usize) -> Self {
        // The zeroed allocation comes straight from the kernel: nothing is written here.
        let vec = vec![T::default(); len];
        #[cfg(target_os = "linux")]
        advise(vec.as_ptr().addr(), size_of::<T>() * len);
        Self(vec)
    }

    /// `len` times `value`, written at once: a run that has begun has this memory.
    pub(crate) fn filled(value: T, len: usize) -> Self {
        let mut vec: Vec<T> = Vec::with_capacity(len);
        // Before the memory is touched, else it is made of small pages already.
        #[cfg(target_os = "linux")]
        advise(vec.as_ptr().addr(), size_of::<T>() * len);
        vec.resize(len, value);
        Self(vec)
    }

    /// Asks the cache for the element at `index`, which will be needed soon; any index will do.
    #[inline(always)]
    pub(crate) fn prefetch(&self, index: usize) {
        prefetch(self.0.as_ptr().wrapping_add(index));
    }
}

/// Asks the cache for what is at `address`, which need not be readable.
#[inline(always)]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint; it reads nothing the program can see and never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(target_os = "linux")]
fn advise(address: usize, bytes: usize) {
    const HUGE_PAGE: usize = 2 << 20;
    let start = address.next_multiple_of(HUGE_PAGE);
    let end = (address + bytes) / HUGE_PAGE * HUGE_PAGE;
    if start < end {
        // SAFETY: the range lies inside one live allocation, and the advice does not change its content.
        // A kernel that refuses leaves things as they were.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
}

impl<T> Deref for Huge<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for Huge<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}
