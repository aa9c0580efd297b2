"""The round constants and the MDS matrix of Poseidon, and the .circom files that hold them.

Parameters: t = 3 (two inputs and a capacity), S-box x^5, 8 full and 57 partial rounds: 128 bits of
security over a prime field of 254 or 255 bits. Constants and matrix come from the Grain LFSR in
self-shrinking mode that the Poseidon paper prescribes (https://eprint.iacr.org/2019/458, appendix
"Initialization of the Grain LFSR"), so they are a function of the field alone and anyone can
derive them again.

Run as a program it writes poseidon_bn254.circom and poseidon_bls12381.circom beside itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

WIDTH = 3
FULL_ROUNDS = 8
PARTIAL_ROUNDS = 57

PRIMES = {
    "bn254": 21888242871839275222246405745257275088548364400416034343698204186575808495617,
    "bls12-381": 52435875175126190479447740508185965837690552500527637822603658699938581184513,
}


@dataclass(frozen=True)
class Parameters:
    """Poseidon over one field.

    `round_constants` has (FULL_ROUNDS + PARTIAL_ROUNDS) rows of WIDTH, `mds` WIDTH rows of WIDTH;
    every value is in [0, prime).
    """

    prime: int
    round_constants: tuple[tuple[int, ...], ...]
    mds: tuple[tuple[int, ...], ...]


def _grain_bits(field_bits: int) -> Iterator[int]:
    """The self-shrunken bit stream of the Grain LFSR seeded with the parameters."""
    seed = [(1, 2), (0, 4), (field_bits, 12), (WIDTH, 12), (FULL_ROUNDS, 10), (PARTIAL_ROUNDS, 10)]
    state = [int(bit) for value, width in seed for bit in f"{value:0{width}b}"] + [1] * 30

    def step() -> int:
        bit = state[62] ^ state[51] ^ state[38] ^ state[23] ^ state[13] ^ state[0]
        state.pop(0)
        state.append(bit)
        return bit

    for _ in range(160):
        step()
    while True:
        selected, bit = step(), step()
        if selected:
            yield bit


@cache
def parameters(curve: str) -> Parameters:
    """Derive the parameters of a curve's scalar field; `curve` is a key of PRIMES."""
    prime = PRIMES[curve]
    bits = _grain_bits(prime.bit_length())

    def draw() -> int:
        return int("".join(map(str, islice(bits, prime.bit_length()))), 2)

    def draw_below_prime() -> int:
        while (value := draw()) >= prime:
            pass
        return value

    rounds = FULL_ROUNDS + PARTIAL_ROUNDS
    constants = tuple(tuple(draw_below_prime() for _ in range(WIDTH)) for _ in range(rounds))
    # The matrix is Cauchy's, 1 / (x_i + y_j), over 2t distinct elements; these are reduced, not
    # rejected, as the authors' procedure does.
    while True:
        drawn = [draw() % prime for _ in range(2 * WIDTH)]
        sums = [[(x + y) % prime for y in drawn[WIDTH:]] for x in drawn[:WIDTH]]
        if len(set(drawn)) == 2 * WIDTH and all(all(row) for row in sums):
            break
    mds = tuple(tuple(pow(value, -1, prime) for value in row) for row in sums)
    return Parameters(prime, constants, mds)


def circom_source(curve: str) -> str:
    """The .circom file that holds the constants of one curve's scalar field."""
    chosen = parameters(curve)
    name = Path(__file__).name

    def matrix(rows: tuple[tuple[int, ...], ...]) -> str:
        return ",\n".join("        [" + ",\n         ".join(map(str, row)) + "]" for row in rows)

    return f"""\
// Poseidon's constants for the scalar field of {curve}. Written by {name}; do not edit.
pragma circom 2.0.0;

function poseidon_round_constants() {{
    return [
{matrix(chosen.round_constants)}
    ];
}}

function poseidon_mds() {{
    return [
{matrix(chosen.mds)}
    ];
}}
"""


def main() -> None:
    """Write the constants of every curve beside this file."""
    for curve in PRIMES:
        target = Path(__file__).with_name(f"poseidon_{curve.replace('-', '')}.circom")
        target.write_text(circom_source(curve), encoding="utf-8")


if __name__ == "__main__":
    main()
