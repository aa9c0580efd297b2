"""Checks of what is installed: Python, packages, the native extension, the configuration."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partita.cli.doctor_report import Check, attempt, fail, ok, warn
from partita.prover.config import ProverConfig
from partita.scheduler.config import SchedulerConfig
from partita.service.config import ConfigError, load_file
from partita.service.fingerprint import fingerprint, processor

_REQUIREMENT = re.compile(
    r"""(?P<name>[A-Za-z0-9._-]+) (?:\[[^\]]*\])? \s* (?:>= \s* (?P<least>[0-9.]+))?
    [^;]* (?:; .* extra \s* == \s* ['"](?P<extra>\w+)['"])?""",
    re.VERBOSE,
)
_PROGRAMS = ("scheduler", "prover")
_LEAST_PYTHON = (3, 11)
_FEATURES = ("adx", "avx2", "bmi2")
"""Features that both the extension and the processor should have."""


@dataclass(frozen=True)
class Settings:
    """The configuration that the other checks go by.

    Attributes:
        scheduler, prover: what is in force, or the defaults where it is wrong.
        check: whether it is right.
    """

    scheduler: SchedulerConfig
    prover: ProverConfig
    check: Check


def read_settings(file: Path | None, data_dir: Path | None) -> Settings:
    """Read the configuration as the programs would.

    Args:
        file: the TOML file; None = environment and defaults.
        data_dir: wins over what is configured.
    """
    source = "environment" if file is None else str(file)
    try:
        scheduler = load_file(SchedulerConfig, file, data_dir=data_dir)
        prover = load_file(ProverConfig, file, data_dir=data_dir)
    except ConfigError as error:
        cure = "correct it; `partita config default` shows every key"
        given: dict[str, Any] = {} if data_dir is None else {"data_dir": data_dir}
        wrong = fail("configuration", " ".join(str(error).split()), cure)
        return Settings(SchedulerConfig(**given), ProverConfig(**given), wrong)
    return Settings(scheduler, prover, ok("configuration", f"{source} is right"))


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> Check:
    """Compare Python's version with the least one."""
    text = f"{platform.python_implementation()} {version[0]}.{version[1]} at {sys.prefix}"
    if version < _LEAST_PYTHON:
        least = ".".join(map(str, _LEAST_PYTHON))
        return fail("Python", text, f"use Python {least} or newer")
    return ok("Python", text)


def check_packages(
    requirements: Sequence[str] | None = None, installed: Callable[[str], str] | None = None
) -> list[Check]:
    """Compare each required package's version with the least one.

    Args:
        requirements: as in the package's metadata; None = this package's.
        installed: returns a package's version; PackageNotFoundError if it is absent.
    """
    try:
        rows = importlib.metadata.requires("partita") if requirements is None else requirements
    except importlib.metadata.PackageNotFoundError:
        cure = "install it: `pip install partita[scheduler,prover]`"
        return [fail("packages", "partita runs from files that are not installed", cure)]
    wrong: list[Check] = []
    count = 0
    for (name, least), extras in _wanted(rows or ()).items():
        count += 1
        needed = f"needed by {' and '.join(extras)}" if extras else "always needed"
        judge = warn if extras else fail
        cure = f'`pip install "{name}>={least}"`' if least else f"`pip install {name}`"
        try:
            found = (installed or importlib.metadata.version)(name)
        except importlib.metadata.PackageNotFoundError:
            wrong.append(judge(f"package {name}", f"not installed, {needed}", cure))
            continue
        if least and _parts(found) < _parts(least):
            wrong.append(judge(f"package {name}", f"{found} is too old, {needed}", cure))
    return wrong or [ok("packages", f"{count} as required")]


def check_native(
    build_info: Callable[[], Mapping[str, str]] | None = None, processor: str = ""
) -> Check:
    """Load the native extension and look at what it was built for.

    Args:
        build_info: what the extension says of itself; None = load it.
        processor: of this machine, as the fingerprint names it.
    """
    try:
        info = (build_info or _build_info)()
    except ImportError as error:
        cure = "install the wheel partita_native for this Python and processor: `make setup`"
        return fail("native extension", f"cannot be loaded: {error}", cure)
    text = ", ".join(f"{name} {value}" for name, value in sorted(info.items()) if value)
    unused = [
        name
        for name in _FEATURES
        if f" {name}" in processor and name not in info.get("features", "").split()
    ]
    if unused:
        cure = "proofs are slower; build it on this machine: `make setup`"
        return warn("native extension", f"{text}; does not use {', '.join(unused)}", cure)
    return ok("native extension", text)


def check_native_version(version: Callable[[str], str] | None = None) -> list[Check]:
    """Compare the version of the native extension's wheel with the package's: they go together.

    Args:
        version: returns a package's version; PackageNotFoundError if it is absent.

    Returns:
        Nothing if the package itself is not installed, which `check_packages` says.
    """
    version = version or importlib.metadata.version
    try:
        wanted = version("partita")
    except importlib.metadata.PackageNotFoundError:
        return []
    row = "native version"
    cure = f"install both of one release: `pip install partita_native=={wanted}`, here `make setup`"
    try:
        found = version("partita_native")
    except importlib.metadata.PackageNotFoundError:
        return [fail(row, f"no wheel partita_native is installed, partita is {wanted}", cure)]
    if found != wanted:
        return [fail(row, f"partita_native is {found}, partita is {wanted}", cure)]
    return [ok(row, f"{found}, as the package's")]


def install_checks(settings: Settings) -> list[Check]:
    """Return every check of this module."""
    return [
        *attempt("Python", check_python),
        *attempt("packages", check_packages),
        *attempt("native extension", lambda: check_native(processor=processor())),
        *attempt("native version", check_native_version),
        *attempt("build", _build),
        settings.check,
    ]


def _build() -> Check:
    here = fingerprint("native")
    return ok("build", here.short() + (f" commit {here.commit}" if here.commit else ""))


def _build_info() -> Mapping[str, str]:
    from partita.groth16 import native

    return native.build_info()


def _wanted(rows: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    """The (name, least version) of what the programs need, with the extras that need it."""
    wanted: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        match = _REQUIREMENT.match(row)
        if match is None or match["extra"] not in (None, *_PROGRAMS):
            continue
        extras = wanted.setdefault((match["name"], match["least"] or ""), [])
        extras += [match["extra"]] if match["extra"] else []
    return wanted


def _parts(version: str) -> tuple[Any, ...]:
    """The leading numbers of a version, for comparison."""
    numbers = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    return tuple(int(part) for part in numbers[0].split(".")) if numbers else ()
