# SPDX-License-Identifier: Apache-2.0
"""Rows times the matrix of their group, beside a loop over the groups."""

import random

import pytest
import torch
from conftest import DTYPES, opcheck, supported, tolerance
from torch.autograd import gradcheck, gradgradcheck

import tessera

SIZES = [[], [0], [1], [3, 0, 5], [0, 0, 0], [16, 17, 15, 1, 0, 33], [64, 63, 130, 2, 2, 2], [1] * 40]


def draw(sizes, inputs, outputs, blocks=0, dtype=torch.float64, device="cpu"):
    rows, groups = sum(sizes), len(sizes)
    parts = (blocks,) if blocks else ()
    x = torch.randn(rows, inputs * max(blocks, 1), device=device).to(dtype)
    weight = torch.randn(groups, *parts, inputs, outputs, device=device).to(dtype)
    bias = torch.randn(groups, outputs * max(blocks, 1), device=device).to(dtype)
    ptr = torch.tensor([0, *sizes], device=device).cumsum(0)
    return x, weight, bias, ptr


def looped(x, weight, bias, index):
    """The specification: row by row, in double precision."""
    rows = []
    for row, group in zip(x.double(), index.tolist()):
        matrix = weight[group].double()
        made = row @ matrix if matrix.dim() == 2 else torch.einsum("bi,bio->bo", row.view(matrix.shape[:2]), matrix).flatten()
        rows.append(made if bias is None else made + bias[group].double())
    width = weight.shape[-1] * (weight.size(1) if weight.dim() == 4 else 1)
    return torch.stack(rows) if rows else x.new_zeros(0, width).double()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_groups_are_those_of_a_loop(sizes, dtype, device):
    supported(device, dtype)
    x, weight, bias, ptr = draw(sizes, 7, 5, dtype=dtype, device=device)
    index = torch.repeat_interleave(ptr.diff())
    expected = looped(x, weight, bias, index)
    bound = 4 * tolerance(dtype) * (1 + (expected.abs().max().item() if expected.numel() else 0))
    shuffled = torch.randperm(len(index), device=device)
    for found, wanted in (
            (tessera.grouped_linear(x, weight, bias, ptr=ptr), expected),
            (tessera.grouped_linear(x, weight, bias, index=index), expected),
            (tessera.grouped_linear(x, weight, ptr=ptr.int()), looped(x, weight, None, index)),
            (tessera.grouped_linear(x[shuffled], weight, bias, index=index[shuffled]), expected[shuffled])):
        assert found.dtype == dtype and found.shape == wanted.shape
        assert torch.allclose(found.double(), wanted, atol=bound, rtol=0)


@pytest.mark.parametrize("width", [1, 2, 15, 16, 17, 64, 257])
def test_widths(width, device):
    x, weight, _, ptr = draw([70, 0, 3, 4], width, 258 - width, dtype=torch.float32, device=device)
    expected = looped(x, weight, None, torch.repeat_interleave(ptr.diff()))
    assert torch.allclose(tessera.grouped_linear(x, weight, ptr=ptr).double(), expected, atol=1e-3)


@pytest.mark.parametrize("blocks", [1, 2, 5])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_blocks(sizes, blocks):
    x, weight, bias, ptr = draw(sizes, 3, 4, blocks)
    expected = looped(x, weight, bias, torch.repeat_interleave(ptr.diff()))
    assert torch.allclose(tessera.grouped_linear(x, weight, bias, ptr=ptr), expected)


@pytest.mark.parametrize("blocks", [0, 2])
def test_gradients_are_those_of_differences(blocks):
    x, weight, bias, _ = draw([3, 0, 66, 1], 2, 3, blocks)
    index = torch.repeat_interleave(torch.tensor([3, 0, 66, 1]))[torch.randperm(70)]
    arguments = [tensor.requires_grad_() for tensor in (x, weight, bias)]

    def function(*tensors):
        return tessera.grouped_linear(*tensors, index=index)

    assert gradcheck(function, arguments)
    assert gradgradcheck(function, arguments)


def test_drawn_cases():
    """Against autograd of a loop, with results and gradients."""
    for seed in range(40):
        chosen = random.Random(seed)
        torch.manual_seed(seed)
        sizes = [chosen.choice([0, 1, 2, 9, 40, 90]) for _ in range(chosen.choice([1, 2, 8, 60]))]
        blocks = chosen.choice([0, 0, 3])
        x, weight, bias, ptr = draw(sizes, chosen.choice([1, 4, 17]), chosen.choice([1, 6]), blocks)
        index = torch.repeat_interleave(ptr.diff())[torch.randperm(len(x))]
        found = []
        for function in (lambda *given: tessera.grouped_linear(*given, index=index), lambda *given: looped(*given, index)):
            given = [tensor.clone().requires_grad_() for tensor in (x, weight, bias)]
            out = function(*given)
            total = out.square().sum() + sum(0 * tensor.sum() for tensor in given)  # also where no row has a gradient
            found.append([out, *torch.autograd.grad(total, given)])
        for mine, theirs in zip(*found):
            assert torch.allclose(mine, theirs, atol=1e-9), f"seed {seed}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("blocks", [0, 2])
def test_opchecks(dtype, blocks, device):
    supported(device, dtype)
    x, weight, bias, ptr = draw([3, 0, 70, 1], 2, 3, blocks, dtype, device)
    ptr = ptr.cpu()
    for transposed, given in ((False, x), (True, torch.randn(74, 3 * max(blocks, 1), device=device).to(dtype))):
        added = None if transposed else bias.requires_grad_()
        opcheck("grouped_product", (given.requires_grad_(), weight.requires_grad_(), added, ptr, transposed))
    y = torch.randn(74, 3 * max(blocks, 1), device=device).to(dtype).requires_grad_()
    opcheck("grouped_outer", (x.detach().requires_grad_(), y, ptr, blocks))
    opcheck("group_order", (torch.tensor([2, 0, 2], device=device), 4))


def test_compiled_as_a_whole():
    x, weight, bias, ptr = draw([3, 0, 70, 1], 4, 3, dtype=torch.float32)
    index = torch.repeat_interleave(ptr.diff())[torch.randperm(len(x))]

    def function(x, weight, bias, index, ptr):
        return tessera.grouped_linear(x, weight, bias, index=index) + tessera.grouped_linear(x, weight, ptr=ptr).relu()

    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    found = []
    for each in (function, compiled):
        given = [tensor.clone().requires_grad_() for tensor in (x, weight, bias)]
        out = each(*given, index, ptr)
        found.append([out, *torch.autograd.grad(out.square().sum(), given)])
    for mine, theirs in zip(*found):
        assert torch.allclose(mine, theirs, atol=1e-4)


def test_autocast_takes_its_type(device):
    x, weight, bias, ptr = draw([5, 80], 4, 3, dtype=torch.float32, device=device)
    with torch.autocast(device.type, torch.bfloat16):
        out = tessera.grouped_linear(x.requires_grad_(), weight.requires_grad_(), bias, ptr=ptr)
        assert out.dtype == torch.bfloat16
        out.float().sum().backward()
    assert x.grad.dtype == weight.grad.dtype == torch.float32
    assert torch.allclose(out.float(), tessera.grouped_linear(x, weight, bias, ptr=ptr), atol=0.1)


def test_an_index_that_changes_is_looked_at_again():
    x, weight, _, _ = draw([4, 4], 2, 2)
    index = torch.tensor([1, 0, 1, 0, 1, 0, 1, 0])
    tessera.grouped_linear(x, weight, index=index)
    index.fill_(1)
    assert torch.allclose(tessera.grouped_linear(x, weight, index=index), x @ weight[1])


def test_matrices_of_any_shapes():
    inputs = [torch.randn(2, 3), torch.randn(0, 4), torch.randn(5, 1)]
    others = [torch.randn(3, 2), torch.randn(4, 2), torch.randn(1, 7)]
    biases = [torch.randn(2), None, torch.randn(7)]
    for x, other, bias, out in zip(inputs, others, biases, tessera.grouped_matmul(inputs, others, biases)):
        assert torch.allclose(out, x @ other + (0 if bias is None else bias), atol=1e-6)
    assert tessera.grouped_matmul([], []) == []


@pytest.mark.parametrize("change, kind, text", [
    ({"index": torch.tensor([0, 1, 2])}, IndexError, "index has 2 for 2 groups: use 0 to 1"),
    ({"index": torch.tensor([0, -1, 1])}, IndexError, "index has -1"),
    ({"index": torch.tensor([0, 1])}, ValueError, "index has 2 numbers for 3 rows"),
    ({"index": torch.tensor([0.0, 1, 1])}, TypeError, "index has type"),
    ({"ptr": torch.tensor([0, 1])}, ValueError, "ptr goes from 0 to 1"),
    ({"ptr": torch.tensor([0, 3])}, ValueError, "ptr has 2 numbers for 2 groups"),
    ({}, ValueError, "give index or ptr"),
    ({"ptr": torch.tensor([0, 1, 3]), "x": torch.ones(3, 5)}, ValueError, "x has 5 features, weight is for 4"),
    ({"ptr": torch.tensor([0, 1, 3]), "x": torch.ones(3)}, ValueError, "x has shape"),
    ({"ptr": torch.tensor([0, 1, 3]), "weight": torch.ones(4, 2)}, ValueError, "weight has shape"),
    ({"ptr": torch.tensor([0, 1, 3]), "weight": torch.ones(2, 4, 2).double()}, TypeError, "weight has type torch.float64"),
    ({"ptr": torch.tensor([0, 1, 3]), "bias": torch.ones(2)}, ValueError, "bias has shape"),
    ({"ptr": torch.tensor([0, 1, 3]), "x": torch.ones(3, 4).long()}, TypeError, "x has type torch.int64"),
])
def test_wrong_arguments(change, kind, text):
    given = {"x": torch.ones(3, 4), "weight": torch.ones(2, 4, 2), **change}
    with pytest.raises(kind, match=text):
        tessera.grouped_linear(given.pop("x"), given.pop("weight"), given.pop("bias", None), **given)
