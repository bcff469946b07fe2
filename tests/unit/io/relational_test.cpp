// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/gzipped.hpp"
#include "tessera/io/relational.hpp"

namespace tessera {
namespace {

using test::TemporaryFolder;
using test::write_file;
using testing::expect_error;

std::vector<VertexId> sources_of(const RelationalGraph& graph, std::int32_t r, VertexId target) {
  const auto row = graph.graph(r).neighbours(target);
  return {row.begin(), row.end()};
}

/// Users with features and labels, items without, and shops, of which there are none.
void write_shop(const TemporaryFolder& folder) {
  write_file(folder / "nodes_user.csv", "id,age,label\nu1,20,a\nu2,30,b\nu3,40,\n");
  write_file(folder / "nodes_item.tsv.gz", test::gzipped("id\ni1\ni2\n"));
  write_file(folder / "nodes_big_shop.txt", "id size\n");
  write_file(folder / "edges_user_buys_item.csv", "item,user\ni1,u1\ni1,u3\ni2,u1\n");
  write_file(folder / "edges_user_knows_user.csv", "one,other\nu1,u2\n");
  write_file(folder / "edges_item_sold_in_big_shop.csv", "source,target\n");
}

TEST(KindTables, AreReadByTheNamesOfFilesAndColumns) {
  const TemporaryFolder folder;
  write_shop(folder);
  ASSERT_TRUE(io::holds_relational(folder.path()));
  const RelationalData data = io::read_relational(folder.path() + "/");
  EXPECT_EQ(data.name, std::filesystem::path(folder.path()).filename().string());
  const RelationalGraph& graph = data.graph;
  EXPECT_EQ(graph.kinds(), (std::vector<VertexKind>{{"big_shop", 0}, {"item", 2}, {"user", 3}}));
  EXPECT_EQ(graph.relations(),
            (std::vector<Relation>{{"sold_in", 1, 0}, {"buys", 2, 1}, {"knows", 2, 2}}));
  EXPECT_EQ(graph.graph(0).num_edges(), 0);
  // The header says which column is which, whatever their order.
  EXPECT_EQ(sources_of(graph, 1, 0), (std::vector<VertexId>{0, 2}));
  EXPECT_EQ(sources_of(graph, 1, 1), (std::vector<VertexId>{0}));
  EXPECT_EQ(sources_of(graph, 2, 1), (std::vector<VertexId>{0}));
  EXPECT_EQ(data.kinds[1].num_features(), 0);
  EXPECT_EQ(data.kinds[2].num_features(), 1);
  EXPECT_EQ(data.kinds[2].vertex_names[1], "u2");
  EXPECT_EQ(labelled_kind(data), 2);
  EXPECT_EQ(std::get<ClassLabels>(data.kinds[2].labels)[2], -1);
  data.validate();
  const RelationalData both = with_inverses(data);
  EXPECT_EQ(both.graph.relations()[4], (Relation{"rev_buys", 1, 2}));
}

TEST(KindTables, AColumnOfAKindIsTheLabel) {
  const TemporaryFolder folder;
  write_shop(folder);
  write_file(folder / "nodes_item.tsv.gz", test::gzipped("id\tcolour\ni1\tred\ni2\tblue\n"));
  io::ReadOptions options;
  options.nodes.label = "item.colour";
  const RelationalData data = io::read_relational(folder.path(), options);
  EXPECT_EQ(labelled_kind(data), 1);
  options.nodes.label = {};
  options.nodes.drop = {"user.label", "item.colour"};
  const RelationalData none = io::read_relational(folder.path(), options);
  EXPECT_EQ(none.kinds[2].num_features(), 1);
  expect_error(ErrorCode::bad_data, {"no kind of vertices has labels", "--label KIND.COLUMN"},
               [&] { labelled_kind(none); });
  write_file(folder / "nodes_item.tsv.gz", test::gzipped("id\tlabel\ni1\tred\ni2\tblue\n"));
  expect_error(ErrorCode::bad_data, {"several kinds have labels: 'item' and 'user'"},
               [&] { labelled_kind(io::read_relational(folder.path())); });
  options.nodes.drop = {};
  options.nodes.label = "shop.label";
  expect_error(ErrorCode::invalid_argument, {"shop.label", "big_shop, item and user"},
               [&] { io::read_relational(folder.path(), options); });
}

TEST(KindTables, WhatIsWrongIsNamedWithItsLine) {
  const TemporaryFolder folder;
  write_shop(folder);
  const auto read = [&](const io::ReadOptions& options = {}) {
    return io::read_relational(folder.path(), options);
  };
  write_file(folder / "edges_user_buys_item.csv", "user,item\nu1,i1\nu2,i7\nu2,i1\n");
  expect_error(ErrorCode::bad_data,
               {"edges_user_buys_item.csv: line 3: item 'i7' is not in nodes_item.tsv.gz"},
               [&] { read(); });
  io::ReadOptions drop;
  drop.nodes.unknown = io::UnknownIds::drop;
  EXPECT_EQ(read(drop).graph.graph(1).num_edges(), 2);
  write_file(folder / "edges_user_buys_item.csv", "user,item\nu1,i1\nu1,i1\n");
  expect_error(ErrorCode::bad_data, {"edges_user_buys_item.csv"}, [&] { read(); });
  io::ReadOptions keep;
  keep.duplicates = Duplicates::keep;
  EXPECT_EQ(read(keep).graph.graph(1).num_edges(), 2);
  write_file(folder / "edges_user_buys_item.csv", "u1,i1\n");
  EXPECT_EQ(read().graph.graph(1).num_edges(), 1);
  write_file(folder / "edges_user_buys_item.csv", "u1\n");
  expect_error(ErrorCode::bad_data, {"has one column where edges have two"}, [&] { read(); });
  std::filesystem::remove(folder / "edges_user_buys_item.csv");
  write_file(folder / "edges_user_buys_cars.csv", "user,car\n");
  expect_error(ErrorCode::bad_data, {"edges_user_buys_cars.csv", "big_shop, item and user"},
               [&] { read(); });
  std::filesystem::remove(folder / "edges_user_buys_cars.csv");
  write_file(folder / "nodes_item.csv", "id\ni1\n");
  expect_error(ErrorCode::bad_data, {"is there twice"}, [&] { read(); });
}

TEST(KindTables, KindsWithUnderscoresMayBeAmbiguous) {
  const TemporaryFolder folder;
  for (const char* kind : {"a", "a_b", "c"}) {
    write_file(folder / (std::string("nodes_") + kind + ".csv"), "id\n1\n");
  }
  write_file(folder / "edges_a_b_r_c.csv", "1,1\n");
  expect_error(ErrorCode::bad_data, {"may be read as more than one relation"},
               [&] { io::read_relational(folder.path()); });
  std::filesystem::remove(folder / "edges_a_b_r_c.csv");
  EXPECT_EQ(io::read_relational(folder.path()).graph.num_relations(), 0);
  EXPECT_FALSE(io::holds_relational(folder / "nodes_a.csv"));
  expect_error(ErrorCode::bad_data, {"is no folder of a graph with kinds"},
               [&] { io::read_relational(folder / "nodes_a.csv"); });
}

/// Two papers and three authors, as OGB lays its sets out.
struct OgbFolder {
  OgbFolder() {
    put("raw/num-node-dict.csv.gz", "author,paper\n3,2\n");
    put("raw/triplet-type-list.csv.gz", "author,writes,paper\npaper,cites,paper\n");
    put("raw/relations/author___writes___paper/edge.csv.gz", "0,1\n2,1\n1,0\n");
    put("raw/relations/paper___cites___paper/edge.csv.gz", "1,0\n");
    put("raw/node-feat/paper/node-feat.csv.gz", "0.5,1\n-1,2\n");
    put("raw/node-label/paper/node-label.csv.gz", "4\n0\n");
    put("split/time/paper/train.csv.gz", "1\n");
    put("split/time/paper/valid.csv.gz", "0\n");
    put("split/time/paper/test.csv.gz", "");
  }
  void put(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder / name;
    std::filesystem::create_directories(path.parent_path());
    write_file(path.string(), test::gzipped(text));
  }
  RelationalData read() const { return io::read_relational(folder.path()); }

  TemporaryFolder folder;
};

TEST(OgbKinds, AreReadAsTheyAreDownloaded) {
  const OgbFolder ogb;
  const RelationalData data = ogb.read();
  EXPECT_EQ(data.graph.kinds(), (std::vector<VertexKind>{{"author", 3}, {"paper", 2}}));
  EXPECT_EQ(data.graph.relations(), (std::vector<Relation>{{"writes", 0, 1}, {"cites", 1, 1}}));
  EXPECT_EQ(sources_of(data.graph, 0, 1), (std::vector<VertexId>{0, 2}));
  EXPECT_EQ(sources_of(data.graph, 1, 0), (std::vector<VertexId>{1}));
  EXPECT_EQ(data.kinds[0].num_features(), 0);
  const Dataset& papers = data.kinds[1];
  EXPECT_EQ((*std::get<DenseFeatures>(papers.features))(1, 0), -1);
  EXPECT_EQ(labelled_kind(data), 1);
  EXPECT_EQ(papers.num_classes(), 5);
  EXPECT_EQ(papers.train.size(), 1);
  EXPECT_EQ(papers.train[0], 1);
  EXPECT_EQ(papers.test.size(), 0);
}

TEST(OgbKinds, DamagedFoldersAreErrors) {
  const auto bad = ErrorCode::bad_data;
  const OgbFolder ogb;
  ogb.put("raw/relations/paper___cites___paper/edge.csv.gz", "0,1\n1,2\n");
  expect_error(bad, {"edge.csv.gz: line 2", "vertex 2 is not one of 2"}, [&] { ogb.read(); });
  ogb.put("raw/relations/paper___cites___paper/edge.csv.gz", "0,1,1\n");
  expect_error(bad, {"has 3 columns instead of 2"}, [&] { ogb.read(); });
  const std::string cites = ogb.folder / "raw/relations/paper___cites___paper/edge.csv";
  std::filesystem::remove(cites + ".gz");
  expect_error(bad, {"paper___cites___paper", "holds no edge.csv.gz"}, [&] { ogb.read(); });
  write_file(cites, "");
  EXPECT_EQ(ogb.read().graph.graph(1).num_edges(), 0);
  ogb.put("raw/triplet-type-list.csv.gz", "author,writes,book\n");
  expect_error(bad, {"the kind 'book', of which there is no count"}, [&] { ogb.read(); });
  ogb.put("raw/triplet-type-list.csv.gz", "author,writes\n");
  expect_error(bad, {"without a kind, a relation and a kind"}, [&] { ogb.read(); });
  ogb.put("raw/triplet-type-list.csv.gz", "");
  EXPECT_EQ(ogb.read().graph.num_relations(), 0);
  ogb.put("raw/num-node-dict.csv.gz", "author,paper\n3,many\n");
  expect_error(bad, {"'many' is no number of vertices"}, [&] { ogb.read(); });
  ogb.put("raw/num-node-dict.csv.gz", "author,paper\n");
  expect_error(bad, {"no line of kinds with a line of their counts"}, [&] { ogb.read(); });
}

}  // namespace
}  // namespace tessera
