# SPDX-License-Identifier: Apache-2.0
"""Operators that are whole layers, against their parts: results, gradients, derivatives in fp64."""

import pytest
import torch
from conftest import DTYPES, close, gathered, opcheck, random_edges, supported
from torch.autograd import gradcheck, gradgradcheck

import tessera
import tessera.nn
from tessera import _layer_operators
from tessera._shapes import CAST, WIDE
from tessera.functional import REDUCTIONS

LAYER_KINDS = ["plain", "root", "own", "pair"]


def layer_arguments(kind, dtype, device, sum_first, grad=True, reduce="mean"):
    """Arguments of spmm_linear: nothing of a vertex's own, its features, a scale, others' features."""
    def draw(*shape):
        return torch.randn(*shape, device=device).to(dtype).requires_grad_(grad)

    targets = 12 if kind == "pair" else 9
    index = random_edges(targets, 9, 60, device)
    root = draw(12, 3) if kind == "pair" else None
    root_weight = {"pair": lambda: draw(4, 3), "root": lambda: draw(4, 5)}.get(kind, lambda: None)()
    own_scale = torch.tensor([0.25], device=device).to(dtype) if kind == "own" else None
    return (draw(9, 5), draw(4, 5), root, root_weight, draw(4), own_scale, None, index, None, targets,
            9, 0, 0, 1.0, 0, REDUCTIONS[reduce], sum_first, 0)


@pytest.mark.parametrize("sum_first", [False, True])
@pytest.mark.parametrize("kind, reduce", [("plain", "sum"), ("plain", "mean"), ("root", "sum"), ("pair", "mean"),
                                          ("own", "sum")])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_layer_in_one_operator(device, dtype, kind, reduce, sum_first):
    supported(device, dtype)
    arguments = layer_arguments(kind, dtype, device, sum_first, reduce=reduce)
    opcheck("spmm_linear", arguments)
    x, weight, root, root_weight, bias, own_scale, _, index, _, targets, *_ = arguments
    y, *kept = torch.ops.tessera.spmm_linear(*arguments)
    neighbours = gathered(index, x, targets, reduce=reduce)
    if own_scale is not None:
        neighbours = neighbours + (1 + own_scale.double()) * x.double()
    expected = neighbours @ weight.double().t() + bias.double()
    if root_weight is not None:
        expected = expected + (x if root is None else root).double() @ root_weight.double().t()
    close(y, expected, dtype)
    needed = sum(1 << i for i in range(5) if arguments[i] is not None)
    detached = [a.detach() if isinstance(a, torch.Tensor) else a for a in arguments]
    backward = (torch.randn_like(y).detach(), *detached[:4], *detached[5:7],
                [tensor.detach() for tensor in kept], *detached[7:], needed)
    opcheck("spmm_linear_backward", backward)


@pytest.mark.parametrize("sum_first", [False, True])
@pytest.mark.parametrize("kind", LAYER_KINDS)
def test_derivatives_of_a_layer_in_fp64(kind, sum_first):
    arguments = layer_arguments(kind, torch.float64, "cpu", sum_first)
    places = [i for i in range(5) if arguments[i] is not None]

    def run(*tensors):
        given = list(arguments[:9])
        for place, tensor in zip(places, tensors):
            given[place] = tensor
        return _layer_operators.spmm_linear(*given, arguments[9:])

    tensors = [arguments[i] for i in places]
    assert gradcheck(run, tensors)
    assert gradgradcheck(run, tensors, fast_mode=True)


def changed(arguments, place, tensor):
    return (*arguments[:place], tensor, *arguments[place + 1:])


@pytest.mark.parametrize("sum_first", [False, True])
@pytest.mark.parametrize("kind", ["root", "pair"])
def test_types_and_shapes_of_a_layer_that_do_not_fit(device, kind, sum_first):
    arguments = layer_arguments(kind, torch.float32, device, sum_first, grad=False)
    root, root_weight = arguments[2:4]
    with pytest.raises(RuntimeError, match="dtype: features (are|and)"):
        torch.ops.tessera.spmm_linear(*changed(arguments, 3, root_weight.bfloat16()))
    if root is not None:
        other = changed(arguments, 2, root.bfloat16())
        for given in (other, changed(other, 3, root_weight.bfloat16())):
            with pytest.raises(RuntimeError, match="dtype: features (are|and)"):
                torch.ops.tessera.spmm_linear(*given)
    features = root_weight.size(1)
    with pytest.raises(RuntimeError, match=f"features: there are {features}, but root_weight takes 2"):
        torch.ops.tessera.spmm_linear(*changed(arguments, 3, root_weight[:, :2]))
    with pytest.raises(RuntimeError, match="a matrix of 1 outputs beside one of 4"):
        torch.ops.tessera.spmm_linear(*changed(arguments, 3, root_weight[:1]))
    name, rows = ("x", 9) if root is None else ("root", 12)
    with pytest.raises(RuntimeError, match=f"{name}: {rows} rows for 13 vertices"):
        torch.ops.tessera.spmm_linear(*changed(arguments, 9, 13))  # one target more


@pytest.mark.parametrize("outputs", [3, 20])  # products first, sums first
def test_own_features_of_other_vertices_than_the_targets(device, outputs):
    graph = tessera.Graph.of(random_edges(5, 17, 60, device), 5, 17)
    x, other = torch.randn(17, 7, device=device), torch.randn(9, 7, device=device)
    for layer in (tessera.nn.SAGEConv(7, outputs).to(device), tessera.nn.ClusterGCNConv(7, outputs).to(device)):
        with pytest.raises(ValueError, match="x has 17 rows for 5 vertices"):
            layer(x, graph)
    with pytest.raises(ValueError, match=r"x\[1\] has 9 rows for 5 vertices"):
        tessera.nn.SAGEConv(7, outputs).to(device)((x, other), graph)


def test_types_and_shapes_of_gin_that_do_not_fit(device):
    arguments = gin_arguments(torch.float32, device, False, grad=False)
    then_weight = arguments[3]
    with pytest.raises(RuntimeError, match="dtype: features (are|and)"):
        torch.ops.tessera.gin(*changed(arguments, 3, then_weight.bfloat16()))
    with pytest.raises(RuntimeError, match="features: there are 4, but then_weight takes 2"):
        torch.ops.tessera.gin(*changed(arguments, 3, then_weight[:, :2]))


def test_vectors_of_layers_that_do_not_fit(device):
    """Biases and vectors of scores are cast and checked as matrices are."""
    cases = [(torch.ops.tessera.spmm_linear, layer_arguments("root", torch.float32, device, False, grad=False),
              {4: "bias"}),
             (torch.ops.tessera.gin, gin_arguments(torch.float32, device, False, grad=False),
              {2: "bias", 4: "then_bias"}),
             (torch.ops.tessera.gat, gat_arguments(torch.float32, device, 2, True),
              {2: "att_src", 3: "att_dst", 4: "bias"})]
    for op, arguments, names in cases:
        for place, name in names.items():
            vector = arguments[place].detach()
            with pytest.raises(RuntimeError, match=f"dtype: features.* {name}.*float32.* bfloat16|dtype: features.* {name} is bfloat16"):
                op(*changed(arguments, place, vector.bfloat16()))
            if name.endswith("bias"):
                needed = f"where a vector of size {vector.numel()} is needed"
                with pytest.raises(RuntimeError, match=f"{name}: a vector of size 1, {needed}"):
                    op(*changed(arguments, place, vector[:1]))
                with pytest.raises(RuntimeError, match=f"{name}: a tensor of 2 dimensions, {needed}"):
                    op(*changed(arguments, place, vector.view(1, -1)))


def gin_arguments(dtype, device, sum_first, grad=True, biased=True, reduce="mean"):
    def draw(*shape):
        return torch.randn(*shape, device=device).to(dtype).requires_grad_(grad)

    index = random_edges(9, 9, 60, device)
    scale = torch.tensor([0.25], device=device).to(dtype)
    return (draw(9, 5), draw(4, 5), draw(4) if biased else None, draw(3, 4),
            draw(3) if biased else None, scale, index, None, 9, 9, 0, 0, REDUCTIONS[reduce], sum_first, 0)


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("sum_first", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gin_in_one_operator(device, dtype, sum_first, biased):
    supported(device, dtype)
    reduce = "sum" if biased else "mean"
    arguments = gin_arguments(dtype, device, sum_first, biased=biased, reduce=reduce)
    opcheck("gin", arguments)
    x, weight, bias, then_weight, then_bias, scale, index, *_ = arguments
    y, *kept = torch.ops.tessera.gin(*arguments)
    hidden = gathered(index, x, 9, reduce=reduce) + (1 + scale.double()) * x.double()
    hidden = hidden @ weight.double().t() + (bias.double() if biased else 0)
    expected = hidden.relu() @ then_weight.double().t() + (then_bias.double() if biased else 0)
    close(y, expected, dtype)
    detached = [a.detach() if isinstance(a, torch.Tensor) else a for a in arguments]
    backward = (torch.randn_like(y).detach(), detached[0], detached[1], detached[3], scale,
                [tensor.detach() for tensor in kept], *detached[6:], 31 if biased else 13)
    opcheck("gin_backward", backward)


@pytest.mark.parametrize("sum_first", [False, True])
def test_derivatives_of_gin_in_fp64(sum_first):
    arguments = gin_arguments(torch.float64, "cpu", sum_first)

    def run(*tensors):
        return _layer_operators.gin(*tensors, *arguments[5:8], arguments[8:])

    assert gradcheck(run, arguments[:5])
    assert gradgradcheck(run, arguments[:5])
    with pytest.raises(NotImplementedError, match="own_scale"):
        scale = arguments[5].clone().requires_grad_()
        torch.ops.tessera.gin(*arguments[:5], scale, *arguments[6:])[0].sum().backward()


def gat_arguments(dtype, device, heads, bias, dropout=0.0, seed=None):
    def draw(*shape):
        return torch.randn(*shape, device=device).to(dtype).requires_grad_()

    index = random_edges(12, 12, 60, device)
    return (draw(12, 5), draw(4 * heads, 5), draw(1, heads, 4), draw(1, heads, 4),
            draw(4 * heads) if bias else None, seed, index, None, 12, 12, 0, 1, heads, 0.2, dropout, 0)


def gat_in_parts(x, weight, att_src, att_dst, bias, seed, index, heads, **options):
    moved = x @ weight.t()
    scores = [(moved.view(-1, heads, 4) * att).sum(-1) for att in (att_dst, att_src)]
    out = tessera.attention(tessera.Graph(index, 12, 12), *scores, moved, heads=heads,
                            loops="one_each", **options)
    return out if bias is None else out + bias


@pytest.mark.parametrize("heads, bias", [(1, True), (3, True), (2, False)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gat_in_one_operator(device, dtype, heads, bias):
    supported(device, dtype)
    arguments = gat_arguments(dtype, device, heads, bias)
    opcheck("gat", arguments)
    close(torch.ops.tessera.gat(*arguments)[0],
          gat_in_parts(*(a.float() if i < 5 and a is not None and dtype != torch.float64 else a
                         for i, a in enumerate(arguments[:7])), heads), dtype)
    detached = [a.detach() if isinstance(a, torch.Tensor) else a for a in arguments]
    y, *kept = torch.ops.tessera.gat(*detached)
    needed = 31 if bias else 15
    backward = (torch.randn_like(y), *detached[:2], None, kept.pop(0) if bias else y, kept,
                *detached[6:], needed)
    opcheck("gat_backward", backward)
    seed = torch.tensor([5, 7], device=device)
    opcheck("gat", gat_arguments(dtype, device, heads, bias, 0.5, seed))


@pytest.mark.parametrize("heads, bias", [(1, True), (3, True), (2, False)])
def test_derivatives_of_gat_in_fp64(heads, bias):
    arguments = gat_arguments(torch.float64, "cpu", heads, bias)
    tensors = [a for a in arguments[:5] if a is not None]

    def run(*tensors):
        given = tensors if bias else (*tensors, None)
        return _layer_operators.gat(*given, *arguments[5:8], arguments[8:])

    assert gradcheck(run, tensors)
    assert gradgradcheck(run, tensors, fast_mode=True)


def test_gat_drops_what_attention_drops(device):
    seed = torch.tensor([5, 7], device=device)
    arguments = gat_arguments(torch.float32, device, 2, True, dropout=0.5, seed=seed)
    y = torch.ops.tessera.gat(*arguments)[0]
    assert not torch.allclose(y, torch.ops.tessera.gat(*arguments[:14], 0.0, 0)[0])
    y.sum().backward()
    found = [a.grad.clone() for a in arguments[:5]]
    for a in arguments[:5]:
        a.grad = None
    x, weight, att_src, att_dst, bias, _, index, *_ = arguments
    moved = x @ weight.t()
    scores = [(moved.view(-1, 2, 4) * att).sum(-1) for att in (att_dst, att_src)]
    parts = torch.ops.tessera.attention(*scores, moved, None, None, seed, index, None, 12, 12, 0, 1, 0,
                                        2, 1.0, 0.2, 0.5, 0)[0] + bias
    close(y, parts, torch.float32)
    parts.sum().backward()
    for mine, theirs in zip(found, (a.grad for a in arguments[:5])):
        close(mine, theirs, torch.float32)


def gatv2_arguments(dtype, device, heads, biases, bias, dropout=0.0, seed=None):
    def draw(*shape, scale=1.0):
        return (scale * torch.randn(*shape, device=device)).to(dtype).requires_grad_()

    # Larger scores would make gradients of att differences of nearly equal numbers, of which outputs
    # rounded to 16 bits leave no digits.
    index = random_edges(12, 12, 60, device)
    matrices = [part for _ in range(2)
                for part in (draw(4 * heads, 5, scale=0.3), draw(4 * heads) if biases else None)]
    return (draw(12, 5), *matrices, draw(1, heads, 4, scale=0.3), draw(4 * heads) if bias else None, seed,
            index, None, 12, 12, 0, 1, heads, 0.2, dropout, 0)


def gatv2_in_parts(x, source_weight, source_bias, target_weight, target_bias, att, bias, seed, index,
                   heads):
    source = torch.nn.functional.linear(x, source_weight, source_bias)
    target = torch.nn.functional.linear(x, target_weight, target_bias)
    graph = tessera.Graph(index, x.size(0), x.size(0))
    out = tessera.attention(graph, target, source, source, att.view(-1), form="v2",
                            heads=heads, loops="one_each")
    return out if bias is None else out + bias


@pytest.mark.parametrize("heads, biases, bias", [(1, True, True), (3, True, False), (2, False, True)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gatv2_in_one_operator(device, dtype, heads, biases, bias):
    supported(device, dtype)
    arguments = gatv2_arguments(dtype, device, heads, biases, bias)
    opcheck("gatv2", arguments)
    tensors = [a for a in arguments[:7] if a is not None]
    wide = [None if a is None else a.detach().to(torch.promote_types(dtype, torch.float32)).requires_grad_()
            for a in arguments[:7]]
    y, expected = torch.ops.tessera.gatv2(*arguments)[0], gatv2_in_parts(*wide, None, arguments[8], heads)
    close(y, expected, dtype)
    along = torch.randn_like(expected)
    found = torch.autograd.grad(y, tensors, along.to(dtype))
    for mine, theirs in zip(found, torch.autograd.grad(expected, [a for a in wide if a is not None], along)):
        assert mine.shape == theirs.shape and mine.dtype == dtype
        assert (mine - theirs).abs().max() <= (1e-4 if dtype in (torch.float32, torch.float64) else 5e-2) * (
            1 + theirs.abs().max())
    detached = [a.detach() if isinstance(a, torch.Tensor) else a for a in arguments]
    y, *kept = torch.ops.tessera.gatv2(*detached)
    needed = 11 + (4 if biases else 0) + (16 if bias else 0)
    backward = (torch.randn_like(y), detached[0], detached[1], detached[5], None,
                kept.pop(0) if bias else y, kept, *detached[8:], needed)
    opcheck("gatv2_backward", backward)


@pytest.mark.parametrize("heads, width", [(2, 64), (1, 128), (1, 33)])
def test_gatv2_of_wide_heads(device, heads, width):
    """Kernels of their own run heads of 64 and 128 features, where no edge is repeated."""
    def draw(*shape, scale=1.0):
        return (scale * torch.randn(*shape, device=device)).bfloat16().requires_grad_()

    vertices, outputs = 500, heads * width
    index = random_edges(vertices, vertices, 4000, device, repeated=False)
    tensors = [draw(vertices, 24), draw(outputs, 24, scale=0.2), draw(outputs), draw(outputs, 24, scale=0.2),
               draw(outputs), draw(1, heads, width, scale=0.1), draw(outputs)]
    wide = [a.detach().float().requires_grad_() for a in tensors]
    y = torch.ops.tessera.gatv2(*tensors, None, index, None, vertices, vertices, 0, 1, heads, 0.2, 0.0, 0)[0]
    expected = gatv2_in_parts(*wide, None, index, heads)
    close(y, expected, torch.bfloat16)
    along = torch.randn_like(expected)
    for mine, theirs in zip(torch.autograd.grad(y, tensors, along.bfloat16()),
                            torch.autograd.grad(expected, wide, along)):
        assert mine.shape == theirs.shape and mine.dtype == torch.bfloat16
        # Gradients of targets nearly cancel: what is left of them has a digit and a half.
        assert (mine - theirs).norm() <= 0.15 * theirs.norm()


@pytest.mark.parametrize("heads, biases, bias", [(1, True, True), (3, True, False), (2, False, True)])
def test_derivatives_of_gatv2_in_fp64(heads, biases, bias):
    arguments = gatv2_arguments(torch.float64, "cpu", heads, biases, bias)
    places = [place for place, a in enumerate(arguments[:7]) if a is not None]
    tensors = [arguments[place] for place in places]

    def run(*tensors):
        given = [None] * 7
        for place, tensor in zip(places, tensors):
            given[place] = tensor
        return _layer_operators.gatv2(*given, *arguments[7:10], arguments[10:])

    assert gradcheck(run, tensors)
    assert gradgradcheck(run, tensors, fast_mode=True)


@pytest.mark.parametrize("wanted", range(7))
def test_one_gradient_of_gatv2_alone(device, wanted):
    """Matrices are multiplied together; each has its own share of the gradients."""
    arguments = gatv2_arguments(torch.float32, device, 2, True, True)
    y = torch.ops.tessera.gatv2(*arguments)[0]
    expected = torch.autograd.grad(y.square().sum(), arguments[:7])[wanted]
    alone = [a.detach().requires_grad_(place == wanted) for place, a in enumerate(arguments[:7])]
    y = _layer_operators.gatv2(*alone, *arguments[7:10], arguments[10:])
    close(torch.autograd.grad(y.square().sum(), alone[wanted])[0], expected, torch.float32)


def test_gatv2_drops_what_attention_drops(device):
    seed = torch.tensor([5, 7], device=device)
    arguments = gatv2_arguments(torch.float32, device, 2, True, True, dropout=0.5, seed=seed)
    y = torch.ops.tessera.gatv2(*arguments)[0]
    assert not torch.allclose(y, torch.ops.tessera.gatv2(*arguments[:16], 0.0, 0)[0])
    x, source_weight, source_bias, target_weight, target_bias, att, bias, _, index, *_ = arguments
    source = torch.nn.functional.linear(x, source_weight, source_bias)
    target = torch.nn.functional.linear(x, target_weight, target_bias)
    parts = torch.ops.tessera.attention(target, source, source, att.view(-1), None, seed, index, None, 12,
                                        12, 0, 1, 1, 2, 1.0, 0.2, 0.5, 0)[0] + bias
    close(y, parts, torch.float32)
    for mine, theirs in zip(torch.autograd.grad(y.square().sum(), arguments[:7]),
                            torch.autograd.grad(parts.square().sum(), arguments[:7])):
        close(mine, theirs, torch.float32)


def test_what_gatv2_refuses(device):
    arguments = gatv2_arguments(torch.float32, device, 2, True, True)
    wrong = {1: torch.ones(8, 4, device=device), 2: None, 3: torch.ones(6, 5, device=device),
             4: torch.ones(3, device=device), 5: torch.ones(7, device=device),
             6: torch.ones(7, device=device), 0: torch.ones(11, 5, device=device)}
    for place, tensor in wrong.items():
        given = [*arguments]
        given[place] = tensor
        with pytest.raises(RuntimeError, match="tessera invalid_argument"):
            torch.ops.tessera.gatv2(*given)
    given = [*arguments]
    given[5] = arguments[5].detach().double() if device.type == "cpu" else arguments[5].detach().half()
    with pytest.raises(RuntimeError, match="different types"):
        torch.ops.tessera.gatv2(*given)


def laid_out(layout, values):
    """The same numbers in other places of memory."""
    rows, cols = values.shape
    if layout == "columns":
        return values.t().contiguous().t()
    if layout == "apart":
        return torch.cat([values, values], dim=1)[:, :cols]
    if layout == "off a boundary":
        return torch.cat([values.new_zeros(1), values.flatten()])[1:].view(rows, cols)
    return values.clone()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("cast", CAST.values())
@pytest.mark.parametrize("name", ["spmm_linear", "spmm_linear sums first", "gat", "gatv2"])
def test_opcheck_of_wide_results(device, name, cast, bias):
    """Layers under autocast whose results are fp32 all the same."""
    name, first = name.split()[0], name.endswith("first")
    arguments = {"spmm_linear": lambda: layer_arguments("plain", torch.float32, device, first),
                 "gat": lambda: gat_arguments(torch.float32, device, 2, bias),
                 "gatv2": lambda: gatv2_arguments(torch.float32, device, 2, True, bias)}[name]()
    narrow = getattr(torch.ops.tessera, name)(*arguments[:-1], cast)[0]
    arguments = (*arguments[:-1], cast | WIDE)
    opcheck(name, arguments)
    y = getattr(torch.ops.tessera, name)(*arguments)[0]
    assert y.dtype == torch.float32 and narrow.dtype != torch.float32
    assert (y - narrow).abs().max() <= 2e-2 * (1 + y.abs().max())
    along = torch.randn_like(y)
    tensors = [a for a in arguments if isinstance(a, torch.Tensor) and a.requires_grad]
    for wide, other in zip(torch.autograd.grad(y, tensors, along), torch.autograd.grad(narrow, tensors, along.to(narrow.dtype))):
        assert wide.dtype == other.dtype == torch.float32
        assert (wide - other).abs().max() <= 5e-2 * (1 + other.abs().max())


@pytest.mark.parametrize("layout", ["columns", "apart", "off a boundary"])
@pytest.mark.parametrize("width", [16, 5])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_casts_take_any_layout(device, dtype, width, layout):
    """Layers under autocast copy what they cast, wherever it lies."""
    torch.manual_seed(2)
    index = random_edges(12, 12, 60, device)
    layers = [tessera.nn.GCNConv(width, 8), tessera.nn.SAGEConv(width, 6), tessera.nn.GATConv(width, 4, heads=3),
              tessera.nn.GATv2Conv(width, 8, heads=2),
              tessera.nn.GINConv(torch.nn.Sequential(torch.nn.Linear(width, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)))]
    x = torch.randn(12, width, device=device)
    for layer in layers:
        layer.to(device)
        found = []
        for how in ("plain", "plain", layout):  # from its second call on, a layer takes a shorter way
            for parameter in layer.parameters():
                parameter.grad = None
                if parameter.dim() == 2:
                    parameter.data = laid_out(how, parameter.detach())
            features = laid_out(how, x).requires_grad_()
            with torch.autocast(device.type, dtype=dtype):
                out = layer(features, index)
            wide = not isinstance(layer, (tessera.nn.SAGEConv, tessera.nn.GINConv))
            assert out.dtype == (torch.float32 if wide else dtype) and layer.tessera_fallback is None
            out.float().square().sum().backward()
            found.append([out, features.grad] + [parameter.grad for parameter in layer.parameters()])
        for a, b in zip(*found[1:]):
            assert torch.equal(a, b)


@pytest.mark.parametrize("layout", ["plain", "columns", "apart", "off a boundary"])
def test_casts_of_many_features(device, layout):
    """Large copies are made in another way than small ones."""
    torch.manual_seed(2)
    index = random_edges(4200, 4200, 9000, device)
    x = torch.randn(4200, 64, device=device)
    for layer in (tessera.nn.GCNConv(64, 64).to(device), tessera.nn.SAGEConv(64, 64).to(device)):
        found = []
        for features in (x.bfloat16(), laid_out(layout, x)):
            layer.zero_grad()
            with torch.autocast(device.type, dtype=torch.bfloat16):
                out = layer(features.requires_grad_(), index)
            out.float().square().sum().backward()
            found.append([out, *(parameter.grad for parameter in layer.parameters()), features.grad.bfloat16()])
        for a, b in zip(*found):
            assert torch.equal(a, b)


def test_a_layer_has_no_derivative_of_its_scale():
    arguments = list(layer_arguments("own", torch.float32, "cpu", False))
    arguments[5].requires_grad_()
    y = torch.ops.tessera.spmm_linear(*arguments)[0]
    with pytest.raises(NotImplementedError, match="own_scale"):
        y.sum().backward()


def test_hidden_numbers_that_are_0_have_no_gradient(device):
    """Whatever is multiplied by it: relu's derivative is a choice, and no factor."""
    x = torch.ones(3, 2, device=device)
    index = torch.tensor([[0, 1, 2], [1, 2, 0]], device=device)
    network = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.ReLU(),
                                  torch.nn.Linear(2, 1, bias=False)).to(device)
    layer = tessera.nn.GINConv(network).to(device)  # draws weights of its own
    with torch.no_grad():
        network[0].weight.copy_(torch.tensor([[-1.0, -1.0], [1.0, 1.0]]))
        network[2].weight.copy_(torch.tensor([[float("inf"), 1.0]]))
    expected, = torch.autograd.grad(network(2 * x), network[0].weight, torch.ones(3, 1, device=device))
    assert torch.equal(expected, torch.tensor([[0.0, 0.0], [6.0, 6.0]], device=device))
    for _ in range(2):  # the second call runs the network as a part of the operator
        found, = torch.autograd.grad(layer(x, index), network[0].weight, torch.ones(3, 1, device=device))
        assert torch.equal(found, expected)
