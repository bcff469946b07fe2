# SPDX-License-Identifier: Apache-2.0
"""TC-GNN's Figure 7: how many tiles a graph needs with and without translation, by the height of its windows.

    tools/report.py tiles --data GRAPHS
    tools/report.py tiles twin:cora twin:pubmed

Counts, no times: every machine gives the same. SOURCE is what `tessera tiles --data` takes; without one the real
graphs of --data are counted.
"""
from . import common

SOURCES = []
GRAPHS = ["cora", "citeseer", "pubmed", "amazon-computers", "DD", "COLLAB", "NCI-balanced-union", "ego-facebook",
          "ego-twitter", "fb100-Cornell5", "soc-Epinions1"]


def measure(run):
    sources = run.options.sources or common.real_graphs(run.options, GRAPHS)
    return [run.call("tiles", "--data", source) for source in sources]


PARTS = {"tiles": measure}


def factor(stats):
    return stats["blocks_before"] / max(1, stats["blocks_after"])


def heights_table(reports, title, cell):
    yield f"## {title}\n"
    yield from common.table(["graph", *(str(one["height"]) for one in reports[0]["heights"])],
                            [[report["name"], *map(cell, report["heights"])] for report in reports])


def lines(record):
    reports = record["parts"]["tiles"]
    fewer = [factor(report["spmm_blocks"]) for report in reports]
    yield "# How many tiles a graph needs (TC-GNN, Figure 7)\n"
    yield "Question: by how much does putting the columns of a window side by side cut the tiles that a graph needs?\n"
    yield (f"By {min(fewer):.1f} to {max(fewer):.1f} times in tiles of 16 x 8, the least where neighbours were numbered side by "
           "side already.\nHigher windows share more of the rows that they gather.\n")
    yield common.where(record) + " Counts, no times. Tiles of 16 x 8 are those of sums, of 16 x 16 those of dot products.\n"
    rows = []
    for report in reports:
        cells = [report["name"], f"{report['edges']:,}"]
        for stats in (report["spmm_blocks"], report["sddmm_blocks"]):
            cells += [f"{stats['blocks_before']:,}", f"{stats['blocks_after']:,}", f"{factor(stats):.1f} x"]
        rows.append(cells)
    yield from common.table(["graph", "edges", "16 x 8 before", "after", "fewer", "16 x 16 before", "after", "fewer"], rows)
    yield from heights_table(reports, "Edges for each row that a window gathers, by rows of a window",
                             lambda one: f"{one['reuse']:.2f}")
    yield from heights_table(reports, "Share of places used in tiles of 16 columns",
                             lambda one: f"{100 * one['density_after']:.3g} %")
    yield from heights_table(reports, "Bytes beside those of CSR",
                             lambda one: f"{one['tiled_bytes'] / max(1, one['csr_bytes']):.2f} x")
    yield from common.again("tiles --data GRAPHS", "The record is [tiles.json](tiles.json).")


def pages(record):
    return {"tiles.md": common.joined(lines(record))}
