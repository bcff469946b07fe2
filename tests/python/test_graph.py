# SPDX-License-Identifier: Apache-2.0
"""Graphs from whatever holds edges, and how long what was made of them is kept."""

import pytest
import torch
from conftest import close, gathered, random_edges
from test_users import AdjT
from torch_geometric import EdgeIndex
from torch_geometric.data import Data, HeteroData

import tessera
import tessera.nn


def dense(graph):
    return tessera.spmm(graph, torch.eye(graph.num_sources))


@pytest.fixture(autouse=True)
def empty_cache():
    tessera.clear_cache()
    yield
    tessera.set_cache_limits()


def test_every_kind_of_input_is_the_same_graph():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    index = random_edges(9, 9, 40, repeated=False)
    matrix = torch.zeros(9, 9)
    matrix[index[1], index[0]] = 1
    kinds = [
        index,
        index.int(),
        matrix.to_sparse_csr(),
        matrix.to_sparse_csc(),
        matrix.to_sparse_coo(),
        Data(edge_index=index, num_nodes=9),
        EdgeIndex(index, sparse_size=(9, 9)),
        scipy_sparse.csr_matrix(matrix.numpy()),
        scipy_sparse.coo_matrix(matrix.numpy()),
        tessera.Graph(index, 9, 9),
    ]
    for kind in kinds:
        assert torch.equal(dense(tessera.Graph.of(kind, 9, 9)), matrix), type(kind)
    assert torch.equal(dense(tessera.Graph.of(index, 9, 9).reversed()), matrix.t())
    assert torch.equal(dense(tessera.Graph.of(matrix.to_sparse_csr()).reversed()), matrix.t())


def test_sparse_tensors_of_torch_sparse():
    matrix = torch.rand(6, 4) * (torch.rand(6, 4) > 0.5)
    assert torch.allclose(dense(tessera.Graph.of(AdjT(matrix, values=True))), matrix)


def test_weights_of_sparse_matrices_count():
    matrix = torch.rand(6, 4) * (torch.rand(6, 4) > 0.5)
    for sparse in (matrix.to_sparse_csr(), matrix.to_sparse_csc(), matrix.to_sparse_coo()):
        assert torch.allclose(dense(tessera.Graph.of(sparse)), matrix)


def test_rows_of_a_csr_need_no_order():
    sparse = torch.sparse_csr_tensor([0, 3, 4], [2, 0, 0, 1], [1.0, 2.0, 3.0, 4.0], (2, 3))
    assert torch.equal(dense(tessera.Graph.of(sparse)), torch.tensor([[5.0, 0, 1], [0, 4, 0]]))


def test_repeated_edges_count():
    index = torch.tensor([[0, 0, 0, 1], [1, 1, 1, 1]])
    x = torch.tensor([[1.0], [5.0]])
    assert tessera.spmm(index, x)[1].item() == 8
    assert tessera.spmm(index, x, reduce="mean")[1].item() == 2
    assert tessera.spmm(index, x, reduce="max")[1].item() == 5
    y = x.clone().requires_grad_()
    tessera.spmm(index, y, reduce="min").sum().backward()
    assert y.grad.tolist() == [[1.0], [0.0]]


def test_a_graph_is_built_once():
    index, x = random_edges(30, 30, 100), torch.randn(30, 8)
    before = tessera.counters()["graphs"]
    for _ in range(3):
        tessera.spmm(index, x)
        tessera.spmm(tessera.Graph(index, 30, 30), x)
        tessera.spmm(index.view(2, -1), x)
    assert tessera.counters()["graphs"] == before + 1


def test_a_change_in_place_is_noticed():
    index, x = torch.tensor([[0, 1], [1, 2]]), torch.eye(3)
    first = tessera.spmm(index, x)
    index[1, 0] = 2
    second = tessera.spmm(index, x)
    assert not torch.equal(first, second)
    assert second[2].tolist() == [1.0, 1.0, 0.0]


def test_an_array_that_is_filled_anew_is_another_graph():
    """Simulations fill one buffer with the edges of each step, and make a tensor of it: its versions begin at 0."""
    edges = random_edges(20, 20, 50).numpy().copy()
    x = torch.randn(20, 4)
    for seed in range(3):
        edges[:] = random_edges(20, 20, 50, seed=seed).numpy()
        index = torch.from_numpy(edges)
        close(tessera.spmm(index, x), gathered(index, x, 20), torch.float32)
    with torch.inference_mode():
        index = torch.from_numpy(edges)
        close(tessera.spmm(index, x), gathered(index, x, 20), torch.float32)


def test_memory_that_is_used_again_is_not_taken_for_the_old_graph():
    x = torch.eye(50)
    for seed in range(20):
        index = random_edges(50, 50, 64, seed=seed)
        expected = torch.zeros(50, 50).index_put_((index[1], index[0]), torch.ones(64), accumulate=True)
        assert torch.equal(tessera.spmm(index, x), expected)
        del index


def test_the_cache_is_bounded():
    tessera.set_cache_limits(entries=4)
    kept = [random_edges(20, 20, 40, seed=seed) for seed in range(6)]
    x = torch.randn(20, 4)
    for index in kept:
        tessera.spmm(index, x)
    before = tessera.counters()["graphs"]
    tessera.spmm(kept[-1], x)
    assert tessera.counters()["graphs"] == before
    tessera.spmm(kept[0], x)
    assert tessera.counters()["graphs"] == before + 1


def test_tensors_of_inference_mode():
    x = torch.randn(20, 4)
    with torch.inference_mode():
        index = random_edges(20, 20, 40).clone()
        first = tessera.spmm(index, x)
        index[1].fill_(3)
        second = tessera.spmm(index, x)
    assert not torch.equal(first, second)


def test_no_copies_and_no_memory_but_the_result():
    """The features are read where they are: a run takes the memory of its result and no more."""
    import torch.profiler as profiler

    index, x = random_edges(500, 500, 4000), torch.randn(500, 64)
    tessera.spmm(index, x)
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        y = tessera.spmm(index, x)
    taken = sum(event.self_cpu_memory_usage for event in profile.key_averages()
                if event.self_cpu_memory_usage > 0)
    assert taken <= y.numel() * y.element_size() + 4096


def test_edges_of_one_type(device):
    data = HeteroData()
    data["paper"].x, data["author"].num_nodes = torch.ones(30, 4), 12
    edges = random_edges(30, 12, 50)
    data["author", "writes", "paper"].edge_index = edges
    data = data.to(device)
    graph = tessera.Graph.of(data["author", "writes", "paper"])
    assert (graph.num_sources, graph.num_targets, graph.num_edges) == (12, 30, 50)
    x = torch.randn(12, 4, device=device)
    assert torch.equal(tessera.spmm(graph, x), tessera.spmm(tessera.Graph(edges.to(device), 30, 12), x))
    with pytest.raises(TypeError, match=r"HeteroData holds edges of several types: use Graph.of\(data\[edge_type\]\)"):
        tessera.Graph.of(data)


def test_more_vertices_than_edges_name(device):
    """Of ``num_nodes``, where the last vertices have no edges."""
    edges = random_edges(20, 20, 60, device)
    graph = tessera.Graph.of(Data(edge_index=edges, num_nodes=35))
    y = tessera.spmm(graph, torch.ones(35, 3, device=device))
    assert y.shape == (35, 3) and not y[20:].any()


def test_an_edge_index_of_another_size_is_left_to_pyg():
    """Which says what is wrong: an EdgeIndex knows how many vertices it is for."""
    edges = random_edges(20, 20, 50)
    for kind in (tessera.nn.SAGEConv, tessera.nn.GATConv, tessera.nn.GCNConv):
        layer = kind(4, 2)
        layer(torch.randn(20, 4), EdgeIndex(edges, sparse_size=(20, 20)))
        assert layer.tessera_fallback is None
        with pytest.raises(ValueError, match="expected size 33"):
            layer(torch.randn(20, 4), EdgeIndex(edges, sparse_size=(33, 33)))


def test_the_number_of_vertices_is_asked_once(device, monkeypatch):
    """To read it waits for a GPU."""
    index = torch.tensor([[0, 3], [2, 1]], device=device)
    assert tessera.Graph(index).num_sources == 4
    asked, largest = [], torch.Tensor.max
    monkeypatch.setattr(torch.Tensor, "max", lambda tensor: asked.append(tensor) or largest(tensor))
    assert tessera.Graph(index).num_sources == 4 and not asked
    index[0, 1] = 5
    assert tessera.Graph(index).num_sources == 6 and len(asked) == 1
