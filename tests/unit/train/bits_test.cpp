// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/sections.hpp"
#include "support/training_data.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/predict.hpp"

/// Models of few bits.
namespace tessera::train {
namespace {

using test::learnable_vertices;
using test::short_training;
using test::small_model;
using test::TemporaryFolder;
using testing::expect_error;

Checkpoint trained(const nn::ModelConfig& config, TrainReport* report = nullptr) {
  const TemporaryFolder folder;
  TrainOptions options = short_training(40);
  options.checkpoint.path = folder / "model";
  const TrainReport result = fit(learnable_vertices(), config, options);
  if (report != nullptr) *report = result;
  return load_checkpoint(options.checkpoint.path);
}

nn::ModelConfig with_bits(nn::ModelKind kind, std::vector<std::int64_t> bits) {
  nn::ModelConfig config = small_model(kind);
  config.bits = std::move(bits);
  return config;
}

double accuracy(const Checkpoint& checkpoint, const PredictOptions& options = {}) {
  const Dataset dataset = learnable_vertices();
  const Prediction prediction = predict(checkpoint, dataset, options);
  const ClassLabels labels = std::get<ClassLabels>(dataset.labels);
  double right = 0;
  for (std::int64_t v = 0; v < prediction.logits.rows(); ++v) {
    right += prediction.classes[static_cast<std::size_t>(v)] == labels[v] ? 1 : 0;
  }
  return right / static_cast<double>(prediction.logits.rows());
}

TEST(Bits, OfAModelAreReadAndWritten) {
  EXPECT_EQ(nn::parse_bits("4"), std::vector<std::int64_t>{4});
  EXPECT_EQ(nn::parse_bits("8,4,8"), (std::vector<std::int64_t>{8, 4, 8}));
  EXPECT_EQ(nn::bits_text({8, 4, 8}), "8,4,8");
  for (const char* wrong : {"", "four", "8,", ",8", "8;4", "4.5", "99999999999999999999"}) {
    expect_error(ErrorCode::invalid_argument, {"are no bits"}, [&] { nn::parse_bits(wrong); });
  }
}

TEST(Bits, ThatMakeNoSenseAreRefused) {
  const auto invalid = ErrorCode::invalid_argument;
  expect_error(invalid, {"bits is 0", "1 to 16"},
               [] { validate(with_bits(nn::ModelKind::gcn, {0})); });
  expect_error(invalid, {"bits is 17"}, [] { validate(with_bits(nn::ModelKind::gin, {8, 17})); });
  expect_error(invalid, {"bits of 3 layers for 2"}, [] {
    validate(with_bits(nn::ModelKind::gcn, {8, 4, 8}));
  });
  expect_error(invalid, {"gat with 8 bits", "gcn or gin"},
               [] { validate(with_bits(nn::ModelKind::gat, {8})); });
}

TEST(Bits, OfSixteenChangeLittleAndOfOneMuch) {
  for (const auto kind : {nn::ModelKind::gcn, nn::ModelKind::gin}) {
    const Checkpoint checkpoint = trained(small_model(kind));
    const Dataset dataset = learnable_vertices();
    const Prediction full = predict(checkpoint, dataset);
    PredictOptions options;
    double previous = 0;
    for (const std::int64_t bits : {16, 8, 1}) {
      options.bits = {bits};
      const Prediction rounded = predict(checkpoint, dataset, options);
      double worst = 0;
      double largest = 0;
      for (std::int64_t i = 0; i < full.logits.size(); ++i) {
        worst = std::max(worst, std::abs(static_cast<double>(full.logits.data()[i]) -
                                         static_cast<double>(rounded.logits.data()[i])));
        largest = std::max(largest, std::abs(static_cast<double>(full.logits.data()[i])));
      }
      EXPECT_GT(worst, previous) << bits;
      if (bits == 16) {
        EXPECT_LT(worst, 2e-2 * largest);
      }
      previous = worst;
    }
  }
}

TEST(Bits, AreLearntWith) {
  for (const auto kind : {nn::ModelKind::gcn, nn::ModelKind::gin}) {
    TrainReport report;
    const Checkpoint checkpoint = trained(with_bits(kind, {4}), &report);
    EXPECT_EQ(checkpoint.model.bits, std::vector<std::int64_t>{4});
    EXPECT_GT(accuracy(checkpoint), 0.8) << nn::to_string(kind);
    // The checkpoint predicts as it was trained.
    EXPECT_NE(nn::describe(checkpoint.model).find("4 bits"), std::string::npos);
  }
}

TEST(Bits, OfEachLayerShapeItsWeights) {
  const nn::ModelConfig config = with_bits(nn::ModelKind::gcn, {8, 2});
  EXPECT_EQ(nn::layer_bits(config, 0), 8);
  EXPECT_EQ(nn::layer_bits(config, 1), 2);
  EXPECT_EQ(nn::layer_bits(small_model(nn::ModelKind::gcn), 0), 0);
  nn::Model model(config, 10, 3, 1);
  EXPECT_NE(model.describe().find("8 bits"), std::string::npos);
  EXPECT_NE(model.describe().find("2 bits"), std::string::npos);
}

TEST(Bits, MakeWeightsSmaller) {
  const Checkpoint checkpoint = trained(small_model(nn::ModelKind::gcn));
  const std::int64_t full = weight_bytes(checkpoint, {});
  const std::int64_t eight = weight_bytes(checkpoint, {8});
  const std::int64_t four = weight_bytes(checkpoint, {4});
  std::int64_t numbers = 0;
  for (const StoredTensor& tensor : checkpoint.weights) numbers += tensor.array.bytes.size() / 4;
  EXPECT_EQ(full, numbers * 4);
  EXPECT_LT(eight, full);
  EXPECT_LT(four, eight);
  expect_error(ErrorCode::invalid_argument, {"bits of 3 layers"}, [&] {
    weight_bytes(checkpoint, {1, 2, 3});
  });
}

TEST(Bits, OfAHostileCheckpointAreRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "model";
  TrainOptions options = short_training(3);
  options.checkpoint.path = path;
  fit(learnable_vertices(), with_bits(nn::ModelKind::gcn, {8}), options);
  const auto whole = test::read_sections(path);
  for (const char* value : {"0", "17", "8,4,8", "", "eight", "8,", "-3"}) {
    auto arrays = whole;
    test::set_line(arrays, "settings", "model.bits", value);
    io::write_sections(path, arrays);
    expect_error(ErrorCode::bad_data, {path.c_str()}, [&] { load_checkpoint(path); });
  }
}

TEST(Bits, AreAllInCheckpointsFromBeforeThereWasAChoice) {
  const TemporaryFolder folder;
  const std::string path = folder / "model";
  TrainOptions options = short_training(3);
  options.checkpoint.path = path;
  fit(learnable_vertices(), small_model(nn::ModelKind::gcn), options);
  auto arrays = test::read_sections(path);
  ExtraArray& settings = test::find_section(arrays, "settings");
  std::string text = test::text_of(settings);
  const std::string line = "model.bits = all\n";
  ASSERT_NE(text.find(line), std::string::npos);
  text.erase(text.find(line), line.size());
  settings = io::stored_text(text);
  io::write_sections(path, arrays);
  EXPECT_TRUE(load_checkpoint(path).model.bits.empty());
  options.checkpoint.resume = true;
  options.epochs = 4;
  EXPECT_NO_THROW(fit(learnable_vertices(), small_model(nn::ModelKind::gcn), options));
}

}  // namespace
}  // namespace tessera::train
