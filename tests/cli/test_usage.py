"""Wrong usage ends with 2 and one line that names the option or file; nothing answers with 3."""

import pathlib

import pytest

from partita.cli.errors import report_of
from tests.cli.conftest import Cli


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["frobnicate"], "frobnicate"),
        (["submit"], "NAME"),
        (["submit", "c"], "--input or --witness"),
        (["submit", "c", "--input", "a.json", "--witness", "b.wtns"], "--input or --witness"),
        (["submit", "c", "--witness", "w", "--out", "d"], "--out needs --wait"),
        (["submit", "c", "--witness", "w", "--priority", "urgent"], "urgent"),
        (["submit", "c", "--input", "absent.json"], "absent.json: No such file"),
        (["prove", "c", "--out", "d"], "--input and --witness"),
        (["prove", "c", "--input", "a.json"], "--out"),
        (["prove", "unknown", "--witness", "w.wtns", "--out", "d"], "unknown"),
        (["verify", "--vkey", "absent.json", "--public", "p", "--proof", "q"], "absent.json"),
        (["circuits", "add", "c"], "--zkey"),
        (["circuits", "add", "c", "--zkey", "absent.zkey"], "absent.zkey: No such file"),
        (["circuits", "show", "unknown"], "unknown"),
        (["circuits", "remove", "unknown"], "unknown"),
        (["circuits", "verify", "unknown"], "unknown"),
        (["up", "--provers", "0"], "--provers"),
        (["up", "--config", "absent.toml"], "absent.toml: cannot be read"),
        (["config", "check", "absent.toml"], "absent.toml: cannot be read"),
        (["jobs", "--scheduler", "nowhere"], "--scheduler: 'nowhere'"),
        (["jobs", "--scheduler", "host:99999"], "--scheduler: 'host:99999'"),
        (["await"], "JOB"),
        (["cancel"], "JOB"),
        (["watch"], "JOB"),
        (["fleet", "extra"], "extra"),
    ],
)
async def test_wrong_usage_is_one_line_that_names_it(
    cli: Cli,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    named: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = await cli(*arguments)
    assert ended.code == 2
    assert named in ended.err
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    assert ended.out == ""


async def test_with_json_an_error_is_one_object(cli: Cli) -> None:
    ended = await cli("circuits", "show", "unknown", "--json")
    assert ended.code == 2
    assert ended.object["error"]["exit_code"] == 2
    assert "unknown" in ended.object["error"]["message"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["submit", "c", "--witness", "w.wtns"],
        ["await", "job"],
        ["watch", "job"],
        ["jobs"],
        ["cancel", "job"],
        ["fleet"],
    ],
)
async def test_nobody_at_the_address_ends_with_three_and_names_it(
    cli: Cli,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
) -> None:
    monkeypatch.setattr("partita.cli.jobs._FIRST_CONTACT_S", 0)
    (tmp_path / "w.wtns").write_bytes(b"wtns")
    monkeypatch.chdir(tmp_path)
    ended = await cli(*arguments, "--scheduler", "127.0.0.1:1", "--json")
    assert ended.code == 3
    assert "cannot reach the scheduler at 127.0.0.1:1" in ended.err
    assert ended.object["error"]["exit_code"] == 3


async def test_help_names_every_verb(cli: Cli) -> None:
    ended = await cli("--help")
    assert ended.code == 0
    circuits_and_proofs = ["circuits", "prove", "verify"]
    programs = ["up", "scheduler", "prover"]
    jobs = ["submit", "await", "watch", "jobs", "cancel"]
    for verb in (*circuits_and_proofs, *programs, *jobs, "fleet", "config"):
        assert f"  {verb} " in ended.out
    assert (await cli()).out == ended.out


async def test_a_fault_of_the_program_hides_its_traceback_unless_debug(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> object:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr("partita.cli.circuits._catalogue", broken)
    ended = await cli("circuits", "list")
    assert ended.code == 70
    assert ended.err == (
        "error: unexpected ZeroDivisionError: boom; `partita --debug ...` shows where\n"
    )
    assert "Traceback" in (await cli("--debug", "circuits", "list")).err


async def test_no_escape_codes_off_a_terminal(cli: Cli) -> None:
    for arguments in (["--help"], ["circuits", "list"], ["config", "default"]):
        ended = await cli(*arguments)
        assert "\x1b" not in ended.out + ended.err


@pytest.mark.parametrize(("package", "extra"), [("wasmtime", "prover"), ("apsw", "scheduler")])
def test_a_package_of_the_other_program_is_asked_for_by_its_extra(package: str, extra: str) -> None:
    report = report_of(ModuleNotFoundError(f"No module named {package!r}", name=package))
    assert (report.exit_code, report.known) == (2, True)
    assert f"pip install 'partita[{extra}]'" in report.message
