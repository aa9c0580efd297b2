//! What can go wrong, as values that name the place.

use std::fmt;

/// Why bytes are not a point of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointFault {
    /// A coordinate is not below the base field's modulus.
    Coordinate,
    /// The coordinates do not satisfy the curve's equation.
    OffCurve,
    /// The point lies on the curve but not in the subgroup of prime order.
    Subgroup,
    /// The point at infinity where it is not allowed.
    Infinity,
    /// The flag bits or the padding of the encoding are wrong.
    Encoding,
}

impl PointFault {
    /// The words that callers see.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Coordinate => "coordinate not below the modulus",
            Self::OffCurve => "off the curve",
            Self::Subgroup => "wrong subgroup",
            Self::Infinity => "the point at infinity",
            Self::Encoding => "malformed encoding",
        }
    }
}

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The system refused memory.
    Memory {
        /// How many bytes were asked for.
        size_bytes: usize,
    },
    /// A point is not what it claims to be.
    Point {
        /// Its index in the vector that was given.
        index: usize,
        /// What is wrong with it.
        fault: PointFault,
    },
    /// A field element is not below its modulus.
    Scalar {
        /// Its index in the vector that was given.
        index: usize,
    },
    /// A proof is malformed.
    Proof {
        /// `"A"`, `"B"`, `"C"` or `"length"`.
        element: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Shapes that do not fit together; the text names them.
    Value(String),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { size_bytes } => write!(out, "{size_bytes} bytes of memory were refused"),
            Self::Point { index, fault } => write!(out, "point {index}: {}", fault.text()),
            Self::Scalar { index } => write!(out, "scalar {index}: not below the modulus"),
            Self::Proof { element, why } => write!(out, "{element}: {why}"),
            Self::Value(text) => out.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Refuses a shape: `name` must be `expected`.
pub(crate) fn require_equal(name: &str, expected: usize, found: usize) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::Value(format!(
        "{name}: expected {expected}, found {found}"
    )))
}
