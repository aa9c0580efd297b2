"""Whole clusters in simulated time: everything ends, nothing is proved twice, nothing overlaps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from partita.scheduler.core.model import Trust
from partita.scheduler.core.views import PublicState
from tests.sim.cluster import Cluster
from tests.sim.scenario import Scenario

LOSSES_ONLY = Scenario(bad_proofs=0, failures=0, hangs=0, unchecked=0, cancel=0)
ENDS = {"", "CANCELLED", "POISONED", "CRASH_LOOP"}


@pytest.mark.parametrize("block", range(10))
def test_every_job_ends_in_bounded_time_whatever_breaks(block: int) -> None:
    for seed in range(block * 8, block * 8 + 8):
        jobs = Cluster(seed).play()
        assert {job.failure.reason if job.failure else "" for job in jobs} <= ENDS


@pytest.mark.parametrize("block", range(4))
def test_losses_alone_fail_no_job(block: int) -> None:
    for seed in range(1_000 + block * 8, 1_000 + block * 8 + 8):
        jobs = Cluster(seed, LOSSES_ONLY).play()
        states = {job.state for job in jobs}
        assert states == {PublicState.COMPLETED}, f"seed {seed}"


def test_a_quiet_cluster_proves_each_partition_once() -> None:
    quiet = Scenario(
        kill_prover=0,
        pause_prover=0,
        cut_stream=0,
        kill_scheduler=0,
        stop_store=0,
        cancel=0,
        bad_proofs=0,
        failures=0,
        hangs=0,
        unchecked=0,
    )
    for seed in range(2_000, 2_010):
        cluster = Cluster(seed, quiet)
        jobs = cluster.play()
        assert cluster.grants == sum(job.n_partitions for job in jobs)


LIAR = Scenario(
    jobs=12,
    kill_prover=0,
    pause_prover=0,
    cut_stream=0,
    kill_scheduler=0,
    stop_store=0,
    cancel=0,
    bad_proofs=0,
    failures=0,
    hangs=0,
    unchecked=0,
    liars=1,
)


def test_a_prover_that_lies_is_quarantined_and_costs_no_job() -> None:
    less = 0
    for seed in range(3_000, 3_003):
        cluster = Cluster(seed, LIAR)
        jobs = cluster.play()
        assert {job.state for job in jobs} == {PublicState.COMPLETED}, f"seed {seed}"
        assert cluster.core is not None
        liar, *honest = cluster.core.fleet().provers
        assert {view.trust for view in honest} == {Trust.TRUSTED}, f"seed {seed}"
        assert liar.trust is not Trust.TRUSTED or not liar.debits, f"seed {seed}"
        trusting = Cluster(seed, replace(LIAR, quarantine=False, check=False))
        trusting.play()
        less += trusting.grants_by["gpu-0"] - cluster.grants_by["gpu-0"]
    assert less > 0, "quarantine keeps work from a prover that lies"


def test_one_seed_is_one_history() -> None:
    one, two = Cluster(77), Cluster(77)
    assert one.play() == two.play()
    assert (one.steps, one.grants, one.now) == (two.steps, two.grants, two.now)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(100))
def test_many_more_seeds(block: int) -> None:
    for seed in range(10_000 + block * 20, 10_000 + block * 20 + 20):
        Cluster(seed).play()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_larger_clusters(seed: int) -> None:
    Cluster(20_000 + seed, Scenario(provers=8, jobs=40, chaos_s=300)).play()
