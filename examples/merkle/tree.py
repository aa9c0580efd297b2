"""The circuit's hash and tree in plain Python, and inputs for it.

`python examples/merkle/tree.py --curve bn254 --count 10 --out DIR` builds one tree of depth 20 with
`count` members and writes DIR/input-00.json, input-01.json, ...: one member's input each, all for
the same root and scope. The same arguments always write the same bytes; the secrets come from
--seed, so they are for demonstrations and tests only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.merkle.poseidon_constants import FULL_ROUNDS, PARTIAL_ROUNDS, PRIMES, parameters

DEPTH = 20


def permute(curve: str, state: list[int]) -> list[int]:
    """Poseidon's permutation of three elements of the curve's scalar field."""
    chosen = parameters(curve)
    prime = chosen.prime
    half = FULL_ROUNDS // 2
    for index, constants in enumerate(chosen.round_constants):
        state = [value + constant for value, constant in zip(state, constants, strict=True)]
        full = not half <= index < half + PARTIAL_ROUNDS
        state = [pow(value, 5, prime) if full or i == 0 else value for i, value in enumerate(state)]
        mixed = [zip(row, state, strict=True) for row in chosen.mds]
        state = [sum(factor * value for factor, value in row) % prime for row in mixed]
    return state


def hash2(curve: str, left: int, right: int) -> int:
    """Poseidon of two field elements: first element of the permutation of (0, left, right)."""
    return permute(curve, [0, left, right])[0]


class Tree:
    """A Merkle tree of fixed depth whose absent leaves are 0; only occupied nodes are kept."""

    def __init__(self, curve: str, leaves: dict[int, int], depth: int = DEPTH) -> None:
        """`leaves` maps a position in [0, 2^depth) to the leaf there."""
        self._empty = [0]
        self._levels = [dict(leaves)]
        for height in range(depth):
            empty, below = self._empty[height], self._levels[height]
            self._empty.append(hash2(curve, empty, empty))
            self._levels.append(
                {
                    parent: hash2(
                        curve, below.get(2 * parent, empty), below.get(2 * parent + 1, empty)
                    )
                    for parent in sorted({position // 2 for position in below})
                }
            )

    @property
    def root(self) -> int:
        """The root, of the empty tree too."""
        return self._levels[-1].get(0, self._empty[-1])

    def siblings(self, position: int) -> list[int]:
        """The siblings on the way from a leaf to the root, lowest first."""
        return [
            level.get((position >> height) ^ 1, empty)
            for height, (level, empty) in enumerate(
                zip(self._levels[:-1], self._empty[:-1], strict=True)
            )
        ]


@dataclass(frozen=True)
class Member:
    """Who may prove membership: a place in the tree and what only the member knows."""

    position: int
    secret: int
    salt: int


def members(curve: str, count: int, seed: str) -> list[Member]:
    """`count` members at different positions, a function of the arguments alone."""

    def element(*labels: object) -> int:
        text = "/".join(map(str, (seed, curve, *labels)))
        return int.from_bytes(hashlib.sha512(text.encode()).digest()) % PRIMES[curve]

    positions: dict[int, None] = {}
    attempt = 0
    while len(positions) < count:
        positions.setdefault(element("position", attempt) % 2**DEPTH)
        attempt += 1
    return [
        Member(position, element("secret", index), element("salt", index))
        for index, position in enumerate(positions)
    ]


def inputs(
    curve: str, count: int, seed: str = "partita", scope: int = 1
) -> list[dict[str, str | list[str]]]:
    """One circuit input for each of the tree's `count` members, numbers as decimal strings."""
    group = members(curve, count, seed)
    tree = Tree(curve, {m.position: hash2(curve, m.secret, m.salt) for m in group})
    return [
        {
            "root": str(tree.root),
            "scope": str(scope),
            "secret": str(member.secret),
            "salt": str(member.salt),
            "siblings": [str(sibling) for sibling in tree.siblings(member.position)],
            "path": [str(member.position >> height & 1) for height in range(DEPTH)],
        }
        for member in group
    ]


def main() -> None:
    """Write the inputs; the module docstring shows the call."""
    parser = argparse.ArgumentParser(description="Inputs for the Merkle membership circuit.")
    parser.add_argument("--curve", choices=sorted(PRIMES), required=True)
    parser.add_argument("--count", type=int, default=10, help="members, 1 to 100000 (10)")
    parser.add_argument("--seed", default="partita", help="names the members' secrets (partita)")
    parser.add_argument("--scope", type=int, default=1, help="what the nullifiers are for (1)")
    parser.add_argument("--out", type=Path, required=True, help="folder to write, made if absent")
    arguments = parser.parse_args()
    if not 1 <= arguments.count <= 100_000:
        parser.error(f"--count is {arguments.count}; give 1 to 100000")
    if not 0 <= arguments.scope < PRIMES[arguments.curve]:
        parser.error(f"--scope is {arguments.scope}; give 0 up to the scalar field's modulus")
    arguments.out.mkdir(parents=True, exist_ok=True)
    digits = max(2, len(str(arguments.count - 1)))
    made = inputs(arguments.curve, arguments.count, arguments.seed, arguments.scope)
    for index, value in enumerate(made):
        target = arguments.out / f"input-{index:0{digits}}.json"
        target.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
