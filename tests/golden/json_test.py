# SPDX-License-Identifier: Apache-2.0
"""The JSON of each verb, whole, against files. Times and this build's own facts are blanked."""
import json
import unittest

import cli

FREE_KEYS = {"load_seconds", "write_seconds", "generate_seconds", "order_seconds",
             "partition_seconds", "output", "permutation", "output_bytes", "version", "threads"}


def blanked(value, key=None):
    if key in FREE_KEYS:
        return f"<{type(value).__name__}>"
    if isinstance(value, dict):
        return {name: blanked(inner, name) for name, inner in value.items()}
    if isinstance(value, float):
        return round(value, 6)
    return value


def shape(value):
    """Keys and types only, for what differs between machines."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    return "null" if value is None else type(value).__name__


class GoldenJson(cli.CliTest):
    def compare(self, name, *arguments):
        found = blanked(self.json(*arguments))
        self.compare_golden(name, json.dumps(found, indent=2) + "\n")

    def test_info(self):
        self.compare("info_karate.json", "info", "embedded:karate")

    def test_info_of_a_file(self):
        entries = [(0, 0, 2.5), (1, 0, 1.5), (2, 1, -1), (3, 1, 4)]
        path = cli.write_mtx(self.folder / "five.mtx", 5, 5, entries, "real", "symmetric")
        self.compare("info_five.json", "info", "--data", path)

    def test_info_of_features_and_labels(self):
        path = self.folder / "small.npz"
        path.write_bytes(cli.graph_npz(
            3, [(0, 1), (1, 0)],
            x=cli.npy([1, 0, 0, 2, 0, 0], "f", (3, 2)), y=cli.npy([1, 0, -1], "q"),
            train_idx=cli.npy([0], "q"), val_idx=cli.npy([1], "q"), note=cli.npy([7], "i")))
        self.compare("info_small.json", "info", path)

    def test_generate(self):
        self.compare("generate_path.json", "generate", "bipartite?targets=4&sources=2&edges=8",
                     "--seed", "3")

    def test_convert(self):
        path = cli.write_mtx(self.folder / "three.mtx", 3, 3, [(0, 1), (1, 1)])
        found = self.json("convert", path, "--transpose", "--symmetrise", "--self-loops", "add",
                          "-o", self.folder / "out.npz")
        found["source"] = "three.mtx"
        self.compare_golden("convert_three.json", json.dumps(blanked(found), indent=2) + "\n")

    def test_reorder(self):
        self.compare("reorder_karate.json", "reorder", "embedded:karate", "--method", "degree")

    def test_reorder_for_sparse_tensor_cores(self):
        self.compare("reorder_nm_karate.json", "reorder", "embedded:karate", "--method", "nm",
                     "--pattern", "1:2:4", "--pad")

    def test_prune(self):
        found = self.json("prune", "embedded:karate", "--pattern", "1:2:4")
        self.assertEqual(found["dropped"], found["edges_before"] - found["edges"])
        self.assertGreater(found["violating_vectors"], 0)
        self.compare_golden("prune_shape.json", json.dumps(shape(found), indent=2) + "\n")

    def test_partition(self):
        self.compare("partition_karate.json", "partition", "embedded:karate", "--parts", "4",
                     "--method", "contiguous")

    def test_tiles(self):
        self.compare("tiles_karate.json", "tiles", "embedded:karate", "--height", "16")

    def test_doctor(self):
        found = self.json("doctor")
        self.assertEqual([check["name"] for check in found["checks"]][:5],
                         ["library", "threads", "METIS", "BLAS", "GPU"])
        self.assertTrue(all(check["status"] in ("ok", "missing") for check in found["checks"]))
        for check in found["checks"]:
            self.assertEqual(check["fix"] is None, check["status"] == "ok")
        found["gpu"]["driver_cuda_version"] = found["gpu"]["problem"] = None
        self.compare_golden("doctor_shape.json", json.dumps(shape(found), indent=2) + "\n")


if __name__ == "__main__":
    unittest.main()
