//! A global counter that rises while native work makes progress.
//!
//! A watchdog that sees it stand still for long knows that a stage hangs; it says nothing about
//! how much is left.

use std::sync::atomic::{AtomicU64, Ordering};

static STAMPS: AtomicU64 = AtomicU64::new(0);

/// Marks progress; called once a tile of every long stage.
pub(crate) fn stamp() {
    STAMPS.fetch_add(1, Ordering::Relaxed);
}

/// The number of tiles done since the process began.
#[must_use]
pub fn count() -> u64 {
    STAMPS.load(Ordering::Relaxed)
}
