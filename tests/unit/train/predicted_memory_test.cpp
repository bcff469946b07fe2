// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "support/counting_memory.hpp"
#include "support/expect_error.hpp"
#include "support/training_data.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/memory.hpp"

/// What training will take is known before it begins.
namespace tessera::train {
namespace {

using test::CountingMemory;

/// Wide enough that tensors are most of it, as in any training whose memory matters.
nn::ModelConfig wide_model(nn::ModelKind kind) {
  nn::ModelConfig config = test::small_model(kind);
  config.hidden = 32;
  return config;
}

class PredictedMemoryOnDevice
    : public ::testing::TestWithParam<std::tuple<nn::ModelKind, Precision, DeviceKind>> {
 protected:
  void SetUp() override {
    if (device().kind == DeviceKind::cuda && num_gpus() == 0) {
      GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
    }
  }
  static Device device() { return {std::get<2>(GetParam()), 0}; }

  void expect_prediction(const Dataset& data, const nn::ModelConfig& config, TrainOptions options) {
    options.placement.precision = std::get<1>(GetParam());
    CountingMemory planned{device()};
    options.placement.memory = &planned;
    const Problem problem = prepare(data, config, options);
    const TrainingMemory predicted = predict_memory(problem, config, options);
    EXPECT_EQ(planned.num_live(), 0) << "a prediction keeps nothing";
    EXPECT_LT(planned.peak_bytes(), predicted.total()) << "tensors are not made";
    CountingMemory used{device()};
    options.placement.memory = &used;
    fit(problem, config, options);
    const auto measured = static_cast<double>(used.peak_bytes());
    EXPECT_NEAR(static_cast<double>(predicted.total()), measured, 0.1 * measured)
        << "parameters " << predicted.parameters << ", activations " << predicted.activations
        << ", graph " << predicted.graph << ", features " << predicted.features << ", rest "
        << predicted.rest;
  }
};

TEST_P(PredictedMemoryOnDevice, is_that_of_full_batches) {
  const nn::ModelConfig config = wide_model(std::get<0>(GetParam()));
  const Dataset data = test::learnable_vertices(3000);
  for (const Dataset& each : {data, test::with_sparse_features(data)}) {
    expect_prediction(each, config, test::short_training(3));
  }
}

TEST_P(PredictedMemoryOnDevice, follows_the_optimiser_and_the_evaluation) {
  const nn::ModelConfig config = wide_model(std::get<0>(GetParam()));
  TrainOptions options = test::short_training(4);
  options.optimiser.kind = ops::OptimiserKind::sgd;
  options.evaluate_every = 2;
  expect_prediction(test::learnable_vertices(3000), config, options);
}

std::string case_name(
    const ::testing::TestParamInfo<std::tuple<nn::ModelKind, Precision, DeviceKind>>& info) {
  const auto& [kind, precision, device] = info.param;
  return std::string(nn::to_string(kind)) + "_" + to_string(precision) + "_" +
         (device == DeviceKind::cpu ? "cpu" : "cuda");
}

INSTANTIATE_TEST_SUITE_P(
    Models, PredictedMemoryOnDevice,
    ::testing::Combine(::testing::Values(nn::ModelKind::gcn, nn::ModelKind::sage,
                                         nn::ModelKind::gin, nn::ModelKind::gat,
                                         nn::ModelKind::gatv2, nn::ModelKind::agnn,
                                         nn::ModelKind::sgc, nn::ModelKind::cheb),
                       ::testing::Values(Precision::fp32, Precision::bf16),
                       ::testing::Values(DeviceKind::cpu, DeviceKind::cuda)),
    case_name);

/// Where everything lies in the memory of this process, whose peak is known. What the CPU's
/// attention works in is made by its first run, which no prediction sees.
void expect_batches(const Dataset& data, const nn::ModelConfig& config, TrainOptions options) {
  const Problem problem = prepare(data, config, options);
  const TrainingMemory predicted = predict_memory(problem, config, options);
  reset_host_memory_peak();
  fit(problem, config, options);
  const auto measured = static_cast<double>(host_memory_use().peak_bytes);
  const double most = config.kind == nn::ModelKind::gat ? 0.12 : 0.03;
  EXPECT_NEAR(static_cast<double>(predicted.total()), measured, most * measured)
      << nn::describe(config) << ": parameters " << predicted.parameters << ", activations "
      << predicted.activations << ", graph " << predicted.graph << ", features "
      << predicted.features << ", data " << predicted.data;
}

TEST(PredictedMemory, is_that_of_batches_of_graphs) {
  const Dataset data = test::learnable_graphs(2000);
  for (const nn::ModelKind kind : {nn::ModelKind::gcn, nn::ModelKind::gin, nn::ModelKind::gat}) {
    nn::ModelConfig config = test::small_model(kind, true);
    config.hidden = 32;
    if (!config.readout) config.readout = ops::Reduction::mean;
    TrainOptions options = test::short_training(3);
    options.batching = Batching::graphs;
    for (const std::int64_t graphs : {20, 300}) {
      options.graphs_per_batch = graphs;
      expect_batches(data, config, options);
    }
  }
}

TEST(PredictedMemory, is_that_of_batches_of_clusters) {
  const Dataset data = test::learnable_vertices(6000);
  for (const nn::ModelKind kind : {nn::ModelKind::gcn, nn::ModelKind::sage, nn::ModelKind::gat}) {
    for (const Dataset& each : {data, test::with_sparse_features(data)}) {
      TrainOptions options = test::short_training(3);
      options.batching = Batching::clusters;
      options.parts = 12;
      for (const std::int64_t parts : {1, 4}) {
        options.parts_per_batch = parts;
        expect_batches(each, wide_model(kind), options);
      }
    }
  }
}

TEST(PredictedMemory, names_the_largest_consumers_when_memory_ends) {
  CountingMemory memory{Device{}};
  TrainOptions options = test::short_training(3);
  options.placement.memory = &memory;
  const nn::ModelConfig config = wide_model(nn::ModelKind::gcn);
  const Problem problem = prepare(test::learnable_vertices(3000), config, options);
  memory.fail_from(12);
  testing::expect_error(ErrorCode::out_of_memory,
                        {"run dry", "activations", "features", "graph", "bf16"},
                        [&] { fit(problem, config, options); });
}

}  // namespace
}  // namespace tessera::train
