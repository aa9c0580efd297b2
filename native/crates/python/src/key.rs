//! `ProvingKey`: a key of either curve and its stages.

use std::collections::HashMap;

use partita_groth16::curve::{Bls12381, Bn254, Curve};
use partita_groth16::error::{Error, Result};
use partita_groth16::field::Family;
use partita_groth16::key::{KeyParts, ProvingKey as Key, Query};
use partita_groth16::sparse::MatrixBytes;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::Bytes;
use crate::errors::run;
use crate::scalars::{CurveName, Field, Scalars};

/// (row_ptr, wire, coef)
pub type MatrixArgument<'py> = (Bytes<'py>, Bytes<'py>, Bytes<'py>);

/// The matrix's bytes.
pub fn matrix_bytes<'a>((row_ptr, wire, coefficient): &'a MatrixArgument<'_>) -> MatrixBytes<'a> {
    MatrixBytes {
        row_ptr: row_ptr.as_slice(),
        wire: wire.as_slice(),
        coefficient: coefficient.as_slice(),
    }
}

pub fn parse_family(name: &str) -> PyResult<Family> {
    match name {
        "snarkjs" => Ok(Family::Snarkjs),
        "bellperson" => Ok(Family::Bellperson),
        other => Err(PyValueError::new_err(format!(
            "family {other:?} is not one of \"snarkjs\", \"bellperson\""
        ))),
    }
}

pub fn parse_query(name: &str) -> PyResult<Query> {
    match name {
        "a" => Ok(Query::A),
        "b1" => Ok(Query::B1),
        "b2" => Ok(Query::B2),
        "c" => Ok(Query::C),
        "h" => Ok(Query::H),
        other => Err(PyValueError::new_err(format!(
            "query {other:?} is not one of \"a\", \"b1\", \"b2\", \"c\", \"h\""
        ))),
    }
}

enum AnyKey {
    Bls12381(Box<Key<Bls12381>>),
    Bn254(Box<Key<Bn254>>),
}

/// Applies an expression to the key of whichever curve it is.
macro_rules! each_curve {
    ($key:expr, $name:ident => $body:expr) => {
        match $key {
            AnyKey::Bls12381($name) => $body,
            AnyKey::Bn254($name) => $body,
        }
    };
}

/// A proving key held in Rust's memory.
#[pyclass(frozen, module = "partita_native")]
pub struct ProvingKey {
    key: AnyKey,
}

type ScalarsTriple = (Scalars, Scalars, Option<Scalars>);

fn evaluate<C: Curve<Scalar: Field>>(key: &Key<C>, witness: &Scalars) -> Result<ScalarsTriple> {
    let (a, b, c) = witness.with(|values| key.evaluate(values))?;
    let wrap = |values| Scalars::new(C::Scalar::wrap(values));
    Ok((wrap(a), wrap(b), c.map(wrap)))
}

fn quotient<C: Curve<Scalar: Field>>(
    key: &Key<C>,
    a: &Scalars,
    b: &Scalars,
    c: Option<&Scalars>,
) -> Result<Scalars> {
    let size = key.quotient().size();
    // Checked before anything is taken, so that a refused call leaves its arguments usable.
    for values in [Some(a), Some(b), c].into_iter().flatten() {
        values.with::<C::Scalar, ()>(|values| {
            if values.len() == size {
                return Ok(());
            }
            Err(Error::Value(format!(
                "{} scalars for a domain of {size}",
                values.len()
            )))
        })?;
    }
    let h = key
        .quotient()
        .compute(a.take()?, b.take()?, c.map(Scalars::take).transpose()?)?;
    Ok(Scalars::new(C::Scalar::wrap(h)))
}

#[pymethods]
impl ProvingKey {
    /// Copies the parts; checks that they fit together, not the points.
    #[new]
    #[pyo3(signature = (
        curve, *, n_public, n_wires, domain_size, family, matrix_a, matrix_b, matrix_c=None,
        dictionary, queries
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        curve: CurveName,
        n_public: usize,
        n_wires: usize,
        domain_size: usize,
        family: &str,
        matrix_a: MatrixArgument<'_>,
        matrix_b: MatrixArgument<'_>,
        matrix_c: Option<MatrixArgument<'_>>,
        dictionary: Bytes<'_>,
        queries: HashMap<String, Bytes<'_>>,
    ) -> PyResult<Self> {
        let query = |name: &str| {
            queries
                .get(name)
                .map(Bytes::as_slice)
                .ok_or_else(|| PyKeyError::new_err(format!("queries lacks {name:?}")))
        };
        let parts = KeyParts {
            family: parse_family(family)?,
            n_public,
            n_wires,
            domain_size,
            matrix_a: matrix_bytes(&matrix_a),
            matrix_b: matrix_bytes(&matrix_b),
            matrix_c: matrix_c.as_ref().map(matrix_bytes),
            dictionary: dictionary.as_slice(),
            query_a: query("a")?,
            query_b1: query("b1")?,
            query_b2: query("b2")?,
            query_c: query("c")?,
            query_h: query("h")?,
        };
        let key = run(py, || {
            Ok(match curve {
                CurveName::Bls12381 => AnyKey::Bls12381(Box::new(Key::new(&parts)?)),
                CurveName::Bn254 => AnyKey::Bn254(Box::new(Key::new(&parts)?)),
            })
        })?;
        Ok(Self { key })
    }

    /// Checks coordinates, equation and order of every point of a query.
    fn check_points(&self, py: Python<'_>, query: &str) -> PyResult<()> {
        let query = parse_query(query)?;
        run(
            py,
            || each_curve!(&self.key, key => key.check_points(query)),
        )
    }

    /// (A·w, B·w, C·w or None), each padded to the domain.
    fn evaluate(&self, py: Python<'_>, w: &Bound<'_, Scalars>) -> PyResult<ScalarsTriple> {
        let w = w.get();
        run(py, || each_curve!(&self.key, key => evaluate(key, w)))
    }

    /// The H scalars in the family's form; takes a, b and c, which are released by it.
    #[pyo3(signature = (a, b, c=None))]
    fn quotient(
        &self,
        py: Python<'_>,
        a: &Bound<'_, Scalars>,
        b: &Bound<'_, Scalars>,
        c: Option<&Bound<'_, Scalars>>,
    ) -> PyResult<Scalars> {
        let (a, b, c) = (a.get(), b.get(), c.map(Bound::get));
        run(py, || each_curve!(&self.key, key => quotient(key, a, b, c)))
    }

    /// Σ scalars[start + i] · query[i] for i below count, as one stored affine point.
    fn msm<'py>(
        &self,
        py: Python<'py>,
        query: &str,
        scalars: &Bound<'py, Scalars>,
        start: usize,
        count: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let query = parse_query(query)?;
        let scalars = scalars.get();
        let point = run(py, || {
            each_curve!(
                &self.key,
                key => scalars.with(|values| key.msm(query, values, start, count))
            )
        })?;
        Ok(PyBytes::new(py, &point))
    }

    /// Bytes that the key takes.
    #[getter]
    fn size_bytes(&self) -> usize {
        each_curve!(&self.key, key => key.size_bytes())
    }
}
