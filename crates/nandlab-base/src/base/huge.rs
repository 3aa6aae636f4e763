//! Large arrays with random access, which the kernel backs with huge pages where it can.
//!
//! Map and OOB are such arrays: they are zeroed lazily and take about 8.3 bytes per physical unit. Age stamps and the
//! arrays per unit of refresh schemes are written at the start, so that a run that has started does not run out of
//! memory.

// The only unsafe code of the crate: hints to processor and kernel.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};

/// A fixed-size array of plain numbers.
///
/// Memory pages of a zeroed array that are never accessed take no memory. With huge pages a random access, such as a
/// look-up in the map of a large drive, usually takes one cache miss and no page walk.
#[derive(Debug)]
pub struct Huge<T>(Vec<T>);

impl<T: Clone> Clone for Huge<T> {
    fn clone(&self) -> Self {
        let mut vec = with_capacity(self.0.len());
        vec.extend_from_slice(&self.0);
        Self(vec)
    }
}

/// A number of which the standard library takes an array of zeros as zeroed memory from the kernel, without writing it. Of
/// other types it writes each element.
pub trait Number: Clone + Default {}

impl Number for u8 {}
impl Number for u32 {}
impl Number for u64 {}

impl<T: Number> Huge<T> {
    /// `len` zeros.
    pub fn zeroed(len: usize) -> Self {
        let vec = vec![T::default(); len];
        #[cfg(target_os = "linux")]
        advise(vec.as_ptr().addr(), size_of::<T>() * len);
        Self(vec)
    }
}

impl<T: Clone> Huge<T> {
    /// `len` copies of `value`. All are written here, so that a lack of memory ends a run at its start, not later.
    pub fn filled(value: T, len: usize) -> Self {
        let mut vec = with_capacity(len);
        vec.resize(len, value);
        Self(vec)
    }

    /// Bytes of the array, those of memory pages included that have never been accessed.
    pub fn bytes(&self) -> u64 {
        size_of_val(self.0.as_slice()) as u64
    }

    /// Prefetches the element at `index` into the CPU's cache; `index` may be out of range.
    #[inline(always)]
    pub fn prefetch(&self, index: usize) {
        prefetch(self.0.as_ptr().wrapping_add(index));
    }

    /// [`Huge::prefetch`] in an array that may be empty: without it the CPU would look for an address that does not exist.
    #[inline(always)]
    pub fn prefetch_if_kept(&self, index: usize) {
        if !self.0.is_empty() {
            self.prefetch(index);
        }
    }
}

/// An empty vector with room for `len` values, which the kernel backs with huge pages where it can.
fn with_capacity<T>(len: usize) -> Vec<T> {
    let vec: Vec<T> = Vec::with_capacity(len);
    // The advice comes before the first access, because accessed memory already consists of small pages.
    #[cfg(target_os = "linux")]
    advise(vec.as_ptr().addr(), size_of::<T>() * len);
    vec
}

/// Prefetches the data at `address` into the CPU's cache; `address` need not be readable.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint. It has no effect on the program's data and never faults.
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
        // rejects the advice, the memory remains as it is.
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
