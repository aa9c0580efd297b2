//! BLS12-381, computed by blst. Its affine points are the stored form byte for byte.
//!
//! The only file that calls into blst's C functions, but for a hash in `verify`.

use std::ptr;

use blst::{
    BLST_ERROR, blst_fp, blst_fp2, blst_fp12, blst_p1, blst_p1_affine, blst_p2, blst_p2_affine,
};
use rayon::prelude::*;

use super::{Curve, G1, G2, Group, Modulus, ProofPoints};
use crate::error::{PointFault, Result};
use crate::field::{
    Bls12381Scalar, Direction, ScalarField, convert, is_below, limbs_from_be, limbs_from_le,
    limbs_to_le,
};
use crate::memory::{Zeroable, try_vec};
use crate::stamps::stamp;

/// BLS12-381.
#[derive(Clone, Copy, Debug)]
pub struct Bls12381;

/// The prime-order subgroup of the curve over Fp.
#[derive(Clone, Copy, Debug)]
pub struct Group1;

/// The prime-order subgroup of the twist over Fp2.
#[derive(Clone, Copy, Debug)]
pub struct Group2;

const FP_BYTES: usize = 48;
const SCALAR_BITS: usize = 255;
/// The modulus p, least significant limb first.
const MODULUS: [u64; 6] = <ark_bls12_381::Fq as ark_ff::PrimeField>::MODULUS.0;
/// Set in the first byte of every compressed point.
const FLAG_COMPRESSED: u8 = 0x80;
/// Set in the first byte of an infinity, compressed or not.
const FLAG_INFINITY: u8 = 0x40;
/// The three flag bits of a first byte.
const FLAGS: u8 = 0xe0;
/// Below this many points the bucket method costs more than single multiplications.
const FEW_POINTS: usize = 16;

// SAFETY: limbs only; all zero is the point at infinity.
unsafe impl Zeroable for blst_p1_affine {}
// SAFETY: as above.
unsafe impl Zeroable for blst_p2_affine {}

fn coordinates1(point: &blst_p1_affine) -> [blst_fp; 2] {
    [point.x, point.y]
}

fn assemble1([x, y]: [blst_fp; 2]) -> blst_p1_affine {
    blst_p1_affine { x, y }
}

fn coordinates2(point: &blst_p2_affine) -> [blst_fp; 4] {
    [point.x.fp[0], point.x.fp[1], point.y.fp[0], point.y.fp[1]]
}

fn assemble2([x0, x1, y0, y1]: [blst_fp; 4]) -> blst_p2_affine {
    blst_p2_affine {
        x: blst_fp2 { fp: [x0, x1] },
        y: blst_fp2 { fp: [y0, y1] },
    }
}

/// A coordinate from 48 big-endian bytes.
fn read_coordinate(bytes: &[u8]) -> std::result::Result<blst_fp, PointFault> {
    if !is_below(&limbs_from_be(bytes), &MODULUS) {
        return Err(PointFault::Coordinate);
    }
    let mut value = blst_fp::default();
    // SAFETY: `bytes` has 48 bytes, as `limbs_from_be` of six limbs and the callers' chunks say.
    unsafe { blst::blst_fp_from_bendian(&raw mut value, bytes.as_ptr()) };
    Ok(value)
}

/// Shape of the grid over which blst's tiles are spread: windows of `bits`, `columns` of points.
struct Grid {
    window_bits: usize,
    rows: usize,
    columns: usize,
}

impl Grid {
    /// The bucket method's cost is (n + 2^(w−1)) additions a window; rows alone rarely feed
    /// every core evenly, so that points are split into columns too when that evens the load.
    fn new(n_points: usize, n_threads: usize) -> Self {
        let cost = |window_bits: usize, columns: usize| {
            let rows = SCALAR_BITS / window_bits + 1;
            let tile = n_points / columns + (1 << window_bits);
            let rounds = (rows * columns).div_ceil(n_threads);
            rounds * tile
        };
        let (_, window_bits, columns) = (2..=18)
            .flat_map(|w| (1..=2 * n_threads).map(move |c| (w, c)))
            .filter(|&(_, columns)| columns == 1 || n_points / columns >= FEW_POINTS)
            .map(|(w, c)| (cost(w, c), w, c))
            .min()
            .expect("the range is not empty");
        Self {
            window_bits,
            rows: SCALAR_BITS / window_bits + 1,
            columns,
        }
    }
}

macro_rules! blst_group {
    (
        $group:ident, $affine:ident, $point:ident, $coordinates:ident, $assemble:ident,
        coordinates = $n:literal, plain_order = $plain:expr, chunk = $chunk:expr,
        generator = $generator:ident, on_curve = $on_curve:ident, in_group = $in_group:ident,
        add = $add:ident, double = $double:ident, from_affine = $from_affine:ident,
        to_affine = $to_affine:ident, mult = $mult:ident, sum = $sum:ident,
        scratch_bytes = $scratch:ident, tile = $tile:ident
    ) => {
        impl Group for $group {
            type Scalar = Bls12381Scalar;
            type Stored = $affine;
            type Point = $point;
            const POINT_BYTES: usize = $n * FP_BYTES;
            const MSM_CHUNK: usize = $chunk;

            fn load(bytes: &[u8]) -> $affine {
                let mut coordinates = [blst_fp::default(); $n];
                for (to, from) in coordinates.iter_mut().zip(bytes.chunks_exact(FP_BYTES)) {
                    to.l = limbs_from_le(from);
                }
                $assemble(coordinates)
            }

            fn store(point: &$affine, out: &mut [u8]) {
                for (from, to) in $coordinates(point)
                    .iter()
                    .zip(out.chunks_exact_mut(FP_BYTES))
                {
                    limbs_to_le(&from.l, to);
                }
            }

            fn from_plain(bytes: &[u8]) -> std::result::Result<$affine, PointFault> {
                let first = bytes[0];
                if first & FLAG_COMPRESSED != 0 {
                    return Err(PointFault::Encoding);
                }
                if first & FLAG_INFINITY != 0 {
                    let is_plain = first == FLAG_INFINITY && bytes[1..].iter().all(|b| *b == 0);
                    return if is_plain {
                        Ok($affine::default())
                    } else {
                        Err(PointFault::Encoding)
                    };
                }
                let mut coordinates = [blst_fp::default(); $n];
                for (at, word) in $plain.into_iter().zip(bytes.chunks_exact(FP_BYTES)) {
                    coordinates[at] = read_coordinate(word)?;
                }
                let point = $assemble(coordinates);
                if Self::is_infinity(&point) {
                    // All zero bytes: infinity without its flag.
                    return Err(PointFault::Encoding);
                }
                Self::check(&point)?;
                Ok(point)
            }

            fn to_plain(point: &$affine, out: &mut [u8]) {
                if Self::is_infinity(point) {
                    out[..Self::POINT_BYTES].fill(0);
                    out[0] = FLAG_INFINITY;
                    return;
                }
                let coordinates = $coordinates(point);
                for (at, word) in $plain.into_iter().zip(out.chunks_exact_mut(FP_BYTES)) {
                    // SAFETY: the chunk has the 48 bytes that blst writes.
                    unsafe { blst::blst_bendian_from_fp(word.as_mut_ptr(), &coordinates[at]) };
                }
            }

            fn generator() -> $affine {
                // SAFETY: blst returns a pointer to a constant.
                unsafe { *blst::$generator() }
            }

            fn is_infinity(point: &$affine) -> bool {
                $coordinates(point).iter().all(|c| c.l == [0; 6])
            }

            fn has_reduced_coordinates(point: &$affine) -> bool {
                $coordinates(point).iter().all(|c| is_below(&c.l, &MODULUS))
            }

            fn is_on_curve(point: &$affine) -> bool {
                // SAFETY: a valid reference.
                unsafe { blst::$on_curve(point) }
            }

            fn is_in_subgroup(point: &$affine) -> bool {
                // SAFETY: a valid reference.
                unsafe { blst::$in_group(point) }
            }

            fn zero() -> $point {
                $point::default()
            }

            fn add(left: &$point, right: &$point) -> $point {
                let mut sum = $point::default();
                // SAFETY: valid references.
                unsafe { blst::$add(&raw mut sum, left, right) };
                sum
            }

            fn from_stored(point: &$affine) -> $point {
                let mut sum = $point::default();
                // SAFETY: valid references.
                unsafe { blst::$from_affine(&raw mut sum, point) };
                sum
            }

            fn to_stored(point: &$point) -> $affine {
                let mut affine = $affine::default();
                // SAFETY: valid references.
                unsafe { blst::$to_affine(&raw mut affine, point) };
                affine
            }

            fn negate(point: &$affine) -> $affine {
                let mut coordinates = $coordinates(point);
                for coordinate in &mut coordinates[$n / 2..] {
                    let value = *coordinate;
                    // SAFETY: valid references.
                    unsafe { blst::blst_fp_cneg(coordinate, &raw const value, true) };
                }
                $assemble(coordinates)
            }

            fn multiply(point: &$affine, scalar: Bls12381Scalar) -> $point {
                let mut bytes = [0; 32];
                limbs_to_le(&scalar.to_canonical(), &mut bytes);
                let point = Self::from_stored(point);
                let mut product = $point::default();
                // SAFETY: the scalar's 255 bits lie in the 32 bytes.
                unsafe {
                    blst::$mult(
                        &raw mut product,
                        &raw const point,
                        bytes.as_ptr(),
                        SCALAR_BITS,
                    );
                }
                product
            }

            fn sum(points: &[&$affine]) -> $point {
                let mut sum = $point::default();
                if points.is_empty() {
                    return sum;
                }
                // SAFETY: a slice of references is an array of valid pointers of its length.
                unsafe {
                    blst::$sum(
                        &raw mut sum,
                        points.as_ptr().cast::<*const $affine>(),
                        points.len(),
                    );
                }
                sum
            }

            fn multi_multiply(points: &[&$affine], scalars: &[[u64; 4]]) -> Result<$point> {
                assert_eq!(points.len(), scalars.len(), "a scalar for each point");
                if points.len() < FEW_POINTS {
                    return Ok(points.iter().zip(scalars).fold(
                        Self::zero(),
                        |sum, (point, limbs)| {
                            let scalar = Bls12381Scalar::from_canonical(*limbs)
                                .expect("canonical limbs were given");
                            Self::add(&sum, &Self::multiply(point, scalar))
                        },
                    ));
                }
                let grid = Grid::new(points.len(), rayon::current_num_threads());
                let width = points.len() / grid.columns;
                // SAFETY: a pure function; for zero points it gives the bytes of one bucket.
                let bucket_limbs = unsafe { blst::$scratch(0) } / size_of::<u64>();
                let scratch_limbs = bucket_limbs << (grid.window_bits - 1);
                // Top row first: it is the narrowest, and the last to start should be full ones.
                let tiles: Vec<(usize, usize)> = (0..grid.rows)
                    .rev()
                    .flat_map(|row| (0..grid.columns).map(move |column| (row, column)))
                    .collect();
                let sums = tiles
                    .into_par_iter()
                    .with_max_len(1)
                    .map(|(row, column)| {
                        let start = column * width;
                        let end = if column + 1 == grid.columns {
                            points.len()
                        } else {
                            start + width
                        };
                        let (points, scalars) = (&points[start..end], &scalars[start..end]);
                        let mut scratch = try_vec::<u64>(scratch_limbs)?;
                        scratch.resize(scratch_limbs, 0);
                        let scalar_pointers = [scalars.as_ptr().cast::<u8>(), ptr::null()];
                        let mut sum = $point::default();
                        // SAFETY: `points` is an array of valid pointers; the scalars lie one after
                        // the other, 32 bytes each (little-endian limbs are little-endian bytes
                        // here), which is what a null second pointer says; a tile has at least
                        // two points; the scratch holds 2^(window−1) buckets.
                        unsafe {
                            blst::$tile(
                                &raw mut sum,
                                points.as_ptr().cast::<*const $affine>(),
                                points.len(),
                                scalar_pointers.as_ptr(),
                                SCALAR_BITS,
                                scratch.as_mut_ptr(),
                                row * grid.window_bits,
                                grid.window_bits,
                            );
                        }
                        stamp();
                        Ok(sum)
                    })
                    .collect::<Result<Vec<_>>>()?;
                let mut total = Self::zero();
                for (i, row) in sums.chunks_exact(grid.columns).enumerate() {
                    if i > 0 {
                        for _ in 0..grid.window_bits {
                            let value = total;
                            // SAFETY: valid references.
                            unsafe { blst::$double(&raw mut total, &raw const value) };
                        }
                    }
                    total = row.iter().fold(total, |sum, tile| Self::add(&sum, tile));
                }
                Ok(total)
            }
        }
    };
}

blst_group!(
    Group1,
    blst_p1_affine,
    blst_p1,
    coordinates1,
    assemble1,
    coordinates = 2,
    plain_order = [0, 1],
    chunk = 1 << 20,
    generator = blst_p1_affine_generator,
    on_curve = blst_p1_affine_on_curve,
    in_group = blst_p1_affine_in_g1,
    add = blst_p1_add_or_double,
    double = blst_p1_double,
    from_affine = blst_p1_from_affine,
    to_affine = blst_p1_to_affine,
    mult = blst_p1_mult,
    sum = blst_p1s_add,
    scratch_bytes = blst_p1s_mult_pippenger_scratch_sizeof,
    tile = blst_p1s_tile_pippenger
);
blst_group!(
    Group2,
    blst_p2_affine,
    blst_p2,
    coordinates2,
    assemble2,
    coordinates = 4,
    plain_order = [1, 0, 3, 2],
    chunk = 1 << 19,
    generator = blst_p2_affine_generator,
    on_curve = blst_p2_affine_on_curve,
    in_group = blst_p2_affine_in_g2,
    add = blst_p2_add_or_double,
    double = blst_p2_double,
    from_affine = blst_p2_from_affine,
    to_affine = blst_p2_to_affine,
    mult = blst_p2_mult,
    sum = blst_p2s_add,
    scratch_bytes = blst_p2s_mult_pippenger_scratch_sizeof,
    tile = blst_p2s_tile_pippenger
);

/// Checks what blst's decompression would lump together, so that the error says which it was.
fn check_compressed(bytes: &[u8]) -> std::result::Result<(), PointFault> {
    if bytes[0] & FLAG_COMPRESSED == 0 {
        return Err(PointFault::Encoding);
    }
    if bytes[0] & FLAG_INFINITY != 0 {
        return Err(PointFault::Infinity);
    }
    for (i, word) in bytes.chunks_exact(FP_BYTES).enumerate() {
        let mut limbs: [u64; 6] = limbs_from_be(word);
        if i == 0 {
            limbs[5] &= !(u64::from(FLAGS) << 56);
        }
        if !is_below(&limbs, &MODULUS) {
            return Err(PointFault::Coordinate);
        }
    }
    Ok(())
}

fn decompressed<T>(outcome: BLST_ERROR, point: T) -> std::result::Result<T, PointFault> {
    match outcome {
        BLST_ERROR::BLST_SUCCESS => Ok(point),
        BLST_ERROR::BLST_POINT_NOT_ON_CURVE => Err(PointFault::OffCurve),
        _ => Err(PointFault::Encoding),
    }
}

fn decompress1(bytes: &[u8]) -> std::result::Result<blst_p1_affine, PointFault> {
    check_compressed(bytes)?;
    let mut point = blst_p1_affine::default();
    // SAFETY: the caller slices 48 bytes.
    let outcome = unsafe { blst::blst_p1_uncompress(&raw mut point, bytes.as_ptr()) };
    decompressed(outcome, point)
}

fn decompress2(bytes: &[u8]) -> std::result::Result<blst_p2_affine, PointFault> {
    check_compressed(bytes)?;
    let mut point = blst_p2_affine::default();
    // SAFETY: the caller slices 96 bytes.
    let outcome = unsafe { blst::blst_p2_uncompress(&raw mut point, bytes.as_ptr()) };
    decompressed(outcome, point)
}

impl Curve for Bls12381 {
    type Scalar = Bls12381Scalar;
    type G1 = Group1;
    type G2 = Group2;
    type Miller = blst_fp12;
    const PROOF_BYTES: usize = 4 * FP_BYTES;

    fn decode_proof(
        bytes: &[u8],
    ) -> std::result::Result<ProofPoints<Self>, (&'static str, PointFault)> {
        Ok((
            decompress1(&bytes[..48]).map_err(|fault| ("A", fault))?,
            decompress2(&bytes[48..144]).map_err(|fault| ("B", fault))?,
            decompress1(&bytes[144..192]).map_err(|fault| ("C", fault))?,
        ))
    }

    fn encode_proof(a: &G1<Self>, b: &G2<Self>, c: &G1<Self>) -> Vec<u8> {
        let mut out = vec![0; Self::PROOF_BYTES];
        // SAFETY: blst writes 48, 96 and 48 bytes into the 192.
        unsafe {
            blst::blst_p1_affine_compress(out[..48].as_mut_ptr(), a);
            blst::blst_p2_affine_compress(out[48..144].as_mut_ptr(), b);
            blst::blst_p1_affine_compress(out[144..].as_mut_ptr(), c);
        }
        out
    }

    fn miller(pairs: &[(G1<Self>, G2<Self>)]) -> blst_fp12 {
        let (p, q): (Vec<_>, Vec<_>) = pairs
            .iter()
            .filter(|(p, q)| !Group1::is_infinity(p) && !Group2::is_infinity(q))
            .map(|(p, q)| (ptr::from_ref(p), ptr::from_ref(q)))
            .unzip();
        let mut product = blst_fp12::default();
        if !p.is_empty() {
            // SAFETY: two arrays of valid pointers of the same length.
            unsafe { blst::blst_miller_loop_n(&raw mut product, q.as_ptr(), p.as_ptr(), p.len()) };
        }
        product
    }

    fn miller_product(left: &blst_fp12, right: &blst_fp12) -> blst_fp12 {
        let mut product = blst_fp12::default();
        // SAFETY: valid references.
        unsafe { blst::blst_fp12_mul(&raw mut product, left, right) };
        product
    }

    fn is_one(miller: &blst_fp12) -> bool {
        let mut value = blst_fp12::default();
        // SAFETY: valid references.
        unsafe {
            blst::blst_final_exp(&raw mut value, miller);
            blst::blst_fp12_is_one(&raw const value)
        }
    }

    fn convert(modulus: Modulus, direction: Direction, bytes: &[u8], out: &mut [u8]) -> Result<()> {
        match modulus {
            Modulus::Base => convert::<ark_bls12_381::FqConfig, _>(direction, bytes, out),
            Modulus::Scalar => convert::<ark_bls12_381::FrConfig, _>(direction, bytes, out),
        }
    }
}
