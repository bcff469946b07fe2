// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "data/description.hpp"
#include "support/generated.hpp"
#include "tessera/core/error.hpp"
#include "tessera/data/embedded.hpp"

namespace tessera {
namespace {

using namespace testing;

std::string error_of(const std::string& description) {
  try {
    generate_dataset(description);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
    return error.what();
  }
  ADD_FAILURE() << description << " was accepted";
  return "";
}

TEST(Generators, EveryKindBuildsWithItsDefaults) {
  const auto kinds = generator_kinds();
  EXPECT_EQ(kinds.size(), 6u);
  for (const CatalogueEntry& kind : kinds) {
    SCOPED_TRACE(kind.name);
    const Dataset dataset = generate_dataset(kind.name);
    EXPECT_NO_THROW(dataset.validate());
    EXPECT_GT(dataset.graph.num_edges(), 0);
    EXPECT_EQ(dataset.name, kind.name);
    EXPECT_NE(kind.summary.find("seed=1"), std::string::npos) << kind.summary;
  }
}

TEST(Generators, ParametersReachTheModel) {
  const std::string text =
      "rmat?scale=9&edges=2e3&a=0.4&b=0.3&c=0.2&scramble=0&symmetric=false&seed=7";
  const Dataset dataset = generate_dataset(text);
  EXPECT_EQ(dataset.name, text);
  EXPECT_EQ(dataset.graph,
            generate::build(generate::Rmat{9, 2000, 0.4, 0.3, 0.2, false, false, 7}));
  EXPECT_EQ(generate_dataset("bipartite?targets=10&sources=20&edges=50&seed=3").graph,
            generate::build(generate::Bipartite{10, 20, 50, 3}));
  EXPECT_EQ(generate_dataset("chung_lu?vertices=500&edges=3000&exponent=3&max_degree=50").graph,
            generate::build(generate::ChungLu{500, 3000, 3, 50}));
  EXPECT_EQ(generate_dataset("erdos_renyi?vertices=0&edges=0").graph.num_rows(), 0);
}

TEST(Generators, SbmCarriesLabelsFeaturesAndSplit) {
  const Dataset plain = generate_dataset("sbm?vertices=101&communities=4&mean_degree=6");
  EXPECT_EQ(plain.num_classes(), 4);
  EXPECT_EQ(plain.num_features(), 0);
  EXPECT_TRUE(plain.train.empty());

  const std::string text = "sbm?vertices=101&communities=4&mean_degree=6&features=64&signal=20";
  const Dataset dataset = generate_dataset(text);
  dataset.validate();
  EXPECT_EQ(dataset.graph, plain.graph);
  EXPECT_EQ(dataset.num_features(), 64);
  EXPECT_EQ(dataset.train.size(), 11);
  EXPECT_EQ(dataset.validation.size(), 21);
  EXPECT_EQ(dataset.test.size(), 69);
  std::set<std::int64_t> all;
  for (const auto* part : {&dataset.train, &dataset.validation, &dataset.test}) {
    all.insert(part->begin(), part->end());
  }
  EXPECT_EQ(all.size(), 101u);
  {
    const ThreadScope scope(3);
    EXPECT_EQ(dataset, generate_dataset(text));
  }

  // With so strong a signal members of one class lie near each other, others far away.
  const auto& x = *std::get<DenseFeatures>(dataset.features);
  const auto distance = [&](std::int64_t a, std::int64_t b) {
    double sum = 0;
    for (std::int64_t j = 0; j < 64; ++j) sum += std::pow(x(a, j) - x(b, j), 2);
    return std::sqrt(sum);
  };
  EXPECT_NEAR(distance(0, 1), std::sqrt(2 * 64), 3);
  EXPECT_NEAR(distance(0, 100), std::sqrt(2 * 64 + 2 * 400), 9);
}

TEST(Generators, MoleculesCarryGraphIdsAndRingLabels) {
  const Dataset dataset = generate_dataset("molecules?graphs=500");
  dataset.validate();
  EXPECT_EQ(dataset.num_graphs(), 500);
  std::vector<std::int64_t> surplus(500);  // edges - vertices
  for (VertexId v = 0; v < dataset.graph.num_rows(); ++v) {
    surplus[static_cast<std::size_t>(dataset.graph_ids[v])] += dataset.graph.degree(v) - 2;
  }
  std::int64_t many = 0;
  for (std::int64_t g = 0; g < 500; ++g) {
    ASSERT_EQ(dataset.graph_labels[g], surplus[static_cast<std::size_t>(g)] / 2 + 1 > 2 ? 1 : 0);
    many += dataset.graph_labels[g];
  }
  EXPECT_GT(many, 100);
  EXPECT_LT(many, 400);
}

TEST(Generators, ErrorsSayWhatThereIs) {
  EXPECT_NE(error_of("tree").find("there are erdos_renyi, rmat, sbm"), std::string::npos);
  EXPECT_NE(error_of("rmat?size=3").find("scale=14 (2^scale vertices)"), std::string::npos);
  EXPECT_NE(error_of("rmat?scale=ten").find("rmat?scale: cannot read 'ten'"), std::string::npos);
  EXPECT_NE(error_of("rmat?scale=9&scale=10").find("given twice"), std::string::npos);
}

TEST(Generators, RejectMalformedText) {
  for (const char* text :
       {"", "?scale=3", "rmat?scale", "rmat?=3", "rmat?scale=", "rmat?scale=1.5", "rmat?scale=1e99",
        "rmat?edges=1e300", "rmat?scale=3x", "rmat?a=nan", "rmat?a=inf", "rmat?scramble=yes",
        "rmat?seed=-1", "rmat?scale=31", "rmat&scale=3", "rmat?scale=3&&edges=4", "sbm?features=-1",
        "sbm?vertices=99999999999"}) {
    SCOPED_TRACE(text);
    error_of(text);
  }
}

TEST(Description, NumbersMayBeWrittenInSeveralWays) {
  std::int64_t big = 0;
  for (const char* text : {"2000000", "2e6", "2.0e6", "20e5"}) {
    data::read_value(text, "", big);
    EXPECT_EQ(big, 2000000) << text;
  }
  data::read_value("9223372036854775807", "", big);
  EXPECT_EQ(big, std::numeric_limits<std::int64_t>::max());
  std::uint64_t seed = 0;
  data::read_value("18446744073709551615", "", seed);
  EXPECT_EQ(seed, std::numeric_limits<std::uint64_t>::max());
  bool truth = false;
  for (const char* text : {"true", "1"}) {
    truth = false;
    data::read_value(text, "", truth);
    EXPECT_TRUE(truth);
  }
}

TEST(Twins, TheSmallOnesHaveTheirSizes) {
  EXPECT_EQ(twin("cora").graph.num_edges(), 10800);
  EXPECT_EQ(twin("pubmed").graph.num_edges(), 88700);
  const Dataset amazon = twin("amazon");
  EXPECT_EQ(amazon.graph.num_rows(), 410236);
  EXPECT_NEAR(static_cast<double>(amazon.graph.num_edges()), 3.938e6, 1e3);
  const Dataset molecules = twin("molecules");
  EXPECT_EQ(molecules.num_graphs(), 68585);
  EXPECT_NEAR(static_cast<double>(molecules.graph.num_rows()), 1.71e6, 1e4);
  EXPECT_EQ(twin("rmat17").graph.num_edges(), 3730000);
}

/// The drawn edges do not depend on the number of threads, so neither does how many are left.
TEST(Twins, DrawTheSameGraphForAnyNumberOfThreads) {
  const auto with = [](int threads) {
    const testing::ThreadScope scope(threads);
    return twin("rmat17").graph;
  };
  EXPECT_EQ(with(1), with(3));
}

TEST(Twins, AreListedWithTheirShuffledTwin) {
  const auto entries = twins();
  for (const char* name : {"cora", "pubmed", "molecules", "amazon", "rmat17", "proteins", "reddit",
                           "products", "dbpedia", "reddit-shuffled", "dbpedia-shuffled"}) {
    EXPECT_TRUE(std::any_of(entries.begin(), entries.end(), [&](const CatalogueEntry& entry) {
      return entry.name == name;
    })) << name;
  }
  for (const char* name : {"", "reddit2", "-shuffled", "reddit-shuffled-shuffled"}) {
    EXPECT_THROW(twin(name), Error) << name;
  }
}

TEST(Twins, ShuffledIsTheSameGraphUnderOtherIds) {
  const Dataset plain = twin("pubmed");
  const Dataset shuffled = twin("pubmed-shuffled");
  EXPECT_EQ(shuffled.name, "pubmed-shuffled");
  expect_simple(shuffled.graph, plain.graph.num_rows(), true);
  EXPECT_EQ(shuffled.graph.num_edges(), plain.graph.num_edges());
  EXPECT_NE(shuffled.graph, plain.graph);
  const auto degrees = [](const Graph& graph) {
    std::multiset<EdgeOffset> all;
    for (VertexId v = 0; v < graph.num_rows(); ++v) all.insert(graph.degree(v));
    return all;
  };
  EXPECT_EQ(degrees(shuffled.graph), degrees(plain.graph));
}

TEST(Twins, ShufflingMovesLabelsAndGraphIdsWithTheirVertices) {
  const Dataset amazon = twin("amazon-shuffled");
  amazon.validate();
  const auto& labels = std::get<ClassLabels>(amazon.labels);
  EdgeOffset inside = 0;
  for (VertexId v = 0; v < amazon.graph.num_rows(); ++v) {
    for (const VertexId u : amazon.graph.neighbours(v)) inside += labels[v] == labels[u] ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(inside) / static_cast<double>(amazon.graph.num_edges()), 0.8,
              1e-3);
  const Dataset molecules = twin("molecules-shuffled");
  for (VertexId v = 0; v < molecules.graph.num_rows(); ++v) {
    for (const VertexId u : molecules.graph.neighbours(v)) {
      ASSERT_EQ(molecules.graph_ids[v], molecules.graph_ids[u]);
    }
  }
}

}  // namespace
}  // namespace tessera
