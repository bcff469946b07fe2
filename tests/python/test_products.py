# SPDX-License-Identifier: Apache-2.0
"""The products with matrices that layers are made of: any size and layout, streams, captured graphs."""

import copy

import pytest
import torch
from conftest import random_edges

import tessera
import tessera.nn

needs_gpu = pytest.mark.skipif(not (torch.cuda.is_available() and tessera.has_cuda()),
                               reason="needs a GPU and the operators for CUDA")
KINDS = ["GCN", "SAGE", "GIN", "GAT", "GATv2"]
# How far gradients in bf16 may be off. Where a value close to 0 is rounded to the other side of a ReLU, a
# gradient takes another slope, and those of attention's scores nearly cancel.
BF16_GRADIENTS = {"GCN": 0.02, "SAGE": 0.02, "GIN": 0.1, "GAT": 0.25, "GATv2": 0.15}
# Among millions of scores' terms there is one so close to 0 in fp32, too, in one draw of a few.
MANY_ROWS = 40000
GRADIENTS_OF_MANY_ROWS = {"GAT": 1e-2, "GATv2": 3e-3}


def layer_of(kind, inputs, outputs):
    if kind == "GIN":
        network = torch.nn.Sequential(torch.nn.Linear(inputs, outputs), torch.nn.ReLU(), torch.nn.Linear(outputs, outputs))
        return tessera.nn.GINConv(network)
    return getattr(tessera.nn, f"{kind}Conv")(inputs, outputs)


def gradients(layer, x, index, grad, dtype=None):
    """Results, and gradients of features and parameters."""
    x = x.detach().requires_grad_()
    with torch.autocast(x.device.type, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
        out = layer(x, index)
    return [out, *torch.autograd.grad(out, [x, *layer.parameters()], grad.to(out.dtype))]


def agree(found, expected, bound):
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert (one.cpu().double() - other).norm() <= bound * (1 + other.norm())


def exact(layer, x, index, grad):
    """The same in double precision, on the CPU."""
    wide = copy.deepcopy(layer).cpu().double()
    return gradients(wide, x.cpu().double(), index.cpu(), grad.cpu().double())


SIZES = [(1, 1, 1), (17, 3, 7), (300, 130, 64), (300, 64, 130), (9000, 40, 7), (MANY_ROWS, 64, 40)]


def case_of(device, kind, rows, inputs, outputs):
    if device.type == "cpu" and rows > 300:
        pytest.skip("runs on a GPU: to torch's products on a CPU all sizes are the same")
    index = random_edges(rows, rows, 3 * rows, device)
    layer = layer_of(kind, inputs, outputs).to(device)
    return index, layer, torch.randn(rows, inputs, device=device), torch.randn(rows, outputs, device=device)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows,inputs,outputs", SIZES)
def test_any_size(device, kind, rows, inputs, outputs):
    index, layer, x, grad = case_of(device, kind, rows, inputs, outputs)
    result, *found = gradients(layer, x, index, grad)
    wide_result, *expected = exact(layer, x, index, grad)
    agree([result], [wide_result], 1e-4)
    agree(found, expected, GRADIENTS_OF_MANY_ROWS.get(kind, 1e-4) if rows == MANY_ROWS else 1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows,inputs,outputs", SIZES)
def test_any_size_in_bf16(device, kind, rows, inputs, outputs):
    """Of numbers that bf16 holds: what is off was rounded on the way."""
    index, layer, x, grad = case_of(device, kind, rows, inputs, outputs)
    with torch.no_grad():
        for values in [x, grad, *layer.parameters()]:
            values.copy_(values.bfloat16())
    result, *found = gradients(layer, x, index, grad, torch.bfloat16)
    wide_result, *expected = exact(layer, x, index, grad)
    agree([result], [wide_result], 0.02)
    agree(found, expected, BF16_GRADIENTS[kind])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", ["columns", "transposed", "every_other", "expanded"])
def test_any_layout(device, kind, layout):
    """Features as views, and gradients that are one row for all vertices."""
    rows, inputs, outputs = 200, 12, 8
    index, layer = random_edges(rows, rows, 900, device), layer_of(kind, inputs, outputs).to(device)
    x = {"columns": lambda: torch.randn(rows, 40, device=device)[:, 3:15],
         "transposed": lambda: torch.randn(inputs, rows, device=device).t(),
         "every_other": lambda: torch.randn(rows, 24, device=device)[:, ::2],
         "expanded": lambda: torch.randn(rows, inputs, device=device)}[layout]()
    grad = torch.randn(outputs, device=device).expand(rows, outputs) if layout == "expanded" else torch.randn(
        rows, outputs, device=device)
    agree(gradients(layer, x, index, grad), exact(layer, x, index, grad), 1e-4)


@needs_gpu
@pytest.mark.parametrize("kind", ["SAGE", "GIN", "GAT"])
def test_streams_have_memory_of_their_own(kind):
    index, layer = random_edges(3000, 3000, 40000, "cuda"), layer_of(kind, 64, 32).cuda()
    x, grad = torch.randn(3000, 64, device="cuda"), torch.randn(3000, 32, device="cuda")
    expected = gradients(layer, x, index, grad)
    torch.cuda.synchronize()
    streams, results = [torch.cuda.Stream() for _ in range(2)], []
    for _ in range(10):
        for stream in streams:
            with torch.cuda.stream(stream):
                results.append(gradients(layer, x, index, grad))
    torch.cuda.synchronize()
    assert all(torch.equal(a, b) for found in results for a, b in zip(found, expected))


@needs_gpu
def test_captured_graphs_have_memory_of_their_own():
    """Two of them, replayed on two streams at once, beside work that is not captured."""
    index, x = random_edges(3000, 3000, 40000, "cuda"), torch.randn(3000, 64, device="cuda")
    layers = [layer_of(kind, 64, 32).cuda() for kind in ("GIN", "SAGE")]
    with torch.no_grad():
        expected = [layer(x, index) for layer in layers]
        captured = []
        for layer in layers:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                captured.append((graph, layer(x, index)))
        streams = [torch.cuda.Stream() for _ in range(2)]
        torch.cuda.synchronize()
        for _ in range(20):
            for stream, (graph, _) in zip(streams, captured):
                with torch.cuda.stream(stream):
                    graph.replay()
            beside = layers[0](x, index)
        torch.cuda.synchronize()
    assert torch.equal(beside, expected[0])
    assert all(torch.equal(out, wanted) for (_, out), wanted in zip(captured, expected))


@needs_gpu
@pytest.mark.parametrize("kind", KINDS)
def test_features_that_were_left_on_the_cpu(kind):
    index, x, layer = random_edges(30, 30, 90), torch.randn(30, 8), layer_of(kind, 8, 4).cuda()
    with pytest.raises(ValueError, match="x lies on cpu, the layer on cuda:0"):
        layer(x, index)
    layer(x.cuda(), index.cuda())


@needs_gpu
def test_the_cache_gives_memory_back():
    index, x, layer = random_edges(300, 300, 900, "cuda"), torch.randn(300, 8, device="cuda"), layer_of("GIN", 8, 4).cuda()
    tessera.clear_cache()
    before = torch.cuda.memory_allocated()
    with torch.no_grad():
        layer(x, index)
        tessera.clear_cache()
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() <= before + 512
