//! `VerifyingKey`: single and batch verification for either curve.

use partita_groth16::curve::{Bls12381, Bn254};
use partita_groth16::error::Error;
use partita_groth16::verify::{SEED_BYTES, VerifyingKey as Key};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use crate::bytes::Bytes;
use crate::errors::run;
use crate::scalars::CurveName;

enum AnyKey {
    Bls12381(Box<Key<Bls12381>>),
    Bn254(Box<Key<Bn254>>),
}

/// A verifying key, parsed, checked and prepared once.
#[pyclass(frozen, module = "partita_native")]
pub struct VerifyingKey {
    key: AnyKey,
}

#[pymethods]
impl VerifyingKey {
    #[new]
    fn new(py: Python<'_>, curve: CurveName, data: Bytes<'_>) -> PyResult<Self> {
        let data = data.as_slice();
        let key = run(py, || {
            Ok(match curve {
                CurveName::Bls12381 => AnyKey::Bls12381(Box::new(Key::from_bytes(data)?)),
                CurveName::Bn254 => AnyKey::Bn254(Box::new(Key::from_bytes(data)?)),
            })
        })?;
        Ok(Self { key })
    }

    /// Public inputs that a statement has.
    #[getter]
    fn n_public(&self) -> usize {
        match &self.key {
            AnyKey::Bls12381(key) => key.n_public(),
            AnyKey::Bn254(key) => key.n_public(),
        }
    }

    /// Whether the proof holds for the statement.
    fn verify(&self, py: Python<'_>, statement: Bytes<'_>, proof: Bytes<'_>) -> PyResult<bool> {
        let (statement, proof) = (statement.as_slice(), proof.as_slice());
        run(py, || match &self.key {
            AnyKey::Bls12381(key) => key.verify(statement, proof),
            AnyKey::Bn254(key) => key.verify(statement, proof),
        })
    }

    /// A bool for every well-formed (statement, proof), a message for every other.
    fn verify_batch<'py>(
        &self,
        py: Python<'py>,
        items: Vec<(Bytes<'py>, Bytes<'py>)>,
        seed: Bytes<'py>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let seed: &[u8; SEED_BYTES] = seed.as_slice().try_into().map_err(|_| {
            PyValueError::new_err(format!(
                "seed: expected {SEED_BYTES} bytes, found {}",
                seed.as_slice().len()
            ))
        })?;
        let items: Vec<(&[u8], &[u8])> = items
            .iter()
            .map(|(statement, proof)| (statement.as_slice(), proof.as_slice()))
            .collect();
        let verdicts = run(py, || match &self.key {
            AnyKey::Bls12381(key) => key.verify_batch(&items, seed),
            AnyKey::Bn254(key) => key.verify_batch(&items, seed),
        })?;
        Ok(verdicts
            .into_iter()
            .map(|verdict| match verdict {
                Ok(holds) => PyBool::new(py, holds).to_owned().into_any(),
                Err(Error::Scalar { index }) => {
                    PyString::new(py, &format!("statement[{index}]: not below the modulus"))
                        .into_any()
                }
                Err(fault) => PyString::new(py, &fault.to_string()).into_any(),
            })
            .collect())
    }
}
