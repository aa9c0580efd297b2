//! Multi-scalar multiplication against the sum of single products.

mod common;

use common::{Random, point, progression};
use partita_groth16::curve::{Bls12381, Bn254, Curve, Group};
use partita_groth16::field::ScalarField;
use partita_groth16::msm::msm;

/// Runs a generic test for G1 and G2 of both curves.
macro_rules! for_every_group {
    ($($test:ident)*) => {$(
        mod $test {
            use super::*;

            #[test]
            fn bls12_381_g1() {
                super::$test::<<Bls12381 as Curve>::G1>();
            }
            #[test]
            fn bls12_381_g2() {
                super::$test::<<Bls12381 as Curve>::G2>();
            }
            #[test]
            fn bn254_g1() {
                super::$test::<<Bn254 as Curve>::G1>();
            }
            #[test]
            fn bn254_g2() {
                super::$test::<<Bn254 as Curve>::G2>();
            }
        }
    )*};
}

for_every_group! {
    equals_the_sum_of_single_products
    adds_points_in_progression_at_every_size
    takes_equal_scalars
    takes_zeros_ones_and_the_largest_scalar
    takes_infinity_equal_and_opposite_points
    joins_chunks
    refuses_lengths_that_differ
}

fn infinity<G: Group>() -> G::Stored {
    G::to_stored(&G::zero())
}

/// Compares with (Σ logarithm·scalar) · generator.
fn assert_sum<G: Group>(points: &[G::Stored], logarithms: &[G::Scalar], scalars: &[G::Scalar]) {
    let exponent = logarithms
        .iter()
        .zip(scalars)
        .fold(G::Scalar::ZERO, |sum, (l, s)| sum + *l * *s);
    let found = G::to_stored(&msm::<G>(points, scalars).unwrap());
    assert_eq!(found, point::<G>(exponent), "{} points", points.len());
}

fn equals_the_sum_of_single_products<G: Group>() {
    let mut random = Random::new(1);
    let points: Vec<_> = (0..40).map(|_| point::<G>(random.scalar())).collect();
    let scalars: Vec<G::Scalar> = random.scalars(40);
    let naive = points
        .iter()
        .zip(&scalars)
        .fold(G::zero(), |sum, (p, s)| G::add(&sum, &G::multiply(p, *s)));
    let found = msm::<G>(&points, &scalars).unwrap();
    assert_eq!(G::to_stored(&found), G::to_stored(&naive));
}

fn adds_points_in_progression_at_every_size<G: Group>() {
    let mut random = Random::new(2);
    let (points, logarithms) = progression::<G>(2100);
    let scalars: Vec<G::Scalar> = random.scalars(2100);
    for n in [0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 100, 257, 1000, 2100] {
        assert_sum::<G>(&points[..n], &logarithms[..n], &scalars[..n]);
    }
}

fn takes_equal_scalars<G: Group>() {
    let (points, logarithms) = progression::<G>(300);
    let mut random = Random::new(3);
    for scalar in [
        G::Scalar::ZERO,
        G::Scalar::ONE,
        G::Scalar::from_integer(2),
        -G::Scalar::ONE,
        random.scalar(),
    ] {
        assert_sum::<G>(&points, &logarithms, &[scalar; 300]);
    }
}

fn takes_zeros_ones_and_the_largest_scalar<G: Group>() {
    let (points, logarithms) = progression::<G>(400);
    let mut random = Random::new(4);
    let scalars: Vec<_> = (0..400)
        .map(|_| match random.word() % 5 {
            0 => G::Scalar::ZERO,
            1 => G::Scalar::ONE,
            2 => -G::Scalar::ONE,
            3 => G::Scalar::from_integer(1 << 63),
            _ => random.scalar(),
        })
        .collect();
    assert_sum::<G>(&points, &logarithms, &scalars);
}

fn takes_infinity_equal_and_opposite_points<G: Group>() {
    let mut random = Random::new(5);
    let (one, base) = (G::Scalar::ONE, G::generator());
    let kinds = [
        (infinity::<G>(), G::Scalar::ZERO),
        (base, one),
        (G::negate(&base), -one),
        (
            point::<G>(G::Scalar::from_integer(7)),
            G::Scalar::from_integer(7),
        ),
    ];
    let cases: [&dyn Fn(usize) -> usize; 4] = [&|_| 0, &|_| 1, &|i| 1 + i % 2, &|i| i % 4];
    for pick in cases {
        let (points, logarithms): (Vec<_>, Vec<_>) = (0..260).map(|i| kinds[pick(i)]).unzip();
        let equal = random.scalar();
        assert_sum::<G>(&points, &logarithms, &[G::Scalar::ONE; 260]);
        assert_sum::<G>(&points, &logarithms, &[equal; 260]);
        assert_sum::<G>(&points, &logarithms, &random.scalars::<G::Scalar>(260));
    }
}

fn joins_chunks<G: Group>() {
    let n = G::MSM_CHUNK + 3;
    let points = vec![G::generator(); n];
    let mut scalars = vec![G::Scalar::ZERO; n];
    for (at, value) in [
        (0, 5),
        (G::MSM_CHUNK - 1, 7),
        (G::MSM_CHUNK, 11),
        (n - 1, 1),
    ] {
        scalars[at] = G::Scalar::from_integer(value);
    }
    let found = G::to_stored(&msm::<G>(&points, &scalars).unwrap());
    assert_eq!(found, point::<G>(G::Scalar::from_integer(24)));
}

fn refuses_lengths_that_differ<G: Group>() {
    let (points, logarithms) = progression::<G>(3);
    assert!(msm::<G>(&points, &logarithms[..2]).is_err());
}
