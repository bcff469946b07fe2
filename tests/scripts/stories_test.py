# SPDX-License-Identifier: Apache-2.0
"""Four people meet the project, each in a clean folder: one with tables, one who embeds predictions, one with a
layer of his own, one who maintains it. Nobody knows more than the pages say."""
import csv
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TESSERA_SOURCE"])
BUILD = pathlib.Path(os.environ["TESSERA_BUILD"])
PROGRAM = os.environ["TESSERA_BIN"]


class Story(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)

    def do(self, *command, folder=None, **environment):
        done = subprocess.run([str(word) for word in command], cwd=folder or self.folder, text=True,
                              env=dict(os.environ, **environment), capture_output=True, check=False, timeout=600)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def tessera(self, *arguments):
        return self.do(PROGRAM, *arguments)


class TheDataScientist(Story):
    """Has two tables and wants a third."""

    def test_tables_in_a_table_out(self):
        draw = random.Random(7)
        names = [f"person-{i:03}" for i in range(120)]
        with open(self.folder / "nodes.csv", "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(["id", "age", "height", "label"])
            for i, name in enumerate(names):
                table.writerow([name, 20 + 30 * (i % 3) + draw.random(), 1.5 + draw.random(), "abc"[i % 3]])
        with open(self.folder / "edges.csv", "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(["source", "target"])
            edges = set()
            while len(edges) < 300:
                a, b = draw.randrange(120), draw.randrange(120)
                if a < b and (a % 3 == b % 3 or draw.random() < 0.1):
                    edges.add((a, b))
            table.writerows([names[a], names[b]] for a, b in sorted(edges))
        tables = ["edges.csv", "--nodes", "nodes.csv", "--symmetrise"]
        said = self.tessera("info", *tables)
        self.assertRegex(said, r"(?m)^  labels +'label', 3 classes: 'a', 'b' and 'c'$")
        self.tessera("train", *tables, "-c", "m.tsr", "--epochs", "30", "--plot", "run.svg", "--save-data", "g.tsr")
        self.assertIn("<svg", (self.folder / "run.svg").read_text(encoding="utf-8"))
        self.tessera("predict", *tables, "-c", "m.tsr", "-o", "out.csv")
        self.tessera("predict", "g.tsr", "-c", "m.tsr", "-o", "same.csv")
        self.assertEqual((self.folder / "out.csv").read_bytes(), (self.folder / "same.csv").read_bytes())
        with open(self.folder / "out.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(sorted(row["id"] for row in rows), names)
        self.assertLessEqual({row["label"] for row in rows}, {"a", "b", "c"})
        for row in rows:
            self.assertTrue(0 < float(row["probability"]) <= 1, row)


class WithALibraryInstalled(Story):
    @classmethod
    def setUpClass(cls):
        installed = tempfile.TemporaryDirectory()
        cls.addClassCleanup(installed.cleanup)
        subprocess.run([os.environ["TESSERA_CMAKE"], "--install", BUILD, "--prefix", installed.name], check=True,
                       env=dict(os.environ, DESTDIR=""), capture_output=True, timeout=600)
        cls.packages = next(pathlib.Path(installed.name).rglob("tessera.pc")).parent

    def compile_and_run(self, source):
        """As docs/embedding.md says, with the shared library."""
        flags = self.do("pkg-config", "--cflags", "--libs", "tessera", PKG_CONFIG_PATH=str(self.packages)).split()
        self.do(os.environ["TESSERA_CXX"], "-std=c++20", source, "-o", "program", *flags)
        return self.do(self.folder / "program", LD_LIBRARY_PATH=str(self.packages.parent))


class TheEngineer(WithALibraryInstalled):
    """Trains with the program, predicts in a program of her own."""

    MAIN = """
#include <cstdio>
#include <tessera/tessera.hpp>
namespace train = tessera::train;

int main() {
  const train::Checkpoint checkpoint = train::load_checkpoint("model.tsr");
  const tessera::Dataset data = tessera::io::open("embedded:citation");
  train::Predictor predictor(checkpoint, data);
  tessera::Matrix<float> logits(predictor.num_items(), predictor.num_outputs());
  for (int request = 0; request < 3; ++request) predictor.run(logits);
  for (std::int64_t v = 0; v < logits.rows(); ++v) {
    std::printf("%d\\n", int(predictor.class_of({logits.row(v), std::size_t(logits.cols())})));
  }
}
"""

    def test_embeds_predictions(self):
        self.tessera("train", "embedded:citation", "--epochs", "20", "-c", "model.tsr")
        self.tessera("predict", "embedded:citation", "-c", "model.tsr", "-o", "classes.txt")
        (self.folder / "main.cpp").write_text(self.MAIN)
        self.assertEqual(self.compile_and_run("main.cpp").split(),
                         (self.folder / "classes.txt").read_text().split())

    def test_runs_the_example_of_the_page(self):
        self.assertIn("examples/06_embed.cpp", (SOURCE / "docs" / "embedding.md").read_text())
        self.assertIn("refused: ", self.compile_and_run(SOURCE / "examples" / "06_embed.cpp"))


class TheResearcher(WithALibraryInstalled):
    """Has a layer of his own."""

    def test_trains_his_own_layer(self):
        said = self.compile_and_run(SOURCE / "examples" / "04_own_layer.cpp")
        self.assertIn("% of the test vertices are right", said)
        self.assertIn("step 100", said)


class TheMaintainer(Story):
    """Follows CONTRIBUTING.md."""

    def test_the_demo_runs(self):
        said = self.do(SOURCE / "tools" / "demo.sh", PROGRAM)
        self.assertIn("$ tessera predict", said)

    def test_every_command_of_make_is_explained(self):
        said = self.do("make", "-C", SOURCE, "help")
        for command in ("demo", "test", "program", "build", "dependencies", "dev-test", "format"):
            self.assertIn(f"make {command} ", said)

    def test_the_demo_builds_no_tests(self):
        said = self.do("make", "-C", SOURCE, "--dry-run", "demo", f"BUILD={BUILD}")
        builds = [line for line in said.splitlines() if "--build" in line]
        self.assertEqual(len(builds), 1)
        self.assertIn("--target tessera_app", builds[0])
        graph = self.do("ninja", "-C", BUILD, "-t", "commands", "tessera_app")
        self.assertNotIn(f"{SOURCE}/tests/", graph)

    def test_the_layers_are_checked(self):
        self.do("python3", SOURCE / "tools" / "check_layers.py", SOURCE)


if __name__ == "__main__":
    unittest.main()
