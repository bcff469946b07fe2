// SPDX-License-Identifier: Apache-2.0
// Formats that are read and not written: SciPy's and PyG's archives, METIS's graphs, OGB's folders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/io/metis.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/ogb.hpp"

#include "io/npz_arrays.hpp"
#include "support/datasets.hpp"
#include "support/files.hpp"

namespace tessera {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class OtherFormats : public testing::Test {
 protected:
  template <class Body>
  std::string error_of(Body&& body) {
    try {
      body();
    } catch (const Error& error) {
      EXPECT_FALSE(error.fix().empty()) << error.what();
      return error.what();
    }
    return "no error";
  }
  Dataset open_npz(const std::vector<io::NamedArray>& arrays) {
    io::write_npz_arrays(folder_ / "a.npz", arrays);
    return io::open(folder_ / "a.npz");
  }
  Dataset open_graph(const std::string& text) {
    test::write_file(folder_ / "a.graph", text);
    return io::open(folder_ / "a.graph");
  }

  test::TemporaryFolder folder_;
};

io::NamedArray integers(const char* name, std::vector<std::int64_t> shape,
                        const std::vector<std::int64_t>& values) {
  return {name, test::extra_array<std::int64_t>("<i8", std::move(shape), values)};
}
io::NamedArray reals(const char* name, std::vector<std::int64_t> shape,
                     const std::vector<float>& values) {
  return {name, test::extra_array<float>("<f4", std::move(shape), values)};
}
io::NamedArray text(const char* name, const std::string& value) {
  return {name, test::extra_array<char>(fmt::format("|S{}", value.size()), {},
                                        {value.begin(), value.end()})};
}

/// 0 -> 1, 0 -> 2, 2 -> 1.
void expect_three_edges(const Graph& graph) {
  EXPECT_THAT(graph.row_offsets().span(), ElementsAre(0, 0, 2, 3));
  EXPECT_THAT(graph.col_indices().span(), ElementsAre(0, 2, 0));
}

TEST_F(OtherFormats, EdgeIndexOfPyg) {
  expect_three_edges(open_npz({integers("edge_index", {2, 3}, {0, 0, 2, 1, 2, 1})}).graph);
  expect_three_edges(open_npz({integers("edge_index", {3, 2}, {0, 1, 0, 2, 2, 1})}).graph);
  const Dataset weighted =
      open_npz({integers("edge_index", {2, 3}, {0, 0, 2, 1, 2, 1}),
                reals("edge_weight", {3}, {1, 2, 3}), reals("x", {4, 1}, {5, 6, 7, 8})});
  EXPECT_EQ(weighted.graph.num_rows(), 4);
  EXPECT_THAT(weighted.graph.values().span(), ElementsAre(1, 3, 2));
  EXPECT_EQ(open_npz({integers("edge_index", {2, 1}, {0, 1}), integers("num_nodes", {}, {9})})
                .graph.num_rows(),
            9);
  EXPECT_EQ(open_npz({integers("edge_index", {2, 1}, {0, 1}), integers("y", {5}, {0, 1, 0, 1, 1})})
                .graph.num_rows(),
            5);
  EXPECT_THAT(error_of([&] {
                open_npz({integers("edge_index", {3, 3}, std::vector<std::int64_t>(9))});
              }),
              HasSubstr("(2, edges)"));
  EXPECT_THAT(error_of([&] {
                open_npz({integers("edge_index", {2, 1}, {0, 7}), reals("x", {2, 1}, {1, 2})});
              }),
              HasSubstr("7"));
  EXPECT_THAT(error_of([&] {
                open_npz({integers("edge_index", {2, 1}, {0, std::int64_t{1} << 40})});
              }),
              HasSubstr("out of range"));
  EXPECT_THAT(error_of([&] {
                open_npz({integers("edge_index", {2, 1}, {-1, 0})});
              }),
              HasSubstr("-1"));
  EXPECT_THAT(error_of([&] {
                open_npz({integers("other", {2, 1}, {-1, 0})});
              }),
              AllOf(HasSubstr("no edges"), HasSubstr("edge_index")));
}

TEST_F(OtherFormats, MatricesOfSciPy) {
  // Rows are targets: (1, 0), (1, 2), (2, 0).
  const auto shape = integers("shape", {2}, {3, 3});
  const auto ones = reals("data", {3}, {1, 1, 1});
  const Dataset csr =
      open_npz({text("format", "csr"), shape, ones, integers("indptr", {4}, {0, 0, 2, 3}),
                integers("indices", {3}, {2, 0, 0})});
  expect_three_edges(csr.graph);
  EXPECT_FALSE(csr.graph.has_values());
  const Dataset csc =
      open_npz({text("format", "csc"), shape, reals("data", {3}, {5, 6, 7}),
                integers("indptr", {4}, {0, 2, 2, 3}), integers("indices", {3}, {1, 2, 1})});
  expect_three_edges(csc.graph);
  EXPECT_THAT(csc.graph.values().span(), ElementsAre(5, 7, 6));
  expect_three_edges(open_npz({text("format", "coo"), shape, ones, integers("row", {3}, {2, 1, 1}),
                               integers("col", {3}, {0, 0, 2})})
                         .graph);
  EXPECT_EQ(open_npz({text("format", "coo"), integers("shape", {2}, {2, 5}), reals("data", {0}, {}),
                      integers("row", {0}, {}), integers("col", {0}, {})})
                .graph.num_cols(),
            5);
  EXPECT_THAT(error_of([&] {
                open_npz({reals("data", {1, 3}, {1, 1, 1}), text("format", "dia"), shape});
              }),
              HasSubstr("tocsr"));
  EXPECT_THAT(error_of([&] {
                open_npz({text("format", "csr"), shape, ones, integers("indptr", {3}, {0, 0, 3}),
                          integers("indices", {3}, {2, 0, 0})});
              }),
              HasSubstr("'indptr' has 3 entries for 3 rows"));
  EXPECT_THAT(error_of([&] {
                open_npz({text("format", "csr"), shape, ones, integers("indptr", {4}, {0, 3, 2, 3}),
                          integers("indices", {3}, {2, 0, 0})});
              }),
              HasSubstr("rise"));
  EXPECT_THAT(
      error_of([&] {
        open_npz({text("format", "csr"), shape, reals("data", {2}, {1, 2}),
                  integers("indptr", {4}, {0, 0, 2, 3}), integers("indices", {3}, {2, 0, 0})});
      }),
      HasSubstr("2 values for 3 edges"));
  EXPECT_THAT(error_of([&] {
                open_npz({text("format", "coo"), integers("shape", {1}, {3}), ones,
                          integers("row", {3}, {2, 1, 1}), integers("col", {3}, {0, 0, 2})});
              }),
              HasSubstr("'shape'"));
}

TEST_F(OtherFormats, WeightsBesideAnyKindOfEdges) {
  const io::NamedArray vertices = integers("num_nodes", {}, {3});
  const io::NamedArray weights = reals("edge_weight", {2}, {4, 5});
  EXPECT_THAT(
      open_npz({integers("row", {2}, {2, 0}), integers("col", {2}, {1, 0}), vertices, weights})
          .graph.values()
          .span(),
      ElementsAre(5, 4));
  EXPECT_THAT(open_npz({integers("src_li", {2}, {1, 0}), integers("dst_li", {2}, {2, 0}), vertices,
                        weights})
                  .graph.values()
                  .span(),
              ElementsAre(5, 4));
}

TEST_F(OtherFormats, ArraysOfMergedEdgesKeepTheFirstRow) {
  io::write_npz_arrays(folder_ / "a.npz",
                       {integers("edge_index", {2, 4}, {1, 0, 1, 0, 0, 1, 0, 1}),
                        integers("num_nodes", {}, {2}), integers("edge_type", {4}, {7, 8, 9, 6})});
  for (const Duplicates duplicates : {Duplicates::first, Duplicates::sum}) {
    io::ReadOptions options;
    options.duplicates = duplicates;
    const Dataset dataset = io::open(folder_ / "a.npz", options);
    EXPECT_EQ(dataset.extras.at("edge_type"), test::extra_array<std::int64_t>("<i8", {2}, {7, 8}));
  }
}

TEST_F(OtherFormats, NothingIsGivenTwice) {
  const std::vector<io::NamedArray> matrix = {integers("row", {1}, {0}), integers("col", {1}, {1}),
                                              integers("num_nodes", {}, {3})};
  const auto error = [&](std::vector<io::NamedArray> more) {
    more.insert(more.end(), matrix.begin(), matrix.end());
    return error_of([&] { open_npz(more); });
  };
  EXPECT_EQ(error({}), "no error");
  EXPECT_THAT(error({integers("edge_index", {2, 1}, {0, 1})}), HasSubstr("edges twice"));
  EXPECT_THAT(error({integers("src_li", {1}, {0}), integers("dst_li", {1}, {1})}),
              HasSubstr("edges twice"));
  EXPECT_THAT(error({reals("value", {1}, {2}), reals("edge_weight", {1}, {3})}),
              HasSubstr("weights twice"));
  EXPECT_THAT(error({integers("num_rows", {}, {4}), integers("num_cols", {}, {3})}),
              HasSubstr("3 vertices by 'num_nodes', but 4 rows"));
  EXPECT_EQ(error({integers("num_rows", {}, {3}), integers("num_cols", {}, {3})}), "no error");
}

TEST_F(OtherFormats, RealNumbersOfOtherTypes) {
  const auto with_features = [&](const char* type, const auto& bits) {
    return open_npz(
        {integers("edge_index", {2, 1}, {0, 1}),
         {"x", test::extra_array<std::remove_cvref_t<decltype(bits[0])>>(type, {2, 2}, bits)}});
  };
  const Dataset halves =
      with_features("<f2", std::vector<std::uint16_t>{0x3C00, 0xC100, 0x0001, 0x7BFF});
  EXPECT_THAT(std::get<DenseFeatures>(halves.features)->span(),
              ElementsAre(1, -2.5f, 0x1p-24f, 65504));
  const Dataset doubles =
      with_features("<f8", std::vector<double>{1, -0x1.fffffep127, 0x1.fffffefp127, 1e-50});
  EXPECT_THAT(std::get<DenseFeatures>(doubles.features)->span(),
              ElementsAre(1, -0x1.fffffep127f, 0x1.fffffep127f, 0));
  EXPECT_THAT(error_of([&] {
                with_features("<f8", std::vector<double>{1, 2, -1e40, 4});
              }),
              HasSubstr("value -1e+40 at position 2 does not fit"));
}

TEST_F(OtherFormats, GraphsOfMetis) {
  const Dataset plain = open_graph("% a path and a lonely vertex\n4 2\n2\n1 3\n2\n\n");
  EXPECT_EQ(plain.graph.num_rows(), 4);
  EXPECT_THAT(plain.graph.row_offsets().span(), ElementsAre(0, 1, 3, 4, 4));
  EXPECT_THAT(plain.graph.col_indices().span(), ElementsAre(1, 0, 2, 1));
  EXPECT_EQ(plain.edges_stored, 2);
  EXPECT_THAT(open_graph("2 1 1\r\n2 7\r\n1 7").graph.values().span(), ElementsAre(7, 7));
  EXPECT_THAT(open_graph("2 1 011 2\n5 5 2 7\n5 5 1 7\n").graph.values().span(), ElementsAre(7, 7));
  EXPECT_THAT(open_graph("2 1 111 1\n9 5 2 .5\n% remark\n9 5 1 .5\n").graph.values().span(),
              ElementsAre(0.5f, 0.5f));
  EXPECT_EQ(open_graph("0 0\n").graph.num_rows(), 0);
}

TEST_F(OtherFormats, GraphsOfMetisThatAreDamaged) {
  const auto error = [&](const std::string& content) {
    return error_of([&] { open_graph(content); });
  };
  EXPECT_THAT(error("3 1\n2\n1\n"), HasSubstr("lines for 2 vertices"));
  EXPECT_THAT(error("2 1\n2\n1\n1\n"), AllOf(HasSubstr("line 4"), HasSubstr("a line more")));
  EXPECT_THAT(error("2 2\n2\n1\n"), HasSubstr("lists 2 neighbours"));
  EXPECT_THAT(error("2 1\n3\n1\n"), AllOf(HasSubstr("line 2"), HasSubstr("within 1 to 2")));
  EXPECT_THAT(error("2 1\n0\n1\n"), HasSubstr("line 2"));
  EXPECT_THAT(error("2 1\nx\n1\n"), HasSubstr("no integer"));
  EXPECT_THAT(error("2 1 1\n2\n1\n"), HasSubstr("no weight"));
  EXPECT_THAT(error("2 1 1\n2 inf\n1 inf\n"), HasSubstr("not finite"));
  EXPECT_THAT(error("2 1 7\n2\n1\n"), HasSubstr("format 7"));
  EXPECT_THAT(error("4 2\n2\n3\n4\n1\n"), HasSubstr("one of its ends alone"));
  EXPECT_THAT(error("2 1 1\n2 7\n1 8\n"), HasSubstr("another at the other"));
  EXPECT_THAT(error("2\n2\n1\n"), HasSubstr("VERTICES EDGES"));
  EXPECT_THAT(error("2000000000 1\n2\n1\n"), HasSubstr("may claim"));
  EXPECT_THAT(error("% nothing\n"), HasSubstr("VERTICES EDGES"));
}

TEST_F(OtherFormats, FoldersOfOgb) {
  namespace fs = std::filesystem;
  const std::string set = folder_ / "ogbn_tiny";
  fs::create_directories(set + "/raw");
  fs::create_directories(set + "/split/time");
  EXPECT_THAT(error_of([&] { io::open(set); }), HasSubstr("is a folder"));
  test::write_file(set + "/raw/edge.csv", "0,1\n0,2\n2,1\n");
  EXPECT_THAT(error_of([&] { io::open(set); }), HasSubstr("num-node-list"));
  test::write_file(set + "/raw/num-node-list.csv", "4\n");
  test::write_file(set + "/raw/node-feat.csv", "1,2\n3,4\n5,6\n7,8.5\n");
  test::write_file(set + "/raw/node-label.csv", "0\n1\nnan\n1\n");
  test::write_file(set + "/split/time/train.csv", "0\n");
  test::write_file(set + "/split/time/valid.csv", "1\n");
  test::write_file(set + "/split/time/test.csv", "3\n");
  const Dataset dataset = io::open(set);
  EXPECT_EQ(dataset.name, "ogbn_tiny");
  EXPECT_EQ(io::open(set + "/").name, "ogbn_tiny");
  EXPECT_EQ(dataset.graph.num_rows(), 4);
  EXPECT_EQ(dataset.graph.num_edges(), 3);
  EXPECT_THAT(std::get<DenseFeatures>(dataset.features)->span(),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8.5));
  EXPECT_THAT(std::get<ClassLabels>(dataset.labels).span(), ElementsAre(0, 1, -1, 1));
  EXPECT_THAT(dataset.train.span(), ElementsAre(0));
  EXPECT_THAT(dataset.test.span(), ElementsAre(3));
  test::write_file(set + "/raw/edge.csv", "0,1\n0,4\n");
  EXPECT_THAT(error_of([&] { io::open(set); }), AllOf(HasSubstr("line 2"), HasSubstr("vertex 4")));
  test::write_file(set + "/raw/edge.csv", "0,1\n");
  test::write_file(set + "/raw/node-feat.csv", "1,2\n3,4\n");
  EXPECT_THAT(error_of([&] { io::open(set); }), HasSubstr("2 rows for 4 vertices"));
  test::write_file(set + "/raw/node-feat.csv", "1,2\n3,4\n1,1\n1,x\n");
  EXPECT_THAT(error_of([&] { io::open(set); }), AllOf(HasSubstr("line 4"), HasSubstr("'x'")));
  test::write_file(set + "/raw/num-node-list.csv", "2\n2\n");
  EXPECT_THAT(error_of([&] { io::open(set); }), HasSubstr("2 graphs"));
}

TEST_F(OtherFormats, PicklesAreRefusedWithAPointer) {
  test::write_file(folder_ / "ind.cora.x", std::string("\x80\x02}q\x00.", 6));
  EXPECT_THAT(error_of([&] { io::open(folder_ / "ind.cora.x"); }),
              HasSubstr("is a Python pickle, which only Python can read"));
  test::write_file(folder_ / "ind.cora.test.index", "7\n8\n");
  test::write_file(folder_ / "ind.cora.graph", "(dp1\nI0\n");
  const std::string command = "to_npz.py planetoid " + folder_.path() + " cora cora.npz";
  for (const char* const part : {"ind.cora.x", "ind.cora.graph", "ind.cora.test.index"}) {
    EXPECT_THAT(error_of([&] { io::open(folder_ / part); }), HasSubstr(command));
  }
  EXPECT_THAT(error_of([&] { io::open(folder_.path()); }), HasSubstr(command));
  test::write_file(folder_ / "ind.pubmed.graph", "(dp1\nI0\n");
  EXPECT_THAT(error_of([&] { io::open(folder_.path()); }),
              AllOf(HasSubstr("of cora and pubmed"), HasSubstr(command)));
}

TEST_F(OtherFormats, TheFormatCanBeNamed) {
  test::write_file(folder_ / "a.graph", "0 1\n0 2\n2 1\n");
  io::ReadOptions options;
  options.format = "edges";
  expect_three_edges(io::open(folder_ / "a.graph", options).graph);
  options.format = "parquet";
  EXPECT_THAT(error_of([&] { io::open(folder_ / "a.graph", options); }), HasSubstr("metis"));
  options.format = "";
  options.nodes.path = folder_ / "nodes.csv";
  EXPECT_THAT(error_of([&] { io::open(folder_ / "a.graph", options); }), HasSubstr("--nodes"));
}

}  // namespace
}  // namespace tessera
