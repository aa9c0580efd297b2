"""Configuration is strict and says what to change."""

from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import Field

from partita.service.config import (
    ConfigError,
    Duration,
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
        ({"budget": -1}, r"budget = -1: .*greater than or equal to 0"),
        ({"grace": "soon"}, r"grace = 'soon': .*write it like"),
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
