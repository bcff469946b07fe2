# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest that runs PyG's own tests of its neighbour loader on tessera's, as if pyg-lib were installed:

    python -m pytest -p pyg_loader_plugin FOLDER_OF_PYG_TESTS

TESSERA_PYG_REPORT names a file that gets the outcome of each test.
"""

import json
import os

import torch
import torch_geometric.loader
import torch_geometric.testing.decorators as decorators
import torch_geometric.typing as flags

import tessera.loader

_NAMES = ("WITH_PYG_LIB", "WITH_WEIGHTED_NEIGHBOR_SAMPLE", "WITH_EDGE_TIME_NEIGHBOR_SAMPLE")
_before = {name: getattr(flags, name) for name in _NAMES}
_report = {}
_has_package = decorators.has_package

# While tests are collected they read what is installed; what runs then must find what there is.
for _name in _NAMES:
    setattr(flags, _name, True)
decorators.WITH_PYG_LIB = True
decorators.has_package = lambda package: package == "pyg_lib" or _has_package(package)
torch_geometric.loader.NeighborLoader = tessera.loader.NeighborLoader


def pytest_collection_finish():
    for name, value in _before.items():
        setattr(flags, name, value)


def pytest_runtest_setup():
    torch.manual_seed(1)


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome == "skipped":
        _report[report.nodeid.split("::")[-1]] = {"outcome": report.outcome, "why": str(report.longrepr or "")[-2000:]}


def pytest_sessionfinish():
    if "TESSERA_PYG_REPORT" in os.environ:
        with open(os.environ["TESSERA_PYG_REPORT"], "w") as file:
            json.dump(_report, file, indent=1)
