"""`partita submit | await | watch | jobs | cancel | retry`: jobs on a scheduler."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from partita.cli.errors import CheckFailedError, UsageError
from partita.cli.options import (
    DataDirOption,
    JsonFlag,
    PriorityName,
    SchedulerOption,
    scheduler_address,
)
from partita.cli.output import err, note, progress, show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from partita.v1 import proving_pb2
    from partita_client import Client

OutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Write job.json and each partition's proof here."),
]
JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The job's id.")]

_FIRST_CONTACT_S = 3.0
_OUTAGE_S = 120.0
_PARTITION = re.compile(r"partitions\[(\d+)\]")


class FilesCommand(TyperCommand):
    """Lets `--input a b c` mean `--input a --input b --input c`, in that order."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Expand the lists of files, then parse as usual."""
        expanded: list[str] = []
        option = None
        for position, argument in enumerate(args):
            if argument in ("--input", "--witness"):
                option = argument
            elif argument.startswith("-") and argument != "-":
                option = None
            elif option is not None and args[position - 1] != option:
                expanded.append(option)
            expanded.append(argument)
        return super().parse_args(ctx, expanded)


def register(app: typer.Typer) -> None:
    """Add the verbs to the application."""
    app.command("submit", cls=FilesCommand)(submit)
    app.command("await")(await_job)
    app.command("watch")(watch)
    app.command("jobs")(jobs)
    app.command("cancel")(cancel)
    app.command("retry")(retry)


def connect(scheduler: str | None, data_dir: Path | None) -> Client:
    """Return a client that has reached its scheduler once and from then on sits out restarts.

    Raises:
        UnavailableError: nobody answers there.
    """
    from partita_client import Client, RetryPolicy, UnavailableError

    address = scheduler_address(scheduler, data_dir)
    client = Client(address, retry=RetryPolicy(give_up_after_s=_OUTAGE_S))
    try:
        client.server_info(give_up_after_s=_FIRST_CONTACT_S)
    except UnavailableError as error:
        client.close()
        # gRPC's own words for a refused connection say less than the address does.
        why = f" ({error.message})" if error.reason else ""
        text = (
            f"cannot reach the scheduler at {address}{why}; "
            "start one with `partita up` or name another with --scheduler"
        )
        raise replace(error, message=text) from error
    return client


def submit(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The circuit; before the files.")],
    input_files: Annotated[
        list[Path] | None,
        typer.Option("--input", metavar="F...", help="Inputs by name (JSON), one a partition."),
    ] = None,
    witness_files: Annotated[
        list[Path] | None,
        typer.Option("--witness", metavar="F...", help="Witnesses (.wtns), one a partition."),
    ] = None,
    priority: Annotated[PriorityName, typer.Option(help="The class.")] = PriorityName.NORMAL,
    request_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="The same id and files again attach to the same job; default: new."
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end of the job.")] = False,
    out: OutOption = None,
    scheduler: SchedulerOption = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Submit a job, one partition per file; with --wait, exit code 1 unless it completes."""
    if bool(input_files) == bool(witness_files):
        raise UsageError("give --input or --witness, with one file a partition")
    if out is not None and not wait:
        raise UsageError("--out needs --wait; or fetch the result later: `partita await JOB --out`")
    files = input_files or witness_files or []
    if input_files:
        _check_json(input_files)
    from partita_client import InvalidRequestError, SubmitOptions

    options: SubmitOptions = {"priority": priority.value}
    if request_id is not None:
        options["request_id"] = request_id
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    with connect(scheduler, data_dir) as client:
        try:
            with progress("uploading", "bytes") as step:
                answer = client.submit(
                    name, files, "circom.json" if input_files else "wtns", progress=step, **options
                )
        except InvalidRequestError as error:
            raise replace(error, message=_with_file(error.message, files)) from error
        if wait:
            note(f"job {answer.job.job_id}: {len(files)} partitions")
            _finish(client, _follow(client, answer.job.job_id), out, as_json)
            return
        value = {"attached": answer.attached, "job": _job_object(answer.job)}
        show(as_json, value, answer.job.job_id)


def await_job(
    job_id: JobArgument,
    out: OutOption = None,
    scheduler: SchedulerOption = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Wait for a job; exit code 1 unless it completes."""
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    with connect(scheduler, data_dir) as client:
        _finish(client, _follow(client, job_id), out, as_json)


def watch(
    job_id: JobArgument,
    scheduler: SchedulerOption = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Follow a job until its end; exit code 1 unless it completes. --json: the last state."""
    with connect(scheduler, data_dir) as client:
        if not as_json and sys.stdout.isatty():
            job = _watch_live(client.watch(job_id))
        else:
            job = _watch_plain(client.watch(job_id), quiet=as_json)
        _finish(client, job, None, as_json)


def jobs(
    state: Annotated[
        list[str] | None,
        typer.Option(help="Only these: queued, running, completed, failed, cancelled."),
    ] = None,
    circuit: Annotated[str, typer.Option(metavar="NAME", help="Only of this circuit.")] = "",
    scheduler: SchedulerOption = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the jobs that the scheduler keeps, oldest first."""
    from partita.cli.views import job_table

    with connect(scheduler, data_dir) as client:
        found = list(client.jobs(states=state or (), circuit_id=circuit))
    value = {"jobs": [_job_object(job) for job in found]}
    show(as_json, value, job_table(found) if found else "no jobs")


def cancel(
    job_id: JobArgument,
    reason: Annotated[str, typer.Option(help="Why, for people.")] = "",
    scheduler: SchedulerOption = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Cancel a job; one that has ended does not change."""
    with connect(scheduler, data_dir) as client:
        job = client.cancel(job_id, reason)
    value = _job_object(job)
    show(as_json, value, f"job {job_id} is {value['state']}")


def retry(
    job_id: JobArgument,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end of the job.")] = False,
    out: OutOption = None,
    scheduler: SchedulerOption = None,
    data_dir: DataDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Run a failed or cancelled job again; what it had proved is kept."""
    if out is not None and not wait:
        raise UsageError("--out needs --wait; or fetch the result later: `partita await JOB --out`")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    with connect(scheduler, data_dir) as client:
        job = client.retry(job_id)
        if wait:
            note(f"job {job.job_id}: {job.partitions_done} of {job.partitions_total} kept")
            _finish(client, _follow(client, job.job_id), out, as_json)
            return
    show(as_json, {"job": _job_object(job)}, job.job_id)


def _job_object(job: proving_pb2.Job) -> dict[str, Any]:
    from partita.cli.views import job_object

    return job_object(job)


def _check_json(files: list[Path]) -> None:
    from partita.circuits.strict_json import load_json

    for path in files:
        if not isinstance(load_json(str(path), path.read_bytes()), dict):
            raise UsageError(f"{path}: must be a JSON object of the circuit's inputs by name")


def _with_file(message: str, files: list[Path]) -> str:
    """Say the file instead of `partitions[i]`."""
    match = _PARTITION.search(message)
    if match is None or int(match[1]) >= len(files):
        return message
    place, path = match[0], str(files[int(match[1])])
    rest = message.removeprefix(f"{place}: ")
    return rest.replace(place, path) if place in rest else f"{path}: {rest}"


def _follow(client: Client, job_id: str) -> proving_pb2.Job:
    """Return the terminal job; shows progress on a terminal."""
    job = None
    with progress(f"job {job_id}") as step:
        for job in client.watch(job_id):
            step(job.partitions_done, job.partitions_total)
    assert job is not None
    return job


def _watch_live(snapshots: Iterable[proving_pb2.Job]) -> proving_pb2.Job:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from partita.cli.views import outlook_of, partition_table, word
    from partita.v1 import proving_pb2

    job = None
    with Live(console=err(), transient=True, auto_refresh=False) as live:
        for job in snapshots:
            state = word(proving_pb2.JobState, job.state)
            head = f"{job.job_id} {state} {job.partitions_done}/{job.partitions_total}"
            if outlook := outlook_of(job):
                head += f", {outlook}"
            live.update(Group(Text(head), partition_table(job)), refresh=True)
    assert job is not None
    return job


def _watch_plain(snapshots: Iterable[proving_pb2.Job], *, quiet: bool) -> proving_pb2.Job:
    """One line a change, on stderr, so that stdout holds the result alone."""
    from partita.cli.views import outlook_of, word
    from partita.v1 import proving_pb2

    job = None
    said = ""
    for job in snapshots:
        state = word(proving_pb2.JobState, job.state)
        line = f"{job.job_id} {state} {job.partitions_done}/{job.partitions_total}"
        if line != said and not quiet:
            outlook = outlook_of(job)
            note(f"{line}, {outlook}" if outlook else line)
        said = line
    assert job is not None
    return job


def _finish(client: Client, job: proving_pb2.Job, out: Path | None, as_json: bool) -> None:
    """Write and show the result of a terminal job; raise unless it completed."""
    from partita.cli.results import write_results
    from partita.cli.views import partition_table
    from partita.v1 import proving_pb2

    value = _job_object(job)
    if out is not None:
        write_results(out, value, client.partitions(job.job_id))
    line = f"job {job.job_id} {value['state']}: {job.partitions_done} of {job.partitions_total} "
    show(as_json, value, partition_table(job), line + "proofs verified")
    if job.state != proving_pb2.JOB_STATE_COMPLETED:
        failure = job.failure
        why = f"{failure.reason}: {failure.detail}" if failure.reason else value["state"]
        raise CheckFailedError(f"job {job.job_id} {value['state']}: {why}", shown=True)
