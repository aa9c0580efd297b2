//! The module's free functions.

use std::collections::HashMap;

use partita_groth16::curve::{Bls12381, Bn254, Curve, Modulus};
use partita_groth16::error::Result;
use partita_groth16::field::{Direction, read_scalars};
use partita_groth16::sparse::{self, Matrix, MatrixBytes};
use partita_groth16::{key, stamps as progress};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::Bytes;
use crate::errors::run;
use crate::key::{MatrixArgument, matrix_bytes};
use crate::scalars::{CurveName, Field, Scalars};

/// Version, compiler, target, processor features that matter, threads.
#[pyfunction]
pub fn build_info() -> HashMap<String, String> {
    HashMap::from([
        ("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("rustc".to_owned(), env!("PARTITA_RUSTC").to_owned()),
        ("target".to_owned(), env!("PARTITA_TARGET").to_owned()),
        ("features".to_owned(), cpu_features().join(" ")),
        (
            "threads".to_owned(),
            rayon::current_num_threads().to_string(),
        ),
    ])
}

#[cfg(target_arch = "x86_64")]
fn cpu_features() -> Vec<&'static str> {
    let mut found = Vec::new();
    macro_rules! detect {
        ($($name:tt),*) => {
            $(if is_x86_feature_detected!($name) {
                found.push($name);
            })*
        };
    }
    detect!("adx", "bmi2", "avx2", "avx512f", "avx512ifma", "sha");
    found
}

#[cfg(not(target_arch = "x86_64"))]
fn cpu_features() -> Vec<&'static str> {
    Vec::new()
}

/// Sets the number of threads; refused once the pool runs with another number.
#[pyfunction]
pub fn set_threads(n: usize) -> PyResult<()> {
    if n == 0 {
        return Err(PyValueError::new_err(
            "threads: 0 is not a number of threads",
        ));
    }
    let outcome = rayon::ThreadPoolBuilder::new()
        .num_threads(n)
        .thread_name(|i| format!("partita-native-{i}"))
        .build_global();
    let running = rayon::current_num_threads();
    if outcome.is_err() && running != n {
        return Err(PyValueError::new_err(format!(
            "threads: {running} are already running, call this before any work"
        )));
    }
    Ok(())
}

/// Tiles of long stages done since the process began.
#[pyfunction]
pub fn stamps() -> u64 {
    progress::count()
}

/// Panics on a thread of the pool, as a defect would.
#[pyfunction]
pub fn panic_for_test(py: Python<'_>, message: String) -> PyResult<()> {
    run(py, || {
        rayon::join(|| panic!("{message}"), || ());
        Ok(())
    })
}

fn first_unsatisfied<C: Curve<Scalar: Field>>(
    [a, b, c]: [MatrixBytes<'_>; 3],
    dictionary: &[u8],
    witness: &Scalars,
) -> Result<Option<usize>> {
    let dictionary = read_scalars::<C::Scalar>(dictionary)?;
    witness.with(|witness| {
        let matrix = |name, bytes| Matrix::new(name, bytes, witness.len(), dictionary.len());
        let (a, b, c) = (
            matrix("matrix_a", a)?,
            matrix("matrix_b", b)?,
            matrix("matrix_c", c)?,
        );
        sparse::unsatisfied_row([&a, &b, &c], &dictionary, witness)
    })
}

/// The first row with (A·w)(B·w) ≠ C·w, or None.
#[pyfunction]
pub fn unsatisfied_row(
    py: Python<'_>,
    curve: CurveName,
    matrix_a: MatrixArgument<'_>,
    matrix_b: MatrixArgument<'_>,
    matrix_c: MatrixArgument<'_>,
    dictionary: Bytes<'_>,
    w: &Bound<'_, Scalars>,
) -> PyResult<Option<usize>> {
    let matrices = [
        matrix_bytes(&matrix_a),
        matrix_bytes(&matrix_b),
        matrix_bytes(&matrix_c),
    ];
    let (dictionary, w) = (dictionary.as_slice(), w.get());
    run(py, || match curve {
        CurveName::Bls12381 => first_unsatisfied::<Bls12381>(matrices, dictionary, w),
        CurveName::Bn254 => first_unsatisfied::<Bn254>(matrices, dictionary, w),
    })
}

/// A group by name.
#[derive(Clone, Copy)]
pub enum GroupName {
    G1,
    G2,
}

impl<'a, 'py> FromPyObject<'a, 'py> for GroupName {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<String>()?.as_str() {
            "g1" => Ok(Self::G1),
            "g2" => Ok(Self::G2),
            other => Err(PyValueError::new_err(format!(
                "group {other:?} is not one of \"g1\", \"g2\""
            ))),
        }
    }
}

/// Calls a function of `key` for the group that the two names mean.
macro_rules! each_group {
    ($curve:expr, $group:expr, $function:ident($($argument:expr),*)) => {
        match ($curve, $group) {
            (CurveName::Bls12381, GroupName::G1) => {
                key::$function::<<Bls12381 as Curve>::G1>($($argument),*)
            }
            (CurveName::Bls12381, GroupName::G2) => {
                key::$function::<<Bls12381 as Curve>::G2>($($argument),*)
            }
            (CurveName::Bn254, GroupName::G1) => {
                key::$function::<<Bn254 as Curve>::G1>($($argument),*)
            }
            (CurveName::Bn254, GroupName::G2) => {
                key::$function::<<Bn254 as Curve>::G2>($($argument),*)
            }
        }
    };
}

/// Σ scalars[i] · points[i] of a few points, as one stored affine point.
#[pyfunction]
pub fn lincomb<'py>(
    py: Python<'py>,
    curve: CurveName,
    group: GroupName,
    points: Bytes<'py>,
    scalars: Bytes<'py>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (points, scalars) = (points.as_slice(), scalars.as_slice());
    let sum = run(py, || {
        each_group!(curve, group, linear_combination(points, scalars))
    })?;
    Ok(PyBytes::new(py, &sum))
}

/// Checks coordinates, equation and order of one stored point.
#[pyfunction]
pub fn check_point(
    py: Python<'_>,
    curve: CurveName,
    group: GroupName,
    point: Bytes<'_>,
) -> PyResult<()> {
    let point = point.as_slice();
    run(py, || each_group!(curve, group, check_point(point)))
}

fn converted<'py>(
    py: Python<'py>,
    curve: CurveName,
    field: &str,
    direction: Direction,
    data: &Bytes<'py>,
) -> PyResult<Bound<'py, PyBytes>> {
    let modulus = match field {
        "q" => Modulus::Base,
        "r" => Modulus::Scalar,
        other => {
            return Err(PyValueError::new_err(format!(
                "field {other:?} is not one of \"q\", \"r\""
            )));
        }
    };
    let data = data.as_slice();
    PyBytes::new_with(py, data.len(), |out| {
        run(py, || match curve {
            CurveName::Bls12381 => Bls12381::convert(modulus, direction, data, out),
            CurveName::Bn254 => Bn254::convert(modulus, direction, data, out),
        })
    })
}

/// value·R → value, for every element.
#[pyfunction]
pub fn from_montgomery<'py>(
    py: Python<'py>,
    curve: CurveName,
    field: &str,
    data: Bytes<'py>,
) -> PyResult<Bound<'py, PyBytes>> {
    converted(py, curve, field, Direction::FromMontgomery, &data)
}

/// value → value·R, for every element.
#[pyfunction]
pub fn to_montgomery<'py>(
    py: Python<'py>,
    curve: CurveName,
    field: &str,
    data: Bytes<'py>,
) -> PyResult<Bound<'py, PyBytes>> {
    converted(py, curve, field, Direction::ToMontgomery, &data)
}
