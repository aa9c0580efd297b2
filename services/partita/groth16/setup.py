"""A trusted set-up of one's own, for development: the proving key of a constraint system.

Never for production: whoever runs it, or knows the seed of one that was run with a seed, can make
proofs of false statements that verify. A key for production comes from a ceremony in which at
least one of many people forgot their secret.

The secrets are made, used and overwritten in native code; Python never sees them.

Source: Groth, eprint 2016/260, section 3.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.groth16.curves import curve_named
from partita.groth16.errors import MismatchError
from partita.groth16.input_rows import with_input_rows
from partita.groth16.key_checks import check_system
from partita.groth16.keys import KeyFamily, ProvingKey, Query
from partita.groth16.native import NativeSetup, ToxicWaste

if TYPE_CHECKING:
    from partita.groth16.r1cs import R1cs

__all__ = ["ToxicWaste", "set_up"]


def set_up(r1cs: R1cs, family: KeyFamily, toxic_waste: ToxicWaste) -> ProvingKey:
    """Make the proving key of a system. INSECURE: see the module.

    Args:
        r1cs: the system.
        family: the conventions of the key.
        toxic_waste: of the system's curve; used up and overwritten.

    Raises:
        MismatchError: the system needs a larger domain than the curve's field has.
        FormatError, EncodingError: the system is malformed; see `check_system`.
        ResourceError: memory was refused.
    """
    check_system(r1cs)
    limit = curve_named(r1cs.curve).max_domain_size(family)
    n_rows = r1cs.n_rows + r1cs.n_public + 1
    if n_rows > limit:
        raise MismatchError("number of constraints and public inputs", f"at most {limit}", n_rows)
    setup = NativeSetup(r1cs, family, toxic_waste)
    matrix_a, matrix_b, matrix_c, dictionary = with_input_rows(r1cs)
    return ProvingKey(
        curve=r1cs.curve,
        family=family,
        n_public=r1cs.n_public,
        n_wires=r1cs.n_wires,
        domain_size=setup.domain_size,
        ic=setup.ic(),
        queries={query: setup.query(query) for query in Query},
        matrix_a=matrix_a,
        matrix_b=matrix_b,
        matrix_c=matrix_c if family is KeyFamily.BELLPERSON else None,
        dictionary=dictionary,
        **setup.points(),
    )
