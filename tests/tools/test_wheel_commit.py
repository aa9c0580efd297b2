"""The wheel and the checkout of one commit have one fingerprint."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from partita.service.fingerprint import Build, commit

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the wheel is built from, committed."""
    root = tmp_path / "checkout"
    hidden = shutil.ignore_patterns("__pycache__")
    for folder in ("services", "clients/python"):
        shutil.copytree(ROOT / folder, root / folder, ignore=hidden)
    (root / "tools").mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "tools/wheel_commit.py"):
        shutil.copy(ROOT / name, root / name)
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "all"], check=True)
    return root


def package_of_wheel(checkout: Path, out: Path) -> Path:
    """Build the wheel and unpack it; the folder of the package."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run([*command, "--directory", str(out)], cwd=checkout, check=True)
    (wheel,) = out.glob("partita-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(out / "site-packages")
    return out / "site-packages" / "partita"


def test_the_wheel_has_the_digest_and_the_commit_of_its_checkout(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PARTITA_COMMIT", raising=False)
    package = package_of_wheel(checkout, tmp_path / "out")
    source = checkout / "services" / "partita"
    assert Build(package, None).code_sha256 == Build(source, None).code_sha256
    assert len(commit(source)) == 40
    assert commit(package) == commit(source)


def test_an_image_build_names_the_commit_itself(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(checkout / ".git")
    monkeypatch.setenv("PARTITA_COMMIT", "c0ffee")
    assert commit(package_of_wheel(checkout, tmp_path / "named")) == "c0ffee"
    monkeypatch.delenv("PARTITA_COMMIT")
    assert commit(package_of_wheel(checkout, tmp_path / "unnamed")) == ""
