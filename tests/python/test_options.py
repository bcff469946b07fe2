# SPDX-License-Identifier: Apache-2.0
"""Layers with options and inputs as they come: whatever PyG runs gives PyG's results and gradients, on kernels or not."""

import copy
import random

import pytest
import torch
import torch_geometric.nn as pyg
from torch_geometric import EdgeIndex
from torch_geometric.utils import to_torch_coo_tensor, to_torch_csr_tensor

import tessera

EITHER = [True, False]
ATTENTION = {"heads": [1, 2, 3], "concat": EITHER, "negative_slope": [0.2, 0.5], "add_self_loops": EITHER, "bias": EITHER,
             "edge_dim": [None, None, 3], "fill_value": ["mean", 0.5, "add", "max"], "residual": EITHER}
OPTIONS = {
    "GCNConv": {"improved": EITHER, "cached": [False, False, True], "add_self_loops": [None, True, False],
                "normalize": [True, True, False], "bias": EITHER, "aggr": ["add", "add", "mean", "max"]},
    "SAGEConv": {"aggr": ["mean", "sum", "max", "min", "add", "std"], "normalize": EITHER, "root_weight": EITHER,
                 "project": EITHER, "bias": EITHER},
    "GINConv": {"eps": [0.0, 0.3], "train_eps": EITHER, "aggr": ["add", "mean", "max"]},
    "GINEConv": {"eps": [0.0, 0.3], "train_eps": EITHER, "edge_dim": [3], "aggr": ["add", "add", "mean"]},
    "GATConv": ATTENTION,
    "GATv2Conv": {**ATTENTION, "share_weights": EITHER},
    "AGNNConv": {"requires_grad": EITHER, "add_self_loops": EITHER, "aggr": ["add", "add", "max"]},
    "SGConv": {"K": [1, 2, 3], "cached": [False, False, True], "add_self_loops": EITHER, "bias": EITHER},
    "ChebConv": {"K": [1, 2, 3, 4], "normalization": ["sym", "sym", "rw", None], "bias": EITHER},
    "TransformerConv": {"heads": [1, 2, 3], "concat": EITHER, "beta": EITHER, "edge_dim": [None, None, 3], "bias": EITHER,
                        "root_weight": EITHER},
    "APPNP": {"K": [1, 3], "alpha": [0.1, 0.5], "cached": [False, False, True], "add_self_loops": EITHER,
              "normalize": EITHER},
    "ClusterGCNConv": {"diag_lambda": [0.0, 0.5], "add_self_loops": [True, True, False], "bias": EITHER},
    "GraphConv": {"aggr": ["add", "mean", "max", "min", "std"], "bias": EITHER},
    "LGConv": {"normalize": EITHER, "aggr": ["add", "add", "mean"]},
    "TAGConv": {"K": [0, 1, 3], "normalize": EITHER, "bias": EITHER},
    "GCN2Conv": {"shared_weights": EITHER, "cached": [False, False, True], "add_self_loops": EITHER,
                 "normalize": [True, True, False]},
    "ARMAConv": {"num_stacks": [1, 3], "num_layers": [1, 2, 3], "shared_weights": EITHER, "bias": EITHER},
    "GatedGraphConv": {"aggr": ["add", "mean", "max", "median"], "bias": EITHER},
    "EdgeConv": {"aggr": ["max", "add", "mean", "median"]},
    "PNAConv": {"aggregators": [["mean", "max"], ["sum", "min", "var", "std"], ["median", "sum"]], "edge_dim": [None, None, 3],
                "scalers": [["identity"], ["linear", "attenuation", "inverse_linear"]], "deg": [torch.tensor([2, 5, 1])],
                "pre_layers": [1, 2], "post_layers": [1, 2], "train_norm": EITHER},
    "FiLMConv": {"aggr": ["mean", "add", "max"], "act": [None, torch.nn.Tanh()], "num_relations": [1, 1, 3]},
}
WEIGHTED = ("GCNConv", "SGConv", "APPNP", "ChebConv", "GraphConv", "LGConv", "TAGConv", "GCN2Conv", "ARMAConv", "GatedGraphConv")
PAIRED = ("SAGEConv", "GINConv", "GINEConv", "GATConv", "GATv2Conv", "TransformerConv", "GraphConv", "EdgeConv", "FiLMConv")
NETWORKS = [lambda inputs, outputs: torch.nn.Linear(inputs, outputs),
            lambda inputs, outputs: torch.nn.Sequential(torch.nn.Linear(inputs, 4), torch.nn.ReLU(),
                                                        torch.nn.Linear(4, outputs)),
            lambda inputs, outputs: torch.nn.Sequential(torch.nn.Linear(inputs, 4), torch.nn.LayerNorm(4),
                                                        torch.nn.ReLU(), torch.nn.Linear(4, outputs))]


class Case:
    """One layer of PyG, and what it is called with: on the CPU in double precision, where a difference is a fault."""

    def __init__(self, kind, seed, device):
        self.place = {"device": device, "dtype": torch.float64 if device.type == "cpu" else torch.float32}  # drawn on the CPU
        draw = random.Random(seed)
        torch.manual_seed(seed)
        options = {name: draw.choice(values) for name, values in OPTIONS[kind].items()}
        self.forward = draw.random() < 0.8
        options["flow"] = "source_to_target" if self.forward else "target_to_source"
        self.paired = kind in PAIRED and draw.random() < 0.3
        sources = draw.choice([1, 2, 5, 12, 30])
        targets = draw.choice([1, 3, 9]) if self.paired else sources
        inputs, outputs = draw.choice([1, 4, 7]), draw.choice([1, 3, 8])
        of_targets = inputs if kind in ("GINConv", "GINEConv", "EdgeConv") else inputs + draw.choice([0, 2])
        self.text = f"{kind} {options}, seed {seed}"
        network = draw.choice(NETWORKS)
        first = {"AGNNConv": (), "APPNP": (), "LGConv": (), "GINConv": (network(inputs, outputs),),
                 "GINEConv": (network(inputs, outputs),),
                 "EdgeConv": (network(2 * inputs, outputs),),
                 "GatedGraphConv": (inputs + outputs % 3, 2), "GCN2Conv": (inputs, 0.3, *((0.5, 2) if seed % 2 else ()))}.get(
            kind, ((inputs, of_targets) if self.paired else inputs, outputs))
        self.layer = getattr(pyg, kind)(*first, **options).to(**self.place)
        self.x = torch.randn(sources, inputs).to(**self.place)
        self.targets = torch.randn(targets, of_targets).to(**self.place) if self.paired else None
        self.more = (torch.randn(sources, inputs).to(**self.place),) if kind == "GCN2Conv" else ()
        edges = draw.choice([0, 1, 5, 40, 200])
        ends = torch.randint(0, sources, (edges,)), torch.randint(0, targets, (edges,))
        self.edges = torch.stack(ends if self.forward or not self.paired else ends[::-1]).to(device)
        self.named = {}
        if kind in WEIGHTED and draw.random() < 0.4:
            self.named["edge_weight"] = torch.rand(edges).to(**self.place) + 0.1
        if options.get("edge_dim") and draw.random() < 0.8:
            self.named["edge_attr"] = torch.randn(edges, 3).to(**self.place)
        self.types = {}
        if options.get("num_relations", 1) > 1:
            self.types["edge_type"] = torch.randint(0, 3, (edges,)).to(device)
        holder = draw.choice(["list", "list", "csr", "coo", "EdgeIndex"])
        if holder in ("csr", "coo") and self.forward:
            self.hold_sparse(to_torch_csr_tensor if holder == "csr" else to_torch_coo_tensor, (targets, sources),
                             draw.random() < 0.5)
        elif holder == "EdgeIndex" and edges > 0:
            size = (sources, targets) if self.forward or not self.paired else (targets, sources)
            self.edges = EdgeIndex(self.edges, sparse_size=size)

    def hold_sparse(self, made, size, weighted):
        edges = torch.unique(self.edges, dim=1).flip(0)
        values = torch.rand(edges.size(1)).to(**self.place) + 0.1 if weighted else None
        self.edges, self.named = made(edges, values, size=size), {}

    def run(self, layer):
        """The result, and gradients of all that can have one."""
        x = self.x.clone().requires_grad_()
        targets = None if self.targets is None else self.targets.clone().requires_grad_()
        pair = (x, targets) if self.forward else (targets, x)
        named = {name: tensor.clone().requires_grad_() for name, tensor in self.named.items()}
        out = layer(pair if self.paired else x, *self.more, self.edges, **named, **self.types)
        given = [tensor for tensor in (x, targets, *named.values(), *layer.parameters())
                 if tensor is not None and tensor.requires_grad]
        found = torch.autograd.grad(out.square().sum(), given, allow_unused=True) if out.requires_grad else ()
        zeros = [torch.zeros_like(tensor) if each is None else each for tensor, each in zip(given, found)]
        return [out.detach(), *zeros]


def check(found, expected):
    """Rounding errors of a gradient are as large as others are, also where it should be zero."""
    largest = max(float(theirs.nan_to_num().abs().max()) for theirs in expected if theirs.numel() > 0)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.shape == theirs.shape and mine.dtype == theirs.dtype
        assert torch.equal(mine.isnan(), theirs.isnan())
        bound = (1e-6 if theirs.dtype == torch.float64 else 1e-4) * (1 + largest)
        assert ((mine - theirs).nan_to_num().abs() <= bound).all()


def pygs(kind, seed, device):
    """What two calls of PyG's layer give; None where it does not know such a case."""
    try:
        case = Case(kind, seed, device)
        return [case.run(case.layer) for _ in range(2)]
    except Exception:
        return None


@pytest.mark.parametrize("kind", OPTIONS)
def test_options_as_they_come(kind, device):
    ran = on_kernels = 0
    for seed in range(60):
        expected = pygs(kind, seed, torch.device("cpu"))
        # An index outside would end all that follows on a GPU, where PyG does not know all cases, and keeps any of several
        # loops' weights.
        if expected is None or (device.type != "cpu" and pygs(kind, seed, device) is None):
            continue
        case = Case(kind, seed, device)
        layer = tessera.accelerate(copy.deepcopy(case.layer))
        try:
            for wanted in expected:
                check(case.run(layer), [tensor.to(**case.place) for tensor in wanted])
        except Exception as error:
            raise AssertionError(f"{case.text}, {layer.tessera_fallback}") from error
        ran, on_kernels = ran + 1, on_kernels + (layer.tessera_fallback is None)
    assert ran >= 20 and on_kernels >= 10, (ran, on_kernels)
