# SPDX-License-Identifier: Apache-2.0
"""Graphs with kinds of vertices and relations: info, train and predict on folders of tables."""
import json
import unittest

import cli
import json_keys_test


class Kinds(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.shop = self.folder / "shop"
        self.shop.mkdir()
        users = [f"u{i},{20 + i % 7},{'' if i % 5 == 0 else 'yes' if i % 2 else 'no'}" for i in range(60)]
        self.table("nodes_user.csv", "id,age,label", users)
        self.table("nodes_item.csv", "id", [f"i{j}" for j in range(6)])
        self.table("nodes_firm.csv", "id", [])
        buys = [f"u{i},i{(i + 2 * j) % 6}" for i in range(60) for j in range(2)]
        self.table("edges_user_buys_item.csv", "user,item", buys)
        self.table("edges_item_made_by_firm.csv", "item,firm", [])
        self.small = ["--symmetrise", "--epochs", "3"]

    def table(self, name, header, lines):
        (self.shop / name).write_text("\n".join([header, *lines]) + "\n")

    def record(self, verb, *arguments, of="kinds and relations"):
        record = json.loads(self.succeed(*arguments, "--json", "-").out)
        sections = json_keys_test.page()
        shared = sections["train"] if verb == "train" else {}
        keys = {**sections["Every verb"], **shared, **sections[f"{verb} of {of}"]}
        found = json_keys_test.flattened(record, keys)
        for path, value in found:
            self.assertIn(path, keys, "not in docs/json.md")
            json_keys_test.Keys.check_type(self, path, value, keys[path][0])
        always = {path for path, (_, rare) in keys.items() if not rare}
        self.assertEqual(always - {path for path, _ in found}, set(), "in docs/json.md, but not written")
        return record

    def test_info_counts(self):
        record = self.record("info", "info", self.shop)
        self.assertEqual([record[key] for key in ("name", "kinds", "relations", "vertices", "edges")], ["shop", 3, 2, 66, 120])
        self.assertEqual([kind["name"] for kind in record["of_kinds"]], ["firm", "item", "user"])
        self.assertEqual((record["of_kinds"][2]["features"], record["of_kinds"][2]["classes"]), (1, 2))
        self.assertEqual(record["of_relations"][1], {"name": "buys", "source": "user", "target": "item", "edges": 120})
        self.assertEqual(self.record("info", "info", self.shop, "--symmetrise")["relations"], 4)
        described = self.succeed("info", self.shop, "--drop", "user.age").out
        self.assertIn("60 vertices, no features, 2 classes", described)

    def test_training_predicts_by_name(self):
        model, table = self.folder / "shop.tsr", self.folder / "users.csv"
        for name in ["rgcn", "sage", "gat"]:
            with self.subTest(model=name):
                record = self.record("train", "train", self.shop, *self.small, "--model", name, "--force", "-c", model)
                self.assertEqual((record["model"], record["learned"], len(record["curve"])), (name, "user", 3))
                described = self.record("info", "info", model, of="a model of kinds and relations")
                self.assertEqual((described["learned"], described["outputs"], described["model"]), ("user", 2, name))
                record = self.record("predict", "predict", self.shop, "--symmetrise", "-c", model, "--force", "-o", table)
                self.assertEqual((record["items"], record["predicted_kind"]), (60, "user"))
                self.assertEqual(sum(record["predicted"].values()), 60)
                lines = table.read_text().splitlines()
                self.assertEqual((len(lines), lines[1].split(",")[0]), (61, "u0"))
        self.expect_failure(cli.BAD_DATA, "is a trained model of relations, not a data set", "convert", model, "-o", table.with_suffix(".npz"))
        self.expect_failure(cli.UNAVAILABLE, "is a folder of relations, not of one graph", "convert", self.shop, "-o", table.with_suffix(".npz"))
        self.assertIn("no features of 'item'", self.succeed("train", self.shop, *self.small).out)
        report = self.folder / "report.txt"
        self.succeed("train", self.shop, *self.small, "--runs", "2", "--plot", self.folder / "run.svg", "--report", report)
        self.assertIn("the test part", report.read_text())
        self.expect_failure(cli.USAGE, "'rev_buys' from 'item' to 'user'; give the tables of the training", "predict", self.shop, "-c", model)
        self.table("nodes_item.csv", "id", [f"i{j}" for j in range(7)])
        self.expect_failure(cli.USAGE, "item 'i6' has no features and was not there in training", "predict", self.shop, "--symmetrise", "-c", model)

    def test_mistakes_of_training_are_named(self):
        train = ["train", self.shop, *self.small]
        self.expect_failure(cli.USAGE, "does nothing for a folder of kinds of vertices", *train, "--batch", "clusters")
        self.expect_failure(cli.USAGE, "does nothing for a folder of kinds of vertices", *train, "-c", "m.tsr", "--resume")
        self.expect_failure(cli.USAGE, "unknown model of relations 'gcn'", *train, "--model", "gcn")
        self.expect_failure(cli.USAGE, "for sage", *train, "--model", "sage", "--bases", "2")
        self.expect_failure(cli.USAGE, "64 x 64 features do not divide into 3 blocks", *train, "--blocks", "3")
        self.expect_failure(cli.USAGE, "links are not learned", *train, "--task", "links")
        self.expect_failure(cli.BAD_DATA, "no kind of vertices has labels", *train, "--drop", "user.label")
        self.table("nodes_user.csv", "id,label", [])
        self.table("edges_user_buys_item.csv", "user,item", [])
        self.fail_with(cli.USAGE, *train)

    def test_any_number_of_relations(self):
        (self.shop / "edges_user_buys_item.csv").unlink()
        (self.shop / "edges_item_made_by_firm.csv").unlink()
        self.assertIn("no relation leads to 'user'", self.succeed("train", self.shop, *self.small).out)
        for r in range(500):
            self.table(f"edges_user_r{r}_item.csv", "user,item", [f"u{r % 60},i{r % 6}"])
        self.assertEqual(self.record("train", "train", self.shop, *self.small, "--bases", "2")["relations"], 1000)

    def test_mistakes_in_tables_are_named(self):
        self.expect_failure(cli.USAGE, "does nothing for a folder of kinds", "info", self.shop, "--separator", ",")
        self.expect_failure(cli.USAGE, "have no weights to add up", "info", self.shop, "--duplicates", "sum")
        self.expect_failure(cli.USAGE, "give KIND.COLUMN; there are firm, item and user", "info", self.shop, "--label", "age")
        self.table("edges_user_buys_item.csv", "user,item", ["u1,i1", "u99,i1"])
        self.expect_failure(cli.BAD_DATA, "edges_user_buys_item.csv: line 3: user 'u99' is not in nodes_user.csv", "info", self.shop)
        self.assertEqual(self.record("info", "info", self.shop, "--unknown-ids", "drop")["edges"], 1)

    def expect_failure(self, code, words, *arguments):
        self.assertIn(words, self.fail_with(code, *arguments).err)


if __name__ == "__main__":
    unittest.main()
