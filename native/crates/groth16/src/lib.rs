//! Groth16 on the CPU: the heavy stages of proving, and verification, on BLS12-381 and BN254.
//!
//! The crate computes and knows no file format, no Python and no policy: keys, matrices and vectors
//! come in as bytes in the forms of [`curve`] and [`field`], and results go out in the same forms.
//! The proof itself is put together by the caller; here are the stages that take the time: sparse
//! products ([`sparse`]), the quotient ([`quotient`]), multi-scalar multiplications ([`msm`]) and
//! pairing checks ([`verify`]); and, for development, whole keys ([`setup`]).
//!
//! Field, curve, NTT and MSM lie behind the traits [`field::ScalarField`], [`curve::Group`] and
//! [`curve::Curve`]; nothing above them names a curve.
//!
//! Invariants: large memory is taken fallibly and anonymously mapped ([`memory`]); every long stage
//! adds to [`stamps`]; all parallel work runs in rayon's pool.
//!
//! The proof system: Groth, "On the Size of Pairing-Based Non-interactive Arguments",
//! <https://eprint.iacr.org/2016/260>.

pub mod curve;
pub mod error;
pub mod field;
pub mod fixed_base;
pub mod key;
pub mod memory;
pub mod msm;
pub mod ntt;
pub mod points;
pub mod proof;
pub mod quotient;
pub mod setup;
pub mod sparse;
pub mod stamps;
pub mod toxic;
pub mod verify;
