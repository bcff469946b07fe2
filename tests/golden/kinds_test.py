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

    def table(self, name, header, lines):
        (self.shop / name).write_text("\n".join([header, *lines]) + "\n")

    def record(self, verb, *arguments):
        record = json.loads(self.succeed(*arguments, "--json", "-").out)
        sections = json_keys_test.page()
        keys = {**sections["Every verb"], **sections[f"{verb} of kinds and relations"]}
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
