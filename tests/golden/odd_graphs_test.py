# SPDX-License-Identifier: Apache-2.0
"""Odd graphs through every verb that takes one."""
import unittest

import cli

LEAVES = 100_000


def ring(size):
    return sorted({(i, j % size) for i in range(size) for j in (i - 1, i + 1)})


def path_of(size):
    return sorted([(i, i + 1) for i in range(size - 1)] + [(i + 1, i) for i in range(size - 1)])


# name: rows, columns, entries, what `info` must say.
ODD = {
    "no_vertices": (0, 0, [], {"components": 0, "bandwidth": 0}),
    "one_vertex": (1, 1, [], {"isolated": 1, "components": 1, "empty_rows": 1}),
    "one_loop": (1, 1, [(0, 0)], {"self_loops": 1, "isolated": 0, "components": 1,
                                  "edges_symmetrised_loop_free": 0}),
    "no_edges": (5, 5, [], {"isolated": 5, "components": 5, "empty_rows": 5}),
    "isolated": (7, 7, [(1, 5), (5, 1)], {"isolated": 5, "components": 6, "bandwidth": 4}),
    "loops": (4, 4, [(0, 0), (1, 1), (1, 2), (2, 1), (3, 3)],
              {"self_loops": 3, "edges_symmetrised_loop_free": 2, "components": 3}),
    "directed": (4, 4, [(0, 1), (1, 2), (2, 3)],
                 {"symmetric_pattern": False, "edges_symmetrised_loop_free": 6, "components": 1,
                  "empty_rows": 1}),
    "seventeen": (17, 17, ring(17), {"symmetric_pattern": True, "components": 1, "isolated": 0}),
    "fifteen": (15, 15, path_of(15), {"bandwidth": 1, "components": 1}),
    "star": (LEAVES + 1, LEAVES + 1,
             [(0, leaf + 1) for leaf in range(LEAVES)] + [(leaf + 1, 0) for leaf in range(LEAVES)],
             {"components": 1, "symmetric_pattern": True, "bandwidth": LEAVES}),
}
RECTANGULAR = (3, 5, [(0, 0), (0, 4), (2, 3)],
               {"edges_symmetrised_loop_free": None, "columns": 5, "empty_rows": 1})
STABLE = ["vertices", "columns", "edges", "self_loops", "degree", "components", "isolated",
          "empty_rows", "symmetric_pattern", "bandwidth", "weighted"]


class OddGraphs(cli.CliTest):
    def each(self, rectangular):
        for name, case in {**ODD, **({"rectangular": RECTANGULAR} if rectangular else {})}.items():
            rows, cols, entries, expected = case
            path = cli.write_mtx(self.folder / f"{name}.mtx", rows, cols, entries)
            yield path, rows, cols, entries, expected

    def test_info(self):
        for path, rows, cols, entries, expected in self.each(rectangular=True):
            with self.subTest(graph=path.stem):
                found = self.json("info", path)
                self.assertEqual((found["vertices"], found["columns"], found["edges"]),
                                 (rows, cols, len(entries)))
                self.assertEqual(sum(found["degree"]["histogram"]), rows)
                self.assertEqual({key: found[key] for key in expected}, expected)
                self.assertTrue(self.succeed("info", path).out)

    def test_star_has_its_hub(self):
        rows, cols, entries, _ = ODD["star"]
        path = cli.write_mtx(self.folder / "star.mtx", rows, cols, entries)
        degree = self.json("info", path)["degree"]
        self.assertEqual((degree["min"], degree["max"], degree["median"]), (1, LEAVES, 1))

    def test_npz_reads_as_mtx_does(self):
        for path, rows, cols, entries, _ in self.each(rectangular=False):
            with self.subTest(graph=path.stem):
                other = path.with_suffix(".npz")
                other.write_bytes(cli.graph_npz(rows, sorted(entries)))
                found, again = self.json("info", path), self.json("info", other)
                self.assertEqual([found[key] for key in STABLE], [again[key] for key in STABLE])

    def test_convert_there_and_back(self):
        for path, *_ in self.each(rectangular=True):
            with self.subTest(graph=path.stem):
                before = self.json("info", path)
                for ending in ["npz", "tsr", "mtx.gz"]:
                    there = self.folder / f"there.{ending}"
                    self.succeed("convert", path, "-o", there, "--force")
                    after = self.json("info", there)
                    self.assertEqual([after[key] for key in STABLE],
                                     [before[key] for key in STABLE], ending)

    def test_convert_steps(self):
        for path, rows, _, entries, expected in self.each(rectangular=False):
            with self.subTest(graph=path.stem):
                out = self.folder / "out.tsr"
                loops = {(i, i) for i in range(rows)}
                both = set(entries) | {(j, i) for i, j in entries}
                for options, edges in [(["--self-loops", "add"], len(set(entries) | loops)),
                                       (["--self-loops", "remove"], len(set(entries) - loops)),
                                       (["--symmetrise"], len(both)),
                                       (["--transpose"], len(entries))]:
                    self.succeed("convert", path, "-o", out, "--force", *options)
                    self.assertEqual(self.json("info", out)["edges"], edges, options)

    def test_reorder(self):
        for path, rows, cols, entries, _ in self.each(rectangular=False):
            with self.subTest(graph=path.stem):
                for method in ["degree", "rcm", "bfs", "random", "nm"]:
                    order_path, out = self.folder / "order.txt", self.folder / "ordered.tsr"
                    found = self.json("reorder", path, "--method", method, "-o", out,
                                      "--permutation", order_path, "--force")
                    order = [int(line) for line in order_path.read_text().split()]
                    self.assertEqual(sorted(order), list(range(rows)), method)
                    self.assertEqual(self.json("info", out)["edges"], len(entries))
                    place = {old: new for new, old in enumerate(order)}
                    gap = max((abs(place[i] - place[j]) for i, j in entries), default=0)
                    self.assertEqual(found["after"]["bandwidth"], gap, method)

    def test_rcm_narrows_a_shuffled_path(self):
        size = 101
        entries = sorted((i * 37 % size, j * 37 % size) for i, j in path_of(size))
        path = cli.write_mtx(self.folder / "shuffled.mtx", size, size, entries)
        found = self.json("reorder", path, "--method", "rcm")
        self.assertGreater(found["before"]["bandwidth"], 1)
        self.assertEqual(found["after"]["bandwidth"], 1)

    def partition(self, path, rows, entries, parts, method):
        out = self.folder / "parts.txt"
        arguments = ["partition", path, "--parts", parts]
        found = self.json(*arguments, "--method", method, "-o", out, "--force")
        part = [int(line) for line in out.read_text().split()]
        self.assertEqual(len(part), rows)
        self.assertTrue(all(0 <= number < parts for number in part))
        self.assertEqual(found["cut_edges"], sum(part[i] != part[j] for i, j in entries))
        again = self.json(*arguments, "--partition", out)
        for key in ["cut_edges", "smallest", "largest"]:
            self.assertEqual(again[key], found[key])

    def test_partition(self):
        for path, rows, _, entries, _ in self.each(rectangular=False):
            with self.subTest(graph=path.stem):
                for method in ["auto", "multilevel", "contiguous"]:
                    self.partition(path, rows, entries, 1, method)
                    if rows == 1:
                        self.fail_with(cli.USAGE, "partition", path, "--parts", 3, "-m", method)
                    else:
                        self.partition(path, rows, entries, 3, method)

    def test_check(self):
        for path, rows, _, _, _ in self.each(rectangular=True):
            with self.subTest(graph=path.stem):
                found = self.json("check", path, "--features", "1,8" if rows <= LEAVES else "8")
                self.assertTrue(found["passed"])
                self.assertEqual({check["verdict"] for check in found["checks"]} - {"unsupported"}, {"ok"})

    def test_weights_that_are_not_finite_are_refused_or_allowed(self):
        weights = ["inf", "-inf", "nan", "1e-42", "3e38", "1"]
        entries = [(i, j, weights[k % len(weights)]) for k, (i, j) in enumerate(ring(33))]
        path = cli.write_mtx(self.folder / "odd.mtx", 33, 33, entries, field="real")
        out = self.folder / "out.npz"
        for arguments in [["info", path], ["check", path], ["bench", "spmm", "--data", path], ["plan", path],
                          ["tiles", path], ["reorder", path], ["convert", path, "-o", out]]:
            with self.subTest(arguments=arguments):
                self.assertIn("--nonfinite allow", self.fail_with(cli.BAD_DATA, *arguments).err)
        allowed = ["--nonfinite", "allow"]
        self.assertTrue(self.json("check", path, "--features", "1,8,33", *allowed)["passed"])
        self.succeed("bench", "spmm", "--data", path, "--features", "8", "--quick", *allowed)
        for op in ["spmm", "sddmm", "attention"]:
            self.succeed("plan", path, "--op", op, *allowed)
        for verb in ["info", "tiles"]:
            self.succeed(verb, path, *allowed)
        self.succeed("partition", path, "--parts", "2", *allowed, "-o", self.folder / "parts.txt")
        self.succeed("reorder", path, "--method", "rcm", *allowed, "-o", self.folder / "new.tsr")
        self.succeed("convert", path, "-o", out, *allowed)
        self.assertIn("--nonfinite allow", self.fail_with(cli.BAD_DATA, "info", out).err)
        self.assertEqual(self.json("info", out, *allowed)["edges"], len(entries))

    def test_rectangular_graphs_have_no_vertex_order(self):
        rows, cols, entries, _ = RECTANGULAR
        path = cli.write_mtx(self.folder / "rectangular.mtx", rows, cols, entries)
        out = self.folder / "out.tsr"
        for arguments in [["reorder", path], ["partition", path, "--parts", "2"],
                          ["convert", path, "--symmetrise", "-o", out],
                          ["convert", path, "--self-loops", "add", "-o", out]]:
            with self.subTest(arguments=arguments):
                run = cli.Run(arguments)
                self.assertIn(run.code, (cli.USAGE, cli.UNAVAILABLE), str(run))
                self.assertRegex(run.err, r"^tessera [a-z]+: error: .*(square|rectangular).*\n$")
        self.assertEqual(self.leftovers(path), [])
        self.succeed("convert", path, "--transpose", "-o", out)
        turned = self.json("info", out)
        self.assertEqual((turned["vertices"], turned["columns"], turned["edges"]), (5, 3, 3))

    def test_generated_graphs_of_every_kind(self):
        for kind in [entry["name"] for entry in self.json("generate", "--list")["generators"]]:
            with self.subTest(kind=kind):
                one, two, three = (self.folder / f"{kind}{i}.tsr" for i in range(3))
                self.succeed("generate", kind, "-o", one, "--seed", "5", "--threads", "1")
                self.succeed("generate", f"{kind}?seed=5", "-o", two, "--threads", "3")
                self.succeed("generate", f"{kind}?seed=5", "-o", three, "--seed", "6")
                self.assertEqual(one.read_bytes(), two.read_bytes())
                self.assertNotEqual(one.read_bytes(), three.read_bytes())


if __name__ == "__main__":
    unittest.main()
