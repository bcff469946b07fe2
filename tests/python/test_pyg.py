# SPDX-License-Identifier: Apache-2.0
"""PyG's own tests of its layers, run where they lie (TESSERA_PYG_TESTS names the folder), and its models, on our layers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TESTS = os.environ.get("TESSERA_PYG_TESTS", str(HERE.parents[2] / "shared" / "pyg_tests"))

# The plain tests of layers that have kernels must run on them, with an edge_index and a sparse tensor.
BASIC = ["test_gcn_conv", "test_sage_conv[", "test_gin_conv", "test_gat_conv[", "test_gatv2_conv[",
         "test_agnn_conv[", "test_sg_conv", "test_cheb_conv"]
WITHOUT_SPARSE = ["test_cheb_conv", "test_arma_conv", "test_lazy_arma_conv"]  # as PyG's layers

# More of PyG's tests, in a folder beside the first.
MORE = Path(TESTS + "_more")
FILES = ["conv/test_lg_conv.py", "conv/test_gcn2_conv.py", "conv/test_arma_conv.py", "conv/test_gated_graph_conv.py",
         "conv/test_film_conv.py", "conv/test_pna_conv.py", "models/test_label_prop.py", "models/test_lightgcn.py",
         "conv/test_hetero_conv.py", "conv/test_rgcn_conv.py", "dense/test_linear.py"]
BASIC_MORE = ["test_lg_conv", "test_gcn2_conv", "test_arma_conv", "test_lazy_arma_conv", "test_gated_graph_conv"]


# With FULL_TEST=1, scripting GAT and GATv2 fails with PyG itself.
FAIL_WHEN_SCRIPTED = ["test_gat_conv[", "test_gatv2_conv["]


def is_one_of(test, names):
    return any(test == name or (name.endswith("[") and test.startswith(name)) for name in names)


def run_with_plugin(tests, folder, full=""):
    """Of each test, what the plugin reports of it; and what pytest printed."""
    report = folder / "report.json"
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    environment = dict(os.environ, PYTHONPATH=path, TESSERA_PYG_REPORT=str(report), FULL_TEST=full)
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "pyg_plugin", "-p", "no:cacheprovider",
         "--tb=line", *tests],
        env=environment, cwd=folder, capture_output=True, text=True)
    assert report.exists(), result.stdout + result.stderr
    return json.loads(report.read_text()), result


MODELS = """
import pytest, torch
from torch_geometric.nn.models import GAT, GCN, GIN, GraphSAGE
from torch_geometric.nn.models.basic_gnn import GCN as SameGCN

torch.manual_seed(1)
x, edge_index = torch.randn(20, 8), torch.randint(20, (2, 60))
MODELS = {"GCN": lambda: GCN(8, 16, 2), "GraphSAGE": lambda: GraphSAGE(8, 16, 2), "GIN": lambda: GIN(8, 16, 2),
          "GAT": lambda: GAT(8, 16, 2, heads=2), "GATv2": lambda: GAT(8, 16, 2, v2=True), "SameGCN": lambda: SameGCN(8, 16, 2)}

@pytest.mark.parametrize("name", MODELS)
def test_eager(name):
    model = MODELS[name]()
    assert type(model.convs[0]).__module__.startswith("tessera.nn.")
    model(x, edge_index).sum().backward()

@pytest.mark.parametrize("name", MODELS)
def test_compiled(name):
    model = MODELS[name]().eval()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    assert torch.allclose(compiled(x, edge_index), model(x, edge_index), atol=1e-5)
"""


def test_pygs_own_models_run_on_kernels(tmp_path):
    """Also compiled as a whole, which a counter in the layers would break into parts."""
    tests = tmp_path / "test_models.py"
    tests.write_text(MODELS)
    rows, result = run_with_plugin([tests], tmp_path)
    assert len(rows) == 12, result.stdout
    for name, row in rows.items():
        assert row["passed"], f"{name}: {result.stdout}"
        # Two layers each way, but for a gradient of the input; or forth, compiled and not.
        assert row["kernels"] >= (3 if "eager" in name else 4) and row["layers"] >= 2, (name, row)
        assert row["fallbacks"] == 0, (name, row)


@pytest.mark.parametrize("full", ["", "1"])
def test_pygs_own_tests(full, tmp_path):
    if not Path(TESTS).is_dir():
        pytest.skip(f"PyG's tests are not in {TESTS}")
    rows, result = run_with_plugin([TESTS], tmp_path, full)
    failed = [name.split("::")[-1] for name, row in rows.items() if not row["passed"]]
    assert len(rows) >= 40, result.stdout
    excused = FAIL_WHEN_SCRIPTED if full else []
    assert all(is_one_of(test, excused) for test in failed), result.stdout
    for name, row in rows.items():
        test = name.split("::")[-1]
        if is_one_of(test, BASIC):
            assert row["layers"] > 0 and row["kernels"] > 0, name
            assert row["sparse"] > 0 or test in WITHOUT_SPARSE, name


@pytest.mark.parametrize("full", ["", "1"])
def test_more_of_pygs_own_tests(full, tmp_path):
    if not MORE.is_dir():
        pytest.skip(f"PyG's tests are not in {MORE}")
    rows, result = run_with_plugin([MORE / "nn" / file for file in FILES], tmp_path, full)
    assert len(rows) >= 40, result.stdout
    for name, row in rows.items():
        test = name.split("::")[-1]
        assert row["passed"], result.stdout
        if "test_linear.py" in name:  # plain linear layers are torch's
            of_kinds = "hetero" in test and "initializer" not in test and "jit" not in test
            assert not of_kinds or (row["layers"] > 0 and row["fallbacks"] == 0) or "sort" in test, name
            continue
        assert row["kernels"] > 0 or "histogram" in test or test == "test_hetero_conv_self_loop_error", name
        assert row["sparse"] > 0 or test not in BASIC_MORE or test in WITHOUT_SPARSE, name
