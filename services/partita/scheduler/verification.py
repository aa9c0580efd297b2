"""Checks proofs off the event loop: what waits for one key is one randomised batch.

One worker thread; the native code inside releases the interpreter lock. A verdict is VALID or
INVALID only if the verifier said so; whatever breaks on the way is UNCHECKED, and the core asks
again. Verifying keys come from the operator's catalogue, by manifest digest.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from partita.groth16.errors import Groth16Error
from partita.groth16.verifier import Verifier
from partita.groth16.verifying_key import VerifyingKey
from partita.scheduler.core.effects import VerifyProof
from partita.scheduler.core.events import ProofChecked
from partita.scheduler.core.model import Verdict
from partita.service import logs

MAX_BATCH = 256
MAX_VERIFIERS = 64

KeySource = Callable[[bytes], VerifyingKey]
"""Gives the verifying key of a manifest digest; LookupError if the catalogue lacks it."""

_log = logs.get("verification")


class Verification:
    """The verifier of a scheduler.

    Args:
        keys: where verifying keys come from; called in the worker thread.
        answer: takes the answers, on the event loop's thread.
        checked: told the size of each batch and the nanoseconds it took, on the same thread.
    """

    def __init__(
        self,
        keys: KeySource,
        answer: Callable[[ProofChecked], None],
        checked: Callable[[int, int], None],
    ) -> None:
        self._keys = keys
        self._answer = answer
        self._checked = checked
        self._waiting: dict[bytes, list[VerifyProof]] = {}
        self._verifiers: dict[bytes, Verifier] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="verifier")
        self._worker: asyncio.Task[None] | None = None

    def check(self, request: VerifyProof) -> None:
        """Take a proof to check; its answer comes later, exactly once."""
        self._waiting.setdefault(request.manifest_sha256, []).append(request)
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            manifest, requests = next(iter(self._waiting.items()))
            batch, rest = requests[:MAX_BATCH], requests[MAX_BATCH:]
            del self._waiting[manifest]
            if rest:
                self._waiting[manifest] = rest
            began_ns = time.monotonic_ns()
            answers = await loop.run_in_executor(self._thread, self._check_batch, manifest, batch)
            self._checked(len(batch), time.monotonic_ns() - began_ns)
            for answer in answers:
                self._answer(answer)
        self._worker = None

    def _check_batch(self, manifest: bytes, batch: Sequence[VerifyProof]) -> list[ProofChecked]:
        try:
            verifier = self._verifier(manifest)
            verdicts = verifier.verify_batch([(r.statement, r.proof) for r in batch])
        except Exception as error:  # noqa: BLE001 - each check is answered, whatever broke
            known = isinstance(error, Groth16Error | LookupError | OSError | MemoryError)
            _log.error(
                "verification.broken",
                manifest=manifest.hex(),
                error=str(error),
                exc_info=None if known else error,
            )
            return [ProofChecked(r.check_id, Verdict.UNCHECKED, str(error)) for r in batch]
        return [
            ProofChecked(
                request.check_id,
                Verdict.VALID if verdict.valid else Verdict.INVALID,
                verdict.reason,
            )
            for request, verdict in zip(batch, verdicts, strict=True)
        ]

    def _verifier(self, manifest: bytes) -> Verifier:
        verifier = self._verifiers.pop(manifest, None)
        if verifier is None:
            verifier = Verifier(self._keys(manifest))
            if len(self._verifiers) >= MAX_VERIFIERS:
                del self._verifiers[next(iter(self._verifiers))]
        self._verifiers[manifest] = verifier
        return verifier

    async def close(self) -> None:
        """Drop what waits, let the running batch end."""
        self._waiting.clear()
        worker = self._worker
        if worker is not None:
            await worker
        self._thread.shutdown()
