"""What always holds in the prover's core, checked after every step of every core test.

* the device section holds at most one lease, and synthesis no more than its threads;
* what leases and keys hold is within the total;
* a lease past FETCHING, or with a stage that runs, has its key resident: so a key is unloaded
  only when nothing refers to it;
* an Actual lists every lease whose memory is not given back;
* a lease that ended is being stopped or freed: nothing stays by being forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.prover.core.leases import Lease, Stage
from partita.prover.core.model import (
    NOTHING,
    Actual,
    CoreBug,
    CoreConfig,
    KeyState,
    Phase,
    total_of,
)

if TYPE_CHECKING:
    from partita.prover.core.keys import KeyTable


def check(leases: list[Lease], keys: KeyTable, actual: Actual, config: CoreConfig) -> None:
    """Raise CoreBug unless every invariant holds."""
    _check_sections(leases, config)
    held = total_of([x.held for x in leases]) + keys.held()
    if not held.fits(config.total):
        raise CoreBug(f"{held} are held of {config.total}")
    listed = {x.lease_id: x for x in actual.leases}
    for lease in leases:
        lease_id = lease.order.lease_id
        if not lease.freed and lease_id not in listed:
            raise CoreBug(f"lease {lease_id} holds memory and is missing from Actual")
        if lease.freed and (lease.held != NOTHING or lease.stage is not None):
            raise CoreBug(f"lease {lease_id} was freed and holds memory or a stage")
        if lease.freed and lease.outcome is None:
            raise CoreBug(f"lease {lease_id} was freed, is kept and has no outcome")
        ended = not lease.going_on and not lease.freed
        if ended and not (lease.stop_sent if lease.stage is not None else lease.free_sent):
            raise CoreBug(f"lease {lease_id} ended and nobody gives its memory back")
        used = lease.stage in (Stage.SYNTHESIS, Stage.DEVICE)
        past_fetch = lease.going_on and lease.phase is not Phase.FETCHING
        if (used or past_fetch) and not keys.is_ready(lease.order.manifest_sha256):
            raise CoreBug(f"lease {lease_id} goes on without its key")
    for key in actual.keys:
        if key.state is KeyState.READY and not key.held.host and not key.held.device:
            raise CoreBug(f"key {key.manifest_sha256.hex()} is READY and holds nothing")


def _check_sections(leases: list[Lease], config: CoreConfig) -> None:
    on_device = [x for x in leases if x.on_device]
    if len(on_device) > 1:
        raise CoreBug(f"{len(on_device)} leases hold the device")
    if any(x.stage is not Stage.DEVICE for x in on_device):
        raise CoreBug("the device is held without work on it")
    if any(x.going_on and x.phase is Phase.PROVING and not x.on_device for x in leases):
        raise CoreBug("a lease is PROVING without the device")
    running = [x for x in leases if x.stage is Stage.SYNTHESIS]
    if sum(not x.express for x in running) > config.synthesis_threads:
        raise CoreBug("more synthesis than threads")
    if sum(x.express for x in running) > 1:
        raise CoreBug("more than one express synthesis")
