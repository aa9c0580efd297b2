//! A trusted set-up from toxic waste: the points of a proving key of either family.
//!
//! For development: whoever runs it could keep the toxic waste and forge proofs.
//!
//! With L the Lagrange polynomials of the domain, the columns of the system give
//! uⱼ = Σᵢ Aᵢⱼ·Lᵢ(τ) and likewise vⱼ, wⱼ; rows that bind the public wires are added to A here. The
//! queries hold uⱼ, vⱼ, (β·uⱼ + α·vⱼ + wⱼ)/γ for public and …/δ for private wires, and for H
//! * snarkjs: L'₂ᵢ₊₁(τ)/δ, the odd Lagrange polynomials of the domain of twice the size;
//! * bellperson: τⁱ·Z(τ)/δ for i below m − 1.
//!
//! Groth, <https://eprint.iacr.org/2016/260>, section 3.2; snarkjs `src/zkey_new.js`; bellperson
//! `src/groth16/generator.rs`.

use rayon::prelude::*;

use crate::curve::{Curve, Group};
use crate::error::{Error, Result, require_equal};
use crate::field::{Family, ScalarField, first_error, read_scalars};
use crate::fixed_base::FixedBase;
use crate::key::Query;
use crate::memory::{Mapped, try_vec};
use crate::ntt::fill_powers;
use crate::sparse::{Matrix, MatrixBytes};
use crate::stamps::stamp;
use crate::toxic::ToxicWaste;

/// Elements that one task computes.
const TILE: usize = 1 << 11;

/// A constraint system as its author wrote it, without rows for public wires.
#[derive(Clone, Copy, Debug)]
pub struct SystemParts<'a> {
    /// The conventions of the key to make.
    pub family: Family,
    /// Public inputs, not counting the constant wire 0.
    pub n_public: usize,
    /// All wires.
    pub n_wires: usize,
    /// A.
    pub matrix_a: MatrixBytes<'a>,
    /// B.
    pub matrix_b: MatrixBytes<'a>,
    /// C.
    pub matrix_c: MatrixBytes<'a>,
    /// The matrices' coefficients, canonical.
    pub dictionary: &'a [u8],
}

/// The points that stand alone in a key, in the stored form's bytes.
pub struct SinglePoints {
    /// α in G1.
    pub alpha_g1: Vec<u8>,
    /// β in G1.
    pub beta_g1: Vec<u8>,
    /// δ in G1.
    pub delta_g1: Vec<u8>,
    /// β in G2.
    pub beta_g2: Vec<u8>,
    /// γ in G2.
    pub gamma_g2: Vec<u8>,
    /// δ in G2.
    pub delta_g2: Vec<u8>,
}

/// The exponents of a key's points, as secret as the toxic waste, with the tables to raise to them.
pub struct Setup<C: Curve> {
    domain_size: usize,
    n_public: usize,
    singles: SinglePoints,
    /// u, v: one a wire.
    a: Mapped<C::Scalar>,
    b: Mapped<C::Scalar>,
    /// IC, then the L query.
    mixed: Mapped<C::Scalar>,
    h: Mapped<C::Scalar>,
    g1: FixedBase<C::G1>,
    g2: FixedBase<C::G2>,
}

impl<C: Curve> Setup<C> {
    /// Computes every exponent; the points are made when they are asked for.
    ///
    /// # Errors
    /// [`Error::Value`] for shapes that do not fit or a domain that the field does not have,
    /// [`Error::Scalar`] for the dictionary, [`Error::Memory`].
    pub fn new(parts: &SystemParts<'_>, toxic: &ToxicWaste<C::Scalar>) -> Result<Self> {
        let SystemParts {
            family,
            n_public,
            n_wires,
            ..
        } = *parts;
        if n_public >= n_wires {
            return Err(Error::Value(format!(
                "n_public: {n_public} public wires and the constant exceed {n_wires} wires"
            )));
        }
        let dictionary = read_scalars::<C::Scalar>(parts.dictionary)?;
        let matrix = |name: &str, bytes| Matrix::new(name, bytes, n_wires, dictionary.len());
        let matrices = [
            matrix("matrix_a", parts.matrix_a)?,
            matrix("matrix_b", parts.matrix_b)?,
            matrix("matrix_c", parts.matrix_c)?,
        ];
        let n_rows = matrices[0].n_rows();
        require_equal("rows of matrix_b", n_rows, matrices[1].n_rows())?;
        require_equal("rows of matrix_c", n_rows, matrices[2].n_rows())?;
        let domain = Domain::new(family, n_rows + n_public + 1, toxic.tau())?;
        let lagrange = domain.lagrange()?;
        let column = |matrix: &Matrix| -> Result<Mapped<C::Scalar>> {
            let mut sums = Mapped::zeroed(n_wires)?;
            matrix.add_columns(&dictionary, &lagrange[..n_rows], &mut sums);
            Ok(sums)
        };
        let (a, (b, c)) = rayon::join(
            || {
                let mut sums = column(&matrices[0])?;
                for (sum, weight) in sums.iter_mut().zip(&lagrange[n_rows..=n_rows + n_public]) {
                    *sum = *sum + *weight;
                }
                Ok(sums)
            },
            || rayon::join(|| column(&matrices[1]), || column(&matrices[2])),
        );
        let (a, b, mut mixed): (_, _, Mapped<C::Scalar>) = (a?, b?, c?);
        drop(lagrange);
        let gamma_inverse = inverse(toxic.gamma(), "gamma")?;
        let delta_inverse = inverse(toxic.delta(), "delta")?;
        let (alpha, beta) = (toxic.alpha(), toxic.beta());
        mixed
            .par_iter_mut()
            .with_min_len(TILE)
            .zip(a.par_iter().zip(&b[..]))
            .enumerate()
            .for_each(|(wire, (w, (u, v)))| {
                let divisor = if wire <= n_public {
                    gamma_inverse
                } else {
                    delta_inverse
                };
                *w = (beta * *u + alpha * *v + *w) * divisor;
            });
        let h = domain.h_query(delta_inverse)?;
        let single1 = |scalar| stored_multiple::<C::G1>(scalar);
        let single2 = |scalar| stored_multiple::<C::G2>(scalar);
        Ok(Self {
            domain_size: domain.size,
            n_public,
            singles: SinglePoints {
                alpha_g1: single1(alpha),
                beta_g1: single1(beta),
                delta_g1: single1(toxic.delta()),
                beta_g2: single2(beta),
                gamma_g2: single2(toxic.gamma()),
                delta_g2: single2(toxic.delta()),
            },
            g1: FixedBase::new(3 * n_wires + h.len())?,
            g2: FixedBase::new(n_wires)?,
            a,
            b,
            mixed,
            h,
        })
    }

    /// m, the size of the key's domain.
    #[must_use]
    pub fn domain_size(&self) -> usize {
        self.domain_size
    }

    /// The single points.
    #[must_use]
    pub fn singles(&self) -> &SinglePoints {
        &self.singles
    }

    /// Bytes of IC.
    #[must_use]
    pub fn ic_bytes(&self) -> usize {
        (self.n_public + 1) * C::G1::POINT_BYTES
    }

    /// Writes IC: n_public + 1 points of G1.
    ///
    /// # Errors
    /// [`Error::Value`] if `out` has another size, [`Error::Memory`].
    pub fn write_ic(&self, out: &mut [u8]) -> Result<()> {
        self.g1.multiply(&self.mixed[..=self.n_public], out)
    }

    /// Bytes of a query.
    #[must_use]
    pub fn query_bytes(&self, query: Query) -> usize {
        let point_bytes = match query {
            Query::B2 => C::G2::POINT_BYTES,
            _ => C::G1::POINT_BYTES,
        };
        self.exponents(query).len() * point_bytes
    }

    /// Writes the points of a query.
    ///
    /// # Errors
    /// [`Error::Value`] if `out` has another size, [`Error::Memory`].
    pub fn write_query(&self, query: Query, out: &mut [u8]) -> Result<()> {
        match query {
            Query::B2 => self.g2.multiply(self.exponents(query), out),
            _ => self.g1.multiply(self.exponents(query), out),
        }
    }

    /// Bytes that the exponents and tables take.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.a.size_bytes()
            + self.b.size_bytes()
            + self.mixed.size_bytes()
            + self.h.size_bytes()
            + self.g1.size_bytes()
            + self.g2.size_bytes()
    }

    fn exponents(&self, query: Query) -> &[C::Scalar] {
        match query {
            Query::A => &self.a,
            Query::B1 | Query::B2 => &self.b,
            Query::C => &self.mixed[self.n_public + 1..],
            Query::H => &self.h,
        }
    }
}

/// The domain of a system, and τ.
struct Domain<F: ScalarField> {
    family: Family,
    size: usize,
    tau: F,
    /// Z(τ) = τᵐ − 1.
    vanishing: F,
}

impl<F: ScalarField> Domain<F> {
    fn new(family: Family, n_rows: usize, tau: F) -> Result<Self> {
        let least = match family {
            // Even for a single row.
            Family::Snarkjs => 2,
            Family::Bellperson => 1,
        };
        let size = n_rows.next_power_of_two().max(least);
        let log_order = size.trailing_zeros() + u32::from(family == Family::Snarkjs);
        if log_order > F::TWO_ADICITY {
            return Err(Error::Value(format!(
                "{n_rows} rows, public ones included, need a domain of {size}; the field's \
                 largest is 2^{}",
                F::TWO_ADICITY - u32::from(family == Family::Snarkjs)
            )));
        }
        let vanishing = tau.power(&[size as u64]) - F::ONE;
        // The snarkjs family divides by points of the double domain too.
        if tau.power(&[2 * size as u64]) == F::ONE {
            return Err(Error::Value("tau lies in the domain".to_owned()));
        }
        Ok(Self {
            family,
            size,
            tau,
            vanishing,
        })
    }

    fn root(&self, size: usize) -> F {
        F::root_of_unity(self.family, size.trailing_zeros()).expect("checked when it was made")
    }

    /// Lᵢ(τ) for every i.
    fn lagrange(&self) -> Result<Mapped<F>> {
        let scale = self.vanishing * inverse(F::from_integer(self.size as u64), "m")?;
        self.weights(scale, F::ONE, self.root(self.size))
    }

    fn h_query(&self, delta_inverse: F) -> Result<Mapped<F>> {
        match self.family {
            Family::Snarkjs => {
                let size = 2 * self.size;
                let vanishing = self.tau.power(&[size as u64]) - F::ONE;
                let scale =
                    vanishing * inverse(F::from_integer(size as u64), "2m")? * delta_inverse;
                let root = self.root(size);
                self.weights(scale, root, root * root)
            }
            Family::Bellperson => {
                let mut h = Mapped::zeroed(self.size - 1)?;
                fill_powers(&mut h, self.tau, self.vanishing * delta_inverse);
                Ok(h)
            }
        }
    }

    /// scale·x/(τ − x) for the m points x = first·ratioⁱ.
    fn weights(&self, scale: F, first: F, ratio: F) -> Result<Mapped<F>> {
        let mut out = Mapped::zeroed(self.size)?;
        fill_powers(&mut out, ratio, first);
        first_error(out.par_chunks_mut(TILE).map(|out| {
            stamp();
            let mut prefix = try_vec(out.len())?;
            let mut product = F::ONE;
            for point in out.iter() {
                prefix.push(product);
                product = product * (self.tau - *point);
            }
            let mut inverse = scale * inverse(product, "tau − x")?;
            for (point, before) in out.iter_mut().zip(&prefix).rev() {
                let divisor = self.tau - *point;
                *point = *point * (inverse * *before);
                inverse = inverse * divisor;
            }
            Ok(())
        }))?;
        Ok(out)
    }
}

fn inverse<F: ScalarField>(value: F, name: &str) -> Result<F> {
    value
        .inverse()
        .ok_or_else(|| Error::Value(format!("{name} is zero")))
}

fn stored_multiple<G: Group>(scalar: G::Scalar) -> Vec<u8> {
    crate::key::point_bytes::<G>(&G::multiply(&G::generator(), scalar))
}
