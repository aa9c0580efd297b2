//! A trusted set-up for small systems, with its toxic waste in plain sight, and a prover over the
//! crate's stages. Groth, eprint 2016/260, section 3.2.

use partita_groth16::curve::{Curve, G1, G2, Group};
use partita_groth16::error::Result;
use partita_groth16::field::{Family, ScalarField, read_scalars};
use partita_groth16::key::{KeyParts, ProvingKey, Query};
use partita_groth16::proof::Proof;
use partita_groth16::sparse::MatrixBytes;

use super::{Random, point, scalar_bytes, stored_bytes};

/// A row of a matrix: (wire, coefficient).
pub type Row<F> = Vec<(usize, F)>;

/// An R1CS; wire 0 is the constant, then come the public wires.
#[derive(Clone)]
pub struct System<F> {
    pub n_public: usize,
    pub n_wires: usize,
    pub a: Vec<Row<F>>,
    pub b: Vec<Row<F>>,
    pub c: Vec<Row<F>>,
}

impl<F: ScalarField> System<F> {
    /// `n_public` public wires, then the chain xᵢ₊₁ = xᵢ·(xᵢ + Σ public) of `n_rows` rows from a
    /// private start, and a witness for it.
    pub fn chain(n_public: usize, n_rows: usize, public: &[F], start: F) -> (Self, Vec<F>) {
        let first = n_public + 1;
        let sum = public.iter().fold(F::ZERO, |sum, value| sum + *value);
        let mut witness = vec![F::ONE];
        witness.extend(public);
        witness.push(start);
        let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..n_rows {
            let x = witness[first + i];
            witness.push(x * (x + sum));
            a.push(vec![(first + i, F::ONE)]);
            let mut row: Row<F> = (1..=n_public).map(|wire| (wire, F::ONE)).collect();
            row.push((first + i, F::ONE));
            b.push(row);
            c.push(vec![(first + i + 1, F::ONE)]);
        }
        let system = Self {
            n_public,
            n_wires: witness.len(),
            a,
            b,
            c,
        };
        (system, witness)
    }

    /// With the rows that bind the public wires: A = wire, B = C = 0.
    fn bound(&self) -> Self {
        let mut system = self.clone();
        for wire in 0..=self.n_public {
            system.a.push(vec![(wire, F::ONE)]);
            system.b.push(Vec::new());
            system.c.push(Vec::new());
        }
        system
    }
}

/// The arrays of a CSR matrix.
pub struct Csr {
    row_ptr: Vec<u8>,
    wire: Vec<u8>,
    coefficient: Vec<u8>,
}

impl Csr {
    pub fn new<F: ScalarField>(rows: &[Row<F>], dictionary: &mut Vec<F>) -> Self {
        let mut csr = Self {
            row_ptr: 0_u64.to_le_bytes().to_vec(),
            wire: Vec::new(),
            coefficient: Vec::new(),
        };
        for row in rows {
            for (wire, value) in row {
                let at = dictionary
                    .iter()
                    .position(|known| known == value)
                    .unwrap_or_else(|| {
                        dictionary.push(*value);
                        dictionary.len() - 1
                    });
                csr.wire.extend((*wire as u32).to_le_bytes());
                csr.coefficient.extend((at as u32).to_le_bytes());
            }
            csr.row_ptr
                .extend((csr.wire.len() as u64 / 4).to_le_bytes());
        }
        csr
    }

    pub fn bytes(&self) -> MatrixBytes<'_> {
        MatrixBytes {
            row_ptr: &self.row_ptr,
            wire: &self.wire,
            coefficient: &self.coefficient,
        }
    }
}

/// Keys of a system.
pub struct Keys<C: Curve> {
    pub proving: ProvingKey<C>,
    pub verifying: Vec<u8>,
    n_public: usize,
    alpha: G1<C>,
    beta1: G1<C>,
    beta2: G2<C>,
    delta1: G1<C>,
    delta2: G2<C>,
}

impl<C: Curve> Keys<C> {
    pub fn new(family: Family, system: &System<C::Scalar>, random: &mut Random) -> Result<Self> {
        let bound = system.bound();
        let domain_size = bound.a.len().next_power_of_two();
        let log_m = domain_size.trailing_zeros();
        let [tau, alpha, beta, gamma, delta] = [(); 5].map(|()| random.scalar::<C::Scalar>());
        let delta_inverse = delta.inverse().unwrap();
        let gamma_inverse = gamma.inverse().unwrap();

        let root = C::Scalar::root_of_unity(family, log_m).unwrap();
        let lagrange = lagrange_at(tau, root, domain_size);
        let column = |rows: &[Row<C::Scalar>]| {
            let mut sums = vec![C::Scalar::ZERO; system.n_wires];
            for (row, weight) in rows.iter().zip(&lagrange) {
                for (wire, value) in row {
                    sums[*wire] = sums[*wire] + *value * *weight;
                }
            }
            sums
        };
        let (a, b, c) = (column(&bound.a), column(&bound.b), column(&bound.c));
        let mixed: Vec<_> = (0..system.n_wires)
            .map(|j| beta * a[j] + alpha * b[j] + c[j])
            .collect();
        let z = tau.power(&[domain_size as u64]) - C::Scalar::ONE;
        let h: Vec<_> = match family {
            Family::Snarkjs => {
                let double = C::Scalar::root_of_unity(family, log_m + 1).unwrap();
                lagrange_at(tau, double, 2 * domain_size)
                    .into_iter()
                    .skip(1)
                    .step_by(2)
                    .map(|value| value * delta_inverse)
                    .collect()
            }
            Family::Bellperson => (0..domain_size as u64 - 1)
                .map(|i| tau.power(&[i]) * z * delta_inverse)
                .collect(),
        };

        let g1 = |exponents: &[C::Scalar]| -> Vec<_> {
            exponents.iter().map(|e| point::<C::G1>(*e)).collect()
        };
        let g2 = |exponents: &[C::Scalar]| -> Vec<_> {
            exponents.iter().map(|e| point::<C::G2>(*e)).collect()
        };
        let (public, private) = mixed.split_at(system.n_public + 1);
        let ic: Vec<_> = public.iter().map(|value| *value * gamma_inverse).collect();
        let l: Vec<_> = private.iter().map(|value| *value * delta_inverse).collect();

        let mut dictionary = Vec::new();
        let [csr_a, csr_b, csr_c] =
            [&bound.a, &bound.b, &bound.c].map(|rows| Csr::new(rows, &mut dictionary));
        let proving = ProvingKey::new(&KeyParts {
            family,
            n_public: system.n_public,
            n_wires: system.n_wires,
            domain_size,
            matrix_a: csr_a.bytes(),
            matrix_b: csr_b.bytes(),
            matrix_c: (family == Family::Bellperson).then(|| csr_c.bytes()),
            dictionary: &scalar_bytes(&dictionary),
            query_a: &stored_bytes::<C::G1>(&g1(&a)),
            query_b1: &stored_bytes::<C::G1>(&g1(&b)),
            query_b2: &stored_bytes::<C::G2>(&g2(&b)),
            query_c: &stored_bytes::<C::G1>(&g1(&l)),
            query_h: &stored_bytes::<C::G1>(&g1(&h)),
        })?;

        let (alpha1, beta1, delta1) = (
            point::<C::G1>(alpha),
            point::<C::G1>(beta),
            point::<C::G1>(delta),
        );
        let (beta2, delta2) = (point::<C::G2>(beta), point::<C::G2>(delta));
        let mut verifying = plain_bytes::<C::G1>(&[alpha1]);
        verifying.extend(plain_bytes::<C::G2>(&[
            beta2,
            point::<C::G2>(gamma),
            delta2,
        ]));
        verifying.extend((ic.len() as u32).to_le_bytes());
        verifying.extend(plain_bytes::<C::G1>(&g1(&ic)));
        Ok(Self {
            proving,
            verifying,
            n_public: system.n_public,
            alpha: alpha1,
            beta1,
            beta2,
            delta1,
            delta2,
        })
    }

    /// A proof by the crate's stages, blinded with r and s.
    pub fn prove(&self, witness: &[C::Scalar], r: C::Scalar, s: C::Scalar) -> Result<Proof<C>> {
        let witness = read_scalars::<C::Scalar>(&scalar_bytes(witness))?;
        let (a, b, c) = self.proving.evaluate(&witness)?;
        let h = self.proving.quotient().compute(a, b, c)?;
        let n = witness.len();
        let g1 = |query, scalars: &[C::Scalar], start, count| -> Result<_> {
            let bytes = self.proving.msm(query, scalars, start, count)?;
            Ok(C::G1::from_stored(&C::G1::load(&bytes)))
        };
        let first_private = self.n_public + 1;
        let a = sum::<C::G1>(&[
            C::G1::from_stored(&self.alpha),
            g1(Query::A, &witness, 0, n)?,
            C::G1::multiply(&self.delta1, r),
        ]);
        let b1 = sum::<C::G1>(&[
            C::G1::from_stored(&self.beta1),
            g1(Query::B1, &witness, 0, n)?,
            C::G1::multiply(&self.delta1, s),
        ]);
        let b2 = sum::<C::G2>(&[
            C::G2::from_stored(&self.beta2),
            C::G2::from_stored(&C::G2::load(&self.proving.msm(
                Query::B2,
                &witness,
                0,
                n,
            )?)),
            C::G2::multiply(&self.delta2, s),
        ]);
        let c = sum::<C::G1>(&[
            g1(Query::C, &witness, first_private, n - first_private)?,
            g1(Query::H, &h, 0, h.len())?,
            C::G1::multiply(&C::G1::to_stored(&a), s),
            C::G1::multiply(&C::G1::to_stored(&b1), r),
            C::G1::multiply(&self.delta1, -(r * s)),
        ]);
        Ok(Proof {
            a: C::G1::to_stored(&a),
            b: C::G2::to_stored(&b2),
            c: C::G1::to_stored(&c),
        })
    }
}

pub fn plain_bytes<G: Group>(points: &[G::Stored]) -> Vec<u8> {
    let mut out = vec![0; points.len() * G::POINT_BYTES];
    for (point, bytes) in points.iter().zip(out.chunks_exact_mut(G::POINT_BYTES)) {
        G::to_plain(point, bytes);
    }
    out
}

fn sum<G: Group>(points: &[G::Point]) -> G::Point {
    points
        .iter()
        .fold(G::zero(), |sum, point| G::add(&sum, point))
}

/// Lᵢ(x) = ωⁱ·(xⁿ − 1) / (n·(x − ωⁱ)) for every i.
fn lagrange_at<F: ScalarField>(x: F, root: F, n: usize) -> Vec<F> {
    let z = x.power(&[n as u64]) - F::ONE;
    let n_field = F::from_integer(n as u64);
    (0..n as u64)
        .map(|i| {
            let point = root.power(&[i]);
            point * z * (n_field * (x - point)).inverse().unwrap()
        })
        .collect()
}
