//! Number-theoretic transforms of length 2^k, in place and without bit reversals between them.
//!
//! The inverse transform decimates in frequency (natural order in, bit-reversed out), the forward
//! transform in time (bit-reversed in, natural out), so that what lies between the two, shifting
//! to a coset, works on bit-reversed coefficients and nothing is ever permuted.
//! Both recurse depth-first, so that each half soon fits a core's cache.
//!
//! Cooley & Tukey 1965 (time), Gentleman & Sande 1966 (frequency).

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::field::{Family, ScalarField};
use crate::memory::Mapped;
use crate::stamps::stamp;

/// Blocks of this length are transformed by one task, in its cache.
const BLOCK: usize = 1 << 12;
/// Butterflies, or elements, that one task handles outside a block.
const TILE: usize = 1 << 11;

/// The transforms over ⟨ω⟩, ω of order n = 2^log_n, with their twiddles.
pub struct Ntt<F: ScalarField> {
    log_n: u32,
    /// Powers of the root of each level, one level after the other: the level with blocks of
    /// length 2·h holds h powers and begins at h − 1.
    twiddles: Mapped<F>,
    n_inverse: F,
}

impl<F: ScalarField> Ntt<F> {
    /// Prepares transforms of length 2^log_n with the family's root.
    ///
    /// # Errors
    /// [`Error::Value`] beyond the field's 2-adicity, [`Error::Memory`].
    pub fn new(family: Family, log_n: u32) -> Result<Self> {
        let root = F::root_of_unity(family, log_n).ok_or_else(|| {
            Error::Value(format!(
                "domain of 2^{log_n}: the field has roots of unity up to order 2^{}",
                F::TWO_ADICITY
            ))
        })?;
        let n = 1_usize << log_n;
        let mut twiddles = Mapped::zeroed(n - 1)?;
        let mut half = n / 2;
        if half > 0 {
            fill_powers(&mut twiddles[half - 1..], root, F::ONE);
        }
        while half > 1 {
            let (lower, upper) = twiddles.split_at_mut(half - 1);
            half /= 2;
            lower[half - 1..]
                .par_iter_mut()
                .with_min_len(TILE)
                .zip(upper.par_iter().step_by(2))
                .for_each(|(to, from)| *to = *from);
        }
        let n_inverse = F::from_integer(n as u64)
            .inverse()
            .expect("a power of two is not zero in an odd field");
        Ok(Self {
            log_n,
            twiddles,
            n_inverse,
        })
    }

    /// n.
    #[must_use]
    pub fn size(&self) -> usize {
        1 << self.log_n
    }

    /// 1/n, which [`Self::inverse`] leaves out.
    #[must_use]
    pub fn scale(&self) -> F {
        self.n_inverse
    }

    /// Bytes of the twiddles.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.twiddles.size_bytes()
    }

    /// Evaluations in natural order → n · coefficients, bit-reversed.
    pub fn inverse(&self, values: &mut [F]) {
        assert_eq!(values.len(), self.size(), "the transform's length");
        self.inverse_recursive(values);
    }

    /// Coefficients, bit-reversed → evaluations in natural order.
    pub fn forward(&self, values: &mut [F]) {
        assert_eq!(values.len(), self.size(), "the transform's length");
        self.forward_recursive(values);
    }

    /// Multiplies the bit-reversed coefficient of Xᵏ by factor·shiftᵏ in every vector: afterwards
    /// [`Self::forward`] evaluates on the coset shift·⟨ω⟩, or a coset's coefficients are brought
    /// back when `shift` is the inverse.
    pub fn shift(&self, vectors: &mut [&mut [F]], shift: F, factor: F) {
        let log_tile = self.log_n.min(TILE.trailing_zeros());
        let tile = 1_usize << log_tile;
        // Position i holds the power rev(i). In a tile starting at s, rev(s + j) = rev(s) + rev(j).
        let spread = shift.power(&[1 << (self.log_n - log_tile)]);
        let mut powers = vec![F::ONE; tile];
        let mut power = F::ONE;
        for k in 0..tile {
            powers[reverse_bits(k, log_tile)] = power;
            power = power * spread;
        }
        for values in vectors {
            values
                .par_chunks_mut(tile)
                .enumerate()
                .for_each(|(i, values)| {
                    stamp();
                    let start = reverse_bits(i * tile, self.log_n) as u64;
                    let base = factor * shift.power(&[start]);
                    for (value, power) in values.iter_mut().zip(&powers) {
                        *value = *value * (base * *power);
                    }
                });
        }
    }

    /// Brings bit-reversed values into natural order, or back.
    pub fn permute(&self, values: &mut [F]) {
        assert_eq!(values.len(), self.size(), "the transform's length");
        let cells = Cells(values.as_mut_ptr());
        (0..values.len())
            .into_par_iter()
            .with_min_len(TILE)
            .for_each(|i| {
                let j = reverse_bits(i, self.log_n);
                if i < j {
                    // SAFETY: both are below the length, and reversal pairs every position with
                    // one other, so that no two tasks touch the same one.
                    unsafe { cells.swap(i, j) };
                }
            });
    }

    /// The powers ω⁰, ω¹, … of the level whose blocks have length 2·half.
    fn level(&self, half: usize) -> &[F] {
        &self.twiddles[half - 1..2 * half - 1]
    }

    fn inverse_recursive(&self, values: &mut [F]) {
        if values.len() <= BLOCK {
            stamp();
            let mut half = values.len() / 2;
            while half > 0 {
                let twiddles = self.level(half);
                for block in values.chunks_exact_mut(2 * half) {
                    let (low, high) = block.split_at_mut(half);
                    inverse_butterflies(low, high, twiddles, 0);
                }
                half /= 2;
            }
            return;
        }
        let half = values.len() / 2;
        let twiddles = self.level(half);
        let (low, high) = values.split_at_mut(half);
        low.par_chunks_mut(TILE)
            .zip(high.par_chunks_mut(TILE))
            .enumerate()
            .for_each(|(i, (low, high))| inverse_butterflies(low, high, twiddles, i * TILE));
        rayon::join(
            || self.inverse_recursive(low),
            || self.inverse_recursive(high),
        );
    }

    fn forward_recursive(&self, values: &mut [F]) {
        if values.len() <= BLOCK {
            stamp();
            let mut half = 1;
            while half < values.len() {
                let twiddles = self.level(half);
                for block in values.chunks_exact_mut(2 * half) {
                    let (low, high) = block.split_at_mut(half);
                    forward_butterflies(low, high, twiddles);
                }
                half *= 2;
            }
            return;
        }
        let half = values.len() / 2;
        let twiddles = self.level(half);
        let (low, high) = values.split_at_mut(half);
        rayon::join(
            || self.forward_recursive(low),
            || self.forward_recursive(high),
        );
        low.par_chunks_mut(TILE)
            .zip(high.par_chunks_mut(TILE))
            .zip(twiddles.par_chunks(TILE))
            .for_each(|((low, high), twiddles)| forward_butterflies(low, high, twiddles));
    }
}

/// A vector whose positions several threads write to, each its own.
struct Cells<F>(*mut F);

// SAFETY: the callers of `swap` never share a position.
unsafe impl<F: Send> Sync for Cells<F> {}

impl<F> Cells<F> {
    /// # Safety
    /// Both positions must lie in the vector, and no other thread may touch them.
    unsafe fn swap(&self, i: usize, j: usize) {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::swap(self.0.add(i), self.0.add(j)) }
    }
}

/// (u, v) → (u + v, (u − v)·ω⁻ⁱ) for i from `start` on; ω⁻ⁱ = −ω^(h−i), since ω^h = −1.
fn inverse_butterflies<F: ScalarField>(
    low: &mut [F],
    high: &mut [F],
    twiddles: &[F],
    start: usize,
) {
    let half = twiddles.len();
    for (k, (low, high)) in low.iter_mut().zip(high.iter_mut()).enumerate() {
        let (u, v) = (*low, *high);
        *low = u + v;
        let i = start + k;
        *high = if i == 0 {
            u - v
        } else {
            (v - u) * twiddles[half - i]
        };
    }
}

/// (u, v) → (u + ωⁱ·v, u − ωⁱ·v).
fn forward_butterflies<F: ScalarField>(low: &mut [F], high: &mut [F], twiddles: &[F]) {
    for ((low, high), twiddle) in low.iter_mut().zip(high.iter_mut()).zip(twiddles) {
        let (u, v) = (*low, *high * *twiddle);
        *low = u + v;
        *high = u - v;
    }
}

/// first, first·ratio, first·ratio², …
pub(crate) fn fill_powers<F: ScalarField>(out: &mut [F], ratio: F, first: F) {
    out.par_chunks_mut(TILE).enumerate().for_each(|(i, out)| {
        let mut power = first * ratio.power(&[(i * TILE) as u64]);
        for value in out {
            *value = power;
            power = power * ratio;
        }
    });
}

/// The lowest `n_bits` bits of `value` in reverse order.
fn reverse_bits(value: usize, n_bits: u32) -> usize {
    if n_bits == 0 {
        return 0;
    }
    value.reverse_bits() >> (usize::BITS - n_bits)
}
