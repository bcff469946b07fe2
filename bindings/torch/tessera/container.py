# SPDX-License-Identifier: Apache-2.0
"""Tessera's container of arrays, as docs/formats.md specifies it."""

from __future__ import annotations

import os
import struct
import tempfile
import zlib
from pathlib import Path

import numpy as np

_MAGIC = b"\x89TSR\r\n\x1a\n"
_VERSION = 1
_HEADER = struct.Struct("<8sIIQQI28x")
_ENTRY = struct.Struct("<HBBIQQ")


def _damaged(path: str | os.PathLike[str], what: str) -> ValueError:
    return ValueError(f"{path}: {what}; the file is damaged or no container of tessera's")


def read(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """All arrays by their names, checked by their checksums."""
    data = Path(path).read_bytes()
    if len(data) < _HEADER.size or not data.startswith(_MAGIC):
        raise _damaged(path, "it does not begin as one")
    _, version, checksum, size, table_size, count = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise ValueError(f"{path}: version {version} of the container; this package reads {_VERSION}")
    end = _HEADER.size + table_size
    if size != len(data) or end > len(data) or zlib.crc32(data[16:end]) != checksum:
        raise _damaged(path, "its table is not what was written")
    arrays: dict[str, np.ndarray] = {}
    at = _HEADER.size
    for _ in range(count):
        name_size, type_size, dimensions, crc, offset, length = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        shape = struct.unpack_from(f"<{dimensions}Q", data, at)
        at += 8 * dimensions
        kind = data[at : at + type_size].decode()
        name = data[at + type_size : at + type_size + name_size].decode()
        at = -(-(at + type_size + name_size) // 8) * 8
        section = data[offset : offset + length]
        if len(section) != length or zlib.crc32(section) != crc:
            raise _damaged(path, f"'{name}' is not what was written")
        arrays[name] = np.frombuffer(section, np.dtype(kind)).reshape(shape)
    return arrays


def write(path: str | os.PathLike[str], arrays: dict[str, np.ndarray]) -> None:
    """The file appears whole or not at all."""
    entries, bodies = [], []
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        kind = array.dtype.newbyteorder("<").str if array.dtype.itemsize > 1 else array.dtype.str
        entries.append((name.encode(), kind.encode(), array.shape))
        bodies.append(array.astype(kind, copy=False).tobytes())
    sizes = [-(-(_ENTRY.size + 8 * len(shape) + len(kind) + len(name)) // 8) * 8
             for name, kind, shape in entries]
    table_size = sum(sizes)
    offset = _HEADER.size + table_size
    table, places = b"", []
    for (name, kind, shape), body, size in zip(entries, bodies, sizes):
        offset = -(-offset // 64) * 64
        places.append(offset)
        entry = _ENTRY.pack(len(name), len(kind), len(shape), zlib.crc32(body), offset, len(body))
        entry += struct.pack(f"<{len(shape)}Q", *shape) + kind + name
        table += entry.ljust(size, b"\0")
        offset += len(body)
    rest = struct.pack("<QQI28x", offset, table_size, len(entries)) + table
    content = bytearray(_MAGIC + struct.pack("<II", _VERSION, zlib.crc32(rest)) + rest)
    for place, body in zip(places, bodies):
        content += b"\0" * (place - len(content)) + body
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {folder}")
    handle, temporary = tempfile.mkstemp(dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def text(array: np.ndarray) -> str:
    return array.tobytes().decode()


def from_text(value: str) -> np.ndarray:
    return np.frombuffer(value.encode(), np.uint8)
