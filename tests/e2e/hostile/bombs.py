"""Record batches whose records inflate far beyond their bytes, one for each codec."""
import pathlib
import struct
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))
from batch import batch  # noqa: E402
from wire import unsigned_varint, varint  # noqa: E402

MIB = 1 << 20


def one_record(size):
    """The start of the records of a batch with one record of about `size` zeros; zeros follow."""
    value = varint(size)
    body = 1 + 1 + 1 + 1 + len(value) + size + 1  # attributes, deltas, empty key, value, no headers
    return varint(body) + bytes(4) + value, size + 1


def gzip_bomb(size):
    start, zeros = one_record(size)
    packer = zlib.compressobj(9, wbits=31)
    packed = packer.compress(start)
    for _ in range(zeros // MIB):
        packed += packer.compress(bytes(MIB))
    return packed + packer.compress(bytes(zeros % MIB)) + packer.flush()


def snappy_bomb(size, claimed=None):
    """Raw snappy: its length, the start as a literal, then copies of the last zero."""
    start, zeros = one_record(size)
    literal = start + b"\0"
    out = [unsigned_varint(len(start) + zeros if claimed is None else claimed),
           bytes([len(literal) - 1 << 2]), literal]
    left = zeros - 1
    out.append(b"\xfe\1\0" * (left // 64))  # 64 bytes, from one byte back
    if left % 64:
        out.append(bytes([(left % 64 - 1) << 2 | 2]) + b"\1\0")
    return b"".join(out)


def xxhash32(data):
    """For inputs of less than 4 bytes, as the header of an LZ4 frame is."""
    mask = 0xFFFFFFFF
    value = (374761393 + len(data)) & mask
    for octet in data:
        value = (value + octet * 374761393) & mask
        value = ((value << 11 | value >> 21) & mask) * 2654435761 & mask
    value = (value ^ value >> 15) * 2246822519 & mask
    value = (value ^ value >> 13) * 3266489917 & mask
    return value ^ value >> 16


def lz4_block(start, zeros):
    """`start` and a zero as literals, a match that repeats the zero, five zeros as literals."""
    literal = start + b"\0"
    match = zeros - 1 - 5 - 19
    return (bytes([len(literal) << 4 | 15]) + literal + b"\1\0" + b"\xff" * (match // 255)
            + bytes([match % 255]) + b"\x50" + bytes(5))


def lz4_bomb(size):
    start, zeros = one_record(size)
    assert len(start) < 14
    descriptor = b"\x60\x70"  # independent blocks of at most 4 MiB
    out = b"\x04\x22\x4d\x18" + descriptor + bytes([xxhash32(descriptor) >> 8 & 255])
    while zeros:
        here = min(zeros, 4 * MIB - len(start))
        if here < 64:
            out += struct.pack("<I", 1 << 31 | here) + bytes(here)
        else:
            block = lz4_block(start, here)
            out += struct.pack("<I", len(block)) + block
        start, zeros = b"", zeros - here
    return out + bytes(4)


def zstd_bomb(size):
    """Blocks of one repeated byte: four bytes stand for 128 KiB."""
    start, zeros = one_record(size)
    out = [b"\x28\xb5\x2f\xfd\x00\x38", struct.pack("<I", len(start) << 3)[:3], start]
    while zeros:
        here = min(zeros, 128 << 10)
        zeros -= here
        out.append(struct.pack("<I", here << 3 | 1 << 1 | (0 if zeros else 1))[:3] + b"\0")
    return b"".join(out)


CODECS = {"gzip": (1, gzip_bomb), "snappy": (2, snappy_bomb), "lz4": (3, lz4_bomb),
          "zstd": (4, zstd_bomb)}


def bomb(codec, size, **options):
    number, pack = CODECS[codec]
    return batch(b"", attributes=number, records=pack(size, **options))
