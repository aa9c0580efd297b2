"""The scheduler's configuration reaches its core, and plaintext stays where it is safe."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from partita.scheduler.config import SchedulerConfig, plaintext_allowed
from partita.scheduler.core.config import CoreConfig
from partita.service.config import ConfigError, default_toml, load


def config(**table: Any) -> SchedulerConfig:
    return load(SchedulerConfig, table, "test")


def test_the_defaults_are_those_of_the_core() -> None:
    assert config().core() == CoreConfig()


def test_values_of_the_file_reach_the_core() -> None:
    core = config(grace="3s", retain_size="5MiB", max_open_jobs=7, key_switch_factor=8).core()
    assert (core.grace_ns, core.retain_bytes) == (3 * 10**9, 5 << 20)
    assert (core.max_open_jobs, core.key_switch_factor) == (7, 8)


def test_everything_but_the_waits_and_the_wires_bounds_is_tunable() -> None:
    tunable = set(SchedulerConfig.model_fields)
    fixed = {"inline_budget_bytes", "backoff_ns", "recheck_ns"}
    for field in fields(CoreConfig):
        key = {"retain_bytes": "retain_size"}.get(field.name, field.name.removesuffix("_ns"))
        assert (key in tunable) != (field.name in fixed), field.name


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"listen": "0.0.0.0:9830"}, "allow_plaintext"),
        ({"prover_listen": "10.0.0.5:9831"}, "allow_plaintext"),
        ({"listen": "example.org:1"}, "allow_plaintext"),
        ({"allow_plaintext": ["nonsense"]}, "nonsense"),
        ({"max_open_jobs": 0}, "max_open_jobs"),
        ({"grace": "20"}, "20"),
        ({"grase": "20s"}, "grace"),
    ],
)
def test_a_wrong_value_says_what_to_change(table: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        config(**table)


@pytest.mark.parametrize(
    ("address", "networks", "allowed"),
    [
        ("127.0.0.1:1", (), True),
        ("[::1]:1", (), True),
        ("localhost:1", (), True),
        ("unix:///run/p.sock", (), True),
        ("10.1.2.3:1", ("10.0.0.0/8",), True),
        ("10.1.2.3:1", ("11.0.0.0/8",), False),
        ("0.0.0.0:1", ("10.0.0.0/8",), False),
        ("0.0.0.0:1", ("0.0.0.0/0",), True),
    ],
)
def test_plaintext_is_for_unix_sockets_loopback_and_named_networks(
    address: str, networks: tuple[str, ...], *, allowed: bool
) -> None:
    assert plaintext_allowed(address, networks) is allowed


def test_the_default_file_holds_every_key() -> None:
    text = default_toml([SchedulerConfig])
    assert all(f"\n{name} = " in text for name in SchedulerConfig.model_fields)
