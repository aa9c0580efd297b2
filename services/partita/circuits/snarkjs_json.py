"""snarkjs' JSON files: proof.json, public.json and verification_key.json, both ways.

Written texts equal snarkjs' own byte for byte. Reading is strict: unknown and missing fields are
named, numbers are canonical decimal strings below their modulus, points lie on their curve and in
their subgroup. Only `vk_alphabeta_12` of a verifying key, e(α, β), is written and never read, as by
snarkjs itself: verifiers compute it from the points.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, TypeVar

from partita.circuits.snarkjs_curves import CURVE_OF_SNARKJS_NAME, SNARKJS_NAMES
from partita.circuits.strict_json import load_json, require_fields
from partita.groth16.ate_pairing import pairing_value
from partita.groth16.curves import CURVES, curve_named
from partita.groth16.errors import EncodingError, FormatError, MismatchError
from partita.groth16.proof import Proof
from partita.groth16.statement import decode_statement, encode_statement
from partita.groth16.verifying_key import VerifyingKey

if TYPE_CHECKING:
    from partita.circuits.strict_json import Json
    from partita.groth16.curves import Curve
    from partita.groth16.points import Group

E = TypeVar("E")

_PROOF_FIELDS: Final = ("pi_a", "pi_b", "pi_c", "protocol", "curve")
_KEY_FIELDS: Final = (
    "protocol",
    "curve",
    "nPublic",
    "vk_alpha_1",
    "vk_beta_2",
    "vk_gamma_2",
    "vk_delta_2",
    "IC",
)
_PROTOCOL: Final = "groth16"


def write_proof_json(proof: Proof) -> str:
    """The text of proof.json."""
    curve = curve_named(proof.curve)
    return _dump(
        {
            "pi_a": _point_json(curve.g1, proof.a),
            "pi_b": _point_json(curve.g2, proof.b),
            "pi_c": _point_json(curve.g1, proof.c),
            "protocol": _PROTOCOL,
            "curve": SNARKJS_NAMES[proof.curve],
        }
    )


def read_proof_json(source: str, data: bytes | memoryview | str) -> Proof:
    """Read proof.json.

    Args:
        source: the name of the file, for errors.
        data: its text.

    Raises:
        FormatError: malformed; names the field.
        EncodingError: a point is off its curve or outside its subgroup; names the field.
    """
    fields = require_fields(source, load_json(source, data), _PROOF_FIELDS)
    curve = _read_curve(source, fields)
    points = _Points(source, curve, check_subgroups=True)
    return Proof(
        curve.name,
        a=points.finite(curve.g1, "pi_a", fields),
        b=points.finite(curve.g2, "pi_b", fields),
        c=points.finite(curve.g1, "pi_c", fields),
    )


def write_public_json(curve_name: str, statement: bytes) -> str:
    """The text of public.json for a statement (n x 32 bytes)."""
    curve = curve_named(curve_name)
    return _dump([str(value) for value in decode_statement(curve, statement, len(statement) // 32)])


def read_public_json(
    source: str, data: bytes | memoryview | str, *, curve_name: str, n_public: int | None = None
) -> bytes:
    """Read public.json into a statement.

    Args:
        source: the name of the file, for errors.
        data: its text.
        curve_name: the curve whose scalar field the values are of.
        n_public: how many values there must be; None = any number.

    Raises:
        FormatError: not a list of canonical decimal strings below r; names the index.
        MismatchError: another number of values.
    """
    values = load_json(source, data)
    if not isinstance(values, list):
        raise FormatError(source, "is not a list of decimal strings")
    if n_public is not None and len(values) != n_public:
        raise MismatchError(
            "number of public inputs",
            n_public,
            len(values),
            f"{source} must hold the circuit's outputs, then its public inputs",
        )
    curve = curve_named(curve_name)
    return encode_statement(
        curve, [_number(source, f"[{i}]", value, curve.r) for i, value in enumerate(values)]
    )


def write_verifying_key_json(key: VerifyingKey) -> str:
    """The text of verification_key.json."""
    curve = curve_named(key.curve)
    return _dump(
        {
            "protocol": _PROTOCOL,
            "curve": SNARKJS_NAMES[key.curve],
            "nPublic": key.n_public,
            "vk_alpha_1": _point_json(curve.g1, key.alpha_g1),
            "vk_beta_2": _point_json(curve.g2, key.beta_g2),
            "vk_gamma_2": _point_json(curve.g2, key.gamma_g2),
            "vk_delta_2": _point_json(curve.g2, key.delta_g2),
            "vk_alphabeta_12": [
                [_element_json(value) for value in half]
                for half in pairing_value(curve, key.alpha_g1, key.beta_g2)
            ],
            "IC": [_point_json(curve.g1, point) for point in key.ic],
        }
    )


def read_verifying_key_json(
    source: str, data: bytes | memoryview | str, *, check_subgroups: bool = True
) -> VerifyingKey:
    """Read verification_key.json; `vk_alphabeta_12` may be there and is not used.

    Args:
        source: the name of the file, for errors.
        data: its text.
        check_subgroups: False where the key goes to a `Verifier`, which checks it in native code
            and not in milliseconds a point.

    Raises:
        FormatError: malformed; names the field.
        EncodingError: a point is off its curve or outside its subgroup; names the field.
    """
    fields = require_fields(source, load_json(source, data), _KEY_FIELDS, ("vk_alphabeta_12",))
    curve = _read_curve(source, fields)
    ic = fields["IC"]
    n_public = fields["nPublic"]
    if not isinstance(ic, list) or not ic:
        raise FormatError(source, "is not a list of points", section="IC")
    if isinstance(n_public, bool) or n_public != len(ic) - 1:
        raise FormatError(source, f"is {n_public}, but IC has {len(ic)} points", section="nPublic")
    points = _Points(source, curve, check_subgroups=check_subgroups)
    return VerifyingKey(
        curve.name,
        alpha_g1=points.finite(curve.g1, "vk_alpha_1", fields),
        beta_g2=points.finite(curve.g2, "vk_beta_2", fields),
        gamma_g2=points.finite(curve.g2, "vk_gamma_2", fields),
        delta_g2=points.finite(curve.g2, "vk_delta_2", fields),
        ic=tuple(points.read(curve.g1, f"IC[{index}]", value) for index, value in enumerate(ic)),
    )


def _dump(value: object) -> str:
    return json.dumps(value, indent=1) if value != [] else "[\n]"


def _read_curve(source: str, fields: dict[str, Json]) -> Curve:
    if fields["protocol"] != _PROTOCOL:
        raise FormatError(
            source,
            f"is {fields['protocol']!r}; only {_PROTOCOL!r} is read",
            section="protocol",
        )
    name = fields["curve"]
    ours = CURVE_OF_SNARKJS_NAME.get(name) if isinstance(name, str) else None
    if ours is None:
        known = " or ".join(map(repr, CURVE_OF_SNARKJS_NAME))
        raise FormatError(source, f"is {name!r}; it must be {known}", section="curve")
    return CURVES[ours]


def _number(source: str, field: str, value: Json, modulus: int) -> int:
    if not isinstance(value, str) or not value.isascii() or not value.isdigit():
        raise FormatError(source, f"{value!r:.80} is not a decimal string", section=field)
    if len(value) > 1 and value[0] == "0":
        raise FormatError(source, "has leading zeros", section=field)
    # Twice the digits of any modulus: longer ones are not worth converting.
    if len(value) > 256 or int(value) >= modulus:
        raise FormatError(source, f"{value:.80} is not below the modulus", section=field)
    return int(value)


class _Points:
    """Reads the points of one file."""

    def __init__(self, source: str, curve: Curve, *, check_subgroups: bool) -> None:
        self._source = source
        self._modulus = curve.fq.modulus
        self._check_subgroups = check_subgroups

    def read(self, group: Group[E], field: str, value: Json) -> tuple[E, E] | None:
        x, y, z = (
            self._element(group, f"{field}[{i}]", part)
            for i, part in enumerate(_list(self._source, field, value, 3))
        )
        f = group.field
        if z == f.zero and (x, y) == (f.zero, f.one):
            return None
        if z != f.one:
            raise FormatError(self._source, "the third coordinate is not one", section=field)
        where = f"{self._source}, {field}"
        if self._check_subgroups:
            group.check((x, y), where)
        elif not group.is_on_curve((x, y)):
            raise EncodingError(where, "the point is off the curve")
        return x, y

    def finite(self, group: Group[E], field: str, fields: dict[str, Json]) -> tuple[E, E]:
        point = self.read(group, field, fields[field])
        if point is None:
            raise FormatError(self._source, "is the point at infinity", section=field)
        return point

    def _element(self, group: Group[E], field: str, value: Json) -> E:
        source, modulus = self._source, self._modulus
        if group.field.size_bytes == group.field.prime_size_bytes:
            return group.field.from_coordinates((_number(source, field, value, modulus),))
        parts = _list(source, field, value, 2)
        c0, c1 = (_number(source, f"{field}[{i}]", v, modulus) for i, v in enumerate(parts))
        return group.field.from_coordinates((c0, c1))


def _list(source: str, field: str, value: Json, length: int) -> list[Json]:
    if not isinstance(value, list) or len(value) != length:
        raise FormatError(source, f"is not a list of {length}", section=field)
    return value


def _point_json(group: Group[E], point: tuple[E, E] | None) -> list[object]:
    f = group.field
    x, y, z = (f.zero, f.one, f.zero) if point is None else (*point, f.one)
    return [_element_json(f.coordinates(part)) for part in (x, y, z)]


def _element_json(coordinates: tuple[int, ...]) -> object:
    texts = [str(c) for c in coordinates]
    return texts[0] if len(texts) == 1 else texts
