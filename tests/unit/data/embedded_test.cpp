// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/embedded.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "support/generated.hpp"
#include "tessera/core/error.hpp"
#include "tessera/io/npz.hpp"

namespace tessera {
namespace {

using namespace testing;

TEST(Embedded, EachNameOfTheCatalogueCanBeBuilt) {
  const auto entries = embedded_datasets();
  ASSERT_EQ(entries.size(), 2u);
  for (const CatalogueEntry& entry : entries) {
    const Dataset dataset = embedded_dataset(entry.name);
    EXPECT_EQ(dataset.name, entry.name);
    EXPECT_FALSE(entry.summary.empty());
    EXPECT_NO_THROW(dataset.validate());
  }
}

TEST(Embedded, UnknownNameListsWhatThereIs) {
  try {
    embedded_dataset("cora");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(error.fix().find("karate, citation"), std::string::npos);
  }
}

TEST(Embedded, KarateIsZacharysClub) {
  const Dataset karate = embedded_dataset("karate");
  expect_simple(karate.graph, 34, true);
  EXPECT_EQ(karate.graph.num_edges(), 156);
  EXPECT_EQ(karate.num_classes(), 4);
  EXPECT_EQ(karate.graph.degree(0), 16);
  EXPECT_EQ(karate.graph.degree(33), 17);
  EXPECT_EQ(karate.graph.degree(11), 1);
}

TEST(Embedded, KarateEqualsThePublishedFile) {
  const char* const folder = std::getenv("TESSERA_DATA");
  if (folder == nullptr) {
    GTEST_SKIP() << "TESSERA_DATA is not set: only the sizes of the club were checked";
  }
  EXPECT_EQ(embedded_dataset("karate"), io::read_npz(std::string(folder) + "/karate/karate.npz"));
}

TEST(Embedded, CitationHasCorasSizesAndSplit) {
  const Dataset citation = embedded_dataset("citation");
  expect_simple(citation.graph, 2708, true);
  EXPECT_EQ(citation.graph.num_edges(), 10556);
  EXPECT_EQ(citation.num_classes(), 7);
  EXPECT_EQ(citation.num_features(), 1433);
  EXPECT_EQ(citation.train.size(), 140);
  EXPECT_EQ(citation.validation.size(), 500);
  EXPECT_EQ(citation.test.size(), 1000);

  const auto& labels = std::get<ClassLabels>(citation.labels);
  std::map<std::int64_t, int> trained;
  for (const std::int64_t vertex : citation.train) ++trained[labels[vertex]];
  EXPECT_EQ(trained.size(), 7u);
  for (const auto& [topic, count] : trained) EXPECT_EQ(count, 20) << topic;

  const auto& words = std::get<SparseFeatures>(citation.features);
  EXPECT_NEAR(static_cast<double>(words.num_edges()) / 2708, 18, 1);
  for (const float value : words.values()) ASSERT_EQ(value, 1.0F);
  for (VertexId v = 0; v < 2708; ++v) {
    ASSERT_GE(citation.graph.degree(v), 1);
    ASSERT_GE(words.degree(v), 1);
  }
  EXPECT_EQ(citation, embedded_dataset("citation"));
}

// Links and words must both speak of the class, or there is nothing to learn.
TEST(Embedded, CitationLinksAndWordsFollowTheTopics) {
  const Dataset citation = embedded_dataset("citation");
  const auto& labels = std::get<ClassLabels>(citation.labels);
  EdgeOffset same = 0;
  for (VertexId v = 0; v < 2708; ++v) {
    for (const VertexId u : citation.graph.neighbours(v)) same += labels[v] == labels[u] ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(same) / 10556, 0.65, 0.03);
}

}  // namespace
}  // namespace tessera
