//! NTTs and quotients against their definitions.

mod common;

use ark_ff::{FftField, PrimeField};
use common::{Random, evaluate, interpolate, scalar_bytes};
use partita_groth16::field::{Bls12381Scalar, Bn254Scalar, Family, ScalarField, read_scalars};
use partita_groth16::ntt::Ntt;
use partita_groth16::quotient::Quotient;

const FAMILIES: [Family; 2] = [Family::Snarkjs, Family::Bellperson];

macro_rules! for_both_fields {
    ($($test:ident)*) => {$(
        mod $test {
            use super::*;

            #[test]
            fn bls12_381() {
                super::$test::<Bls12381Scalar>();
            }
            #[test]
            fn bn254() {
                super::$test::<Bn254Scalar>();
            }
        }
    )*};
}

for_both_fields! {
    roots_have_their_order
    the_inverse_transform_interpolates
    the_forward_transform_evaluates_on_a_coset
    long_transforms_agree_with_horner
    snarkjs_quotients_are_evaluations_on_the_odd_coset
    bellperson_quotients_are_coefficients
    a_stored_c_is_used
}

#[test]
fn roots_are_the_families_own() {
    let five = Bls12381Scalar::from_integer(5);
    let bls = Bls12381Scalar::root_of_unity(Family::Snarkjs, 32).unwrap();
    assert_eq!(bls, five.power(&Bls12381Scalar::odd_part()));
    let bellperson = Bls12381Scalar::root_of_unity(Family::Bellperson, 32).unwrap();
    assert_ne!(bls, bellperson);
    assert_eq!(
        bellperson.to_canonical(),
        ark_bls12_381::Fr::TWO_ADIC_ROOT_OF_UNITY.into_bigint().0
    );
    for family in FAMILIES {
        assert_eq!(
            Bn254Scalar::root_of_unity(family, 28)
                .unwrap()
                .to_canonical(),
            ark_bn254::Fr::TWO_ADIC_ROOT_OF_UNITY.into_bigint().0
        );
    }
}

fn roots_have_their_order<F: ScalarField>() {
    for family in FAMILIES {
        assert_eq!(F::root_of_unity(family, F::TWO_ADICITY + 1), None);
        assert_eq!(F::root_of_unity(family, 0), Some(F::ONE));
        let root = F::root_of_unity(family, F::TWO_ADICITY).unwrap();
        assert_eq!(root.power(&[1 << (F::TWO_ADICITY - 1)]), -F::ONE);
    }
}

fn the_inverse_transform_interpolates<F: ScalarField>() {
    let mut random = Random::new(1);
    for family in FAMILIES {
        for log_n in 0..=6 {
            let ntt = Ntt::<F>::new(family, log_n).unwrap();
            let values: Vec<F> = random.scalars(1 << log_n);
            let mut found = values.clone();
            ntt.inverse(&mut found);
            ntt.permute(&mut found);
            for value in &mut found {
                *value = *value * ntt.scale();
            }
            let root = F::root_of_unity(family, log_n).unwrap();
            assert_eq!(found, interpolate(&values, root), "2^{log_n}");
        }
    }
}

fn the_forward_transform_evaluates_on_a_coset<F: ScalarField>() {
    let mut random = Random::new(2);
    for log_n in 0..=6 {
        let ntt = Ntt::<F>::new(Family::Snarkjs, log_n).unwrap();
        let root = F::root_of_unity(Family::Snarkjs, log_n).unwrap();
        let coefficients: Vec<F> = random.scalars(1 << log_n);
        let (shift, factor) = (random.scalar::<F>(), random.scalar::<F>());
        let mut found = coefficients.clone();
        ntt.permute(&mut found);
        ntt.shift(&mut [&mut found], shift, factor);
        ntt.forward(&mut found);
        let expected: Vec<F> = (0..1 << log_n)
            .map(|i| factor * evaluate(&coefficients, shift * root.power(&[i])))
            .collect();
        assert_eq!(found, expected, "2^{log_n}");
    }
}

fn long_transforms_agree_with_horner<F: ScalarField>() {
    let mut random = Random::new(3);
    let log_n = 15;
    let ntt = Ntt::<F>::new(Family::Bellperson, log_n).unwrap();
    let root = F::root_of_unity(Family::Bellperson, log_n).unwrap();
    let values: Vec<F> = random.scalars(1 << log_n);
    let mut coefficients = values.clone();
    ntt.inverse(&mut coefficients);
    let shift = random.scalar::<F>();
    let mut shifted = coefficients.clone();
    ntt.shift(&mut [&mut shifted], shift, ntt.scale());
    ntt.forward(&mut shifted);
    ntt.permute(&mut coefficients);
    for value in &mut coefficients {
        *value = *value * ntt.scale();
    }
    for i in [0, 1, 2, 4095, 4096, 16_384, 32_767] {
        let x = root.power(&[i]);
        assert_eq!(evaluate(&coefficients, x), values[i as usize]);
        assert_eq!(evaluate(&coefficients, shift * x), shifted[i as usize]);
    }
}

/// Coefficients of a·b − c, of degree below 2m − 1.
fn numerator<F: ScalarField>(a: &[F], b: &[F], c: &[F]) -> Vec<F> {
    let mut product = vec![F::ZERO; 2 * a.len() - 1];
    for (i, a) in a.iter().enumerate() {
        for (j, b) in b.iter().enumerate() {
            product[i + j] = product[i + j] + *a * *b;
        }
    }
    for (value, c) in product.iter_mut().zip(c) {
        *value = *value - *c;
    }
    product
}

fn run<F: ScalarField>(family: Family, a: &[F], b: &[F], c: Option<&[F]>) -> Vec<F> {
    let mapped = |values: &[F]| read_scalars::<F>(&scalar_bytes(values)).unwrap();
    let quotient = Quotient::<F>::new(family, a.len().trailing_zeros()).unwrap();
    quotient
        .compute(mapped(a), mapped(b), c.map(mapped))
        .unwrap()
        .to_vec()
}

fn products<F: ScalarField>(a: &[F], b: &[F]) -> Vec<F> {
    a.iter().zip(b).map(|(a, b)| *a * *b).collect()
}

fn snarkjs_quotients_are_evaluations_on_the_odd_coset<F: ScalarField>() {
    let mut random = Random::new(4);
    for log_m in 0..=5 {
        let (a, b): (Vec<F>, Vec<F>) = (random.scalars(1 << log_m), random.scalars(1 << log_m));
        let root = F::root_of_unity(Family::Snarkjs, log_m).unwrap();
        let double = F::root_of_unity(Family::Snarkjs, log_m + 1).unwrap();
        let [pa, pb, pc] = [&a, &b, &products(&a, &b)].map(|values| interpolate(values, root));
        let polynomial = numerator(&pa, &pb, &pc);
        let expected: Vec<F> = (0..1 << log_m)
            .map(|i| evaluate(&polynomial, double.power(&[2 * i + 1])))
            .collect();
        assert_eq!(run(Family::Snarkjs, &a, &b, None), expected, "2^{log_m}");
    }
}

fn bellperson_quotients_are_coefficients<F: ScalarField>() {
    let mut random = Random::new(5);
    for log_m in 0..=5 {
        let m = 1 << log_m;
        let (a, b): (Vec<F>, Vec<F>) = (random.scalars(m), random.scalars(m));
        let c = products(&a, &b);
        let root = F::root_of_unity(Family::Bellperson, log_m).unwrap();
        let [pa, pb, pc] = [&a, &b, &c].map(|values| interpolate(values, root));
        let polynomial = numerator(&pa, &pb, &pc);
        // h·(Xᵐ − 1): the upper half is h, the lower half −h.
        let h = polynomial[m..].to_vec();
        for (low, high) in polynomial.iter().zip(&h) {
            assert_eq!(*low, -*high);
        }
        assert_eq!(run(Family::Bellperson, &a, &b, None), h, "2^{log_m}");
        assert_eq!(run(Family::Bellperson, &a, &b, Some(&c)), h, "2^{log_m}");
    }
}

fn a_stored_c_is_used<F: ScalarField>() {
    let mut random = Random::new(6);
    for family in FAMILIES {
        let (a, b): (Vec<F>, Vec<F>) = (random.scalars(8), random.scalars(8));
        let other: Vec<F> = random.scalars(8);
        assert_ne!(run(family, &a, &b, None), run(family, &a, &b, Some(&other)));
    }
}

#[test]
fn domains_beyond_the_field_are_refused() {
    assert!(Quotient::<Bn254Scalar>::new(Family::Snarkjs, 29).is_err());
}
