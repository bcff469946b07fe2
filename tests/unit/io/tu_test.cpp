// SPDX-License-Identifier: Apache-2.0
// Folders of the TU collection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "tessera/core/error.hpp"
#include "tessera/data/classes.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/tu.hpp"

#include "support/datasets.hpp"
#include "support/files.hpp"

namespace tessera {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

/// A triangle with a tail that has no edge, and a pair; the third graph is a vertex alone.
const std::map<std::string, std::string> toy = {
    {"A", "1, 2\n2, 1\n2, 3\n3, 2\n3, 1\n1, 3\n5, 6\n6, 5\n"},
    {"graph_indicator", "1\n1\n1\n1\n2\n2\n3\n"},
    {"graph_labels", "1\n-1\n1\n"}};

class TuFolder : public testing::Test {
 protected:
  void write(std::map<std::string, std::string> parts, const std::string& below = "") {
    std::filesystem::remove_all(set_);
    std::filesystem::create_directories(set_ + below);
    for (const auto& [part, text] : parts) {
      test::write_file(set_ + below + "/TOY_" + part + ".txt", text);
    }
  }
  Dataset opened(std::map<std::string, std::string> more = {},
                 Duplicates duplicates = Duplicates::reject) {
    more.insert(toy.begin(), toy.end());
    write(more);
    io::ReadOptions options;
    options.duplicates = duplicates;
    return io::open(set_, options);
  }
  std::string error_of(std::map<std::string, std::string> more) {
    try {
      opened(std::move(more));
    } catch (const Error& error) {
      EXPECT_FALSE(error.fix().empty()) << error.what();
      return error.what();
    }
    return "no error";
  }

  test::TemporaryFolder folder_;
  std::string set_ = folder_ / "toys";
};

TEST_F(TuFolder, IsAUnionOfGraphs) {
  const Dataset dataset = opened();
  EXPECT_EQ(dataset.name, "TOY");
  EXPECT_EQ(dataset.graph.num_rows(), 7);
  EXPECT_EQ(dataset.graph.num_edges(), 8);
  EXPECT_EQ(dataset.edges_stored, 8);
  EXPECT_FALSE(dataset.graph.has_edge_ids());
  EXPECT_THAT(dataset.graph.row_offsets().span(), ElementsAre(0, 2, 4, 6, 6, 7, 8, 8));
  EXPECT_THAT(dataset.graph_ids.span(), ElementsAre(0, 0, 0, 0, 1, 1, 2));
  EXPECT_THAT(dataset.graph_labels.span(), ElementsAre(1, 0, 1));
  const Names names = dataset.graph_class_names();
  ASSERT_EQ(names.size(), 2);
  EXPECT_EQ(names[0], "-1");
  EXPECT_EQ(names[1], "1");
  EXPECT_EQ(dataset.num_features(), 0);
  io::write_npz(dataset, folder_ / "toy.npz");
  EXPECT_EQ(io::read_npz(folder_ / "toy.npz"), dataset);
}

TEST_F(TuFolder, TheFirstOfAPairIsTheSource) {
  const Dataset dataset = opened({{"A", "1,4\n"}});
  EXPECT_EQ(dataset.graph.degree(3), 1);
  EXPECT_THAT(dataset.graph.neighbours(3), ElementsAre(0));
}

TEST_F(TuFolder, LabelsAreClassesInTheirOrder) {
  EXPECT_EQ(opened({{"graph_labels", "0\n1\n1\n"}}).class_names, Names());
  const Dataset odd = opened({{"graph_labels", "9000000000\n-7\n0\n"}});
  EXPECT_THAT(odd.graph_labels.span(), ElementsAre(2, 0, 1));
  EXPECT_EQ(odd.class_names, Names({"-7", "0", "9000000000"}));
}

TEST_F(TuFolder, LabelsOfVerticesAreSparseFeatures) {
  const Dataset dataset = opened({{"node_labels", "3\n0\n3\n3\n0\n0\n8\n"}});
  const auto& features = std::get<SparseFeatures>(dataset.features);
  EXPECT_EQ(features.num_cols(), 3);
  EXPECT_THAT(features.col_indices().span(), ElementsAre(1, 0, 1, 1, 0, 0, 2));
  EXPECT_THAT(features.values().span(), Each(1.0f));
  EXPECT_EQ(dataset.feature_names, Names({"label=0", "label=3", "label=8"}));
  EXPECT_THAT(dataset.category_prefixes.span(), Each(5));
}

TEST_F(TuFolder, AttributesStandBeforeLabels) {
  const Dataset dataset =
      opened({{"node_labels", "3, 1\n0, 1\n3, 1\n3, 2\n0, 2\n0, 2\n3, 2\n"},
              {"node_attributes", "1, 2\n3, 4\n5, 6\n7, 8\n.5, 0\n0, 0\n1e1, 0\n"}});
  const Matrix<float>& features = *std::get<DenseFeatures>(dataset.features);
  EXPECT_EQ(features.cols(), 6);
  EXPECT_THAT(std::span(features.row(3), 6), ElementsAre(7, 8, 0, 1, 0, 1));
  EXPECT_THAT(std::span(features.row(4), 6), ElementsAre(0.5f, 0, 1, 0, 0, 1));
  EXPECT_EQ(dataset.feature_names, Names({"attribute 1", "attribute 2", "label 1=0", "label 1=3",
                                          "label 2=1", "label 2=2"}));
}

TEST_F(TuFolder, AttributesOfGraphsAreNumbersToPredict) {
  const Dataset dataset = opened({{"graph_attributes", "0.5, 1\n1.5, 2\n2.5, 3\n"}});
  const Matrix<float>& targets = *dataset.graph_targets.matrix;
  EXPECT_EQ(targets.cols(), 2);
  EXPECT_THAT(targets.span(), ElementsAre(0.5f, 1, 1.5f, 2, 2.5f, 3));
}

TEST_F(TuFolder, MayHaveNoEdgesAtAll) {
  for (const char* const nothing : {"", "\n"}) {
    const Dataset dataset = opened({{"A", nothing}, {"edge_labels", nothing}});
    EXPECT_EQ(dataset.graph.num_edges(), 0);
    EXPECT_EQ(dataset.graph.num_rows(), 7);
    EXPECT_EQ(dataset.edge_features.matrix, nullptr);
  }
}

TEST_F(TuFolder, MayLieInRaw) {
  write(toy, "/raw");
  EXPECT_TRUE(io::is_tu_folder(set_));
  EXPECT_EQ(io::open(set_).num_graphs(), 3);
  test::write_file(set_ + "/raw/OTHER_A.txt", "1, 2\n");
  EXPECT_THROW(io::open(set_), Error);
  std::filesystem::remove_all(set_ + "/raw");
  EXPECT_FALSE(io::is_tu_folder(set_));
}

TEST_F(TuFolder, RepeatedEdgesAreMergedWhereThatIsAskedFor) {
  const std::map<std::string, std::string> twice = {{"A", "1,2\n2,1\n1,2\n"},
                                                    {"edge_labels", "4\n5\n4\n"}};
  EXPECT_THAT(error_of(twice), AllOf(HasSubstr("TOY_A.txt: line 3"), HasSubstr("1 to vertex 2")));
  EXPECT_EQ(opened(twice, Duplicates::first).graph.num_edges(), 2);
  const Dataset summed = opened(twice, Duplicates::sum);
  EXPECT_THAT(summed.graph.values().span(), ElementsAre(1, 2));
}

TEST_F(TuFolder, ErrorsNameFileAndLine) {
  const auto says = [&](const char* part, const char* text, const char* file, const char* problem) {
    EXPECT_THAT(error_of({{part, text}}), AllOf(HasSubstr(file), HasSubstr(problem))) << text;
  };
  says("A", "1,2\n2,8\n", "TOY_A.txt: line 2", "vertex 8 is none of the 7");
  says("A", "0,1\n", "TOY_A.txt: line 1", "vertex 0");
  says("A", "1,2\n\n3,5\n", "TOY_A.txt: line 3", "from vertex 3 of graph 1 to vertex 5 of graph 2");
  says("A", "1,2\n1\n", "TOY_A.txt: line 2", "columns");
  says("A", "1\n2\n", "TOY_A.txt", "1 number on a line");
  says("A", "1,x\n", "TOY_A.txt: line 1", "'x' is no whole number");
  says("A", "1,99999999999999999999\n", "TOY_A.txt: line 1", "is no whole number");
  says("graph_indicator", "1\n1\n3\n", "graph_indicator.txt: line 3", "vertex 3 is in graph 3");
  says("graph_indicator", "1\n2\n1\n", "graph_indicator.txt: line 3", "graph 2");
  says("graph_indicator", "2\n2\n", "graph_indicator.txt: line 1", "not in graph 1");
  says("graph_indicator", "1, 1\n", "graph_indicator.txt", "2 numbers on a line");
  says("graph_indicator", "", "graph_indicator.txt", "no vertices");
  says("graph_labels", "1\n2\n", "graph_labels.txt", "2 rows for 3 graphs");
  says("graph_labels", "1, 0\n2, 0\n1, 1\n", "graph_labels.txt", "2 numbers on a line");
  says("graph_labels", "1\n0.5\n2\n", "graph_labels.txt: line 2", "'0.5' is no whole number");
  says("node_labels", "1\n", "node_labels.txt", "1 rows for 7 vertices");
  says("node_attributes", "1\n2\n3\n4\n5\n6\nNA\n", "node_attributes.txt: line 7", "'NA'");
  says("node_attributes", "1\n2\ninf\n4\n5\n6\n7\n", "line 3", "'inf' is no finite number");
  says("edge_labels", "1\n2\n", "edge_labels.txt", "2 rows for 8 edges");
  says("edge_attributes", "", "edge_attributes.txt", "0 rows for 8 edges");
  says("graph_attributes", "1\n", "graph_attributes.txt", "1 rows for 3 graphs");
}

TEST_F(TuFolder, MissingFilesAreNamed) {
  for (const char* const part : {"A", "graph_indicator"}) {
    auto parts = toy;
    parts.erase(part);
    write(parts);
    try {
      io::open(set_);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string("has no TOY_") + part + ".txt"));
    }
  }
}

TEST_F(TuFolder, FilesCutShortAreReadOrRefused) {
  auto parts = toy;
  parts["node_labels"] = "3\n0\n3\n3\n0\n0\n8\n";
  parts["node_attributes"] = "1, 2\n3, 4\n5, 6\n7, 8\n.5, 0\n0, 0\n1e1, 0\n";
  for (const auto& [part, text] : parts) {
    for (std::size_t length = 0; length < text.size(); ++length) {
      auto cut = parts;
      cut[part] = text.substr(0, length);
      write(cut);
      try {
        io::open(set_).validate();
      } catch (const Error& error) {
        EXPECT_NE(error.code(), ErrorCode::internal) << error.what();
      }
    }
  }
}

TEST(RealTuFolders, HaveTheSizesThatAreKnown) {
  const auto data = test::data_folder();
  if (!data) GTEST_SKIP() << "TESSERA_DATA is not set";
  struct Known {
    const char* name;
    std::int64_t graphs, vertices, edges, features, classes;
  };
  // As PyG's TUDataset has them with use_node_attr.
  for (const Known& known :
       {Known{"MUTAG", 188, 3371, 7442, 7, 2}, Known{"ENZYMES", 600, 19580, 74564, 21, 6},
        Known{"AIDS", 2000, 31385, 64780, 42, 2}}) {
    const Dataset dataset = io::open(*data + "/tu/" + known.name);
    EXPECT_EQ(dataset.name, known.name);
    EXPECT_EQ(dataset.num_graphs(), known.graphs) << known.name;
    EXPECT_EQ(dataset.graph.num_rows(), known.vertices) << known.name;
    EXPECT_EQ(dataset.graph.num_edges(), known.edges) << known.name;
    EXPECT_EQ(dataset.num_features(), known.features) << known.name;
    EXPECT_EQ(std::ssize(class_values(dataset.graph_labels.span())), known.classes) << known.name;
    EXPECT_EQ(symmetrised(dataset.graph).num_edges(), known.edges) << known.name;
  }
}

}  // namespace
}  // namespace tessera
