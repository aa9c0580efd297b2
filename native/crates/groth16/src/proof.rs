//! Proofs as verifiers take them: parsed and checked to be three points of the groups.
//!
//! BLS12-381: 192 bytes A ‖ B ‖ C, compressed as Zcash and bellperson do.
//! BN254: 256 bytes A ‖ B ‖ C, big-endian affine, Fp2 as c1 ‖ c0 (EIP-197).

use crate::curve::{Curve, G1, G2, Group};
use crate::error::{Error, PointFault, Result};

/// A proof whose elements are points of prime order.
#[derive(Clone, Copy, Debug)]
pub struct Proof<C: Curve> {
    /// A in G1.
    pub a: G1<C>,
    /// B in G2.
    pub b: G2<C>,
    /// C in G1.
    pub c: G1<C>,
}

impl<C: Curve> Proof<C> {
    /// Parses and checks a proof.
    ///
    /// # Errors
    /// [`Error::Proof`] that names the element.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if bytes.len() != C::PROOF_BYTES {
            return Err(Error::Proof {
                element: "length",
                why: format!("expected {} bytes, found {}", C::PROOF_BYTES, bytes.len()),
            });
        }
        let fault = |element, fault: PointFault| Error::Proof {
            element,
            why: fault.text().to_owned(),
        };
        let (a, b, c) = C::decode_proof(bytes).map_err(|(element, why)| fault(element, why))?;
        C::G1::check(&a).map_err(|why| fault("A", why))?;
        C::G2::check(&b).map_err(|why| fault("B", why))?;
        C::G1::check(&c).map_err(|why| fault("C", why))?;
        Ok(Self { a, b, c })
    }

    /// The proof's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        C::encode_proof(&self.a, &self.b, &self.c)
    }
}
