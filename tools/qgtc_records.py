# SPDX-License-Identifier: Apache-2.0
"""What tools/qgtc_report.py has measured."""
import json
import pathlib
import subprocess
import sys

import whole_file


class Records:
    """All that was measured, in a file beside the page."""

    def __init__(self, options, name):
        self.options = options
        self.file = pathlib.Path(options.output) / f"{name}.json"
        self.all = []
        self.partitions = {}
        self.machine = None
        kept = whole_file.load(self.file)
        if kept is not None:
            self.all, self.partitions, self.machine = kept["records"], kept["partitions"], kept["machine"]

    def find(self, op, graph, features, precision="fp32", by_pyg=False):
        return next((one for one in self.all
                     if (one["op"], one["graph"], one["features"], one["precision"]) == (op, graph, features, precision)
                     and one["kernel"].startswith("PyG") == by_pyg), None)

    def has(self, *key, **more):
        """Whether it was measured of this commit."""
        found = self.find(*key, **more)
        return found is not None and found["commit"] == self.options.commit

    def put(self, record):
        """In place of the same of another commit."""
        older = self.find(record["op"], record["graph"], record["features"], record["precision"],
                          record["kernel"].startswith("PyG"))
        if older is not None:
            self.all.remove(older)
        self.all.append({**record, "commit": self.options.commit})

    def save(self):
        whole_file.write(self.file, json.dumps({"machine": self.machine, "partitions": self.partitions, "records": self.all},
                                               indent=1) + "\n")

    def run(self, command, report, graph=None, seconds=None):
        """Adds the records that a command writes to a file, under the name of this graph."""
        try:
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True, timeout=seconds)
        except subprocess.SubprocessError as error:
            print(f"did not end well: {error} {(error.stderr or '')[-300:]}", file=sys.stderr)
        if not report.exists():
            return
        try:
            found = json.loads(report.read_text())
        except ValueError as error:
            print(f"did not end well: {report} is damaged ({error})", file=sys.stderr)
            return
        finally:
            report.unlink()
        self.machine = self.machine or found.get("machine")
        for record in found["records"]:
            self.put({**record, "graph": graph or record["graph"]})
        self.save()

    def bench(self, folder, graph, source, ops, widths, precisions=("fp32",), *flags):
        """Measures what is missing of these ops."""
        missing = [op for op in ops
                   if not all(self.has(op, graph, width, precision) for width in widths for precision in precisions)]
        if not missing:
            return
        report = folder / "bench.json"
        self.run([self.options.program, "bench", *missing, "--device", self.options.device, "--data", source,
                  "--features", ",".join(map(str, widths)), "--precision", ",".join(precisions), *flags,
                  "--json", str(report), "--force"], report, graph)
