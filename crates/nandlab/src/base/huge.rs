//! Large arrays with random access: zeroed lazily by the kernel, and backed by huge pages where the kernel grants them.

use std::ops::{Deref, DerefMut};

/// A fixed-size array of plain numbers.
///
/// A zeroed array takes no memory for pages never touched. With huge pages a random access, such as a look-up in the
/// map of a large drive, takes one cache miss and no page walk.
#[derive(Debug)]
pub struct Huge<T>(Vec<T>);

impl<T: Clone + Default> Huge<T> {
    /// `len` default values, which have to be zeroes.
    pub(crate) fn zeroed(len: usize) -> Self {
        // The zeroed allocation comes straight from the kernel: no element is written here.
        let vec = vec![T::default(); len];
        #[cfg(target_os = "linux")]
        advise(vec.as_ptr().addr(), size_of::<T>() * len);
        Self(vec)
    }

    /// `len` copies of `value`, written at once, so that a run that has started does not run out of memory here later.
    pub(crate) fn filled(value: T, len: usize) -> Self {
        let mut vec: Vec<T> = Vec::with_capacity(len);
        // The advice comes before the memory is touched, since touched memory is made of small pages already.
        #[cfg(target_os = "linux")]
        advise(vec.as_ptr().addr(), size_of::<T>() * len);
        vec.resize(len, value);
        Self(vec)
    }

    /// Prefetches the element at `index` into the CPU's cache; `index` may be out of range.
    #[inline(always)]
    pub(crate) fn prefetch(&self, index: usize) {
        prefetch(self.0.as_ptr().wrapping_add(index));
    }
}

/// Prefetches the data at `address` into the CPU's cache; `address` need not be readable.
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
        // SAFETY: the range lies inside one live allocation, and the advice does not change its content. If the kernel
        // refuses, the memory stays as it is.
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
