// SPDX-License-Identifier: Apache-2.0
#include "tessera/reorder/permutation.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <sstream>

#include "support/expect_error.hpp"
#include "support/random_coo.hpp"

namespace tessera {
namespace {

using testing::expect_error;

Permutation permutation_of(std::vector<VertexId> numbers) {
  return Permutation(SharedArray<VertexId>(std::move(numbers)));
}

TEST(Permutation, AcceptsEachNumberOnce) {
  EXPECT_NO_THROW(permutation_of({}));
  EXPECT_NO_THROW(permutation_of({2, 0, 1}));
  expect_error(ErrorCode::bad_data, {"position 2", "vertex 0 occurs twice"}, [] {
    permutation_of({0, 1, 0});
  });
  expect_error(ErrorCode::bad_data, {"position 1", "vertex 3", "[0, 3)"}, [] {
    permutation_of({0, 3, 1});
  });
  expect_error(ErrorCode::bad_data, {"vertex -1"}, [] { permutation_of({-1}); });
  expect_error(ErrorCode::invalid_argument, {"negative"}, [] { Permutation::identity(-1); });
  expect_error(ErrorCode::invalid_argument, {"negative"}, [] { Permutation::random(-1, 1); });
}

TEST(Permutation, IdentityInverseAndThen) {
  EXPECT_TRUE(Permutation::identity(17).is_identity());
  EXPECT_TRUE(Permutation().is_identity());
  const Permutation turn = permutation_of({2, 0, 1});
  EXPECT_FALSE(turn.is_identity());
  EXPECT_EQ(turn.inverse(), permutation_of({1, 2, 0}));
  EXPECT_TRUE(turn.then(turn.inverse()).is_identity());
  // New vertex 0 is vertex 1 after the turn, which was vertex 0 before it.
  EXPECT_EQ(turn.then(permutation_of({1, 0, 2})), permutation_of({0, 2, 1}));
  EXPECT_THROW(turn.then(Permutation::identity(2)), Error);
}

TEST(Permutation, RandomIsSeededAndReachesEveryOrder) {
  EXPECT_EQ(Permutation::random(1000, 7), Permutation::random(1000, 7));
  EXPECT_NE(Permutation::random(1000, 7), Permutation::random(1000, 8));
  EXPECT_EQ(Permutation::random(0, 1).size(), 0);
  EXPECT_TRUE(Permutation::random(1, 1).is_identity());
  std::map<std::vector<VertexId>, int> seen;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    const Permutation drawn = Permutation::random(3, seed);
    ++seen[{drawn.new_to_old().begin(), drawn.new_to_old().end()}];
  }
  ASSERT_EQ(seen.size(), 6u);
  for (const auto& [order, times] : seen) EXPECT_NEAR(times, 1000, 150);
}

TEST(Permutation, PrintsItsBeginning) {
  std::ostringstream out;
  out << permutation_of({2, 0, 1}) << '|' << Permutation::identity(20);
  EXPECT_EQ(out.str(),
            "permutation of 3 vertices: 2 0 1|permutation of 20 vertices: 0 1 2 3 4 5 6 7 …");
}

TEST(Permuted, GraphMovesRowsAndColumns) {
  const Graph graph = from_coo(3, 3, std::vector<VertexId>{0, 2}, std::vector<VertexId>{1, 0},
                               std::vector<float>{5, 7}, {.keep_edge_ids = true});
  const Graph moved = permuted(graph, permutation_of({2, 0, 1}));
  moved.validate();
  EXPECT_EQ(testing::entries_of(moved),
            (std::map<std::pair<VertexId, VertexId>, float>{{{0, 1}, 7}, {{1, 2}, 5}}));
  EXPECT_EQ(moved.edge_ids(), SharedArray<EdgeOffset>(std::vector<EdgeOffset>{1, 0}));
  EXPECT_THROW(permuted(graph, Permutation::identity(2)), Error);
  EXPECT_THROW(permuted(from_coo(3, 2, {}, {}), Permutation::identity(3)), Error);
}

ExtraArray extra_bytes(std::vector<std::int64_t> shape, const std::string& text) {
  Buffer<std::byte> bytes(static_cast<std::int64_t>(text.size()));
  std::memcpy(bytes.data(), text.data(), text.size());
  return {"|u1", std::move(shape), std::move(bytes)};
}

std::string text_of(const ExtraArray& extra) {
  return {reinterpret_cast<const char*>(extra.bytes.data()),
          static_cast<std::size_t>(extra.bytes.size())};
}

Dataset small_dataset() {
  Dataset dataset;
  dataset.name = "small";
  dataset.graph = from_coo(3, 3, std::vector<VertexId>{0, 2}, std::vector<VertexId>{1, 2});
  Matrix<float> features(3, 2);
  for (std::int64_t i = 0; i < 6; ++i) features.data()[i] = static_cast<float>(i);
  dataset.features = std::make_shared<const Matrix<float>>(std::move(features));
  dataset.labels = ClassLabels(std::vector<std::int64_t>{10, -1, 12});
  dataset.train = std::vector<std::int64_t>{2, 0};
  dataset.test = std::vector<std::int64_t>{1};
  dataset.graph_ids = std::vector<std::int32_t>{0, 0, 1};
  dataset.extras["rows"] = extra_bytes({3, 2}, "aabbcc");
  dataset.extras["masks"] = extra_bytes({2, 3}, "xyzXYZ");
  dataset.extras["square"] = extra_bytes({3, 3}, "123456789");
  dataset.extras["other"] = extra_bytes({4}, "keep");
  return dataset;
}

TEST(Permuted, DatasetMovesEverythingThatBelongsToVertices) {
  const Dataset dataset = small_dataset();
  const Permutation turn = permutation_of({2, 0, 1});
  const Dataset moved = permuted(dataset, turn);
  moved.validate();
  EXPECT_EQ(moved.name, "small");
  EXPECT_EQ(moved.graph, permuted(dataset.graph, turn));
  const Matrix<float>& features = *std::get<DenseFeatures>(moved.features);
  EXPECT_EQ(std::vector<float>(features.data(), features.data() + 6),
            (std::vector<float>{4, 5, 0, 1, 2, 3}));
  EXPECT_EQ(std::get<ClassLabels>(moved.labels),
            ClassLabels(std::vector<std::int64_t>{12, 10, -1}));
  EXPECT_EQ(moved.train, SharedArray<std::int64_t>(std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(moved.test, SharedArray<std::int64_t>(std::vector<std::int64_t>{2}));
  EXPECT_TRUE(moved.validation.empty());
  EXPECT_EQ(moved.graph_ids, SharedArray<std::int32_t>(std::vector<std::int32_t>{1, 0, 0}));
  EXPECT_EQ(text_of(moved.extras.at("rows")), "ccaabb");
  EXPECT_EQ(text_of(moved.extras.at("masks")), "zxyZXY");
  EXPECT_EQ(text_of(moved.extras.at("square")), "789123456");
  EXPECT_EQ(text_of(moved.extras.at("other")), "keep");
  EXPECT_EQ(permuted(moved, turn.inverse()), dataset);
}

TEST(Permuted, DatasetMovesSparseFeaturesAndManyLabels) {
  Dataset dataset;
  dataset.graph = testing::path_graph(17);
  dataset.features = testing::random_graph(17, 5, 40, 2);
  dataset.labels = std::make_shared<const Matrix<float>>(Matrix<float>(17, 3, 1.0f));
  const Permutation shuffle = Permutation::random(17, 4);
  const Dataset moved = permuted(dataset, shuffle);
  moved.validate();
  const Graph& before = std::get<SparseFeatures>(dataset.features);
  const Graph& after = std::get<SparseFeatures>(moved.features);
  ASSERT_EQ(after.num_cols(), 5);
  const auto old_entries = testing::entries_of(before);
  for (const auto& [place, value] : testing::entries_of(after)) {
    EXPECT_EQ(old_entries.at({shuffle.new_to_old()[place.first], place.second}), value);
  }
  EXPECT_EQ(permuted(moved, shuffle.inverse()), dataset);
}

TEST(Permuted, DatasetWithoutVertices) { EXPECT_EQ(permuted(Dataset(), Permutation()), Dataset()); }

}  // namespace
}  // namespace tessera
