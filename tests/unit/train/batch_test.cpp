// SPDX-License-Identifier: Apache-2.0
#include "train/batch.hpp"

#include <gtest/gtest.h>

#include "support/training_data.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/nn/model.hpp"

namespace tessera::train {
namespace {

using test::learnable_graphs;
using test::learnable_vertices;
using test::short_training;
using test::small_model;

TrainOptions in_graphs() {
  TrainOptions options = short_training(3);
  options.batching = Batching::graphs;
  options.graphs_per_batch = 16;
  return options;
}

TrainOptions in_clusters(std::int64_t per_batch) {
  TrainOptions options = short_training(3);
  options.batching = Batching::clusters;
  options.parts = 6;
  options.parts_per_batch = per_batch;
  return options;
}

/// Everything that a step sees.
void expect_same(Batch& a, Batch& b) {
  EXPECT_EQ(a.graph.graph(), b.graph.graph());
  ASSERT_EQ(a.pooling.has_value(), b.pooling.has_value());
  if (a.pooling) {
    EXPECT_EQ(a.pooling->graph(), b.pooling->graph());
  }
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(a.train_items, b.train_items);
  ASSERT_EQ(a.features.input().is_sparse(), b.features.input().is_sparse());
  if (step::Topology* const sparse = a.features.sparse()) {
    EXPECT_EQ(sparse->graph(), b.features.sparse()->graph());
    return;
  }
  const step::Tensor &x = a.features.input().dense("test"), &y = b.features.input().dense("test");
  ASSERT_EQ(x.num_bytes(), y.num_bytes());
  EXPECT_TRUE(std::equal(x.bytes(), x.bytes() + x.num_bytes(), y.bytes()));
}

void expect_the_same_ahead(const Dataset& data, bool pooled, const TrainOptions& options,
                           bool densify) {
  const Problem problem = prepare(data, small_model(nn::ModelKind::gin, pooled), options);
  const FeatureForm form{options.placement, densify};
  BatchSource plain(problem, problem.split, options, form, 5, false);
  BatchSource ahead(problem, problem.split, options, form, 5, true);
  // The second epoch begins with a batch that was made in the first; the fourth does not follow.
  for (const std::int64_t epoch : {0, 1, 3}) {
    plain.start_epoch(epoch);
    ahead.start_epoch(epoch);
    ASSERT_EQ(plain.batches_per_epoch(), ahead.batches_per_epoch());
    for (std::int64_t i = 0; i < plain.batches_per_epoch(); ++i) {
      SCOPED_TRACE(::testing::Message() << "epoch " << epoch << ", batch " << i);
      expect_same(plain.batch(i, {}), ahead.batch(i, {}));
    }
  }
}

TEST(BatchSource, MakesTheSameBatchesAhead) {
  for (const bool densify : {false, true}) {
    expect_the_same_ahead(learnable_graphs(), true, in_graphs(), densify);
    expect_the_same_ahead(learnable_vertices(), false, in_clusters(2), densify);
    expect_the_same_ahead(learnable_vertices(), false, in_clusters(1), densify);
  }
}

/// Three epochs whose batches are planned ahead once the first has been.
void expect_the_same_planned_ahead(const TrainOptions& options, std::int64_t per_epoch) {
  SCOPED_TRACE(::testing::Message() << per_epoch << " batches per epoch");
  const nn::ModelConfig config = small_model(nn::ModelKind::gin);
  const Problem problem = prepare(learnable_vertices(), config, options);
  const FeatureForm form{options.placement, false, options.plans};
  nn::Model model(config, problem.num_features(), problem.outputs, 1, options.placement);
  const ops::DenseWorkspace workspace(options.placement.place());
  BatchSource plain(problem, problem.split, options, form, 5, false);
  BatchSource ahead(problem, problem.split, options, form, 5, true);
  ASSERT_EQ(ahead.batches_per_epoch(), per_epoch);
  const std::int64_t most = batches_ahead(options, per_epoch);
  for (std::int64_t step = 0; step < options.epochs * per_epoch; ++step) {
    SCOPED_TRACE(::testing::Message() << "step " << step);
    if (step % per_epoch == 0) {
      plain.start_epoch(step / per_epoch);
      ahead.start_epoch(step / per_epoch);
    }
    Batch& batch = ahead.batch(step % per_epoch, {});
    expect_same(plain.batch(step % per_epoch, {}), batch);
    // The second was begun before plans were known; one that was not made ahead would have none.
    EXPECT_EQ(batch.graph.requests().spmm.empty(), step < 2);
    const std::int64_t left = options.epochs * per_epoch - 1 - step;
    EXPECT_EQ(ahead.num_ahead(), std::min(left, step == 0 ? 1 : most));
    if (step > 0) continue;
    step::Context context = batch.context(true, 1, 0);
    context.workspace = &workspace;
    model.prepare(batch.features.input(), context);
    ahead.learn_plans(batch);
  }
}

TEST(BatchSource, MakesTheSameBatchesAheadOncePlansAreKnown) {
  for (const std::int64_t per_epoch : {1, 2, 5}) {
    TrainOptions options = in_clusters(2);
    options.parts = 2 * per_epoch;
    expect_the_same_planned_ahead(options, per_epoch);
    options.plans.tune = ops::Tune::measured;
    expect_the_same_planned_ahead(options, per_epoch);
  }
}

TEST(BatchSource, StoresShortRowsWholeWhereBatchesAreMadeAnew) {
  const TrainOptions graphs = in_graphs();
  const Problem problem =
      prepare(learnable_graphs(), small_model(nn::ModelKind::gin, true), graphs);
  const bool on_cpu = graphs.placement.device().kind == DeviceKind::cpu;
  ASSERT_TRUE(on_cpu);
  EXPECT_FALSE(problem.counts_entries);
  nn::ModelConfig dropping = small_model(nn::ModelKind::gin, true);
  dropping.input_dropout = 0.5;
  EXPECT_TRUE(prepare(learnable_graphs(), dropping, graphs).counts_entries);
  EXPECT_TRUE(prepare(learnable_graphs(), graphs).counts_entries);
  EXPECT_FALSE(takes_whole_rows(problem, graphs)) << "a CPU makes no batches ahead";
  EXPECT_TRUE(makes_batches_anew(graphs));
  EXPECT_TRUE(makes_batches_anew(in_clusters(2)));
  EXPECT_FALSE(makes_batches_anew(in_clusters(1)));
  TrainOptions full = short_training(3);
  EXPECT_FALSE(makes_batches_anew(full));
  full.process_every_step = true;
  EXPECT_TRUE(makes_batches_anew(full));
  if (num_gpus() == 0) return;
  TrainOptions there = graphs;
  there.placement.memory = &default_memory({DeviceKind::cuda, 0});
  EXPECT_TRUE(takes_whole_rows(problem, there));
  Problem dropped = problem;
  dropped.counts_entries = true;
  EXPECT_FALSE(takes_whole_rows(dropped, there)) << "which entries are dropped would change";
  there.batching = Batching::clusters;
  there.parts_per_batch = 1;
  EXPECT_FALSE(takes_whole_rows(problem, there));
}

TEST(BatchSource, MakesNoMoreBatchesAheadThanAnEpochHas) {
  TrainOptions options = short_training(3);
  EXPECT_EQ(batches_ahead(options, 1), 1);
  EXPECT_EQ(batches_ahead(options, 2), 2);
  EXPECT_EQ(batches_ahead(options, 5), 4);
  options.epochs = 1;
  EXPECT_EQ(batches_ahead(options, 1), 0);
  EXPECT_EQ(batches_ahead(options, 3), 2);
  options.plans.tune = ops::Tune::measured;
  EXPECT_EQ(batches_ahead(options, 5), 1) << "candidates are timed by one thread at once";
}

TEST(BatchSource, ProcessesTheSameGraphInEveryStep) {
  TrainOptions options = short_training(3);
  options.process_every_step = true;
  expect_the_same_ahead(learnable_vertices(), false, options, true);
  const Problem problem = prepare(learnable_vertices(), small_model(nn::ModelKind::gcn), options);
  BatchSource source(problem, problem.split, options, {options.placement, true}, 5, false);
  source.start_epoch(0);
  ASSERT_EQ(source.batches_per_epoch(), 1);
  Batch& batch = source.batch(0, {});
  EXPECT_FALSE(source.is_full());
  EXPECT_EQ(batch.graph.graph(), problem.graph);
  EXPECT_EQ(batch.train_items, problem.split.train);
  EXPECT_EQ(batch.labels, problem.labels);
}

TEST(BatchSource, CutsOutWhatTheWholeHas) {
  const TrainOptions options = in_clusters(2);
  const Problem problem = prepare(learnable_vertices(), small_model(nn::ModelKind::gcn), options);
  BatchSource source(problem, problem.split, options, {options.placement, true}, 5, false);
  std::int64_t items = 0, vertices = 0;
  source.start_epoch(0);
  for (std::int64_t i = 0; i < source.batches_per_epoch(); ++i) {
    Batch& batch = source.batch(i, {});
    batch.graph.graph().validate();
    EXPECT_EQ(batch.features.rows(), batch.graph.graph().num_rows());
    vertices += batch.features.rows();
    items += std::ssize(batch.train_items);
  }
  EXPECT_EQ(vertices, problem.graph.num_rows());
  EXPECT_EQ(items, std::ssize(problem.split.train));
}

TEST(BatchSource, PlansTheNextBatchesAsTheFirst) {
  const TrainOptions options = in_graphs();
  const Problem problem =
      prepare(learnable_graphs(), small_model(nn::ModelKind::gin, true), options);
  nn::Model model(small_model(nn::ModelKind::gin, true), problem.num_features(), problem.outputs, 1,
                  options.placement);
  BatchSource source(problem, problem.split, options, {options.placement, false}, 5, true);
  const ops::DenseWorkspace workspace(options.placement.place());
  source.start_epoch(0);
  ASSERT_GE(source.batches_per_epoch(), 3);
  Batch& first = source.batch(0, {});
  step::Context context = first.context(true, 1, 0);
  context.workspace = &workspace;
  model.prepare(first.features.input(), context);
  source.learn_plans(first);
  const std::size_t wanted = first.graph.requests().spmm.size();
  EXPECT_GT(wanted, 0u);
  source.batch(1, {});  // begun before anything was known
  Batch& third = source.batch(2, {});
  EXPECT_EQ(third.graph.requests().spmm.size(), wanted);
  EXPECT_GT(third.pooling->requests().spmm.size(), 0u);
  step::Context later = third.context(true, 1, 2);
  later.workspace = &workspace;
  model.prepare(third.features.input(), later);
  EXPECT_EQ(third.graph.requests().spmm.size(), wanted);
}

}  // namespace
}  // namespace tessera::train
