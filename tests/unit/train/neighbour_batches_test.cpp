// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/training_data.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/memory.hpp"
#include "tessera/train/trainer.hpp"
#include "train/batch.hpp"

namespace tessera::train {
namespace {

using nn::ModelKind;
using test::learnable_vertices;
using test::short_training;
using test::small_model;
using testing::expect_error;

constexpr ModelKind kinds[] = {ModelKind::gcn, ModelKind::sage,  ModelKind::gin,
                               ModelKind::gat, ModelKind::gatv2, ModelKind::sgc};

TrainOptions in_neighbours(std::vector<std::int64_t> fan_outs, std::int64_t size,
                           std::int64_t epochs = 3) {
  TrainOptions options = short_training(epochs);
  options.batching = Batching::neighbours;
  options.fan_outs = std::move(fan_outs);
  options.batch_size = size;
  return options;
}

/// Without anything that is drawn for each row, or found for all rows of a step.
nn::ModelConfig plain_model(ModelKind kind) {
  nn::ModelConfig config = small_model(kind);
  config.input_dropout = config.dropout = config.attention_dropout = 0;
  config.batch_norm = false;
  return config;
}

/// Directed, with weights, loops and vertices without edges.
Dataset awkward() {
  Dataset data = learnable_vertices();
  std::vector<VertexId> rows, cols;
  std::vector<float> values;
  for (VertexId v = 0; v < data.graph.num_rows(); ++v) {
    for (const VertexId source : data.graph.neighbours(v)) {
      if (v % 10 == 0 || (v + source) % 5 == 0) continue;
      rows.push_back(v);
      cols.push_back(v % 7 == 0 && source > v ? v : source);
      values.push_back(0.5f + 0.1f * static_cast<float>((v + source) % 9));
    }
  }
  BuildOptions options;
  options.duplicates = Duplicates::first;
  data.graph = from_coo(data.graph.num_rows(), data.graph.num_cols(), rows, cols, values, options);
  return data;
}

std::vector<double> losses(const Dataset& data, const nn::ModelConfig& config,
                           const TrainOptions& options) {
  std::vector<double> losses;
  for (const EpochRecord& record : fit(data, config, options).runs.at(0).curve) {
    losses.push_back(record.loss);
  }
  return losses;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double most) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], most) << "epoch " << i;
}

TEST(NeighbourBatches, of_all_neighbours_learn_what_the_whole_graph_does) {
  for (const Dataset& dense : {learnable_vertices(), awkward()}) {
    for (const Dataset& data : {dense, test::with_sparse_features(dense)}) {
      for (const ModelKind kind : kinds) {
        if (kind == ModelKind::gin) continue;  // its batch norm is over the rows of the step
        SCOPED_TRACE(nn::to_string(kind));
        const nn::ModelConfig config = plain_model(kind);
        expect_near(losses(data, config, in_neighbours({-1}, 1000)),
                    losses(data, config, short_training(3)), 2e-5);
      }
    }
  }
}

TEST(NeighbourBatches, of_all_neighbours_do_so_for_variants_of_models) {
  std::vector<nn::ModelConfig> configs(5, plain_model(ModelKind::sage));
  configs[0].aggregation = nn::SageAggregation::max;
  configs[1].aggregation = nn::SageAggregation::gcn;
  configs[2] = plain_model(ModelKind::gcn);
  configs[2].layers = 3;
  configs[2].residual = true;
  configs[3] = plain_model(ModelKind::sgc);
  configs[3].hops = 3;
  configs[4] = plain_model(ModelKind::gatv2);
  configs[4].share_weights = true;
  for (const Dataset& data : {awkward(), test::with_sparse_features(awkward())}) {
    for (const nn::ModelConfig& config : configs) {
      SCOPED_TRACE(nn::describe(config));
      expect_near(losses(data, config, in_neighbours({-1}, 1000)),
                  losses(data, config, short_training(3)), 2e-5);
    }
  }
}

TEST(NeighbourBatches, of_all_neighbours_do_so_in_bf16) {
  for (const ModelKind kind : {ModelKind::gcn, ModelKind::gat, ModelKind::sage}) {
    TrainOptions full = short_training(3), drawn = in_neighbours({-1}, 1000);
    full.placement.precision = drawn.placement.precision = Precision::bf16;
    expect_near(losses(awkward(), plain_model(kind), drawn),
                losses(awkward(), plain_model(kind), full), 2e-2);
  }
}

TEST(NeighbourBatches, of_a_few_neighbours_reach_what_the_full_batch_reaches) {
  for (const ModelKind kind : kinds) {
    for (const bool replace : {false, true}) {
      TrainOptions options = in_neighbours({4, 3}, 16, 40);
      options.replace = replace;
      EXPECT_GT(fit(learnable_vertices(), small_model(kind), options).test.mean, 0.72)
          << nn::to_string(kind) << (replace ? ", with replacement" : "");
    }
  }
}

TEST(NeighbourBatches, of_no_neighbours_see_the_vertices_alone) {
  for (const ModelKind kind : kinds) {
    EXPECT_NO_THROW(fit(learnable_vertices(), small_model(kind), in_neighbours({0}, 7)))
        << nn::to_string(kind);
    EXPECT_NO_THROW(fit(awkward(), small_model(kind), in_neighbours({1, 0}, 40)))
        << nn::to_string(kind);
  }
}

TEST(NeighbourBatches, train_on_several_labels) {
  TrainOptions options = in_neighbours({5}, 16, 40);
  EXPECT_GT(fit(test::learnable_multi_labels(), small_model(ModelKind::sage), options).test.mean,
            0.75);
}

TEST(NeighbourBatches, give_the_same_bits_with_any_number_of_threads) {
  struct Reset {
    ~Reset() { set_num_threads(0); }
  } reset;
  for (const ModelKind kind : {ModelKind::gcn, ModelKind::sage, ModelKind::gat}) {
    std::vector<std::vector<double>> found;
    for (const int threads : {1, 2, 5}) {
      set_num_threads(threads);
      found.push_back(losses(learnable_vertices(600), small_model(kind), in_neighbours({4}, 33)));
    }
    EXPECT_EQ(found[0], found[1]);
    EXPECT_EQ(found[0], found[2]);
  }
}

TEST(NeighbourBatches, draw_anew_in_every_epoch_and_by_the_seed) {
  TrainOptions options = in_neighbours({2}, 16);
  const Problem problem = prepare(learnable_vertices(), plain_model(ModelKind::sage), options);
  const nn::Model model(plain_model(ModelKind::sage), problem.num_features(), problem.outputs);
  const FeatureForm form = feature_form(problem, options, model);
  BatchSource one(problem, problem.split, options, form, 5, false);
  BatchSource same(problem, problem.split, options, form, 5, true);
  BatchSource other(problem, problem.split, options, form, 6, false);
  ASSERT_EQ(one.batches_per_epoch(), 3);
  std::vector<Graph> drawn;
  for (const std::int64_t epoch : {0, 1, 4}) {
    for (BatchSource* source : {&one, &same, &other}) source->start_epoch(epoch);
    for (std::int64_t i = 0; i < 3; ++i) {
      Batch &a = one.batch(i, {}), &b = same.batch(i, {}), &c = other.batch(i, {});
      ASSERT_EQ(a.layers.size(), 2u);
      for (std::size_t l = 0; l < 2; ++l) EXPECT_EQ(a.layers[l].graph(), b.layers[l].graph());
      EXPECT_FALSE(a.layers[0].graph() == c.layers[0].graph());
      EXPECT_EQ(a.labels, b.labels);
      EXPECT_EQ(a.train_items.size(), i == 2 ? 8u : 16u);
      EXPECT_EQ(a.features.rows(), a.layers[0].num_cols());
      EXPECT_EQ(a.layers[0].num_rows(), a.layers[1].num_cols());
      EXPECT_EQ(a.layers[1].num_rows(), std::ssize(a.train_items));
      drawn.push_back(a.layers[0].graph());
    }
  }
  for (std::size_t i = 1; i < drawn.size(); ++i) EXPECT_FALSE(drawn[0] == drawn[i]);
}

TEST(NeighbourBatches, see_every_vertex_once_in_an_epoch) {
  TrainOptions options = in_neighbours({1}, 7);
  const Dataset data = learnable_vertices();
  const Problem problem = prepare(data, plain_model(ModelKind::sage), options);
  const nn::Model model(plain_model(ModelKind::sage), problem.num_features(), problem.outputs);
  BatchSource source(problem, problem.split, options, feature_form(problem, options, model), 5,
                     true);
  const DenseFeatures features = std::get<DenseFeatures>(problem.features);
  std::vector<float> expected, found;
  for (const std::int64_t v : problem.split.train) expected.push_back((*features)(v, 0));
  source.start_epoch(2);
  for (std::int64_t i = 0; i < source.batches_per_epoch(); ++i) {
    Batch& batch = source.batch(i, {});
    const MatrixView<const float> x = batch.features.input().dense("test").as<float>();
    for (const std::int64_t item : batch.train_items) found.push_back(x(item, 0));
  }
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
}

struct Stop : std::runtime_error {
  Stop() : std::runtime_error("stop") {}
};

TEST(NeighbourBatches, resume_to_the_same_bits) {
  for (const ModelKind kind : {ModelKind::sage, ModelKind::gat}) {
    const test::TemporaryFolder folder;
    TrainOptions options = in_neighbours({3}, 16, 7);
    options.runs = 2;
    options.checkpoint = {folder / "whole", 3, true};
    fit(learnable_vertices(), small_model(kind), options);
    options.checkpoint.path = folder / "broken";
    int left = 10;
    TrainOptions stopping = options;
    stopping.on_epoch = [&](const EpochRecord&) {
      if (--left == 0) throw Stop();
    };
    EXPECT_THROW(fit(learnable_vertices(), small_model(kind), stopping), Stop);
    fit(learnable_vertices(), small_model(kind), options);
    EXPECT_EQ(test::read_file(folder / "whole"), test::read_file(folder / "broken"));
    options.fan_outs = {4};
    expect_error(ErrorCode::invalid_argument, {"training.fan_outs = 3, not 4"},
                 [&] { fit(learnable_vertices(), small_model(kind), options); });
  }
}

TEST(NeighbourBatches, predict_their_memory) {
  const Dataset data = learnable_vertices(6000);
  for (const ModelKind kind : {ModelKind::gcn, ModelKind::sage}) {
    nn::ModelConfig config = plain_model(kind);
    config.hidden = 32;
    const TrainOptions options = in_neighbours({6}, 500);
    const Problem problem = prepare(data, config, options);
    const TrainingMemory predicted = predict_memory(problem, config, options);
    reset_host_memory_peak();
    fit(problem, config, options);
    const auto measured = static_cast<double>(host_memory_use().peak_bytes);
    EXPECT_NEAR(static_cast<double>(predicted.total()), measured, 0.1 * measured);
  }
}

TEST(NeighbourBatches, explain_a_step_on_a_batch) {
  const nn::ModelConfig config = small_model(ModelKind::sage);
  const TrainOptions options = in_neighbours({6}, 16);
  const Problem problem = prepare(learnable_vertices(), config, options);
  EXPECT_NE(explain_step(problem, config, options).written.find("first_rows"), std::string::npos);
}

TEST(NeighbourBatches, refuse_what_makes_no_sense) {
  const auto refused = [](const std::vector<std::string>& parts, const Dataset& data,
                          const nn::ModelConfig& config, const TrainOptions& options) {
    expect_error(ErrorCode::invalid_argument, parts, [&] { fit(data, config, options); });
  };
  const Dataset data = learnable_vertices();
  const TrainOptions options = in_neighbours({4}, 16);
  refused({"graphs"}, test::learnable_graphs(), small_model(ModelKind::gin, true), options);
  refused({"cheb"}, data, small_model(ModelKind::cheb), options);
  refused({"gine"}, data, small_model(ModelKind::gine), options);
  refused({"agnn"}, data, small_model(ModelKind::agnn), options);
  refused({"fan_outs", "3", "2 times"}, data, small_model(ModelKind::gcn),
          in_neighbours({4, 4, 4}, 16));
  refused({"fan_outs has -2"}, data, small_model(ModelKind::gcn), in_neighbours({4, -2}, 16));
  refused({"no fan_outs"}, data, small_model(ModelKind::gcn), in_neighbours({}, 16));
  refused({"batch_size is 0"}, data, small_model(ModelKind::gcn), in_neighbours({4}, 0));
  nn::ModelConfig config = small_model(ModelKind::gcn);
  config.bits = {8};
  refused({"bits"}, data, config, options);
  config = plain_model(ModelKind::sgc);
  config.precomputed = true;
  refused({"precomputed"}, data, config, options);
  config = small_model(ModelKind::sage);
  config.aggregation = nn::SageAggregation::max;
  TrainOptions replacing = options;
  replacing.replace = true;
  refused({"replace"}, data, config, replacing);
  TrainOptions ordered = options;
  ordered.pattern = parse_pattern_choice("1:2:4");
  refused({"pattern"}, data, small_model(ModelKind::gcn), ordered);
  TrainOptions links = link_training();
  links.batching = Batching::neighbours;
  Dataset unlabelled = data;
  refused({"links"}, unlabelled, link_encoder(ModelKind::gcn), links);
}

}  // namespace
}  // namespace tessera::train
