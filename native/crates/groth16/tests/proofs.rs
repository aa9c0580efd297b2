//! Stages and verification together: systems are set up, proved and verified, and forgeries found.

mod common;

use common::setup::{Csr, Keys, System};
use common::{Random, point, scalar_bytes};
use partita_groth16::curve::{Bls12381, Bn254, Curve, Group};
use partita_groth16::error::{Error, PointFault};
use partita_groth16::field::{Family, ScalarField};
use partita_groth16::key::Query;
use partita_groth16::proof::Proof;
use partita_groth16::sparse::{Matrix, unsatisfied_row};
use partita_groth16::verify::VerifyingKey;

const SEED: [u8; 32] = [7; 32];

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
    proofs_of_both_families_verify
    another_statement_does_not_verify
    points_of_a_key_are_checked
    malformed_proofs_name_the_element
    a_batch_of_good_proofs_holds
    one_bad_proof_among_many_is_found
    two_errors_that_cancel_are_both_found
    a_malformed_item_leaves_the_others_their_verdicts
    malformed_verifying_keys_are_refused
    the_first_unsatisfied_row_is_named
    matrices_that_do_not_fit_are_refused
}

struct Case<C: Curve> {
    keys: Keys<C>,
    verifying: VerifyingKey<C>,
    /// Statement and proof, as bytes.
    items: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A system with two public inputs and `n` proofs of different statements.
fn case<C: Curve>(n: usize) -> Case<C> {
    let mut random = Random::new(11);
    let public: Vec<C::Scalar> = random.scalars(2);
    let (system, _) = System::chain(2, 5, &public, random.scalar());
    let keys = Keys::<C>::new(Family::Snarkjs, &system, &mut random).unwrap();
    let verifying = VerifyingKey::from_bytes(&keys.verifying).unwrap();
    let items = (0..n)
        .map(|_| {
            let public: Vec<C::Scalar> = random.scalars(2);
            let (_, witness) = System::chain(2, 5, &public, random.scalar());
            let proof = keys
                .prove(&witness, random.scalar(), random.scalar())
                .unwrap();
            (scalar_bytes(&public), proof.to_bytes())
        })
        .collect();
    Case {
        keys,
        verifying,
        items,
    }
}

fn batch<C: Curve>(case: &Case<C>) -> Vec<Result<bool, Error>> {
    let items: Vec<(&[u8], &[u8])> = case
        .items
        .iter()
        .map(|(statement, proof)| (&statement[..], &proof[..]))
        .collect();
    case.verifying.verify_batch(&items, &SEED).unwrap()
}

fn proofs_of_both_families_verify<C: Curve>() {
    let mut random = Random::new(10);
    for family in [Family::Snarkjs, Family::Bellperson] {
        // Rows and binding rows: 1 + 1 (one row), exactly a power of two, one more, more inputs.
        for (n_public, n_rows) in [(0, 1), (0, 3), (1, 6), (1, 7), (20, 3)] {
            let public: Vec<C::Scalar> = random.scalars(n_public);
            let (system, witness) = System::chain(n_public, n_rows, &public, random.scalar());
            let keys = Keys::<C>::new(family, &system, &mut random).unwrap();
            let proof = keys
                .prove(&witness, random.scalar(), random.scalar())
                .unwrap();
            let verifying = VerifyingKey::<C>::from_bytes(&keys.verifying).unwrap();
            assert_eq!(verifying.n_public(), n_public);
            let holds = verifying.verify(&scalar_bytes(&public), &proof.to_bytes());
            assert_eq!(
                holds,
                Ok(true),
                "{family:?}, {n_public} inputs, {n_rows} rows"
            );
            // A witness that breaks a row gives a proof that does not hold.
            let mut broken = witness.clone();
            broken[n_public + 1] = broken[n_public + 1] + C::Scalar::ONE;
            let proof = keys
                .prove(&broken, random.scalar(), random.scalar())
                .unwrap();
            let holds = verifying.verify(&scalar_bytes(&public), &proof.to_bytes());
            assert_eq!(holds, Ok(false));
        }
    }
}

fn another_statement_does_not_verify<C: Curve>() {
    let case = case::<C>(2);
    let [(first, proof), (second, _)] = &case.items[..] else {
        unreachable!()
    };
    assert_eq!(case.verifying.verify(first, proof), Ok(true));
    assert_eq!(case.verifying.verify(second, proof), Ok(false));
    assert!(matches!(
        case.verifying.verify(&first[..32], proof),
        Err(Error::Value(_))
    ));
    let mut large = first.clone();
    large[32..].fill(0xff);
    assert_eq!(
        case.verifying.verify(&large, proof),
        Err(Error::Scalar { index: 1 })
    );
}

fn points_of_a_key_are_checked<C: Curve>() {
    let keys = case::<C>(0).keys;
    for query in [Query::A, Query::B1, Query::B2, Query::C, Query::H] {
        assert_eq!(keys.proving.check_points(query), Ok(()));
    }
    assert!(keys.proving.size_bytes() > 0);
}

fn malformed_proofs_name_the_element<C: Curve>() {
    let case = case::<C>(1);
    let (statement, proof) = &case.items[0];
    let element = |bytes: &[u8]| match case.verifying.verify(statement, bytes) {
        Err(Error::Proof { element, .. }) => element,
        other => panic!("{other:?}"),
    };
    assert_eq!(element(&proof[1..]), "length");
    assert_eq!(element(&[&proof[..], &[0]].concat()), "length");
    assert_eq!(element(&vec![0; proof.len()]), "A");
    let quarter = proof.len() / 4;
    for (name, at) in [("A", 0), ("B", quarter), ("C", 3 * quarter)] {
        // Bits are set until a coordinate is too large, off the curve or out of the subgroup.
        let mut bytes = proof.clone();
        bytes[at..at + 16].fill(0xbf);
        assert_eq!(element(&bytes), name);
    }
}

fn a_batch_of_good_proofs_holds<C: Curve>() {
    let case = case::<C>(5);
    assert_eq!(batch(&case), vec![Ok(true); 5]);
    assert_eq!(case.verifying.verify_batch(&[], &SEED), Ok(Vec::new()));
}

fn one_bad_proof_among_many_is_found<C: Curve>() {
    let mut case = case::<C>(9);
    case.items[6].0 = case.items[5].0.clone();
    let mut expected = vec![Ok(true); 9];
    expected[6] = Ok(false);
    assert_eq!(batch(&case), expected);
}

fn two_errors_that_cancel_are_both_found<C: Curve>() {
    let mut case = case::<C>(4);
    // C₀ + D and C₂ − D: the product of the plain pairing equations stays 1.
    let shift = point::<C::G1>(C::Scalar::from_integer(12_345));
    for (at, difference) in [(0, shift), (2, C::G1::negate(&shift))] {
        let mut proof = Proof::<C>::from_bytes(&case.items[at].1).unwrap();
        proof.c = C::G1::to_stored(&C::G1::add(
            &C::G1::from_stored(&proof.c),
            &C::G1::from_stored(&difference),
        ));
        case.items[at].1 = proof.to_bytes();
    }
    assert_eq!(batch(&case), vec![Ok(false), Ok(true), Ok(false), Ok(true)]);
}

fn a_malformed_item_leaves_the_others_their_verdicts<C: Curve>() {
    let mut case = case::<C>(5);
    case.items[0].1.pop();
    case.items[1].0.fill(0xff);
    case.items[2].0.pop();
    case.items[3].0 = case.items[4].0.clone();
    let verdicts = batch(&case);
    assert!(matches!(
        verdicts[0],
        Err(Error::Proof {
            element: "length",
            ..
        })
    ));
    assert_eq!(verdicts[1], Err(Error::Scalar { index: 0 }));
    assert!(matches!(verdicts[2], Err(Error::Value(_))));
    assert_eq!(verdicts[3..], [Ok(false), Ok(true)]);
}

fn malformed_verifying_keys_are_refused<C: Curve>() {
    let bytes = case::<C>(0).keys.verifying;
    let refused = |bytes: &[u8]| VerifyingKey::<C>::from_bytes(bytes).err();
    let (g1, g2) = (C::G1::POINT_BYTES, C::G2::POINT_BYTES);
    for cut in [0, g1, bytes.len() - 1] {
        assert!(matches!(refused(&bytes[..cut]), Some(Error::Value(_))));
    }
    assert!(matches!(
        refused(&[&bytes[..], &[0]].concat()),
        Some(Error::Value(_))
    ));
    let mut infinite = bytes.clone();
    C::G2::to_plain(
        &C::G2::to_stored(&C::G2::zero()),
        &mut infinite[g1 + g2..g1 + 2 * g2],
    );
    assert_eq!(
        refused(&infinite),
        Some(Error::Point {
            index: 2,
            fault: PointFault::Infinity
        })
    );
    let mut off = bytes.clone();
    let second = g1 + 3 * g2 + 4 + g1;
    off[second + g1 - 1] ^= 1;
    assert_eq!(
        refused(&off),
        Some(Error::Point {
            index: 5,
            fault: PointFault::OffCurve
        })
    );
}

fn the_first_unsatisfied_row_is_named<C: Curve>() {
    let mut random = Random::new(12);
    let public: Vec<C::Scalar> = random.scalars(1);
    let (system, witness) = System::chain(1, 5000, &public, random.scalar());
    let mut dictionary = Vec::new();
    let [a, b, c] = [&system.a, &system.b, &system.c].map(|rows| {
        let csr = Csr::new(rows, &mut dictionary);
        Matrix::new("matrix", csr.bytes(), system.n_wires, 1).unwrap()
    });
    let first = |witness: &[C::Scalar]| unsatisfied_row([&a, &b, &c], &dictionary, witness);
    assert_eq!(first(&witness), Ok(None));
    let mut broken = witness.clone();
    // Wire 2 + i is the left side of row i and the result of row i − 1.
    for row in [4000, 3000, 4999] {
        broken[2 + row] = broken[2 + row] + C::Scalar::ONE;
    }
    assert_eq!(first(&broken), Ok(Some(2999)));
}

fn matrices_that_do_not_fit_are_refused<C: Curve>() {
    let rows = vec![vec![(0, C::Scalar::ONE), (3, -C::Scalar::ONE)], vec![]];
    let mut dictionary = Vec::new();
    let csr = Csr::new(&rows, &mut dictionary);
    let good = csr.bytes();
    let refused = |bytes, n_wires, n_coefficients| {
        Matrix::new("matrix_a", bytes, n_wires, n_coefficients).err()
    };
    assert_eq!(refused(good, 4, 2), None);
    assert!(refused(good, 3, 2).is_some(), "a wire too large");
    assert!(refused(good, 4, 1).is_some(), "a coefficient too large");
    let mut bytes = good;
    bytes.wire = &good.wire[..4];
    assert!(refused(bytes, 4, 2).is_some(), "an entry too few");
    bytes.wire = &good.wire[..7];
    assert!(refused(bytes, 4, 2).is_some(), "half an entry");
    let mut bytes = good;
    bytes.row_ptr = &good.row_ptr[8..];
    assert!(
        refused(bytes, 4, 2).is_some(),
        "rows that do not begin at 0"
    );
    bytes.row_ptr = &[];
    assert!(refused(bytes, 4, 2).is_some(), "no rows at all");
    let falling: Vec<u8> = [0_u64, 2, 1, 2]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    bytes.row_ptr = &falling;
    assert!(refused(bytes, 4, 2).is_some(), "rows that fall");
}
