//! `partita_native`: the stages of partita-groth16 for Python.
//!
//! Every call that computes releases the interpreter lock; a panic becomes `NativePanic`, a refused
//! allocation `MemoryError`. Buffers must not be written to while a call reads them.

mod bytes;
mod errors;
mod functions;
mod key;
mod points;
mod scalars;
mod setup;
mod verifying;

use pyo3::prelude::*;

#[pymodule]
fn partita_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("NativePanic", py.get_type::<errors::NativePanic>())?;
    module.add("PointError", py.get_type::<errors::PointError>())?;
    module.add("ScalarError", py.get_type::<errors::ScalarError>())?;
    module.add("ProofError", py.get_type::<errors::ProofError>())?;
    module.add_class::<scalars::Scalars>()?;
    module.add_class::<setup::Setup>()?;
    module.add_class::<setup::ToxicWaste>()?;
    module.add_class::<key::ProvingKey>()?;
    module.add_class::<verifying::VerifyingKey>()?;
    module.add_function(wrap_pyfunction!(functions::build_info, module)?)?;
    module.add_function(wrap_pyfunction!(functions::set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(functions::stamps, module)?)?;
    module.add_function(wrap_pyfunction!(functions::panic_for_test, module)?)?;
    module.add_function(wrap_pyfunction!(functions::unsatisfied_row, module)?)?;
    module.add_function(wrap_pyfunction!(functions::lincomb, module)?)?;
    module.add_function(wrap_pyfunction!(functions::check_point, module)?)?;
    module.add_function(wrap_pyfunction!(points::check_points, module)?)?;
    module.add_function(wrap_pyfunction!(points::points_from_plain, module)?)?;
    module.add_function(wrap_pyfunction!(points::points_to_plain, module)?)?;
    module.add_function(wrap_pyfunction!(functions::from_montgomery, module)?)?;
    module.add_function(wrap_pyfunction!(functions::to_montgomery, module)?)?;
    Ok(())
}
