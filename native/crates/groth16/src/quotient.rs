//! The scalars of the H query, from A·w and B·w on the domain, in each family's form.
//!
//! Let m be the domain's size, Z = Xᵐ − 1, and a, b, c the polynomials that interpolate the rows.
//! * snarkjs: evaluations of a·b − c on the odd coset g·⟨ω⟩, g² = ω. Z is constant there and
//!   folded into the key, so nothing is divided and nothing transformed back: m scalars.
//! * bellperson: the m − 1 coefficients of h = (a·b − c)/Z.
//!
//! For the latter six transforms do. a·b has degree below 2m, so a·b = c + h·Z, and on the coset
//! g·⟨ω⟩, where Xᵐ = gᵐ, the interpolation of a·b is c + h·(gᵐ − 1): the coefficients of c come
//! from its one inverse transform and need no evaluation on the coset.

use rayon::prelude::*;

use crate::error::{Result, require_equal};
use crate::field::{Family, ScalarField};
use crate::memory::Mapped;
use crate::ntt::Ntt;
use crate::stamps::stamp;

/// Elements that one task multiplies.
const TILE: usize = 1 << 12;

/// The quotients over one domain.
pub struct Quotient<F: ScalarField> {
    family: Family,
    ntt: Ntt<F>,
    /// The coset's representative g.
    coset: F,
}

impl<F: ScalarField> Quotient<F> {
    /// Prepares the domain of size 2^log_m.
    ///
    /// # Errors
    /// [`crate::error::Error::Value`] if the field lacks the roots, [`crate::error::Error::Memory`].
    pub fn new(family: Family, log_m: u32) -> Result<Self> {
        let ntt = Ntt::new(family, log_m)?;
        let coset = match family {
            Family::Snarkjs => F::root_of_unity(family, log_m + 1).ok_or_else(|| {
                crate::error::Error::Value(format!(
                    "domain of 2^{log_m}: its odd coset needs a root of order 2^{}, the field has \
                     2^{}",
                    log_m + 1,
                    F::TWO_ADICITY
                ))
            })?,
            Family::Bellperson => F::generator(family),
        };
        Ok(Self { family, ntt, coset })
    }

    /// m.
    #[must_use]
    pub fn size(&self) -> usize {
        self.ntt.size()
    }

    /// Bytes of the prepared tables.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.ntt.size_bytes()
    }

    /// The H scalars; without `c` it is a∘b, which holds for every satisfied system. Works in
    /// place: the result lies in `a`'s memory, the others are freed.
    ///
    /// # Errors
    /// [`crate::error::Error::Value`] if a length is not m, [`crate::error::Error::Memory`].
    pub fn compute(&self, a: Mapped<F>, b: Mapped<F>, c: Option<Mapped<F>>) -> Result<Mapped<F>> {
        let m = self.size();
        require_equal("length of a", m, a.len())?;
        require_equal("length of b", m, b.len())?;
        let c = match c {
            Some(c) => {
                require_equal("length of c", m, c.len())?;
                c
            }
            None => {
                let mut c = Mapped::zeroed(m)?;
                combine(&mut c, &a, &b, |_, a, b| a * b);
                c
            }
        };
        Ok(match self.family {
            Family::Snarkjs => self.evaluations(a, b, c),
            Family::Bellperson => self.coefficients(a, b, c),
        })
    }

    fn evaluations(&self, mut a: Mapped<F>, mut b: Mapped<F>, mut c: Mapped<F>) -> Mapped<F> {
        for values in [&mut a, &mut b, &mut c] {
            self.ntt.inverse(values);
        }
        self.ntt
            .shift(&mut [&mut a, &mut b, &mut c], self.coset, self.ntt.scale());
        for values in [&mut a, &mut b, &mut c] {
            self.ntt.forward(values);
        }
        combine(&mut a, &b, &c, |a, b, c| a * b - c);
        a
    }

    fn coefficients(&self, mut a: Mapped<F>, mut b: Mapped<F>, mut c: Mapped<F>) -> Mapped<F> {
        for values in [&mut a, &mut b, &mut c] {
            self.ntt.inverse(values);
        }
        let scale = self.ntt.scale();
        self.ntt.shift(&mut [&mut a, &mut b], self.coset, scale);
        self.ntt.forward(&mut a);
        self.ntt.forward(&mut b);
        a.par_iter_mut()
            .with_min_len(TILE)
            .zip(&b[..])
            .for_each(|(a, b)| *a = *a * *b);
        drop(b);
        self.ntt.inverse(&mut a);
        let z = self.coset.power(&[self.size() as u64]) - F::ONE;
        let divisor = z
            .inverse()
            .expect("a generator's powers below its order are not 1");
        let back = self.coset.inverse().expect("a generator is not zero");
        self.ntt.shift(&mut [&mut a], back, scale * divisor);
        let factor = scale * divisor;
        a.par_iter_mut()
            .with_min_len(TILE)
            .zip(&c[..])
            .for_each(|(a, c)| *a = *a - factor * *c);
        drop(c);
        self.ntt.permute(&mut a);
        a.truncate(self.size() - 1);
        a
    }
}

/// out ← f(out, left, right), element by element.
fn combine<F: ScalarField>(
    out: &mut [F],
    left: &[F],
    right: &[F],
    f: impl Fn(F, F, F) -> F + Sync,
) {
    out.par_chunks_mut(TILE)
        .zip(left.par_chunks(TILE))
        .zip(right.par_chunks(TILE))
        .for_each(|((out, left), right)| {
            stamp();
            for ((out, left), right) in out.iter_mut().zip(left).zip(right) {
                *out = f(*out, *left, *right);
            }
        });
}
