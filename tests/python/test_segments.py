# SPDX-License-Identifier: Apache-2.0
"""Reductions of groups of rows against plain torch and PyG: results, gradients, holders of groups, errors."""

import pytest
import torch
import torch_geometric.nn as pyg
import torch_geometric.utils as utils
from conftest import supported

import tessera
import tessera.nn

REDUCTIONS = ["sum", "mean", "max", "min", "logsumexp", "std", "var"]
GROUPS = 7  # the last one has no entries


def by_hand(src, index, groups, reduce):
    """One group after the other."""
    rows = []
    for group in range(groups):
        part = src[index == group]
        if part.size(0) == 0:
            rows.append(src.new_zeros(src.shape[1:]))
        elif reduce in ("max", "min"):
            rows.append(getattr(part, f"a{reduce}")(0))
        elif reduce == "logsumexp":
            rows.append(part.logsumexp(0))
        elif reduce in ("std", "var"):
            variance = (part - part.mean(0)).square().mean(0)
            root = variance.clamp(min=1e-5).sqrt().masked_fill(variance <= 1e-5, 0)
            rows.append(root if reduce == "std" else variance)
        else:
            rows.append(getattr(part, reduce)(0))
    return torch.stack(rows)


def drawn(device, *shape, dtype=torch.float64):
    dtype = torch.float32 if device.type != "cpu" and dtype == torch.float64 else dtype
    return torch.randn(*shape, dtype=torch.float64).to(device, dtype)


def drawn_index(device, entries, dtype=torch.int64):
    return torch.randint(0, GROUPS - 1, (entries,)).to(device, dtype)


def near(found, expected):
    assert found.shape == expected.shape and found.dtype == expected.dtype
    bound = 1e-9 if found.dtype == torch.float64 else 1e-4
    assert torch.allclose(found, expected, rtol=bound, atol=bound)


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_scatter_and_its_gradient(reduce, dtype, device):
    index = drawn_index(device, 50, dtype)
    index[-1] = 5 if (index == 5).sum() == 0 else index[-1]
    src = drawn(device, 50, 4)
    src[index == 0] = 2.5  # a group without a deviation
    found, expected = src.clone().requires_grad_(), src.clone().requires_grad_()
    out, wanted = tessera.scatter(found, index, 0, GROUPS, reduce), by_hand(expected, index, GROUPS, reduce)
    near(out, wanted)
    along = drawn(device, GROUPS, 4)
    out.backward(along)
    wanted.backward(along)
    if reduce in ("max", "min"):  # torch divides the gradient of entries that are equal
        found.grad[index == 0] = expected.grad[index == 0] = 0
    near(found.grad, expected.grad)


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_segments_are_sorted_groups(reduce, device):
    ptr = torch.tensor([0, 3, 3, 10, 11], device=device)
    src = drawn(device, 11, 3).requires_grad_()
    index = torch.repeat_interleave(torch.arange(4, device=device), ptr.diff())
    found = [tessera.segment_reduce(src, ptr, reduce), tessera.scatter(src, index, 0, 4, reduce)]
    near(*found)
    near(*(torch.autograd.grad(out.square().sum(), src)[0] for out in found))


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("shape, dim", [((20,), 0), ((3, 20), 1), ((3, 20, 2), -2), ((20, 2, 0), 0), ((0, 4), 0), ((2, 0, 3), 1)])
def test_groups_in_any_dimension(reduce, shape, dim, device):
    src = drawn(device, *shape)
    index = drawn_index(device, shape[dim])
    expected = by_hand(src.movedim(dim, 0), index, GROUPS, reduce).movedim(0, dim)
    near(tessera.scatter(src, index, dim, GROUPS, reduce), expected)
    if index.numel() > 0:
        assert tessera.scatter(src, index, dim, reduce=reduce).size(dim) == int(index.max()) + 1


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_derivatives_are_those_of_differences(reduce):
    index, src = torch.tensor([0, 2, 2, 0, 0, 3]), torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: tessera.scatter(x, index, 0, 4, reduce), src)
    assert torch.autograd.gradgradcheck(lambda x: tessera.scatter(x, index, 0, 4, reduce), src)
    assert torch.autograd.gradcheck(lambda x: tessera.softmax(x, index), src)
    assert torch.autograd.gradgradcheck(lambda x: tessera.softmax(x, index), src)
    assert torch.autograd.gradcheck(lambda x: tessera.gather(x, index), src)


@pytest.mark.parametrize("shape, dim", [((30,), 0), ((30, 4), 0), ((2, 30, 3), 1)])
def test_softmax_is_pygs(shape, dim, device):
    src, index = drawn(device, *shape), drawn_index(device, 30)
    near(tessera.softmax(src, index, num_nodes=GROUPS, dim=dim), utils.softmax(src, index, num_nodes=GROUPS, dim=dim))
    ptr = torch.tensor([0, 4, 4, 30], device=device)
    of_ptr = torch.repeat_interleave(torch.arange(3, device=device), ptr.diff())
    near(tessera.softmax(src, ptr=ptr, dim=dim), utils.softmax(src, of_ptr, num_nodes=3, dim=dim))


def test_deviations_are_those_of_pygs_aggregation(device):
    src, index = drawn(device, 40, 5), drawn_index(device, 40)
    near(tessera.scatter(src, index, 0, GROUPS, "std"), pyg.aggr.StdAggregation()(src, index, dim_size=GROUPS))


@pytest.mark.parametrize("name", ["global_add_pool", "global_mean_pool", "global_max_pool"])
@pytest.mark.parametrize("shape", [(20, 4), (20,), (3, 20, 4)])
def test_pooling_is_pygs(name, shape, device):
    ours, theirs = getattr(tessera.nn, name), getattr(pyg, name)
    x, batch = drawn(device, *shape), drawn_index(device, 20).sort().values
    near(ours(x, batch), theirs(x, batch))
    near(ours(x, batch, 9), theirs(x, batch, 9))
    near(ours(x, None), theirs(x, None))


def test_gather_takes_rows(device):
    src, index = drawn(device, 3, 8, 2).requires_grad_(), torch.tensor([7, 0, 0, 3], device=device)
    out, expected = tessera.gather(src, index, 1), src.index_select(1, index)
    assert torch.equal(out, expected)
    along = torch.randn_like(out)
    near(*(torch.autograd.grad(y, src, along)[0] for y in (out, expected)))


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("shape, dim", [((9,), 0), ((9, 4), 0), ((2, 9, 3), 1)])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_gather_with_a_reduction(reduce, shape, dim, dtype, device):
    src, ptr = drawn(device, *shape).requires_grad_(), torch.tensor([0, 3, 3, 18, 20], device=device, dtype=dtype)
    index = torch.randint(0, 8, (20,)).to(device, dtype)  # some rows several times in a group, the last in none
    rows = src.index_select(dim, index).movedim(dim, 0)
    groups = torch.repeat_interleave(torch.arange(4, device=device), ptr.diff())
    expected = by_hand(rows, groups, 4, reduce).movedim(0, dim)
    found = tessera.gather(src, index, dim, ptr, reduce)
    near(found, expected)
    along = torch.randn_like(expected)
    ours, theirs = (torch.autograd.grad(y, src, along)[0] for y in (found, expected))
    near(ours, theirs)


def test_derivatives_of_gather_with_a_reduction():
    src, index = torch.randn(6, 2, dtype=torch.float64, requires_grad=True), torch.tensor([5, 0, 0, 2, 3, 1, 5])
    for reduce in REDUCTIONS:
        def function(x):
            return tessera.gather(x, index, ptr=torch.tensor([0, 3, 3, 7]), reduce=reduce)

        assert torch.autograd.gradcheck(function, src) and torch.autograd.gradgradcheck(function, src)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_narrow_types_keep_theirs(dtype, device):
    supported(device, dtype)
    src, index = torch.randn(200, 8, device=device).to(dtype), drawn_index(device, 200)
    with torch.autocast(device.type, dtype=torch.bfloat16):  # which has no say
        for reduce in REDUCTIONS:
            out = tessera.scatter(src, index, 0, GROUPS, reduce)
            expected = by_hand(src.float(), index, GROUPS, reduce)
            assert out.dtype == dtype
            assert torch.allclose(out.float(), expected, rtol=2e-2, atol=5e-2 if dtype != torch.float32 else 1e-5)


def test_the_same_bits_twice_and_one_graph(device):
    src, index = torch.randn(5000, 16, device=device, requires_grad=True), torch.randint(0, 40, (5000,), device=device)
    found = []
    for _ in range(2):
        out = tessera.scatter(src, index, 0, 40, "mean")
        found.append((out.detach(), torch.autograd.grad(out.square().sum(), src)[0]))
    assert all(map(torch.equal, *found))
    before = tessera.counters()["graphs"]
    tessera.scatter(src, index, 0, 40, "max")
    assert tessera.counters()["graphs"] == before


def test_groups_that_change_in_place_are_noticed(device):
    src, index = drawn(device, 6, 2), torch.tensor([0, 0, 1, 1, 2, 2], device=device)
    tessera.scatter(src, index, 0, 3)
    index.copy_(index.flip(0))
    near(tessera.scatter(src, index, 0, 3), by_hand(src, index, 3, "sum"))


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_compiled_as_a_whole(reduce, device):
    def function(src, index):
        return tessera.scatter(tessera.softmax(src, index, num_nodes=GROUPS), index, 0, GROUPS, reduce) + tessera.gather(
            src, index)[:GROUPS]

    torch._dynamo.reset()
    compiled = torch.compile(function, fullgraph=True, dynamic=True, backend="aot_eager")
    for entries in (20, 33):
        src, index = drawn(device, entries, 4).requires_grad_(), drawn_index(device, entries)
        out, expected = compiled(src, index), function(src, index)
        near(out, expected)
        near(*(torch.autograd.grad(y.square().sum(), src)[0] for y in (out, expected)))


def test_after_inference_mode(device):
    """What is kept of an index serves calls that want gradients, too."""
    src, index = drawn(device, 6, 2), torch.tensor([0, 0, 1, 1, 2, 2], device=device)
    with torch.inference_mode():
        tessera.scatter(src, index, 0, 3)
    tessera.scatter(src.requires_grad_(), index, 0, 3, "max").sum().backward()


X, INDEX = torch.randn(4, 2), torch.tensor([0, 1, 1, 3])
WRONG = [(lambda: tessera.scatter(X, INDEX, reduce="mul"), ValueError, "unknown reduction 'mul': use sum, mean"),
         (lambda: tessera.scatter(X, INDEX[:3]), ValueError, "index has 3 numbers for 4 entries"),
         (lambda: tessera.scatter(X, INDEX.float()), TypeError, "index has type torch.float32: use torch.int64"),
         (lambda: tessera.scatter(X, INDEX[None]), ValueError, "use one dimension"),
         (lambda: tessera.scatter(X, INDEX, dim=2), ValueError, "dim is 2: use -2 to 1"),
         (lambda: tessera.scatter(X.long(), INDEX), TypeError, "src has type torch.int64"),
         (lambda: tessera.scatter([1.0], INDEX), TypeError, "src is a list, not a tensor"),
         (lambda: tessera.scatter(X, INDEX, dim_size=3), IndexError, r"index 3 is outside \[0, 3\): there are 3 groups"),
         (lambda: tessera.scatter(X, -INDEX, dim_size=3), IndexError, r"index -\d is outside"),
         (lambda: tessera.segment_reduce(X, torch.tensor([0, 3, 2, 4])), ValueError, "none smaller than"),
         (lambda: tessera.segment_reduce(X, torch.tensor([0, 3])), ValueError, "ptr goes from 0 to 3: use numbers from 0 to 4"),
         (lambda: tessera.softmax(X), ValueError, "give index or ptr"),
         (lambda: tessera.gather(X, torch.tensor([4])), IndexError, r"index 4 is outside \[0, 4\)"),
         (lambda: tessera.gather(X, INDEX, reduce="max"), ValueError, "reduce='max' needs ptr"),
         (lambda: tessera.gather(X, INDEX, ptr=torch.tensor([0, 5])), ValueError, "from 0 to 4, the numbers in index, none smaller"),
         (lambda: tessera.gather(X, INDEX, ptr=torch.tensor([], dtype=torch.int64)), ValueError, "ptr is empty"),
         (lambda: tessera.gather(X, INDEX + 1, ptr=torch.tensor([0, 4])), IndexError,
          r"^index 4 is outside \[0, 4\): there are 4 entries of src")]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_arguments(number):
    call, kind, text = WRONG[number]
    with pytest.raises(kind, match=text):
        call()
