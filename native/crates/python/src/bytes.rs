//! Read access to any Python object that gives its bytes as one contiguous buffer.

use std::mem::MaybeUninit;

use pyo3::ffi;
use pyo3::prelude::*;

/// A buffer held open; its memory stays where it is until the holder is dropped.
pub struct Bytes<'py> {
    view: ffi::Py_buffer,
    // The buffer is released with the lock held.
    _py: Python<'py>,
}

impl<'py> Bytes<'py> {
    /// The bytes, readable also while the interpreter lock is released.
    pub fn as_slice(&self) -> &[u8] {
        if self.view.len <= 0 {
            return &[];
        }
        // SAFETY: the exporter keeps `len` contiguous bytes at `buf` until the view is released;
        // that nobody writes to them meanwhile is the module's stated rule.
        unsafe { std::slice::from_raw_parts(self.view.buf.cast::<u8>(), self.view.len as usize) }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Bytes<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let mut view = MaybeUninit::<ffi::Py_buffer>::uninit();
        // SAFETY: the lock is held and `view` is written on success only, which is checked.
        let view = unsafe {
            if ffi::PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), ffi::PyBUF_SIMPLE) != 0 {
                return Err(PyErr::fetch(object.py()));
            }
            view.assume_init()
        };
        Ok(Self {
            view,
            _py: object.py(),
        })
    }
}

impl Drop for Bytes<'_> {
    fn drop(&mut self) {
        // SAFETY: the view was filled by PyObject_GetBuffer, and the lock is held.
        unsafe { ffi::PyBuffer_Release(&raw mut self.view) };
    }
}
