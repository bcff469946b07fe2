// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/pattern.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/random_coo.hpp"
#include "support/training_data.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/reorder/nm.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/predict.hpp"
#include "train/batch.hpp"
#include "train/pattern_order.hpp"

namespace tessera::train {
namespace {

using test::learnable_graphs;
using test::learnable_multi_labels;
using test::learnable_vertices;
using test::short_training;
using test::small_model;
using test::TemporaryFolder;
using test::with_sparse_features;
using testing::expect_error;
using testing::ThreadScope;

/// Without dropout, which draws by the number of a row.
nn::ModelConfig certain_model(nn::ModelKind kind, bool graph_task = false) {
  nn::ModelConfig config = small_model(kind, graph_task);
  config.dropout = config.input_dropout = config.head_dropout = 0;
  return config;
}

TrainOptions with_pattern(TrainOptions options, const std::string& pattern) {
  options.pattern = parse_pattern_choice(pattern);
  return options;
}

bool has_note(const TrainReport& report, const std::string& part) {
  return std::any_of(report.notes.begin(), report.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

/// Training with a pattern does what training without one does, but for the order of sums.
void expect_alike(const Dataset& data, const nn::ModelConfig& config, const TrainOptions& options,
                  const std::string& pattern) {
  SCOPED_TRACE(std::string(nn::to_string(config.kind)) + " " + pattern);
  const TrainReport plain = fit(data, config, options);
  const TrainReport ordered = fit(data, config, with_pattern(options, pattern));
  EXPECT_TRUE(has_note(ordered, "reordered"));
  const auto &a = plain.runs.at(0).curve, &b = ordered.runs.at(0).curve;
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i].loss, b[i].loss, 2e-4) << i;
    EXPECT_NEAR(a[i].evaluation.train, b[i].evaluation.train, 0.03) << i;
    EXPECT_NEAR(a[i].evaluation.test, b[i].evaluation.test, 0.03) << i;
    EXPECT_NEAR(a[i].evaluation.validation_loss, b[i].evaluation.validation_loss, 2e-3) << i;
  }
}

TEST(PatternChoice, reads_what_it_prints) {
  for (const char* text : {"off", "best", "auto", "1:2:4", "16:2:16"}) {
    EXPECT_EQ(to_string(parse_pattern_choice(text)), text);
  }
  EXPECT_EQ(parse_pattern_choice("2:4"), parse_pattern_choice("1:2:4"));
  EXPECT_THROW(parse_pattern_choice("fast"), Error);
  EXPECT_THROW(parse_pattern_choice("3:2:4"), Error);
}

TEST(Pattern, full_batches_train_alike) {
  const Dataset data = learnable_vertices(200);
  for (const nn::ModelKind kind : {nn::ModelKind::gcn, nn::ModelKind::sage, nn::ModelKind::gin,
                                   nn::ModelKind::sgc, nn::ModelKind::cheb}) {
    expect_alike(data, certain_model(kind), short_training(8), "1:2:4");
  }
  expect_alike(learnable_vertices(1200), certain_model(nn::ModelKind::gcn), short_training(3),
               "2:2:16");
}

TEST(Pattern, other_data_trains_alike) {
  const nn::ModelConfig gcn = certain_model(nn::ModelKind::gcn);
  expect_alike(learnable_multi_labels(), gcn, short_training(8), "1:2:4");
  expect_alike(with_sparse_features(learnable_vertices()), gcn, short_training(8), "1:2:4");
  expect_alike(learnable_graphs(), certain_model(nn::ModelKind::gin, true), short_training(8),
               "1:2:8");
  TrainOptions folds = short_training(4);
  folds.folds = 3;
  expect_alike(learnable_vertices(), gcn, folds, "1:2:4");
  TrainOptions by_rank = short_training(4);
  by_rank.metric = Metric::roc_auc;
  expect_alike(learnable_multi_labels(), gcn, by_rank, "1:2:4");
}

TEST(Pattern, features_propagated_beforehand_keep_their_vertices) {
  nn::ModelConfig config = certain_model(nn::ModelKind::sgc);
  config.precomputed = true;
  const Dataset data = learnable_vertices();
  const Problem plain = prepare(data, config, short_training());
  const Problem ordered = prepare(data, config, with_pattern(short_training(), "1:2:4"));
  EXPECT_EQ(ordered.order.size(), 0);
  const auto &a = *std::get<DenseFeatures>(plain.features),
             &b = *std::get<DenseFeatures>(ordered.features);
  for (std::int64_t v = 0; v < a.rows(); ++v) {
    for (std::int64_t f = 0; f < a.cols(); ++f) EXPECT_NEAR(a(v, f), b(v, f), 1e-5);
  }
  expect_alike(data, config, short_training(6), "1:2:4");
}

TEST(Pattern, batches_train_alike) {
  TrainOptions clusters = short_training(6);
  clusters.batching = Batching::clusters;
  clusters.parts = 5;
  clusters.partition_method = "multilevel";
  for (const std::int64_t together : {1, 2}) {
    clusters.parts_per_batch = together;
    expect_alike(learnable_vertices(200), certain_model(nn::ModelKind::sage), clusters, "1:2:4");
  }
  TrainOptions graphs = short_training(6);
  graphs.batching = Batching::graphs;
  graphs.graphs_per_batch = 16;
  expect_alike(learnable_graphs(), certain_model(nn::ModelKind::gcn, true), graphs, "1:2:4");
}

TEST(Pattern, every_batch_fits_it_on_its_own) {
  TrainOptions options = with_pattern(short_training(), "1:2:4");
  options.batching = Batching::clusters;
  options.parts = 4;
  options.partition_method = "multilevel";
  const Dataset data = learnable_vertices(400);
  const Problem problem = prepare(data, small_model(nn::ModelKind::gcn), options);
  EXPECT_EQ(problem.order.size(), 0);
  BatchSource batches(problem, problem.split, options, {options.placement, true}, 5, false);
  batches.start_epoch(0);
  std::size_t items = 0;
  for (std::int64_t i = 0; i < batches.batches_per_epoch(); ++i) {
    Batch& batch = batches.batch(i, {});
    const Graph looped = with_self_loops(batch.graph.graph());
    EXPECT_TRUE(reorder::count_violations(looped, {1, 2, 4}).conforms()) << i;
    items += batch.train_items.size();
  }
  EXPECT_EQ(items, problem.split.train.size());
}

TEST(Pattern, batches_of_features_propagated_beforehand_keep_their_order) {
  nn::ModelConfig config = small_model(nn::ModelKind::sgc);
  config.precomputed = true;
  TrainOptions options = short_training();
  options.batching = Batching::clusters;
  options.parts = 4;
  options.partition_method = "multilevel";
  const Dataset data = learnable_vertices(400);
  const Problem problem = prepare(data, config, options);
  BatchSource plain(problem, problem.split, options, {options.placement, true}, 5, false);
  options.pattern = parse_pattern_choice("1:2:4");
  const Problem ordered = prepare(data, config, options);
  BatchSource batches(ordered, ordered.split, options, {options.placement, true}, 5, false);
  plain.start_epoch(0);
  batches.start_epoch(0);
  for (std::int64_t i = 0; i < batches.batches_per_epoch(); ++i) {
    EXPECT_EQ(batches.batch(i, {}).train_items, plain.batch(i, {}).train_items) << i;
    EXPECT_EQ(batches.batch(i, {}).labels, plain.batch(i, {}).labels) << i;
  }
}

TEST(Pattern, does_nothing_for_attention) {
  const Dataset data = learnable_vertices();
  for (const nn::ModelKind kind : {nn::ModelKind::gat, nn::ModelKind::gatv2, nn::ModelKind::agnn}) {
    for (const char* pattern : {"1:2:4", "best", "auto"}) {
      expect_error(ErrorCode::invalid_argument, {nn::to_string(kind), "pattern"},
                   [&] { fit(data, small_model(kind), with_pattern(short_training(1), pattern)); });
    }
  }
}

TEST(Pattern, integer_features_give_the_same_bits) {
  const Dataset data = learnable_vertices(300, 3);
  const Graph& graph = data.graph;
  ops::SpmmOptions options;
  options.features = 5;
  Matrix<float> x(graph.num_rows(), options.features);
  for (std::int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i * 7919 % 127 - 63);
  Matrix<float> expected(graph.num_rows(), options.features);
  run(plan_spmm(graph, options), {x}, {expected});
  for (const char* pattern : {"1:2:4", "1:2:16", "2:2:8"}) {
    const Permutation order =
        find_pattern_order(graph, parse_pattern_choice(pattern), {options, 1}, 1).order;
    ASSERT_EQ(order.size(), graph.num_rows());
    Matrix<float> moved(x.rows(), x.cols()), y(x.rows(), x.cols());
    for (VertexId v = 0; v < graph.num_rows(); ++v) {
      std::copy_n(&x(order.new_to_old()[v], 0), x.cols(), &moved(v, 0));
    }
    run(plan_spmm(permuted(graph, order), options), {moved}, {y});
    for (VertexId v = 0; v < graph.num_rows(); ++v) {
      for (std::int64_t f = 0; f < x.cols(); ++f) {
        EXPECT_EQ(y(v, f), expected(order.new_to_old()[v], f));
      }
    }
  }
}

TEST(Pattern, checkpoints_and_predictions_have_the_numbers_of_the_data) {
  const TemporaryFolder folder;
  const Dataset data = learnable_vertices();
  const nn::ModelConfig config = certain_model(nn::ModelKind::gcn);
  TrainOptions options = short_training(6);
  options.checkpoint.path = folder / "plain";
  fit(data, config, options);
  options = with_pattern(options, "1:2:4");
  options.checkpoint.path = folder / "ordered";
  fit(data, config, options);
  const Checkpoint plain = load_checkpoint(folder / "plain");
  const Checkpoint ordered = load_checkpoint(folder / "ordered");
  EXPECT_EQ(plain.split, ordered.split);
  EXPECT_EQ(test_items(ordered, data), test_items(plain, data));
  const Prediction a = predict(plain, data), b = predict(ordered, data);
  ASSERT_EQ(a.logits.rows(), b.logits.rows());
  for (std::int64_t i = 0; i < a.logits.size(); ++i) {
    EXPECT_NEAR(a.logits.data()[i], b.logits.data()[i], 2e-3);
  }
  options.checkpoint.resume = true;
  options.epochs = 8;
  EXPECT_NO_THROW(fit(data, config, options));
  options.pattern = {};
  expect_error(ErrorCode::invalid_argument, {"training.pattern = 1:2:4, not off"},
               [&] { fit(data, config, options); });
}

TEST(Pattern, the_same_bits_for_any_number_of_threads) {
  const auto losses = [](int threads) {
    const ThreadScope scope(threads);
    std::vector<double> values;
    const TrainReport report = fit(learnable_vertices(200), small_model(nn::ModelKind::gcn),
                                   with_pattern(short_training(3), "1:2:4"));
    for (const EpochRecord& record : report.runs.at(0).curve) values.push_back(record.loss);
    return values;
  };
  EXPECT_EQ(losses(1), losses(3));
}

TEST(Pattern, is_left_alone_where_it_does_not_pay) {
  const Dataset data = learnable_vertices(200);
  const TrainReport report =
      fit(data, certain_model(nn::ModelKind::gcn), with_pattern(short_training(2), "auto"));
  EXPECT_TRUE(has_note(report, "vertices stay"));
  ops::SpmmOptions options;
  options.features = 16;
  const PatternOrder once =
      find_pattern_order(data.graph, parse_pattern_choice("auto"), {options, 1}, 1);
  EXPECT_EQ(once.order.size(), 0);
  EXPECT_NE(once.note.find("take less than an order"), std::string::npos) << once.note;
}

TEST(Pattern, the_best_is_one_that_fits) {
  const std::vector<VertexId> from = {0, 0, 0}, to = {1, 2, 3};
  const Graph graph = symmetrised(from_edges(4000, from, to));
  const PatternOrder best = find_pattern_order(graph, parse_pattern_choice("best"), {}, 1);
  EXPECT_NE(best.note.find("fits"), std::string::npos) << best.note;
}

TEST(Pattern, contradictions_are_errors) {
  TrainOptions options = with_pattern(short_training(2), "1:2:4");
  options.process_every_step = true;
  expect_error(ErrorCode::invalid_argument, {"processed in every step"},
               [&] { fit(learnable_vertices(), small_model(nn::ModelKind::gcn), options); });
}

}  // namespace
}  // namespace tessera::train
