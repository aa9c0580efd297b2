"""The proving keys that a prover holds.

| state | means | next |
|---|---|---|
| LOADING | being read; `held` = 0 while it waits for room | READY, FAILED |
| READY | leases may use it | unwanted and unreferenced → LEAVING |
| LEAVING | being unmapped | gone; loaded again if it is wanted by then |
| FAILED | could not be loaded; holds nothing | unwanted → gone; offer changed → gone |

A key is unloaded only while no lease refers to it. A load in progress is not interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from partita.prover.core.effects import Effect, LoadKey, UnloadKey
from partita.prover.core.model import NOTHING, Bytes, CoreBug, HeldKey, KeyState, total_of


@dataclass(slots=True)
class _Key:
    state: KeyState
    held: Bytes = NOTHING
    started: bool = False
    reason: str = ""


class KeyTable:
    """Decides what is loaded and unloaded; `references` are the caller's counts by manifest."""

    def __init__(self) -> None:
        self._keys: dict[bytes, _Key] = {}
        self._wanted: frozenset[bytes] = frozenset()
        self._offers: dict[bytes, Bytes] = {}

    def want(self, manifests: frozenset[bytes]) -> None:
        """Set the whole set of wanted keys."""
        self._wanted = manifests

    def offer(self, key_bytes: Mapping[bytes, Bytes]) -> None:
        """Set what the keys take; a FAILED key whose offer changed may be tried again."""
        for manifest, key in list(self._keys.items()):
            changed = key_bytes.get(manifest) != self._offers.get(manifest)
            if key.state is KeyState.FAILED and changed:
                del self._keys[manifest]
        self._offers = dict(key_bytes)

    def loaded(self, manifest: bytes, held: Bytes) -> None:
        """Take in that a load succeeded."""
        key = self._loading(manifest)
        if not held.fits(key.held):
            raise CoreBug(f"key {manifest.hex()} occupies {held}, its limit was {key.held}")
        key.state, key.held = KeyState.READY, held

    def failed(self, manifest: bytes, reason: str) -> None:
        """Take in that a load failed."""
        key = self._loading(manifest)
        key.state, key.held, key.reason = KeyState.FAILED, NOTHING, reason

    def unloaded(self, manifest: bytes) -> None:
        """Take in that a key is gone."""
        if self._keys[manifest].state is not KeyState.LEAVING:
            raise CoreBug(f"key {manifest.hex()} was unloaded without being asked for")
        del self._keys[manifest]

    def is_ready(self, manifest: bytes) -> bool:
        """Tell whether leases may use the key."""
        key = self._keys.get(manifest)
        return key is not None and key.state is KeyState.READY

    def failure(self, manifest: bytes) -> str | None:
        """Return why the key cannot be loaded, None if it did not fail."""
        key = self._keys.get(manifest)
        return key.reason if key is not None and key.state is KeyState.FAILED else None

    def held(self) -> Bytes:
        """Return what all keys occupy."""
        return total_of([key.held for key in self._keys.values()])

    def advance(self, references: Mapping[bytes, int], room: Bytes) -> list[Effect]:
        """Start unloads of what is unwanted and idle, and loads of what is wanted and fits.

        Args:
            references: leases that hold memory, by the manifest they refer to.
            room: memory that neither keys nor leases occupy.
        """
        effects: list[Effect] = []
        for manifest, key in list(self._keys.items()):
            if manifest in self._wanted or references.get(manifest):
                continue
            if key.state is KeyState.READY:
                key.state = KeyState.LEAVING
                effects.append(UnloadKey(manifest))
            elif key.state is KeyState.FAILED or not key.started:
                del self._keys[manifest]
        for manifest in sorted(self._wanted):
            key = self._keys.setdefault(manifest, _Key(KeyState.LOADING))
            if key.state is not KeyState.LOADING or key.started:
                continue
            size = self._offers.get(manifest)
            if size is None:
                key.state, key.reason = KeyState.FAILED, "this prover does not offer the circuit"
            elif size.fits(room):
                key.started, key.held = True, size
                room = Bytes(room.host - size.host, room.device - size.device)
                effects.append(LoadKey(manifest, size))
        return effects

    def view(self, references: Mapping[bytes, int]) -> tuple[HeldKey, ...]:
        """Return the keys as an Actual lists them."""
        return tuple(
            HeldKey(manifest, key.state, key.held, references.get(manifest, 0), key.reason)
            for manifest, key in sorted(self._keys.items())
        )

    def _loading(self, manifest: bytes) -> _Key:
        key = self._keys.get(manifest)
        if key is None or key.state is not KeyState.LOADING or not key.started:
            raise CoreBug(f"key {manifest.hex()} was not being loaded")
        return key
