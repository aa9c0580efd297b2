//! Whole vectors of points as bytes: checked in place, and turned from one byte form into the other.
//!
//! For callers that stream a key: nothing here keeps a copy of what it reads.

use rayon::prelude::*;

use crate::curve::Group;
use crate::error::{Error, Result, require_equal};
use crate::field::first_error;
use crate::stamps::stamp;

/// Points that one task handles.
const TILE: usize = 1 << 8;

fn require_points<G: Group>(bytes: &[u8]) -> Result<()> {
    if bytes.len().is_multiple_of(G::POINT_BYTES) {
        return Ok(());
    }
    Err(Error::Value(format!(
        "{} bytes are no multiple of a point's {}",
        bytes.len(),
        G::POINT_BYTES
    )))
}

/// Checks coordinates, equation and order of stored points; infinity passes.
///
/// # Errors
/// [`Error::Value`] for a length that is no number of points, [`Error::Point`] with the lowest
/// index that fails.
pub fn check_stored<G: Group>(stored: &[u8]) -> Result<()> {
    require_points::<G>(stored)?;
    let tiles = stored.par_chunks(TILE * G::POINT_BYTES).enumerate();
    first_error(tiles.map(|(tile, bytes)| {
        stamp();
        for (i, point) in bytes.chunks_exact(G::POINT_BYTES).enumerate() {
            G::check(&G::load(point)).map_err(|fault| Error::Point {
                index: tile * TILE + i,
                fault,
            })?;
        }
        Ok(())
    }))
}

/// Reads points in plain form, fully checked, into `stored`; infinity is allowed.
///
/// # Errors
/// As [`check_stored`]; [`Error::Value`] also if the two lengths differ.
pub fn plain_to_stored<G: Group>(plain: &[u8], stored: &mut [u8]) -> Result<()> {
    require_points::<G>(plain)?;
    require_equal("bytes of the points", plain.len(), stored.len())?;
    let tiles = stored
        .par_chunks_mut(TILE * G::POINT_BYTES)
        .zip(plain.par_chunks(TILE * G::POINT_BYTES))
        .enumerate();
    first_error(tiles.map(|(tile, (out, bytes))| {
        stamp();
        let pairs = out
            .chunks_exact_mut(G::POINT_BYTES)
            .zip(bytes.chunks_exact(G::POINT_BYTES));
        for (i, (to, from)) in pairs.enumerate() {
            let point = G::from_plain(from).map_err(|fault| Error::Point {
                index: tile * TILE + i,
                fault,
            })?;
            G::store(&point, to);
        }
        Ok(())
    }))
}

/// Writes stored points, which are not checked, in plain form.
///
/// # Errors
/// [`Error::Value`] for a length that is no number of points, or two that differ.
pub fn stored_to_plain<G: Group>(stored: &[u8], plain: &mut [u8]) -> Result<()> {
    require_points::<G>(stored)?;
    require_equal("bytes of the points", stored.len(), plain.len())?;
    plain
        .par_chunks_mut(TILE * G::POINT_BYTES)
        .zip(stored.par_chunks(TILE * G::POINT_BYTES))
        .for_each(|(out, bytes)| {
            stamp();
            let pairs = out
                .chunks_exact_mut(G::POINT_BYTES)
                .zip(bytes.chunks_exact(G::POINT_BYTES));
            for (to, from) in pairs {
                G::to_plain(&G::load(from), to);
            }
        });
    Ok(())
}
