# SPDX-License-Identifier: Apache-2.0
"""README's table and its picture, summary.svg, of the record that `measure` makes.

    tools/report.py summary --from docs/results/summary.json --output docs/results --readme README.md
    tools/report.py summary --check

The table goes between the lines `<!-- results ... -->` and `<!-- /results -->` of --readme; without one it is printed.
--check writes nothing and fails where README.md or docs/results/summary.svg is not what the record says.
"""
import html
import math
import pathlib
import re
import textwrap

from . import common

BEGIN, END = "<!-- results: made by tools/report.py summary -->", "<!-- /results -->"
RESULTS = common.ROOT / "docs" / "results"
WAYS = {"program": "`tessera train`", "python": "a PyG model after `tessera.accelerate`"}
DEVICES = {"cpu": "CPU", "cuda": "GPU"}


def add_options(parser):
    parser.add_argument("--readme", type=pathlib.Path, metavar="FILE", help="put the table into this page")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where something is not up to date")


def rows_of(record):
    """(way, device, cases, speeds by case) of what was measured, at most eight."""
    for way in WAYS:
        for device in record["parts"]:
            for size in ("small", "large"):
                cases = [one for one in record["parts"][device]["cases"] if (one["way"], one["size"]) == (way, size)]
                if cases:
                    yield way, device, cases, {f"{one['model'].upper()}, {count(one['vertices'])} vertices": one["pyg_ms"] / one["ours_ms"]
                                               for one in cases}


def count(number):
    return f"{number / 1e6:.3g} M" if number >= 1e6 else f"{number / 1e3:.3g} k" if number >= 1e3 else str(number)


def range_of(cases, key):
    low, high = min(one[key] for one in cases), max(one[key] for one in cases)
    return count(low) if low == high else f"{count(low)} to {count(high)}"


def table(record):
    rows = []
    for way, device, cases, speeds in rows_of(record):
        worst = min(speeds, key=speeds.get)
        rows.append([WAYS[way], DEVICES[device], range_of(cases, "edges"), len(speeds),
                     f"**{common.geometric_mean(speeds.values()):.1f} x**", f"{speeds[worst]:.1f} x ({worst})"])
    head = ["training an epoch with", "on", "edges", "cases", "mean speed-up over PyG", "worst case"]
    return "\n".join(common.table(head, rows, 2)).rstrip("\n")


def below(record):
    """What the figures are of, in a sentence."""
    parts = record["parts"].items()
    places = {device: f"{part['machine']}, {part['versions']}" for device, part in parts}
    machines = "; ".join(f"{DEVICES[device]}: {place}" for device, place in places.items())
    if len(set(places.values())) == 1:  # one machine for both
        machines = next(iter(places.values()))
    too_large = ", ".join(what for _, part in parts for what in part.get("pyg_out_of_memory", []))
    machines += f". Left out, as PyG ran out of memory: {too_large}" if too_large else ""
    return "\n".join(textwrap.wrap(
        ("A trial (--quick), whose figures say nothing. " if record.get("quick") else "") + f"GCN, GraphSAGE and GAT of two layers in fp32, medians, results checked first; commit `{record['commit']}`. {machines}. "
        "Make it again: `tools/report.py measure --help`.", 110, break_on_hyphens=False))


def picture(record):
    """A bar for every mean, a mark for the worst case, over a logarithmic axis; its colours suit light and dark pages."""
    rows = list(rows_of(record))
    left, right, top, step = 330, 800, 64, 42
    means = [common.geometric_mean(speeds.values()) for *_, speeds in rows]
    lows = [min(speeds.values()) for *_, speeds in rows]
    low, high = min([0.8, *lows]), 1.15 * max([10, *means])

    def x(speed):
        return left + (right - left) * math.log(speed / low) / math.log(high / low)

    bottom = top + step * len(rows)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="900" height="{bottom + 60}" viewBox="0 0 900 {bottom + 60}" '
           'font-family="DejaVu Sans, Verdana, Arial, sans-serif" font-size="13" role="img">',
           "<style>text{fill:#24292f}.soft{fill:#57606a}.grid{stroke:#d0d7de}.one{stroke:#24292f}.cpu{fill:#d95f02}.cuda{fill:#1f6fb4}"
           "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.soft{fill:#9da7b3}.grid{stroke:#3d444d}.one{stroke:#e6edf3}"
           ".cpu{fill:#f4924a}.cuda{fill:#58a6ff}}</style>",
           '<text x="20" y="28" font-size="16">How many times as fast as PyG an epoch of training is</text>']
    for tick in [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200) if low <= tick <= high]:
        out.append(f'<line class="{"one" if tick == 1 else "grid"}" x1="{x(tick):.1f}" y1="{top - 14}" x2="{x(tick):.1f}" y2="{bottom}"/>')
        out.append(f'<text class="soft" x="{x(tick):.1f}" y="{bottom + 18}" text-anchor="middle">{tick} x</text>')
    for number, ((way, device, cases, _), mean, worst) in enumerate(zip(rows, means, lows)):
        y = top + step * number + step / 2 - 6
        out.append(f'<text x="{left - 14}" y="{y - 2:.0f}" text-anchor="end">{html.escape(WAYS[way].replace("`", ""))}</text>')
        out.append(f'<text class="soft" x="{left - 14}" y="{y + 13:.0f}" text-anchor="end" font-size="11">{DEVICES[device]}, '
                   f'{range_of(cases, "edges")} edges</text>')
        begin, end = sorted((x(1), x(mean)))
        out.append(f'<rect class="{device}" x="{begin:.1f}" y="{y - 9:.0f}" width="{end - begin:.1f}" height="18" rx="2"/>')
        out.append(f'<line class="one" x1="{x(worst):.1f}" y1="{y - 13:.0f}" x2="{x(worst):.1f}" y2="{y + 13:.0f}" stroke-width="2"/>')
        out.append(f'<text x="{max(end, x(worst)) + 8:.1f}" y="{y + 5:.0f}" font-weight="bold">{mean:.1f} x</text>')
    out.append(f'<text class="soft" x="20" y="{bottom + 46}" font-size="11">Bars: geometric means over models and graphs; upright '
               'lines: the worst case. Left of 1 x PyG is faster.</text>')
    return "\n".join(out) + "\n</svg>\n"


def with_table(page, record):
    places = re.search(f"(?s)<!-- results[^>]*-->.*?{END}", page)
    if not places:
        raise common.Missing(f"the page has no lines {BEGIN} and {END} for the table to go between")
    text = f"{BEGIN}\n{table(record)}\n\n{below(record)}\n{END}"
    return page[:places.start()] + text + page[places.end():]


def run(options):
    record = common.load(options.record or RESULTS / "summary.json")
    if not record.get("parts"):
        raise common.Missing("the record is none of tools/report.py measure: it has no parts")
    readme = options.readme or (common.ROOT / "README.md" if options.check else None)
    wanted = {(RESULTS if options.check else options.output) / "summary.svg": picture(record)}
    if readme:
        wanted[readme] = with_table(readme.read_text(encoding="utf-8"), record)
    else:
        print(f"{table(record)}\n\n{below(record)}")
    for path, text in wanted.items():
        if not options.check:
            common.write(path, text)
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            raise common.Missing(f"{path} is not what the record says: tools/report.py summary --from docs/results/summary.json "
                                 "--output docs/results --readme README.md")
