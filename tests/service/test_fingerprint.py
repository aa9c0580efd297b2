"""A build's digests depend on its files alone, and a change of a running build is seen."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from partita.service.fingerprint import (
    FIELDS,
    GATE_FIELDS,
    STALE_FEATURE,
    Build,
    Difference,
    Fingerprint,
    RunningBuild,
    commit,
    differences,
    fingerprint,
    installed,
    processor,
)
from partita.v1 import types_pb2


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with a module, a nested one and a file that is not code."""
    root = tmp_path / "a" / "partita"
    (root / "deep").mkdir(parents=True)
    (root / "__init__.py").write_text("")
    (root / "deep" / "one.py").write_text("ONE = 1\n")
    (root / "commit.txt").write_text("c0ffee\n")
    return root


@pytest.fixture
def native(tmp_path: Path) -> Path:
    """An extension's folder."""
    root = tmp_path / "partita_native"
    root.mkdir()
    (root / "partita_native.abi3.so").write_bytes(b"\x7fELF")
    return root


def test_the_same_files_elsewhere_are_the_same_build(package: Path, tmp_path: Path) -> None:
    other = tmp_path / "b" / "partita"
    shutil.copytree(package, other)
    (other / "commit.txt").unlink()
    (other / "__pycache__").mkdir()
    (other / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"x")
    assert Build(package, None).code_sha256 == Build(other, None).code_sha256


@pytest.mark.parametrize("change", ["content", "name", "another"])
def test_a_line_a_name_or_a_file_more_is_another_build(package: Path, change: str) -> None:
    before = Build(package, None).code_sha256
    one = package / "deep" / "one.py"
    if change == "content":
        one.write_text("ONE = 22\n")
    elif change == "name":
        one.rename(one.with_name("eins.py"))
    else:
        one.with_name("two.py").write_text("")
    assert Build(package, None).code_sha256 != before


def test_kernels_and_extension_have_digests_of_their_own(package: Path, native: Path) -> None:
    plain = Build(package, native)
    assert plain.kernels_sha256 == b""
    assert plain.native_sha256 == hashlib.sha256(b"\x7fELF").digest()
    assert Build(package, None).native_sha256 == b""
    (package / "ntt.cu").write_text("__global__ void f() {}")
    with_kernels = Build(package, native)
    assert len(with_kernels.kernels_sha256) == 32
    assert with_kernels.code_sha256 == plain.code_sha256


def test_the_installed_build_is_complete() -> None:
    found = fingerprint("native")
    assert found.code_sha256 == installed().code_sha256
    assert len(found.native_sha256) == 32
    assert found.runtime.startswith("python 3.")
    assert all(name in found.runtime for name in ("grpcio ", "protobuf ", "numpy "))
    assert found.device
    assert Fingerprint.of(types_pb2.Fingerprint(**found.values())) == found  # type: ignore[arg-type]
    assert found.code_sha256.hex()[:12] in found.short()
    assert found.native_sha256.hex()[:12] in found.short()


def test_the_commit_is_what_the_wheel_says_and_empty_where_nobody_knows(
    package: Path, tmp_path: Path
) -> None:
    assert commit(package) == "c0ffee"
    assert commit(tmp_path / "none" / "partita") == ""


def test_each_field_that_differs_is_named_with_both_values() -> None:
    here = Fingerprint(version="1", commit="a", code_sha256=b"\1" * 32, backend="native")
    there = replace(here, code_sha256=b"\2" * 32, backend="")
    assert differences(here, here) == []
    assert differences(here, there) == [
        Difference("code_sha256", "01" * 32, "02" * 32),
        Difference("backend", "native", ""),
    ]
    assert "empty there" in str(differences(here, there)[1])
    assert [d.field for d in differences(here, there, GATE_FIELDS)] == ["code_sha256"]
    assert set(GATE_FIELDS) < set(FIELDS)


def test_an_unknown_commit_is_no_difference_and_two_known_ones_are() -> None:
    assert differences(Fingerprint(commit="a"), Fingerprint()) == []
    assert differences(Fingerprint(commit="a"), Fingerprint(commit="b"))


def test_what_changed_on_disk_is_named_until_it_is_as_it_was(package: Path, native: Path) -> None:
    build = Build(package, native)
    one, library = package / "deep" / "one.py", native / "partita_native.abi3.so"
    assert build.changed() == ()
    one.write_text("ONE = 22\n")
    library.write_bytes(b"\x7fELF2")
    (package / "new.py").write_text("")
    assert build.changed() == ("deep/one.py", "new.py", "partita_native/partita_native.abi3.so")
    one.unlink()
    library.write_bytes(b"\x7fELF")
    (package / "new.py").unlink()
    assert build.changed() == ("deep/one.py",)
    one.write_text("ONE = 1\n")
    assert build.changed() == ()


def test_a_file_that_was_only_touched_has_not_changed(package: Path) -> None:
    build = Build(package, None)
    os.utime(package / "deep" / "one.py", ns=(1, 1))
    assert build.changed() == ()


async def test_a_running_build_says_that_it_is_stale_and_keeps_its_fingerprint(
    package: Path,
) -> None:
    running = RunningBuild("native", Build(package, None))
    before = running.fingerprint
    told: asyncio.Queue[tuple[str, ...]] = asyncio.Queue()
    watch = asyncio.create_task(running.watch(0.001, lambda: told.put_nowait(running.features)))
    try:
        (package / "deep" / "one.py").write_text("ONE = 22\n")
        assert await asyncio.wait_for(told.get(), 30) == (STALE_FEATURE,)
        assert running.stale == ("deep/one.py",)
        assert running.fingerprint == before
        (package / "deep" / "one.py").write_text("ONE = 1\n")
        assert await asyncio.wait_for(told.get(), 30) == ()
    finally:
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)


def test_the_processor_is_named_with_the_features_that_matter(tmp_path: Path) -> None:
    rows = "processor : 0\nmodel name : Fast CPU\nflags : fpu adx avx2 sse\n\nmodel name : Other\n"
    (tmp_path / "cpuinfo").write_text(rows)
    assert "Fast CPU, " in processor(tmp_path)
    assert processor(tmp_path).endswith("cpus, adx avx2")
    (tmp_path / "cpuinfo").write_text("CPU implementer : 0x41\nCPU part : 0xd0c\nFeatures: asimd\n")
    assert "implementer 0x41 part 0xd0c" in processor(tmp_path)
    assert processor(tmp_path / "none")
