"""What `doctor` says of Python, packages, the native extension and the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from partita.cli.doctor_install import (
    check_native,
    check_native_version,
    check_packages,
    check_python,
    install_checks,
    read_settings,
)
from partita.cli.doctor_report import Status

REQUIRED = (
    "grpcio>=1.85.1",
    'wasmtime[any]>=30 ; python_version > "3" and extra == "prover"',
    "numpy>=2.0; extra == 'prover'",
    "numpy>=2.0; extra == 'scheduler'",
    "ruff>=0.11; extra == 'dev'",
)


def packages(**versions: str) -> list[tuple[str, Status]]:
    def installed(name: str) -> str:
        if name not in versions:
            raise PackageNotFoundError(name)
        return versions[name]

    return [(check.name, check.status) for check in check_packages(REQUIRED, installed)]


def test_packages_are_compared_with_what_is_required() -> None:
    right = {"grpcio": "1.100", "wasmtime": "30.0.1", "numpy": "2.0.0rc1"}
    assert packages(**right) == [("packages", Status.OK)]
    assert packages(**{**right, "grpcio": "1.9"}) == [("package grpcio", Status.FAIL)]
    assert packages(**{**right, "wasmtime": "29.9"}) == [("package wasmtime", Status.WARN)]
    assert packages(wasmtime="31") == [
        ("package grpcio", Status.FAIL),
        ("package numpy", Status.WARN),
    ]


def test_a_missing_package_names_its_user_and_its_cure() -> None:
    (check,) = check_packages(["wasmtime>=30; extra == 'prover'"], _absent)
    assert check.found == "not installed, needed by prover"
    assert check.cure == '`pip install "wasmtime>=30"`'


def _absent(name: str) -> str:
    raise PackageNotFoundError(name)


def test_an_old_python_fails() -> None:
    assert check_python((3, 10)).status is Status.FAIL
    assert check_python().status is Status.OK


def _broken() -> Mapping[str, str]:
    raise ImportError("libfoo.so: no such file")


def test_an_extension_that_cannot_be_loaded_fails_and_one_built_for_less_is_warned_of() -> None:
    check = check_native(_broken)
    assert check.status is Status.FAIL
    assert "libfoo.so" in check.found
    info = {"version": "1", "features": "avx2"}
    slow = check_native(lambda: info, "x86_64 Fast, 2 cpus, adx avx2 bmi2")
    assert slow.status is Status.WARN
    assert "does not use adx, bmi2" in slow.found
    assert check_native(lambda: info, "x86_64 Old, 2 cpus, avx2").status is Status.OK


def versions(**known: str) -> list[tuple[Status, str]]:
    def version(name: str) -> str:
        if name not in known:
            raise PackageNotFoundError(name)
        return known[name]

    return [(check.status, check.found) for check in check_native_version(version)]


def test_a_native_wheel_of_another_version_than_the_package_fails() -> None:
    assert versions(partita="0.2.0", partita_native="0.2.0") == [
        (Status.OK, "0.2.0, as the package's")
    ]
    assert versions(partita="0.2.0", partita_native="0.1.0") == [
        (Status.FAIL, "partita_native is 0.1.0, partita is 0.2.0")
    ]
    assert versions(partita="0.2.0") == [
        (Status.FAIL, "no wheel partita_native is installed, partita is 0.2.0")
    ]
    assert versions(partita_native="0.2.0") == []
    (check,) = check_native_version(lambda name: {"partita": "0.2.0"}.get(name, "0.1.0"))
    assert "pip install partita_native==0.2.0" in check.cure


def test_a_wrong_file_fails_by_name_and_the_other_checks_go_on(tmp_path: Path) -> None:
    path = tmp_path / "partita.toml"
    path.write_text('[prover]\nmemory = "64G"\n')
    settings = read_settings(path, tmp_path)
    assert settings.check.status is Status.FAIL
    assert "memory = '64G'" in settings.check.found
    assert str(path) in settings.check.found
    assert settings.scheduler.data_dir == settings.prover.data_dir == tmp_path
    path.write_text('[prover]\nmemory = "64GiB"\n')
    assert read_settings(path, None).prover.memory == 64 << 30


@pytest.mark.usefixtures("data_dir")
def test_this_installation_is_right() -> None:
    checks = install_checks(read_settings(None, None))
    assert [check.name for check in checks if check.status is Status.FAIL] == []
    assert {"Python", "native extension", "native version", "build", "configuration"} <= {
        c.name for c in checks
    }
