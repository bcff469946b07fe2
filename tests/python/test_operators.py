# SPDX-License-Identifier: Apache-2.0
"""Every operator against plain torch."""

import pytest
import torch
from conftest import DTYPES, close, gathered, opcheck, random_edges, supported
from torch.autograd import gradcheck, gradgradcheck

import tessera


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("index_dtype", [torch.int64, torch.int32])
def test_spmm_is_what_torch_computes(device, dtype, reduce, index_dtype):
    supported(device, dtype)
    for targets, sources, edges, features in [(17, 31, 120, 16), (1, 1, 1, 1), (33, 15, 400, 33)]:
        index = random_edges(targets, sources, edges, device, index_dtype)
        x = torch.randn(sources, features, device=device).to(dtype)
        graph = tessera.Graph(index, targets, sources)
        close(tessera.spmm(graph, x, reduce=reduce), gathered(index, x, targets, None, reduce), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
def test_spmm_with_weights(device, dtype, reduce):
    supported(device, dtype)
    index = random_edges(40, 40, 300, device, repeated=False)
    weight = torch.rand(index.size(1), device=device)
    x = torch.randn(40, 24, device=device).to(dtype)
    y = tessera.spmm(tessera.Graph(index, 40, 40), x, weight, reduce=reduce)
    close(y, gathered(index, x, 40, weight.to(dtype), reduce), dtype)


@pytest.mark.parametrize("loops, expected", [("one_each", "one"), ("dropped", "none"),
                                             ("one_more", "more")])
def test_self_loops(device, loops, expected):
    index = torch.tensor([[0, 1, 1, 2, 1], [0, 1, 1, 0, 2]], device=device)
    x = torch.eye(4, device=device)
    y = tessera.spmm(tessera.Graph(index, 4, 4), x, loops=loops)
    others = torch.zeros(4, 4, device=device)
    others[0, 2] = others[2, 1] = 1
    given = torch.diag(torch.tensor([1.0, 2.0, 0.0, 0.0], device=device))
    diagonal = {"one": torch.eye(4, device=device), "none": torch.zeros(4, 4, device=device),
                "more": given + torch.eye(4, device=device)}[expected]
    assert torch.equal(y, others + diagonal)


def test_values_of_added_loops_come_last(device):
    index = torch.tensor([[2, 0, 1], [0, 0, 2]], device=device)
    weight = torch.tensor([3.0, 100.0, 5.0, 10.0, 20.0, 30.0], device=device)
    y = tessera.spmm(tessera.Graph(index, 3, 3), torch.eye(3, device=device), weight, loops="one_each")
    expected = torch.tensor([[10.0, 0, 3], [0, 20, 0], [0, 5, 30]], device=device)
    assert torch.equal(y, expected)


def test_sddmm_and_softmax(device):
    index = random_edges(21, 13, 200, device)
    u, v = torch.randn(21, 12, device=device), torch.randn(13, 12, device=device)
    graph = tessera.Graph(index, 21, 13)
    dots = tessera.sddmm(graph, u, v, heads=3)
    expected = (u[index[1]] * v[index[0]]).view(-1, 3, 4).sum(-1)
    close(dots, expected, torch.float32)
    sums = tessera.sddmm(graph, u[:, :2], v[:, :2], heads=2, function="add")
    close(sums, u[index[1], :2] + v[index[0], :2], torch.float32)
    weights = tessera.edge_softmax(graph, dots)
    from torch_geometric.utils import softmax

    close(weights, softmax(expected, index[1], num_nodes=21), torch.float32)


@pytest.mark.parametrize("form", ["additive", "v2", "dot"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_and_its_weights(device, form, dtype):
    supported(device, dtype)
    index = random_edges(25, 18, 160, device)
    graph = tessera.Graph(index, 25, 18)
    heads, width = 2, 8
    size = heads if form == "additive" else heads * width
    target = torch.randn(25, size, device=device).to(dtype)
    source = torch.randn(18, size, device=device).to(dtype)
    value = torch.randn(18, heads * width, device=device).to(dtype)
    vector = torch.randn(heads * width, device=device).to(dtype) if form == "v2" else None
    options = dict(form=form, heads=heads, scale=0.5 if form == "dot" else 1.0)
    out = tessera.attention(graph, target, source, value, vector, **options)
    weights = tessera.attention_weights(graph, target, source, value, vector, **options)
    messages = weights.double()[:, :, None] * value.double()[index[0]].view(-1, heads, width)
    expected = torch.zeros(25, heads, width, device=device, dtype=torch.float64)
    expected.index_add_(0, index[1], messages)
    close(out, expected.view(25, -1), dtype)
    rows = torch.zeros(25, heads, device=device, dtype=torch.float64)
    rows.index_add_(0, index[1], weights.double())
    has_edges = torch.bincount(index[1], minlength=25) > 0
    close(rows[has_edges], torch.ones_like(rows[has_edges]), dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_by_cosines(device, dtype):
    index = random_edges(25, 25, 160, device)
    graph = tessera.Graph(index, 25, 25)
    value = torch.randn(25, 8, device=device).to(dtype).requires_grad_()
    factor = torch.tensor([1.5], device=device).to(dtype).requires_grad_()
    out = tessera.attention(graph, None, None, value, factor, form="cosine", loops="one_each")
    out.float().square().sum().backward()
    found = [out, value.grad, factor.grad]
    wide = [t.detach().float().requires_grad_() for t in (value, factor)]
    unit = torch.nn.functional.normalize(wide[0], dim=-1)
    expected = tessera.attention(graph, wide[1] * unit, unit, wide[0], form="dot", loops="one_each")
    expected.square().sum().backward()
    for mine, theirs in zip(found, [expected, wide[0].grad, wide[1].grad]):
        close(mine, theirs, dtype)
    for wrong, what in [((value, None, value, factor), "alone"), ((None, None, value, None), "number")]:
        with pytest.raises(ValueError, match=what):
            tessera.attention(graph, *wrong, form="cosine")


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_weight_for_each_head(device, dtype):
    supported(device, dtype)
    index = random_edges(25, 18, 160, device)
    x = torch.randn(18, 12, device=device).to(dtype)
    weight = torch.rand(160, 3, device=device).to(dtype)
    bias = torch.randn(12, device=device).to(dtype)
    before = tessera.counters()["runs"]
    y = tessera.spmm(tessera.Graph(index, 25, 18), x, weight, bias=bias)
    assert tessera.counters()["runs"] == before + 1
    parts = [gathered(index, x[:, 4 * h : 4 * h + 4], 25, weight[:, h]) for h in range(3)]
    close(y, torch.cat(parts, dim=1) + bias, dtype)
    means = tessera.spmm(tessera.Graph(index, 25, 18), x, weight, reduce="mean")
    parts = [gathered(index, x[:, 4 * h : 4 * h + 4], 25, weight[:, h], "mean") for h in range(3)]
    close(means, torch.cat(parts, dim=1), dtype)


def test_derivatives_of_weights_for_each_head():
    graph = tessera.Graph(random_edges(8, 6, 30), 8, 6)
    x = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    weight = torch.rand(30, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x, w: tessera.spmm(graph, x, w), (x, weight))
    assert gradgradcheck(lambda x, w: tessera.spmm(graph, x, w), (x, weight))
    looped = torch.rand(36, 2, dtype=torch.float64, requires_grad=True)
    square = tessera.Graph(random_edges(6, 6, 30), 6, 6)
    assert gradcheck(lambda x, w: tessera.spmm(square, x, w, loops="one_each"), (x, looped))


def test_weights_for_each_head_compile(device):
    index = random_edges(25, 18, 160, device)
    x = torch.randn(18, 12, device=device, requires_grad=True)
    weight = torch.rand(160, 3, device=device, requires_grad=True)
    opcheck("spmm", (x, index, None, weight, None, 25, 18, 0, 0, 1.0, 0, 0, 0))
    graph = tessera.Graph(index, 25, 18)
    compiled = torch.compile(lambda x, w: tessera.spmm(graph, x, w), fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x, weight), tessera.spmm(graph, x, weight))


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_graphs_without_edges_have_weights_for_each_head(heads, device):
    index = torch.empty(2, 0, dtype=torch.int64, device=device)
    x = torch.randn(5, 8, device=device, requires_grad=True)
    weight = torch.rand(0, heads, device=device, requires_grad=True)
    y = tessera.spmm(tessera.Graph(index, 5, 5), x, weight)
    y.sum().backward()
    assert not y.any() and not x.grad.any() and weight.grad.shape == weight.shape


@pytest.mark.parametrize("form", ["additive", "v2", "dot"])
def test_a_term_for_each_edge_in_attention(device, form):
    index = random_edges(25, 18, 160, device)
    graph = tessera.Graph(index, 25, 18)
    heads, width = 2, 8
    size = heads if form == "additive" else heads * width
    target, source = torch.randn(25, size, device=device), torch.randn(18, size, device=device)
    value = torch.randn(18, heads * width, device=device)
    vector = torch.randn(heads * width, device=device) if form == "v2" else None
    term = torch.randn(160, size if form == "v2" else heads, device=device)
    out = tessera.attention(graph, target, source, value, vector, form=form, heads=heads, scale=0.5,
                            edge_term=term)
    to, of = index[1], index[0]
    if form == "additive":
        scores = torch.nn.functional.leaky_relu(target[to] + source[of] + term, 0.2)
    elif form == "dot":
        scores = 0.5 * (target[to] * source[of]).view(-1, heads, width).sum(-1) + term
    else:
        ends = torch.nn.functional.leaky_relu(target[to] + source[of] + term, 0.2)
        scores = (ends * vector).view(-1, heads, width).sum(-1)
    from torch_geometric.utils import softmax

    weights = softmax(scores, to, num_nodes=25)
    messages = (weights[:, :, None] * value[of].view(-1, heads, width)).view(-1, heads * width)
    close(out, torch.zeros(25, heads * width, device=device).index_add_(0, to, messages), torch.float32)
    without = tessera.attention(graph, target, source, value, vector, form=form, heads=heads, scale=0.5)
    nothing = tessera.attention(graph, target, source, value, vector, form=form, heads=heads, scale=0.5,
                                edge_term=torch.zeros_like(term))
    close(nothing, without, torch.float32)


@pytest.mark.parametrize("form", ["additive", "v2", "dot"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("autocast", [False, True])
def test_terms_of_edges_beside_16_bits(device, form, dtype, autocast):
    """The kernel that takes terms computes in fp32: what comes out is rounded once."""
    index, heads = random_edges(20, 20, 160, device), 2
    size = heads if form == "additive" else 6
    shapes = [(20, size), (20, size), (20, 6), (160, 6 if form == "v2" else heads)]
    if form == "v2":
        shapes.append((6,))
    wide = [torch.randn(shape, device=device).to(dtype).float().requires_grad_() for shape in shapes]
    options = {"form": form, "heads": heads, "scale": 0.5}

    def run(target, source, value, term, *vector):
        out = tessera.attention(index, target, source, value, *vector, edge_term=term, **options)
        return [out, *torch.autograd.grad(out.float().square().sum(),
                                          (target, source, value, term, *vector))]

    expected = run(*wide)
    given = wide if autocast else [tensor.detach().to(dtype).requires_grad_() for tensor in wide]
    with torch.autocast(device.type, dtype=dtype, enabled=autocast), tessera.trace() as kernels:
        found = run(*given)
    assert kernels == [f"attention/{device.type}/terms {way}" for way in ("forward", "backward")]
    assert found[0].dtype == dtype and all(a.dtype == b.dtype for a, b in zip(found[1:], given))
    for narrow, exact in zip(found, expected):
        close(narrow, exact, dtype)


@pytest.mark.parametrize("form", ["additive", "v2", "dot"])
@pytest.mark.parametrize("loops", ["given", "one_each"])
def test_terms_of_edges_in_one_operator(device, form, loops):
    """The kernel that takes terms against scores, softmax and sums one after another."""
    index = random_edges(20, 20, 160, device)
    graph, heads, width = tessera.Graph(index, 20, 20), 2, 3
    edges = 160 + (20 if loops == "one_each" else 0)
    size = heads if form == "additive" else heads * width
    shapes = [(20, size), (20, size), (20, heads * width), (edges, size if form == "v2" else heads)]
    if form == "v2":
        shapes.append((heads * width,))
    tensors = [torch.randn(shape, device=device, requires_grad=True) for shape in shapes]
    weighing = torch.randn(20, heads * width, device=device)
    found = []
    for in_parts in (False, True):
        target, source, value, term, *vector = tensors
        options = {"form": form, "heads": heads, "scale": 0.5, "edge_term": term, "loops": loops}
        if in_parts:
            weights = tessera.attention_weights(graph, target, source, value, *vector, **options)
            out = tessera.spmm(graph, value, weights, loops=loops)
        else:
            with tessera.trace() as kernels:
                out = tessera.attention(graph, target, source, value, *vector, **options)
            assert kernels == [f"attention/{device.type}/terms forward"]
        found.append([out, *torch.autograd.grad((out * weighing).sum(), tensors)])
    for mine, parts in zip(*found):
        close(mine, parts, torch.float32)


def test_a_kernel_by_its_name_beside_terms_of_edges(device):
    index, scores = random_edges(20, 20, 160, device), torch.randn(20, 4, device=device)
    name, options = f"attention/{device.type}/terms", {"edge_term": torch.randn(160, 4, device=device)}
    named = tessera.attention(index, scores, scores, scores, heads=4, kernel=name, **options)
    close(named, tessera.attention(index, scores, scores, scores, heads=4, **options), torch.float32)
    with pytest.raises(ValueError, match="the form cosine chooses its kernels itself"):
        tessera.attention(index, None, None, scores, torch.ones(1, device=device), form="cosine", kernel=name)


def test_dropout_beside_terms_of_edges(device):
    """The same weights fall in both passes: the output is linear in the values, with what its gradient says."""
    index, heads = random_edges(20, 20, 160, device), 2
    scores = torch.randn(2, 20, heads, device=device)
    value = torch.randn(20, 4, device=device, requires_grad=True)
    term = torch.randn(160, heads, device=device)
    out = tessera.attention(index, *scores, value, heads=heads, edge_term=term, dropout=0.5)
    gradient, = torch.autograd.grad(out.sum(), value)
    close((gradient * value).sum(), out.sum(), torch.float32)
    again = tessera.attention(index, *scores, value, heads=heads, edge_term=term, dropout=0.5)
    assert not torch.allclose(out, again)


def test_second_derivative_of_a_weighted_max_is_refused():
    index, x = random_edges(8, 6, 20, repeated=False), torch.randn(6, 3, requires_grad=True)
    weight = torch.rand(index.size(1), requires_grad=True)
    y = tessera.spmm(tessera.Graph(index, 8, 6), x, weight, reduce="max")
    first = torch.autograd.grad((y * y).sum(), x, create_graph=True)[0]
    with pytest.raises(NotImplementedError, match="second derivative of spmm with max or min of weighted edges"):
        first.sum().backward()


def test_rows_that_lie_apart_and_expanded_gradients(device):
    index = random_edges(20, 20, 90, device)
    wide = torch.randn(20, 40, device=device, requires_grad=True)
    strided = wide[:, 3:11]
    y = tessera.spmm(tessera.Graph(index, 20, 20), strided)
    close(y, gathered(index, strided, 20), torch.float32)
    y.sum().backward()  # the gradient of a sum is expanded: stride 0
    expected = torch.bincount(index[0], minlength=20).float()[:, None].expand(20, 8)
    assert torch.equal(wide.grad[:, 3:11], expected.to(device))
    transposed = torch.randn(7, 20, device=device).t()
    close(tessera.spmm(tessera.Graph(index, 20, 20), transposed), gathered(index, transposed, 20),
          torch.float32)


def test_dropout_is_the_same_forward_and_backward(device):
    index = random_edges(30, 30, 400, device)
    graph = tessera.Graph(index, 30, 30)
    scores = torch.zeros(30, 1, device=device)
    value = torch.ones(30, 4, device=device, requires_grad=True)
    torch.manual_seed(5)
    out = tessera.attention(graph, scores, scores, value, dropout=0.5)
    torch.manual_seed(5)
    again = tessera.attention(graph, scores, scores, value, dropout=0.5)
    assert torch.equal(out, again)
    other = tessera.attention(graph, scores, scores, value, dropout=0.5)
    assert not torch.equal(out, other)
    out.sum().backward()  # linear in value: the derivative must be that of the same mask
    assert torch.allclose(value.grad.sum(), out.sum(), rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(device, dtype):
    index = random_edges(20, 20, 90, device)
    x = torch.randn(20, 8, device=device, requires_grad=True)
    weight = torch.rand(90, device=device, requires_grad=True)
    with torch.autocast(device.type, dtype=dtype):
        y = tessera.spmm(tessera.Graph(index, 20, 20), x, weight)
    assert y.dtype == dtype
    close(y, gathered(index, x.detach(), 20, weight.detach()), dtype)
    y.float().sum().backward()
    assert x.grad.dtype == torch.float32 and weight.grad.dtype == torch.float32


def twice(run, tensors):
    """What a run gives and its gradients, with graphs and plans made anew for each of two."""
    results = []
    for _ in range(2):
        tessera.clear_cache()
        y = run(*tensors)
        results.append([y.detach().clone(), *torch.autograd.grad(y.square().sum(), tensors)])
    return zip(*results)


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
def test_same_bits_twice(device, reduce, deterministic):
    index = random_edges(200, 200, 4000, device)
    x = torch.randn(200, 32, device=device, requires_grad=True)
    graph = tessera.Graph(index, 200, 200)
    assert all(torch.equal(a, b) for a, b in twice(lambda x: tessera.spmm(graph, x, reduce=reduce), [x]))
    if reduce in ("sum", "mean"):
        weight = torch.rand(4000, device=device, requires_grad=True)
        assert all(torch.equal(a, b)
                   for a, b in twice(lambda x, w: tessera.spmm(graph, x, w, reduce=reduce), [x, weight]))


@pytest.mark.parametrize("form", ["additive", "v2", "dot"])
def test_same_bits_of_attention_twice(device, form, deterministic):
    graph = tessera.Graph(random_edges(200, 200, 4000, device), 200, 200)
    size = 2 if form == "additive" else 32
    shapes = [(200, size), (200, size), (200, 32), *([(32,)] if form == "v2" else [])]
    tensors = [torch.randn(shape, device=device, requires_grad=True) for shape in shapes]
    assert all(torch.equal(a, b)
               for a, b in twice(lambda *given: tessera.attention(graph, *given, form=form, heads=2), tensors))


def test_a_kernel_by_its_name(device):
    index = random_edges(60, 60, 500, device, repeated=False)
    x = torch.randn(60, 32, device=device)
    graph = tessera.Graph(index, 60, 60)
    names = [name for name in tessera.kernels("spmm") if f"/{device.type}/" in name]
    assert names
    ran = 0
    for dtype in (torch.float32, torch.bfloat16):
        features = x.to(dtype).requires_grad_()
        expected = gathered(index, features.detach(), 60)
        for name in names:
            try:
                with tessera.trace() as kernels:
                    y = tessera.spmm(graph, features, kernel=name)
            except (NotImplementedError, ValueError) as error:  # it cannot run this
                assert name in str(error)
                continue
            assert kernels[0] == f"{name} forward"
            close(y, expected, dtype)
            y.sum().backward()
            ran += 1
    assert ran > 0
    if device.type == "cuda":
        y = tessera.spmm(graph, x.bfloat16(), kernel="spmm/cuda/nm_16")
        close(y, gathered(index, x.bfloat16(), 60), torch.bfloat16)
    with pytest.raises(ValueError, match="no kernel 'spmm/cpu/fast'"):
        tessera.spmm(graph, x, kernel="spmm/cpu/fast")


def test_a_scale_that_lies_on_the_device(device):
    index = random_edges(25, 18, 160, device)
    graph = tessera.Graph(index, 25, 18)
    target, source, value = (torch.randn(rows, 8, device=device) for rows in (25, 18, 18))
    scale = torch.tensor([0.7], device=device, requires_grad=True)
    out = tessera.attention(graph, target, source, value, form="dot", heads=2, scale=scale)
    close(out, tessera.attention(graph, target, source, value, form="dot", heads=2, scale=0.7).double(),
          torch.float32)
    found = torch.autograd.grad(out.square().sum(), scale)[0]
    step = 1e-2
    ends = [tessera.attention(graph, target, source, value, form="dot", heads=2, scale=0.7 + sign * step)
            .double().square().sum() for sign in (1, -1)]
    expected = (ends[0] - ends[1]) / (2 * step)
    assert torch.allclose(found.double(), expected, rtol=1e-2, atol=1e-2)
    with pytest.raises(ValueError, match="belongs to the form dot"):
        tessera.attention(graph, target[:, :2], source[:, :2], value, heads=2, scale=scale)


def test_a_vector_for_each_head(device):
    index = random_edges(20, 20, 90, device)
    ends = [torch.randn(20, 8, device=device) for _ in range(2)]
    vector = torch.randn(2, 4, device=device, requires_grad=True)
    options = {"form": "v2", "heads": 2}

    def run(vector):
        out = tessera.attention(index, *ends, ends[1], vector, **options)
        weights = tessera.attention_weights(index, *ends, ends[1], vector, **options)
        return out, weights, torch.autograd.grad(out.sum() + weights.square().sum(), vector)[0]

    found = run(vector)
    expected = run(vector.detach().view(-1).requires_grad_())
    assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])
    assert found[2].shape == (2, 4) and torch.equal(found[2].view(-1), expected[2])


@pytest.mark.parametrize("features", [1, 3, 4, 8, 20, 64, 65, 256])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("reduce", ["max", "min"])
def test_maxima_of_what_is_hard_to_compare(reduce, dtype, features, device):
    """Equal numbers, infinities, both zeros and what is not a number: of equals the first source gets the gradient, on
    every device."""
    draw = torch.Generator().manual_seed(features)
    x = torch.randint(-3, 4, (300, features), generator=draw).to(dtype)
    x[torch.rand(x.shape, generator=draw) < 0.05] = -0.0
    x[torch.rand(x.shape, generator=draw) < 0.02] = float("inf")
    x[torch.rand(x.shape, generator=draw) < 0.02] = float("-inf")
    x[torch.rand(x.shape, generator=draw) < 0.01] = float("nan")
    index = random_edges(200, 300, 4000, repeated=False)
    grad = torch.randint(-4, 5, (200, features), generator=draw).to(dtype)

    def run(place):
        features_there = x.to(place).requires_grad_()
        graph = tessera.Graph(index.to(place), 200, 300)
        y = tessera.spmm(graph, features_there, reduce=reduce)
        return [tensor.cpu() for tensor in (y.detach(), *torch.autograd.grad(y, features_there, grad.to(place)))]

    y, to_x = run(device)
    expected = gathered(index, x, 200, reduce=reduce).to(dtype)
    assert torch.equal(y.isnan(), expected.isnan())
    assert torch.equal(y.nan_to_num(), expected.nan_to_num())
    assert torch.equal(to_x, run("cpu")[1])
    # All of the gradient arrives, at one source each.
    has_edges = torch.zeros(200, dtype=torch.bool).index_fill(0, index[1], True)
    assert torch.equal(to_x.double().sum(0), grad[has_edges].double().sum(0))


@pytest.mark.parametrize("form", ["additive", "v2", "dot"])
def test_weights_of_no_edges(form, device):
    graph = tessera.Graph(torch.zeros(2, 0, dtype=torch.int64, device=device), 3, 4)
    width = 2 if form == "additive" else 6
    target, source = (torch.randn(rows, width, device=device, requires_grad=True) for rows in (3, 4))
    vector = torch.randn(6, device=device) if form == "v2" else None
    assert tessera.attention_weights(graph, target, source, torch.randn(4, 6, device=device), vector, form=form,
                                     heads=2).shape == (0, 2)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_weights_by_heads_of_no_vertices(reduce, device):
    graph = tessera.Graph(torch.zeros(2, 0, dtype=torch.int64, device=device), 3, 0)
    weights = torch.ones(0, 2, device=device)
    assert torch.equal(tessera.spmm(graph, torch.ones(0, 6, device=device), weights, reduce), torch.zeros(3, 6, device=device))
