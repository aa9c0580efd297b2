//! Affine coordinates as field elements, for algorithms that add points without leaving the plane.

use ark_ff::{AdditiveGroup, BigInt, Field};
use blst::{blst_fp, blst_fp2, blst_p1_affine, blst_p2_affine};

use super::{Group, bls12_381, bn254};

/// A group on a curve y² = x³ + b whose points can be read as coordinates.
pub trait Affine: Group {
    /// The field of the coordinates.
    type Coordinate: Field;

    /// x and y of a stored point; both zero for infinity, which no curve with b ≠ 0 holds.
    fn coordinates(point: &Self::Stored) -> [Self::Coordinate; 2];
    /// The stored point with these coordinates.
    fn from_coordinates(point: &[Self::Coordinate; 2]) -> Self::Stored;
}

/// Whether coordinates stand for infinity.
#[inline]
pub(crate) fn is_infinity<F: Field>([x, y]: &[F; 2]) -> bool {
    *x == <F as AdditiveGroup>::ZERO && *y == <F as AdditiveGroup>::ZERO
}

mod bls {
    pub use ark_bls12_381::{Fq, Fq2};
}
mod bn {
    pub use ark_bn254::{Fq, Fq2};
}

#[inline]
fn bn_element(limbs: &[u64]) -> bn::Fq {
    bn::Fq::new_unchecked(BigInt(limbs.try_into().expect("four limbs a coordinate")))
}

impl Affine for bn254::Group1 {
    type Coordinate = bn::Fq;

    #[inline]
    fn coordinates(point: &[u64; 8]) -> [bn::Fq; 2] {
        [bn_element(&point[..4]), bn_element(&point[4..])]
    }

    #[inline]
    fn from_coordinates(point: &[bn::Fq; 2]) -> [u64; 8] {
        let mut limbs = [0; 8];
        for (to, from) in limbs.chunks_exact_mut(4).zip(point) {
            to.copy_from_slice(&from.0.0);
        }
        limbs
    }
}

impl Affine for bn254::Group2 {
    type Coordinate = bn::Fq2;

    #[inline]
    fn coordinates(point: &[u64; 16]) -> [bn::Fq2; 2] {
        [
            bn::Fq2::new(bn_element(&point[..4]), bn_element(&point[4..8])),
            bn::Fq2::new(bn_element(&point[8..12]), bn_element(&point[12..])),
        ]
    }

    #[inline]
    fn from_coordinates([x, y]: &[bn::Fq2; 2]) -> [u64; 16] {
        let mut limbs = [0; 16];
        for (to, from) in limbs.chunks_exact_mut(4).zip([x.c0, x.c1, y.c0, y.c1]) {
            to.copy_from_slice(&from.0.0);
        }
        limbs
    }
}

/// blst and arkworks keep the same Montgomery limbs, R = 2^384.
#[inline]
fn bls_element(value: &blst_fp) -> bls::Fq {
    bls::Fq::new_unchecked(BigInt(value.l))
}

#[inline]
fn blst_element(value: &bls::Fq) -> blst_fp {
    blst_fp { l: value.0.0 }
}

impl Affine for bls12_381::Group1 {
    type Coordinate = bls::Fq;

    #[inline]
    fn coordinates(point: &blst_p1_affine) -> [bls::Fq; 2] {
        [bls_element(&point.x), bls_element(&point.y)]
    }

    #[inline]
    fn from_coordinates([x, y]: &[bls::Fq; 2]) -> blst_p1_affine {
        blst_p1_affine {
            x: blst_element(x),
            y: blst_element(y),
        }
    }
}

impl Affine for bls12_381::Group2 {
    type Coordinate = bls::Fq2;

    #[inline]
    fn coordinates(point: &blst_p2_affine) -> [bls::Fq2; 2] {
        [&point.x, &point.y]
            .map(|value| bls::Fq2::new(bls_element(&value.fp[0]), bls_element(&value.fp[1])))
    }

    #[inline]
    fn from_coordinates([x, y]: &[bls::Fq2; 2]) -> blst_p2_affine {
        let element = |value: &bls::Fq2| blst_fp2 {
            fp: [blst_element(&value.c0), blst_element(&value.c1)],
        };
        blst_p2_affine {
            x: element(x),
            y: element(y),
        }
    }
}
