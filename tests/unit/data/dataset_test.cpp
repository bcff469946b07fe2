// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/dataset.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "tessera/core/error.hpp"
#include "tessera/graph/build.hpp"

namespace tessera {
namespace {

using Numbers = std::vector<std::int64_t>;

Graph triangle() {
  const std::vector<VertexId> rows = {0, 0, 1, 1, 2, 2};
  const std::vector<VertexId> cols = {1, 2, 0, 2, 0, 1};
  return from_coo(3, 3, rows, cols);
}

std::shared_ptr<const Matrix<float>> matrix(std::int64_t rows, std::int64_t cols, float value) {
  return std::make_shared<Matrix<float>>(rows, cols, value);
}

Dataset complete_dataset() {
  Dataset dataset;
  dataset.name = "triangle";
  dataset.graph = triangle();
  dataset.features = matrix(3, 5, 0.5F);
  dataset.labels = ClassLabels(Numbers{1, -1, 0});
  dataset.train = Numbers{0};
  dataset.validation = Numbers{1};
  dataset.test = Numbers{2};
  dataset.graph_ids = std::vector<std::int32_t>{1, 1, 1};
  dataset.graph_labels = Numbers{-1, 7};
  return dataset;
}

TEST(Dataset, CountsWhatItHas) {
  const Dataset dataset = complete_dataset();
  EXPECT_EQ(dataset.num_features(), 5);
  EXPECT_EQ(dataset.num_classes(), 2);
  EXPECT_EQ(dataset.num_graphs(), 2);
  EXPECT_FALSE(dataset.is_multi_label());

  Dataset multi;
  multi.labels = matrix(0, 121, 0);
  multi.features = Graph(0, 50, std::vector<EdgeOffset>{0}, {});
  EXPECT_EQ(multi.num_classes(), 121);
  EXPECT_TRUE(multi.is_multi_label());
  EXPECT_EQ(multi.num_features(), 50);

  Dataset bare;
  EXPECT_EQ(bare.num_features(), 0);
  EXPECT_EQ(bare.num_classes(), 0);
  EXPECT_EQ(bare.num_graphs(), 1);
  bare.labels = ClassLabels(Numbers{-1, -1});
  EXPECT_EQ(bare.num_classes(), 0);
  bare.graph_ids = std::vector<std::int32_t>{0, 2};
  EXPECT_EQ(bare.num_graphs(), 3);
}

TEST(Dataset, ValidatesWhatFits) {
  EXPECT_NO_THROW(Dataset().validate());
  EXPECT_NO_THROW(complete_dataset().validate());
  Dataset multi = complete_dataset();
  multi.labels = matrix(3, 2, 1);
  EXPECT_NO_THROW(multi.validate());
}

TEST(Dataset, RejectsEachPartThatDoesNotFit) {
  struct Case {
    const char* part;
    std::function<void(Dataset&)> spoil;
  };
  const std::vector<Case> cases = {
      {"features", [](Dataset& d) { d.features = matrix(2, 5, 0); }},
      {"features", [](Dataset& d) { d.features = DenseFeatures(); }},
      {"features",
       [](Dataset& d) {
         d.features = Graph(2, 5, std::vector<EdgeOffset>{0, 0, 0}, {});
       }},
      {"",
       [](Dataset& d) {
         d.features = Graph(3, 5, std::vector<EdgeOffset>{0, 1, 1, 1}, std::vector<VertexId>{5});
       }},
      {"labels",
       [](Dataset& d) {
         d.labels = ClassLabels(Numbers{0, 1});
       }},
      {"labels",
       [](Dataset& d) {
         d.labels = ClassLabels(Numbers{0, -2, 1});
       }},
      {"labels",
       [](Dataset& d) {
         d.labels = ClassLabels(Numbers{0, 1LL << 40, 1});
       }},
      {"labels", [](Dataset& d) { d.labels = matrix(2, 4, 1); }},
      {"labels", [](Dataset& d) { d.labels = matrix(3, 4, 0.5F); }},
      {"labels", [](Dataset& d) { d.labels = MultiLabels(); }},
      {"train", [](Dataset& d) { d.train = Numbers{3}; }},
      {"validation", [](Dataset& d) { d.validation = Numbers{-1}; }},
      {"test",
       [](Dataset& d) {
         d.test = Numbers{2, 0, 2};
       }},
      {"validation", [](Dataset& d) { d.validation = Numbers{0}; }},
      {"test",
       [](Dataset& d) {
         d.test = Numbers{2, 1};
       }},
      {"graph_ids",
       [](Dataset& d) {
         d.graph_ids = std::vector<std::int32_t>{0, 1, 1};
       }},
      {"graph_ids",
       [](Dataset& d) {
         d.graph_ids = std::vector<std::int32_t>{0, 1};
       }},
      {"graph_ids",
       [](Dataset& d) {
         d.graph_ids = std::vector<std::int32_t>{0, 1, 2};
       }},
      {"graph_ids",
       [](Dataset& d) {
         d.graph_ids = std::vector<std::int32_t>{0, -1, 1};
       }},
      {"graph_ids",
       [](Dataset& d) {
         d.graph_labels = {};
         d.graph_ids = std::vector<std::int32_t>{0, 1, 3};
       }},
      {"graph_labels", [](Dataset& d) { d.graph_ids = {}; }},
      {"edge_attr", [](Dataset& d) { d.edge_features.matrix = matrix(1, 2, 1); }},
      {"edge_attr",
       [](Dataset& d) { d.edge_features.matrix = matrix(d.graph.num_edges(), 2, INFINITY); }},
      {"edge_attr",
       [](Dataset& d) {
         d.edge_features = {matrix(d.graph.num_edges(), 2, 1), Names({"one"})};
       }},
      {"edge_attr", [](Dataset& d) { d.edge_features.names = Names({"one"}); }},
      {"",
       [](Dataset& d) {
         d.graph = Graph(3, 3, std::vector<EdgeOffset>{0, 1, 1, 1}, std::vector<VertexId>{9});
       }},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << "case " << i << ", " << cases[i].part);
    Dataset dataset = complete_dataset();
    cases[i].spoil(dataset);
    try {
      dataset.validate();
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_data);
      if (*cases[i].part != '\0') {
        EXPECT_EQ(error.where(), cases[i].part);
      }
    }
  }
}

TEST(Dataset, NamesBothPartsThatShareAVertex) {
  Dataset dataset = complete_dataset();
  dataset.test = Numbers{2, 1};
  try {
    dataset.validate();
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "test: vertex 1 is in the part for validation, too; put every vertex into one "
                 "part at most, once");
  }
}

TEST(Dataset, EqualityLooksAtContentNotAtName) {
  const Dataset one = complete_dataset();
  Dataset same = complete_dataset();
  same.name = "other";
  same.edges_stored = 6;
  EXPECT_EQ(one, same);

  const std::vector<std::function<void(Dataset&)>> changes = {
      [](Dataset& d) { d.graph = Graph(); },
      [](Dataset& d) { d.features = matrix(3, 5, 0.25F); },
      [](Dataset& d) { d.features = matrix(5, 3, 0.5F); },
      [](Dataset& d) { d.features = DenseFeatures(); },
      [](Dataset& d) { d.features = {}; },
      [](Dataset& d) {
        d.labels = ClassLabels(Numbers{1, -1, 1});
      },
      [](Dataset& d) { d.labels = matrix(3, 1, 1); },
      [](Dataset& d) { d.train = {}; },
      [](Dataset& d) { d.validation = {}; },
      [](Dataset& d) { d.test = {}; },
      [](Dataset& d) { d.graph_ids = {}; },
      [](Dataset& d) { d.graph_labels = {}; },
      [](Dataset& d) { d.edge_features.matrix = matrix(d.graph.num_edges(), 1, 2); },
      [](Dataset& d) { d.edge_features.names = Names({"one"}); },
      [](Dataset& d) {
        d.extras["note"] = {"|u1", {0}, {}};
      },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Dataset other = complete_dataset();
    changes[i](other);
    EXPECT_NE(one, other) << "change " << i;
  }
}

TEST(Dataset, PrintsOneLine) {
  std::ostringstream out;
  out << complete_dataset();
  EXPECT_TRUE(out.str().starts_with("triangle: "));
  EXPECT_TRUE(out.str().ends_with(", 5 dense features, 2 classes, split 1 / 1 / 1, 2 graphs"))
      << out.str();
  EXPECT_EQ(out.str().find('\n'), std::string::npos);
}

}  // namespace
}  // namespace tessera
