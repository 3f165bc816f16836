"""Reads a variable of a NetCDF classic file, as far as the benchmark's field needs it."""

import struct
from array import array

SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8}  # bytes of a value, by type
FLOAT = 5


class Header:
    def __init__(self, data):
        self.data = data
        self.at = 4  # behind the magic number

    def number(self):
        (value,) = struct.unpack_from(">i", self.data, self.at)
        self.at += 4
        return value

    def skip(self, size):
        self.at += (size + 3) // 4 * 4

    def name(self):
        size = self.number()
        start = self.at
        self.skip(size)
        return self.data[start : start + size].decode()

    def entries(self, entry):
        self.number()  # what the entries are
        return [entry() for _ in range(self.number())]

    def attribute(self):
        self.name()
        kind = self.number()
        self.skip(self.number() * SIZES[kind])

    def dimension(self):
        name = self.name()
        return name, self.number()

    def variable(self):
        name = self.name()
        axes = [self.number() for _ in range(self.number())]
        self.entries(self.attribute)
        kind = self.number()
        self.number()  # bytes
        return name, (axes, kind, self.number())


def read_floats(path, name):
    """The extents of the last three axes, x fastest, and the values of the first of all others."""
    data = path.read_bytes()
    if data[:4] != b"CDF\x01":
        raise ValueError(f"{path}: no NetCDF classic file")
    header = Header(data)
    header.number()  # records
    dimensions = header.entries(header.dimension)
    header.entries(header.attribute)
    axes, kind, start = dict(header.entries(header.variable))[name]
    if kind != FLOAT:
        raise ValueError(f"{path}: {name} is not single precision")
    nz, ny, nx = (dimensions[axis][1] for axis in axes[-3:])
    values = array("f", data[start : start + 4 * nx * ny * nz])
    values.byteswap()  # the file is big-endian, we run on little-endian machines
    return (nx, ny, nz), values
