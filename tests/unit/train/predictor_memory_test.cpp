// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "support/counted_new.hpp"
#include "support/counting_memory.hpp"
#include "support/trained.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/train/predictor.hpp"

namespace tessera::train {
namespace {

using test::CountingMemory;
using test::learnable_graphs;
using test::learnable_vertices;
using test::num_news;
using test::small_model;
using test::trained_checkpoint;
using test::with_sparse_features;

/// Runs once, then a few times more, during which nothing may be allocated.
template <class Run>
void expect_no_allocation(CountingMemory& memory, Run&& run) {
  run();
  const std::int64_t news = num_news(), taken = memory.num_allocations();
  for (int i = 0; i < 3; ++i) run();
  EXPECT_EQ(num_news() - news, 0) << "of new";
  EXPECT_EQ(memory.num_allocations() - taken, 0) << "of the placement's memory";
}

class PredictorMemory : public ::testing::TestWithParam<nn::ModelKind> {};

TEST_P(PredictorMemory, nothing_is_allocated_after_the_first_run) {
  CountingMemory memory(host_memory());
  PredictOptions options;
  options.placement.memory = &memory;
  const Dataset dataset = learnable_vertices();
  const Checkpoint checkpoint = trained_checkpoint(dataset, small_model(GetParam()));
  Predictor predictor(checkpoint, dataset.graph, options);
  Matrix<float> logits(120, 3);
  const Matrix<float>& features = *std::get<DenseFeatures>(dataset.features);
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    expect_no_allocation(memory, [&] { predictor.run(features, logits); });
  }
  set_num_threads(0);
}

TEST_P(PredictorMemory, nothing_is_allocated_for_sparse_features_and_unions) {
  CountingMemory memory(host_memory());
  PredictOptions options;
  options.placement.memory = &memory;
  const Dataset dataset = with_sparse_features(learnable_vertices());
  Predictor predictor(trained_checkpoint(dataset, small_model(GetParam())), dataset, options);
  Matrix<float> logits(120, 3);
  expect_no_allocation(memory, [&] { predictor.run(logits); });
  if (GetParam() == nn::ModelKind::sgc) return;
  const Dataset graphs = learnable_graphs();
  Predictor pooled(trained_checkpoint(graphs, small_model(GetParam(), true)), graphs, options);
  Matrix<float> of_graphs(60, pooled.num_outputs());
  expect_no_allocation(memory, [&] { pooled.run(of_graphs); });
}

INSTANTIATE_TEST_SUITE_P(Models, PredictorMemory,
                         ::testing::Values(nn::ModelKind::gcn, nn::ModelKind::sage,
                                           nn::ModelKind::gin, nn::ModelKind::gat,
                                           nn::ModelKind::gatv2, nn::ModelKind::agnn,
                                           nn::ModelKind::sgc, nn::ModelKind::cheb),
                         [](const auto& instance) {
                           return std::string(to_string(instance.param));
                         });

TEST(GpuPredictor, gives_the_logits_of_the_cpu_and_allocates_nothing_after_the_first_run) {
  const Device gpu{DeviceKind::cuda, 0};
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const Dataset dataset = learnable_vertices();
  const Matrix<float>& features = *std::get<DenseFeatures>(dataset.features);
  for (const auto kind : {nn::ModelKind::gcn, nn::ModelKind::gin, nn::ModelKind::gat}) {
    const Checkpoint checkpoint = trained_checkpoint(dataset, small_model(kind));
    Matrix<float> expected(120, 3), logits(120, 3);
    Predictor(checkpoint, dataset.graph).run(features, expected);
    for (const Precision precision : {Precision::fp32, Precision::tf32}) {
      CountingMemory memory(gpu);
      PredictOptions options;
      options.placement.memory = &memory;
      options.placement.precision = precision;
      Predictor predictor(checkpoint, dataset.graph, options);
      expect_no_allocation(memory, [&] { predictor.run(features, logits); });
      const float bound = precision == Precision::fp32 ? 1e-4f : 0.02f;
      for (std::int64_t i = 0; i < logits.size(); ++i) {
        ASSERT_NEAR(logits.data()[i], expected.data()[i], bound) << to_string(kind);
      }
    }
  }
}

}  // namespace
}  // namespace tessera::train
