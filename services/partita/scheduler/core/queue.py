"""The priority queue of waiting partitions: lanes, each a heap by key.

A *lane* holds the partitions that the same provers accept: same circuit, input format,
excluded provers, aloneness, and CRITICAL or not. If a lane's head cannot start, none of the
lane can, so the dispatcher looks at a handful of heads, never at all partitions.

Invariants (`check`): WAITING partitions of OPEN jobs that are not backing off are the union
of the lanes, each once (I8); the counts that answer "how many are ahead" equal a recount.

Entries are removed lazily: an entry lives while its ticket is its partition's. All methods
are O(log n) amortised; `ahead` is O(jobs / 64).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from partita.scheduler.core.errors import CoreBug
from partita.scheduler.core.model import Priority
from partita.scheduler.core.tables import LaneKey, Partition, PartitionKey

_BUCKET_JOBS = 64


def lane_key(part: Partition, alone_after: int) -> LaneKey:
    """Return the lane that `part` waits in."""
    job = part.job
    return LaneKey(
        job.manifest_sha256,
        job.circuit_id,
        job.input_format,
        part.excluded,
        len(part.crashes) >= alone_after,
        job.priority is Priority.CRITICAL,
    )


@dataclass(slots=True)
class Lane:
    """One lane; `size` counts its live entries."""

    key: LaneKey
    heap: list[tuple[PartitionKey, int, Partition]] = field(default_factory=list)
    size: int = 0

    def head(self) -> Partition:
        """Return the least live partition; a lane without one is not kept."""
        heap = self.heap
        while heap[0][2].ticket != heap[0][1]:
            heapq.heappop(heap)
        return heap[0][2]

    def ordered(self) -> Iterator[Partition]:
        """Yield the live partitions in key order without changing the lane."""
        entries = [entry for entry in self.heap if entry[2].ticket == entry[1]]
        heapq.heapify(entries)
        while entries:
            yield heapq.heappop(entries)[2]


@dataclass(slots=True)
class _Counts:
    """Waiting partitions of one circuit by class, bucket of 64 jobs, and job."""

    buckets: dict[int, dict[int, dict[int, int]]] = field(default_factory=dict)

    def add(self, key: PartitionKey, by: int) -> None:
        jobs = self.buckets.setdefault(key[0], {}).setdefault(key[1] // _BUCKET_JOBS, {})
        left = jobs.get(key[1], 0) + by
        if left:
            jobs[key[1]] = left
            return
        del jobs[key[1]]
        if not jobs:
            del self.buckets[key[0]][key[1] // _BUCKET_JOBS]
            if not self.buckets[key[0]]:
                del self.buckets[key[0]]

    def before(self, class_: int, job_seq: int) -> int:
        """Count the waiting partitions of all jobs before that one."""
        total = 0
        for cls, buckets in self.buckets.items():
            if cls > class_:
                continue
            for bucket, jobs in buckets.items():
                if cls < class_ or bucket < job_seq // _BUCKET_JOBS:
                    total += sum(jobs.values())
                elif bucket == job_seq // _BUCKET_JOBS:
                    total += sum(n for seq, n in jobs.items() if seq < job_seq)
        return total


@dataclass(slots=True)
class WaitingQueue:
    """All lanes. It knows nothing of provers."""

    alone_after: int
    lanes: dict[LaneKey, Lane] = field(default_factory=dict)
    by_circuit: dict[bytes, dict[LaneKey, None]] = field(default_factory=dict)
    size: int = 0
    _counts: dict[bytes, _Counts] = field(default_factory=dict)
    _ticket: int = 0

    def add(self, part: Partition) -> None:
        """Put a waiting partition into its lane; it must not be in one."""
        if part.lane is not None:
            raise CoreBug(f"I8: {part.job.job_id}/{part.index} is already queued")
        key = lane_key(part, self.alone_after)
        lane = self.lanes.get(key)
        if lane is None:
            lane = self.lanes[key] = Lane(key)
            self.by_circuit.setdefault(key.manifest_sha256, {})[key] = None
        self._ticket += 1
        part.lane = key
        part.ticket = self._ticket
        heapq.heappush(lane.heap, (part.key, part.ticket, part))
        lane.size += 1
        self.size += 1
        self._counts.setdefault(key.manifest_sha256, _Counts()).add(part.key, 1)

    def remove(self, part: Partition) -> None:
        """Take a partition out of its lane; one that is in no lane is left alone."""
        key = part.lane
        if key is None:
            return
        lane = self.lanes[key]
        part.lane = None
        part.ticket = 0
        lane.size -= 1
        self.size -= 1
        self._counts[key.manifest_sha256].add(part.key, -1)
        if lane.size == 0:
            del self.lanes[key]
            lanes = self.by_circuit[key.manifest_sha256]
            del lanes[key]
            if not lanes:
                del self.by_circuit[key.manifest_sha256]
                del self._counts[key.manifest_sha256]
        elif len(lane.heap) > 2 * lane.size + 64:
            lane.heap = [entry for entry in lane.heap if entry[2].ticket == entry[1]]
            heapq.heapify(lane.heap)

    def heads(self) -> list[tuple[PartitionKey, LaneKey]]:
        """Return a heap of the lanes' heads by key."""
        heads = [(lane.head().key, key) for key, lane in self.lanes.items()]
        heads.sort(key=lambda head: head[0])
        return heads

    def oldest_of(self, manifest_sha256: bytes) -> Partition | None:
        """Return the least waiting partition of one circuit."""
        parts = [self.lanes[key].head() for key in self.by_circuit.get(manifest_sha256, ())]
        return min(parts, key=lambda part: part.key, default=None)

    def ahead(self, class_: int, job_seq: int, manifest_sha256: bytes | None = None) -> int:
        """Count waiting partitions of jobs before (class_, job_seq), of one circuit or all."""
        if manifest_sha256 is not None:
            counts = self._counts.get(manifest_sha256)
            return counts.before(class_, job_seq) if counts else 0
        return sum(counts.before(class_, job_seq) for counts in self._counts.values())

    def check(self) -> None:
        """Raise `CoreBug` if a lane's size, an entry or a count is wrong."""
        total = 0
        recount: dict[bytes, dict[tuple[int, int], int]] = {}
        for key, lane in self.lanes.items():
            live = list(lane.ordered())
            if len(live) != lane.size or not live or len(set(map(id, live))) != len(live):
                raise CoreBug(f"I8: lane {key} says {lane.size}, holds {len(live)}")
            for part in live:
                if part.lane != key or key != lane_key(part, self.alone_after):
                    raise CoreBug(f"I8: {part.job.job_id}/{part.index} is in the wrong lane")
                per_job = recount.setdefault(key.manifest_sha256, {})
                per_job[part.key[:2]] = per_job.get(part.key[:2], 0) + 1
            total += lane.size
        stored = {
            manifest: {
                (cls, seq): n
                for cls, buckets in counts.buckets.items()
                for jobs in buckets.values()
                for seq, n in jobs.items()
            }
            for manifest, counts in self._counts.items()
        }
        if total != self.size or stored != recount:
            raise CoreBug(f"I8: counts {stored} differ from a recount {recount}")
