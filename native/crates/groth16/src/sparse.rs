//! Sparse matrices over the scalar field, their products with a witness, and the row check.

use rayon::prelude::*;

use crate::error::{Error, Result, require_equal};
use crate::field::ScalarField;
use crate::memory::{Mapped, Zeroable};
use crate::stamps::stamp;

/// Rows that one task computes.
const TILE: usize = 1 << 11;

/// The three arrays of a CSR matrix as little-endian bytes.
#[derive(Clone, Copy, Debug)]
pub struct MatrixBytes<'a> {
    /// u64 each, one more than there are rows.
    pub row_ptr: &'a [u8],
    /// u32 each: the entry's column.
    pub wire: &'a [u8],
    /// u32 each: the entry's place in the dictionary.
    pub coefficient: &'a [u8],
}

/// A CSR matrix whose entries name coefficients of a dictionary kept beside it.
pub struct Matrix {
    row_ptr: Mapped<u64>,
    wire: Mapped<u32>,
    coefficient: Mapped<u32>,
}

impl Matrix {
    /// Copies and checks a matrix; `name` is used in errors.
    ///
    /// # Errors
    /// [`Error::Value`] if the arrays do not describe a matrix with `n_wires` columns over a
    /// dictionary of `n_coefficients`, [`Error::Memory`].
    pub fn new(
        name: &str,
        bytes: MatrixBytes<'_>,
        n_wires: usize,
        n_coefficients: usize,
    ) -> Result<Self> {
        let row_ptr = words(
            &format!("{name}.row_ptr"),
            bytes.row_ptr,
            u64::from_le_bytes,
        )?;
        let wire = words(&format!("{name}.wire"), bytes.wire, u32::from_le_bytes)?;
        let coefficient = words(
            &format!("{name}.coefficient"),
            bytes.coefficient,
            u32::from_le_bytes,
        )?;
        let matrix = Self {
            row_ptr,
            wire,
            coefficient,
        };
        require_equal(
            &format!("{name}: entries of coefficient"),
            matrix.wire.len(),
            matrix.coefficient.len(),
        )?;
        let is_partition = matrix.row_ptr.first() == Some(&0)
            && matrix.row_ptr.last() == Some(&(matrix.wire.len() as u64))
            && matrix.row_ptr.par_windows(2).all(|pair| pair[0] <= pair[1]);
        if !is_partition {
            return Err(Error::Value(format!(
                "{name}.row_ptr does not rise from 0 to the {} entries",
                matrix.wire.len()
            )));
        }
        below(&format!("{name}.wire"), &matrix.wire, n_wires)?;
        below(
            &format!("{name}.coefficient"),
            &matrix.coefficient,
            n_coefficients,
        )?;
        Ok(matrix)
    }

    /// The number of rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.row_ptr.len() - 1
    }

    /// Bytes of the three arrays.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.row_ptr.size_bytes() + self.wire.size_bytes() + self.coefficient.size_bytes()
    }

    /// The row's product with the witness.
    fn row<F: ScalarField>(&self, row: usize, dictionary: &[F], witness: &[F]) -> F {
        let minus_one = -F::ONE;
        let entries = self.row_ptr[row] as usize..self.row_ptr[row + 1] as usize;
        let mut sum = F::ZERO;
        for (wire, coefficient) in self.wire[entries.clone()]
            .iter()
            .zip(&self.coefficient[entries])
        {
            let value = witness[*wire as usize];
            let factor = dictionary[*coefficient as usize];
            // Most coefficients of real circuits are 1 or −1.
            if factor == F::ONE {
                sum = sum + value;
            } else if factor == minus_one {
                sum = sum - value;
            } else {
                sum = sum + factor * value;
            }
        }
        sum
    }

    /// matrix · witness, padded with zeros to `size`, on all cores.
    ///
    /// # Errors
    /// [`Error::Memory`].
    ///
    /// # Panics
    /// If there are more rows than `size`, or the witness is shorter than the matrix is wide.
    pub fn multiply<F: ScalarField>(
        &self,
        dictionary: &[F],
        witness: &[F],
        size: usize,
    ) -> Result<Mapped<F>> {
        let mut product = Mapped::<F>::zeroed(size)?;
        product[..self.n_rows()]
            .par_chunks_mut(TILE)
            .enumerate()
            .for_each(|(tile, out)| {
                stamp();
                for (i, value) in out.iter_mut().enumerate() {
                    *value = self.row(tile * TILE + i, dictionary, witness);
                }
            });
        Ok(product)
    }

    /// sumsⱼ ← sumsⱼ + Σᵢ matrixᵢⱼ·weightᵢ: the product from the left, on the calling thread.
    ///
    /// # Panics
    /// If there are fewer weights than rows, or fewer sums than the matrix is wide.
    pub fn add_columns<F: ScalarField>(&self, dictionary: &[F], weights: &[F], sums: &mut [F]) {
        for (row, weight) in weights[..self.n_rows()].iter().enumerate() {
            if row % TILE == 0 {
                stamp();
            }
            let entries = self.row_ptr[row] as usize..self.row_ptr[row + 1] as usize;
            for (wire, coefficient) in self.wire[entries.clone()]
                .iter()
                .zip(&self.coefficient[entries])
            {
                let sum = &mut sums[*wire as usize];
                *sum = *sum + dictionary[*coefficient as usize] * *weight;
            }
        }
    }
}

/// The first row where (A·w)·(B·w) ≠ C·w.
///
/// # Errors
/// [`Error::Value`] if the matrices differ in rows.
pub fn unsatisfied_row<F: ScalarField>(
    [a, b, c]: [&Matrix; 3],
    dictionary: &[F],
    witness: &[F],
) -> Result<Option<usize>> {
    require_equal("rows of matrix B", a.n_rows(), b.n_rows())?;
    require_equal("rows of matrix C", a.n_rows(), c.n_rows())?;
    Ok((0..a.n_rows())
        .into_par_iter()
        .with_min_len(TILE)
        .find_first(|&row| {
            if row % TILE == 0 {
                stamp();
            }
            let [a, b, c] = [a, b, c].map(|matrix| matrix.row(row, dictionary, witness));
            a * b != c
        }))
}

/// Integers of N bytes into a mapping of their own.
fn words<T: Zeroable, const N: usize>(
    name: &str,
    bytes: &[u8],
    decode: impl Fn([u8; N]) -> T + Sync,
) -> Result<Mapped<T>> {
    let (words, rest) = bytes.as_chunks::<N>();
    if !rest.is_empty() {
        return Err(Error::Value(format!(
            "{name}: {} bytes are no multiple of {N}",
            bytes.len()
        )));
    }
    let mut out = Mapped::<T>::zeroed(words.len())?;
    out.par_iter_mut()
        .with_min_len(TILE)
        .zip(words)
        .for_each(|(to, from)| *to = decode(*from));
    Ok(out)
}

fn below(name: &str, values: &[u32], limit: usize) -> Result<()> {
    match values
        .par_iter()
        .position_first(|value| *value as usize >= limit)
    {
        None => Ok(()),
        Some(at) => Err(Error::Value(format!(
            "{name}[{at}] is {}, not below {limit}",
            values[at]
        ))),
    }
}
