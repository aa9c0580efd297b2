//! The development set-up: multiples of a fixed base, toxic waste, and keys of the definition.

mod common;

use common::setup::{Csr, System};
use common::{Random, point, progression, scalar_bytes, stored_bytes};
use partita_groth16::curve::coordinates::Affine;
use partita_groth16::curve::{Bls12381, Bn254, Curve, Group};
use partita_groth16::error::Error;
use partita_groth16::field::{Family, ScalarField};
use partita_groth16::fixed_base::FixedBase;
use partita_groth16::key::Query;
use partita_groth16::setup::{Setup, SystemParts};
use partita_groth16::toxic::ToxicWaste;

macro_rules! for_both_curves {
    ($($test:ident)*) => {$(
        mod $test {
            use super::*;

            #[test]
            fn bls12_381() {
                super::$test::<Bls12381>();
            }
            #[test]
            fn bn254() {
                super::$test::<Bn254>();
            }
        }
    )*};
}

for_both_curves! {
    multiples_of_a_fixed_base_are_those_of_single_multiplications
    a_long_run_of_multiples_is_right_for_every_table
    exponents_are_those_of_the_definition
    a_seed_gives_the_same_secrets_and_another_seed_others
    what_makes_no_key_is_refused
}

fn multiples<G: Affine>(n_planned: usize, scalars: &[G::Scalar]) -> Vec<u8> {
    let base = FixedBase::<G>::new(n_planned).unwrap();
    let mut out = vec![0xff; scalars.len() * G::POINT_BYTES];
    base.multiply(scalars, &mut out).unwrap();
    out
}

fn multiples_of_a_fixed_base_are_those_of_single_multiplications<C: Curve>() {
    fn check<G: Affine>() {
        let one = G::Scalar::ONE;
        let two = G::Scalar::from_integer(2);
        let mut scalars = vec![G::Scalar::ZERO, one, -one, two, -two];
        // Digits at and around the half where the sign turns, for every width of window.
        for bit in 0..254 {
            let power = two.power(&[bit]);
            scalars.extend([power, power - one, power + one, -power]);
        }
        scalars.extend(Random::new(3).scalars::<G::Scalar>(50));
        let expected: Vec<_> = scalars.iter().map(|scalar| point::<G>(*scalar)).collect();
        let expected = stored_bytes::<G>(&expected);
        for n_planned in [1, 100, 5_000, 200_000] {
            assert!(
                multiples::<G>(n_planned, &scalars) == expected,
                "{n_planned}"
            );
        }
    }
    check::<C::G1>();
    check::<C::G2>();
}

fn a_long_run_of_multiples_is_right_for_every_table<C: Curve>() {
    fn check<G: Affine>() {
        let (points, logarithms) = progression::<G>(3_000);
        assert!(multiples::<G>(3_000, &logarithms) == stored_bytes::<G>(&points));
    }
    check::<C::G1>();
    check::<C::G2>();
}

/// The chain of `System` with its matrices as bytes.
struct Case {
    n_wires: usize,
    matrices: [Csr; 3],
    dictionary: Vec<u8>,
}

impl Case {
    fn new<F: ScalarField>(system: &System<F>) -> Self {
        let mut dictionary = Vec::new();
        let matrices = [&system.a, &system.b, &system.c].map(|m| Csr::new(m, &mut dictionary));
        Self {
            n_wires: system.n_wires,
            matrices,
            dictionary: scalar_bytes(&dictionary),
        }
    }

    fn parts(&self, family: Family, n_public: usize) -> SystemParts<'_> {
        let [matrix_a, matrix_b, matrix_c] = self.matrices.each_ref().map(Csr::bytes);
        SystemParts {
            family,
            n_public,
            n_wires: self.n_wires,
            matrix_a,
            matrix_b,
            matrix_c,
            dictionary: &self.dictionary,
        }
    }
}

fn chain<C: Curve>(n_rows: usize) -> Case {
    let mut random = Random::new(17);
    let public: Vec<C::Scalar> = random.scalars(2);
    Case::new(&System::chain(2, n_rows, &public, random.scalar()).0)
}

fn query<C: Curve>(setup: &Setup<C>, query: Query) -> Vec<u8> {
    let mut out = vec![0; setup.query_bytes(query)];
    setup.write_query(query, &mut out).unwrap();
    out
}

/// With τ known, A's point of the wire that only its binding row names is L(τ) of that row.
fn exponents_are_those_of_the_definition<C: Curve>() {
    let secrets: Vec<C::Scalar> = Random::new(5).scalars(5);
    let tau = secrets[4];
    let delta_inverse = secrets[3].inverse().unwrap();
    for (family, n_rows) in [(Family::Snarkjs, 5), (Family::Bellperson, 6)] {
        let waste = ToxicWaste::from_bytes(&scalar_bytes(&secrets)).unwrap();
        let case = chain::<C>(n_rows);
        let setup = Setup::<C>::new(&case.parts(family, 2), &waste).unwrap();
        let m = setup.domain_size();
        assert_eq!(m, (n_rows + 3).next_power_of_two());
        let root = C::Scalar::root_of_unity(family, m.trailing_zeros()).unwrap();
        let at = root.power(&[n_rows as u64]);
        let z = tau.power(&[m as u64]) - C::Scalar::ONE;
        let weight = at
            * z
            * (C::Scalar::from_integer(m as u64) * (tau - at))
                .inverse()
                .unwrap();
        let expected = stored_bytes::<C::G1>(&[point::<C::G1>(weight)]);
        assert!(query(&setup, Query::A)[..C::G1::POINT_BYTES] == expected);

        let h = query(&setup, Query::H);
        let last = match family {
            Family::Snarkjs => {
                let root = C::Scalar::root_of_unity(family, m.trailing_zeros() + 1).unwrap();
                let at = root.power(&[2 * m as u64 - 1]);
                let z = tau.power(&[2 * m as u64]) - C::Scalar::ONE;
                let divisor = C::Scalar::from_integer(2 * m as u64) * (tau - at);
                at * z * divisor.inverse().unwrap() * delta_inverse
            }
            Family::Bellperson => tau.power(&[m as u64 - 2]) * z * delta_inverse,
        };
        let expected = stored_bytes::<C::G1>(&[point::<C::G1>(last)]);
        assert!(h[h.len() - C::G1::POINT_BYTES..] == expected);
    }
}

fn a_seed_gives_the_same_secrets_and_another_seed_others<C: Curve>() {
    let case = chain::<C>(5);
    let alpha = |waste: ToxicWaste<C::Scalar>| {
        let setup = Setup::<C>::new(&case.parts(Family::Snarkjs, 2), &waste).unwrap();
        setup.singles().alpha_g1.clone()
    };
    let first = alpha(ToxicWaste::from_seed(b"one"));
    assert!(first == alpha(ToxicWaste::from_seed(b"one")));
    assert!(first != alpha(ToxicWaste::from_seed(b"two")));
    assert!(alpha(ToxicWaste::random().unwrap()) != alpha(ToxicWaste::random().unwrap()));
    let text = format!("{:?}", ToxicWaste::<C::Scalar>::from_seed(b"one"));
    assert_eq!(text, "ToxicWaste(secret)");
}

fn what_makes_no_key_is_refused<C: Curve>() {
    let case = chain::<C>(5);
    let waste = || ToxicWaste::<C::Scalar>::from_seed(b"one");
    let refused = |parts: &SystemParts<'_>, waste| Setup::<C>::new(parts, &waste).err();
    let value = |text: &str| Some(Error::Value(text.to_owned()));

    let n = case.n_wires;
    let text = format!("n_public: {n} public wires and the constant exceed {n} wires");
    assert_eq!(
        refused(&case.parts(Family::Snarkjs, n), waste()),
        value(&text)
    );

    let mut uneven = case.parts(Family::Snarkjs, 2);
    let other = chain::<C>(4);
    uneven.matrix_c = other.matrices[2].bytes();
    assert_eq!(
        refused(&uneven, waste()),
        value("rows of matrix_c: expected 5, found 4")
    );

    let mut secrets: Vec<C::Scalar> = Random::new(5).scalars(5);
    // Eight rows: the sixteenth root lies in the double domain.
    secrets[4] = C::Scalar::root_of_unity(Family::Snarkjs, 4).unwrap();
    let in_domain = ToxicWaste::from_bytes(&scalar_bytes(&secrets)).unwrap();
    assert_eq!(
        refused(&case.parts(Family::Snarkjs, 2), in_domain),
        value("tau lies in the domain")
    );
    secrets[1] = C::Scalar::ZERO;
    assert_eq!(
        ToxicWaste::<C::Scalar>::from_bytes(&scalar_bytes(&secrets)).err(),
        value("toxic waste[1] is zero")
    );
}
