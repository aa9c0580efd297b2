"""Configuration: one TOML file with a table for each program, strict, overridden by environment.

Sources, the last one wins: defaults, the program's table of the file, environment variables
`PARTITA_<PROGRAM>__<KEY>`, values given in code (command line flags). Sizes and durations are
written with units and are never negative; a number without a unit is refused, because nobody can
tell what it was meant to be. An unknown key or variable is an error that names the nearest known.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from partita.service.sizes import parse_duration, parse_size

if TYPE_CHECKING:
    from collections.abc import Set


PROGRAMS = frozenset({"scheduler", "prover"})
"""The tables that a configuration file may have: one for each program."""


class ConfigError(Exception):
    """The configuration is wrong; the message names the file, the key, the value and the cure."""


MAX_SIZE_BYTES = (1 << 60) - 1
"""The wire's bound of an amount of memory."""

MAX_DURATION_NS = 3650 * 86_400 * 10**9


def _size(value: object) -> object:
    if not isinstance(value, str):
        return value
    size_bytes = parse_size(value)
    if size_bytes > MAX_SIZE_BYTES:
        raise ValueError(f"{value!r} is too much; the most is 1048575TiB")
    return size_bytes


def _duration(value: object) -> object:
    if not isinstance(value, str):
        return value
    duration_ns = parse_duration(value)
    if duration_ns > MAX_DURATION_NS:
        raise ValueError(f"{value!r} is too long; the most is 3650d")
    return duration_ns


def _folder(value: object) -> object:
    if value == "":
        raise ValueError("names no folder; leave the key out for the default")
    return value


def _exact(value_bytes: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value_bytes and value_bytes % factor == 0:
            return f"{value_bytes // factor}{unit}"
    return f"{value_bytes}B"


def _exact_duration(value_ns: int) -> str:
    parts = ""
    for unit, factor in (
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1000),
        ("ms", 1),
    ):
        count, value_ns = divmod(value_ns, factor * 10**6)
        parts += f"{count}{unit}" if count else ""
    return parts or "0"


_OF_SIZE = BeforeValidator(_size)
_OF_DURATION = BeforeValidator(_duration)

Size = Annotated[int, _OF_SIZE, Field(ge=0), PlainSerializer(_exact, when_used="json")]
"""Bytes; in files and environment a text like "64GiB"."""

Duration = Annotated[
    int, _OF_DURATION, Field(ge=0), PlainSerializer(_exact_duration, when_used="json")
]
"""Nanoseconds; in files and environment a text like "5m"."""


Folder = Annotated[Path, BeforeValidator(_folder)]
"""A path that is not empty."""


def _is_host_and_port(value: str) -> bool:
    host, _, port = value.rpartition(":")
    return bool(host) and port.isascii() and port.isdigit() and int(port) < 1 << 16


def _address(value: str) -> str:
    named = value.startswith("unix:") and value.removeprefix("unix:").strip("/")
    if not (named or _is_host_and_port(value)):
        raise ValueError(f"{value!r} is no address; write host:port or unix:///path")
    return value


Address = Annotated[str, AfterValidator(_address)]
"""Where somebody listens: host:port or unix:///path."""


def _http_address(value: str) -> str:
    if value and (value.startswith("unix:") or not _is_host_and_port(value)):
        raise ValueError("write host:port, or nothing for none")
    return value


HttpAddress = Annotated[str, AfterValidator(_http_address)]
"""Where metrics and probes are served: host:port, or empty for nowhere."""


class ProgramConfig(BaseSettings):
    """Base of a program's configuration: flat keys, frozen, unknown ones refused.

    A subclass sets `table`, the name of its TOML table and of its environment prefix, and gives
    every field a description and a default.
    """

    model_config = SettingsConfigDict(extra="forbid", frozen=True, validate_default=True)
    table: ClassVar[str]

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take values from code only: `load` has merged the sources before."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


C = TypeVar("C", bound=ProgramConfig)


def read_file(path: Path, tables: frozenset[str] = PROGRAMS) -> dict[str, dict[str, Any]]:
    """Return the tables of a configuration file.

    Args:
        path: the TOML file.
        tables: the names that may occur.

    Raises:
        ConfigError: not readable, not TOML, or a table of another name.
    """
    try:
        content = tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error
    for name, value in content.items():
        if name not in tables:
            raise ConfigError(f"{path}: unknown table or key {name!r}{_nearest(name, tables)}")
        if not isinstance(value, dict):
            raise ConfigError(f"{path}: {name} must be a table: write [{name}]")
    return content


def load(model: type[C], table: dict[str, Any], source: str, **given: Any) -> C:
    """Return the configuration of one program.

    Args:
        model: its class.
        table: its table of the file; {} if there is none.
        source: what to call the file in errors.
        given: values that win over everything; None = not given.

    Raises:
        ConfigError: an unknown key or a wrong value.
    """
    known = set(model.model_fields)
    for key, value in table.items():
        if key not in known:
            raise ConfigError(
                f"{source}: [{model.table}] unknown key {key!r}{_nearest(key, known)}"
            )
        if wrong := _wrong_type(model, key, value):
            raise ConfigError(f"{source}: [{model.table}] {key} = {value!r}: {wrong}")
    prefix = f"PARTITA_{model.table.upper()}__"
    _check_environment(prefix, known)
    try:
        merged = {
            **table,
            **EnvSettingsSource(model, env_prefix=prefix)(),
            **{key: value for key, value in given.items() if value is not None},
        }
        return model(**merged)
    except SettingsError as error:
        raise ConfigError(f'environment: {error}: write a list as JSON, like ["a"]') from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        text = first["msg"].removeprefix("Value error, ")
        if not key:  # several keys together; the text names them
            raise ConfigError(f"{source}: [{model.table}] {text}") from error
        raise ConfigError(
            f"{source} or {prefix}{key.upper()}: [{model.table}] {key} = {first['input']!r}: {text}"
        ) from error


def load_file(model: type[C], file: Path | None, **given: Any) -> C:
    """Return the configuration of one program from its table of a file.

    Args:
        model: its class.
        file: the TOML file; None = environment and defaults.
        given: as for `load`.

    Raises:
        ConfigError: as `read_file` and `load`.
    """
    tables = {} if file is None else read_file(file)
    return load(model, tables.get(model.table, {}), str(file or "environment"), **given)


def default_toml(models: list[type[ProgramConfig]]) -> str:
    """Return a commented configuration file that holds every key with its default."""
    return "\n".join(_table(model, None) for model in models)


def show_toml(config: ProgramConfig) -> str:
    """Return the configuration in force as a table of TOML."""
    return _table(type(config), config)


def _table(model: type[ProgramConfig], config: ProgramConfig | None) -> str:
    values = (config or model.model_construct()).model_dump(mode="json")
    lines = [f"[{model.table}]"]
    for name, field in model.model_fields.items():
        if config is None:
            lines += [
                "",
                f"# {field.description}",
                f"# PARTITA_{model.table.upper()}__{name.upper()}",
            ]
        value = values[name]
        lines.append(f"# {name} =" if value is None else f"{name} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def _wrong_type(model: type[ProgramConfig], key: str, value: object) -> str:
    """Say what a value of a file should be instead; "" if it is of the right kind.

    Only files have kinds: the values of the environment are all texts.
    """
    if example := _unit_example(model, key):
        if isinstance(value, str):
            return ""
        negative = isinstance(value, int | float) and value < 0
        sign = "must not be negative and " if negative else ""
        return f"{sign}needs a unit; write it like {example}"
    annotation = model.model_fields[key].annotation
    kinds = set(get_args(annotation)) or {annotation}
    if kinds <= {int, type(None)} and type(value) is not int:
        return "must be a whole number without quotes"
    if kinds <= {bool, type(None)} and type(value) is not bool:
        return "must be true or false"
    return ""


def _unit_example(model: type[ProgramConfig], key: str) -> str:
    """Return how a size or duration is written; "" if the key is neither."""
    field = model.model_fields[key]
    hints = [*field.metadata]
    for part in get_args(field.annotation):  # of "Size | None"
        hints += getattr(part, "__metadata__", ())
    if _OF_SIZE in hints:
        return "512MiB or 64GiB"
    return "30s or 5m" if _OF_DURATION in hints else ""


def _check_environment(prefix: str, known: Set[str]) -> None:
    """Refuse a variable of this program that names no key, and one of no program at all.

    Raises:
        ConfigError: there is one.
    """
    for name in os.environ:
        program, sign, key = name.upper().removeprefix("PARTITA_").partition("__")
        if not (name.upper().startswith("PARTITA_") and sign):
            continue
        if name.upper().startswith(prefix):
            if key.lower() not in known:
                raise ConfigError(f"environment: {name}: unknown key{_nearest(key.lower(), known)}")
        elif program.lower() not in PROGRAMS:
            nearest = _nearest(program.lower(), PROGRAMS)
            raise ConfigError(f"environment: {name}: unknown program{nearest}")


def _nearest(name: str, known: Set[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(sorted(known))}"
