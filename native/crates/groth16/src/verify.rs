//! Verification of single proofs and of randomised batches.
//!
//! A proof (A, B, C) for the statement s holds iff
//! e(A, B) · e(−L, γ) · e(−C, δ) · e(−α, β) = 1, with L = IC₀ + Σ sⱼ·ICⱼ.
//!
//! A batch holds, but for an error of about 2⁻¹²⁸, iff with random 128-bit zᵢ
//! Π e(zᵢAᵢ, Bᵢ) · e(−Σzᵢ·Lᵢ, γ) · e(−Σzᵢ·Cᵢ, δ) · e(−Σzᵢ·α, β) = 1:
//! the small exponents test of Bellare, Garay and Rabin (EUROCRYPT 1998), as in the Zcash protocol
//! specification, appendix B.2. It is sound only in groups of prime order, which parsing ensures.
//! A batch that fails is bisected; the Miller loops of e(zᵢAᵢ, Bᵢ) are computed once and reused.

use rayon::prelude::*;

use crate::curve::{Curve, G1, G2, Group};
use crate::error::{Error, PointFault, Result, require_equal};
use crate::field::{SCALAR_BYTES, ScalarField, limbs_from_le, read_scalars};
use crate::msm::msm;
use crate::proof::Proof;
use crate::stamps::stamp;

/// Bytes of a batch's seed.
pub const SEED_BYTES: usize = 32;

/// A verifying key, checked and prepared.
pub struct VerifyingKey<C: Curve> {
    gamma: G2<C>,
    delta: G2<C>,
    beta: G2<C>,
    alpha_negated: G1<C>,
    ic: Vec<G1<C>>,
    /// The Miller loop of (−α, β).
    alpha_beta: C::Miller,
}

/// One entry of a batch: its statement and its proof, as bytes.
pub type Item<'a> = (&'a [u8], &'a [u8]);

/// What a batch says of one entry: whether the pairing check holds, or why there was none.
pub type Verdict = Result<bool>;

/// An entry that parsed, with what the batch needs of it.
struct Candidate<C: Curve> {
    at: usize,
    z: C::Scalar,
    statement: Vec<C::Scalar>,
    c: G1<C>,
    /// The Miller loop of (z·A, B).
    miller: C::Miller,
}

impl<C: Curve> VerifyingKey<C> {
    /// Parses α, β, γ, δ, u32 count (little-endian) and IC, points in plain form.
    ///
    /// # Errors
    /// [`Error::Value`] for a wrong length; [`Error::Point`] with the place in the order above
    /// (α is 0, IC₀ is 4). α, β, γ and δ may not be infinity; elements of IC may.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (g1, g2) = (C::G1::POINT_BYTES, C::G2::POINT_BYTES);
        let header = g1 + 3 * g2;
        let count = bytes
            .get(header..header + 4)
            .and_then(|word| word.try_into().ok())
            .map(u32::from_le_bytes)
            .ok_or_else(|| {
                Error::Value(format!(
                    "verifying key: {} bytes, shorter than the {} before IC",
                    bytes.len(),
                    header + 4
                ))
            })? as usize;
        require_equal(
            &format!("bytes of a verifying key with {count} elements of IC"),
            count.saturating_mul(g1).saturating_add(header + 4),
            bytes.len(),
        )?;
        if count == 0 {
            return Err(Error::Value(
                "verifying key: IC is empty; it has an element for the constant at least"
                    .to_owned(),
            ));
        }
        let alpha = required::<C::G1>(0, &bytes[..g1])?;
        let [beta, gamma, delta] =
            [0, 1, 2].map(|i| required::<C::G2>(i + 1, &bytes[g1 + i * g2..g1 + (i + 1) * g2]));
        let (beta, gamma, delta) = (beta?, gamma?, delta?);
        let ic = bytes[header + 4..]
            .par_chunks_exact(g1)
            .enumerate()
            .map(|(i, word)| plain::<C::G1>(i + 4, word))
            .collect::<Result<Vec<_>>>()?;
        let alpha_negated = C::G1::negate(&alpha);
        Ok(Self {
            gamma,
            delta,
            beta,
            alpha_negated,
            ic,
            alpha_beta: C::miller(&[(alpha_negated, beta)]),
        })
    }

    /// Public inputs that a statement has.
    #[must_use]
    pub fn n_public(&self) -> usize {
        self.ic.len() - 1
    }

    /// Whether the proof holds for the statement.
    ///
    /// # Errors
    /// [`Error::Value`] for a statement of another length, [`Error::Scalar`], [`Error::Proof`].
    pub fn verify(&self, statement: &[u8], proof: &[u8]) -> Result<bool> {
        let statement = self.parse_statement(statement)?;
        let proof = Proof::<C>::from_bytes(proof)?;
        self.check(&statement, &proof)
    }

    /// A verdict for every entry, by one randomised check where all hold. The seed must come from
    /// a CSPRNG after the proofs are fixed.
    ///
    /// # Errors
    /// [`Error::Memory`]; faults of an entry are its verdict.
    pub fn verify_batch(
        &self,
        items: &[Item<'_>],
        seed: &[u8; SEED_BYTES],
    ) -> Result<Vec<Verdict>> {
        let parsed = items
            .par_iter()
            .enumerate()
            .with_max_len(1)
            .map(|(at, (statement, proof))| {
                stamp();
                let statement = self.parse_statement(statement)?;
                let proof = Proof::<C>::from_bytes(proof)?;
                let z = coefficient::<C::Scalar>(seed, at);
                let a = C::G1::to_stored(&C::G1::multiply(&proof.a, z));
                Ok(Candidate::<C> {
                    at,
                    z,
                    statement,
                    c: proof.c,
                    miller: C::miller(&[(a, proof.b)]),
                })
            })
            .collect::<Vec<_>>();
        let mut verdicts = Vec::with_capacity(items.len());
        let mut candidates = Vec::with_capacity(items.len());
        for outcome in parsed {
            match outcome {
                Ok(candidate) => {
                    candidates.push(candidate);
                    verdicts.push(Ok(false));
                }
                Err(Error::Memory { size_bytes }) => return Err(Error::Memory { size_bytes }),
                Err(fault) => verdicts.push(Err(fault)),
            }
        }
        self.bisect(&candidates, &mut verdicts)?;
        Ok(verdicts)
    }

    fn bisect(&self, candidates: &[Candidate<C>], verdicts: &mut [Verdict]) -> Result<()> {
        if candidates.is_empty() {
            return Ok(());
        }
        if self.check_together(candidates)? {
            for candidate in candidates {
                verdicts[candidate.at] = Ok(true);
            }
            return Ok(());
        }
        if candidates.len() > 1 {
            let (left, right) = candidates.split_at(candidates.len() / 2);
            self.bisect(left, verdicts)?;
            self.bisect(right, verdicts)?;
        }
        Ok(())
    }

    fn check_together(&self, candidates: &[Candidate<C>]) -> Result<bool> {
        stamp();
        let zero = C::Scalar::ZERO;
        let mut inputs = vec![zero; self.ic.len()];
        for candidate in candidates {
            inputs[0] = inputs[0] + candidate.z;
            for (sum, value) in inputs[1..].iter_mut().zip(&candidate.statement) {
                *sum = *sum + candidate.z * *value;
            }
        }
        let z_sum = inputs[0];
        let (c, z): (Vec<_>, Vec<_>) = candidates.iter().map(|item| (item.c, item.z)).unzip();
        let l = msm::<C::G1>(&self.ic, &inputs)?;
        let c = msm::<C::G1>(&c, &z)?;
        let alpha = C::G1::multiply(&self.alpha_negated, z_sum);
        let rest = self.miller([
            (C::G1::negate(&C::G1::to_stored(&l)), self.gamma),
            (C::G1::negate(&C::G1::to_stored(&c)), self.delta),
            (C::G1::to_stored(&alpha), self.beta),
        ]);
        let product = candidates.iter().fold(rest, |product, candidate| {
            C::miller_product(&product, &candidate.miller)
        });
        Ok(C::is_one(&product))
    }

    fn check(&self, statement: &[C::Scalar], proof: &Proof<C>) -> Result<bool> {
        let inputs: Vec<_> = std::iter::once(C::Scalar::ONE)
            .chain(statement.iter().copied())
            .collect();
        let l = msm::<C::G1>(&self.ic, &inputs)?;
        let product = self.miller([
            (proof.a, proof.b),
            (C::G1::negate(&C::G1::to_stored(&l)), self.gamma),
            (C::G1::negate(&proof.c), self.delta),
        ]);
        Ok(C::is_one(&C::miller_product(&product, &self.alpha_beta)))
    }

    fn miller<const N: usize>(&self, pairs: [(G1<C>, G2<C>); N]) -> C::Miller {
        C::miller(&pairs)
    }

    fn parse_statement(&self, bytes: &[u8]) -> Result<Vec<C::Scalar>> {
        require_equal(
            "bytes of the statement",
            self.n_public() * SCALAR_BYTES,
            bytes.len(),
        )?;
        Ok(read_scalars::<C::Scalar>(bytes)?.to_vec())
    }
}

/// The random coefficient of the entry: 128 bits of SHA-256(seed ‖ index), never zero.
fn coefficient<F: ScalarField>(seed: &[u8; SEED_BYTES], at: usize) -> F {
    let mut message = [0; SEED_BYTES + 8];
    message[..SEED_BYTES].copy_from_slice(seed);
    message[SEED_BYTES..].copy_from_slice(&(at as u64).to_le_bytes());
    let mut digest = [0; 32];
    // SAFETY: blst reads the message's length and writes 32 bytes.
    unsafe { blst::blst_sha256(digest.as_mut_ptr(), message.as_ptr(), message.len()) };
    let [low, high] = limbs_from_le::<2>(&digest[..16]);
    F::from_canonical([low, high, 0, 0])
        .filter(|value| *value != F::ZERO)
        .unwrap_or(F::ONE)
}

fn plain<G: Group>(index: usize, bytes: &[u8]) -> Result<G::Stored> {
    G::from_plain(bytes).map_err(|fault| Error::Point { index, fault })
}

fn required<G: Group>(index: usize, bytes: &[u8]) -> Result<G::Stored> {
    let point = plain::<G>(index, bytes)?;
    if G::is_infinity(&point) {
        return Err(Error::Point {
            index,
            fault: PointFault::Infinity,
        });
    }
    Ok(point)
}
