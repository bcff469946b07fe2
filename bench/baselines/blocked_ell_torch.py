#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A X with cuSPARSE's Blocked-ELL matrices, which run dense blocks on tensor cores.

    blocked_ell_torch.py --data blocks.npz --features 16,128 --precision fp16 --json blocked_ell.json

PyTorch does not offer that format: it holds the memory, and cuSPARSE is called directly. Rows and columns must
be multiples of the block's side; every row of blocks is padded to the longest. Times are medians of 50 runs
between two events after 10 warm-ups, as `tessera bench --device cuda` takes them; each result is checked first.
"""
import argparse
import ctypes

import numpy
import torch

import common

SIDE = 16
# Of library_types.h and cusparse.h.
CUDA_TYPES = {"fp32": (0, torch.float32), "fp16": (2, torch.float16), "bf16": (14, torch.bfloat16)}
INDEX_32, BASE_ZERO, ROW_ORDER, PLAIN, BLOCKED_ELL_ALG1 = 2, 0, 2, 0, 13
FLOAT_32 = 0


class Library:
    """cuSPARSE, every call checked."""

    def __init__(self):
        self.library = ctypes.CDLL("libcusparse.so.12")

    def __call__(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name} failed with status {status}")


def blocked(offsets, columns, vertices):
    """(columns of blocks, dense blocks) with as many blocks in every row of blocks as the longest has."""
    if vertices % SIDE != 0:
        raise SystemExit(f"blocked_ell_torch.py: error: {vertices} vertices are no multiple of {SIDE}")
    rows = numpy.repeat(numpy.arange(vertices), numpy.diff(offsets))
    places = numpy.unique(numpy.stack([rows // SIDE, columns // SIDE]), axis=1)
    counts = numpy.bincount(places[0], minlength=vertices // SIDE)
    width = int(counts.max())
    slot_of = {}
    block_columns = numpy.full((vertices // SIDE, width), -1, dtype=numpy.int32)
    for (row, column), slot in zip(places.T.tolist(), positions(counts)):
        slot_of[row, column] = slot
        block_columns[row, slot] = column
    values = numpy.zeros((vertices, width * SIDE), dtype=numpy.float32)
    slots = numpy.array([slot_of[pair] for pair in zip((rows // SIDE).tolist(), (columns // SIDE).tolist())])
    values[rows, slots * SIDE + columns % SIDE] = 1
    return block_columns, values


def positions(counts):
    for count in counts.tolist():
        yield from range(count)


class BlockedEll:
    """Y = A X, ready to run."""

    def __init__(self, block_columns, values, features, precision):
        cuda_type, self.dtype = CUDA_TYPES[precision]
        vertices = values.shape[0]
        self.call = Library()
        self.columns = torch.from_numpy(block_columns).cuda()
        self.values = torch.from_numpy(values).to("cuda", self.dtype)
        self.x = (torch.rand(vertices, features) * 2 - 1).to("cuda", self.dtype)
        self.y = torch.zeros(vertices, features, device="cuda", dtype=self.dtype)
        self.one, self.zero = ctypes.c_float(1), ctypes.c_float(0)
        self.handle, self.a = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cusparseCreate", ctypes.byref(self.handle))
        size = ctypes.c_int64
        self.call("cusparseCreateBlockedEll", ctypes.byref(self.a), size(vertices), size(vertices),
                  size(SIDE), size(values.shape[1]), ctypes.c_void_p(self.columns.data_ptr()),
                  ctypes.c_void_p(self.values.data_ptr()), INDEX_32, BASE_ZERO, cuda_type)
        self.dense = []
        for matrix in (self.x, self.y):
            descriptor = ctypes.c_void_p()
            self.call("cusparseCreateDnMat", ctypes.byref(descriptor), size(vertices), size(features),
                      size(features), ctypes.c_void_p(matrix.data_ptr()), cuda_type, ROW_ORDER)
            self.dense.append(descriptor)
        needed = ctypes.c_size_t()
        self.call("cusparseSpMM_bufferSize", *self.operands(), ctypes.byref(needed))
        self.workspace = torch.empty(max(16, needed.value), dtype=torch.uint8, device="cuda")

    def operands(self):
        x, y = self.dense
        return (self.handle, PLAIN, PLAIN, ctypes.byref(self.one), self.a, x, ctypes.byref(self.zero), y,
                FLOAT_32, BLOCKED_ELL_ALG1)

    def run(self):
        self.call("cusparseSpMM", *self.operands(), ctypes.c_void_p(self.workspace.data_ptr()))


def microseconds(function, repeats=50, warmups=10):
    # cuSPARSE runs on the default stream, as the events do.
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    samples = []
    for i in range(warmups + repeats):
        begin.record()
        function()
        end.record()
        end.synchronize()
        if i >= warmups:
            samples.append(begin.elapsed_time(end) * 1e3)
    return samples


def check(product, offsets, columns):
    """The result against CSR in double."""
    product.run()
    vertices = len(offsets) - 1
    a = torch.sparse_csr_tensor(torch.from_numpy(offsets), torch.from_numpy(columns),
                                torch.ones(len(columns), dtype=torch.float64), size=(vertices, vertices))
    x = product.x.double().cpu()
    error = ((product.y.double().cpu() - a @ x).abs() / (a @ x.abs()).clamp(min=1e-30)).max().item()
    bound = 2e-3 if product.dtype == torch.float32 else 1e-2
    if error > bound:
        raise RuntimeError(f"Blocked-ELL is wrong by {error:.2e}")
    return error


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", action="append", required=True, metavar="FILE.npz")
    parser.add_argument("--features", default="16", metavar="LIST")
    parser.add_argument("--precision", default="fp16", choices=CUDA_TYPES)
    parser.add_argument("--json", required=True, metavar="FILE")
    options = parser.parse_args()
    records = []
    for path in options.data:
        name, offsets, columns, vertices = common.load(path)
        block_columns, values = blocked(offsets, columns, vertices)
        for features in (int(width) for width in options.features.split(",")):
            product = BlockedEll(block_columns, values, features, options.precision)
            error = check(product, offsets, columns)
            samples = microseconds(product.run)
            record = common.record("spmm", name, features, 1, "cusparse_blocked_ell", samples,
                                   f"{block_columns.shape[1]} blocks a row")
            record.update(precision=options.precision, device="cuda", max_error=error)
            records.append(record)
            print(f"{name} {features} features: {record['median_us']:.1f} us", flush=True)
    common.write(options, records)


if __name__ == "__main__":
    main()
