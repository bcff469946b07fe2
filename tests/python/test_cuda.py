# SPDX-License-Identifier: Apache-2.0
"""What only a GPU shows: capture, streams, torch's memory. Skipped where there is none."""

import pytest
import torch
import torch.nn.functional as F
from conftest import random_edges

import tessera

pytestmark = pytest.mark.skipif(not (torch.cuda.is_available() and tessera.has_cuda()),
                                reason="needs a GPU and the operators for CUDA")


def setting(kind="GCN", dropout=0.0, size=300):
    import torch_geometric.nn as pyg

    torch.manual_seed(4)
    index = random_edges(size, size, 12 * size, "cuda")
    x = torch.randn(size, 16, device="cuda")
    labels = torch.randint(0, 5, (size,), device="cuda")
    options = {"v2": True} if kind == "GATv2" else {}
    model = getattr(pyg, kind.removesuffix("v2"))(16, 32, num_layers=2, out_channels=5, dropout=dropout, **options).cuda()
    return tessera.accelerate(model), x, index, labels


def prepared(model, x, index, labels):
    """A step of training, which has run a few times, as one has to before it is captured."""
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, capturable=True)

    def step():
        optimiser.zero_grad(set_to_none=False)
        loss = F.cross_entropy(model(x, index), labels)
        loss.backward()
        optimiser.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    return step


def captured_graph(step):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        return graph, step()


def trained(model, x, index, labels, steps, captured):
    step = prepared(model, x, index, labels)
    if captured:
        graph, loss = captured_graph(step)
        for _ in range(steps):
            graph.replay()
    else:
        for _ in range(steps):
            loss = step()
    torch.cuda.synchronize()
    return loss.detach().clone(), [p.detach().clone() for p in model.parameters()]


@pytest.mark.parametrize("kind", ["GCN", "GraphSAGE", "GIN", "GAT", "GATv2"])
def test_a_captured_step_equals_an_eager_one(kind):
    results = [trained(*setting(kind), steps=100, captured=captured) for captured in (False, True)]
    assert torch.equal(results[0][0], results[1][0])
    assert all(torch.equal(a, b) for a, b in zip(results[0][1], results[1][1]))


@pytest.mark.parametrize("kind", ["GCN", "GAT"])
def test_the_profiler_sees_our_kernels_in_a_replay(kind):
    model, x, index, labels = setting(kind)
    graph, _ = captured_graph(prepared(model, x, index, labels))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        graph.replay()
        torch.cuda.synchronize()
    runs = sum(event.count for event in profile.key_averages() if "tessera" in event.key)
    assert runs >= 3  # sums of two layers, and back those of the second: features need no gradient


def test_a_graph_that_was_not_planned_cannot_be_captured():
    index, x = random_edges(100, 100, 900, "cuda"), torch.randn(100, 8, device="cuda")
    tessera.clear_cache()
    graph = torch.cuda.CUDAGraph()
    with pytest.raises((ValueError, RuntimeError), match="before torch.cuda.graph|capturing"):
        with torch.cuda.graph(graph):
            tessera.spmm(index, x)


def test_reduce_overhead_never_replays_an_old_graph():
    x = torch.randn(100, 8, device="cuda")
    compiled = torch.compile(lambda i, x: tessera.spmm(i, x) * 2, mode="reduce-overhead")
    for seed in range(6):
        index = random_edges(100, 100, 900, "cuda", seed=seed)
        for _ in range(3):
            assert torch.allclose(compiled(index, x), tessera.spmm(index, x) * 2)


@pytest.mark.parametrize("kind", ["GCN", "GAT"])
def test_reduce_overhead_trains_on_changing_graphs(kind):
    model, x, _, labels = setting(kind)
    compiled = torch.compile(model, mode="reduce-overhead")
    for seed in (1, 2, 1, 3):
        index = random_edges(300, 300, 3600, "cuda", seed=seed)
        for _ in range(3):
            found, wanted = ([loss.detach().clone(), *torch.autograd.grad(loss, list(model.parameters()))]
                             for loss in (F.cross_entropy(run(x, index), labels) for run in (compiled, model)))
            assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(found, wanted))


def peak_of(run):
    """What a call takes at most, its result among it."""
    torch.cuda.synchronize()
    resting = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    run()
    return torch.cuda.max_memory_allocated() - resting


@pytest.mark.parametrize("what", ["sum", "layer", "attention"])
def test_memory_is_torchs(what):
    """A sum takes its result, a layer what its product does and the sums that go first, attention its result and
    a number for each row; 16 KiB are for plans."""
    vertices = 2048  # tensors of whole blocks of torch's, and below 1 MiB, from where it lends more than asked for
    source = torch.arange(20 * vertices, device="cuda") % vertices
    index = torch.stack([source, (7 * source + torch.arange(20 * vertices, device="cuda") // vertices) % vertices])
    x = torch.randn(vertices, 16, device="cuda")
    layer = tessera.nn.GCNConv(16, 64, bias=False).cuda()

    scores = torch.randn(vertices, 1, device="cuda")

    def run():
        if what == "attention":
            return tessera.attention(index, scores, scores, x)
        return tessera.spmm(index, x) if what == "sum" else layer(x, index)

    with torch.no_grad():
        size = run().nbytes
        x @ layer.lin.weight.t()  # products of torch's keep memory from their first on
        tessera.clear_cache()
        before = torch.cuda.memory_allocated()
        run()
        assert torch.cuda.memory_allocated() > before  # the graph and its plan
        most = {"sum": lambda: size, "attention": lambda: size + scores.nbytes,
                "layer": lambda: peak_of(lambda: x @ layer.lin.weight.t()) + x.nbytes}[what]()
        assert size <= peak_of(run) <= most + (16 << 10)
    tessera.clear_cache()
    assert torch.cuda.memory_allocated() <= before + 512


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("heads, channels", [(1, 64), (2, 32), (4, 7)])
def test_gat_keeps_sums_for_its_gradients_where_rows_are_long(heads, channels, dropout):
    """Gradients are those without them."""
    import torch_geometric.nn as pyg

    size, width = 500, heads * channels
    index = random_edges(size, size, 40 * size, "cuda")
    layer = tessera.accelerate(pyg.GATConv(16, channels, heads=heads, dropout=dropout)).cuda()
    x, grad = torch.randn(size, 16, device="cuda"), torch.randn(size, width, device="cuda")

    def gradients(keeps):
        """And how many tensors were saved for them. The operator itself, as compiled code calls it, keeps no sums."""
        saved = []
        features = x.clone().requires_grad_()
        torch.manual_seed(3)  # of dropout
        with tessera.trace() as kernels, torch.autograd.graph.saved_tensors_hooks(
                lambda tensor: saved.append(tensor.shape) or tensor, lambda tensor: tensor):
            out = layer(features, index) if keeps else torch.ops.tessera.gat(
                features, layer.lin.weight, layer.att_src, layer.att_dst, layer.bias, seed_of_the_layer(dropout), index,
                None, size, size, 0, 1, heads, layer.negative_slope, dropout, 0)[0]
            found = torch.autograd.grad(out, [features, *layer.parameters()], grad)
        return found, len(saved), list(kernels)

    layer(x, index)  # the second call takes a shorter way
    kept, more, kernels = gradients(True)
    plain, fewer, _ = gradients(False)
    if "attention/cuda/rows backward" in kernels:
        assert more == fewer + 1
    for mine, expected in zip(kept, plain):
        assert (mine - expected).abs().max() <= 1e-4 * (1 + expected.abs().max())


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("lies", ["beside a boundary", "in longer rows", "in columns"])
def test_gradients_of_gat_wherever_that_of_its_output_lies(heads, lies):
    """Kernels of 16 bits that read sums which were kept want boundaries of 16 bytes; others find gradients without."""
    size, width = 20_000, heads * 64
    targets = torch.arange(size, device="cuda").repeat_interleave(30)
    sources = (targets + torch.randint(-20, 21, targets.shape, device="cuda")).clamp(0, size - 1)
    edges = torch.unique(targets * size + sources)  # windows know each edge once
    index = torch.stack([edges % size, edges // size])
    layer = tessera.nn.GATConv(16, 64, heads=heads).cuda().bfloat16()
    x = torch.randn(size, 16, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    grad = torch.randn(size, width, device="cuda", dtype=torch.bfloat16)
    room = {"beside a boundary": lambda: grad.new_empty(size * width + 1)[1:].view(size, width),
            "in longer rows": lambda: grad.new_empty(size, width + 1)[:, 1:],
            "in columns": lambda: grad.new_empty(width, size).t()}[lies]()
    moved = room.copy_(grad)
    wanted = [x, *layer.parameters()]
    expected = torch.autograd.grad(layer(x, index), wanted, grad)
    for mine, other in zip(torch.autograd.grad(layer(x, index), wanted, moved), expected):
        assert (mine.float() - other.float()).abs().max() <= 0.1 * (1 + other.float().abs().max())


def seed_of_the_layer(dropout):
    from tessera.functional import dropout_seed

    return dropout_seed(torch.device("cuda")) if dropout > 0 else None


def test_tensors_on_different_devices():
    index, x = random_edges(30, 30, 200), torch.randn(30, 8)
    for edges, features in ((index.cuda(), x), (index, x.cuda())):
        with pytest.raises(ValueError, match="x lies on .*, the graph on"):
            tessera.spmm(edges, features)
    with pytest.raises(ValueError, match="edge_weight lies on cpu, the graph on cuda"):
        tessera.spmm(index.cuda(), x.cuda(), torch.ones(200))


@pytest.mark.parametrize("cast", [False, True])
def test_layers_that_were_left_on_the_cpu(cast):
    """Kernels would read memory that is not theirs; also where one parameter alone was left."""
    index, x = random_edges(30, 30, 200, "cuda"), torch.randn(30, 8, device="cuda")
    network = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))
    for layer in (tessera.nn.GCNConv(8, 4), tessera.nn.SAGEConv(8, 4), tessera.nn.SAGEConv(8, 40),
                  tessera.nn.ClusterGCNConv(8, 4), tessera.nn.GINConv(network), tessera.nn.GATConv(8, 4, heads=2),
                  tessera.nn.GATv2Conv(8, 4, heads=2)):
        for _ in range(2):  # the first call finds a way that the second would take
            with pytest.raises(ValueError, match="x lies on cuda:0, the layer on cpu"):
                with torch.autocast("cuda", dtype=torch.bfloat16, enabled=cast):
                    layer(x, index)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=cast):
            expected = layer.cuda()(x, index)
        for parameter in layer.parameters():
            parameter.data = parameter.data.cpu()
            with pytest.raises(ValueError, match="cpu.*cuda:0|cuda:0.*cpu"):
                with torch.autocast("cuda", dtype=torch.bfloat16, enabled=cast):
                    layer(x, index)
            parameter.data = parameter.data.cuda()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=cast):
            assert torch.allclose(layer(x, index), expected)


def test_two_streams_share_a_graph():
    index, x = random_edges(2000, 2000, 40000, "cuda"), torch.randn(2000, 64, device="cuda")
    expected = tessera.spmm(index, x)
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in range(2)]
    results = [[], []]
    for _ in range(20):
        for stream, kept in zip(streams, results):
            with torch.cuda.stream(stream):
                kept.append(tessera.spmm(index, x))
    torch.cuda.synchronize()
    assert all(torch.equal(y, expected) for kept in results for y in kept)


def test_a_graph_is_freed_when_all_streams_are_done_with_it():
    index, x = random_edges(2000, 2000, 40000, "cuda"), torch.randn(2000, 64, device="cuda")
    tessera.clear_cache()
    expected, side = tessera.spmm(index, x), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(100_000_000)
        found = tessera.spmm(index, x)
    tessera.clear_cache()
    taken = [torch.zeros(64 << size, device="cuda") for size in range(13) for _ in range(4)]
    torch.cuda.synchronize()
    assert torch.equal(found, expected) and len(taken) == 52


def test_a_stream_uses_what_another_has_just_made():
    """Orders of weights and weights of loops are made on one stream, and used on another without waiting."""
    index, x = random_edges(2000, 2000, 400000, "cuda"), torch.randn(2000, 64, device="cuda")
    weight, side = torch.rand(400000, device="cuda"), torch.cuda.Stream()
    torch.cuda.synchronize()
    for options in ({"edge_weight": weight}, {"loops": "one_each", "loop_weight": 2.0, "norm": "symmetric"}):
        tessera.clear_cache()
        expected = tessera.spmm(index, x, **options)
        with torch.cuda.stream(side):
            found = tessera.spmm(index, x, **options)
        torch.cuda.synchronize()
        assert torch.equal(found, expected)


def test_double_precision_is_pygs():
    index = random_edges(30, 30, 200, "cuda")
    x = torch.randn(30, 8, device="cuda", dtype=torch.float64)
    with pytest.raises((NotImplementedError, ValueError)):
        tessera.spmm(index, x, norm="symmetric")
    layer = tessera.nn.GCNConv(8, 4).cuda().double()
    layer(x, index).sum().backward()
    assert layer.tessera_fallback == "features of type torch.float64 on a GPU"


@pytest.mark.parametrize("form", ["additive", "v2", "dot"])
def test_terms_of_edges_where_tf32_is_allowed(form, products):
    index, heads = random_edges(200, 200, 3000, "cuda"), 2
    size = heads if form == "additive" else 32
    shapes = [(200, size), (200, size), (200, 32), *([(32,)] if form == "v2" else []),
              (3000, 32 if form == "v2" else heads)]
    tensors = [torch.randn(shape, device="cuda", requires_grad=True) for shape in shapes]
    found = []
    for allowed in (False, True):
        products.allow_tf32 = allowed
        *given, term = tensors
        out = tessera.attention(index, *given, form=form, heads=heads, scale=0.25, edge_term=term)
        found.append([out, *torch.autograd.grad(out.square().sum(), tensors)])
    for allowed, exact in zip(*found):
        assert torch.allclose(allowed, exact, rtol=1e-4, atol=1e-4)


def test_a_layer_where_tf32_is_set_by_name(products):
    import tessera.nn

    index, x = random_edges(200, 200, 3000, "cuda"), torch.randn(200, 16, device="cuda")
    layer = tessera.nn.GCNConv(16, 8).cuda()
    exact = layer(x, index)
    products.fp32_precision = "tf32"
    for _ in range(2):  # the second time by its route
        assert torch.allclose(layer(x, index), exact, rtol=1e-2, atol=1e-2)


def test_a_layer_with_features_of_edges_where_tf32_is_allowed(products):
    import tessera.nn

    products.allow_tf32 = True
    index, x = random_edges(200, 200, 3000, "cuda"), torch.randn(200, 16, device="cuda")
    layer = tessera.nn.GATConv(16, 8, heads=2, edge_dim=3).cuda()
    with tessera.trace() as kernels:
        out = layer(x, index, torch.randn(3000, 3, device="cuda"))
    assert "attention/cuda/terms forward" in kernels
    out.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())
