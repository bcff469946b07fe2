// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/trained.hpp"
#include "support/training_data.hpp"
#include "tessera/graph/partition.hpp"
#include "tessera/train/bit_batches.hpp"
#include "tessera/train/predict.hpp"

/// Models of few bits over batches of parts.
namespace tessera::train {
namespace {

using test::learnable_vertices;
using test::small_model;
using testing::expect_error;

nn::ModelConfig with_bits(nn::ModelKind kind, std::vector<std::int64_t> bits) {
  nn::ModelConfig config = small_model(kind);
  config.bits = std::move(bits);
  return config;
}

bool same_numbers(const Matrix<float>& a, const Matrix<float>& b) {
  return std::equal(a.span().begin(), a.span().end(), b.span().begin(), b.span().end());
}

/// Batches of parts say what the graph without the edges between parts says.
TEST(PredictInBatches, SaysWhatTheCutGraphSays) {
  const Dataset drawn = learnable_vertices();
  // Those above a half, which is what sparse features keep.
  const auto& numbers = *std::get<DenseFeatures>(drawn.features);
  auto kept = std::make_shared<Matrix<float>>(numbers.rows(), numbers.cols());
  std::transform(numbers.span().begin(), numbers.span().end(), kept->data(),
                 [](float number) { return number <= 0.5f ? 0.0f : number; });
  Dataset dense = drawn;
  dense.features = DenseFeatures(kept);
  const auto parts = std::make_shared<const Partition>(
      partition(dense.graph, {.parts = 5, .method = "multilevel"}));
  for (const auto kind : {nn::ModelKind::gcn, nn::ModelKind::gin}) {
    for (const Dataset& dataset : {dense, test::with_sparse_features(dense)}) {
      const Checkpoint checkpoint = test::trained_checkpoint(dataset, with_bits(kind, {8}));
      for (const bool normalised : {false, true}) {
        Checkpoint model = checkpoint;
        model.normalisation = {};
        model.normalisation.kind = normalised ? Normalise::rows : Normalise::off;
        Dataset cut = dataset;
        cut.graph = within_parts(dataset.graph, *parts);
        cut.features = dense.features;
        PredictOptions options;
        options.calibrate = true;
        const Prediction whole = predict(model, cut, options);
        options.partition = parts;
        options.parts_per_batch = 2;
        const Prediction batched = predict(model, dataset, options);
        EXPECT_EQ(batched.batches, 3);
        EXPECT_FALSE(batched.memory.has_value());
        EXPECT_EQ(batched.classes.size(), whole.classes.size());
        if (kind == nn::ModelKind::gcn) {
          EXPECT_TRUE(same_numbers(batched.logits, whole.logits)) << normalised;
        } else {
          // The sum of a vertex's own codes is made elsewhere, and fp32 rounds it otherwise.
          double off = 0;
          double sum = 0;
          for (std::int64_t i = 0; i < whole.logits.size(); ++i) {
            off += std::abs(batched.logits.data()[i] - whole.logits.data()[i]);
            sum += std::abs(whole.logits.data()[i]);
          }
          EXPECT_LT(off, 0.01 * sum);
        }
        if (num_gpus() == 0) continue;
        options.placement.memory = &default_memory({DeviceKind::cuda, 0});
        const Prediction there = predict(model, dataset, options);
        EXPECT_TRUE(same_numbers(there.logits, batched.logits));
        EXPECT_GT(there.bytes_copied, 0);
      }
    }
  }
}

TEST(PredictInBatches, SaysWhatCannotBe) {
  const Dataset dataset = learnable_vertices();
  const Checkpoint few = test::trained_checkpoint(dataset, with_bits(nn::ModelKind::gcn, {4}));
  PredictOptions options;
  options.partition = std::make_shared<const Partition>(
      partition(dataset.graph, {.parts = 3, .method = "contiguous"}));
  const auto refuse = [&](const char* what) {
    expect_error(ErrorCode::unsupported, {what, "without parts"},
                 [&] { predict(few, dataset, options); });
  };
  options.integers = false;
  refuse("leave out --rounded");
  options.integers = true;
  options.embeddings = true;
  refuse("embeddings");
  options.embeddings = false;
  options.parts_per_batch = 0;
  expect_error(ErrorCode::invalid_argument, {"0 parts per batch"},
               [&] { predict(few, dataset, options); });
  options.parts_per_batch = 2;
  Partition other = *options.partition;
  other.assignment.pop_back();
  options.partition = std::make_shared<const Partition>(other);
  expect_error(ErrorCode::bad_data, {"assignments for"}, [&] { predict(few, dataset, options); });
}

}  // namespace
}  // namespace tessera::train
