# SPDX-License-Identifier: Apache-2.0
"""What the Python tests share. They need the installed package; see `make test-python`."""

import faulthandler
import os
import sys

import pytest
import torch

import tessera

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() and tessera.has_cuda() else [])


def pytest_collection_modifyitems(config, items):
    """Leaves to this process its share of the tests: TESSERA_TEST_SHARE=1/2 is every second, from the second one on."""
    share, processes = map(int, os.environ.get("TESSERA_TEST_SHARE", "0/1").split("/"))
    others = [test for i, test in enumerate(items) if i % processes != share]
    config.hook.pytest_deselected(items=others)
    items[:] = items[share::processes]


@pytest.fixture(params=DEVICES)
def device(request):
    return torch.device(request.param)


@pytest.fixture(autouse=True)
def time_limit():
    """A test that hangs ends the process with the stacks of its threads."""
    faulthandler.dump_traceback_later(1200, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(20260115)


@pytest.fixture(autouse=True)
def alone():
    """No test leaves ranks behind, not even one."""
    yield
    if "tessera.distributed" in sys.modules:
        tessera.distributed.end()


@pytest.fixture(scope="session", autouse=True)
def pygs_code():
    """PyG writes the code of a class from its first layer, without the part for sparse matrices where that one's aggregation
    has none: a test that makes such a layer must not be the first."""
    import torch_geometric.nn as layers
    linear = torch.nn.Linear(2, 2)
    for layer in (layers.GCNConv(2, 2), layers.SAGEConv(2, 2), layers.GINConv(linear), layers.SGConv(2, 2), layers.APPNP(1, 0.1),
                  layers.ClusterGCNConv(2, 2)):
        assert layer.fuse


@pytest.fixture
def products():
    """torch.backends.cuda.matmul, whose precision is that of a new process, before a test and after it. A setting of
    products alone hides one for all that torch does, also where it was put back."""
    def fresh():
        settings.allow_tf32 = False
        settings.fp32_precision = torch.backends.fp32_precision = "none"

    settings = torch.backends.cuda.matmul
    fresh()
    yield settings
    fresh()


def random_edges(targets, sources, edges, device="cpu", dtype=torch.int64, repeated=True, seed=7):
    """edge_index of a random graph; vertices 0 to 2 are hubs, the last one has no edges."""
    draw = torch.Generator().manual_seed(seed)
    source = torch.randint(0, max(sources - 1, 1), (edges,), generator=draw)
    target = torch.randint(0, max(targets - 1, 1), (edges,), generator=draw)
    target[: edges // 4] %= 3
    index = torch.stack([source, target])
    if not repeated:
        index = torch.unique(index, dim=1)[:, torch.randperm(
            torch.unique(index, dim=1).size(1), generator=draw)]
    return index.to(device, dtype)


def gathered(index, x, targets, weight=None, reduce="sum"):
    """spmm in plain torch, in double precision."""
    messages = x.double()[index[0].long()]
    if weight is not None:
        messages = messages * weight.double()[:, None]
    place = index[1].long()[:, None].expand_as(messages)
    name = {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin"}[reduce]
    zeros = messages.new_zeros(targets, x.size(1))
    return zeros.scatter_reduce(0, place, messages, name, include_self=False)


def tolerance(dtype):
    return {torch.float64: 1e-9, torch.float32: 2e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}[dtype]


DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


def without_gradients(arguments):
    def detached(argument):
        if isinstance(argument, (list, tuple)):
            return [detached(one) for one in argument]
        return argument.detach() if isinstance(argument, torch.Tensor) else argument

    return tuple(map(detached, arguments))


def opcheck(name, arguments, checks=CHECKS):
    """torch's own checks of an operator, and of its twin without derivatives where it has one."""
    operators = torch.ops.tessera
    torch.library.opcheck(getattr(operators, name).default, arguments, test_utils=checks)
    twin = getattr(operators, f"{name}_run", None)
    if twin is not None:
        torch.library.opcheck(twin.default, without_gradients(arguments), test_utils=("test_schema", "test_faketensor"))


def supported(device, dtype):
    if device.type == "cuda" and dtype == torch.float64:
        pytest.skip("fp64 is of the CPU")


def close(actual, expected, dtype):
    bound = tolerance(dtype) * (1 + expected.abs().max().item())
    assert (actual.double() - expected.double()).abs().max().item() <= bound
