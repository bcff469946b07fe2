#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two versions of the program side by side: `tessera bench compare` over several rounds of each, as a table.

    tools/bench_pair.py --before before_1.json before_2.json --after after_1.json after_2.json -o compare

The files are what `tessera bench --json` wrote; rounds of the two should alternate, since a machine is not always
equally fast. The fastest round of each case counts: its median, or with --by min_us its shortest run, for machines
that others use, too. Writes compare.json (every case) and compare.md. Runs shorter
than 20 us are counted apart, by their times within a chain of runs where they have one.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

LONG_US = 20
KEYS = ("op", "graph", "features", "precision", "device", "threads")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", nargs="+", required=True, metavar="FILE")
    parser.add_argument("--after", nargs="+", required=True, metavar="FILE")
    parser.add_argument("--program", default="build/bin/tessera", help="compares (default %(default)s)")
    parser.add_argument("--by", choices=("median_us", "min_us"), default="median_us")
    parser.add_argument("-o", "--out", default="compare", help="writes OUT.json and OUT.md")
    return parser.parse_args()


def merged(files, by):
    """All records of some files in one, with what they say of themselves as the first does."""
    contents = [json.loads(pathlib.Path(file).read_text(encoding="utf-8")) for file in files]
    records = [record | {"median_us": record[by]} for content in contents for record in content["records"]]
    return contents[0] | {"records": records}


def chains(content):
    """The shortest time within a chain of each case that has one."""
    found = {}
    for record in content["records"]:
        time = record.get("chain_us") or 0
        if time > 0:
            key = tuple(record[name] for name in KEYS)
            found[key] = min(time, found.get(key, time))
    return found


def compared(before, after, program):
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder) / "before.json", pathlib.Path(folder) / "after.json"]
        for file, content in zip(files, (before, after)):
            file.write_text(json.dumps(content), encoding="utf-8")
        done = subprocess.run([program, "bench", "compare", *map(str, files), "--json", "-"],
                              capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"bench_pair.py: {done.stderr.strip()}")
    return json.loads(done.stdout)["cases"]


def with_chains(cases, before, after):
    """Short cases by their times in chains, where both have them."""
    a, b = chains(before), chains(after)
    for case in cases:
        key = tuple(case[name] for name in KEYS)
        case["long"] = case["a_us"] >= LONG_US
        if not case["long"] and key in a and key in b:
            case |= {"a_us": a[key], "b_us": b[key], "ratio": a[key] / b[key], "in_a_chain": True}
        yield case


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def table(cases):
    lines = ["| op | precision | runs | cases | geometric mean | worst |", "|---|---|---|---:|---:|---|"]
    groups = {}
    for case in cases:
        kind = f"from {LONG_US} us on" if case["long"] else "shorter"
        groups.setdefault((case["op"], case["precision"], kind), []).append(case)
        groups.setdefault(("all", "", kind), []).append(case)
    for (op, precision, kind), members in sorted(groups.items(), key=lambda group: (group[0][0] == "all", group[0])):
        worst = min(members, key=lambda case: case["ratio"])
        lines.append(f"| {op} | {precision} | {kind} | {len(members)} | {mean([c['ratio'] for c in members]):.3f} | "
                     f"{worst['ratio']:.3f} ({worst['op']}, {worst['graph']}, {worst['features']} features, "
                     f"{worst['precision']}: {worst['a_us']:.1f} and {worst['b_us']:.1f} us) |")
    return "\n".join(lines)


def main():
    options = arguments()
    before, after = merged(options.before, options.by), merged(options.after, options.by)
    cases = list(with_chains(compared(before, after, options.program), before, after))
    names = [content.get("commit") or "unknown" for content in (before, after)]
    text = (f"`{names[0]}` and `{names[1]}`, {len(options.before)} and {len(options.after)} rounds in turn, the fastest "
            f"{'median' if options.by == 'median_us' else 'run'} of each case: time before over time after.\n\n{table(cases)}\n")
    out = pathlib.Path(options.out)
    lines = ",\n".join(json.dumps(case) for case in cases)
    out.with_suffix(".json").write_text(
        f'{{"before": "{names[0]}", "after": "{names[1]}", "cases": [\n{lines}\n]}}\n', encoding="utf-8")
    out.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
