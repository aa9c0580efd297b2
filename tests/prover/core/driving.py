"""A hand at the prover's core for tests: events in, effects out, invariants after every step."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from partita.prover.core import effects as fx
from partita.prover.core import events as ev
from partita.prover.core.model import (
    NOTHING,
    Actual,
    BlobRef,
    Bytes,
    CoreConfig,
    Desired,
    HeldKey,
    HeldLease,
    LeaseOrder,
    Phase,
)
from partita.prover.core.pipeline import PipelineCore

if TYPE_CHECKING:
    from partita.prover.core.effects import Effect
    from partita.prover.core.events import Event

GIB = 1 << 30
SECOND = 10**9
KEY = b"k" * 32
OTHER_KEY = b"o" * 32


def order(lease_id: str, **fields: Any) -> LeaseOrder:
    """An order with 10 GiB reserved unless a field says otherwise."""
    given: dict[str, Any] = {
        "job_id": "job",
        "partition_index": 0,
        "attempt": 1,
        "circuit_id": "circuit",
        "manifest_sha256": KEY,
        "input": BlobRef(b"i" * 32, 100),
        "input_format": "wtns",
        "job_seq": 1,
        "reserved": Bytes(10 * GIB),
    }
    return LeaseOrder(lease_id=lease_id, **{**given, **fields})


class Driver:
    """A linked core that offers two circuits of 5 and 7 GiB keys."""

    def __init__(self, config: CoreConfig) -> None:
        self.core = PipelineCore(config)
        self.now_ns = 0
        self._revision = 0
        self._orders: dict[str, LeaseOrder] = {}
        self.do(ev.OffersChanged({KEY: Bytes(5 * GIB), OTHER_KEY: Bytes(7 * GIB)}))
        self.do(ev.LinkUp())

    @staticmethod
    def digest(statement: bytes) -> bytes:
        return hashlib.sha256(statement).digest()

    @property
    def actual(self) -> Actual:
        return self.core.actual()

    def at(self, now_ns: int) -> None:
        self.now_ns = now_ns

    def do(self, event: Event) -> list[Effect]:
        """Handle an event; SendActual is left out of the answer."""
        return self._checked(self.core.handle(event, self.now_ns))

    def tick(self) -> list[Effect]:
        return self._checked(self.core.tick(self.now_ns))

    def _checked(self, effects: list[Effect]) -> list[Effect]:
        self.core.check()
        return [x for x in effects if not isinstance(x, fx.SendActual)]

    def desire(
        self,
        *orders: LeaseOrder,
        keys: tuple[bytes, ...] = (KEY,),
        drain: bool = False,
        also: tuple[str, ...] = (),
    ) -> list[Effect]:
        """Send a Desired of exactly these orders and earlier ones named in `also`."""
        self._revision += 1
        self._orders.update({x.lease_id: x for x in orders})
        leases = (*orders, *(self._orders[name] for name in also))
        desired = Desired(1, self._revision, leases, keys, drain)
        return self.do(ev.DesiredReceived(desired))

    def ready(self, new: LeaseOrder) -> list[Effect]:
        """Desire one more lease and bring input and key; return what that started."""
        held = tuple(x.lease_id for x in self.actual.leases)
        self.desire(new, also=held)
        effects = self.fetched(new.lease_id)
        return (
            self.loaded(KEY)
            if not effects and self.phase(new.lease_id) is Phase.FETCHING
            else (effects)
        )

    def proved(self, lease_id: str, statement: bytes = b"", **fields: Any) -> None:
        """Bring one lease to FINISHED with a proof."""
        self.ready(order(lease_id, **fields))
        self.synthesized(lease_id, statement)
        self.do(ev.Proved(lease_id, b"proof", NOTHING))
        self.do(ev.LeaseFreed(lease_id))

    def fetched(self, lease_id: str) -> list[Effect]:
        return self.do(ev.InputFetched(lease_id))

    def loaded(self, manifest: bytes) -> list[Effect]:
        return self.do(ev.KeyLoaded(manifest, Bytes(5 * GIB)))

    def synthesized(self, lease_id: str, statement: bytes = b"") -> list[Effect]:
        return self.do(ev.Synthesized(lease_id, statement, self.digest(statement)))

    def lease(self, lease_id: str) -> HeldLease:
        return next(x for x in self.actual.leases if x.lease_id == lease_id)

    def phase(self, lease_id: str) -> Phase:
        return self.lease(lease_id).phase

    def key(self, manifest: bytes) -> HeldKey:
        return next(x for x in self.actual.keys if x.manifest_sha256 == manifest)
