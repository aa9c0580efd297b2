"""`fingerprint`: what is installed here."""

from partita.service.fingerprint import FIELDS, fingerprint
from tests.cli.conftest import Cli


async def test_the_installed_build_is_printed_in_full(cli: Cli) -> None:
    shown = await cli("fingerprint", "--json", "--backend", "reference")
    assert shown.code == 0
    assert shown.object == fingerprint("reference").as_object()
    text = (await cli("fingerprint")).out
    assert all(name in text for name in FIELDS)
    assert fingerprint().native_sha256.hex() in text


async def test_comparing_with_nobody_says_that_nobody_is_there(cli: Cli) -> None:
    ended = await cli("fingerprint", "--compare", "127.0.0.1:9")
    assert ended.code == 3
    assert "127.0.0.1:9" in ended.err
