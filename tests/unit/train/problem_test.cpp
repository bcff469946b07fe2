// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/problem.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.hpp"
#include "support/training_data.hpp"
#include "tessera/data/embedded.hpp"
#include "tessera/graph/build.hpp"

namespace tessera::train {
namespace {

using test::learnable_graphs;
using test::learnable_multi_labels;
using test::learnable_vertices;
using test::short_training;
using test::small_model;
using testing::expect_error;

const nn::ModelConfig gcn = small_model(nn::ModelKind::gcn);

void expect_impossible(const std::vector<std::string>& parts, const Dataset& dataset,
                       const TrainOptions& options = short_training(),
                       ErrorCode code = ErrorCode::invalid_argument) {
  const bool graph_task = is_graph_task(dataset, options.task);
  expect_error(code, parts,
               [&] { prepare(dataset, small_model(nn::ModelKind::gcn, graph_task), options); });
}

TEST(Prepare, takes_split_labels_and_features_as_they_are) {
  const Dataset dataset = learnable_vertices();
  TrainOptions options = short_training();
  options.normalise = Normalise::off;
  const Problem problem = prepare(dataset, gcn, options);
  EXPECT_EQ(problem.num_items, 120);
  EXPECT_EQ(problem.outputs, 3);
  EXPECT_EQ(problem.num_features(), 9);
  EXPECT_EQ(problem.split.train.size(), 40u);
  EXPECT_EQ(problem.metric, Metric::accuracy);
  EXPECT_TRUE(problem.notes.empty());
  EXPECT_EQ(std::get<DenseFeatures>(problem.features), std::get<DenseFeatures>(dataset.features));
}

TEST(Prepare, notes_say_what_becomes_of_weights) {
  Dataset dataset = learnable_vertices();
  TrainOptions options = short_training();
  options.normalise = Normalise::off;
  std::vector<float> weights(static_cast<std::size_t>(dataset.graph.num_edges()), 2.0f);
  const auto notes = [&](nn::ModelKind kind) {
    dataset.graph = dataset.graph.with_values(weights);
    return prepare(dataset, small_model(kind), options).notes;
  };
  EXPECT_TRUE(notes(nn::ModelKind::gcn).empty());
  EXPECT_EQ(notes(nn::ModelKind::gat),
            std::vector<std::string>{"the weights of edges play no part in gat"});
  weights[5] = -1;
  ASSERT_EQ(notes(nn::ModelKind::sgc).size(), 1u);
  EXPECT_NE(notes(nn::ModelKind::sgc)[0].find("negative"), std::string::npos);
}

TEST(Prepare, rows_of_features_sum_to_one) {
  Dataset dataset = learnable_vertices();
  const Problem problem = prepare(dataset, gcn, short_training());
  ASSERT_EQ(problem.normalisation.kind, Normalise::rows);
  const Matrix<float>& dense = *std::get<DenseFeatures>(problem.features);
  for (std::int64_t v = 0; v < dense.rows(); ++v) {
    double sum = 0;
    for (std::int64_t f = 0; f < dense.cols(); ++f) sum += static_cast<double>(dense(v, f));
    EXPECT_NEAR(sum, 1, 1e-6);
  }
  auto negative = std::make_shared<Matrix<float>>(120, 2, 1.0f);
  (*negative)(3, 1) = -1;
  dataset.features = DenseFeatures(negative);
  EXPECT_EQ(prepare(dataset, gcn, short_training()).normalisation.kind, Normalise::off);
}

TEST(Prepare, sparse_features_stay_sparse_and_rows_of_zeros_stay_zero) {
  Dataset dataset = learnable_vertices(33);
  const std::vector<VertexId> rows{0, 0, 2}, cols{1, 4, 0};
  const std::vector<float> values{3, 1, 5};
  dataset.features = from_coo(33, 5, rows, cols, values);
  const Problem problem = prepare(dataset, gcn, short_training());
  const Graph& sparse = std::get<SparseFeatures>(problem.features);
  EXPECT_EQ(sparse.num_edges(), 3);
  EXPECT_FLOAT_EQ(sparse.values()[0], 0.75f);
  EXPECT_FLOAT_EQ(sparse.values()[1], 0.25f);
  EXPECT_FLOAT_EQ(sparse.values()[2], 1.0f);
  EXPECT_EQ(problem.shape().feature_entries, 3);
}

TEST(Prepare, draws_a_split_where_there_is_none_and_says_so) {
  Dataset dataset = learnable_vertices();
  dataset.train = dataset.validation = dataset.test = SharedArray<std::int64_t>();
  const Problem problem = prepare(dataset, gcn, short_training());
  EXPECT_EQ(problem.split.train.size(), 72u);
  ASSERT_EQ(problem.notes.size(), 1u);
  EXPECT_NE(problem.notes[0].find("no split in the data"), std::string::npos);
}

TEST(Prepare, missing_features_are_made) {
  Dataset dataset = learnable_vertices();
  dataset.features = std::monostate();
  const Problem vertices = prepare(dataset, gcn, short_training());
  EXPECT_EQ(vertices.num_features(), 120);

  const nn::ModelConfig gin = small_model(nn::ModelKind::gin, true);
  Dataset graphs = learnable_graphs();
  EXPECT_EQ(prepare(graphs, gin, short_training()).num_features(), 2);
  graphs.labels = std::monostate();
  const Problem by_degree = prepare(graphs, gin, short_training());
  EXPECT_EQ(by_degree.num_features(), 512);
  EXPECT_NE(by_degree.notes[0].find("degrees"), std::string::npos);
}

TEST(Prepare, graph_labels_are_numbered_from_zero) {
  const Problem problem =
      prepare(learnable_graphs(), small_model(nn::ModelKind::gin, true), short_training());
  EXPECT_TRUE(problem.graph_task);
  EXPECT_EQ(problem.outputs, 2);
  EXPECT_EQ(problem.class_values, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(problem.labels[0], 0);
  EXPECT_EQ(problem.labels[1], 1);
}

TEST(Prepare, classes_are_the_numbers_in_use) {
  Dataset dataset = learnable_vertices();
  const ClassLabels labels = std::get<ClassLabels>(dataset.labels);
  const auto relabelled = [&](const std::vector<std::int64_t>& values) {
    std::vector<std::int64_t> changed;
    for (const std::int64_t label : labels) {
      changed.push_back(values[static_cast<std::size_t>(label)]);
    }
    dataset.labels = ClassLabels(std::move(changed));
    return prepare(dataset, gcn, short_training());
  };
  const Problem wide = relabelled({5, 1'000'000, 7});
  EXPECT_EQ(wide.outputs, 3);
  EXPECT_EQ(wide.class_values, (std::vector<std::int64_t>{5, 7, 1'000'000}));
  EXPECT_NE(wide.notes[0].find("5, 7, 1000000"), std::string::npos);
  const Problem signs = relabelled({-1, 1, 1});
  EXPECT_EQ(signs.outputs, 2);
  EXPECT_EQ(signs.class_values, (std::vector<std::int64_t>{-1, 1}));
  const Problem plain = relabelled({2, 0, 1});
  EXPECT_EQ(plain.outputs, 3);
  EXPECT_TRUE(plain.class_values.empty());
  EXPECT_TRUE(plain.notes.empty());
}

TEST(Prepare, graphs_of_minus_one_and_one_are_two_classes) {
  Dataset graphs = learnable_graphs();
  std::vector<std::int64_t> signs;
  for (const std::int64_t label : graphs.graph_labels) signs.push_back(label == 1 ? -1 : 1);
  graphs.graph_labels = signs;
  const Problem problem = prepare(graphs, small_model(nn::ModelKind::gin, true), short_training());
  EXPECT_EQ(problem.outputs, 2);
  EXPECT_EQ(problem.class_values, (std::vector<std::int64_t>{-1, 1}));
}

TEST(Prepare, says_that_a_graph_is_directed) {
  Dataset dataset = learnable_vertices();
  std::vector<VertexId> sources, targets;
  for (VertexId v = 0; v < 120; ++v) {
    sources.push_back(v);
    targets.push_back((v + 1) % 120);
  }
  dataset.graph = from_edges(120, sources, targets);
  const Problem problem = prepare(dataset, gcn, short_training());
  ASSERT_EQ(problem.notes.size(), 1u);
  EXPECT_NE(problem.notes[0].find("--symmetrise"), std::string::npos);
}

TEST(Prepare, a_split_may_be_without_a_test_part) {
  Dataset dataset = learnable_vertices();
  dataset.test = SharedArray<std::int64_t>();
  const Problem problem = prepare(dataset, gcn, short_training());
  EXPECT_TRUE(problem.split.test.empty());
  EXPECT_EQ(problem.notes,
            std::vector<std::string>{"the split has no test part: nothing is tested"});
}

/// The learnable vertices with three splits, in which the parts change places.
Dataset with_three_splits() {
  Dataset dataset = learnable_vertices();
  dataset.splits = {{dataset.train, dataset.validation, dataset.test},
                    {dataset.validation, dataset.test, dataset.train},
                    {dataset.test, dataset.train, dataset.validation}};
  return dataset;
}

TEST(Prepare, several_splits_are_for_several_runs) {
  const Dataset dataset = with_three_splits();
  TrainOptions options = short_training();
  const Problem first = prepare(dataset, gcn, options);
  EXPECT_EQ(first.splits.size(), 3u);
  EXPECT_EQ(first.split, first.splits[0]);
  EXPECT_NE(first.notes[0].find("split 0 of 3"), std::string::npos);
  options.runs = 2;
  EXPECT_NE(prepare(dataset, gcn, options).notes[0].find("2 of 3 splits"), std::string::npos);
  options.split_index = 2;
  const Problem last = prepare(dataset, gcn, options);
  EXPECT_TRUE(last.splits.empty());
  EXPECT_EQ(last.split, first.splits[2]);
  EXPECT_NE(last.notes[0].find("split 2 of 3"), std::string::npos);
  options.split_index = 3;
  expect_impossible({"split 3", "0 to 2"}, dataset, options);
  options.split_index = 1;
  expect_impossible({"split 1"}, learnable_vertices(), options);
  options.folds = 3;
  options.split_index = 0;
  expect_impossible({"none of the data is used"}, dataset, options);
}

TEST(Prepare, precomputed_features_are_propagated) {
  nn::ModelConfig sgc = small_model(nn::ModelKind::sgc);
  sgc.precomputed = true;
  const Problem problem = prepare(learnable_vertices(), sgc, short_training());
  EXPECT_NE(problem.notes.back().find("propagated 2 hops"), std::string::npos);
  nn::ModelConfig gat = small_model(nn::ModelKind::gat);
  gat.precomputed = true;
  expect_error(ErrorCode::unsupported, {"gat"},
               [&] { prepare(learnable_vertices(), gat, short_training()); });
}

TEST(ImpossibleRequest, labels_missing) {
  Dataset dataset = learnable_vertices();
  dataset.labels = std::monostate();
  expect_impossible({"has no labels"}, dataset);
  dataset.labels = ClassLabels(std::vector<std::int64_t>(120, -1));
  expect_impossible({"no vertex has a label"}, dataset);
  TrainOptions graphs = short_training();
  graphs.task = Task::graph;
  expect_impossible({"no labels for graphs"}, learnable_vertices(), graphs);
}

TEST(ImpossibleRequest, one_class_only) {
  Dataset dataset = learnable_vertices();
  dataset.labels = ClassLabels(std::vector<std::int64_t>(120, 2));
  expect_impossible({"all labels are 2", "at least two classes"}, dataset);
}

TEST(ImpossibleRequest, empty_part_of_the_split) {
  Dataset dataset = learnable_vertices();
  dataset.validation = SharedArray<std::int64_t>();
  expect_impossible({"validation part of the split is empty"}, dataset);
}

TEST(ImpossibleRequest, unlabelled_vertex_in_the_split) {
  Dataset dataset = learnable_vertices();
  const ClassLabels old = std::get<ClassLabels>(dataset.labels);
  std::vector<std::int64_t> labels(old.begin(), old.end());
  labels[2] = -1;
  dataset.labels = ClassLabels(labels);
  expect_impossible({"vertex 2 of the test part has no label"}, dataset);
}

TEST(ImpossibleRequest, features_that_are_not_finite) {
  for (const float wrong : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    Dataset dataset = learnable_vertices();
    auto features = std::make_shared<Matrix<float>>(120, 3, 0.0f);
    (*features)(77, 1) = wrong;
    dataset.features = DenseFeatures(features);
    expect_impossible({"vertex 77 has a feature of"}, dataset, short_training(),
                      ErrorCode::bad_data);
    const std::vector<VertexId> rows{5}, cols{0};
    dataset.features = from_coo(120, 4, rows, cols).with_values(std::vector<float>{wrong});
    expect_impossible({"vertex 5 has a feature of"}, dataset, short_training(),
                      ErrorCode::bad_data);
  }
}

TEST(ImpossibleRequest, rectangular_graph) {
  Dataset dataset = learnable_vertices(33);
  const std::vector<VertexId> rows{0}, cols{8};
  dataset.graph = from_coo(33, 40, rows, cols);
  expect_impossible({"33 x 40"}, dataset);
}

TEST(ImpossibleRequest, metric_that_does_not_fit) {
  TrainOptions options = short_training();
  options.metric = Metric::micro_f1;
  expect_impossible({"accuracy"}, learnable_vertices(), options);
  options.metric = Metric::accuracy;
  expect_impossible({"micro_f1"}, learnable_multi_labels(), options);
}

TEST(ImpossibleRequest, batches_that_do_not_fit) {
  TrainOptions options = short_training();
  options.batching = Batching::graphs;
  expect_impossible({"vertices are to be classified"}, learnable_vertices(), options);
  options.batching = Batching::clusters;
  expect_impossible({"graphs are to be classified"}, learnable_graphs(), options);
}

TEST(ImpossibleRequest, model_for_the_other_task) {
  expect_error(ErrorCode::invalid_argument, {"no readout"},
               [] { prepare(learnable_graphs(), gcn, short_training()); });
  expect_error(ErrorCode::invalid_argument, {"has a readout"}, [] {
    prepare(learnable_vertices(), small_model(nn::ModelKind::gin, true), short_training());
  });
}

TEST(ImpossibleRequest, options_without_a_meaning) {
  const auto expect_option_error = [](const std::string& part, auto change) {
    TrainOptions options = short_training();
    change(options);
    expect_error(ErrorCode::invalid_argument, {part},
                 [&] { prepare(learnable_vertices(), gcn, options); });
  };
  expect_option_error("epochs is 0", [](TrainOptions& o) { o.epochs = 0; });
  expect_option_error("runs is -1", [](TrainOptions& o) { o.runs = -1; });
  expect_option_error("learning_rate", [](TrainOptions& o) { o.optimiser.learning_rate = -1; });
  expect_option_error("weight_decay", [](TrainOptions& o) {
    o.optimiser.weight_decay = std::numeric_limits<double>::quiet_NaN();
  });
  expect_option_error("folds is 2", [](TrainOptions& o) { o.folds = 2; });
  expect_option_error("side by side", [](TrainOptions& o) {
    o.parallel_runs = true;
    o.checkpoint.path = "x";
  });
}

}  // namespace
}  // namespace tessera::train
