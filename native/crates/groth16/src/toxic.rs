//! The five secrets of a trusted set-up. Whoever knows one of them can forge proofs.
//!
//! They exist only in memory, have no textual form, and are overwritten when dropped.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::ptr;
use std::sync::atomic::{Ordering, compiler_fence};

use crate::error::{Error, Result, require_equal};
use crate::field::{SCALAR_BYTES, ScalarField, limbs_from_le, read_scalars};

const N_SECRETS: usize = 5;
const DOMAIN: &[u8; 24] = b"partita insecure set-up\0";
const ENTROPY_BYTES: usize = 64;

/// α, β, γ, δ and τ; none is zero.
pub struct ToxicWaste<F: ScalarField> {
    values: [F; N_SECRETS],
}

impl<F: ScalarField> ToxicWaste<F> {
    /// From the system's randomness.
    ///
    /// # Errors
    /// [`Error::Value`] if the system gives none.
    pub fn random() -> Result<Self> {
        let mut entropy = [0; ENTROPY_BYTES];
        let outcome = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut entropy));
        let secrets = Self::from_seed(&entropy);
        wipe(&mut entropy);
        outcome.map_err(|error| Error::Value(format!("randomness of the system: {error}")))?;
        Ok(secrets)
    }

    /// From a seed, always the same: anyone who has the seed has the secrets.
    #[must_use]
    pub fn from_seed(seed: &[u8]) -> Self {
        let mut values = [F::ZERO; N_SECRETS];
        for (i, value) in values.iter_mut().enumerate() {
            *value = (0_u32..)
                .find_map(|attempt| candidate(seed, i as u8, attempt))
                .expect("half of all candidates are below the modulus");
        }
        Self { values }
    }

    /// From canonical scalars in the order α, β, γ, δ, τ.
    ///
    /// # Errors
    /// [`Error::Value`] for another length or a zero, [`Error::Scalar`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        require_equal(
            "bytes of toxic waste",
            N_SECRETS * SCALAR_BYTES,
            bytes.len(),
        )?;
        let mut scalars = read_scalars::<F>(bytes)?;
        let mut values = [F::ZERO; N_SECRETS];
        values.copy_from_slice(&scalars);
        wipe(&mut scalars);
        let waste = Self { values };
        match waste.values.iter().position(|value| *value == F::ZERO) {
            None => Ok(waste),
            Some(at) => Err(Error::Value(format!("toxic waste[{at}] is zero"))),
        }
    }

    pub(crate) fn alpha(&self) -> F {
        self.values[0]
    }
    pub(crate) fn beta(&self) -> F {
        self.values[1]
    }
    pub(crate) fn gamma(&self) -> F {
        self.values[2]
    }
    pub(crate) fn delta(&self) -> F {
        self.values[3]
    }
    pub(crate) fn tau(&self) -> F {
        self.values[4]
    }
}

impl<F: ScalarField> Drop for ToxicWaste<F> {
    fn drop(&mut self) {
        wipe(&mut self.values);
    }
}

impl<F: ScalarField> fmt::Debug for ToxicWaste<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ToxicWaste(secret)")
    }
}

/// 256 bits of SHA-256(domain, index, attempt, seed), cut to the modulus' length; `None` if they
/// are zero or not below it.
fn candidate<F: ScalarField>(seed: &[u8], index: u8, attempt: u32) -> Option<F> {
    let mut message = Vec::with_capacity(DOMAIN.len() + 5 + seed.len());
    message.extend_from_slice(DOMAIN);
    message.push(index);
    message.extend_from_slice(&attempt.to_le_bytes());
    message.extend_from_slice(seed);
    let mut digest = [0; 32];
    // SAFETY: blst reads the message's length and writes 32 bytes.
    unsafe { blst::blst_sha256(digest.as_mut_ptr(), message.as_ptr(), message.len()) };
    let mut limbs = limbs_from_le::<4>(&digest);
    let largest = (-F::ONE).to_canonical();
    limbs[3] &= u64::MAX >> largest[3].leading_zeros();
    let value = F::from_canonical(limbs).filter(|value| *value != F::ZERO);
    wipe(&mut message);
    wipe(&mut digest);
    wipe(&mut limbs);
    value
}

/// Overwrites values so that the compiler may not leave it out.
fn wipe<T: crate::memory::Zeroable>(values: &mut [T]) {
    for value in values {
        // SAFETY: a valid reference, and all-zero bytes are a value of the type.
        unsafe { ptr::write_volatile(value, std::mem::zeroed()) };
    }
    compiler_fence(Ordering::SeqCst);
}
