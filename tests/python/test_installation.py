# SPDX-License-Identifier: Apache-2.0
"""What an installation meets: where torch lies, and a torch that lost the names that are its own."""

import importlib.util
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

BINDINGS = Path(__file__).parents[2] / "bindings" / "torch"
FIND_TORCH = BINDINGS / "find_torch.py"
WITH_SOURCES = pytest.mark.skipif(not FIND_TORCH.exists(), reason="the sources are not here")
NAMES = ["torch._C._get_tracing_state", "torch._C._any_requires_grad", "torch.autograd.forward_ad._current_level",
         "torch._C._are_functorch_transforms_active", "torch._C._get_fp32_precision_getter",
         "torch._C._functorch.is_legacy_batchedtensor", "torch._remove_batch_dim",
         "torch.nn.modules.module._global_forward_hooks"]

# Names are gone while the package looks for them; torch itself keeps its own.
WITHOUT = """
import functools, sys
import torch, torch._dynamo, torch_geometric.nn as pyg
from torch.autograd import forward_ad

taken = []
for name in sys.argv[1:]:
    *path, last = name.split(".")[1:]
    holder = functools.reduce(getattr, path, torch)
    if hasattr(holder, last):
        taken.append((holder, last, getattr(holder, last)))
        delattr(holder, last)
import tessera, tessera.nn
for holder, last, value in taken:
    setattr(holder, last, value)

def mlp():
    return torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3))

index = torch.randint(0, 20, (2, 80))
grad = torch.randn(20, 3)
for make in (lambda: pyg.GCNConv(6, 3), lambda: pyg.SAGEConv(6, 3), lambda: pyg.GINConv(mlp()),
             lambda: pyg.GATConv(6, 3), lambda: pyg.GATv2Conv(6, 3), lambda: pyg.TransformerConv(6, 3)):
    torch.manual_seed(0)
    theirs = make()
    torch.manual_seed(0)
    ours = tessera.accelerate(make())
    for _ in range(3):
        found = []
        for layer in (theirs, ours):
            torch.manual_seed(1)
            x = torch.randn(20, 6, requires_grad=True)
            y = layer(x, index)
            found.append([y, *torch.autograd.grad(y, [x, *layer.parameters()], grad)])
        for a, b in zip(*found):
            assert torch.allclose(a, b, atol=1e-4), type(theirs)
    assert ours.tessera_fallback is None, ours.tessera_fallback
    assert torch.allclose(torch.jit.trace(ours, (x, index), check_trace=False)(x, index), y, atol=1e-4)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.detach(), torch.ones_like(x))
        tangents = [forward_ad.unpack_dual(layer(dual, index)).tangent for layer in (theirs, ours)]
        assert torch.allclose(*tangents, atol=1e-4)
        tangent = forward_ad.unpack_dual(tessera.spmm(index, dual)).tangent
        assert tangent is not None and torch.allclose(tangent, tessera.spmm(index, torch.ones_like(x)), atol=1e-5)
    rows = torch.func.vmap(lambda g: torch.func.vjp(lambda z: tessera.spmm(index, z), x.detach())[1](g)[0])(torch.ones(2, 20, 6))
    assert torch.equal(rows[0], rows[1])
    compiled = torch.compile(ours, backend="aot_eager", fullgraph=True)
    assert torch.allclose(compiled(x, index), y, atol=1e-4)
print("well")
"""


@pytest.mark.parametrize("names", [[name] for name in NAMES] + [NAMES], ids=lambda names: names[0] if len(names) == 1 else "all")
def test_a_torch_without_its_own_names(names):
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", WITHOUT, *names], capture_output=True, text=True)
    assert found.stdout.strip() == "well", found.stderr[-3000:]


def made_environment(folder):
    """A virtual environment that finds torch through a .pth file, and what pip lets a build see of it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    elsewhere, overlay = folder / "elsewhere", folder / "overlay"
    (elsewhere / "torch" / "include" / "torch" / "headeronly").mkdir(parents=True)
    (elsewhere / "torch" / "__init__.py").write_text("raise ImportError('nobody may import it')")
    python = folder / "env" / "bin" / "python"
    packages = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                              capture_output=True, text=True, check=True).stdout.strip()
    Path(packages, "shared.pth").write_text(f"{elsewhere}\n")
    overlay.mkdir()
    Path(overlay, "sitecustomize.py").write_text(
        f"import sys\nsys.path = [path for path in sys.path if path not in ({packages!r}, {str(elsewhere)!r})]\n")
    environment = {name: value for name, value in os.environ.items() if name not in ("TESSERA_TORCH", "PYTHONPATH")}
    return python, elsewhere / "torch", {**environment, "PYTHONPATH": str(overlay), "PYTHONNOUSERSITE": "1"}


@WITH_SOURCES
def test_torch_is_found_through_pth_files(tmp_path):
    python, torch_folder, environment = made_environment(tmp_path)
    found = subprocess.run([python, FIND_TORCH], capture_output=True, text=True, env=environment)
    assert (found.stdout.strip(), found.returncode) == (str(torch_folder.resolve()), 0), found.stderr
    named = subprocess.run([python, FIND_TORCH], capture_output=True, text=True,
                           env={**environment, "TESSERA_TORCH": str(torch_folder)})
    assert named.stdout == found.stdout


@WITH_SOURCES
def test_no_torch_is_one_clear_message(tmp_path):
    python, torch_folder, environment = made_environment(tmp_path)
    (torch_folder / "include" / "torch" / "headeronly").rmdir()
    found = subprocess.run([python, FIND_TORCH], capture_output=True, text=True, env=environment)
    assert found.returncode == 1 and found.stdout == ""
    assert "Install it first (pip install torch), or name its folder: TESSERA_TORCH=" in found.stderr


def program(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def chosen(folder, torch_cuda, nvcc="13.0", gpus=(), **environment):
    """What a build beside such an nvcc and such GPUs chooses for a torch that says this of itself."""
    torch_folder = folder / "torch"
    torch_folder.mkdir(exist_ok=True)
    (torch_folder / "version.py").write_text(f"from typing import Optional\n__version__ = '2.11.0'\ncuda: Optional[str] = {torch_cuda!r}\n")
    compiler = program(folder / "bin" / "nvcc", f"echo 'Cuda compilation tools, release {nvcc}, V{nvcc}.88'") if nvcc else ""
    program(folder / "bin" / "nvidia-smi", "\n".join(f"echo {gpu}" for gpu in gpus) if gpus else "exit 9")
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    known = {key: value for key, value in os.environ.items() if not key.startswith("TESSERA_TORCH")}
    answer = subprocess.run([sys.executable, BINDINGS / "choose_cuda.py", torch_folder, compiler], capture_output=True, text=True,
                            env={**known, "PATH": path, **environment})
    return answer.stdout.splitlines() if answer.returncode == 0 else answer.stderr


@WITH_SOURCES
def test_a_torch_without_cuda_gets_no_operators_for_cuda(tmp_path):
    """Also where nvcc and a GPU are."""
    on, architectures, reason = chosen(tmp_path, None, gpus=["9.0"])
    assert (on, architectures) == ("OFF", "")
    assert reason == "operators for the CPU alone: the installed torch 2.11.0 is built without CUDA"
    on, _, reason = chosen(tmp_path, "12.8", gpus=["9.0"])
    assert on == "OFF" and reason.endswith("is built for CUDA 12.8, and they need CUDA 13")
    assert chosen(tmp_path, "13.0", nvcc="12.8")[0] == "OFF"
    assert "no nvcc was found" in chosen(tmp_path, "13.0", nvcc=None)[2]


@WITH_SOURCES
def test_operators_for_cuda_are_built_for_the_gpus_that_are_there(tmp_path):
    on, architectures, reason = chosen(tmp_path, "13.0", gpus=["9.0", "8.6", "9.0"])
    assert (on, architectures) == ("ON", "86-real;90a-real")
    assert "the installed torch 2.11.0 has CUDA 13.0" in reason and "TESSERA_TORCH_CUDA_ARCHITECTURES=all" in reason
    on, architectures, reason = chosen(tmp_path, "13.0")
    assert (on, architectures) == ("ON", "") and "none is visible here" in reason
    for wanted, expected in (("all", ""), ("100-real", "100-real")):
        assert chosen(tmp_path, "13.0", gpus=["9.0"], TESSERA_TORCH_CUDA_ARCHITECTURES=wanted)[1] == expected
    assert chosen(tmp_path, "13.0", TESSERA_TORCH_CUDA="OFF")[0] == "OFF"
    assert chosen(tmp_path, None, TESSERA_TORCH_CUDA="ON")[0] == "ON"
    assert "TESSERA_TORCH_CUDA is 'perhaps': use ON, OFF or AUTO" in chosen(tmp_path, "13.0", TESSERA_TORCH_CUDA="perhaps")


@WITH_SOURCES
def test_progress_is_said_in_tenths(monkeypatch):
    backend = type(sys)("scikit_build_core.build")
    monkeypatch.setitem(sys.modules, "scikit_build_core", type(sys)("scikit_build_core"))
    sys.modules["scikit_build_core"].build = backend
    monkeypatch.setitem(sys.modules, "scikit_build_core.build", backend)
    spec = importlib.util.spec_from_file_location("tessera_build", BINDINGS / "build_tools" / "tessera_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    terminal, said = io.StringIO(), set()
    lines = ["-- tessera: operators for the CPU alone: why", *(f"[{step}/231] Building" for step in range(232)), "[1/2] Re-running"]
    for line in lines:
        module.report(line + "\n", terminal, said)
    found = terminal.getvalue().splitlines()
    assert found[0] == "  tessera: operators for the CPU alone: why"
    assert len(found) == 11 and found[-1] == "  tessera: 231 of 231 steps of the build are done"
