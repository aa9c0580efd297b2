"""The table [prover]."""

from __future__ import annotations

import pytest

from partita.prover.config import ProverConfig
from partita.service.config import ConfigError, load


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("prover_id", "a b", "letters, digits"),
        ("prover_id", "", "letters, digits"),
        ("schedulers", [], "at least one address"),
        ("backend", "cuda", "native"),
        ("memory", "64G", "write it like"),
        ("log_level", "loud", "choose one of"),
        ("labels", ["zone"], "write it like zone=a"),
        ("synthesis_threads", 0, "greater than 0"),
        ("backof", "1s", "did you mean 'backoff'"),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(
    key: str, value: object, says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(ProverConfig, {key: value}, "file")
    assert key in str(caught.value)
    assert says in str(caught.value)


def test_unset_values_follow_from_the_machine_and_from_others() -> None:
    config = load(ProverConfig, {"synthesis_threads": 3}, "file")
    assert config.n_leases == 5
    assert config.n_cores >= 1
    assert config.total_bytes > 0
    assert load(ProverConfig, {"memory": "3GiB"}, "file").total_bytes == 3 << 30
