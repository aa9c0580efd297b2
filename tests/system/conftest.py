"""A cluster for each test; what its processes wrote is shown when the test fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.cluster import Cluster, cluster_in

_TAIL_LINES = 40


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A folder for processes; they end with the test."""
    with cluster_in(tmp_path) as made:
        yield made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Any:
    """Add the logs of the test's processes to the report of a failure."""
    report = yield
    given = getattr(item, "funcargs", {}).values()
    made = next((value for value in given if isinstance(value, Cluster)), None)
    if report.failed and made is not None:
        for process in made.processes:
            lines = process.text.splitlines()[-_TAIL_LINES:]
            code = process.popen.poll()
            state = "running" if code is None else f"ended with {code}"
            report.sections.append((f"{process.name} ({state})", "\n".join(lines)))
    return report
