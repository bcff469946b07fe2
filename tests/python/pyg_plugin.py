# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest that runs PyG's own tests on tessera's layers:

    python -m pytest -p pyg_plugin FOLDER_OF_PYG_TESTS

It puts the layers into PyG's place before tests are collected, also in PyG's own models, and reports for each test how
many calls of layers ran on our kernels, how many kernels that were, how many of the calls that did had a sparse tensor in
the place of an edge_index, and how many calls were left to PyG. Compiled code runs as it would without this: its kernels
are counted, its calls of layers are not.
"""

import json
import os
import sys

import pytest
import torch
import torch_geometric.nn

import tessera
import tessera.nn
from tessera.nn._base import tally

_report = {}


def _replace(theirs, ours):
    """Under every name that PyG has for a layer, also those that its models imported it by; the file that defines it keeps
    it, since the layer itself is made of it."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "torch_geometric" or name == theirs.__module__:
            continue
        for key, value in list(vars(module).items()):
            if value is theirs:
                setattr(module, key, ours)


for _name in tessera.nn.__all__:
    _replace(getattr(torch_geometric.nn, _name), getattr(tessera.nn, _name))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    torch.manual_seed(1)  # PyG's tests draw numbers: the same ones in every run
    layers, fallbacks, runs, sparse = tally.kernels, tally.fallbacks, tessera.counters()["runs"], tally.sparse
    outcome = yield
    _report[item.nodeid] = {
        "passed": outcome.excinfo is None,
        "layers": tally.kernels - layers,
        "kernels": tessera.counters()["runs"] - runs,
        "sparse": tally.sparse - sparse,
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
