//! A proving key in memory and the stages that it takes part in.

use crate::curve::{Curve, G1, G2, Group, check_points, load_points};
use crate::error::{Error, Result, require_equal};
use crate::field::{Family, read_scalars};
use crate::memory::Mapped;
use crate::msm::msm;
use crate::quotient::Quotient;
use crate::sparse::{Matrix, MatrixBytes};

/// What a key is made from: counts, and bytes in the crate's forms.
#[derive(Clone, Copy, Debug)]
pub struct KeyParts<'a> {
    /// The conventions that the queries follow.
    pub family: Family,
    /// Public inputs, not counting the constant wire 0.
    pub n_public: usize,
    /// All wires.
    pub n_wires: usize,
    /// m, a power of two.
    pub domain_size: usize,
    /// A, with the rows that bind the public wires.
    pub matrix_a: MatrixBytes<'a>,
    /// B.
    pub matrix_b: MatrixBytes<'a>,
    /// C; without it C·w is (A·w)∘(B·w).
    pub matrix_c: Option<MatrixBytes<'a>>,
    /// The matrices' coefficients, canonical.
    pub dictionary: &'a [u8],
    /// G1, a point for each wire.
    pub query_a: &'a [u8],
    /// G1, a point for each wire.
    pub query_b1: &'a [u8],
    /// G2, a point for each wire.
    pub query_b2: &'a [u8],
    /// G1, a point for each wire after the public ones.
    pub query_c: &'a [u8],
    /// G1, a point for each H scalar.
    pub query_h: &'a [u8],
}

/// A vector of points of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// A in G1.
    A,
    /// B in G1.
    B1,
    /// B in G2.
    B2,
    /// The L query in G1.
    C,
    /// H in G1.
    H,
}

/// Three vectors over the domain; the third only if C is stored.
pub type Rows<F> = (Mapped<F>, Mapped<F>, Option<Mapped<F>>);

/// A proving key: matrices, queries and the prepared domain.
pub struct ProvingKey<C: Curve> {
    n_wires: usize,
    matrix_a: Matrix,
    matrix_b: Matrix,
    matrix_c: Option<Matrix>,
    dictionary: Mapped<C::Scalar>,
    query_a: Mapped<G1<C>>,
    query_b1: Mapped<G1<C>>,
    query_b2: Mapped<G2<C>>,
    query_c: Mapped<G1<C>>,
    query_h: Mapped<G1<C>>,
    quotient: Quotient<C::Scalar>,
}

impl<C: Curve> ProvingKey<C> {
    /// Copies the parts and checks that they fit together; points are not checked here.
    ///
    /// # Errors
    /// [`Error::Value`], [`Error::Scalar`] for the dictionary, [`Error::Memory`].
    pub fn new(parts: &KeyParts<'_>) -> Result<Self> {
        let KeyParts {
            n_public, n_wires, ..
        } = *parts;
        if n_public >= n_wires {
            return Err(Error::Value(format!(
                "n_public: {n_public} public wires and the constant exceed {n_wires} wires"
            )));
        }
        if !parts.domain_size.is_power_of_two() {
            return Err(Error::Value(format!(
                "domain_size: {} is no power of two",
                parts.domain_size
            )));
        }
        let dictionary = read_scalars::<C::Scalar>(parts.dictionary)?;
        let matrix = |name: &str, bytes: MatrixBytes<'_>| {
            let matrix = Matrix::new(name, bytes, n_wires, dictionary.len())?;
            if matrix.n_rows() > parts.domain_size {
                return Err(Error::Value(format!(
                    "{name}: {} rows exceed the domain of {}",
                    matrix.n_rows(),
                    parts.domain_size
                )));
            }
            Ok(matrix)
        };
        let matrix_a = matrix("matrix_a", parts.matrix_a)?;
        let matrix_b = matrix("matrix_b", parts.matrix_b)?;
        let matrix_c = parts
            .matrix_c
            .map(|bytes| matrix("matrix_c", bytes))
            .transpose()?;
        let n_h = match parts.family {
            Family::Snarkjs => parts.domain_size,
            Family::Bellperson => parts.domain_size - 1,
        };
        let n_private = n_wires - n_public - 1;
        Ok(Self {
            n_wires,
            matrix_a,
            matrix_b,
            matrix_c,
            query_a: load_query::<C::G1>("query a", parts.query_a, n_wires)?,
            query_b1: load_query::<C::G1>("query b1", parts.query_b1, n_wires)?,
            query_b2: load_query::<C::G2>("query b2", parts.query_b2, n_wires)?,
            query_c: load_query::<C::G1>("query c", parts.query_c, n_private)?,
            query_h: load_query::<C::G1>("query h", parts.query_h, n_h)?,
            quotient: Quotient::new(parts.family, parts.domain_size.trailing_zeros())?,
            dictionary,
        })
    }

    /// Checks every point of a query.
    ///
    /// # Errors
    /// [`Error::Point`] with the first index.
    pub fn check_points(&self, query: Query) -> Result<()> {
        match query {
            Query::B2 => check_points::<C::G2>(&self.query_b2),
            _ => check_points::<C::G1>(self.query_g1(query)),
        }
    }

    /// A·w, B·w and, if C is stored, C·w, each padded to the domain.
    ///
    /// # Errors
    /// [`Error::Value`] for a witness of another length, [`Error::Memory`].
    pub fn evaluate(&self, witness: &[C::Scalar]) -> Result<Rows<C::Scalar>> {
        require_equal("wires of the witness", self.n_wires, witness.len())?;
        let multiply =
            |matrix: &Matrix| matrix.multiply(&self.dictionary, witness, self.quotient.size());
        Ok((
            multiply(&self.matrix_a)?,
            multiply(&self.matrix_b)?,
            self.matrix_c.as_ref().map(multiply).transpose()?,
        ))
    }

    /// The domain with its quotient.
    #[must_use]
    pub fn quotient(&self) -> &Quotient<C::Scalar> {
        &self.quotient
    }

    /// Σ scalars[start + i] · query[i] for i below `count`, in the stored form's bytes.
    ///
    /// # Errors
    /// [`Error::Value`] if either side is too short, [`Error::Memory`].
    pub fn msm(
        &self,
        query: Query,
        scalars: &[C::Scalar],
        start: usize,
        count: usize,
    ) -> Result<Vec<u8>> {
        let window = start
            .checked_add(count)
            .and_then(|end| scalars.get(start..end))
            .ok_or_else(|| {
                Error::Value(format!(
                    "scalars {start}..{start}+{count} of {}",
                    scalars.len()
                ))
            })?;
        match query {
            Query::B2 => msm_bytes::<C::G2>(&self.query_b2, window),
            _ => msm_bytes::<C::G1>(self.query_g1(query), window),
        }
    }

    /// Bytes that the key takes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.matrix_a.size_bytes()
            + self.matrix_b.size_bytes()
            + self.matrix_c.as_ref().map_or(0, Matrix::size_bytes)
            + self.dictionary.size_bytes()
            + self.query_a.size_bytes()
            + self.query_b1.size_bytes()
            + self.query_b2.size_bytes()
            + self.query_c.size_bytes()
            + self.query_h.size_bytes()
            + self.quotient.size_bytes()
    }

    fn query_g1(&self, query: Query) -> &[G1<C>] {
        match query {
            Query::A => &self.query_a,
            Query::B1 => &self.query_b1,
            Query::C => &self.query_c,
            Query::H => &self.query_h,
            Query::B2 => unreachable!("B2 lies in G2"),
        }
    }
}

fn load_query<G: Group>(name: &str, bytes: &[u8], n_points: usize) -> Result<Mapped<G::Stored>> {
    let points = load_points::<G>(name, bytes)?;
    require_equal(&format!("points of {name}"), n_points, points.len())?;
    Ok(points)
}

fn msm_bytes<G: Group>(points: &[G::Stored], scalars: &[G::Scalar]) -> Result<Vec<u8>> {
    let points = points.get(..scalars.len()).ok_or_else(|| {
        Error::Value(format!(
            "{} scalars for a query of {} points",
            scalars.len(),
            points.len()
        ))
    })?;
    Ok(point_bytes::<G>(&msm::<G>(points, scalars)?))
}

/// A sum in the stored form's bytes.
pub(crate) fn point_bytes<G: Group>(point: &G::Point) -> Vec<u8> {
    let mut out = vec![0; G::POINT_BYTES];
    G::store(&G::to_stored(point), &mut out);
    out
}

/// Σ scalarᵢ · pointᵢ of a few points, all in the crate's byte forms.
///
/// # Errors
/// [`Error::Value`] if the counts differ, [`Error::Scalar`], [`Error::Point`] for coordinates or
/// curve (the order is the caller's affair), [`Error::Memory`].
pub fn linear_combination<G: Group>(points: &[u8], scalars: &[u8]) -> Result<Vec<u8>> {
    let points = load_points::<G>("points", points)?;
    let scalars = read_scalars::<G::Scalar>(scalars)?;
    require_equal("scalars for the points", points.len(), scalars.len())?;
    let mut sum = G::zero();
    for (index, (point, scalar)) in points.iter().zip(scalars.iter()).enumerate() {
        check_equation::<G>(index, point)?;
        sum = G::add(&sum, &G::multiply(point, *scalar));
    }
    Ok(point_bytes::<G>(&sum))
}

fn check_equation<G: Group>(index: usize, point: &G::Stored) -> Result<()> {
    use crate::error::PointFault;

    if G::is_infinity(point) {
        return Ok(());
    }
    let fault = if !G::has_reduced_coordinates(point) {
        PointFault::Coordinate
    } else if !G::is_on_curve(point) {
        PointFault::OffCurve
    } else {
        return Ok(());
    };
    Err(Error::Point { index, fault })
}

/// Checks one stored point: coordinates, equation and order.
///
/// # Errors
/// [`Error::Value`] for a wrong length, [`Error::Point`] with index 0.
pub fn check_point<G: Group>(bytes: &[u8]) -> Result<()> {
    require_equal("bytes of the point", G::POINT_BYTES, bytes.len())?;
    G::check(&G::load(bytes)).map_err(|fault| Error::Point { index: 0, fault })
}
