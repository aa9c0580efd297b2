//! `Scalars`: one vector of field elements in Rust's memory, which Python only passes on.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use partita_groth16::error::{Error, Result};
use partita_groth16::field::{
    Bls12381Scalar, Bn254Scalar, SCALAR_BYTES, ScalarField, read_scalars, write_scalars,
};
use partita_groth16::memory::Mapped;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::Bytes;
use crate::errors::run;

/// A curve by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveName {
    Bls12381,
    Bn254,
}

impl CurveName {
    pub const fn text(self) -> &'static str {
        match self {
            Self::Bls12381 => "bls12-381",
            Self::Bn254 => "bn254",
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for CurveName {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<String>()?.as_str() {
            "bls12-381" => Ok(Self::Bls12381),
            "bn254" => Ok(Self::Bn254),
            other => Err(PyValueError::new_err(format!(
                "curve {other:?} is not one of \"bls12-381\", \"bn254\""
            ))),
        }
    }
}

/// The elements, of either curve.
pub enum Vector {
    Bls12381(Mapped<Bls12381Scalar>),
    Bn254(Mapped<Bn254Scalar>),
}

impl Vector {
    fn curve(&self) -> CurveName {
        match self {
            Self::Bls12381(_) => CurveName::Bls12381,
            Self::Bn254(_) => CurveName::Bn254,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Bls12381(values) => values.len(),
            Self::Bn254(values) => values.len(),
        }
    }

    fn size_bytes(&self) -> usize {
        match self {
            Self::Bls12381(values) => values.size_bytes(),
            Self::Bn254(values) => values.size_bytes(),
        }
    }
}

/// A field whose vectors [`Vector`] holds.
pub trait Field: ScalarField {
    const CURVE: CurveName;

    fn wrap(values: Mapped<Self>) -> Vector;
    fn view(vector: &Vector) -> Option<&Mapped<Self>>;
    fn unwrap(vector: Vector) -> Option<Mapped<Self>>;
}

impl Field for Bls12381Scalar {
    const CURVE: CurveName = CurveName::Bls12381;

    fn wrap(values: Mapped<Self>) -> Vector {
        Vector::Bls12381(values)
    }
    fn view(vector: &Vector) -> Option<&Mapped<Self>> {
        match vector {
            Vector::Bls12381(values) => Some(values),
            Vector::Bn254(_) => None,
        }
    }
    fn unwrap(vector: Vector) -> Option<Mapped<Self>> {
        match vector {
            Vector::Bls12381(values) => Some(values),
            Vector::Bn254(_) => None,
        }
    }
}

impl Field for Bn254Scalar {
    const CURVE: CurveName = CurveName::Bn254;

    fn wrap(values: Mapped<Self>) -> Vector {
        Vector::Bn254(values)
    }
    fn view(vector: &Vector) -> Option<&Mapped<Self>> {
        match vector {
            Vector::Bn254(values) => Some(values),
            Vector::Bls12381(_) => None,
        }
    }
    fn unwrap(vector: Vector) -> Option<Mapped<Self>> {
        match vector {
            Vector::Bn254(values) => Some(values),
            Vector::Bls12381(_) => None,
        }
    }
}

/// One vector of scalars; `release` gives its memory back to the system at once.
#[pyclass(frozen, module = "partita_native")]
pub struct Scalars {
    vector: RwLock<Option<Vector>>,
}

fn released() -> Error {
    Error::Value("the scalars were released".to_owned())
}

fn other_curve(expected: CurveName, found: CurveName) -> Error {
    Error::Value(format!(
        "scalars of {}, expected {}",
        found.text(),
        expected.text()
    ))
}

impl Scalars {
    pub fn new(vector: Vector) -> Self {
        Self {
            vector: RwLock::new(Some(vector)),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Option<Vector>> {
        // A panic while the lock is held leaves the vector as it was: writers only take it.
        self.vector.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `f` with the elements, which stay mapped meanwhile; called without the interpreter
    /// lock.
    pub fn with<F: Field, T>(&self, f: impl FnOnce(&[F]) -> Result<T>) -> Result<T> {
        let guard = self.read();
        let vector = guard.as_ref().ok_or_else(released)?;
        let values = F::view(vector).ok_or_else(|| other_curve(F::CURVE, vector.curve()))?;
        f(values)
    }

    /// Takes the elements out; later use finds them released. Called without the interpreter lock.
    pub fn take<F: Field>(&self) -> Result<Mapped<F>> {
        let mut guard = self.vector.write().unwrap_or_else(PoisonError::into_inner);
        let curve = guard.as_ref().ok_or_else(released)?.curve();
        if curve != F::CURVE {
            return Err(other_curve(F::CURVE, curve));
        }
        guard.take().and_then(F::unwrap).ok_or_else(released)
    }

    fn measure<T: Send>(&self, py: Python<'_>, f: impl Fn(&Vector) -> T + Send) -> PyResult<T> {
        run(py, || self.read().as_ref().map(f).ok_or_else(released))
    }
}

#[pymethods]
impl Scalars {
    /// Reads canonical little-endian scalars of 32 bytes, checking each.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, curve: CurveName, data: Bytes<'_>) -> PyResult<Self> {
        let data = data.as_slice();
        let vector = run(py, || match curve {
            CurveName::Bls12381 => read_scalars(data).map(Vector::Bls12381),
            CurveName::Bn254 => read_scalars(data).map(Vector::Bn254),
        })?;
        Ok(Self::new(vector))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.measure(py, Vector::len)
    }

    /// The canonical little-endian bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let len = self.measure(py, Vector::len)?;
        PyBytes::new_with(py, len * SCALAR_BYTES, |out| {
            run(py, || {
                match self.read().as_ref().ok_or_else(released)? {
                    Vector::Bls12381(values) => write_scalars(values, out),
                    Vector::Bn254(values) => write_scalars(values, out),
                }
                Ok(())
            })
        })
    }

    /// Bytes mapped for the vector.
    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.measure(py, Vector::size_bytes)
    }

    /// The curve's name.
    #[getter]
    fn curve(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.measure(py, |vector| vector.curve().text())
    }

    /// Unmaps the vector, once calls that read it have ended; may be called again.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || {
            drop(
                self.vector
                    .write()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take(),
            );
            Ok(())
        })
    }
}
