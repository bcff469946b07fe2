# SPDX-License-Identifier: Apache-2.0
"""torch's own checks of operators (opcheck), and derivatives against differences in fp64."""

from pathlib import Path

import pytest
import torch
from conftest import DTYPES, opcheck, random_edges, supported
from torch.autograd import gradcheck, gradgradcheck

import tessera


def test_every_operator_is_checked():
    """An operator that is added needs an opcheck."""
    schemas = torch._C._jit_get_all_schemas()
    names = {schema.name.removeprefix("tessera::") for schema in schemas if schema.name.startswith("tessera::")}
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert len(names) > 30
    assert not [name for name in names if f'opcheck("{name.removesuffix("_run")}"' not in tests]


def spmm_arguments(device, dtype, reduce, weighted, grad=True):
    index = random_edges(12, 9, 60, device, repeated=reduce in (0, 1))
    x = torch.randn(9, 5, device=device).to(dtype).requires_grad_(grad)
    weight = None
    if weighted:
        weight = torch.rand(index.size(1), device=device).to(dtype).requires_grad_(grad)
    return (x, index, None, weight, None, 12, 9, 0, 0, 1.0, 0, reduce, 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduce", [0, 1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_opcheck_spmm(device, dtype, reduce, weighted):
    supported(device, dtype)
    arguments = spmm_arguments(device, dtype, reduce, weighted)
    opcheck("spmm", arguments)
    x, index, _, weight, *rest = [a.detach() if isinstance(a, torch.Tensor) else a for a in arguments]
    _, *winners = torch.ops.tessera.spmm(x, index, None, weight, *rest)
    assert len(winners) == (reduce >= 2)
    backward = (torch.randn(12, 5, device=device).to(dtype), x if weighted else None,
                winners[0] if winners else None, index, None, weight, *rest[1:], True, weighted)
    opcheck("spmm_backward", backward)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("heads", [1, 2])
def test_opcheck_spmm_with_all_that_is_added(device, dtype, heads):
    """Loops, scales, a bias, and numbers for each head."""
    supported(device, dtype)
    index = random_edges(9, 9, 60, device)

    def draw(*shape):
        return torch.randn(*shape, device=device).to(dtype).requires_grad_()

    scaled = (draw(9, 4), index, None, None, draw(4), 9, 9, 0, 1, 2.0, 1, 0, 0)
    weighted = (draw(9, 4), index, None, draw(60 + 9, heads), None, 9, 9, 0, 1, 1.0, 0, 0, 0)
    for arguments in (scaled, weighted):
        opcheck("spmm", arguments)


@pytest.mark.parametrize("dtype", DTYPES)
def test_opcheck_edge_operators(device, dtype):
    supported(device, dtype)
    index = random_edges(12, 9, 60, device)
    u = torch.randn(12, 6, device=device).to(dtype).requires_grad_()
    v = torch.randn(9, 6, device=device).to(dtype).requires_grad_()
    for loops in (0, 1):
        graph = (index, None, 12, 9, 0, loops)
        edges = 60 + (9 if loops == 1 else 0)
        for function, heads in ((0, 2), (1, 6)):
            opcheck("sddmm", (u, v, *graph, heads, function, 0))
            grad = torch.randn(edges, heads, device=device).to(dtype)
            opcheck("sddmm_backward", (grad, u.detach(), v.detach(), *graph, heads, function, 0))
        scores = torch.randn(edges, 2, device=device).to(dtype).requires_grad_()
        opcheck("edge_softmax", (scores, *graph, 0))
        weights = torch.ops.tessera.edge_softmax(scores.detach(), *graph, 0)
        opcheck("edge_softmax_backward", (weights, torch.randn_like(weights), *graph, 0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form, has_terms", [(0, False), (1, False), (2, False), (0, True), (1, True),
                                             (2, True)])
def test_opcheck_attention(device, dtype, form, has_terms):
    supported(device, dtype)
    index = random_edges(12, 9, 60, device)
    size = 2 if form == 0 else 8

    def draw(*shape):
        return torch.randn(*shape, device=device).to(dtype).requires_grad_()

    vector = draw(8) if form == 1 else None
    term = draw(60 + 9, 8 if form == 1 else 2) if has_terms else None
    arguments = (draw(12, size), draw(9, size), draw(9, 8), vector, term, None, index, None, 12, 9, 0,
                 1, form, 2, 1.0, 0.2, 0.0, 0)
    opcheck("attention", arguments)
    detached = [a.detach() if isinstance(a, torch.Tensor) else a for a in arguments]
    output, log_sum = torch.ops.tessera.attention(*detached)
    opcheck("attention_backward", (torch.randn_like(output), output, log_sum, *detached))
    if has_terms:
        return
    target, source, value, vector, _, _, *graph = detached[:12]
    opcheck("attention_weights", (target, source, value, log_sum, vector, *graph, form, 2, 1.0, 0.2, 0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_opcheck_attention_by_cosines(device, dtype):
    if device.type == "cpu":
        pytest.skip("an operator of the GPU; on the CPU it is a product of unit rows")
    index, nothing = random_edges(9, 9, 60, device), torch.empty(0, 0, device=device, dtype=dtype)
    value = torch.randn(9, 8, device=device).to(dtype).requires_grad_()
    factor = torch.ones(1, device=device).to(dtype).requires_grad_()
    arguments = (nothing, nothing, value, factor, None, None, index, None, 9, 9, 0, 1, 3, 1, 1.0, 0.0, 0.0, 0)
    opcheck("attention", arguments)
    detached = [a.detach() if isinstance(a, torch.Tensor) else a for a in arguments]
    output, log_sum = torch.ops.tessera.attention(*detached)
    opcheck("attention_backward", (torch.randn_like(output), output, log_sum, *detached))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", [0, 1, 2])
def test_opcheck_attention_with_dropout(device, form, dtype):
    supported(device, dtype)
    index, size = random_edges(12, 9, 60, device), 2 if form == 0 else 8

    def draw(*shape):
        return torch.randn(*shape, device=device).to(dtype).requires_grad_()

    seed = torch.tensor([5, 7], device=device)
    arguments = (draw(12, size), draw(9, size), draw(9, 8), draw(8) if form == 1 else None, None, seed, index,
                 None, 12, 9, 0, 1, form, 2, 1.0, 0.2, 0.5, 0)
    opcheck("attention", arguments)
    detached = [a.detach() if isinstance(a, torch.Tensor) else a for a in arguments]
    output, log_sum = torch.ops.tessera.attention(*detached)
    opcheck("attention_backward", (torch.randn_like(output), output, log_sum, *detached))


def test_derivatives_in_fp64():
    index = random_edges(8, 6, 30)
    graph = tessera.Graph(index, 8, 6)
    x = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.rand(30, dtype=torch.float64, requires_grad=True)
    for reduce in ("sum", "mean"):
        assert gradcheck(lambda x, w: tessera.spmm(graph, x, w, reduce=reduce), (x, weight))
        assert gradgradcheck(lambda x, w: tessera.spmm(graph, x, w, reduce=reduce), (x, weight))
    for reduce in ("max", "min"):
        assert gradcheck(lambda x: tessera.spmm(graph, x, reduce=reduce), (x,))
        assert gradgradcheck(lambda x: tessera.spmm(graph, x, reduce=reduce).pow(3), (x,), fast_mode=True)
    unique = random_edges(8, 6, 20, repeated=False)
    few = torch.rand(unique.size(1), dtype=torch.float64, requires_grad=True)
    for reduce in ("max", "min"):
        assert gradcheck(
            lambda x, w: tessera.spmm(tessera.Graph(unique, 8, 6), x, w, reduce=reduce), (x, few))
    square = tessera.Graph(random_edges(6, 6, 20), 6, 6)
    bias = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(
        lambda x, b: tessera.spmm(square, x, bias=b, loops="one_each", norm="symmetric"), (x, bias))
    u = torch.randn(8, 4, dtype=torch.float64, requires_grad=True)
    v = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda u, v: tessera.sddmm(graph, u, v, heads=2), (u, v))
    assert gradcheck(lambda u, v: tessera.sddmm(graph, u, v, heads=4, function="add"), (u, v))
    assert gradgradcheck(lambda u, v: tessera.sddmm(graph, u, v, heads=2), (u, v), fast_mode=True)
    assert gradgradcheck(lambda u, v: tessera.sddmm(graph, u, v, heads=4, function="add").pow(3), (u, v), fast_mode=True)
    scores = torch.randn(30, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda s: tessera.edge_softmax(graph, s), (scores,))
    assert gradgradcheck(lambda s: tessera.edge_softmax(graph, s), (scores,), fast_mode=True)
    loops = torch.randn(26, 1, dtype=torch.float64, requires_grad=True)
    assert gradgradcheck(lambda s: tessera.edge_softmax(square, s, loops="one_each"), (loops,), fast_mode=True)


@pytest.mark.parametrize("form", ["additive", "v2", "dot"])
def test_derivatives_of_attention_in_fp64(form):
    graph = tessera.Graph(random_edges(8, 6, 30), 8, 6)
    size = 2 if form == "additive" else 4
    tensors = [torch.randn(8, size), torch.randn(6, size), torch.randn(6, 4)]
    if form == "v2":
        tensors.append(torch.randn(4))
    tensors = [tensor.double().requires_grad_() for tensor in tensors]

    def run(*tensors):
        return tessera.attention(graph, *tensors, form=form, heads=2, loops="one_each")

    def weights(*tensors):
        return tessera.attention_weights(graph, *tensors, form=form, heads=2, loops="one_each")

    def with_term(term, *tensors):
        return tessera.attention(graph, *tensors, form=form, heads=2, loops="one_each", edge_term=term)

    assert gradcheck(run, tensors)
    assert gradcheck(weights, tensors)
    term = torch.randn(36, 4 if form == "v2" else 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(with_term, [term, *tensors])
    for function, given in ((run, tensors), (weights, tensors), (with_term, [term, *tensors])):
        assert gradgradcheck(function, given, fast_mode=True)
    dropped = tessera.attention(graph, *tensors, form=form, heads=2, dropout=0.5)
    first = torch.autograd.grad(dropped.sum(), tensors[2], create_graph=True)[0]
    with pytest.raises(NotImplementedError, match="second derivative of attention with dropout"):
        first.sum().backward()


def test_opcheck_parts_of_graphs(device):
    if device.type != "cpu":
        pytest.skip("graphs are cut on a CPU")
    import tessera.loader  # noqa: F401  defines the operator

    opcheck("vertex_parts", (random_edges(12, 12, 60, device), None, 12, 12, 0, 0, 3, 1))
