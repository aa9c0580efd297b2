//! Many multiples of one point: window tables, and affine additions that share their inversions.
//!
//! A scalar is cut into signed digits of w bits, and for every window k the table holds
//! d·2^(wk)·P for d from 1 to 2^(w−1); a multiple is then the sum of one table point a window.
//! Sums of a tile of scalars advance together, window by window, so that one field inversion
//! serves the whole tile (Montgomery 1987) and an affine addition costs six multiplications.
//!
//! Brickell, Gordon, McCurley & Wilson, "Fast exponentiation with precomputation", 1992.

use ark_ff::{AdditiveGroup, Field};
use rayon::prelude::*;

use crate::curve::coordinates::{Affine, is_infinity};
use crate::error::{Result, require_equal};
use crate::field::{ScalarField, first_error};
use crate::memory::{Mapped, try_vec};
use crate::stamps::stamp;

/// Sums that one task advances together.
const TILE: usize = 1 << 10;
/// Bits that the windows cover: a scalar's at most 255, and the carry of the signed digits.
const BITS: usize = 256;
/// Beyond this a window's part of the table leaves the caches.
const MAX_WINDOW_BITS: usize = 15;

/// The multiples of a group's generator.
pub struct FixedBase<G: Affine> {
    window_bits: usize,
    /// 2^(w−1) points a window, the digit 1 first.
    table: Mapped<G::Stored>,
}

impl<G: Affine> FixedBase<G> {
    /// Builds the table that is cheapest for `n_scalars` multiplications, on all cores.
    ///
    /// # Errors
    /// [`crate::error::Error::Memory`].
    pub fn new(n_scalars: usize) -> Result<Self> {
        let window_bits = (2..=MAX_WINDOW_BITS)
            .min_by_key(|bits| BITS.div_ceil(*bits) * (n_scalars + (1 << (bits - 1))))
            .expect("the range is not empty");
        let half = 1 << (window_bits - 1);
        let mut table = Mapped::<G::Stored>::zeroed(BITS.div_ceil(window_bits) * half)?;
        let two = G::Scalar::from_integer(2);
        first_error(table.par_chunks_mut(half).enumerate().map(|(k, row)| {
            let shift = two.power(&[(k * window_bits) as u64]);
            row[0] = G::to_stored(&G::multiply(&G::generator(), shift));
            fill_multiples::<G>(row)
        }))?;
        Ok(Self { window_bits, table })
    }

    /// Bytes of the table.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.table.size_bytes()
    }

    /// Writes scalarᵢ · generator in stored form's bytes, one after the other, on all cores.
    ///
    /// # Errors
    /// [`crate::error::Error::Value`] if `out` has another size, [`crate::error::Error::Memory`].
    pub fn multiply(&self, scalars: &[G::Scalar], out: &mut [u8]) -> Result<()> {
        require_equal(
            "bytes for the multiples",
            scalars.len() * G::POINT_BYTES,
            out.len(),
        )?;
        first_error(
            scalars
                .par_chunks(TILE)
                .zip(out.par_chunks_mut(TILE * G::POINT_BYTES))
                .map(|(scalars, out)| {
                    stamp();
                    self.multiply_tile(scalars, out)
                }),
        )
    }

    fn multiply_tile(&self, scalars: &[G::Scalar], out: &mut [u8]) -> Result<()> {
        let half = 1 << (self.window_bits - 1);
        let infinity = [<G::Coordinate as AdditiveGroup>::ZERO; 2];
        let mut limbs = try_vec(scalars.len())?;
        limbs.extend(scalars.iter().map(|scalar| scalar.to_canonical()));
        let mut carries = try_vec(scalars.len())?;
        carries.resize(scalars.len(), 0_usize);
        let mut sums = try_vec(scalars.len())?;
        sums.resize(scalars.len(), infinity);
        let mut addends = try_vec(scalars.len())?;
        let mut prefix = try_vec(scalars.len())?;
        for (k, row) in self.table.chunks_exact(half).enumerate() {
            addends.clear();
            addends.extend(limbs.iter().zip(&mut carries).map(|(limbs, carry)| {
                let digit = window(limbs, k * self.window_bits, self.window_bits) + *carry;
                *carry = usize::from(digit > half);
                if digit == 0 || digit == 2 * half {
                    infinity
                } else if digit > half {
                    let [x, y] = G::coordinates(&row[2 * half - digit - 1]);
                    [x, -y]
                } else {
                    G::coordinates(&row[digit - 1])
                }
            }));
            add_each(&mut sums, &addends, &mut prefix);
        }
        for (sum, bytes) in sums.iter().zip(out.chunks_exact_mut(G::POINT_BYTES)) {
            G::store(&G::from_coordinates(sum), bytes);
        }
        Ok(())
    }
}

/// From P in the first place: d·P in place d − 1, doubling the part that is filled.
fn fill_multiples<G: Affine>(row: &mut [G::Stored]) -> Result<()> {
    let mut sums = try_vec(TILE)?;
    let mut addends = try_vec(TILE)?;
    let mut prefix = try_vec(TILE)?;
    let mut n_filled = 1;
    while n_filled < row.len() {
        let (filled, rest) = row.split_at_mut(n_filled);
        let step = G::coordinates(&filled[n_filled - 1]);
        for (from, to) in filled.chunks(TILE).zip(rest.chunks_mut(TILE)) {
            stamp();
            sums.clear();
            sums.extend(from.iter().map(G::coordinates));
            addends.clear();
            addends.resize(from.len(), step);
            add_each(&mut sums, &addends, &mut prefix);
            for (to, sum) in to.iter_mut().zip(&sums) {
                *to = G::from_coordinates(sum);
            }
        }
        n_filled *= 2;
    }
    Ok(())
}

/// `n_bits` bits of the limbs from bit `start` on; what lies beyond them is zero.
fn window(limbs: &[u64; 4], start: usize, n_bits: usize) -> usize {
    let (at, shift) = (start / 64, start % 64);
    let limb = |i: usize| limbs.get(i).copied().unwrap_or(0);
    let mut bits = limb(at) >> shift;
    if shift + n_bits > 64 {
        bits |= limb(at + 1) << (64 - shift);
    }
    (bits & ((1 << n_bits) - 1)) as usize
}

/// How two points are added.
enum Sum<F> {
    /// The left one, the right one being infinity.
    Left,
    /// The right one, the left one being infinity.
    Right,
    /// Infinity: they are opposite.
    Vanishes,
    /// Along the line whose slope is numerator / denominator.
    Line(F, F),
}

#[inline]
fn sum_of<F: Field>(left: &[F; 2], right: &[F; 2]) -> Sum<F> {
    if is_infinity(right) {
        return Sum::Left;
    }
    if is_infinity(left) {
        return Sum::Right;
    }
    let run = right[0] - left[0];
    if run != <F as AdditiveGroup>::ZERO {
        return Sum::Line(right[1] - left[1], run);
    }
    if left[1] != right[1] {
        return Sum::Vanishes;
    }
    // The tangent; no point of odd order has y = 0.
    let square = left[0].square();
    Sum::Line(square.double() + square, left[1].double())
}

/// sumsᵢ ← sumsᵢ + addendsᵢ with one inversion; complete for any points.
fn add_each<F: Field>(sums: &mut [[F; 2]], addends: &[[F; 2]], prefix: &mut Vec<F>) {
    let mut product = F::ONE;
    prefix.clear();
    prefix.extend(sums.iter().zip(addends).map(|(sum, addend)| {
        let before = product;
        if let Sum::Line(_, run) = sum_of(sum, addend) {
            product *= run;
        }
        before
    }));
    let mut inverse = product
        .inverse()
        .expect("a product of denominators that are not zero");
    for ((sum, addend), before) in sums.iter_mut().zip(addends).zip(prefix.iter()).rev() {
        match sum_of(sum, addend) {
            Sum::Left => {}
            Sum::Right => *sum = *addend,
            Sum::Vanishes => *sum = [<F as AdditiveGroup>::ZERO; 2],
            Sum::Line(rise, run) => {
                let slope = rise * (inverse * before);
                inverse *= run;
                let x = slope.square() - sum[0] - addend[0];
                let y = slope * (sum[0] - x) - sum[1];
                *sum = [x, y];
            }
        }
    }
}
