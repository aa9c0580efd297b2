"""The memory ledger of one prover session: who holds how many bytes there, exactly.

The ledger is bookkeeping, not an allocator. Charge on intent, release on report: a lease is
charged `reserved` until its prover lists it, then what the last Actual shows; a key is
charged the larger of offer and shown from wanted until absent. So the charge is never below
the truth. Sizes are integers in bytes, host and device apart; nothing is rounded.

Invariants: the stored charge is the sum of its holders' (`check`); no grant made it exceed the
total (`invariants`; a report may: then nothing more is granted until it shrinks).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from partita.scheduler.core.errors import CoreBug
from partita.scheduler.core.model import NOTHING, Bytes

Holder = str | bytes
"""A lease id (str) or a proving key's manifest digest (bytes)."""


@dataclass(slots=True)
class Ledger:
    """Charges against one session's `total`."""

    total: Bytes
    charged: Bytes = NOTHING
    holders: dict[Holder, Bytes] = field(default_factory=dict)

    def charge(self, holder: Holder, amount: Bytes) -> None:
        """Let `holder` hold exactly `amount`, whatever it held before."""
        before = self.holders.get(holder, NOTHING)
        if before != amount:
            self.charged = self.charged - before + amount
        self.holders[holder] = amount

    def release(self, holder: Holder) -> None:
        """Let `holder` hold nothing and forget it."""
        self.charged = self.charged - self.holders.pop(holder, NOTHING)

    def of(self, holder: Holder) -> Bytes:
        """Return what `holder` is charged."""
        return self.holders.get(holder, NOTHING)

    def room(self) -> Bytes:
        """Return what is left; a component is negative after a prover exceeded its peak."""
        return self.total - self.charged

    def check(self) -> None:
        """Raise `CoreBug` unless the stored charge is the sum of the holders' charges."""
        total = NOTHING
        for amount in self.holders.values():
            if amount.host < 0 or amount.device < 0:
                raise CoreBug(f"I2: negative charge {amount}")
            total = total + amount
        if total != self.charged:
            raise CoreBug(f"I2: stored charge {self.charged}, recomputed {total}")
