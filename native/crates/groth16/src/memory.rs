//! Large vectors in anonymous mappings: allocated fallibly, returned to the system when dropped.
//!
//! The heap would keep freed pages and abort on refusal; a prover must report memory as gone only
//! when it is gone, and must survive a refusal.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use memmap2::{MmapMut, MmapOptions};

use crate::error::{Error, Result};

/// Types for which all-zero bytes are a value, and which own nothing.
///
/// # Safety
/// All-zero bytes must be a valid value of the type, its alignment at most a page.
pub unsafe trait Zeroable: Copy + Send + Sync + 'static {}

// SAFETY: zero is a value of every integer type.
unsafe impl Zeroable for u8 {}
// SAFETY: as above.
unsafe impl Zeroable for u32 {}
// SAFETY: as above.
unsafe impl Zeroable for u64 {}
// SAFETY: an array of zeroable values.
unsafe impl<T: Zeroable, const N: usize> Zeroable for [T; N] {}

/// A vector in its own anonymous mapping.
pub struct Mapped<T: Zeroable> {
    map: Option<MmapMut>,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Zeroable> Mapped<T> {
    /// `len` zero values.
    ///
    /// # Errors
    /// [`Error::Memory`] when the system refuses.
    pub fn zeroed(len: usize) -> Result<Self> {
        let refused = Error::Memory {
            size_bytes: len.saturating_mul(size_of::<T>()),
        };
        let Some(size_bytes) = len.checked_mul(size_of::<T>()) else {
            return Err(refused);
        };
        let map = if size_bytes == 0 {
            None
        } else {
            let map = MmapOptions::new()
                .len(size_bytes)
                .map_anon()
                .map_err(|_| refused)?;
            // Fewer page faults and TLB misses; a kernel without huge pages loses nothing.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            Some(map)
        };
        Ok(Self {
            map,
            len,
            element: PhantomData,
        })
    }

    /// Forgets the elements from `len` on; their memory stays mapped.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Bytes that the mapping takes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.map.as_ref().map_or(0, |map| map.len())
    }
}

impl<T: Zeroable> Deref for Mapped<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let start = self
            .map
            .as_ref()
            .map_or(NonNull::<T>::dangling().as_ptr().cast_const(), |map| {
                map.as_ptr().cast::<T>()
            });
        // SAFETY: the mapping is page-aligned, at least `len` elements long, began as zeros, which
        // are a value of T, and was since written through `&mut [T]` only.
        unsafe { std::slice::from_raw_parts(start, self.len) }
    }
}

impl<T: Zeroable> DerefMut for Mapped<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let start = self
            .map
            .as_mut()
            .map_or(NonNull::<T>::dangling().as_ptr(), |map| {
                map.as_mut_ptr().cast::<T>()
            });
        // SAFETY: as in `deref`, and `&mut self` makes the access unique.
        unsafe { std::slice::from_raw_parts_mut(start, self.len) }
    }
}

/// An empty vector with room for `capacity` elements, for scratch that lives within one call.
pub(crate) fn try_vec<T>(capacity: usize) -> Result<Vec<T>> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(capacity).map_err(|_| Error::Memory {
        size_bytes: capacity.saturating_mul(size_of::<T>()),
    })?;
    Ok(vec)
}
