"""Configuration is strict and says what to change."""

from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import Field

from partita.service.config import (
    ConfigError,
    Duration,
    Folder,
    HttpAddress,
    ProgramConfig,
    Size,
    default_toml,
    load,
    read_file,
    show_toml,
)


class Example(ProgramConfig):
    table: ClassVar[str] = "example"
    budget: Size = Field(default=1 << 30, ge=0, description="Memory for keys and leases.")
    grace: Duration = Field(default=10 * 10**9, description="How long to wait.")
    name: str = Field(default="a", description="A name.")
    limit: int | None = Field(default=None, description="A limit.")
    cap: Size | None = Field(default=None, description="A size that may be absent.")
    names: tuple[str, ...] = Field(default=(), description="A list.")
    strict: bool = Field(default=False, description="A switch.")
    page: HttpAddress = Field(default="", description="An address or none.")
    home: Folder = Field(default=Path("/home"), description="A folder.")


def test_the_environment_wins_over_the_file_and_code_wins_over_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PARTITA_EXAMPLE__GRACE", "2m")
    monkeypatch.setenv("PARTITA_EXAMPLE__NAME", "env")
    config = load(Example, {"grace": "1m", "budget": "2GiB"}, "f.toml", name="code")
    assert (config.budget, config.grace, config.name) == (2 << 30, 120 * 10**9, "code")


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"budgett": "1GiB"}, r"unknown key 'budgett'; did you mean 'budget'"),
        ({"budget": "64G"}, r"budget = '64G': .*write it like"),
        ({"budget": -1}, r"budget = -1: must not be negative and needs a unit; write it like"),
        ({"budget": "-1GiB"}, r"budget = '-1GiB': .*must not be negative"),
        ({"budget": 64}, r"budget = 64: needs a unit; write it like 512MiB"),
        ({"budget": 1.5}, r"budget = 1.5: needs a unit"),
        ({"cap": 64}, r"cap = 64: needs a unit; write it like 512MiB"),
        ({"grace": 30}, r"grace = 30: needs a unit; write it like 30s"),
        ({"grace": "-5m"}, r"grace = '-5m': .*must not be negative"),
        ({"limit": "many"}, r"limit = 'many'"),
        ({"names": "a"}, r"names = 'a'"),
        ({"grace": "soon"}, r"grace = 'soon': .*write it like"),
        ({"grace": True}, r"grace = True: needs a unit"),
        ({"budget": True}, r"budget = True: needs a unit"),
        ({"cap": ["1GiB"]}, r"cap = \['1GiB'\]: needs a unit"),
        ({"budget": "1048576TiB"}, r"budget = '1048576TiB': .*the most is 1048575TiB"),
        ({"grace": "3651d"}, r"grace = '3651d': .*the most is 3650d"),
        ({"limit": "7"}, r"limit = '7': must be a whole number"),
        ({"limit": 7.0}, r"limit = 7.0: must be a whole number"),
        ({"limit": True}, r"limit = True: must be a whole number"),
        ({"strict": "yes"}, r"strict = 'yes': must be true or false"),
        ({"strict": 1}, r"strict = 1: must be true or false"),
        ({"home": ""}, r"home = '': names no folder"),
        ({"page": "9832"}, r"page = '9832': write host:port, or nothing for none"),
        ({"page": "127.0.0.1:99999"}, r"page = .*: write host:port, or nothing for none"),
        ({"page": "unix:///run/x:1"}, r"page = .*: write host:port, or nothing for none"),
    ],
)
def test_a_wrong_key_or_value_is_refused_by_name(table: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        load(Example, table, "f.toml")


def test_a_file_with_a_foreign_table_or_broken_toml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text("[exampel]\n")
    with pytest.raises(ConfigError, match="did you mean 'example'"):
        read_file(path, frozenset({"example"}))
    path.write_text("[example\n")
    with pytest.raises(ConfigError, match="not TOML"):
        read_file(path, frozenset({"example"}))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_file(tmp_path / "none.toml", frozenset({"example"}))


def test_the_default_file_is_read_back_as_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    text = default_toml([Example])
    path.write_text(text)
    assert load(Example, read_file(path, frozenset({"example"}))["example"], "p") == Example()
    for field in Example.model_fields.values():
        assert str(field.description) in text
    assert 'budget = "1GiB"' in show_toml(Example())


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("PARTITA_EXAMPLE__BUDGETT", "1GiB", r"BUDGETT: unknown key; did you mean 'budget'"),
        ("PARTITA_EXAMPLE__BUDGET", "64G", r"PARTITA_EXAMPLE__BUDGET: .*'64G'.*write it like"),
        ("PARTITA_EXAMPLE__BUDGET", "64", r"'64' is not a size"),
        ("PARTITA_EXAMPLE__CAP", "-1GiB", r"must not be negative"),
        ("PARTITA_EXAMPLE__GRACE", "200000d", r"the most is 3650d"),
        ("PARTITA_EXAMPLE__HOME", "", r"names no folder"),
        ("PARTITA_EXAMPLE__NAMES", "a,b", r"names.*write a list as JSON"),
        ("PARTITA_SCHEDULR__LISTEN", "x", r"SCHEDULR__LISTEN: unknown program; did you mean 'sche"),
    ],
)
def test_a_wrong_variable_of_the_environment_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, says: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=says):
        load(Example, {}, "f.toml")


def test_variables_of_other_programs_and_of_clients_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PARTITA_PROVER__CORES", "2")
    monkeypatch.setenv("PARTITA_DATA_DIR", "/data")
    monkeypatch.setenv("OTHER__KEY", "1")
    assert load(Example, {}, "f.toml") == Example()
