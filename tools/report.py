#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what a page of docs/results shows, and writes the page.

    tools/report.py --list                     the reports, a line each
    tools/report.py NAME --help                what a report measures, its parts and its options
    tools/report.py NAME                       measure it, and write NAME.json and NAME.md to this folder
    tools/report.py NAME --from NAME.json      write the page of a record, and measure nothing

Runs in any folder. A record holds what its parts measured at one commit: a run that was cut off, or that was asked
for some parts alone (--parts), goes on where it stopped, and what another commit measured is dropped.
"""
import argparse
import importlib
import os
import pathlib
import platform
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from reports import common  # noqa: E402

NAMES = sorted(path.stem for path in (pathlib.Path(__file__).resolve().parent / "reports").glob("*.py")
               if path.stem != "common" and not path.stem.startswith("_"))


def parser_of(name, report):
    parser = argparse.ArgumentParser(prog=f"report.py {name}", description=report.__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."), metavar="FOLDER",
                        help="where the page and its record go (default: this folder); it is made where it is missing")
    parser.add_argument("--from", dest="record", type=pathlib.Path, metavar="RECORD",
                        help="write the page of this record, .json or .json.gz, and measure nothing")
    if hasattr(report, "PARTS"):
        common.add_options(parser, report.PARTS)
    if hasattr(report, "SOURCES"):
        parser.add_argument("sources", nargs="*", default=report.SOURCES, metavar="SOURCE",
                            help="what --data of the program takes" + (f" (default: {' '.join(report.SOURCES)})" if report.SOURCES else ""))
    if hasattr(report, "add_options"):
        report.add_options(parser)
    return parser


def tried(part, run):
    """What a part measured; of one that fails nothing, so that the others are not lost."""
    try:
        return part(run)
    except common.Failed as problem:
        print(f"left out: {problem}", file=sys.stderr)
        return None


def measured(name, report, options):
    """The record, which is written after every part."""
    if options.commit is None:
        options.commit = common.commit_here()
    stem = report.record_name(options) if hasattr(report, "record_name") else name
    output = options.output / f"{stem}.json"
    record = common.started(output, options.commit, getattr(report, "DEVICES", options.device), options.quick)
    chosen = common.chosen_parts(report.PARTS, options)
    with tempfile.TemporaryDirectory() as folder:
        run = common.Run(options, folder)
        for part in chosen:
            if part in record["parts"]:
                print(f"{part}: measured before at {record['commit']}", file=sys.stderr)
                continue
            found = None if run.is_late(part) else tried(report.PARTS[part], run)
            if found is not None:
                record["parts"][part] = found
                record["machine"] = record.get("machine") or run.machine or f"{os.cpu_count()} cores, {platform.machine()}"
                common.write_record(output, record)
    if not record["parts"]:
        raise common.Missing("nothing was measured; the lines above say why")
    return record


def pages_of(name, report, record, options):
    try:
        if options.record and "parts" in record and not set(record["parts"]) & set(report.PARTS):
            raise KeyError("parts")
        return report.pages(record)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        if not options.record:
            raise
        raise common.Missing(f"{options.record} is no record of this report") from None


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help", "--list"):
        print("\n".join(f"{name:17}{common.first_line(importlib.import_module(f'reports.{name}'))}" for name in NAMES)
              if "--list" in sys.argv else __doc__.strip())
        return 0 if len(sys.argv) > 1 else 2
    name = sys.argv[1]
    if name not in NAMES:
        print(f"report.py: error: there is no report '{name}'; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    report = importlib.import_module(f"reports.{name}")
    options = parser_of(name, report).parse_args(sys.argv[2:])
    try:
        common.make_folder(options.output)
        if hasattr(report, "run"):
            report.run(options)
            return 0
        record = common.load(options.record) if options.record else measured(name, report, options)
        for file, text in pages_of(name, report, record, options).items():
            common.write(options.output / file, text)
            print(f"wrote {options.output / file}")
        return 0
    except common.Missing as problem:
        print(f"report.py {name}: error: {problem}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
