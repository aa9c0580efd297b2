//! Functions over whole vectors of points, for keys that are read piece by piece.

use partita_groth16::curve::{Bls12381, Bn254, Curve};
use partita_groth16::error::Result;
use partita_groth16::points;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::Bytes;
use crate::errors::run;
use crate::functions::GroupName;
use crate::scalars::CurveName;

/// Calls a function of `points` for the group that the two names mean.
macro_rules! each_group {
    ($curve:expr, $group:expr, $function:ident($($argument:expr),*)) => {
        match ($curve, $group) {
            (CurveName::Bls12381, GroupName::G1) => {
                points::$function::<<Bls12381 as Curve>::G1>($($argument),*)
            }
            (CurveName::Bls12381, GroupName::G2) => {
                points::$function::<<Bls12381 as Curve>::G2>($($argument),*)
            }
            (CurveName::Bn254, GroupName::G1) => {
                points::$function::<<Bn254 as Curve>::G1>($($argument),*)
            }
            (CurveName::Bn254, GroupName::G2) => {
                points::$function::<<Bn254 as Curve>::G2>($($argument),*)
            }
        }
    };
}

/// Checks coordinates, equation and order of stored points.
#[pyfunction]
pub fn check_points(
    py: Python<'_>,
    curve: CurveName,
    group: GroupName,
    points: Bytes<'_>,
) -> PyResult<()> {
    let points = points.as_slice();
    run(py, || each_group!(curve, group, check_stored(points)))
}

fn converted<'py>(
    py: Python<'py>,
    data: &[u8],
    convert: impl FnOnce(&[u8], &mut [u8]) -> Result<()> + Send,
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, data.len(), |out| run(py, || convert(data, out)))
}

/// Plain points, checked, in stored form.
#[pyfunction]
pub fn points_from_plain<'py>(
    py: Python<'py>,
    curve: CurveName,
    group: GroupName,
    points: Bytes<'py>,
) -> PyResult<Bound<'py, PyBytes>> {
    converted(py, points.as_slice(), |plain, stored| {
        each_group!(curve, group, plain_to_stored(plain, stored))
    })
}

/// Stored points, not checked, in plain form.
#[pyfunction]
pub fn points_to_plain<'py>(
    py: Python<'py>,
    curve: CurveName,
    group: GroupName,
    points: Bytes<'py>,
) -> PyResult<Bound<'py, PyBytes>> {
    converted(py, points.as_slice(), |stored, plain| {
        each_group!(curve, group, stored_to_plain(stored, plain))
    })
}
