"""Trust in a prover: standing debits, quarantine, probation.

    TRUSTED ── 3 standing debits ──> QUARANTINED ── 10 minutes ──> PROBATION
    PROBATION ── VALID ──> TRUSTED        PROBATION ── INVALID ──> QUARANTINED
    an operator sets any of the three; QUARANTINED by an operator lasts until released

A proof that does not verify is a debit only once somebody proves the partition: else witness
or key may be to blame, and it is void. On probation a prover has one lease at a time, never a
CRITICAL one, and each verdict decides. The score starts anew when a prover is TRUSTED again.
What a prover holds goes on whatever its trust: its proofs are verified like all others.
"""

from __future__ import annotations

from partita.scheduler.core import acceptance
from partita.scheduler.core.model import Trust
from partita.scheduler.core.state import State
from partita.scheduler.core.tables import Prover


def debit(state: State, prover: Prover) -> None:
    """Hold an unverifiable proof against a prover: the partition was proved after all."""
    prover.debits += 1
    if prover.trust is Trust.TRUSTED and prover.debits >= state.config.quarantine_debits:
        _quarantine(
            state, prover, f"{prover.debits} of its proofs did not verify where another did"
        )
    else:
        state.save_prover(prover)


def judged(state: State, prover: Prover, *, valid: bool) -> None:
    """Take a verdict on any proof of a prover; it decides only on probation."""
    if prover.trust is not Trust.PROBATION:
        return
    if valid:
        prover.debits = 0
        _become(state, prover, Trust.TRUSTED, "")
    else:
        _quarantine(state, prover, "a proof did not verify on probation")


def end_quarantine(state: State, prover: Prover) -> None:
    """The time of a quarantine by score is over."""
    _become(state, prover, Trust.PROBATION, f"on probation after: {prover.trust_reason}")


def set_by_operator(state: State, prover: Prover, trust: Trust, reason: str) -> None:
    """Set the trust as an operator judges it; it ends a quarantine's clock."""
    if trust is Trust.TRUSTED:
        prover.debits = 0
        reason = ""
    elif not reason:
        reason = f"{trust.name.lower()} by an operator"
    _become(state, prover, trust, reason)


def resume(state: State, prover: Prover) -> None:
    """Arm the end of a quarantine that was read back from the store."""
    if prover.quarantined_until_ns is not None:
        state.timers.arm(("quarantine", prover.prover_id, 0), prover.quarantined_until_ns)


def _quarantine(state: State, prover: Prover, why: str) -> None:
    until_ns = state.now_ns + state.config.quarantine_ns
    _become(state, prover, Trust.QUARANTINED, f"quarantined: {why}", until_ns)


def _become(
    state: State, prover: Prover, trust: Trust, reason: str, until_ns: int | None = None
) -> None:
    prover.trust = trust
    prover.trust_reason = reason
    prover.quarantined_until_ns = until_ns
    name = ("quarantine", prover.prover_id, 0)
    if until_ns is None:
        state.timers.disarm(name)
    else:
        state.timers.arm(name, until_ns)
    state.save_prover(prover)
    if prover.session is not None:
        acceptance.note_slots(state, state.sessions[prover.session])
    state.want_dispatch = True
