//! BN254, computed by arkworks' curve crates.
//!
//! Points are kept as their stored limbs (64 and 128 bytes; arkworks' own affine points carry a
//! flag and padding) and turned into arkworks' form where they are used.

use ark_bn254::{Bn254 as Engine, Fq, Fq2, Fr};
use ark_ec::pairing::{MillerLoopOutput, Pairing, PairingOutput};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup, VariableBaseMSM};
use ark_ff::{AdditiveGroup, BigInt, One, PrimeField};

use super::{Curve, G1, G2, Group, Modulus, ProofPoints};
use crate::error::{PointFault, Result};
use crate::field::{
    Bn254Scalar, Direction, ScalarField, convert, is_below, limbs_from_be, limbs_from_le,
    limbs_to_be, limbs_to_le,
};
use crate::memory::{Mapped, try_vec};

/// BN254, also known as alt_bn128 and bn128.
#[derive(Clone, Copy, Debug)]
pub struct Bn254;

/// The curve over Fq; its order is prime.
#[derive(Clone, Copy, Debug)]
pub struct Group1;

/// The prime-order subgroup of the twist over Fq2.
#[derive(Clone, Copy, Debug)]
pub struct Group2;

const FQ_BYTES: usize = 32;
const FQ_LIMBS: usize = 4;
const MODULUS: [u64; 4] = Fq::MODULUS.0;

type Affine1 = ark_bn254::G1Affine;
type Affine2 = ark_bn254::G2Affine;
type Projective1 = ark_bn254::G1Projective;
type Projective2 = ark_bn254::G2Projective;

/// Bytes of a thread's stack, as Rust's threads have it, and what its allocator begins with.
const THREAD_BYTES: usize = 4 << 20;

/// Asks the system for what arkworks' sum of `len` points will take, and gives it back at once.
///
/// arkworks allocates infallibly and starts threads for each sum: where memory is refused, the
/// process would abort. What it takes: an index a point; bases and scalars sorted by size; the
/// signed digits of each scalar, collected from threads; buckets and threads. See `msm_signed` and
/// `msm_bigint_wnaf` of ark-ec 0.6.
fn require_scratch<Affine, Bucket>(len: usize) -> Result<()> {
    let threads = rayon::current_num_threads();
    let window_bits = if len < 32 {
        3
    } else {
        len.ilog2() as usize * 69 / 100 + 2
    };
    let digits = (Fr::MODULUS_BIT_SIZE as usize).div_ceil(window_bits);
    let sorted = size_of::<u64>() + size_of::<Affine>() + size_of::<BigInt<4>>();
    let a_point = 2 * sorted + 2 * digits * size_of::<i64>();
    let buckets = size_of::<Bucket>() << window_bits;
    Mapped::<u8>::zeroed(len * a_point + 2 * threads * (buckets + THREAD_BYTES)).map(drop)
}

/// An element from its Montgomery limbs, which the caller knows to be reduced or will check.
fn element(limbs: &[u64]) -> Fq {
    Fq::new_unchecked(BigInt(limbs.try_into().expect("four limbs a coordinate")))
}

fn affine1(point: &[u64; 8]) -> Affine1 {
    if *point == [0; 8] {
        return Affine1::zero();
    }
    Affine1::new_unchecked(element(&point[..4]), element(&point[4..]))
}

fn stored1(point: &Affine1) -> [u64; 8] {
    let mut limbs = [0; 8];
    if let Some((x, y)) = point.xy() {
        limbs[..4].copy_from_slice(&x.0.0);
        limbs[4..].copy_from_slice(&y.0.0);
    }
    limbs
}

fn affine2(point: &[u64; 16]) -> Affine2 {
    if *point == [0; 16] {
        return Affine2::zero();
    }
    Affine2::new_unchecked(
        Fq2::new(element(&point[..4]), element(&point[4..8])),
        Fq2::new(element(&point[8..12]), element(&point[12..])),
    )
}

fn stored2(point: &Affine2) -> [u64; 16] {
    let mut limbs = [0; 16];
    if let Some((x, y)) = point.xy() {
        for (to, from) in limbs.chunks_exact_mut(4).zip([x.c0, x.c1, y.c0, y.c1]) {
            to.copy_from_slice(&from.0.0);
        }
    }
    limbs
}

macro_rules! ark_group {
    (
        $group:ident, $affine:ident, $point:ident, $to_affine:ident, $to_stored:ident,
        coordinates = $n:literal, plain_order = $plain:expr, chunk = $chunk:expr
    ) => {
        impl Group for $group {
            type Scalar = Bn254Scalar;
            type Stored = [u64; $n * FQ_LIMBS];
            type Point = $point;
            const POINT_BYTES: usize = $n * FQ_BYTES;
            const MSM_CHUNK: usize = $chunk;

            fn load(bytes: &[u8]) -> Self::Stored {
                limbs_from_le(bytes)
            }

            fn store(point: &Self::Stored, out: &mut [u8]) {
                limbs_to_le(point, out);
            }

            fn from_plain(bytes: &[u8]) -> std::result::Result<Self::Stored, PointFault> {
                let mut point = [0; $n * FQ_LIMBS];
                for (at, word) in $plain.into_iter().zip(bytes.chunks_exact(FQ_BYTES)) {
                    let value = Fq::from_bigint(BigInt(limbs_from_be(word)))
                        .ok_or(PointFault::Coordinate)?;
                    point[at * FQ_LIMBS..][..FQ_LIMBS].copy_from_slice(&value.0.0);
                }
                Self::check(&point)?;
                Ok(point)
            }

            fn to_plain(point: &Self::Stored, out: &mut [u8]) {
                for (at, word) in $plain.into_iter().zip(out.chunks_exact_mut(FQ_BYTES)) {
                    let value = element(&point[at * FQ_LIMBS..][..FQ_LIMBS]);
                    limbs_to_be(&value.into_bigint().0, word);
                }
            }

            fn generator() -> Self::Stored {
                $to_stored(&$affine::generator())
            }

            fn is_infinity(point: &Self::Stored) -> bool {
                *point == [0; $n * FQ_LIMBS]
            }

            fn has_reduced_coordinates(point: &Self::Stored) -> bool {
                point
                    .as_chunks::<FQ_LIMBS>()
                    .0
                    .iter()
                    .all(|limbs| is_below(limbs, &MODULUS))
            }

            fn is_on_curve(point: &Self::Stored) -> bool {
                $to_affine(point).is_on_curve()
            }

            fn is_in_subgroup(point: &Self::Stored) -> bool {
                $to_affine(point).is_in_correct_subgroup_assuming_on_curve()
            }

            fn zero() -> $point {
                $point::ZERO
            }

            fn add(left: &$point, right: &$point) -> $point {
                left + right
            }

            fn from_stored(point: &Self::Stored) -> $point {
                $to_affine(point).into_group()
            }

            fn to_stored(point: &$point) -> Self::Stored {
                $to_stored(&point.into_affine())
            }

            fn negate(point: &Self::Stored) -> Self::Stored {
                $to_stored(&-$to_affine(point))
            }

            fn multiply(point: &Self::Stored, scalar: Bn254Scalar) -> $point {
                $to_affine(point)
                    .into_group()
                    .mul_bigint(scalar.to_canonical())
            }

            fn sum(points: &[&Self::Stored]) -> $point {
                points
                    .iter()
                    .fold($point::ZERO, |sum, point| sum + $to_affine(point))
            }

            fn multi_multiply(points: &[&Self::Stored], scalars: &[[u64; 4]]) -> Result<$point> {
                let mut bases = try_vec(points.len())?;
                bases.extend(points.iter().map(|point| $to_affine(point)));
                let mut integers: Vec<<Fr as PrimeField>::BigInt> = try_vec(scalars.len())?;
                integers.extend(scalars.iter().map(|limbs| BigInt(*limbs)));
                require_scratch::<$affine, <$point as VariableBaseMSM>::Bucket>(points.len())?;
                Ok($point::msm_bigint(&bases, &integers))
            }
        }
    };
}

ark_group!(
    Group1,
    Affine1,
    Projective1,
    affine1,
    stored1,
    coordinates = 2,
    plain_order = [0, 1],
    chunk = 1 << 19
);
ark_group!(
    Group2,
    Affine2,
    Projective2,
    affine2,
    stored2,
    coordinates = 4,
    plain_order = [1, 0, 3, 2],
    chunk = 1 << 18
);

impl Curve for Bn254 {
    type Scalar = Bn254Scalar;
    type G1 = Group1;
    type G2 = Group2;
    type Miller = <Engine as Pairing>::TargetField;
    const PROOF_BYTES: usize = 8 * FQ_BYTES;

    fn decode_proof(
        bytes: &[u8],
    ) -> std::result::Result<ProofPoints<Self>, (&'static str, PointFault)> {
        fn decode<G: Group>(
            name: &'static str,
            bytes: &[u8],
        ) -> std::result::Result<G::Stored, (&'static str, PointFault)> {
            let point = G::from_plain(bytes).map_err(|fault| (name, fault))?;
            if G::is_infinity(&point) {
                return Err((name, PointFault::Infinity));
            }
            Ok(point)
        }
        Ok((
            decode::<Group1>("A", &bytes[..64])?,
            decode::<Group2>("B", &bytes[64..192])?,
            decode::<Group1>("C", &bytes[192..256])?,
        ))
    }

    fn encode_proof(a: &G1<Self>, b: &G2<Self>, c: &G1<Self>) -> Vec<u8> {
        let mut out = vec![0; Self::PROOF_BYTES];
        Group1::to_plain(a, &mut out[..64]);
        Group2::to_plain(b, &mut out[64..192]);
        Group1::to_plain(c, &mut out[192..]);
        out
    }

    fn miller(pairs: &[(G1<Self>, G2<Self>)]) -> Self::Miller {
        Engine::multi_miller_loop(
            pairs.iter().map(|(p, _)| affine1(p)),
            pairs.iter().map(|(_, q)| affine2(q)),
        )
        .0
    }

    fn miller_product(left: &Self::Miller, right: &Self::Miller) -> Self::Miller {
        left * right
    }

    fn is_one(miller: &Self::Miller) -> bool {
        Engine::final_exponentiation(MillerLoopOutput(*miller))
            .is_some_and(|PairingOutput(value)| value.is_one())
    }

    fn convert(modulus: Modulus, direction: Direction, bytes: &[u8], out: &mut [u8]) -> Result<()> {
        match modulus {
            Modulus::Base => convert::<ark_bn254::FqConfig, _>(direction, bytes, out),
            Modulus::Scalar => convert::<ark_bn254::FrConfig, _>(direction, bytes, out),
        }
    }
}
