"""The Python client of Partita: submit jobs of Groth16 partitions, wait for them, read proofs.

`Client` blocks, `AsyncClient` is for asyncio; they have the same methods. Both upload what is
large, repeat calls across restarts of the scheduler, and raise one small tree of errors. Nothing
here prints or logs. Answers are the wire's own messages, of `partita.v1`.
"""

from partita_client.aio import AsyncClient
from partita_client.channel import DEFAULT_ADDRESS
from partita_client.contents import Content, Source, content_of
from partita_client.errors import (
    BlobMissingError,
    InvalidRequestError,
    JobFailedError,
    NotFoundError,
    OverloadedError,
    PartitaError,
    ServerError,
    UnavailableError,
    WaitTimeoutError,
)
from partita_client.flows import Priority, Progress, is_terminal, state_name
from partita_client.retry import RetryPolicy
from partita_client.submission import SubmitOptions
from partita_client.sync import Client

__all__ = [
    "DEFAULT_ADDRESS",
    "AsyncClient",
    "BlobMissingError",
    "Client",
    "Content",
    "InvalidRequestError",
    "JobFailedError",
    "NotFoundError",
    "OverloadedError",
    "PartitaError",
    "Priority",
    "Progress",
    "RetryPolicy",
    "ServerError",
    "Source",
    "SubmitOptions",
    "UnavailableError",
    "WaitTimeoutError",
    "content_of",
    "is_terminal",
    "state_name",
]
