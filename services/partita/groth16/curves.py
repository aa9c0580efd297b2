"""The two pairing-friendly curves of this library and every constant that belongs to them.

A curve is named "bn254" or "bls12-381" everywhere in this project; file formats that use other
names translate them where they are read.

Sources: EIP-197 (BN254); Bowe, "BLS12-381: New zk-SNARK Elliptic Curve Construction" and the IETF
draft pairing-friendly-curves section 4.2.1 (BLS12-381); Aranha et al., eprint 2012/232 (cofactors
of the twists).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from partita.groth16.errors import MismatchError
from partita.groth16.fields import Fp2Element, PrimeField, QuadraticField
from partita.groth16.keys import KeyFamily
from partita.groth16.points import Group

SCALAR_SIZE_BYTES = 32
"""Bytes of a scalar in witnesses, statements and dictionaries, on both curves."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A pairing-friendly curve.

    Attributes:
        name: its name in manifests, backends and on the wire.
        fq: the base field of G1.
        fr: the scalar field; its modulus r is the order of G1 and G2.
        g1, g2: the two groups.
        two_adicity: the greatest s with 2^s dividing r - 1.
        generators: for each key family the non-residue its roots of unity are powers of.
    """

    name: str
    fq: PrimeField
    fr: PrimeField
    g1: Group[int]
    g2: Group[Fp2Element]
    two_adicity: int
    generators: Mapping[KeyFamily, int]

    @property
    def r(self) -> int:
        """The modulus of the scalar field."""
        return self.fr.modulus

    def root_of_unity(self, family: KeyFamily, order: int) -> int:
        """A primitive root of unity of the scalar field in the convention of a key family.

        Args:
            family: whose generator to start from: different families give different roots.
            order: a power of two, at most 2^two_adicity.

        Raises:
            MismatchError: the field has no root of that order.
        """
        if order < 1 or order & (order - 1) or order > 1 << self.two_adicity:
            raise MismatchError(
                "order of a root of unity", f"a power of two to 2^{self.two_adicity}", order
            )
        return pow(self.generators[family], (self.r - 1) // order, self.r)

    def max_domain_size(self, family: KeyFamily) -> int:
        """The greatest domain; snarkjs' coset needs a root of twice the domain's order."""
        return 1 << (self.two_adicity - (1 if family is KeyFamily.SNARKJS else 0))


def _bn254() -> Curve:
    q = 21888242871839275222246405745257275088696311157297823662689037894645226208583
    r = 21888242871839275222246405745257275088548364400416034343698204186575808495617
    fq, fr = PrimeField(q, 32), PrimeField(r, 32)
    fq2 = QuadraticField(fq)
    g1 = Group("g1", fq, 3, (1, 2), r, 1)
    g2 = Group(
        "g2",
        fq2,
        fq2.mul((3, 0), fq2.inv((9, 1))),
        (
            (
                10857046999023057135944570762232829481370756359578518086990519993285655852781,
                11559732032986387107991004021392285783925812861821192530917403151452391805634,
            ),
            (
                8495653923123431417604973247489272438418190587263600148770280649306958101930,
                4082367875863433681332203403145435568316851327593401208105741076214120093531,
            ),
        ),
        r,
        2 * q - r,
    )
    # 5 is the least non-residue; bellperson itself has no BN254, the same generator stands in.
    generators = {KeyFamily.SNARKJS: 5, KeyFamily.BELLPERSON: 5}
    return Curve("bn254", fq, fr, g1, g2, 28, generators)


def _bls12_381() -> Curve:
    z = -0xD201000000010000
    q = int(
        "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f624"
        "1eabfffeb153ffffb9feffffffffaaab",
        16,
    )
    r = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
    fq, fr = PrimeField(q, 48), PrimeField(r, 32)
    fq2 = QuadraticField(fq)
    g1 = Group(
        "g1",
        fq,
        4,
        (
            int(
                "17f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac58"
                "6c55e83ff97a1aeffb3af00adb22c6bb",
                16,
            ),
            int(
                "08b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3ed"
                "d03cc744a2888ae40caa232946c5e7e1",
                16,
            ),
        ),
        r,
        (z - 1) ** 2 // 3,
    )
    g2 = Group(
        "g2",
        fq2,
        (4, 4),
        (
            (
                int(
                    "024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d177"
                    "0bac0326a805bbefd48056c8c121bdb8",
                    16,
                ),
                int(
                    "13e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049"
                    "334cf11213945d57e5ac7d055d042b7e",
                    16,
                ),
            ),
            (
                int(
                    "0ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c"
                    "923ac9cc3baca289e193548608b82801",
                    16,
                ),
                int(
                    "0606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab"
                    "3f370d275cec1da1aaa9075ff05f79be",
                    16,
                ),
            ),
        ),
        r,
        (z**8 - 4 * z**7 + 5 * z**6 - 4 * z**4 + 6 * z**3 - 4 * z**2 - 4 * z + 13) // 9,
    )
    generators = {KeyFamily.SNARKJS: 5, KeyFamily.BELLPERSON: 7}
    return Curve("bls12-381", fq, fr, g1, g2, 32, generators)


BN254 = _bn254()
BLS12_381 = _bls12_381()
CURVES: Mapping[str, Curve] = {c.name: c for c in (BN254, BLS12_381)}
"""The curves by name."""


def curve_named(name: str) -> Curve:
    """The curve of this name; MismatchError, listing the names, for another."""
    curve = CURVES.get(name)
    if curve is None:
        raise MismatchError("curve", " or ".join(CURVES), name)
    return curve
