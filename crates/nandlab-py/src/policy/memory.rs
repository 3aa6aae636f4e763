//! Views of a drive's state for Python: numpy arrays over the drive's own memory.
//!
//! A [`Memory`] exports the bytes of a slice, read-only, and numpy arrays are strided over these bytes. Making an array
//! costs more than a decision, so the arrays of a lane are made once and used for all decisions of the lane.
//!
//! The arrays must not be used after the call for which they were given: the drive changes the memory then. After each
//! call the references to the arrays are counted. A slice of an array refers to the array, so it is counted too. If
//! Python has kept a reference, the run ends, and the memory of the drive is kept until the last reference is gone
//! ([`Detained`](crate::any_drive)).

#![allow(unsafe_code, reason = "the buffer protocol of Python takes and fills raw pointers")]

use nandlab::write_cache::eviction::CachedOrder;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The bytes of a slice, for Python.
#[pyclass(frozen, module = "nandlab._core")]
pub(crate) struct Memory {
    address: usize,
    bytes: usize,
}

#[pymethods]
impl Memory {
    /// Fills in a request for the bytes.
    ///
    /// # Safety
    /// Python calls this function with a valid `view`. The bytes may be read while the slice exists and is not written:
    /// [`Views::all_returned`] finds whether Python can still read them after a call.
    unsafe fn __getbuffer__(slf: &Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let this = slf.get();
        let first = std::ptr::with_exposed_provenance_mut::<c_void>(this.address);
        // SAFETY: `view` is valid; the call takes a reference to `slf`, and refuses a request to write.
        match unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), first, this.bytes as isize, 1, flags) } {
            0 => Ok(()),
            _ => Err(PyErr::take(slf.py()).unwrap_or_else(|| PyBufferError::new_err("read-only"))),
        }
    }
}

/// A column of a slice of structs: the type of its values as numpy writes it, and the offset of the field in bytes.
pub(crate) struct Column {
    pub(crate) dtype: &'static str,
    pub(crate) offset: usize,
}

/// Numpy arrays over the fields of a slice of structs.
pub(crate) struct Views {
    /// The address and the length of the slice.
    of: (usize, usize),
    memory: Py<Memory>,
    arrays: Vec<Py<PyAny>>,
}

impl Views {
    /// Arrays of `columns` over `slice`.
    pub(crate) fn new<T>(py: Python<'_>, slice: &[T], columns: &[Column]) -> PyResult<Self> {
        let of = Self::place(slice);
        let memory = Py::new(py, Memory { address: of.0, bytes: size_of_val(slice) })?;
        let ndarray = py.import("numpy")?.getattr("ndarray")?;
        let array = |column: &Column| {
            let about = PyDict::new(py);
            about.set_item("shape", PyTuple::new(py, [slice.len()])?)?;
            about.set_item("dtype", column.dtype)?;
            about.set_item("buffer", &memory)?;
            about.set_item("offset", column.offset)?;
            about.set_item("strides", PyTuple::new(py, [size_of::<T>()])?)?;
            Ok(ndarray.call((), Some(&about))?.unbind())
        };
        let arrays = columns.iter().map(array).collect::<PyResult<_>>()?;
        Ok(Self { of, memory, arrays })
    }

    /// The address of a slice, at which Python may read it until the next change of the slice, and its length.
    fn place<T>(slice: &[T]) -> (usize, usize) {
        (slice.as_ptr().expose_provenance(), slice.len())
    }

    /// Whether the arrays are those of this slice. Allows Python to read the slice.
    pub(crate) fn are_of<T>(&self, slice: &[T]) -> bool {
        self.of == Self::place(slice)
    }

    /// The array of the column with this number.
    pub(crate) fn array(&self, py: Python<'_>, number: usize) -> Py<PyAny> {
        self.arrays[number].clone_ref(py)
    }

    /// Whether Python has kept no reference to the memory. `holders`: the references to each array that the core has
    /// beside this one.
    pub(crate) fn all_returned(&self, py: Python<'_>, holders: usize) -> bool {
        references(self.memory.bind(py)) == self.arrays.len() + 1
            && self.arrays.iter().all(|array| references(array.bind(py)) == holders + 1)
    }

    /// Keeps the references, so that [`is_any_kept`] finds when Python has dropped its own.
    pub(crate) fn keep_watch(&self, py: Python<'_>) {
        let memory = self.memory.clone_ref(py);
        KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
    }
}

/// The number of references to an object.
pub(crate) fn references<T>(object: &Bound<'_, T>) -> usize {
    // SAFETY: `object` is a reference to the object, so the object exists.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) as usize }
}

/// Memory of drives to which Python has kept references.
static KEPT: Mutex<Vec<Py<Memory>>> = Mutex::new(Vec::new());

/// Whether Python refers to the memory of a drive beyond a call. A drive that ends meanwhile must keep its memory.
pub(crate) fn is_any_kept(py: Python<'_>) -> bool {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.retain(|memory| references(memory.bind(py)) > 1);
    !kept.is_empty()
}

/// A slice that Python may look at during a call only. Afterwards there is none.
pub(crate) struct LentSlice<T> {
    first: AtomicPtr<T>,
    len: AtomicUsize,
}

impl<T> Default for LentSlice<T> {
    fn default() -> Self {
        Self { first: AtomicPtr::default(), len: AtomicUsize::new(0) }
    }
}

impl<T> LentSlice<T> {
    /// Lends `slice` while `during` runs.
    pub(crate) fn lend<R>(&self, slice: &[T], during: impl FnOnce() -> R) -> R {
        struct Return<'a, T>(&'a LentSlice<T>);
        impl<T> Drop for Return<'_, T> {
            fn drop(&mut self) {
                self.0.first.store(std::ptr::null_mut(), Ordering::Relaxed);
            }
        }
        self.len.store(slice.len(), Ordering::Relaxed);
        self.first.store(slice.as_ptr().cast_mut(), Ordering::Relaxed);
        let _return = Return(self);
        during()
    }

    /// What `look` finds in the slice; `None` outside of a call that lends it.
    pub(crate) fn with<R>(&self, look: impl FnOnce(&[T]) -> R) -> Option<R> {
        let first = self.first.load(Ordering::Relaxed);
        if first.is_null() {
            return None;
        }
        // SAFETY: the pointer and the length are those of a reference which outlives `lend`. The interpreter's lock is
        // held here, as `look` calls no Python, and when `lend` ends, so `lend` does not end meanwhile.
        Some(look(unsafe { std::slice::from_raw_parts(first, self.len.load(Ordering::Relaxed)) }))
    }
}

/// The order of a cache that Python may look at during a call only. Afterwards there is none.
#[derive(Default)]
pub(crate) struct Borrowed(AtomicPtr<CachedOrder<'static>>);

impl Borrowed {
    /// Lends `order` while `during` runs.
    pub(crate) fn lend<R>(&self, order: &CachedOrder<'_>, during: impl FnOnce() -> R) -> R {
        struct Return<'a>(&'a AtomicPtr<CachedOrder<'static>>);
        impl Drop for Return<'_> {
            fn drop(&mut self) {
                self.0.store(std::ptr::null_mut(), Ordering::Relaxed);
            }
        }
        self.0.store(std::ptr::from_ref(order).cast_mut().cast(), Ordering::Relaxed);
        let _return = Return(&self.0);
        during()
    }

    /// What `look` finds in the order; `None` outside of a call that lends it.
    pub(crate) fn with<R>(&self, look: impl FnOnce(&CachedOrder<'_>) -> R) -> Option<R> {
        let order = self.0.load(Ordering::Relaxed);
        // SAFETY: the pointer is null, or that of a reference which outlives `lend`. The interpreter's lock is held
        // here, as `look` calls no Python, and when `lend` ends, so `lend` does not end meanwhile.
        unsafe { order.as_ref() }.map(look)
    }
}
