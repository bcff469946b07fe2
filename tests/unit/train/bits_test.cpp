// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/sections.hpp"
#include "support/trained.hpp"
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

/// The same with features that reach three times as far.
Dataset stretched(const Dataset& dataset) {
  Dataset far = dataset;
  const Matrix<float>& from = *std::get<DenseFeatures>(dataset.features);
  auto features = std::make_shared<Matrix<float>>(from.rows(), from.cols());
  for (std::int64_t i = 0; i < from.size(); ++i) features->data()[i] = 3 * from.data()[i];
  far.features = DenseFeatures(std::move(features));
  return far;
}

std::vector<std::string> paths_of(const std::vector<StoredTensor>& tensors) {
  std::vector<std::string> paths;
  for (const StoredTensor& tensor : tensors) paths.push_back(tensor.path);
  return paths;
}

bool same_numbers(const Matrix<float>& a, const Matrix<float>& b) {
  return std::equal(a.span().begin(), a.span().end(), b.span().begin(), b.span().end());
}

TEST(RangesOfBits, AreKeptAndUsed) {
  for (const auto kind : {nn::ModelKind::gcn, nn::ModelKind::gin}) {
    SCOPED_TRACE(nn::to_string(kind));
    const Checkpoint checkpoint = trained(with_bits(kind, {4}));
    ASSERT_FALSE(checkpoint.ranges.empty());
    EXPECT_EQ(checkpoint.ranges.front().path, "features");
    const Dataset dataset = learnable_vertices();
    for (const bool integers : {true, false}) {
      PredictOptions options;
      options.integers = integers;
      // On the data of the training both ranges are the same, but for how devices round.
      const Prediction with_kept = predict(checkpoint, dataset, options);
      EXPECT_EQ(paths_of(with_kept.ranges), paths_of(checkpoint.ranges));
      for (std::size_t i = 0; i < checkpoint.ranges.size(); ++i) {
        EXPECT_EQ(with_kept.ranges[i].array, checkpoint.ranges[i].array);
      }
      // Features that reach further are cut off, unless ranges are found anew.
      const Prediction cut = predict(checkpoint, stretched(dataset), options);
      options.calibrate = true;
      const Prediction found = predict(checkpoint, stretched(dataset), options);
      EXPECT_FALSE(same_numbers(cut.logits, found.logits));
      EXPECT_NE(found.ranges.front().array, checkpoint.ranges.front().array);
    }
  }
}

TEST(RangesOfBits, AreFoundAnewForOtherBits) {
  const Checkpoint checkpoint = trained(with_bits(nn::ModelKind::gcn, {8}));
  PredictOptions options;
  options.bits = {2};
  const Prediction two = predict(checkpoint, stretched(learnable_vertices()), options);
  options.calibrate = true;
  EXPECT_TRUE(same_numbers(two.logits,
                           predict(checkpoint, stretched(learnable_vertices()), options).logits));
  EXPECT_NE(two.computed.summary.find("first features"), std::string::npos);
  // One number for all layers and the same for each say the same.
  options.calibrate = false;
  options.bits = {8, 8};
  EXPECT_NE(predict(checkpoint, learnable_vertices(), options)
                .computed.summary.find("ranges of the checkpoint"),
            std::string::npos);
}

float reach_of(const Prediction& prediction, std::size_t i) {
  float above = 0;
  std::memcpy(&above, prediction.ranges[i].array.bytes.data(), sizeof(above));
  return above;
}

TEST(RangesOfBits, LeaveOutliersOut) {
  const Checkpoint checkpoint = trained(with_bits(nn::ModelKind::gcn, {}));
  for (const bool integers : {true, false}) {
    PredictOptions options;
    options.bits = {8};
    options.integers = integers;
    const Prediction all = predict(checkpoint, learnable_vertices(), options);
    options.ranges.share = 0.8;
    const Prediction most = predict(checkpoint, learnable_vertices(), options);
    ASSERT_EQ(paths_of(all.ranges), paths_of(most.ranges));
    for (std::size_t i = 0; i < all.ranges.size(); ++i) {
      EXPECT_LE(reach_of(most, i), reach_of(all, i)) << all.ranges[i].path;
    }
    EXPECT_LT(reach_of(most, 0), reach_of(all, 0));
    options.ranges = {.bounds = std::pair{-0.25f, 0.5f}};
    const Prediction given = predict(checkpoint, learnable_vertices(), options);
    EXPECT_EQ(reach_of(given, 0), 0.5f);
    EXPECT_FALSE(same_numbers(given.logits, all.logits));
  }
}

TEST(RangesOfBits, AreFoundAsTheyAreAskedFor) {
  Matrix<float> x(50, 2);
  for (std::int64_t i = 0; i < 50; ++i) {
    x(i, 0) = static_cast<float>(i) - 10;
    x(i, 1) = static_cast<float>(-i);
  }
  x(49, 0) = 1000;
  const auto columns = ops::RoundingRange::columns;
  EXPECT_EQ(step::find_ranges(x, columns, nullptr, {}), (std::vector<float>{1000, 10, 0, 49}));
  EXPECT_EQ(step::find_ranges(x, columns, nullptr, nn::parse_range_search("0.96")),
            (std::vector<float>{38, 9, 0, 48}));
  EXPECT_EQ(
      step::find_ranges(x, ops::RoundingRange::matrix, nullptr, nn::parse_range_search("-2,4")),
      (std::vector<float>{4, 2}));
  const std::vector<float> scale(50, -2);
  EXPECT_EQ(step::find_ranges(x, ops::RoundingRange::matrix, scale.data(), {}),
            (std::vector<float>{98, 2000}));
  EXPECT_EQ(step::find_ranges(Matrix<float>(0, 2), columns, nullptr, {}),
            (std::vector<float>{0, 0, 0, 0}));
  for (const char* const wrong : {"0", "1.5", "x", "0.5,", "2,1", "1,nan"}) {
    expect_error(ErrorCode::invalid_argument, {"LOWER,UPPER"},
                 [&] { nn::parse_range_search(wrong); });
  }
}

TEST(RangesOfBits, OfSparseFeaturesAreKept) {
  const Dataset sparse = test::with_sparse_features(learnable_vertices());
  const Checkpoint checkpoint =
      test::trained_checkpoint(sparse, with_bits(nn::ModelKind::gcn, {4}));
  PredictOptions options;
  const Prediction kept = predict(checkpoint, sparse, options);
  options.calibrate = true;
  EXPECT_TRUE(same_numbers(kept.logits, predict(checkpoint, sparse, options).logits));
}

TEST(RangesOfBits, SayWhereTheyDoNotFit) {
  // Wide layers sum dense features first, and multiply sparse ones first.
  nn::ModelConfig config = with_bits(nn::ModelKind::gcn, {4});
  config.hidden = 16;
  const Dataset dense = learnable_vertices();
  const Checkpoint checkpoint = test::trained_checkpoint(test::with_sparse_features(dense), config);
  PredictOptions options;
  expect_error(ErrorCode::invalid_argument, {"ranges were given", "--calibrate"},
               [&] { predict(checkpoint, dense, options); });
  options.calibrate = true;
  EXPECT_NO_THROW(predict(checkpoint, dense, options));
}

TEST(RangesOfBits, StayWhenTrainingGoesOn) {
  const TemporaryFolder folder;
  const nn::ModelConfig config = with_bits(nn::ModelKind::gcn, {4});
  TrainOptions options = short_training(6);
  options.checkpoint.path = folder / "whole";
  options.checkpoint.full_test = 0.9;
  fit(learnable_vertices(), config, options);
  const Checkpoint whole = load_checkpoint(options.checkpoint.path);
  ASSERT_TRUE(whole.lost);
  EXPECT_DOUBLE_EQ(*whole.lost, 0.9 - best_epoch(whole).evaluation.test);
  options.checkpoint.path = folder / "parts";
  options.epochs = 3;
  fit(learnable_vertices(), config, options);
  options.epochs = 6;
  options.checkpoint.resume = true;
  options.checkpoint.full_test.reset();
  fit(learnable_vertices(), config, options);
  const Checkpoint parts = load_checkpoint(options.checkpoint.path);
  ASSERT_EQ(paths_of(parts.ranges), paths_of(whole.ranges));
  for (std::size_t i = 0; i < whole.ranges.size(); ++i) {
    EXPECT_EQ(parts.ranges[i].array, whole.ranges[i].array) << whole.ranges[i].path;
  }
  ASSERT_TRUE(parts.lost);
  EXPECT_NEAR(*parts.lost, *whole.lost, 1e-12);
}

TEST(RangesOfBits, AreThoseOfAModelThatWasQuantisedAfterTraining) {
  const Checkpoint full = trained(small_model(nn::ModelKind::gcn));
  EXPECT_TRUE(full.ranges.empty());
  PredictOptions options;
  options.bits = {4};
  const Prediction prediction = predict(full, learnable_vertices(), options);
  const TemporaryFolder folder;
  save(quantised(full, {4}, prediction.ranges, 0.01), folder / "model");
  const Checkpoint few = load_checkpoint(folder / "model");
  EXPECT_EQ(few.model.bits, std::vector<std::int64_t>{4});
  EXPECT_EQ(few.lost, 0.01);
  EXPECT_FALSE(quantised_after_training(full));
  EXPECT_TRUE(quantised_after_training(few));
  EXPECT_TRUE(same_numbers(predict(few, learnable_vertices()).logits, prediction.logits));
}

TEST(Bits, SayWhileTrainingThatIntegersWillNotDo) {
  const auto notes = [](const nn::ModelConfig& config, const Dataset& dataset) {
    std::string all;
    for (const std::string& note : fit(dataset, config, short_training(1)).notes) all += note;
    return all;
  };
  nn::ModelConfig config = with_bits(nn::ModelKind::gcn, {8});
  EXPECT_EQ(notes(config, learnable_vertices()).find("--rounded"), std::string::npos);
  config.activation = ops::Activation::elu;
  EXPECT_NE(notes(config, learnable_vertices()).find("activations of elu have no form in integers"),
            std::string::npos);
  Dataset weighted = learnable_vertices();
  std::vector<float> weights(static_cast<std::size_t>(weighted.graph.num_edges()), 1.0f);
  weights[3] = 2;
  weighted.graph = weighted.graph.with_values(SharedArray<float>(weights));
  EXPECT_NE(notes(with_bits(nn::ModelKind::gcn, {8}), weighted).find("edges with weights"),
            std::string::npos);
  EXPECT_EQ(notes(with_bits(nn::ModelKind::gin, {8}), weighted).find("--rounded"),
            std::string::npos);
}

TEST(Bits, ThatCameAfterTheTrainingAreNotTrainedOn) {
  const TemporaryFolder folder;
  TrainOptions options = short_training(3);
  options.checkpoint.path = folder / "model";
  fit(learnable_vertices(), small_model(nn::ModelKind::gcn), options);
  const Checkpoint full = load_checkpoint(options.checkpoint.path);
  PredictOptions with_bits_now;
  with_bits_now.bits = {4};
  const Prediction prediction = predict(full, learnable_vertices(), with_bits_now);
  save(quantised(full, {4}, prediction.ranges, {}), options.checkpoint.path);
  options.checkpoint.resume = true;
  options.epochs = 6;
  expect_error(ErrorCode::invalid_argument, {"quantised after its training", "--checkpoint"},
               [&] { fit(learnable_vertices(), with_bits(nn::ModelKind::gcn, {4}), options); });
}

TEST(RangesOfBits, OfAHostileCheckpointAreRefused) {
  const Checkpoint whole = trained(with_bits(nn::ModelKind::gcn, {8}));
  const TemporaryFolder folder;
  const auto refuse = [&](const Checkpoint& checkpoint, const char* what) {
    save(checkpoint, folder / "model");
    expect_error(ErrorCode::bad_data, {what}, [&] { load_checkpoint(folder / "model"); });
  };
  const auto with_numbers = [&](std::vector<float> numbers, std::vector<std::int64_t> shape) {
    Checkpoint checkpoint = whole;
    Buffer<std::byte> bytes(std::ssize(numbers) * 4);
    std::memcpy(bytes.data(), numbers.data(), numbers.size() * 4);
    checkpoint.ranges.front().array = {"<f4", std::move(shape), std::move(bytes)};
    return checkpoint;
  };
  refuse(with_numbers({1, -1}, {1, 2}), "a bound of -1");
  refuse(with_numbers({1, NAN}, {1, 2}), "a bound of nan");
  refuse(with_numbers({1, 2, 3}, {1, 3}), "are no ranges");
  refuse(with_numbers({1, 2, 3, 4}, {2, 2}), "are no ranges");
  Checkpoint lost = whole;
  lost.lost = NAN;
  refuse(lost, "a loss of");
  Checkpoint other = whole;
  other.ranges.front().path = "convs.9.input";
  expect_error(ErrorCode::invalid_argument, {"convs.9.input", "--calibrate"},
               [&] { predict(other, learnable_vertices()); });
}

TEST(Bits, MakeFeaturesAndActivationsSmaller) {
  const Checkpoint checkpoint = trained(small_model(nn::ModelKind::gcn));
  PredictOptions options;
  std::optional<CodeMemory> before;
  for (const std::int64_t bits : {16, 8, 4, 2, 1}) {
    options.bits = {bits};
    const auto memory = predict(checkpoint, learnable_vertices(), options).memory;
    ASSERT_TRUE(memory);
    EXPECT_GT(memory->features, 0);
    EXPECT_GT(memory->activations, 0);
    if (before) {
      EXPECT_EQ(memory->features * 2, before->features) << bits;
      EXPECT_LE(memory->activations, before->activations) << bits;
      EXPECT_EQ(memory->full_features, before->full_features);
    }
    before = memory;
  }
  EXPECT_FALSE(predict(checkpoint, learnable_vertices()).memory);
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
