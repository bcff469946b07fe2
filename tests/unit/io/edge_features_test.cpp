// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "tessera/core/error.hpp"
#include "tessera/io/open.hpp"

#include "io/npz_arrays.hpp"
#include "support/datasets.hpp"
#include "support/files.hpp"

/// Features of edges in every format that can hold them.
namespace tessera {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<float> numbers(const Dataset& dataset) {
  const auto& matrix = dataset.edge_features.matrix;
  if (matrix == nullptr) return {};
  return {matrix->data(), matrix->data() + matrix->size()};
}

class EdgeFeaturesOf : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    test::write_file(folder_ / name, text);
    return folder_ / name;
  }
  template <class T>
  std::string npz(std::vector<std::int64_t> shape, const std::vector<T>& values, const char* type,
                  const std::vector<std::int64_t>& ends) {
    const auto edges = std::ssize(ends) / 2;
    io::write_npz_arrays(folder_ / "a.npz",
                         {{"edge_index", test::extra_array<std::int64_t>("<i8", {2, edges}, ends)},
                          {"num_nodes", test::extra_array<std::int64_t>("<i8", {}, {4})},
                          {"edge_attr", test::extra_array<T>(type, std::move(shape), values)}});
    return folder_ / "a.npz";
  }
  static std::string error_of(const std::string& path, const io::ReadOptions& options = {}) {
    try {
      io::open(path, options);
    } catch (const Error& error) {
      EXPECT_FALSE(error.fix().empty()) << error.what();
      return error.what();
    }
    return "no error";
  }
  static io::ReadOptions merging(Duplicates duplicates) {
    io::ReadOptions options;
    options.duplicates = duplicates;
    return options;
  }
  static io::ReadOptions columns(std::vector<std::string> names) {
    io::ReadOptions options;
    options.edges.features = std::move(names);
    return options;
  }

  test::TemporaryFolder folder_;
};

TEST_F(EdgeFeaturesOf, ArchivesFollowTheEdges) {
  // Edges 2 -> 3, 0 -> 1, 1 -> 2, which the graph has by target.
  const Dataset dataset =
      io::open(npz<float>({3, 2}, {23, 1, 1, 2, 12, 3}, "<f4", {2, 0, 1, 3, 1, 2}));
  EXPECT_THAT(numbers(dataset), ElementsAre(1, 2, 12, 3, 23, 1));
  EXPECT_FALSE(dataset.graph.has_edge_ids());
  EXPECT_TRUE(dataset.extras.empty());
  EXPECT_THAT(dataset.notes, IsEmpty());
  for (const char* const name : {"b.npz", "b.tsr"}) {
    io::save(dataset, folder_ / name);
    EXPECT_EQ(io::open(folder_ / name), dataset) << name;
  }
  EXPECT_THROW(io::save(dataset, folder_ / "b.mtx"), Error);
  // One number for each edge, and integers.
  EXPECT_THAT(numbers(io::open(npz<std::int64_t>({2}, {7, 8}, "<i8", {1, 0, 0, 3}))),
              ElementsAre(7, 8));
  EXPECT_EQ(io::open(npz<float>({0, 3}, {}, "<f4", {})).edge_features.count(), 3);
}

TEST_F(EdgeFeaturesOf, ArchivesAreChecked) {
  const std::vector<std::int64_t> ends = {0, 1, 1, 2};
  EXPECT_THAT(error_of(npz<float>({3, 1}, {1, 2, 3}, "<f4", ends)),
              AllOf(HasSubstr("edge_attr"), HasSubstr("3 rows for 2 edges")));
  EXPECT_THAT(error_of(npz<float>({2, 2}, {1, 2, 3, NAN}, "<f4", ends)),
              AllOf(HasSubstr("a.npz"), HasSubstr("feature 1 of edge 1 is nan")));
  EXPECT_THAT(error_of(npz<float>({1, 2, 1}, {1, 2}, "<f4", ends)), HasSubstr("3 dimensions"));
}

TEST_F(EdgeFeaturesOf, MergedEdgesKeepTheFirstOrMustAgree) {
  const std::vector<std::int64_t> twice = {1, 0, 1, 0, 0, 1, 0, 1};
  const std::vector<float> differ = {1, 2, 3, 2};
  const std::string path = npz<float>({4, 1}, differ, "<f4", twice);
  EXPECT_THAT(error_of(path), HasSubstr("more than once"));
  EXPECT_THAT(numbers(io::open(path, merging(Duplicates::first))), ElementsAre(1, 2));
  EXPECT_THAT(error_of(path, merging(Duplicates::sum)),
              AllOf(HasSubstr("edges from vertex 1 to vertex 0 are merged"), HasSubstr("first")));
  // Where edges stay apart, so do their features.
  EXPECT_THAT(numbers(io::open(path, merging(Duplicates::keep))), ElementsAre(1, 3, 2, 2));
  const Dataset agreed =
      io::open(npz<float>({4, 1}, {5, 2, 5, 2}, "<f4", twice), merging(Duplicates::sum));
  EXPECT_THAT(numbers(agreed), ElementsAre(5, 2));
  EXPECT_THAT(agreed.graph.values().span(), ElementsAre(2, 2));
}

TEST_F(EdgeFeaturesOf, EdgesThatAreKeptApartKeepTheirsInFilesToo) {
  const char* const text = "from,to,length\n0,1,4\n1,0,2\n0,1,3\n2,1,9\n0,1,5\n";
  io::ReadOptions options = columns({"length"});
  options.duplicates = Duplicates::keep;
  const Dataset dataset = io::open(write("a.csv", text), options);
  ASSERT_TRUE(dataset.graph.has_repeated_edges());
  EXPECT_THAT(dataset.graph.col_indices().span(), ElementsAre(1, 0, 0, 0, 2));
  EXPECT_THAT(numbers(dataset), ElementsAre(2, 4, 3, 5, 9));
  io::save(dataset, folder_ / "b.tsr");
  const Dataset back = io::open(folder_ / "b.tsr");
  EXPECT_TRUE(back.graph.has_repeated_edges());
  EXPECT_EQ(back, dataset);
  // Without features nothing tells them apart.
  Dataset bare = dataset;
  bare.edge_features = {};
  io::save(bare, folder_ / "c.tsr");
  EXPECT_THAT(error_of(folder_ / "c.tsr"), HasSubstr("columns must rise"));
}

TEST_F(EdgeFeaturesOf, EdgeListsHaveThemInColumns) {
  const char* const text = "from,to,length,kind,weight\nb,a,2,x,0.5\na,b,1,y,1.5\na,c,,x,2.5\n";
  const Dataset dataset = io::open(write("a.csv", text), columns({"length", "kind"}));
  // Vertices are numbered as they appear: b, a, c.
  EXPECT_THAT(numbers(dataset), ElementsAre(1, 0, 1, 2, 1, 0, 1.5, 1, 0));
  EXPECT_EQ(dataset.edge_features.names, Names({"length", "kind=x", "kind=y"}));
  EXPECT_THAT(dataset.edge_features.category_prefixes.span(), ElementsAre(-1, 4, 4));
  EXPECT_THAT(dataset.graph.values().span(), ElementsAre(1.5f, 0.5f, 2.5f));
  EXPECT_THAT(dataset.notes, Contains("of edges, numbers: 'length'"));
  EXPECT_THAT(dataset.notes, Contains(HasSubstr("of edges, filled in: ")));
  for (const std::string& note : dataset.notes) EXPECT_THAT(note, Not(HasSubstr("nothing uses")));
  EXPECT_THAT(io::open(write("a.csv", text)).notes,
              Contains(HasSubstr("nothing uses 'length' and 'kind'")));
  // Without a header columns have numbers, and numbers as ids may begin at 1.
  io::ReadOptions plain = columns({"3", "4"});
  plain.edges.base = 1;
  const Dataset numbered = io::open(write("b.csv", "3 1 0.5 7\n1 2 1.5 8\n"), plain);
  EXPECT_THAT(numbers(numbered), ElementsAre(0.5, 7, 1.5, 8));
  EXPECT_FALSE(numbered.graph.has_values());
}

TEST_F(EdgeFeaturesOf, EdgeListsBesideATableMayDropEdges) {
  io::ReadOptions options = columns({"length"});
  options.nodes.path = write("nodes.csv", "id,age\na,1\nb,2\n");
  options.nodes.unknown = io::UnknownIds::drop;
  const Dataset dataset =
      io::open(write("a.csv", "from,to,length\nb,a,2\nz,a,9\na,b,1\nb,z,8\n"), options);
  EXPECT_THAT(numbers(dataset), ElementsAre(2, 1));
  EXPECT_EQ(dataset.num_features(), 1);
}

TEST_F(EdgeFeaturesOf, EdgeListsAreChecked) {
  const std::string path = write("a.csv", "from,to,length,kind\n0,1,2,x\n0,1,3,x\n");
  EXPECT_THAT(error_of(path, columns({"lenght"})), HasSubstr("no column 'lenght'"));
  EXPECT_THAT(error_of(path, columns({"to"})),
              AllOf(HasSubstr("--edge-features"), HasSubstr("'to'")));
  io::ReadOptions sum = columns({"length"});
  sum.duplicates = Duplicates::sum;
  EXPECT_THAT(error_of(path, sum), AllOf(HasSubstr("a.csv"), HasSubstr("features differ")));
  sum.edges.features = {"kind"};
  EXPECT_THAT(numbers(io::open(path, sum)), ElementsAre(1));
  EXPECT_THAT(error_of(write("b.csv", "from,to,length\n0,1,inf\n"), columns({"length"})),
              AllOf(HasSubstr("line 2"), HasSubstr("finite")));
  EXPECT_THAT(error_of(npz<float>({1, 1}, {1}, "<f4", {0, 1}), columns({"3"})),
              HasSubstr("--edge-features"));
}

TEST_F(EdgeFeaturesOf, GraphmlHasThemAsAttributes) {
  const Dataset dataset = io::open(
      write("a.graphml",
            "<graphml><key id='l' for='edge' attr.name='length' attr.type='double'/>"
            "<key id='c' for='all' attr.name='colour'><default>red</default></key>"
            "<key id='k' for='edge' attr.name='kind'><default>x</default></key>"
            "<key id='u' for='edge' attr.name='unused'/>"
            "<graph edgedefault='undirected'><node id='a'/><node id='b'/><node id='c'/>"
            "<edge source='c' target='a'><data key='l'>2</data><data key='k'>y</data></edge>"
            "<edge source='a' target='b'><data key='l'>4</data></edge>"
            "<edge source='b' target='b' directed='true'/></graph></graphml>"));
  // 0 <- 1, 0 <- 2, 1 <- 0, 1 <- 1, 2 <- 0; the length that is missing is the mean of the others.
  EXPECT_EQ(dataset.edge_features.names, Names({"kind=x", "kind=y", "length"}));
  EXPECT_THAT(numbers(dataset), ElementsAre(1, 0, 4, 0, 1, 2, 1, 0, 4, 1, 0, 3, 0, 1, 2));
  EXPECT_EQ(dataset.feature_names, Names({"colour=red"}));
}

TEST_F(EdgeFeaturesOf, OgbFoldersHaveALineForEachEdge) {
  const auto folder = [&](const std::string& features) {
    write("set/raw/num-node-list.csv", "3\n");
    write("set/raw/edge.csv", "2,0\n0,1\n0,2\n");
    write("set/raw/edge-feat.csv", features);
    return std::string(folder_ / "set");
  };
  EXPECT_THAT(numbers(io::open(folder("1,10\n2,20\n3,30\n"))), ElementsAre(1, 10, 2, 20, 3, 30));
  EXPECT_THAT(error_of(folder("1\n2\n")),
              AllOf(HasSubstr("edge-feat"), HasSubstr("2 rows for 3 edges")));
  EXPECT_THAT(error_of(folder("1\n2\nnan\n")), AllOf(HasSubstr("edge-feat"), HasSubstr("line 3")));
}

TEST_F(EdgeFeaturesOf, TuFoldersHaveAttributesAndLabels) {
  write("tu/TOY_A.txt", "2,1\n1,2\n3,1\n");
  write("tu/TOY_graph_indicator.txt", "1\n1\n1\n");
  write("tu/TOY_edge_labels.txt", "7\n8\n7\n");
  write("tu/TOY_edge_attributes.txt", "1, 2\n3, 4\n5, 6\n");
  const Dataset dataset = io::open(folder_ / "tu");
  EXPECT_EQ(dataset.edge_features.names,
            Names({"attribute 1", "attribute 2", "label=7", "label=8"}));
  EXPECT_THAT(dataset.edge_features.category_prefixes.span(), ElementsAre(-1, -1, 5, 5));
  EXPECT_THAT(numbers(dataset), ElementsAre(1, 2, 1, 0, 5, 6, 1, 0, 3, 4, 0, 1));
  EXPECT_THAT(dataset.notes,
              Contains("features of edges, one each: 2 attributes and 2 values of column 'label'"));
}

}  // namespace
}  // namespace tessera
