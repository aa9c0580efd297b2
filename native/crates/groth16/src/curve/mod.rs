//! The curves, behind two traits: [`Group`] for G1 and G2, [`Curve`] for the pair of them.
//!
//! Forms of a point:
//! * stored ("device-ready"): affine, x then y, each coordinate in Montgomery form, little-endian,
//!   Fp2 as c0 then c1; infinity is all zero bytes. Keys' queries and single results have it.
//! * plain: affine, big-endian, Fp2 as c1 then c0; verifying keys have it. Infinity: BLS12-381 sets
//!   the 0x40 bit of the first byte, BN254 is all zero.

mod bls12_381;
mod bn254;
pub mod coordinates;

pub use bls12_381::Bls12381;
pub use bn254::Bn254;

use std::fmt::Debug;

use rayon::prelude::*;

use self::coordinates::Affine;
use crate::error::{Error, PointFault, Result};
use crate::field::{Direction, ScalarField, first_error};
use crate::memory::{Mapped, Zeroable};
use crate::stamps::stamp;

/// Points that one task of a bulk operation handles.
const TILE: usize = 1 << 10;

/// A group of prime order r on a curve.
pub trait Group: Copy + Debug + Send + Sync + 'static {
    /// The field of the exponents.
    type Scalar: ScalarField;
    /// A point in stored form.
    type Stored: Zeroable + Debug + PartialEq;
    /// A sum in the making, in whatever coordinates add fastest.
    type Point: Copy + Send + Sync + 'static;
    /// Bytes of the stored and of the plain form.
    const POINT_BYTES: usize;
    /// Points that [`crate::msm`] hands over at once: bounds scratch, and the time between stamps.
    const MSM_CHUNK: usize;

    /// The stored point of exactly [`Self::POINT_BYTES`] bytes, unchecked.
    fn load(bytes: &[u8]) -> Self::Stored;
    /// The bytes of a stored point.
    fn store(point: &Self::Stored, out: &mut [u8]);
    /// A point from its plain form, fully checked; infinity is allowed.
    ///
    /// # Errors
    /// What is wrong with the point.
    fn from_plain(bytes: &[u8]) -> std::result::Result<Self::Stored, PointFault>;
    /// The plain form.
    fn to_plain(point: &Self::Stored, out: &mut [u8]);

    /// The customary generator.
    fn generator() -> Self::Stored;
    /// Whether the point is the neutral element.
    fn is_infinity(point: &Self::Stored) -> bool;
    /// Checks that the coordinates are below the modulus.
    fn has_reduced_coordinates(point: &Self::Stored) -> bool;
    /// Checks the curve's equation, for reduced coordinates.
    fn is_on_curve(point: &Self::Stored) -> bool;
    /// Checks the order, for a point on the curve.
    fn is_in_subgroup(point: &Self::Stored) -> bool;

    /// The neutral element.
    fn zero() -> Self::Point;
    /// The sum, complete: equal, opposite and neutral points included.
    fn add(left: &Self::Point, right: &Self::Point) -> Self::Point;
    /// The stored point as a sum.
    fn from_stored(point: &Self::Stored) -> Self::Point;
    /// The sum in stored form.
    fn to_stored(point: &Self::Point) -> Self::Stored;
    /// The opposite point.
    fn negate(point: &Self::Stored) -> Self::Stored;
    /// scalar · point.
    fn multiply(point: &Self::Stored, scalar: Self::Scalar) -> Self::Point;
    /// The sum of the points, on the calling thread.
    fn sum(points: &[&Self::Stored]) -> Self::Point;
    /// Σ scalarᵢ · pointᵢ on all cores, for scalars without structure, given as canonical limbs.
    ///
    /// # Errors
    /// [`Error::Memory`].
    fn multi_multiply(points: &[&Self::Stored], scalars: &[[u64; 4]]) -> Result<Self::Point>;

    /// Checks coordinates, equation and order; infinity passes.
    ///
    /// # Errors
    /// The first of the three that fails.
    fn check(point: &Self::Stored) -> std::result::Result<(), PointFault> {
        if Self::is_infinity(point) {
            return Ok(());
        }
        if !Self::has_reduced_coordinates(point) {
            return Err(PointFault::Coordinate);
        }
        if !Self::is_on_curve(point) {
            return Err(PointFault::OffCurve);
        }
        if !Self::is_in_subgroup(point) {
            return Err(PointFault::Subgroup);
        }
        Ok(())
    }
}

/// A pairing-friendly curve.
pub trait Curve: Copy + Debug + Send + Sync + 'static {
    /// The scalar field.
    type Scalar: ScalarField;
    /// The first group.
    type G1: Affine<Scalar = Self::Scalar>;
    /// The second group.
    type G2: Affine<Scalar = Self::Scalar>;
    /// A product of Miller loops before the final exponentiation.
    type Miller: Copy + Send + Sync + 'static;
    /// Bytes of a proof.
    const PROOF_BYTES: usize;

    /// Splits a proof of the right length and decodes each element, checking coordinates and
    /// equation, not the order.
    ///
    /// # Errors
    /// The element and what is wrong with it.
    fn decode_proof(
        bytes: &[u8],
    ) -> std::result::Result<ProofPoints<Self>, (&'static str, PointFault)>;
    /// The bytes of a proof.
    fn encode_proof(a: &G1<Self>, b: &G2<Self>, c: &G1<Self>) -> Vec<u8>;
    /// Π of the pairs' Miller loops on the calling thread; a pair with infinity contributes 1.
    fn miller(pairs: &[(G1<Self>, G2<Self>)]) -> Self::Miller;
    /// The product.
    fn miller_product(left: &Self::Miller, right: &Self::Miller) -> Self::Miller;
    /// Whether the final exponentiation gives 1.
    fn is_one(miller: &Self::Miller) -> bool;
    /// Converts elements of the base field (`Modulus::Base`) or the scalar field between canonical
    /// and Montgomery form, little-endian on both sides.
    ///
    /// # Errors
    /// As [`crate::field::convert`].
    fn convert(modulus: Modulus, direction: Direction, bytes: &[u8], out: &mut [u8]) -> Result<()>;
}

/// One of a curve's two fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modulus {
    /// q, of the coordinates.
    Base,
    /// r, of the scalars.
    Scalar,
}

/// A stored point of the curve's first group.
pub type G1<C> = <<C as Curve>::G1 as Group>::Stored;
/// A stored point of the curve's second group.
pub type G2<C> = <<C as Curve>::G2 as Group>::Stored;
/// A, B and C.
pub type ProofPoints<C> = (G1<C>, G2<C>, G1<C>);

/// Copies stored points into a mapping of their own, unchecked.
///
/// # Errors
/// [`Error::Value`] if the length is no multiple of the point size, [`Error::Memory`].
pub fn load_points<G: Group>(name: &str, bytes: &[u8]) -> Result<Mapped<G::Stored>> {
    if !bytes.len().is_multiple_of(G::POINT_BYTES) {
        return Err(Error::Value(format!(
            "{name}: {} bytes are no multiple of a point's {}",
            bytes.len(),
            G::POINT_BYTES
        )));
    }
    let mut points = Mapped::<G::Stored>::zeroed(bytes.len() / G::POINT_BYTES)?;
    points
        .par_chunks_mut(TILE)
        .zip(bytes.par_chunks(TILE * G::POINT_BYTES))
        .for_each(|(points, bytes)| {
            stamp();
            for (point, word) in points.iter_mut().zip(bytes.chunks_exact(G::POINT_BYTES)) {
                *point = G::load(word);
            }
        });
    Ok(points)
}

/// Checks every point, in parallel.
///
/// # Errors
/// [`Error::Point`] with the lowest index that fails.
pub fn check_points<G: Group>(points: &[G::Stored]) -> Result<()> {
    first_error(points.par_chunks(TILE).enumerate().map(|(tile, points)| {
        stamp();
        for (i, point) in points.iter().enumerate() {
            G::check(point).map_err(|fault| Error::Point {
                index: tile * TILE + i,
                fault,
            })?;
        }
        Ok(())
    }))
}
