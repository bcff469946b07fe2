# SPDX-License-Identifier: Apache-2.0
"""Forward-mode derivatives against differences in fp64, and torch.func.jvp against plain torch."""

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from conftest import random_edges
from torch.autograd import gradcheck
from torch.func import jvp

import tessera

GRAPH = tessera.Graph(random_edges(8, 6, 30), 8, 6)


def drawn(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def checked(function, *tensors):
    """Both modes, and each against the other."""
    assert gradcheck(function, tensors, check_forward_ad=True, fast_mode=True)
    along = [torch.randn_like(tensor) for tensor in tensors]
    plain = [tensor.detach() for tensor in tensors]
    out, found = jvp(function, tuple(plain), tuple(along))
    with forward_ad.dual_level():
        dual = function(*map(forward_ad.make_dual, plain, along))
        assert torch.allclose(forward_ad.unpack_dual(dual).tangent, found)
        assert torch.allclose(forward_ad.unpack_dual(dual).primal, out)
    for number, tensor in enumerate(plain):  # tangents of one alone
        others = [*plain[:number], *plain[number + 1:]]
        _, one = jvp(lambda tensor: function(*others[:number], tensor, *others[number:]), (tensor,), (along[number],))
        found = found - one
    assert torch.allclose(found, torch.zeros_like(found), atol=1e-9)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
def test_sums(reduce):
    checked(lambda x: tessera.spmm(GRAPH, x, reduce=reduce), drawn(6, 3))
    if reduce in ("sum", "mean"):
        checked(lambda x, weight, bias: tessera.spmm(GRAPH, x, weight, reduce=reduce, bias=bias), drawn(6, 3), drawn(30), drawn(3))


@pytest.mark.parametrize("function, heads", [("dot", 2), ("add", 4)])
def test_numbers_of_edges(function, heads):
    checked(lambda u, v: tessera.sddmm(GRAPH, u, v, heads=heads, function=function), drawn(8, 4), drawn(6, 4))


def test_softmax():
    checked(lambda scores: tessera.edge_softmax(GRAPH, scores), drawn(30, 2))


@pytest.mark.parametrize("form", ["additive", "v2", "dot"])
@pytest.mark.parametrize("has_term", [False, True])
def test_attention(form, has_term):
    size = 2 if form == "additive" else 4
    tensors = [drawn(8, size), drawn(6, size), drawn(6, 4), *([drawn(4)] if form == "v2" else [])]
    term = [drawn(30, 4 if form == "v2" else 2)] if has_term else []

    def run(*given):
        given, term = (given[:-1], given[-1]) if has_term else (given, None)
        return tessera.attention(GRAPH, *given, form=form, heads=2, edge_term=term)

    checked(run, *tensors, *term)
    if not has_term:
        checked(lambda *given: tessera.attention_weights(GRAPH, *given, form=form, heads=2), *tensors[:2], tensors[2], *tensors[3:])


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "logsumexp", "std", "var"])
def test_groups(reduce):
    index = torch.tensor([0, 2, 2, 0, 0, 3])
    checked(lambda x: tessera.scatter(x, index, 0, 4, reduce), drawn(6, 2))
    checked(lambda x: tessera.softmax(x, index), drawn(6, 2))
    checked(lambda x: tessera.gather(x, index), drawn(6, 2))


def test_what_has_none_says_so():
    x = drawn(6, 3).detach()
    weight, terms = torch.rand(30, dtype=torch.float64), torch.randn(30, 3, dtype=torch.float64)
    scores, few = torch.randn(8, 1, dtype=torch.float64), torch.randn(6, 1, dtype=torch.float64)
    calls = {"messages": lambda x: tessera.messages(GRAPH, x, terms),
             "spmm with max or min of weighted edges": lambda x: tessera.spmm(
                 tessera.Graph(torch.unique(GRAPH.index, dim=1), 8, 6), x, weight[:torch.unique(GRAPH.index, dim=1).size(1)], "max"),
             "attention with dropout": lambda x: tessera.attention(GRAPH, scores, few, x, dropout=0.5)}
    for name, call in calls.items():
        with forward_ad.dual_level():
            call(x)  # without a tangent it may run
            with pytest.raises(NotImplementedError, match=f"forward-mode derivative of {name}"):
                call(forward_ad.make_dual(x, x))
