// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/training_data.hpp"
#include "tessera/data/embedded.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/predict.hpp"

/// Training in bf16 and tf32.
namespace tessera::train {
namespace {

using test::learnable_vertices;
using test::short_training;
using test::small_model;

constexpr Device gpu{DeviceKind::cuda, 0};

TrainOptions in(Precision precision, std::int64_t epochs, Device device = {}) {
  TrainOptions options = short_training(epochs);
  options.placement.precision = precision;
  options.placement.memory = &default_memory(device);
  return options;
}

void expect_close_losses(const TrainReport& a, const TrainReport& b, double tolerance) {
  const auto &one = a.runs[0].curve, &other = b.runs[0].curve;
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_NEAR(one[i].loss, other[i].loss, tolerance * (1 + std::abs(one[i].loss)))
        << "epoch " << i + 1;
  }
}

std::vector<nn::ModelKind> all_kinds() {
  std::vector<nn::ModelKind> kinds;
  for (const CatalogueEntry& entry : nn::model_kinds()) {
    kinds.push_back(nn::parse_model_kind(entry.name));
  }
  return kinds;
}

std::string kind_name(const ::testing::TestParamInfo<nn::ModelKind>& info) {
  return nn::to_string(info.param);
}

class Precisions : public ::testing::TestWithParam<nn::ModelKind> {};

TEST_P(Precisions, bf16_follows_fp32) {
  for (const Dataset& data :
       {learnable_vertices(), test::with_sparse_features(learnable_vertices())}) {
    const nn::ModelConfig model = small_model(GetParam());
    expect_close_losses(fit(data, model, in(Precision::fp32, 15)),
                        fit(data, model, in(Precision::bf16, 15)), 0.03);
  }
}

TEST_P(Precisions, tf32_is_fp32_on_the_cpu_and_says_so) {
  const Dataset data = learnable_vertices();
  const nn::ModelConfig model = small_model(GetParam());
  const TrainReport rounded = fit(data, model, in(Precision::tf32, 5));
  expect_close_losses(fit(data, model, in(Precision::fp32, 5)), rounded, 0);
  EXPECT_NE(std::find(rounded.notes.begin(), rounded.notes.end(), "a CPU computes tf32 as fp32"),
            rounded.notes.end());
}

/// Without dropout, so that runs differ by rounding alone.
TEST_P(Precisions, bf16_learns_the_embedded_data_as_well) {
  const Dataset data = embedded_dataset("citation");
  nn::ModelConfig model = nn::paper_defaults(GetParam());
  model.dropout = model.input_dropout = model.attention_dropout = 0;
  TrainOptions options = paper_options(GetParam());
  options.epochs = 40;
  options.runs = 3;
  const double expected = fit(data, model, options).test.mean;
  options.placement.precision = Precision::bf16;
  EXPECT_NEAR(fit(data, model, options).test.mean, expected, 0.01);
}

/// What one precision and device left, another goes on with.
TEST_P(Precisions, checkpoints_move_between_precisions_and_devices) {
  const test::TemporaryFolder folder;
  const Dataset data = learnable_vertices();
  const nn::ModelConfig model = small_model(GetParam());
  TrainOptions options = in(Precision::bf16, 4);
  options.checkpoint = {folder / "model", 10, true};
  fit(data, model, options);
  const Checkpoint first = load_checkpoint(options.checkpoint.path);
  for (const StoredTensor& tensor : first.weights) EXPECT_EQ(tensor.array.type, "<f4");
  for (const StoredTensor& tensor : first.runs[0].moments) EXPECT_EQ(tensor.array.type, "<f4");
  const Prediction expected = predict(first, data);
  std::vector<std::pair<Device, Precision>> others = {{{}, Precision::bf16}, {{}, Precision::tf32}};
  if (num_gpus() > 0) {
    for (const Precision p : {Precision::fp32, Precision::tf32, Precision::bf16}) {
      others.push_back({gpu, p});
    }
  }
  std::int64_t epochs = 4;
  for (const auto& [device, precision] : others) {
    SCOPED_TRACE(to_string(device) + std::string(" ") + to_string(precision));
    PredictOptions predicting;
    predicting.placement = in(precision, 1, device).placement;
    const Prediction logits = predict(first, data, predicting);
    ASSERT_EQ(logits.logits.size(), expected.logits.size());
    double largest = 1;
    for (const float logit : expected.logits.span()) {
      largest = std::max(largest, std::abs(static_cast<double>(logit)));
    }
    for (std::int64_t i = 0; i < logits.logits.size(); ++i) {
      ASSERT_NEAR(logits.logits.data()[i], expected.logits.data()[i], 0.04 * largest) << i;
    }
    TrainOptions longer = in(precision, ++epochs, device);
    longer.checkpoint = options.checkpoint;
    const TrainReport report = fit(data, model, longer);
    EXPECT_EQ(report.runs[0].epochs, epochs);
    EXPECT_EQ(report.epochs, 1) << "it did not go on from the checkpoint";
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Precisions, ::testing::ValuesIn(all_kinds()), kind_name);

class PrecisionsOnGpu : public ::testing::TestWithParam<nn::ModelKind> {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  }
};

TEST_P(PrecisionsOnGpu, follow_the_cpu) {
  for (const Dataset& data :
       {learnable_vertices(), test::with_sparse_features(learnable_vertices())}) {
    const nn::ModelConfig model = small_model(GetParam());
    const TrainReport cpu = fit(data, model, in(Precision::fp32, 15));
    expect_close_losses(cpu, fit(data, model, in(Precision::bf16, 15, gpu)), 0.03);
    expect_close_losses(cpu, fit(data, model, in(Precision::tf32, 15, gpu)), 0.01);
  }
}

TEST_P(PrecisionsOnGpu, replay_what_they_would_have_done) {
  const Dataset data = learnable_vertices();
  const nn::ModelConfig model = small_model(GetParam());
  for (const Precision precision : {Precision::bf16, Precision::tf32}) {
    TrainOptions options = in(precision, 6, gpu);
    const TrainReport replayed = fit(data, model, options);
    options.record_steps = false;
    expect_close_losses(fit(data, model, options), replayed, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, PrecisionsOnGpu, ::testing::ValuesIn(all_kinds()), kind_name);

TEST(PrecisionErrors, fp16_is_refused) {
  testing::expect_error(ErrorCode::invalid_argument, {"fp16", "bf16"}, [] {
    fit(learnable_vertices(), small_model(nn::ModelKind::gcn), in(Precision::fp16, 1));
  });
}

}  // namespace
}  // namespace tessera::train
