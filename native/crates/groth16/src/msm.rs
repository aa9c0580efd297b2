//! Multi-scalar multiplication: Σ scalarᵢ · pointᵢ over any group.
//!
//! Witnesses are full of zeros and ones, and keys hold points at infinity: those never reach the
//! bucket method. What remains goes to [`Group::multi_multiply`] in chunks of bounded size, so that
//! scratch does not grow with the key and progress is seen between chunks.

use rayon::prelude::*;

use crate::curve::Group;
use crate::error::{Result, require_equal};
use crate::field::ScalarField;
use crate::memory::try_vec;
use crate::stamps::stamp;

/// Scalars that one task sorts into classes.
const TILE: usize = 1 << 13;

/// What one task found: points to add once, and points with a scalar of their own.
struct Sorted<'a, G: Group> {
    ones: G::Point,
    points: Vec<&'a G::Stored>,
    scalars: Vec<[u64; 4]>,
}

fn sort<'a, G: Group>(points: &'a [G::Stored], scalars: &[G::Scalar]) -> Result<Sorted<'a, G>> {
    stamp();
    let mut ones = try_vec(points.len())?;
    let mut kept = try_vec(points.len())?;
    let mut limbs = try_vec(points.len())?;
    for (point, scalar) in points.iter().zip(scalars) {
        if *scalar == G::Scalar::ZERO || G::is_infinity(point) {
            continue;
        }
        if *scalar == G::Scalar::ONE {
            ones.push(point);
        } else {
            kept.push(point);
            limbs.push(scalar.to_canonical());
        }
    }
    Ok(Sorted {
        ones: G::sum(&ones),
        points: kept,
        scalars: limbs,
    })
}

/// Σ scalarᵢ · pointᵢ on all cores.
///
/// # Errors
/// [`crate::error::Error::Value`] if the lengths differ, [`crate::error::Error::Memory`].
pub fn msm<G: Group>(points: &[G::Stored], scalars: &[G::Scalar]) -> Result<G::Point> {
    require_equal("scalars for the points", points.len(), scalars.len())?;
    let mut total = G::zero();
    for (points, scalars) in points
        .chunks(G::MSM_CHUNK)
        .zip(scalars.chunks(G::MSM_CHUNK))
    {
        let tiles = points
            .par_chunks(TILE)
            .zip(scalars.par_chunks(TILE))
            .map(|(points, scalars)| sort::<G>(points, scalars))
            .collect::<Result<Vec<_>>>()?;
        let n_kept = tiles.iter().map(|tile| tile.points.len()).sum();
        let mut kept = try_vec(n_kept)?;
        let mut limbs = try_vec(n_kept)?;
        for tile in tiles {
            total = G::add(&total, &tile.ones);
            kept.extend_from_slice(&tile.points);
            limbs.extend_from_slice(&tile.scalars);
        }
        total = G::add(&total, &G::multi_multiply(&kept, &limbs)?);
        stamp();
    }
    Ok(total)
}
