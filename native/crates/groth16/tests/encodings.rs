//! Byte forms of scalars and points: round trips, and the refusal of everything else.

mod common;

use ark_ec::AffineRepr;
use ark_ff::PrimeField;
use common::setup::plain_bytes;
use common::{Random, point, scalar_bytes, stored_bytes};
use partita_groth16::curve::{Bls12381, Bn254, Curve, Group, Modulus, check_points, load_points};
use partita_groth16::error::{Error, PointFault};
use partita_groth16::field::{Bls12381Scalar, Bn254Scalar, Direction, ScalarField, read_scalars};
use partita_groth16::key::{check_point, linear_combination};

type BlsG1 = <Bls12381 as Curve>::G1;
type BlsG2 = <Bls12381 as Curve>::G2;
type BnG1 = <Bn254 as Curve>::G1;
type BnG2 = <Bn254 as Curve>::G2;

fn modulus_bytes<F: PrimeField>() -> Vec<u8> {
    F::MODULUS
        .as_ref()
        .iter()
        .flat_map(|limb| limb.to_le_bytes())
        .collect()
}

#[test]
fn scalars_below_the_modulus_round_trip_and_the_modulus_is_refused_by_index() {
    fn check<F: ScalarField>(modulus: &[u8]) {
        let values = [F::ZERO, F::ONE, -F::ONE];
        let mut bytes = scalar_bytes(&values);
        assert_eq!(&read_scalars::<F>(&bytes).unwrap()[..], values);
        bytes.extend(modulus);
        bytes.extend([0xff; 32]);
        assert_eq!(
            read_scalars::<F>(&bytes).err(),
            Some(Error::Scalar { index: 3 })
        );
        assert!(read_scalars::<F>(&bytes[..33]).is_err());
    }
    check::<Bls12381Scalar>(&modulus_bytes::<ark_bls12_381::Fr>());
    check::<Bn254Scalar>(&modulus_bytes::<ark_bn254::Fr>());
}

#[test]
fn the_lowest_bad_index_is_named_whatever_the_threads_do() {
    // The second half has a fault in its first tile, long before the first half finds its own.
    let mut bytes = vec![0; 32 * 400_000];
    for at in (133_333..400_000).step_by(10_000) {
        bytes[at * 32..(at + 1) * 32].fill(0xff);
    }
    for _ in 0..20 {
        assert_eq!(
            read_scalars::<Bn254Scalar>(&bytes).err(),
            Some(Error::Scalar { index: 133_333 })
        );
    }
}

#[test]
fn montgomery_conversion_is_undone_and_refuses_the_modulus() {
    fn check<C: Curve>(modulus: Modulus, bytes: &[u8]) {
        let width = bytes.len();
        let mut below = bytes.to_vec();
        below[0] -= 1;
        let mut values = vec![0; width];
        values[0] = 9;
        values.extend(&below);
        let (mut there, mut back) = (vec![0; 2 * width], vec![0; 2 * width]);
        C::convert(modulus, Direction::ToMontgomery, &values, &mut there).unwrap();
        assert_ne!(there, values);
        C::convert(modulus, Direction::FromMontgomery, &there, &mut back).unwrap();
        assert_eq!(back, values);
        values.extend(bytes);
        let mut out = vec![0; 3 * width];
        for direction in [Direction::ToMontgomery, Direction::FromMontgomery] {
            assert_eq!(
                C::convert(modulus, direction, &values, &mut out),
                Err(Error::Scalar { index: 2 })
            );
        }
    }
    check::<Bls12381>(Modulus::Base, &modulus_bytes::<ark_bls12_381::Fq>());
    check::<Bls12381>(Modulus::Scalar, &modulus_bytes::<ark_bls12_381::Fr>());
    check::<Bn254>(Modulus::Base, &modulus_bytes::<ark_bn254::Fq>());
    check::<Bn254>(Modulus::Scalar, &modulus_bytes::<ark_bn254::Fr>());
}

#[test]
fn points_round_trip_in_both_forms() {
    fn check<G: Group>() {
        let mut random = Random::new(1);
        let mut points: Vec<_> = (0..5).map(|_| point::<G>(random.scalar())).collect();
        points.push(G::to_stored(&G::zero()));
        let stored = stored_bytes::<G>(&points);
        assert!(stored[5 * G::POINT_BYTES..].iter().all(|byte| *byte == 0));
        assert_eq!(&load_points::<G>("points", &stored).unwrap()[..], points);
        assert_eq!(check_points::<G>(&points), Ok(()));
        for (point, plain) in points
            .iter()
            .zip(plain_bytes::<G>(&points).chunks_exact(G::POINT_BYTES))
        {
            assert_eq!(G::from_plain(plain), Ok(*point));
        }
    }
    check::<BlsG1>();
    check::<BlsG2>();
    check::<BnG1>();
    check::<BnG2>();
}

#[test]
fn stored_coordinates_are_montgomery_limbs_and_plain_ones_big_endian_with_c1_first() {
    let generator = ark_bn254::G2Affine::generator();
    let (x, y) = generator.xy().unwrap();
    let stored: Vec<u8> = [x.c0, x.c1, y.c0, y.c1]
        .iter()
        .flat_map(|value| value.0.0)
        .flat_map(u64::to_le_bytes)
        .collect();
    assert_eq!(stored_bytes::<BnG2>(&[BnG2::generator()]), stored);
    let plain: Vec<u8> = [x.c1, x.c0, y.c1, y.c0]
        .iter()
        .flat_map(|value| value.into_bigint().0.into_iter().rev())
        .flat_map(u64::to_be_bytes)
        .collect();
    assert_eq!(plain_bytes::<BnG2>(&[BnG2::generator()]), plain);

    let generator = ark_bls12_381::G1Affine::generator();
    let (x, y) = generator.xy().unwrap();
    let stored: Vec<u8> = [x, y]
        .iter()
        .flat_map(|value| value.0.0)
        .flat_map(u64::to_le_bytes)
        .collect();
    assert_eq!(stored_bytes::<BlsG1>(&[BlsG1::generator()]), stored);
}

/// Limbs of a point of the curve outside the subgroup, from arkworks' unchecked square roots.
macro_rules! outside_subgroup {
    ($affine:ty, $field:ty, $coordinates:expr) => {
        (1_u64..)
            .filter_map(|x| <$affine>::get_point_from_x_unchecked(<$field>::from(x), false))
            .find(|point| !point.is_in_correct_subgroup_assuming_on_curve())
            .map(|point| {
                $coordinates(point.x, point.y)
                    .into_iter()
                    .flatten()
                    .flat_map(u64::to_le_bytes)
                    .collect::<Vec<u8>>()
            })
            .unwrap()
    };
}

#[test]
fn each_fault_of_a_point_is_told_apart() {
    fn check<G: Group>(outside: Option<Vec<u8>>, modulus: &[u8]) {
        let good = stored_bytes::<G>(&[G::generator()]);
        assert_eq!(check_point::<G>(&good), Ok(()));
        let fault = |bytes: &[u8]| match check_point::<G>(bytes) {
            Err(Error::Point { index: 0, fault }) => fault,
            other => panic!("{other:?}"),
        };
        let mut off = good.clone();
        off[0] ^= 1;
        assert_eq!(fault(&off), PointFault::OffCurve);
        let mut large = good.clone();
        let at = G::POINT_BYTES - modulus.len();
        large[at..].copy_from_slice(modulus);
        assert_eq!(fault(&large), PointFault::Coordinate);
        if let Some(outside) = &outside {
            assert_eq!(fault(outside), PointFault::Subgroup);
        }
        assert!(matches!(check_point::<G>(&good[1..]), Err(Error::Value(_))));

        // In a long vector the lowest index is named.
        let mut many = good.repeat(3000);
        for index in [2900, 1500, 2048] {
            many[index * G::POINT_BYTES..][..G::POINT_BYTES].copy_from_slice(&off);
        }
        let many = load_points::<G>("points", &many).unwrap();
        assert_eq!(
            check_points::<G>(&many),
            Err(Error::Point {
                index: 1500,
                fault: PointFault::OffCurve
            })
        );
    }
    let bls = modulus_bytes::<ark_bls12_381::Fq>();
    let bn = modulus_bytes::<ark_bn254::Fq>();
    check::<BlsG1>(
        Some(outside_subgroup!(
            ark_bls12_381::G1Affine,
            ark_bls12_381::Fq,
            |x: ark_bls12_381::Fq, y: ark_bls12_381::Fq| [x.0.0, y.0.0]
        )),
        &bls,
    );
    check::<BlsG2>(
        Some(outside_subgroup!(
            ark_bls12_381::G2Affine,
            ark_bls12_381::Fq2,
            |x: ark_bls12_381::Fq2, y: ark_bls12_381::Fq2| {
                [x.c0.0.0, x.c1.0.0, y.c0.0.0, y.c1.0.0]
            }
        )),
        &bls,
    );
    check::<BnG1>(None, &bn);
    check::<BnG2>(
        Some(outside_subgroup!(
            ark_bn254::G2Affine,
            ark_bn254::Fq2,
            |x: ark_bn254::Fq2, y: ark_bn254::Fq2| [x.c0.0.0, x.c1.0.0, y.c0.0.0, y.c1.0.0]
        )),
        &bn,
    );
}

#[test]
fn plain_points_with_wrong_flags_are_refused() {
    let mut infinity = vec![0; BlsG1::POINT_BYTES];
    assert_eq!(BlsG1::from_plain(&infinity), Err(PointFault::Encoding));
    infinity[0] = 0x40;
    assert!(BlsG1::is_infinity(&BlsG1::from_plain(&infinity).unwrap()));
    infinity[95] = 1;
    assert_eq!(BlsG1::from_plain(&infinity), Err(PointFault::Encoding));
    let mut point = plain_bytes::<BlsG1>(&[BlsG1::generator()]);
    point[0] |= 0x80;
    assert_eq!(BlsG1::from_plain(&point), Err(PointFault::Encoding));
    point[0] ^= 0x80 | 0x20;
    assert_eq!(BlsG1::from_plain(&point), Err(PointFault::Coordinate));
}

#[test]
fn linear_combinations_add_up_and_name_what_is_wrong() {
    fn check<G: Group>() {
        let points: Vec<_> = [2, 3]
            .map(|e| point::<G>(G::Scalar::from_integer(e)))
            .to_vec();
        let scalars = [5, 7].map(G::Scalar::from_integer);
        let (points, scalars) = (stored_bytes::<G>(&points), scalar_bytes(&scalars));
        let sum = point::<G>(G::Scalar::from_integer(31));
        assert_eq!(
            linear_combination::<G>(&points, &scalars).unwrap(),
            stored_bytes::<G>(&[sum])
        );
        assert!(linear_combination::<G>(&points, &scalars[..32]).is_err());
        let mut off = points.clone();
        off[G::POINT_BYTES] ^= 1;
        assert_eq!(
            linear_combination::<G>(&off, &scalars),
            Err(Error::Point {
                index: 1,
                fault: PointFault::OffCurve
            })
        );
    }
    check::<BlsG1>();
    check::<BlsG2>();
    check::<BnG1>();
    check::<BnG2>();
}
