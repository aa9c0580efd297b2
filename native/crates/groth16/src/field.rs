//! The scalar fields, behind one trait, and their byte forms.
//!
//! A scalar's byte form is 32 bytes, little-endian, canonical (below r). In memory an element is
//! whatever its implementation likes, as long as all-zero bytes are zero.

use std::fmt::Debug;
use std::ops::{Add, Mul, Neg, Sub};

use ark_ff::{AdditiveGroup, BigInt, Field, Fp, MontBackend, MontConfig, PrimeField};
use rayon::prelude::*;

use crate::error::{Error, Result, require_equal};
use crate::memory::{Mapped, Zeroable};
use crate::stamps::stamp;

/// Bytes of one scalar.
pub const SCALAR_BYTES: usize = 32;
/// Elements that one task of a bulk conversion handles.
const TILE: usize = 1 << 14;

/// A proving key's conventions: which root of unity and which coset its queries were made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// snarkjs: roots from the least non-residue, H on the odd coset.
    Snarkjs,
    /// bellperson: roots from the field's customary generator, H as coefficients.
    Bellperson,
}

/// A prime field with many roots of unity, as NTTs and MSM scalars use it.
pub trait ScalarField:
    Zeroable
    + Debug
    + PartialEq
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// s, where 2^s divides r − 1 exactly.
    const TWO_ADICITY: u32;

    /// The element with these limbs, least significant first; `None` if they are not below r.
    fn from_canonical(limbs: [u64; 4]) -> Option<Self>;
    /// The limbs below r, least significant first.
    fn to_canonical(self) -> [u64; 4];
    /// The inverse; `None` for zero.
    fn inverse(self) -> Option<Self>;
    /// self^exponent, the exponent's limbs least significant first.
    fn power(self, exponent: &[u64]) -> Self;
    /// The non-residue from which the family takes its roots of unity and cosets.
    fn generator(family: Family) -> Self;
    /// (r − 1) / 2^s.
    fn odd_part() -> [u64; 4];

    /// A small integer as an element.
    #[must_use]
    fn from_integer(value: u64) -> Self {
        Self::from_canonical([value, 0, 0, 0]).unwrap_or(Self::ZERO)
    }

    /// The family's primitive 2^log_n-th root of unity; `None` beyond the field's 2-adicity.
    #[must_use]
    fn root_of_unity(family: Family, log_n: u32) -> Option<Self> {
        let squarings = Self::TWO_ADICITY.checked_sub(log_n)?;
        let top = Self::generator(family).power(&Self::odd_part());
        Some((0..squarings).fold(top, |root, _| root * root))
    }
}

macro_rules! scalar_field {
    ($(#[$doc:meta])* $name:ident, $inner:ty, $snarkjs:expr, $bellperson:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(transparent)]
        pub struct $name($inner);

        // SAFETY: the inner element is an array of limbs in Montgomery form; zero limbs are zero.
        unsafe impl Zeroable for $name {}

        impl Add for $name {
            type Output = Self;
            #[inline]
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }
        impl Sub for $name {
            type Output = Self;
            #[inline]
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
        impl Mul for $name {
            type Output = Self;
            #[inline]
            fn mul(self, other: Self) -> Self {
                Self(self.0 * other.0)
            }
        }
        impl Neg for $name {
            type Output = Self;
            #[inline]
            fn neg(self) -> Self {
                Self(-self.0)
            }
        }

        impl ScalarField for $name {
            const ZERO: Self = Self(<$inner as AdditiveGroup>::ZERO);
            const ONE: Self = Self(<$inner as Field>::ONE);
            const TWO_ADICITY: u32 = <$inner as ark_ff::FftField>::TWO_ADICITY;

            #[inline]
            fn from_canonical(limbs: [u64; 4]) -> Option<Self> {
                <$inner>::from_bigint(BigInt(limbs)).map(Self)
            }
            #[inline]
            fn to_canonical(self) -> [u64; 4] {
                self.0.into_bigint().0
            }
            fn inverse(self) -> Option<Self> {
                self.0.inverse().map(Self)
            }
            fn power(self, exponent: &[u64]) -> Self {
                Self(self.0.pow(exponent))
            }
            fn generator(family: Family) -> Self {
                Self::from_integer(match family {
                    Family::Snarkjs => $snarkjs,
                    Family::Bellperson => $bellperson,
                })
            }
            fn odd_part() -> [u64; 4] {
                <$inner as PrimeField>::TRACE.0
            }
        }
    };
}

scalar_field!(
    /// The scalar field of BLS12-381.
    Bls12381Scalar, ark_bls12_381::Fr, 5, 7
);
scalar_field!(
    /// The scalar field of BN254; its least non-residue is also its customary generator.
    Bn254Scalar, ark_bn254::Fr, 5, 5
);

/// Limbs of little-endian bytes.
#[must_use]
pub fn limbs_from_le<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut limbs = [0; N];
    for (limb, word) in limbs.iter_mut().zip(bytes.chunks_exact(8)) {
        *limb = u64::from_le_bytes(word.try_into().expect("chunks of eight"));
    }
    limbs
}

/// Little-endian bytes of limbs, written to the front of `out`.
pub fn limbs_to_le(limbs: &[u64], out: &mut [u8]) {
    for (limb, word) in limbs.iter().zip(out.chunks_exact_mut(8)) {
        word.copy_from_slice(&limb.to_le_bytes());
    }
}

/// Limbs of big-endian bytes.
#[must_use]
pub fn limbs_from_be<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut limbs = [0; N];
    for (limb, word) in limbs.iter_mut().zip(bytes.rchunks_exact(8)) {
        *limb = u64::from_be_bytes(word.try_into().expect("chunks of eight"));
    }
    limbs
}

/// Big-endian bytes of limbs, filling the back of `out`.
pub fn limbs_to_be(limbs: &[u64], out: &mut [u8]) {
    for (limb, word) in limbs.iter().zip(out.rchunks_exact_mut(8)) {
        word.copy_from_slice(&limb.to_be_bytes());
    }
}

/// Whether limbs, least significant first, are below a modulus.
#[must_use]
pub fn is_below<const N: usize>(limbs: &[u64; N], modulus: &[u64; N]) -> bool {
    limbs.iter().rev().lt(modulus.iter().rev())
}

/// Reads canonical scalars into a mapping of their own.
///
/// # Errors
/// [`Error::Value`] if the length is no multiple of 32, [`Error::Scalar`] with the first index that
/// is not below r, [`Error::Memory`].
pub fn read_scalars<F: ScalarField>(bytes: &[u8]) -> Result<Mapped<F>> {
    if !bytes.len().is_multiple_of(SCALAR_BYTES) {
        return Err(Error::Value(format!(
            "scalars: {} bytes are no multiple of {SCALAR_BYTES}",
            bytes.len()
        )));
    }
    let mut scalars = Mapped::<F>::zeroed(bytes.len() / SCALAR_BYTES)?;
    first_error(
        scalars
            .par_chunks_mut(TILE)
            .zip(bytes.par_chunks(TILE * SCALAR_BYTES))
            .enumerate()
            .map(|(tile, (out, data))| {
                stamp();
                for (i, (value, word)) in out
                    .iter_mut()
                    .zip(data.chunks_exact(SCALAR_BYTES))
                    .enumerate()
                {
                    *value = F::from_canonical(limbs_from_le(word)).ok_or(Error::Scalar {
                        index: tile * TILE + i,
                    })?;
                }
                Ok(())
            }),
    )?;
    Ok(scalars)
}

/// Writes canonical scalars; `out` holds 32 bytes for each.
pub fn write_scalars<F: ScalarField>(scalars: &[F], out: &mut [u8]) {
    out.par_chunks_mut(TILE * SCALAR_BYTES)
        .zip(scalars.par_chunks(TILE))
        .for_each(|(out, values)| {
            stamp();
            for (word, value) in out.chunks_exact_mut(SCALAR_BYTES).zip(values) {
                limbs_to_le(&value.to_canonical(), word);
            }
        });
}

/// Which way [`convert`] goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// value·R mod p → value.
    FromMontgomery,
    /// value → value·R mod p.
    ToMontgomery,
}

/// Converts little-endian elements of 8·N bytes; both sides are below the modulus.
///
/// # Errors
/// [`Error::Value`] for lengths that do not fit, [`Error::Scalar`] with the first index that is not
/// below the modulus.
pub fn convert<P: MontConfig<N>, const N: usize>(
    direction: Direction,
    bytes: &[u8],
    out: &mut [u8],
) -> Result<()> {
    let width = 8 * N;
    require_equal("output bytes", bytes.len(), out.len())?;
    if !bytes.len().is_multiple_of(width) {
        return Err(Error::Value(format!(
            "field elements: {} bytes are no multiple of {width}",
            bytes.len()
        )));
    }
    first_error(
        out.par_chunks_mut(TILE * width)
            .zip(bytes.par_chunks(TILE * width))
            .enumerate()
            .map(|(tile, (out, data))| {
                stamp();
                let words = out.chunks_exact_mut(width).zip(data.chunks_exact(width));
                for (i, (to, from)) in words.enumerate() {
                    let limbs = limbs_from_le::<N>(from);
                    if !is_below(&limbs, &P::MODULUS.0) {
                        return Err(Error::Scalar {
                            index: tile * TILE + i,
                        });
                    }
                    let limbs = BigInt(limbs);
                    let converted = match direction {
                        Direction::FromMontgomery => {
                            Fp::<MontBackend<P, N>, N>::new_unchecked(limbs).into_bigint()
                        }
                        Direction::ToMontgomery => Fp::<MontBackend<P, N>, N>::new(limbs).0,
                    };
                    limbs_to_le(&converted.0, to);
                }
                Ok(())
            }),
    )
}

/// The error of the lowest tile, so that the index reported does not depend on the threads.
pub(crate) fn first_error(results: impl IndexedParallelIterator<Item = Result<()>>) -> Result<()> {
    results.find_first(Result::is_err).unwrap_or(Ok(()))
}
