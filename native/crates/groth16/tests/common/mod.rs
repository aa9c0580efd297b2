//! What the tests share: reproducible randomness, points with known logarithms, and a set-up.

#![allow(
    dead_code,
    reason = "every test program compiles this and uses its part"
)]

pub mod setup;

use partita_groth16::curve::Group;
use partita_groth16::field::ScalarField;

/// SplitMix64 (Steele, Lea, Flood 2014): reproducible values, nothing secret.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn scalar<F: ScalarField>(&mut self) -> F {
        loop {
            let limbs = [self.word(), self.word(), self.word(), self.word() >> 1];
            if let Some(value) = F::from_canonical(limbs) {
                return value;
            }
        }
    }

    pub fn scalars<F: ScalarField>(&mut self, n: usize) -> Vec<F> {
        (0..n).map(|_| self.scalar()).collect()
    }
}

/// exponent · generator, stored.
pub fn point<G: Group>(exponent: G::Scalar) -> G::Stored {
    G::to_stored(&G::multiply(&G::generator(), exponent))
}

/// Points in an arithmetic progression and their logarithms: partial sums meet in buckets.
pub fn progression<G: Group>(n: usize) -> (Vec<G::Stored>, Vec<G::Scalar>) {
    let step = G::from_stored(&G::generator());
    let mut sum = step;
    let mut points = Vec::with_capacity(n);
    for _ in 0..n {
        points.push(G::to_stored(&sum));
        sum = G::add(&sum, &step);
    }
    let logarithms = (1..=n as u64).map(G::Scalar::from_integer).collect();
    (points, logarithms)
}

/// The bytes of stored points.
pub fn stored_bytes<G: Group>(points: &[G::Stored]) -> Vec<u8> {
    let mut out = vec![0; points.len() * G::POINT_BYTES];
    for (point, bytes) in points.iter().zip(out.chunks_exact_mut(G::POINT_BYTES)) {
        G::store(point, bytes);
    }
    out
}

/// The bytes of scalars.
pub fn scalar_bytes<F: ScalarField>(scalars: &[F]) -> Vec<u8> {
    let mut out = vec![0; scalars.len() * 32];
    partita_groth16::field::write_scalars(scalars, &mut out);
    out
}

/// Σ coefficientₖ·xᵏ.
pub fn evaluate<F: ScalarField>(coefficients: &[F], x: F) -> F {
    coefficients
        .iter()
        .rev()
        .fold(F::ZERO, |sum, coefficient| sum * x + *coefficient)
}

/// Coefficients of the polynomial with these values on ⟨root⟩, by the definition.
pub fn interpolate<F: ScalarField>(values: &[F], root: F) -> Vec<F> {
    let inverse_root = root.inverse().unwrap();
    let scale = F::from_integer(values.len() as u64).inverse().unwrap();
    (0..values.len() as u64)
        .map(|k| evaluate(values, inverse_root.power(&[k])) * scale)
        .collect()
}
