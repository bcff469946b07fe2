# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest that runs PyG's own tests on tessera's layers:

    python -m pytest -p pyg_plugin FOLDER_OF_PYG_TESTS

It puts the layers into PyG's place before tests are collected, and reports for each test how many
calls of layers ran on our kernels, how many kernels that were, how many of the calls that did had a
sparse tensor in the place of an edge_index, and how many calls were left to PyG.
"""

import functools
import json
import os

import pytest
import torch
import torch_geometric.nn

import tessera
import tessera.nn
from tessera.nn._base import tally

_report = {}
_sparse = 0


def _counted(forward):
    @functools.wraps(forward)
    def run(self, x, edge_index, *arguments, **options):
        global _sparse
        runs = tessera.counters()["runs"]
        out = forward(self, x, edge_index, *arguments, **options)
        if isinstance(edge_index, torch.Tensor) and edge_index.layout != torch.strided:
            _sparse += tessera.counters()["runs"] > runs
        return out

    return run


for _name in tessera.nn.__all__:
    _layer = getattr(tessera.nn, _name)
    if isinstance(_layer, type) and issubclass(_layer, torch_geometric.nn.MessagePassing):
        _layer.forward = _counted(_layer.forward)
    setattr(torch_geometric.nn, _name, _layer)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    torch.manual_seed(1)  # PyG's tests draw numbers: the same ones in every run
    layers, fallbacks, runs, sparse = tally.kernels, tally.fallbacks, tessera.counters()["runs"], _sparse
    outcome = yield
    _report[item.nodeid] = {
        "passed": outcome.excinfo is None,
        "layers": tally.kernels - layers,
        "kernels": tessera.counters()["runs"] - runs,
        "sparse": _sparse - sparse,
        "fallbacks": tally.fallbacks - fallbacks,
    }


def pytest_terminal_summary(terminalreporter):
    write = terminalreporter.write_line
    passed = sum(row["passed"] for row in _report.values())
    write(f"{passed} of {len(_report)} of PyG's tests pass on tessera's layers")
    write(f"{'test':60} {'layers':>7} {'kernels':>8} {'sparse':>7} {'fallbacks':>10}")
    for name, row in _report.items():
        write(f"{name[-60:]:60} {row['layers']:7} {row['kernels']:8} {row['sparse']:7} {row['fallbacks']:10}")
    if "TESSERA_PYG_REPORT" in os.environ:
        with open(os.environ["TESSERA_PYG_REPORT"], "w") as file:
            json.dump(_report, file, indent=1)
