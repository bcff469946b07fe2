# SPDX-License-Identifier: Apache-2.0
"""tessera.loader with neighbours drawn on a GPU: the batches of the CPU. Skipped where there is no GPU."""

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import random_edges
from torch_geometric.data import Data

import tessera
from tessera.loader import LinkNeighborLoader, NeighborLoader

VERTICES, EDGES = 2000, 30000

needs_gpu = pytest.mark.skipif(not (torch.cuda.is_available() and tessera.has_cuda()),
                               reason="needs a GPU and the operators for CUDA")


def make_data():
    torch.manual_seed(5)
    return Data(x=torch.randn(VERTICES, 8), edge_index=random_edges(VERTICES, VERTICES, EDGES), edge_attr=torch.arange(EDGES),
                edge_weight=torch.rand(EDGES), time=torch.arange(VERTICES), edge_time=torch.arange(EDGES))


def contents(batch):
    return {key: value.tolist() if isinstance(value, torch.Tensor) else value for key, value in batch.to_dict().items()}


@needs_gpu
@pytest.mark.parametrize("options", [
    {}, {"replace": True}, {"disjoint": True}, {"weight_attr": "edge_weight"}, {"weight_attr": "edge_weight", "replace": True},
    {"time_attr": "time"}, {"time_attr": "time", "temporal_strategy": "last"}])
@pytest.mark.parametrize("fan_outs", [[5, 3], [-1, 2], [4, 0, -1]])
def test_batches_are_those_of_the_cpu(options, fan_outs):
    data = make_data()
    expected = list(NeighborLoader(data, fan_outs, batch_size=150, seed=7, **options))
    for place in (data, data.clone().to("cuda")):
        loader = NeighborLoader(place, fan_outs, batch_size=150, seed=7, device="cuda", num_workers=3, **options)
        batches = list(loader)
        assert len(batches) == len(expected)
        for batch, wanted in zip(batches, expected):
            assert batch.n_id.is_cuda and batch.x.device == place.x.device
            assert contents(batch) == contents(wanted)


@needs_gpu
@pytest.mark.parametrize("weight", [None, "edge_weight"])
def test_edges_may_stay_in_memory_of_the_host(weight):
    data = make_data()
    expected = list(NeighborLoader(data, [5, 3], batch_size=150, seed=7, weight_attr=weight))
    batches = list(NeighborLoader(data, [5, 3], batch_size=150, seed=7, weight_attr=weight, device="cuda", edge_memory="host"))
    assert [contents(batch) for batch in batches] == [contents(batch) for batch in expected]


@needs_gpu
def test_links_are_those_of_the_cpu():
    data = make_data()
    expected = list(LinkNeighborLoader(data, [4, 2], batch_size=5000, seed=3))
    batches = list(LinkNeighborLoader(data, [4, 2], batch_size=5000, seed=3, device="cuda"))
    assert [contents(batch) for batch in batches] == [contents(batch) for batch in expected]


@needs_gpu
def test_batches_may_be_used_while_others_are_drawn():
    data = make_data().to("cuda")
    model = pyg.GraphSAGE(8, 16, num_layers=2, out_channels=4).cuda().eval()
    expected = model(data.x, data.edge_index)
    for batch in NeighborLoader(data, [-1, -1], batch_size=64, device="cuda", prefetch_factor=4):
        found = model(batch.x, batch.edge_index)[:batch.batch_size]
        assert torch.allclose(found, expected[batch.n_id[:batch.batch_size]], atol=1e-4)


@needs_gpu
def test_a_gpu_draws_no_induced_samples():
    with pytest.raises(NotImplementedError, match="induced"):
        NeighborLoader(make_data(), [2], subgraph_type="induced", device="cuda")


@needs_gpu
def test_memory_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="'device' or 'host'"):
        NeighborLoader(make_data(), [2], device="cuda", edge_memory="disk")


@pytest.mark.parametrize("device, message", [("meta", "'cpu' or 'cuda'"), ("cuda", "draw on 'cpu'")])
def test_devices_that_cannot_draw_are_refused(device, message):
    if device == "cuda" and torch.cuda.is_available() and tessera.has_cuda():
        pytest.skip("there is a GPU")
    with pytest.raises(ValueError, match=message):
        NeighborLoader(make_data(), [2], device=device)


def test_the_default_is_the_cpu():
    batch = next(iter(NeighborLoader(make_data(), [2], batch_size=10, seed=1)))
    assert batch.n_id.device.type == "cpu"
