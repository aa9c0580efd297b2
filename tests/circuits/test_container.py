"""The container: sections in any order, and nothing about it believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.circuits.container import map_file, read_container, write_container
from partita.groth16.errors import FormatError

NAMES = {1: "header", 2: "values"}
SECTIONS = [(1, b"head"), (2, b"0123456789")]
FILE = write_container(magic=b"test", version=3, sections=SECTIONS)


def read(data: bytes) -> dict[int, bytes]:
    container = read_container("f.bin", data, magic=b"test", version=3, names=NAMES)
    return {t: bytes(container.section(t).data) for t in (1, 2)}


def test_sections_may_come_in_any_order() -> None:
    turned = write_container(magic=b"test", version=3, sections=SECTIONS[::-1])
    assert turned != FILE
    assert read(FILE) == read(turned) == dict(SECTIONS)


def test_sections_of_unknown_types_are_skipped() -> None:
    assert read(
        write_container(magic=b"test", version=3, sections=[(77, b"x"), *SECTIONS])
    ) == dict(SECTIONS)


@pytest.mark.parametrize("length", range(len(FILE)))
def test_a_file_cut_off_anywhere_is_refused(length: int) -> None:
    with pytest.raises(FormatError, match=r"f\.bin"):
        read(FILE[:length])


def test_bytes_behind_the_last_section_are_refused() -> None:
    with pytest.raises(FormatError, match="1 bytes too many") as caught:
        read(FILE + b"\0")
    assert caught.value.offset == len(FILE)


def test_a_section_that_occurs_twice_is_refused_by_name() -> None:
    twice = write_container(magic=b"test", version=3, sections=[*SECTIONS, (1, b"")])
    with pytest.raises(FormatError, match=r"section 1 \(header\).*twice"):
        read(twice)


def test_a_missing_section_is_refused_by_name() -> None:
    with pytest.raises(FormatError, match=r"section 2 \(values\) is missing"):
        read(write_container(magic=b"test", version=3, sections=SECTIONS[:1]))


def test_a_length_beyond_the_file_is_refused_without_allocating_it() -> None:
    lying = FILE[:16] + (1 << 63).to_bytes(8, "little") + FILE[24:]
    with pytest.raises(FormatError, match=r"section 1 \(header\).*claims 9223372036854775808"):
        read(lying)


def test_a_huge_number_of_sections_is_refused() -> None:
    with pytest.raises(FormatError, match="4294967295 sections"):
        read(FILE[:8] + b"\xff\xff\xff\xff" + FILE[12:])


def test_another_magic_or_version_is_refused() -> None:
    with pytest.raises(FormatError, match="starts with b'tesu'"):
        read(b"tesu" + FILE[4:])
    with pytest.raises(FormatError, match="version 4, only 3"):
        read(FILE[:4] + b"\x04" + FILE[5:])


def test_a_section_names_its_place_when_it_is_too_short_or_too_long() -> None:
    section = read_container("f", FILE, magic=b"test", version=3, names=NAMES).section(1)
    assert section.u32("number") == int.from_bytes(b"head", "little")
    with pytest.raises(FormatError, match=r"f, section 1 \(header\), byte 28: wires needs 4"):
        section.u32("wires")
    section.done()

    other = read_container("f", FILE, magic=b"test", version=3, names=NAMES).section(2)
    other.u64("number")
    with pytest.raises(FormatError, match="2 bytes too many at the end"):
        other.done()
    with pytest.raises(FormatError, match="has 10 bytes, 3 wires makes it 96"):
        other.expect_size(96, "3 wires")


def test_a_file_is_mapped_and_an_empty_one_is_empty(tmp_path: Path) -> None:
    full, empty = tmp_path / "full", tmp_path / "empty"
    full.write_bytes(FILE)
    empty.write_bytes(b"")
    assert read_container("f", map_file(full), magic=b"test", version=3, names=NAMES).has(2)
    assert len(map_file(empty)) == 0
