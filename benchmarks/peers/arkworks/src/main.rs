//! ark-groth16 on the benchmarks' circuit, a round at a time.
//!
//!     arkworks-peer CURVE N_CONSTRAINTS SEED
//!
//! makes the circuit (`benchmarks/circuit.py` has the same one), a key of its own and the witness
//! of the seed, then answers on standard output, one JSON object a line: first what it made, then
//! the seconds of one proof for every line of standard input. Each proof is verified outside of
//! the time. Threads: RAYON_NUM_THREADS.

use std::io::{BufRead, Write};
use std::time::Instant;

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ec::pairing::Pairing;
use ark_ff::{BigInteger, PrimeField, UniformRand};
use ark_groth16::r1cs_to_qap::LibsnarkReduction;
use ark_groth16::{Groth16, prepare_verifying_key};
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, ConstraintSystemRef, LinearCombination,
    OptimizationGoal, R1CS_PREDICATE_LABEL, SynthesisError, SynthesisMode, Variable,
};
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;

/// The constant c of the dense rows.
const ADDEND: u64 = 7;

/// Vigna's splitmix64, from any place of its sequence.
fn word(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Half bit rows b·(1 − b) = 0, half dense rows x' = x·(x + c); the last and the first x are public.
#[derive(Clone)]
struct Mixed {
    n_constraints: usize,
    seed: u64,
}

impl<F: PrimeField> ConstraintSynthesizer<F> for Mixed {
    fn generate_constraints(self, cs: ConstraintSystemRef<F>) -> Result<(), SynthesisError> {
        let n_bits = self.n_constraints / 2;
        let n_dense = self.n_constraints - n_bits;
        let mut first = [0; 32];
        for (i, bytes) in first.chunks_exact_mut(8).enumerate() {
            bytes.copy_from_slice(&word(self.seed, i as u64).to_le_bytes());
        }
        first[30..].fill(0);
        let mut values = vec![F::from_le_bytes_mod_order(&first)];
        for i in 0..n_dense {
            let x: F = values[i];
            values.push(x * (x + F::from(ADDEND)));
        }
        let last = cs.new_input_variable(|| Ok(values[n_dense]))?;
        let mut x = cs.new_input_variable(|| Ok(values[0]))?;
        for i in 0..n_bits {
            let bit = F::from(word(self.seed, 4 + i as u64) & 1);
            let b = cs.new_witness_variable(|| Ok(bit))?;
            cs.enforce_r1cs_constraint(
                || LinearCombination::from(b),
                || LinearCombination::from(Variable::One) - b,
                LinearCombination::zero,
            )?;
        }
        for i in 1..=n_dense {
            let next = if i == n_dense {
                last
            } else {
                cs.new_witness_variable(|| Ok(values[i]))?
            };
            cs.enforce_r1cs_constraint(
                || LinearCombination::from(x),
                || LinearCombination::from(x) + (F::from(ADDEND), Variable::One),
                || LinearCombination::from(next),
            )?;
            x = next;
        }
        Ok(())
    }
}

fn serve<E: Pairing>(circuit: &Mixed) -> Result<(), Box<dyn std::error::Error>> {
    let mut rng = StdRng::seed_from_u64(circuit.seed);
    let started = Instant::now();
    let key = Groth16::<E>::generate_random_parameters_with_reduction(circuit.clone(), &mut rng)?;
    let setup_s = started.elapsed().as_secs_f64();

    let cs = ConstraintSystem::<E::ScalarField>::new_ref();
    cs.set_optimization_goal(OptimizationGoal::Constraints);
    cs.set_mode(SynthesisMode::Prove {
        construct_matrices: true,
        generate_lc_assignments: false,
    });
    circuit.clone().generate_constraints(cs.clone())?;
    cs.finalize();
    let matrices = cs.to_matrices()?.remove(R1CS_PREDICATE_LABEL).expect("rows");
    let mut assignment = cs.instance_assignment()?;
    let n_inputs = assignment.len();
    assignment.extend(cs.witness_assignment()?);
    let statement = assignment[1..n_inputs].to_vec();
    let verifying_key = prepare_verifying_key(&key.vk);

    let mut out = std::io::stdout().lock();
    let hex: String = statement
        .iter()
        .flat_map(|value| value.into_bigint().to_bytes_le())
        .map(|byte| format!("{byte:02x}"))
        .collect();
    writeln!(
        out,
        "{{\"n_constraints\": {}, \"setup_s\": {setup_s}, \"threads\": {}, \"asm\": {}, \
         \"statement\": \"{hex}\"}}",
        cs.num_constraints(),
        rayon::current_num_threads(),
        cfg!(feature = "asm"),
    )?;
    out.flush()?;
    for line in std::io::stdin().lock().lines() {
        line?;
        let started = Instant::now();
        let proof = Groth16::<E, LibsnarkReduction>::create_proof_with_reduction_and_matrices(
            &key,
            E::ScalarField::rand(&mut rng),
            E::ScalarField::rand(&mut rng),
            &matrices,
            n_inputs,
            cs.num_constraints(),
            &assignment,
        )?;
        let seconds = started.elapsed().as_secs_f64();
        if !Groth16::<E>::verify_proof(&verifying_key, &proof, &statement)? {
            return Err("the proof does not verify".into());
        }
        writeln!(out, "{{\"seconds\": {seconds}}}")?;
        out.flush()?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [curve, n_constraints, seed] = arguments.as_slice() else {
        return Err("usage: arkworks-peer bn254|bls12-381 N_CONSTRAINTS SEED".into());
    };
    let circuit = Mixed {
        n_constraints: n_constraints.parse()?,
        seed: seed.parse()?,
    };
    match curve.as_str() {
        "bn254" => serve::<Bn254>(&circuit),
        "bls12-381" => serve::<Bls12_381>(&circuit),
        other => Err(format!("unknown curve {other:?}").into()),
    }
}
