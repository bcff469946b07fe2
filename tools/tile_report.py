#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/results/tiles.md: what translation makes of graphs, by the height of the windows.

    tools/tile_report.py --program build/bin/tessera SOURCE ... > docs/results/tiles.md

SOURCE is whatever `tessera tiles --data` takes.
"""
import argparse
import json
import subprocess

HEAD = """# What translation makes of graphs

Made by `tools/tile_report.py`. Blocks with and without translation are the counterpart of TC-GNN's Figure 7: 16 x 8 for spmm and
16 x 16 for sddmm. Reuse is the number of edges for each row of X that a window gathers: what a window of that height saves.
"""


def tiles(program, source):
    run = subprocess.run([program, "tiles", "--data", source, "--json", "-"], check=True,
                         capture_output=True, text=True)
    return json.loads(run.stdout)


def factor(stats):
    return stats["blocks_before"] / max(1, stats["blocks_after"])


def blocks_table(reports):
    yield "| graph | edges | 16 x 8 before | after | fewer | 16 x 16 before | after | fewer |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for report in reports:
        cells = [report["name"], f"{report['edges']:,}"]
        for stats in (report["spmm_blocks"], report["sddmm_blocks"]):
            cells += [f"{stats['blocks_before']:,}", f"{stats['blocks_after']:,}",
                      f"{factor(stats):.1f} x"]
        yield "| " + " | ".join(cells) + " |"


def heights_table(reports, title, cell):
    heights = [stats["height"] for stats in reports[0]["heights"]]
    yield f"## {title}\n"
    yield "| graph | " + " | ".join(str(height) for height in heights) + " |"
    yield "|---|" + "---:|" * len(heights)
    for report in reports:
        yield f"| {report['name']} | " + " | ".join(cell(s) for s in report["heights"]) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/bin/tessera")
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    options = parser.parse_args()
    reports = [tiles(options.program, source) for source in options.sources]
    print(HEAD)
    print("\n".join(blocks_table(reports)) + "\n")
    print("\n".join(heights_table(reports, "Reuse of gathered rows, by rows of a window",
                                  lambda s: f"{s['reuse']:.2f}")) + "\n")
    print("\n".join(heights_table(reports, "Share of bits set in the blocks of 16 columns",
                                  lambda s: f"{100 * s['density_after']:.3g} %")) + "\n")
    print("\n".join(heights_table(reports, "Bytes against those of CSR",
                                  lambda s: f"{s['tiled_bytes'] / max(1, s['csr_bytes']):.2f} x")))


if __name__ == "__main__":
    main()
