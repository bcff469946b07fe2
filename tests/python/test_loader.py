# SPDX-License-Identifier: Apache-2.0
"""tessera.loader: batches are PyG's, whatever draws them ahead."""

import inspect
import pickle
import threading

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import opcheck, random_edges
from torch_geometric import EdgeIndex
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import NeighborLoader as PygNeighborLoader
from torch_geometric.utils import trim_to_layer

from tessera._neighbour_sampler import NeighborSampler
from tessera.loader import LinkNeighborLoader, NeighborLoader

VERTICES, EDGES = 300, 3000


@pytest.fixture
def data():
    index = random_edges(VERTICES, VERTICES, EDGES)
    return Data(x=torch.randn(VERTICES, 8), y=torch.arange(VERTICES), edge_index=index, edge_attr=torch.arange(EDGES),
                edge_weight=torch.rand(EDGES), time=torch.arange(VERTICES), edge_time=torch.arange(EDGES))


def contents(batch):
    return {key: value.tolist() if isinstance(value, torch.Tensor) else value for key, value in batch.to_dict().items()}


def epochs(loader, count=1):
    return [[contents(batch) for batch in loader] for _ in range(count)]


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("disjoint", [False, True])
def test_batches_are_parts_of_the_graph(data, replace, disjoint):
    seeds = torch.randperm(VERTICES)[:70]
    loader = NeighborLoader(data, [4, 3], input_nodes=seeds, batch_size=20, replace=replace, disjoint=disjoint)
    assert len(loader) == 4 and str(loader) == "NeighborLoader()"
    degree = torch.bincount(data.edge_index[1], minlength=VERTICES)
    for k, batch in enumerate(loader):
        own = seeds[20 * k:20 * (k + 1)]
        assert batch.batch_size == len(own) and torch.equal(batch.n_id[:len(own)], own)
        assert torch.equal(batch.input_id, torch.arange(20 * k, 20 * k + len(own)))
        assert torch.equal(batch.x, data.x[batch.n_id]) and torch.equal(batch.y, batch.n_id)
        assert torch.equal(batch.edge_attr, batch.e_id)
        assert torch.equal(batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id])
        assert sum(batch.num_sampled_nodes) == batch.num_nodes and sum(batch.num_sampled_edges) == batch.num_edges
        drawn = torch.bincount(batch.edge_index[1], minlength=batch.num_nodes)
        first, then = batch.num_sampled_nodes[:2]
        for begin, end, fan_out in ((0, first, 4), (first, first + then, 3)):
            there = degree[batch.n_id[begin:end]]
            wanted = (there > 0) * fan_out if replace else there.clamp(max=fan_out)
            assert torch.equal(drawn[begin:end], wanted)
        assert not drawn[first + then:].any()
        if not replace:
            pairs = batch.e_id if not disjoint else torch.stack([batch.e_id, batch.batch[batch.edge_index[1]]])
            assert torch.unique(pairs, dim=-1).shape[-1] == batch.num_edges
        if disjoint:
            assert torch.equal(batch.batch[:len(own)], torch.arange(len(own)))
            assert torch.equal(*batch.batch[batch.edge_index])
        else:
            assert batch.batch is None and len(batch.n_id.unique()) == batch.num_nodes


@pytest.mark.parametrize("options", [{}, {"weight_attr": "edge_weight"}, {"time_attr": "time"}, {"disjoint": True}])
def test_threads_make_no_difference(data, options):
    def drawn(count=1, **more):
        return epochs(NeighborLoader(data, [5, 5], batch_size=32, **{"seed": 7, **options, **more}), count)

    expected = drawn(2)
    assert expected[0] != expected[1]
    assert drawn(2, num_workers=3, prefetch_factor=4, persistent_workers=True) == expected
    assert drawn(seed=8)[0] != expected[0]


def test_torchs_numbers_decide_without_a_seed(data):
    def drawn(seed):
        torch.manual_seed(seed)
        return epochs(NeighborLoader(data, [5], batch_size=32, shuffle=True, num_workers=2), 2)

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


@pytest.mark.parametrize("trimmed", [False, True])
def test_all_neighbours_give_what_the_whole_graph_gives(data, trimmed):
    model = pyg.GraphSAGE(8, 16, num_layers=2, out_channels=4).eval()
    expected = model(data.x, data.edge_index)
    for batch in NeighborLoader(data, [-1, -1], batch_size=64):
        x, edge_index = batch.x, batch.edge_index
        if trimmed:
            x = model(x, edge_index, num_sampled_nodes_per_hop=batch.num_sampled_nodes,
                      num_sampled_edges_per_hop=batch.num_sampled_edges)
        else:
            x = model(x, edge_index)
        assert torch.allclose(x[:batch.batch_size], expected[batch.n_id[:batch.batch_size]], atol=1e-5)


def test_counts_of_hops_are_pygs():
    edge_index = torch.tensor([[2, 3, 4, 5, 7, 7, 10, 11, 12, 13], [0, 1, 2, 3, 2, 3, 7, 7, 7, 7]])
    batch = next(iter(NeighborLoader(Data(edge_index=edge_index, num_nodes=14), [1, 2, 4], batch_size=2)))
    assert batch.num_sampled_nodes == [2, 2, 3, 4] and batch.num_sampled_edges == [2, 4, 4]
    x, edges, _ = trim_to_layer(1, batch.num_sampled_nodes, batch.num_sampled_edges, batch.n_id, batch.edge_index)
    assert len(x) == 7 and edges.shape[1] == 6


def test_subgraph_types(data):
    def batch(subgraph_type):
        return next(iter(NeighborLoader(data, [3, 3], batch_size=10, subgraph_type=subgraph_type, seed=3)))

    drawn, both, induced = batch("directional"), batch("bidirectional"), batch("induced")
    assert torch.equal(drawn.n_id, both.n_id) and torch.equal(drawn.n_id, induced.n_id)
    inside = torch.isin(data.edge_index, induced.n_id).all(0).nonzero().view(-1)
    assert torch.equal(induced.e_id.sort().values, inside)
    assert torch.equal(induced.n_id[induced.edge_index], data.edge_index[:, induced.e_id])
    ends = {tuple(edge) for edge in drawn.edge_index.t().tolist()}
    assert {tuple(edge) for edge in both.edge_index.t().tolist()} == ends | {(b, a) for a, b in ends}


def test_weights(data):
    data.edge_weight[: EDGES // 2] = 0
    for batch in NeighborLoader(data, [5, 5], batch_size=50, weight_attr="edge_weight"):
        assert (batch.e_id >= EDGES // 2).all()


@pytest.mark.parametrize("strategy", ["uniform", "last"])
@pytest.mark.parametrize("attribute", ["time", "edge_time"])
def test_times(data, attribute, strategy):
    seeds, times = torch.randperm(VERTICES)[:40], torch.randint(0, len(data[attribute]), (40,))
    loader = NeighborLoader(data, [5, 5], input_nodes=seeds, input_time=times, batch_size=40, time_attr=attribute,
                            temporal_strategy=strategy)
    batch = next(iter(loader))
    assert torch.equal(batch.seed_time, times)
    until = times[batch.batch[batch.edge_index[1]]]
    when = data.time[data.edge_index[0]] if attribute == "time" else data.edge_time
    assert (when[batch.e_id] <= until).all() and batch.num_edges > 20
    for place, (seed, time) in enumerate(zip(seeds.tolist(), times.tolist())):
        allowed = ((data.edge_index[1] == seed) & (when <= time)).nonzero().view(-1)
        drawn = batch.e_id[batch.edge_index[1] == place]
        assert len(drawn) == min(5, len(allowed)) and torch.isin(drawn, allowed).all()
        if strategy == "last":
            assert torch.equal(when[drawn].sort().values, when[allowed].sort().values[-5:])


def test_seeds_have_their_own_times(data):
    batch = next(iter(NeighborLoader(data, [-1], input_nodes=[200, 10], batch_size=2, time_attr="time")))
    assert (batch.time <= torch.tensor([200, 10])[batch.batch]).all()


@pytest.mark.parametrize("holder", ["int32", "EdgeIndex"])
def test_holders_of_edges(data, holder):
    expected = epochs(NeighborLoader(data, [3, 3], batch_size=64, seed=1))
    index = data.edge_index
    data.edge_index = index.int() if holder == "int32" else EdgeIndex(index, sparse_size=(VERTICES, VERTICES))
    assert epochs(NeighborLoader(data, [3, 3], batch_size=64, seed=1)) == expected


def test_masks_and_last_batches(data):
    mask = torch.zeros(VERTICES, dtype=torch.bool)
    mask[5:50] = True
    loader = NeighborLoader(data, [2], input_nodes=mask, batch_size=20, drop_last=True)
    assert [batch.input_id.tolist() for batch in loader] == [list(range(5, 25)), list(range(25, 45))]


def test_transforms_run_where_batches_are_used(data):
    threads = set()

    def note(batch):
        threads.add(threading.get_ident())
        batch.noted = True
        return batch

    loader = NeighborLoader(data, [2], batch_size=100, transform=note, num_workers=2)
    assert all(batch.noted for batch in loader) and loader([3]).noted
    assert threads == {threading.get_ident()}


def test_edgeless_graphs_and_repeated_seeds():
    batch = next(iter(NeighborLoader(Data(x=torch.ones(3, 2), edge_index=torch.empty(2, 0, dtype=torch.long)), [4, 4],
                                     input_nodes=[2, 2, 0], batch_size=3)))
    assert batch.n_id.tolist() == [2, 2, 0] and batch.num_edges == 0 and batch.num_sampled_nodes == [3, 0, 0]


def test_leaving_an_epoch_ends_its_threads(data):
    before = threading.active_count()
    for batch in NeighborLoader(data, [2], batch_size=10, num_workers=3):
        break
    del batch
    batches = iter(NeighborLoader(data, [2], batch_size=10))
    next(batches)
    batches.close()
    assert threading.active_count() == before


def test_samplers_are_pickled(data):
    sampler = NeighborSampler(data, [3, 3], seed=4)
    again = pickle.loads(pickle.dumps(sampler))
    one, same = (s._sample(torch.arange(20), step=5) for s in (sampler, again))
    assert torch.equal(one.node, same.node) and torch.equal(one.edge, same.edge)


def test_links(data):
    def loader(**options):
        return LinkNeighborLoader(data, [4, 4], batch_size=500, seed=2, **options)

    for batch in loader(num_workers=2):
        assert torch.equal(batch.n_id[batch.edge_label_index], data.edge_index[:, batch.input_id])
        assert torch.equal(batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id])
    assert epochs(loader()) == epochs(loader(num_workers=3))
    torch.manual_seed(1)
    first = epochs(loader(neg_sampling_ratio=1.0))
    torch.manual_seed(1)
    assert epochs(loader(neg_sampling_ratio=1.0)) == first
    assert first[0][0]["edge_label"] == [1.0] * 500 + [0.0] * 500


BAD = {
    "several types": (lambda d: NeighborLoader(HeteroData(), [1], input_nodes="a"), NotImplementedError, "one type"),
    "types of edges": (lambda d: NeighborLoader(d, {("a", "b", "c"): [1]}), NotImplementedError, "num_neighbors by types"),
    "no fan-outs": (lambda d: next(iter(NeighborLoader(d, []))), ValueError, "no fan-outs"),
    "a fan-out": (lambda d: next(iter(NeighborLoader(d, [-3]))), ValueError, "fan-out of -3"),
    "a seed": (lambda d: next(iter(NeighborLoader(d, [1], input_nodes=[300]))), ValueError, "seed 300 of a graph with 300"),
    "an attribute": (lambda d: NeighborLoader(d, [1], time_attr="when"), ValueError, "'when'"),
    "a weight": (lambda d: NeighborLoader(d, [1], weight_attr="heavy"), ValueError, "'heavy'"),
    "input_time": (lambda d: NeighborLoader(d, [1], input_time=d.time), ValueError, "time_attr is not"),
    "no time": (lambda d: next(iter(NeighborLoader(d, [1], time_attr="edge_time"))), ValueError, "give input_time"),
    "float times": (lambda d: NeighborLoader(d, [1], time_attr="edge_weight"), TypeError, "whole numbers"),
    "negative weights": (lambda d: NeighborLoader(d, [1], weight_attr="minus"), ValueError, "edge_weights"),
    "weights of vertices": (lambda d: NeighborLoader(d, [1], weight_attr="y"), ValueError, "300 numbers for 3000"),
    "a sparse matrix": (lambda d: NeighborLoader(Data(adj_t=torch.eye(4).to_sparse_csr()), [1]), TypeError, "torch.sparse"),
    "a strategy": (lambda d: NeighborLoader(d, [1], temporal_strategy="first"), ValueError, "'first'"),
    "processes": (lambda d: NeighborLoader(d, [1], worker_init_fn=print), TypeError, "worker_init_fn"),
    "times of links": (lambda d: LinkNeighborLoader(d, [1], time_attr="time"), ValueError, "belong together"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_meant(data, name):
    call, kind, message = BAD[name]
    data.minus = -data.edge_weight
    with pytest.raises(kind, match=message):
        call(data)


def test_arguments_are_pygs():
    ours, theirs = (inspect.signature(loader).parameters for loader in (NeighborLoader, PygNeighborLoader))
    assert [name for name in theirs if name not in ours] == []
    assert {name: one.default for name, one in theirs.items()} == {name: ours[name].default for name in theirs}


def test_opcheck():
    """How many neighbours there are is known when they are drawn: code is not compiled across these operators."""
    arguments = (random_edges(20, 20, 60), None, 20, 20, 0, 0, None, None, None)
    opcheck("neighbour_candidates", arguments, ("test_schema",))
    candidates = torch.ops.tessera.neighbour_candidates(*arguments)
    opcheck("draw_neighbours", (candidates, torch.arange(4), None, torch.tensor([3, 2]), False, False, False, False, 1, 0),
            ("test_schema",))
