# SPDX-License-Identifier: Apache-2.0
"""What bench/python/links.py measures: functions of PyG and of tessera.links that do the same, and how far apart what they
find is."""

import pathlib
from typing import Any, Callable, NamedTuple

import numpy
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch_geometric.data import Data
from torch_geometric.transforms import RandomLinkSplit
from torch_geometric.utils import negative_sampling, structured_negative_sampling

import tessera
from tessera import links


class Case(NamedTuple):
    """`runs` by who runs; the first is what ours, `tessera...`, is held against. `apart` says how far results are from each
    other, relative, and `bound` how far they may be."""

    runs: dict[str, Callable[[], Any]]
    apart: float
    bound: float = 1e-4
    steps: int = 1  # of training, in one run
    unit: str = "ms"


class Graphs:
    """Real graphs of a folder, or random ones of a tenth of their size."""

    SIZES = {"cora": (2708, 5278, 1433), "pubmed": (19717, 44324, 500), "amazon-computers": (13752, 245861, 767),
             "gowalla-lightgcn": (70839, 810128, 0)}
    USERS = 29858  # of gowalla-lightgcn; the others are items

    def __init__(self, folder, device, quick):
        self.folder, self.device, self.quick, self.known = folder and pathlib.Path(folder), device, quick, {}

    def __call__(self, name):
        """Features and edge_index."""
        if name not in self.known:
            self.known[name] = self.small(name) if self.quick else self.real(name)
        return self.known[name]

    def real(self, name):
        stored = numpy.load(self.folder / name / f"{name}.npz")
        index = torch.from_numpy(numpy.stack([stored["row"], stored["col"]]).astype("int64"))
        index = torch.unique(index[:, index[0] != index[1]], dim=1).to(self.device)
        if "x_data" not in stored:
            return None, index
        x = torch.sparse_csr_tensor(*(torch.from_numpy(stored[key]).long() for key in ("x_indptr", "x_indices")),
                                    torch.from_numpy(stored["x_data"]), (int(stored["num_nodes"]), int(stored["x_dim"])))
        x = x.to_dense().to(self.device)
        return x / x.sum(1, keepdim=True).clamp(min=1), index

    def small(self, name):
        vertices, edges, features = (size // 10 for size in self.SIZES[name])
        draw = torch.Generator().manual_seed(1)
        users = self.users(name)
        sources = torch.randint(0, users or vertices, (edges,), generator=draw)
        targets = torch.randint(users, vertices, (edges,), generator=draw)
        index = torch.cat([torch.stack([sources, targets]), torch.stack([targets, sources])], dim=1)
        index = torch.unique(index[:, index[0] != index[1]], dim=1).to(self.device)
        x = torch.rand(vertices, features, generator=draw).to(self.device) if features > 0 else None
        return x, index

    def users(self, name):
        """Of a graph of users and items; 0: it has none."""
        return 0 if name != "gowalla-lightgcn" else self.USERS // 10 if self.quick else self.USERS


def apart(found, expected):
    """The largest difference, relative to the largest number."""
    pairs = list(zip(found, expected))
    return max(((a - b).abs().max() / b.abs().max().clamp(min=1e-30)).item() for a, b in pairs)


class Encoder(torch.nn.Module):
    """Two GCN layers, 32 and 16 wide: PyG's graph auto-encoder."""

    def __init__(self, features, cached):
        super().__init__()
        self.layers = torch.nn.ModuleList([pyg.GCNConv(features, 32, cached=cached), pyg.GCNConv(32, 16, cached=cached)])

    def forward(self, x, edge_index):
        return self.layers[1](self.layers[0](x, edge_index).relu(), edge_index)


class Perceptron(torch.nn.Module):
    """Scores both ends, one behind the other, as PyG's users write it."""

    def __init__(self, width=16, hidden=32):
        super().__init__()
        self.hidden, self.last = torch.nn.Linear(2 * width, hidden), torch.nn.Linear(hidden, 1)


def pyg_scores(h, pairs, perceptron):
    if perceptron is None:
        return (h[pairs[0]] * h[pairs[1]]).sum(-1)
    return perceptron.last(perceptron.hidden(torch.cat([h[pairs[0]], h[pairs[1]]], dim=-1)).relu()).view(-1)


def our_scores(h, pairs, perceptron):
    if perceptron is None:
        return links.dot(h, pairs)
    hidden, last = perceptron.hidden, perceptron.last
    return links.mlp(h, pairs, hidden.weight, hidden.bias, last.weight, last.bias)


def pyg_loss(positives, negatives):
    labels = torch.cat([torch.ones_like(positives), torch.zeros_like(negatives)])
    return F.binary_cross_entropy_with_logits(torch.cat([positives, negatives]), labels)


def stepping(made, loss):
    """A step of training: what is called, the model and its optimiser."""
    def step(model, update):
        update.zero_grad(set_to_none=True)
        loss(model).backward()
        update.step()

    return step, *made


def eager(step, model, update):
    return lambda: step(model, update)


def captured(step, model, update):
    """The step as one replay of a CUDA graph, of PyG's model as of ours."""
    replay = tessera.capture(step, model, update, ())

    def run():
        while not replay.is_captured:
            replay()
        replay()

    return run


class LinkSteps:
    """Training steps that predict links: encoder, negatives, decoder, loss, update."""

    def __init__(self, x, edge_index, decoder):
        self.x, self.split, self.decoder = x, links.split(edge_index, seed=1), decoder
        self.vertices = x.size(0)
        self.clock = torch.zeros(1, dtype=torch.int64, device=x.device)
        self.on_gpu = x.is_cuda

    def made(self, is_ours, capturable=False):
        torch.manual_seed(0)
        # PyG is measured with the normalised graph kept, which its layers do if asked, and ours always.
        model = torch.nn.ModuleDict({"encoder": Encoder(self.x.size(1), cached=not is_ours)})
        if self.decoder == "mlp":
            model["decoder"] = Perceptron()
        model = model.to(self.x.device)
        if is_ours:
            tessera.accelerate(model)
        update = torch.optim.Adam(model.parameters(), lr=0.01, capturable=capturable, fused=True)
        return model, update

    def pyg_loss_of(self, model, negatives):
        h = model["encoder"](self.x, self.split.train_edges)
        perceptron = model["decoder"] if self.decoder == "mlp" else None
        pairs = torch.cat([self.split.train, negatives], dim=1)
        scores = pyg_scores(h, pairs, perceptron)
        count = self.split.train.size(1)
        return pyg_loss(scores[:count], scores[count:])

    def our_loss_of(self, model, negatives):
        h = model["encoder"](self.x, self.split.train_edges)
        perceptron = model["decoder"] if self.decoder == "mlp" else None
        return links.bce_loss(our_scores(h, self.split.train, perceptron), our_scores(h, negatives, perceptron))

    def drawn(self):
        return torch.randint(0, self.vertices, self.split.train.shape, device=self.x.device)

    def sampled(self):
        return negative_sampling(self.split.train_edges, self.vertices, self.split.train.size(1))

    def pyg(self, negatives=None, capturable=False, compiles=False):
        draws = negatives or self.drawn

        def loss(model):
            return self.pyg_loss_of(model, draws())

        made = self.made(False, capturable)
        if compiles:
            loss(made[0])  # the layers keep what they normalise
            loss = torch.compile(loss)
        return stepping(made, loss)

    def ours(self, capturable=False):
        at = {"step": 0}

        def loss(model):
            at["step"] += 1
            step = self.clock if capturable else at["step"]
            negatives = links.negative_sampling(self.split.train_edges, self.split.train, seed=1, step=step)
            if capturable:
                self.clock.add_(1)
            return self.our_loss_of(model, negatives)

        return stepping(self.made(True, capturable), loss)

    def apart(self):
        """Losses and gradients of the same pairs."""
        negatives, found = self.drawn(), []
        for is_ours, loss_of in ((False, self.pyg_loss_of), (True, self.our_loss_of)):
            model, _ = self.made(is_ours)
            loss = loss_of(model, negatives)
            found.append([loss.detach(), *torch.autograd.grad(loss, list(model.parameters()))])
        return apart(found[1], found[0])


def step_case(graph, decoder="dot", compiles=True):
    def case(graphs):
        steps = LinkSteps(*graphs(graph), decoder)
        runs = {"pyg": eager(*steps.pyg()), "pyg own sampler": eager(*steps.pyg(steps.sampled)), "tessera": eager(*steps.ours())}
        if steps.on_gpu:
            if compiles:
                runs["pyg compiled"] = eager(*steps.pyg(compiles=True))
        else:  # where its own sampler runs, it is the one that avoids edges, as ours does
            runs = {"pyg own sampler": runs["pyg own sampler"], "pyg": runs["pyg"], "tessera": runs["tessera"]}
        return Case(runs, steps.apart(), 1e-3)

    return case


def captured_case(graph):
    """A case of its own: a step that cannot be captured may leave torch unable to do anything else."""
    def case(graphs):
        steps = LinkSteps(*graphs(graph), "dot")
        return Case({"tessera captured": captured(*steps.ours(capturable=True)),
                     "pyg captured": captured(*steps.pyg(capturable=True))}, steps.apart(), 1e-3)

    return case


class Recommending:
    """Epochs of LightGCN: embeddings of 64 numbers, three layers, BPR in batches of 8192."""

    BATCH, WIDTH, LAYERS = 8192, 64, 3

    def __init__(self, graphs):
        _, self.index = graphs("gowalla-lightgcn")
        self.users = graphs.users("gowalla-lightgcn")
        self.vertices = int(self.index.max()) + 1
        chosen = self.index[:, self.index[0] < self.users]
        self.pairs = torch.stack([chosen[0], chosen[1] - self.users])
        self.items = self.vertices - self.users
        self.known = tessera.Graph(self.pairs, self.items, self.users)
        self.device = self.index.device
        self.batches = max(self.pairs.size(1) // self.BATCH, 1)
        self.size = min(self.BATCH, self.pairs.size(1))

    def made(self, is_ours, capturable=False):
        torch.manual_seed(0)
        model = pyg.LightGCN(self.vertices, self.WIDTH, self.LAYERS)
        torch.nn.init.normal_(model.embedding.weight, std=0.1)
        if is_ours:
            tessera.accelerate(model)
        model = model.to(self.device)
        return model, torch.optim.Adam(model.parameters(), lr=1e-3, fused=True, capturable=capturable)

    def adjacency(self):
        """Normalised once, sparse: PyG's fastest way."""
        degrees = torch.bincount(self.index[1], minlength=self.vertices).float()
        values = (degrees[self.index[0]] * degrees[self.index[1]]).rsqrt()
        return torch.sparse_coo_tensor(self.index, values, (self.vertices,) * 2).coalesce().to_sparse_csr()

    def pyg_loss(self, model, adjacency, batch, negatives):
        h = model.get_embedding(adjacency)
        users, right, wrong = h[batch[0]], h[self.users + batch[1]], h[self.users + negatives]
        return -F.logsigmoid((users * right).sum(-1) - (users * wrong).sum(-1)).mean()

    def our_loss(self, model, batch, negatives):
        h = model.get_embedding(self.index)
        users, items = h[:self.users], h[self.users:]
        return links.bpr_loss(links.dot(users, batch, items), links.dot(users, negatives, items))

    def pyg(self, adjacency=None, batches=None):
        model, update = self.made(False)
        if adjacency is not None:
            for layer in model.convs:
                layer.normalize = False
        graph = self.index if adjacency is None else adjacency

        def epoch():
            order = torch.randperm(self.pairs.size(1), device=self.device)
            for number in range(batches or self.batches):
                batch = self.pairs[:, order[number * self.size:(number + 1) * self.size]]
                negatives = torch.randint(0, self.items, (batch.size(1),), device=self.device)
                update.zero_grad(set_to_none=True)
                self.pyg_loss(model, graph, batch, negatives).backward()
                update.step()

        return epoch

    def ours(self, batches=None):
        model, update = self.made(True)
        at = {"step": 0}

        def epoch():
            for _ in range(batches or self.batches):
                step = at["step"]
                at["step"] += 1
                batch = links.batch(self.pairs, self.size, seed=1, step=step)
                negatives = links.negative_sampling(self.known, batch, "by_source", seed=1, step=step)
                update.zero_grad(set_to_none=True)
                self.our_loss(model, batch, negatives).backward()
                update.step()

        return epoch

    def ours_captured(self, batches=None):
        """The same with the number of the step on the GPU, where each replay reads it."""
        clock = torch.zeros(1, dtype=torch.int64, device=self.device)

        def loss(model):
            batch = links.batch(self.pairs, self.size, seed=1, step=clock)
            negatives = links.negative_sampling(self.known, batch, "by_source", seed=1, step=clock)
            clock.add_(1)
            return self.our_loss(model, batch, negatives)

        replay = captured(*stepping(self.made(True, capturable=True), loss))

        def epoch():
            for _ in range(batches or self.batches):
                replay()

        return epoch

    def apart(self):
        batch = links.batch(self.pairs, self.size, seed=3)
        negatives = links.negative_sampling(self.known, batch, "by_source", seed=3)
        found = []
        for is_ours in (False, True):
            model, _ = self.made(is_ours)
            loss = self.our_loss(model, batch, negatives) if is_ours else self.pyg_loss(model, self.index, batch, negatives[1])
            found.append([loss.detach(), *torch.autograd.grad(loss, [model.embedding.weight])])
        return apart(found[1], found[0])


def lightgcn_case(batches=None):
    def case(graphs):
        work = Recommending(graphs)
        runs = {"pyg sparse": work.pyg(work.adjacency(), batches), "pyg": work.pyg(None, batches), "tessera": work.ours(batches)}
        return Case(runs, work.apart(), 1e-3, batches or work.batches)

    return case


def captured_lightgcn_case(graphs):
    work = Recommending(graphs)
    return Case({"tessera captured": work.ours_captured()}, work.apart(), 1e-3, work.batches)


def negatives_case(graph, kind="uniform"):
    def case(graphs):
        _, index = graphs(graph)
        vertices, at = int(index.max()) + 1, {"step": 0}
        known = tessera.Graph(index, vertices, vertices)

        def ours():
            at["step"] += 1
            return links.negative_sampling(known, index, kind, seed=1, step=at["step"])

        def theirs():
            if kind == "uniform":
                return negative_sampling(index, vertices, index.size(1))
            return structured_negative_sampling(index, vertices)

        drawn = ours()
        wrong = torch.isin(drawn[0] * vertices + drawn[1], index[0] * vertices + index[1]).sum().item()
        return Case({"pyg": theirs, "tessera": ours}, float(wrong + drawn.size(1) - index.size(1)), 0)

    return case


def split_case(graph):
    def case(graphs):
        _, index = graphs(graph)
        data = Data(edge_index=index, num_nodes=int(index.max()) + 1)
        theirs = RandomLinkSplit(0.05, 0.1, is_undirected=True, add_negative_train_samples=False, neg_sampling_ratio=0.0)
        counts = [part.edge_label_index.size(1) for part in theirs(data)]
        found = links.split(index, 0.05, 0.1)
        ours = [found.train.size(1), found.validation.size(1), found.test.size(1)]
        return Case({"pyg": lambda: theirs(data), "tessera": lambda: links.split(index, 0.05, 0.1, seed=1)},
                    max(abs(a - b) / b for a, b in zip(ours, counts)), 1e-2)

    return case


def both_passes(function, leaves):
    """Scores or a loss, and gradients."""
    def run():
        found = function(*leaves)
        return torch.autograd.grad(found, leaves, torch.ones_like(found))

    return run


def passes_case(theirs, ours, leaves, bound=1e-4):
    found = both_passes(ours, leaves)(), both_passes(theirs, leaves)()
    scores = apart([ours(*leaves).detach()], [theirs(*leaves).detach()])
    return Case({"pyg": both_passes(theirs, leaves), "tessera": both_passes(ours, leaves)},
                max(scores, apart(*found)), bound)


def normal(graphs, *shape):
    draw = torch.Generator().manual_seed(len(shape) + shape[0])
    return torch.randn(*shape, generator=draw).to(graphs.device).requires_grad_()


def dot_case(graphs):
    _, index = graphs("amazon-computers")
    h = normal(graphs, int(index.max()) + 1, 64)
    return passes_case(lambda h: pyg_scores(h, index, None), lambda h: links.dot(h, index), [h])


def distmult_case(graphs):
    _, index = graphs("amazon-computers")
    h, relations = normal(graphs, int(index.max()) + 1, 64), normal(graphs, 4, 64)
    of = torch.arange(index.size(1), device=graphs.device) % 4
    return passes_case(lambda h, r: (h[index[0]] * r[of] * h[index[1]]).sum(-1), lambda h, r: links.distmult(h, index, r, of),
                       [h, relations])


def mlp_case(graphs):
    _, index = graphs("pubmed")
    h, perceptron = normal(graphs, int(index.max()) + 1, 64), Perceptron(64, 64).to(graphs.device)
    return passes_case(lambda h: pyg_scores(h, index, perceptron), lambda h: our_scores(h, index, perceptron), [h])


def loss_case(theirs, ours):
    def case(graphs):
        count = 10_000 if graphs.quick else 1_000_000
        return passes_case(theirs, ours, [normal(graphs, count), normal(graphs, count, 1)])

    return case


def bce_case(graphs):
    return loss_case(lambda p, n: pyg_loss(p, n.view(-1)), links.bce_loss)(graphs)


def bpr_case(graphs):
    return loss_case(lambda p, n: -F.logsigmoid(p - n.view(-1)).mean(), links.bpr_loss)(graphs)


def metric_case(theirs, ours, bound=1e-12):
    return Case({"pyg": theirs, "tessera": ours}, abs(float(theirs()) - float(ours())), bound)


def scores_with_ties(graphs, *shape):
    return (normal(graphs, *shape).detach() * 1000).round() / 1000


def roc_auc_case(graphs):
    """PyG's examples take scikit-learn's."""
    from sklearn.metrics import roc_auc_score
    count = 10_000 if graphs.quick else 1_000_000
    positives, negatives = scores_with_ties(graphs, count), scores_with_ties(graphs, count, 1).view(-1)
    labels = torch.cat([torch.ones(count), torch.zeros(count)])
    both = torch.cat([positives + 1, negatives]).cpu()
    return metric_case(lambda: roc_auc_score(labels.numpy(), both.numpy()), lambda: links.roc_auc(positives + 1, negatives))


def ranks_case(graphs):
    """As ogb's evaluator of ogbl-citation2 has it."""
    rows = 1000 if graphs.quick else 20_000
    positives, negatives = scores_with_ties(graphs, rows), scores_with_ties(graphs, rows, 1000 // (10 if graphs.quick else 1))

    def theirs():
        wanted = positives.view(-1, 1)
        best, worst = (negatives > wanted).sum(1), (negatives >= wanted).sum(1)
        return (1.0 / (0.5 * (best + worst).double() + 1)).mean()

    return metric_case(theirs, lambda: links.mean_reciprocal_rank(links.ranks(positives, negatives)))


def torch_lists(queries, candidates, count, rows):
    found = [(queries[first:first + rows] @ candidates.t()).topk(count, dim=1) for first in range(0, queries.size(0), rows)]
    return torch.cat([one.values for one in found])


def top_case(graphs):
    """Beside torch's product and topk by blocks of rows."""
    sizes = (500, 4000) if graphs.quick else (50_000, 40_000) if graphs.device.type == "cuda" else (2000, 40_000)
    queries, candidates = (normal(graphs, size, 64).detach() for size in sizes)
    rows = 1024 if graphs.device.type == "cuda" else 256
    sample = slice(0, 500)
    found = links.top(queries[sample], candidates, 10)
    expected = torch_lists(queries[sample].double(), candidates.double(), 10, rows)
    runs = {"torch": lambda: torch_lists(queries, candidates, 10, rows), "tessera": lambda: links.top(queries, candidates, 10)}
    if graphs.device.type == "cuda":
        blocks = {f"product by {rows} rows": blocked(queries, candidates, rows) for rows in (256, 1024, 4096, 16384)}
        runs = {**blocks, **runs, **{f"tessera by {mib} MiB": lambda mib=mib: links.top(queries, candidates, 10, block_bytes=mib << 20)
                                     for mib in (64, 128, 512)}}
    return Case(runs, apart([found.scores.double()], [expected]), 1e-5)


def blocked(queries, candidates, rows):
    """cuBLAS's product in fp32, each block stored in the place of the one before."""
    block, turned = queries.new_empty(rows, candidates.size(0)), candidates.t()

    def run():
        for first in range(0, queries.size(0), rows):
            part = queries[first:first + rows]
            torch.mm(part, turned, out=block[:part.size(0)])

    return run


def list_quality_case(graphs):
    from torch_geometric.metrics import LinkPredNDCG, LinkPredRecall
    rows, items, count = (300, 500, 20) if graphs.quick else (20_000, 40_000, 20)
    draw = torch.Generator().manual_seed(1)
    lists = torch.stack([torch.randperm(items, generator=draw)[:count] for _ in range(200)]).repeat(rows // 200 + 1, 1)[:rows]
    right = torch.unique(torch.stack([torch.randint(0, rows, (rows * 20,), generator=draw),
                                      torch.randint(0, items, (rows * 20,), generator=draw)]), dim=1)
    lists, right = lists.to(graphs.device), right.to(graphs.device)

    def theirs():
        found = 0.0
        for metric in (LinkPredRecall(count), LinkPredNDCG(count)):
            metric.update(lists, right)
            found = metric.compute()
        return found

    return metric_case(theirs, lambda: links.list_quality(lists, right).ndcg, 1e-6)


CPU = {
    "step cora": step_case("cora"), "step pubmed": step_case("pubmed"), "step amazon-computers": step_case("amazon-computers"),
    "step mlp pubmed": step_case("pubmed", "mlp"), "step lightgcn gowalla": lightgcn_case(1),
    "negatives pubmed": negatives_case("pubmed"), "negatives amazon-computers": negatives_case("amazon-computers"),
    "negatives by source pubmed": negatives_case("pubmed", "by_source"), "negatives gowalla": negatives_case("gowalla-lightgcn"),
    "split pubmed": split_case("pubmed"), "split amazon-computers": split_case("amazon-computers"),
    "dot amazon-computers": dot_case, "distmult amazon-computers": distmult_case, "mlp pubmed": mlp_case,
    "bce": bce_case, "bpr": bpr_case, "roc_auc": roc_auc_case, "ranks": ranks_case, "top": top_case,
    "list_quality": list_quality_case,
}
GPU = {"step pubmed": CPU["step pubmed"], "step amazon-computers": CPU["step amazon-computers"],
       "captured step pubmed": captured_case("pubmed"), "captured step amazon-computers": captured_case("amazon-computers"),
       "epoch lightgcn gowalla": lightgcn_case(), "captured epoch lightgcn gowalla": captured_lightgcn_case, "top": top_case}
