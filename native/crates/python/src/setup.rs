//! `ToxicWaste` and `Setup`: a trusted set-up for development.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use partita_groth16::curve::{Bls12381, Bn254, Curve};
use partita_groth16::error::{Error, Result};
use partita_groth16::setup::{Setup as Exponents, SystemParts};
use partita_groth16::toxic::ToxicWaste as Secrets;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::Bytes;
use crate::errors::run;
use crate::key::{MatrixArgument, matrix_bytes, parse_family, parse_query};
use crate::scalars::CurveName;

enum AnySecrets {
    Bls12381(Secrets<<Bls12381 as Curve>::Scalar>),
    Bn254(Secrets<<Bn254 as Curve>::Scalar>),
}

/// The secrets of one set-up, which uses them up.
#[pyclass(frozen, module = "partita_native")]
pub struct ToxicWaste {
    secrets: Mutex<Option<AnySecrets>>,
}

impl ToxicWaste {
    fn of(secrets: AnySecrets) -> Self {
        Self {
            secrets: Mutex::new(Some(secrets)),
        }
    }
}

#[pymethods]
impl ToxicWaste {
    /// From the system's randomness.
    #[staticmethod]
    fn random(py: Python<'_>, curve: CurveName) -> PyResult<Self> {
        run(py, || {
            Ok(Self::of(match curve {
                CurveName::Bls12381 => AnySecrets::Bls12381(Secrets::random()?),
                CurveName::Bn254 => AnySecrets::Bn254(Secrets::random()?),
            }))
        })
    }

    /// From a seed: whoever has the seed has the secrets.
    #[staticmethod]
    fn from_seed(py: Python<'_>, curve: CurveName, seed: Bytes<'_>) -> PyResult<Self> {
        let seed = seed.as_slice();
        run(py, || {
            Ok(Self::of(match curve {
                CurveName::Bls12381 => AnySecrets::Bls12381(Secrets::from_seed(seed)),
                CurveName::Bn254 => AnySecrets::Bn254(Secrets::from_seed(seed)),
            }))
        })
    }

    /// From canonical scalars: α, β, γ, δ, τ.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, curve: CurveName, data: Bytes<'_>) -> PyResult<Self> {
        let data = data.as_slice();
        run(py, || {
            Ok(Self::of(match curve {
                CurveName::Bls12381 => AnySecrets::Bls12381(Secrets::from_bytes(data)?),
                CurveName::Bn254 => AnySecrets::Bn254(Secrets::from_bytes(data)?),
            }))
        })
    }

    fn __repr__(&self) -> &'static str {
        "ToxicWaste(secret)"
    }
}

enum AnySetup {
    Bls12381(Box<Exponents<Bls12381>>),
    Bn254(Box<Exponents<Bn254>>),
}

/// Applies an expression to the set-up of whichever curve it is.
macro_rules! each_curve {
    ($setup:expr, $name:ident => $body:expr) => {
        match $setup {
            AnySetup::Bls12381($name) => $body,
            AnySetup::Bn254($name) => $body,
        }
    };
}

/// The exponents of one key; dropped, their memory goes back to the system.
#[pyclass(frozen, module = "partita_native")]
pub struct Setup {
    setup: AnySetup,
}

fn exponents(parts: &SystemParts<'_>, curve: CurveName, waste: &ToxicWaste) -> Result<AnySetup> {
    let secrets = waste
        .secrets
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take()
        .ok_or_else(|| Error::Value("the toxic waste was used before".to_owned()))?;
    match (curve, secrets) {
        (CurveName::Bls12381, AnySecrets::Bls12381(secrets)) => {
            Exponents::new(parts, &secrets).map(|setup| AnySetup::Bls12381(Box::new(setup)))
        }
        (CurveName::Bn254, AnySecrets::Bn254(secrets)) => {
            Exponents::new(parts, &secrets).map(|setup| AnySetup::Bn254(Box::new(setup)))
        }
        (curve, _) => Err(Error::Value(format!(
            "the toxic waste is of another curve than {}",
            curve.text()
        ))),
    }
}

#[pymethods]
impl Setup {
    /// Computes the exponents of a system's key; uses the toxic waste up.
    #[new]
    #[pyo3(signature = (
        curve, *, family, n_public, n_wires, matrix_a, matrix_b, matrix_c, dictionary, toxic_waste
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        curve: CurveName,
        family: &str,
        n_public: usize,
        n_wires: usize,
        matrix_a: MatrixArgument<'_>,
        matrix_b: MatrixArgument<'_>,
        matrix_c: MatrixArgument<'_>,
        dictionary: Bytes<'_>,
        toxic_waste: &Bound<'_, ToxicWaste>,
    ) -> PyResult<Self> {
        let parts = SystemParts {
            family: parse_family(family)?,
            n_public,
            n_wires,
            matrix_a: matrix_bytes(&matrix_a),
            matrix_b: matrix_bytes(&matrix_b),
            matrix_c: matrix_bytes(&matrix_c),
            dictionary: dictionary.as_slice(),
        };
        let waste = toxic_waste.get();
        let setup = run(py, || exponents(&parts, curve, waste))?;
        Ok(Self { setup })
    }

    /// The size of the key's domain.
    #[getter]
    fn domain_size(&self) -> usize {
        each_curve!(&self.setup, setup => setup.domain_size())
    }

    /// The points that stand alone, by name.
    fn points<'py>(&self, py: Python<'py>) -> HashMap<&'static str, Bound<'py, PyBytes>> {
        let singles = each_curve!(&self.setup, setup => setup.singles());
        [
            ("alpha_g1", &singles.alpha_g1),
            ("beta_g1", &singles.beta_g1),
            ("delta_g1", &singles.delta_g1),
            ("beta_g2", &singles.beta_g2),
            ("gamma_g2", &singles.gamma_g2),
            ("delta_g2", &singles.delta_g2),
        ]
        .map(|(name, point)| (name, PyBytes::new(py, point)))
        .into()
    }

    /// The points of IC.
    fn ic<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        each_curve!(&self.setup, setup => {
            PyBytes::new_with(py, setup.ic_bytes(), |out| run(py, || setup.write_ic(out)))
        })
    }

    /// The points of a query.
    fn query<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let query = parse_query(name)?;
        each_curve!(&self.setup, setup => {
            PyBytes::new_with(py, setup.query_bytes(query), |out| {
                run(py, || setup.write_query(query, out))
            })
        })
    }

    /// Bytes that exponents and tables take.
    #[getter]
    fn size_bytes(&self) -> usize {
        each_curve!(&self.setup, setup => setup.size_bytes())
    }
}
