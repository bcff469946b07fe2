# SPDX-License-Identifier: Apache-2.0
"""What is kept of graphs goes when their tensors go, and is bounded while they stay."""

import gc
import threading

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import close, gathered, opcheck, random_edges
from torch_geometric import EdgeIndex

import tessera

GRAPHS = 10_000


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def entries():
    gc.collect()
    return tessera.cache_info()["entries"]


@pytest.fixture(autouse=True)
def empty_cache():
    tessera.clear_cache()
    yield
    tessera.set_cache_limits()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([pyg.GCNConv(4, 4), pyg.SAGEConv(4, 4), pyg.GATConv(4, 4)])

    def forward(self, x, edge_index):
        for layer in self.layers:
            x = layer(x, edge_index).relu()
        return x


def test_ten_thousand_graphs(device):
    """Forward and backward passes of accelerated layers: neither entries nor memory grow."""
    model = tessera.accelerate(Model()).to(device)
    x = torch.randn(50, 4, device=device)
    most, early = 0, None
    draw = torch.Generator().manual_seed(3)
    for step in range(GRAPHS):
        edge_index = torch.randint(50, (2, 200), generator=draw).to(device)
        loss = model(x, edge_index).sum() if step % 10 == 0 else tessera.spmm(edge_index, x.requires_grad_()).sum()
        loss.backward()
        most = max(most, tessera.cache_info()["entries"])
        if step == GRAPHS // 10:
            early = resident_bytes()
    assert most <= 4  # of one graph: as it is, and with loops; and of the one before it
    del edge_index, loss
    assert entries() == 0 and tessera.cache_info()["bytes"] == 0
    # Kept, these graphs would take more than 100 MB; allocators keep a few for the next request.
    assert resident_bytes() - early < 24 << 20


def test_graphs_that_live_are_kept():
    """More than any number of them: as many as memory has room for."""
    kept = [random_edges(20, 20, 40, seed=seed) for seed in range(200)]
    x = torch.randn(20, 4)
    for edge_index in kept:
        tessera.spmm(edge_index, x)
    before = tessera.counters()["graphs"]
    for edge_index in kept:
        tessera.spmm(edge_index, x)
    assert tessera.counters()["graphs"] == before and entries() == 200
    del kept[50:], edge_index
    assert entries() == 50


def test_a_view_is_kept_with_its_base():
    base = random_edges(20, 20, 40)
    x = torch.randn(20, 4)
    before = tessera.counters()["graphs"]
    for _ in range(3):
        tessera.spmm(base.view(2, -1), x)
        tessera.spmm(base.detach(), x)
    assert tessera.counters()["graphs"] == before + 1
    view = base.view(2, -1)
    del base
    assert entries() == 1
    tessera.spmm(view, x)
    assert tessera.counters()["graphs"] == before + 1
    del view
    assert entries() == 0


def test_rows_of_a_larger_tensor():
    larger = torch.stack([*random_edges(20, 20, 40), torch.arange(40)])
    x = torch.randn(20, 4)
    for part in (larger[:2], larger[:2, :20], larger[:2].flip(0)):
        close(tessera.spmm(part, x), gathered(part, x, 20), torch.float32)
    del part
    assert entries() == 2  # the flipped one was a copy
    del larger
    assert entries() == 0


def test_what_a_backward_pass_still_needs_stays():
    x = torch.randn(20, 4, requires_grad=True)
    edge_index = random_edges(20, 20, 40)
    y = tessera.spmm(edge_index, x)
    del edge_index
    before = tessera.counters()["graphs"]
    assert entries() == 1
    y.sum().backward()
    assert tessera.counters()["graphs"] == before
    del y
    assert entries() == 0


def test_layers_that_cache_their_graph_keep_it():
    layer = tessera.nn.GCNConv(4, 4, cached=True)
    layer(torch.randn(20, 4), random_edges(20, 20, 40))
    assert entries() >= 1
    del layer
    assert entries() == 0


@pytest.mark.parametrize("kind", ["EdgeIndex", "csr", "coo", "csr with gradients"])
def test_other_holders_of_edges(kind):
    index = random_edges(20, 20, 40, repeated=False)
    x = torch.randn(20, 4)
    values = torch.rand(index.size(1))
    coo = torch.sparse_coo_tensor(index.flip(0), values, (20, 20)).coalesce()
    holder = {"EdgeIndex": lambda: EdgeIndex(index, sparse_size=(20, 20)), "csr": coo.to_sparse_csr, "coo": lambda: coo,
              "csr with gradients": lambda: coo.to_sparse_csr().requires_grad_()}[kind]()
    del index, coo
    before = tessera.counters()["graphs"]
    for _ in range(3):
        tessera.spmm(tessera.Graph.of(holder, 20, 20), x)
    assert tessera.counters()["graphs"] == before + 1 and entries() == 1
    del holder
    assert entries() == 0


def test_arrays_of_numpy():
    array = random_edges(20, 20, 40).numpy()
    x = torch.randn(20, 4)
    for _ in range(5):
        index = torch.from_numpy(array)
        close(tessera.spmm(index, x), gathered(index, x, 20), torch.float32)
        array[1] = (array[1] + 1) % 20
    del index
    assert entries() == 0


def test_compiled_code():
    compiled = torch.compile(lambda edge_index, x: tessera.spmm(edge_index, x), backend="aot_eager", fullgraph=True)
    x = torch.randn(20, 4)
    for seed in range(5):
        index = random_edges(20, 20, 40, seed=seed)
        close(compiled(index, x), gathered(index, x, 20), torch.float32)
    del index
    assert entries() == 0


def test_the_operator_that_watches_tensors():
    opcheck("watch", (random_edges(20, 20, 40),))


def test_limits():
    kept = [random_edges(20, 20, 40, seed=seed) for seed in range(10)]
    x = torch.randn(20, 4)
    for edge_index in kept:
        tessera.spmm(edge_index, x)
    each = tessera.cache_info()["bytes"] // 10
    assert each >= 40 * 16
    tessera.set_cache_limits(bytes=4 * each)
    assert tessera.cache_info() == {"entries": 4, "bytes": 4 * each}
    tessera.set_cache_limits(entries=2)
    assert entries() == 2
    tessera.set_cache_limits(entries=0)
    tessera.spmm(kept[0], x)
    assert entries() == 1  # the newest stays
    for limit in ({"entries": -1}, {"bytes": -5}):
        with pytest.raises(ValueError, match="use 0 or more, or None for the default"):
            tessera.set_cache_limits(**limit)


def test_threads():
    """That use, drop and share graphs at once: each result is right, one build serves all, and nothing is left."""
    x = torch.randn(200, 4)
    shared = random_edges(200, 200, 2000)
    expected = gathered(shared, x, 200)
    before, wrong = tessera.counters()["graphs"], []
    together = threading.Barrier(4)

    def work(number):
        together.wait()
        close(tessera.spmm(shared, x), expected, torch.float32)
        for step in range(50):
            own = random_edges(200, 200, 300, seed=1000 * number + step)
            close(tessera.spmm(own, x), gathered(own, x, 200), torch.float32)

    def caught(number):
        try:
            work(number)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=caught, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert not wrong, wrong
    assert tessera.counters()["graphs"] == before + 1 + 4 * 50
    del shared
    assert entries() == 0
