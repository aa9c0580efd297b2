//! The module's exceptions, and the one way into native work: released lock, caught panics.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use partita_groth16::error::{Error, Result};
use pyo3::create_exception;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    partita_native,
    NativePanic,
    PyRuntimeError,
    "Native code panicked: a defect of the extension; the process may go on."
);
create_exception!(
    partita_native,
    PointError,
    PyValueError,
    "args = (index, why): bytes that are no point of the group."
);
create_exception!(
    partita_native,
    ScalarError,
    PyValueError,
    "args = (index, why): a field element that is not below its modulus."
);
create_exception!(
    partita_native,
    ProofError,
    PyValueError,
    "args = (element, why): a malformed proof; element is \"A\", \"B\", \"C\" or \"length\"."
);

/// The Python exception of an error.
pub fn to_python(error: Error) -> PyErr {
    match error {
        Error::Memory { .. } => PyMemoryError::new_err(error.to_string()),
        Error::Point { index, fault } => PointError::new_err((index, fault.text())),
        Error::Scalar { index } => ScalarError::new_err((index, "not below the modulus")),
        Error::Proof { element, why } => ProofError::new_err((element, why)),
        Error::Value(text) => PyValueError::new_err(text),
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Runs native work without the interpreter lock and turns its panics into `NativePanic`.
pub fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(outcome) => outcome.map_err(to_python),
        Err(payload) => Err(NativePanic::new_err(panic_text(payload.as_ref()))),
    }
}
