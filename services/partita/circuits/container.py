"""The binary container of .zkey, .wtns and .r1cs files: a magic word and numbered sections.

Layout, all little-endian: 4 bytes magic, u32 version, u32 number of sections; then for each
section u32 type, u64 length and the bytes. Sections come in any order. Nothing is copied: a
section is a view of the file's bytes, and no length that the file claims is believed before it
was compared with the bytes that are there.

Not here: what a section means. Unknown section types are skipped, as the formats demand.

Format: iden3 binary files, https://github.com/iden3/r1csfile.
"""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING, Final

from partita.groth16.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

MAX_SECTIONS: Final = 64
"""More sections than any known format has; a larger count is damage."""

_HEAD_BYTES: Final = 12
_SECTION_HEAD_BYTES: Final = 12


class Section:
    """A cursor over the bytes of one section; every error names file, section and offset.

    Args:
        source: the name of the file.
        name: the name of the section.
        offset: where the section's bytes start in the file.
        data: the bytes.
    """

    def __init__(self, source: str, name: str, offset: int, data: memoryview) -> None:
        self.source = source
        self.name = name
        self.offset = offset
        self.data = data
        self._at = 0

    def error(self, what: str, at: int | None = None) -> FormatError:
        """An error at byte `at` of the section (default: where the cursor stands)."""
        place = self.offset + (self._at if at is None else at)
        return FormatError(self.source, what, section=self.name, offset=place)

    @property
    def offset_of_cursor(self) -> int:
        """How many bytes of the section were taken."""
        return self._at

    @property
    def remaining_bytes(self) -> int:
        """The bytes that were not taken yet."""
        return len(self.data) - self._at

    def take(self, size_bytes: int, what: str) -> memoryview:
        """The next bytes, without a copy.

        Raises:
            FormatError: the section ends before them.
        """
        if size_bytes > self.remaining_bytes:
            raise self.error(
                f"{what} needs {size_bytes} bytes, the section has {self.remaining_bytes} left"
            )
        self._at += size_bytes
        return self.data[self._at - size_bytes : self._at]

    def u32(self, what: str) -> int:
        """The next 4 bytes as a number."""
        return int.from_bytes(self.take(4, what), "little")

    def u64(self, what: str) -> int:
        """The next 8 bytes as a number."""
        return int.from_bytes(self.take(8, what), "little")

    def expect_size(self, size_bytes: int, why: str) -> None:
        """Demand that the whole section has exactly this length.

        Raises:
            FormatError: it has another.
        """
        if len(self.data) != size_bytes:
            raise self.error(f"has {len(self.data)} bytes, {why} makes it {size_bytes}", at=0)

    def done(self) -> None:
        """Demand that everything was taken.

        Raises:
            FormatError: bytes are left.
        """
        if self.remaining_bytes:
            raise self.error(f"{self.remaining_bytes} bytes too many at the end of the section")


class Container:
    """The sections of one file, by type."""

    def __init__(
        self, source: str, sections: Mapping[int, Section], names: Mapping[int, str]
    ) -> None:
        self.source = source
        self._sections = sections
        self._names = names

    def has(self, section_type: int) -> bool:
        """Whether the file has a section of this type."""
        return section_type in self._sections

    def section(self, section_type: int) -> Section:
        """The section of this type.

        Raises:
            FormatError: the file has none.
        """
        found = self._sections.get(section_type)
        if found is None:
            name = self._names.get(section_type, "unnamed")
            raise FormatError(
                self.source, f"section {section_type} ({name}) is missing; the file is incomplete"
            )
        return found


def read_container(
    source: str,
    data: bytes | memoryview,
    *,
    magic: bytes,
    version: int,
    names: Mapping[int, str],
) -> Container:
    """Find the sections of a file.

    Args:
        source: the name of the file, for errors.
        data: all its bytes; the sections are views of them.
        magic: the 4 bytes that it must start with.
        version: the only version that is read.
        names: the names of the section types that have one.

    Raises:
        FormatError: another magic or version, a length beyond the file, bytes behind the last
            section, or a named section type that occurs twice.
    """
    view = memoryview(data).cast("B") if not isinstance(data, memoryview) else data
    if len(view) < _HEAD_BYTES:
        raise FormatError(source, f"has only {len(view)} bytes, a header needs {_HEAD_BYTES}")
    found = bytes(view[:4])
    if found != magic:
        raise FormatError(source, f"starts with {found!r}, not with {magic!r}", offset=0)
    found_version, n_sections = struct.unpack_from("<II", view, 4)
    if found_version != version:
        raise FormatError(source, f"has version {found_version}, only {version} is read", offset=4)
    if n_sections > MAX_SECTIONS:
        raise FormatError(
            source, f"claims {n_sections} sections, at most {MAX_SECTIONS} are read", offset=8
        )
    sections: dict[int, Section] = {}
    at = _HEAD_BYTES
    for index in range(n_sections):
        if len(view) - at < _SECTION_HEAD_BYTES:
            raise FormatError(
                source,
                f"ends inside the head of section {index + 1} of {n_sections}: it is cut off",
                offset=at,
            )
        section_type, length = struct.unpack_from("<IQ", view, at)
        name = f"section {section_type} ({names.get(section_type, 'unnamed')})"
        start = at + _SECTION_HEAD_BYTES
        if length > len(view) - start:
            raise FormatError(
                source,
                f"claims {length} bytes, the file has {len(view) - start} left: it is cut off",
                section=name,
                offset=at + 4,
            )
        if section_type in sections:
            raise FormatError(source, "occurs twice", section=name, offset=at)
        sections[section_type] = Section(source, name, start, view[start : start + length])
        at = start + length
    if at != len(view):
        raise FormatError(
            source, f"{len(view) - at} bytes too many behind the last section", offset=at
        )
    return Container(source, sections, names)


def write_container(
    *, magic: bytes, version: int, sections: Iterable[tuple[int, bytes | memoryview]]
) -> bytes:
    """The bytes of a file with these sections in this order."""
    parts: list[bytes | memoryview] = []
    n_sections = 0
    for section_type, data in sections:
        parts += [struct.pack("<IQ", section_type, len(data)), data]
        n_sections += 1
    return b"".join([magic, struct.pack("<II", version, n_sections), *parts])


def map_file(path: Path) -> memoryview:
    """The bytes of a file, mapped read-only; an empty file gives an empty view.

    The mapping lives as long as any view of it. A file that may still change must be copied first.

    Raises:
        OSError: it cannot be opened or mapped.
    """
    with path.open("rb") as file:
        file.seek(0, 2)
        if file.tell() == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
