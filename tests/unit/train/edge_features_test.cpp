// SPDX-License-Identifier: Apache-2.0
// Training and predicting with features of edges.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/trained.hpp"
#include "support/training_data.hpp"
#include "tessera/train/memory.hpp"
#include "tessera/train/predictor.hpp"
#include "tessera/train/problem.hpp"
#include "train/batch.hpp"

namespace tessera::train {
namespace {

using test::learnable_graphs;
using test::learnable_vertices;
using test::short_training;
using test::small_model;
using test::TemporaryFolder;
using ::testing::Contains;
using testing::expect_error;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto invalid = ErrorCode::invalid_argument;

DenseFeatures ones(std::int64_t rows) { return std::make_shared<Matrix<float>>(rows, 1, 1.0f); }

/// Calls `set(edge, target, source)` for every edge.
template <class Set>
void for_edges(const Graph& graph, Set&& set) {
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    for (EdgeOffset e = graph.row_offsets()[row]; e < graph.row_offsets()[row + 1]; ++e) {
      set(e, row, graph.col_indices()[e]);
    }
  }
}

/// Molecules whose kinds of bonds alone tell the class: a length, and one of two categories.
Dataset bonds() {
  Dataset data = learnable_graphs();
  data.labels = {};
  data.features = ones(data.graph.num_rows());
  auto features = std::make_shared<Matrix<float>>(data.graph.num_edges(), 3, 0.0f);
  const Random random(5);
  for_edges(data.graph, [&](EdgeOffset e, VertexId target, VertexId) {
    const bool second = data.graph_labels[data.graph_ids[target]] == 2;
    const auto element = static_cast<std::uint64_t>(e);
    (*features)(e, 0) = 3 + static_cast<float>(random.uniform(2 * element));
    (*features)(e, random.uniform(2 * element + 1) < (second ? 0.8 : 0.2) ? 1 : 2) = 1;
  });
  data.edge_features = {std::move(features), Names({"length", "bond=double", "bond=single"}),
                        std::vector<std::int32_t>{-1, 4, 4}};
  data.validate();
  return data;
}

/// Edges that say between which vertices they go, and vertices that say their number.
Dataset numbered(Dataset data) {
  auto vertices = std::make_shared<Matrix<float>>(data.graph.num_rows(), 1);
  for (std::int64_t v = 0; v < vertices->rows(); ++v) (*vertices)(v, 0) = static_cast<float>(v);
  auto edges = std::make_shared<Matrix<float>>(data.graph.num_edges(), 2);
  for_edges(data.graph, [&](EdgeOffset e, VertexId target, VertexId source) {
    (*edges)(e, 0) = static_cast<float>(target);
    (*edges)(e, 1) = static_cast<float>(source);
  });
  data.features = DenseFeatures(std::move(vertices));
  data.labels = data.graph_ids.empty() ? data.labels : Labels();
  data.edge_features = {std::move(edges)};
  return data;
}

TrainOptions as_they_are(Batching batching) {
  TrainOptions options = short_training(2);
  options.normalise = Normalise::off;
  options.batching = batching;
  options.parts = 6;
  options.parts_per_batch = 2;
  options.graphs_per_batch = 7;
  return options;
}

void expect_edges_of_vertices(Batch& batch) {
  const Graph& graph = batch.graph.graph();
  ASSERT_NE(batch.graph.edge_features(), nullptr);
  const auto edges = batch.graph.edge_features()->as<float>();
  const auto vertices = batch.features.input().dense("test").as<float>();
  ASSERT_EQ(edges.rows, graph.num_edges());
  for_edges(graph, [&](EdgeOffset e, VertexId target, VertexId source) {
    ASSERT_EQ(edges(e, 0), vertices(target, 0)) << "edge " << e;
    ASSERT_EQ(edges(e, 1), vertices(source, 0)) << "edge " << e;
  });
}

void expect_edges_of_batches(const Dataset& data, const TrainOptions& options) {
  const Problem problem = prepare(data, options);
  for (const bool ahead : {false, true}) {
    BatchSource batches(problem, problem.split, options, {options.placement, false}, 5, ahead);
    expect_edges_of_vertices(batches.full());
    for (const std::int64_t epoch : {0, 1}) {
      batches.start_epoch(epoch);
      for (std::int64_t i = 0; i < batches.batches_per_epoch(); ++i) {
        expect_edges_of_vertices(batches.batch(i, {}));
      }
    }
  }
}

TEST(TrainingWithEdges, KeepsTheirFeaturesInEveryBatch) {
  const Dataset vertices = numbered(learnable_vertices()), graphs = numbered(learnable_graphs());
  for (const Batching batching : {Batching::full, Batching::clusters}) {
    expect_edges_of_batches(vertices, as_they_are(batching));
  }
  expect_edges_of_batches(graphs, as_they_are(Batching::graphs));
  TrainOptions one_part = as_they_are(Batching::clusters);
  one_part.parts_per_batch = 1;
  expect_edges_of_batches(vertices, one_part);
  TrainOptions every_step = as_they_are(Batching::full);
  every_step.process_every_step = true;
  expect_edges_of_batches(vertices, every_step);
  for (const Batching batching : {Batching::full, Batching::clusters}) {
    TrainOptions ordered = as_they_are(batching);
    ordered.pattern = parse_pattern_choice("1:2:4");
    expect_edges_of_batches(vertices, ordered);
  }
}

TEST(TrainingWithEdges, LearnsWhatTheyAloneTell) {
  const Dataset data = bonds();
  const TrainOptions options = [] {
    TrainOptions chosen = short_training(40);
    chosen.batching = Batching::graphs;
    chosen.graphs_per_batch = 16;
    return chosen;
  }();
  const auto accuracy = [&](nn::ModelKind kind) {
    return fit(data, small_model(kind, true), options).runs.front().best.test;
  };
  EXPECT_GT(accuracy(nn::ModelKind::gine), 0.9);
  EXPECT_LT(accuracy(nn::ModelKind::gin), 0.8);
}

TEST(TrainingWithEdges, SaysWhatItNeeds) {
  const Dataset plain = learnable_vertices();
  expect_error(invalid, {"gine reads features of edges", "--edge-features"},
               [&] { fit(plain, small_model(nn::ModelKind::gine), short_training(1)); });
  const Dataset data = numbered(learnable_vertices());
  TrainOptions links = short_training(1);
  links.task = Task::links;
  expect_error(invalid, {"links are learned without features of edges"},
               [&] { fit(data, small_model(nn::ModelKind::gine), links); });
  TrainOptions pattern = short_training(1);
  pattern.pattern = parse_pattern_choice("1:2:4");
  expect_error(invalid, {"a pattern does nothing for gine"},
               [&] { fit(data, small_model(nn::ModelKind::gine), pattern); });
  const auto notes = [&](nn::ModelKind kind) {
    return prepare(data, small_model(kind), short_training(1)).notes;
  };
  EXPECT_THAT(notes(nn::ModelKind::gin), Contains(HasSubstr("play no part in gin")));
  EXPECT_THAT(notes(nn::ModelKind::gine), Not(Contains(HasSubstr("play no part"))));
}

TEST(TrainingWithEdges, NormalisesThemAsAsked) {
  const Dataset data = bonds();
  const auto prepared = [&](Normalise how) {
    TrainOptions options = short_training(1);
    options.normalise = how;
    return prepare(data, small_model(nn::ModelKind::gine, true), options);
  };
  EXPECT_EQ(prepared(Normalise::automatic).edge_features, data.edge_features.matrix);
  EXPECT_EQ(prepared(Normalise::off).edge_features, data.edge_features.matrix);
  const Problem rows = prepared(Normalise::rows);
  const Problem standard = prepared(Normalise::standard);
  ASSERT_EQ(standard.edge_normalisation.kind, Normalise::standard);
  double sum = 0, count = 0;
  for_edges(data.graph, [&](EdgeOffset e, VertexId target, VertexId) {
    const Matrix<float>& normed = *rows.edge_features;
    EXPECT_NEAR(normed(e, 0) + normed(e, 1) + normed(e, 2), 1, 1e-6);
    const auto& train = standard.split.train;
    if (std::find(train.begin(), train.end(), data.graph_ids[target]) == train.end()) return;
    sum += static_cast<double>((*standard.edge_features)(e, 0));
    ++count;
  });
  EXPECT_NEAR(sum / count, 0, 1e-6) << "of the graphs that are for training";
  // Columns of a table, where vertices are classified.
  Dataset table = numbered(learnable_vertices());
  table.edge_features.names = Names({"a", "b"});
  const auto kind_of = [](const Dataset& dataset) {
    return prepare(dataset, small_model(nn::ModelKind::gine), short_training(1))
        .edge_normalisation.kind;
  };
  EXPECT_EQ(kind_of(table), Normalise::standard);
  EXPECT_EQ(kind_of(numbered(learnable_vertices())), Normalise::off);
}

Checkpoint trained(const Dataset& data, Normalise how, bool graph_task = true) {
  TrainOptions options = short_training(3);
  options.normalise = how;
  const TemporaryFolder folder;
  options.checkpoint.path = folder / "model";
  fit(data, small_model(nn::ModelKind::gine, graph_task), options);
  return load_checkpoint(options.checkpoint.path);
}

/// The edges' columns in another order, and one more.
Dataset with_moved_columns(Dataset data) {
  const Matrix<float>& from = *data.edge_features.matrix;
  auto to = std::make_shared<Matrix<float>>(from.rows(), 4);
  for (std::int64_t e = 0; e < from.rows(); ++e) {
    const float row[] = {from(e, 2), from(e, 1), 7, from(e, 0)};
    std::copy_n(row, 4, to->row(e));
  }
  data.edge_features = {std::move(to), Names({"bond=single", "bond=double", "charge", "length"}),
                        std::vector<std::int32_t>{4, 4, -1, -1}};
  return data;
}

TEST(TrainingWithEdges, KeepsTheirNamesForPredictions) {
  const Dataset data = bonds();
  for (const Normalise how : {Normalise::off, Normalise::rows, Normalise::standard}) {
    SCOPED_TRACE(to_string(how));
    const Checkpoint checkpoint = trained(data, how);
    EXPECT_EQ(checkpoint.model.edge_features, 3);
    EXPECT_EQ(checkpoint.edge_normalisation.kind, how);
    EXPECT_EQ(checkpoint.edge_input.feature_names, data.edge_features.names);
    const Prediction expected = predict(checkpoint, data);
    const Prediction moved = predict(checkpoint, with_moved_columns(data));
    ASSERT_EQ(moved.logits.size(), expected.logits.size());
    for (std::int64_t i = 0; i < expected.logits.size(); ++i) {
      ASSERT_EQ(moved.logits.data()[i], expected.logits.data()[i]);
    }
    EXPECT_THAT(moved.notes, Contains(HasSubstr("of edges: columns that the model does not know "
                                                "are left out: 'charge'")));
    const auto& validation = checkpoint.split.validation;
    double right = 0;
    for (const std::int64_t item : validation) {
      right += expected.classes[static_cast<std::size_t>(item)] == data.graph_labels[item] ? 1 : 0;
    }
    EXPECT_NEAR(right / static_cast<double>(validation.size()),
                best_epoch(checkpoint).evaluation.validation, 1e-9);
  }
}

TEST(TrainingWithEdges, NamesWhatPredictionsLack) {
  const Dataset data = bonds();
  const Checkpoint checkpoint = trained(data, Normalise::off);
  Dataset without = data;
  without.edge_features = {};
  expect_error(invalid, {"gine reads features of edges"}, [&] { predict(checkpoint, without); });
  Dataset renamed = data;
  renamed.edge_features.names = Names({"width", "bond=double", "bond=single"});
  expect_error(invalid, {"edges of molecules", "lacks columns", "'length'"},
               [&] { predict(checkpoint, renamed); });
  Dataset narrow = data;
  narrow.edge_features = {ones(data.graph.num_edges())};
  expect_error(invalid, {"edges have 1 features", "3"}, [&] { predict(checkpoint, narrow); });
  const Checkpoint of_vertices =
      trained(numbered(learnable_vertices()), Normalise::standard, false);
  expect_error(invalid, {"reads features of edges, but was given a graph alone"},
               [&] { Predictor(of_vertices, learnable_vertices().graph); });
}

TEST(TrainingWithEdges, PredictsSomeVerticesAndOnOtherThreads) {
  const Dataset data = numbered(learnable_vertices());
  const Checkpoint checkpoint = trained(data, Normalise::standard, false);
  Predictor predictor(checkpoint, data);
  Matrix<float> all(predictor.num_items(), predictor.num_outputs());
  predictor.run(all);
  Predictor twin = predictor.for_another_thread();
  Matrix<float> same(all.rows(), all.cols());
  twin.run(same);
  for (std::int64_t i = 0; i < all.size(); ++i) ASSERT_EQ(same.data()[i], all.data()[i]);
  const std::vector<VertexId> some = {7, 0, 119, 60};
  Matrix<float> near(std::ssize(some), all.cols());
  predictor.run(*std::get<DenseFeatures>(data.features), some, near);
  for (std::int64_t i = 0; i < near.rows(); ++i) {
    for (std::int64_t j = 0; j < near.cols(); ++j) {
      EXPECT_NEAR(near(i, j), all(some[static_cast<std::size_t>(i)], j), 1e-4);
    }
  }
}

TEST(TrainingWithEdges, GoesOnWithTheSameOnly) {
  const Dataset data = bonds();
  const TemporaryFolder folder;
  TrainOptions options = short_training(4);
  options.batching = Batching::graphs;
  options.checkpoint.path = folder / "whole";
  const nn::ModelConfig model = small_model(nn::ModelKind::gine, true);
  fit(data, model, options);
  options.checkpoint = {.path = folder / "parts", .resume = true};
  options.pause_at = 2;
  fit(data, model, options);
  options.pause_at = 0;
  Dataset other = data;
  auto changed = std::make_shared<Matrix<float>>(data.edge_features.matrix->rows(), 3, 1.0f);
  other.edge_features.matrix = std::move(changed);
  expect_error(invalid, {"other data: its features of edges"}, [&] { fit(other, model, options); });
  Dataset renamed = data;
  renamed.edge_features.names = Names({"size", "bond=double", "bond=single"});
  expect_error(invalid, {"other names"}, [&] { fit(renamed, model, options); });
  fit(data, model, options);
  const Checkpoint whole = load_checkpoint(folder / "whole");
  const Checkpoint parts = load_checkpoint(folder / "parts");
  ASSERT_EQ(whole.weights.size(), parts.weights.size());
  for (std::size_t i = 0; i < whole.weights.size(); ++i) {
    EXPECT_EQ(whole.weights[i].array, parts.weights[i].array) << whole.weights[i].path;
  }
}

TEST(TrainingWithEdges, RefusesCheckpointsThatContradictThemselves) {
  const Checkpoint good = trained(bonds(), Normalise::standard);
  const auto expect_bad = [&](auto&& change, const char* text) {
    Checkpoint bad = good;
    change(bad);
    expect_error(ErrorCode::bad_data, {text}, [&] { validate(bad, "file"); });
  };
  expect_bad([](Checkpoint& c) { c.model.edge_features = 0; }, "gine with 0 features of edges");
  expect_bad([](Checkpoint& c) { c.model.edge_features = 4; }, "for 4 features");
  expect_bad([](Checkpoint& c) { c.edge_normalisation.means.pop_back(); }, "2 means");
  expect_bad([](Checkpoint& c) { c.edge_input.means[0] = NAN; }, "not finite");
  Checkpoint plain =
      test::trained_checkpoint(learnable_vertices(), small_model(nn::ModelKind::gin));
  plain.model.edge_features = 3;
  expect_error(ErrorCode::bad_data, {"gin with 3 features of edges"},
               [&] { validate(plain, "file"); });
}

TEST(TrainingWithEdges, SaysWhatAStepDoesAndTakes) {
  const Dataset data = bonds();
  TrainOptions options = short_training(1);
  options.batching = Batching::graphs;
  const nn::ModelConfig model = small_model(nn::ModelKind::gine, true);
  const Problem problem = prepare(data, model, options);
  EXPECT_THAT(explain_step(problem, model, options).rewritten, HasSubstr("messages relu"));
  EXPECT_GT(predict_memory(problem, model, options).total(), 0);
}

}  // namespace
}  // namespace tessera::train
