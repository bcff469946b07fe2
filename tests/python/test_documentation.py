# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings, on the pages of the documentation and in examples/python are right."""

import doctest
import importlib
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch
from test_files import PROGRAM

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import pages  # noqa: E402

MODULES = ["tessera", "tessera._cache", "tessera._library", "tessera._link_draws", "tessera._link_metrics",
           "tessera._link_scores", "tessera.bits", "tessera.captured_step", "tessera.distributed",
           "tessera.distributed._loader", "tessera.distributed._model", "tessera.distributed._part",
           "tessera.distributed._session", "tessera.files", "tessera.fitting", "tessera.functional", "tessera.graph",
           "tessera.grouped", "tessera.loader", "tessera.models", "tessera.segments", "tessera.trained_model",
           "tessera.nn", "tessera.nn.attention", "tessera.nn.composed", "tessera.nn.convolutions",
           "tessera.nn.edge_networks", "tessera.nn.few_bits", "tessera.nn.gine", "tessera.nn.hetero",
           "tessera.nn.kinds", "tessera.nn.pna", "tessera.nn.pooling", "tessera.nn.products", "tessera.nn.relational"]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    torch.manual_seed(0)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0


def test_the_example_of_one_line():
    example = Path(__file__).parents[2] / "examples" / "python" / "one_line.py"
    result = subprocess.run([sys.executable, str(example), "--epochs", "2"], capture_output=True,
                            text=True)
    assert result.returncode == 0, result.stderr
    plain, ours, *layers = result.stdout.splitlines()
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in (plain, ours)]
    assert abs(losses[0] - losses[1]) <= 1e-4 * losses[0]
    assert layers == ["conv1 GATConv: attention/cpu/fused", "conv2 GCNConv: spmm/cpu/rows"]


def runs_here(block):
    return block.language == "python" or "torch" in block.marks


@pytest.mark.parametrize("page", [page for page in pages.pages() if any(map(runs_here, pages.blocks(page)))],
                         ids=lambda page: page.name)
def test_blocks_of_pages(page, tmp_path, monkeypatch):
    """One after the other, with the commands between them; what was defined stays, as in a session of Python."""
    blocks = pages.blocks(page)
    blocks = blocks[:max(i for i, block in enumerate(blocks) if runs_here(block)) + 1]
    if any(block.language == "sh" and "run by" not in block.marks for block in blocks) and not os.access(PROGRAM, os.X_OK):
        pytest.skip("the program is not built")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    module = types.ModuleType(page.name)  # PyG looks for the modules of classes
    monkeypatch.setitem(sys.modules, page.name, module)
    folder, names = pages.Folder(tmp_path, PROGRAM), vars(module)
    for block in blocks:
        if block.language != "python":
            folder.run(block, has_torch=True)
            continue
        exec(compile(block.given, block.place, "exec"), names)
        code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
        if "gpu" not in block.marks or torch.cuda.is_available():
            exec(code, names)
