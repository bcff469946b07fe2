// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/predictor.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <thread>
#include <vector>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/trained.hpp"
#include "support/training_data.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/train/problem.hpp"

namespace tessera::train {
namespace {

using test::learnable_graphs;
using test::learnable_multi_labels;
using test::learnable_vertices;
using test::small_model;
using test::trained_checkpoint;
using test::with_sparse_features;
using testing::expect_error;

/// The logits by hand: features as training prepared them, layers as they come.
Matrix<float> by_hand(const Checkpoint& checkpoint, const Dataset& dataset) {
  const Problem problem =
      prepare_features(dataset, checkpoint.model, checkpoint.graph_task, checkpoint.normalisation);
  nn::Model model(checkpoint.model, checkpoint.features, checkpoint.outputs);
  restore(checkpoint.weights, model.state(), "checkpoint");
  step::Topology graph(problem.graph);
  nn::InputFeatures features(problem.features, {}, !model.accepts_sparse());
  step::Context context;
  context.graph = &graph;
  std::optional<step::Topology> pooling;
  if (problem.graph_task) {
    pooling.emplace(step::pooling_graph(problem.graph_ids, problem.num_items));
    context.pooling = &*pooling;
  }
  const step::Tensor& logits = model.forward(features.input(), context);
  Matrix<float> result(logits.rows(), logits.cols());
  std::copy_n(logits.as<float>().data, logits.size(), result.data());
  return result;
}

void expect_same_bits(const Matrix<float>& got, const Matrix<float>& expected) {
  ASSERT_EQ(got.rows(), expected.rows());
  ASSERT_EQ(got.cols(), expected.cols());
  for (std::int64_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got.data()[i], expected.data()[i]) << "element " << i;
  }
}

const Matrix<float>& dense(const Dataset& dataset) {
  return *std::get<DenseFeatures>(dataset.features);
}

/// Other features of the same shape.
Matrix<float> other_features(const Dataset& dataset) {
  Matrix<float> other(dense(dataset).rows(), dense(dataset).cols());
  for (std::int64_t i = 0; i < other.size(); ++i) {
    other.data()[i] = dense(dataset).data()[other.size() - 1 - i] + 0.25f;
  }
  return other;
}

class PredictorOf : public ::testing::TestWithParam<nn::ModelKind> {};

TEST_P(PredictorOf, has_the_bits_of_the_model_run_by_hand) {
  const Dataset dataset = learnable_vertices();
  const Checkpoint checkpoint = trained_checkpoint(dataset, small_model(GetParam()));
  ASSERT_EQ(checkpoint.normalisation.kind, Normalise::rows) << "the features are never negative";
  Predictor predictor(checkpoint, dataset.graph);
  ASSERT_EQ(predictor.num_vertices(), 120);
  ASSERT_EQ(predictor.num_features(), 9);
  ASSERT_EQ(predictor.num_items(), 120);
  ASSERT_EQ(predictor.num_outputs(), 3);
  Matrix<float> logits(120, 3);
  predictor.run(dense(dataset), logits);
  const Matrix<float> expected = by_hand(checkpoint, dataset);
  expect_same_bits(logits, expected);
  const Prediction prediction = predict(checkpoint, dataset);
  expect_same_bits(logits, prediction.logits);
  for (std::int64_t v = 0; v < 120; ++v) {
    ASSERT_EQ(predictor.class_of({logits.row(v), 3}),
              prediction.classes[static_cast<std::size_t>(v)]);
  }
  // Nothing of one run is left in the next.
  Dataset changed = dataset;
  changed.features = std::make_shared<const Matrix<float>>(other_features(dataset));
  predictor.run(dense(changed), logits);
  expect_same_bits(logits, by_hand(checkpoint, changed));
  predictor.run(dense(dataset), logits);
  expect_same_bits(logits, expected);
}

TEST_P(PredictorOf, takes_sparse_features_from_the_data_set) {
  const Dataset dataset = with_sparse_features(learnable_vertices());
  const Checkpoint checkpoint = trained_checkpoint(dataset, small_model(GetParam()));
  Predictor predictor(checkpoint, dataset);
  Matrix<float> logits(120, 3);
  for (int run = 0; run < 2; ++run) {
    predictor.run(logits);
    expect_same_bits(logits, by_hand(checkpoint, dataset));
  }
}

TEST_P(PredictorOf, classifies_graphs_of_a_union) {
  const Dataset dataset = learnable_graphs();
  if (GetParam() == nn::ModelKind::sgc) GTEST_SKIP() << "one layer";
  const Checkpoint checkpoint = trained_checkpoint(dataset, small_model(GetParam(), true));
  Predictor predictor(checkpoint, dataset);
  ASSERT_EQ(predictor.num_items(), 60);
  Matrix<float> logits(60, predictor.num_outputs());
  predictor.run(logits);
  expect_same_bits(logits, by_hand(checkpoint, dataset));
  expect_error(ErrorCode::invalid_argument, {"graphs of a union"},
               [&] { Predictor(checkpoint, dataset.graph); });
}

INSTANTIATE_TEST_SUITE_P(Models, PredictorOf,
                         ::testing::Values(nn::ModelKind::gcn, nn::ModelKind::sage,
                                           nn::ModelKind::gin, nn::ModelKind::gat,
                                           nn::ModelKind::gatv2, nn::ModelKind::agnn,
                                           nn::ModelKind::sgc, nn::ModelKind::cheb),
                         [](const auto& instance) {
                           return std::string(to_string(instance.param));
                         });

TEST(Predictor, propagates_again_for_precomputed_models) {
  nn::ModelConfig config = small_model(nn::ModelKind::sgc);
  config.precomputed = true;
  for (const Dataset& dataset :
       {learnable_vertices(), with_sparse_features(learnable_vertices())}) {
    const Checkpoint checkpoint = trained_checkpoint(dataset, config);
    Predictor predictor(checkpoint, dataset);
    Matrix<float> logits(120, 3);
    for (int run = 0; run < 2; ++run) {
      predictor.run(logits);
      expect_same_bits(logits, by_hand(checkpoint, dataset));
    }
  }
}

TEST(Predictor, serves_several_labels_per_vertex) {
  const Dataset dataset = learnable_multi_labels();
  const Checkpoint checkpoint = trained_checkpoint(dataset, small_model(nn::ModelKind::gcn));
  Predictor predictor(checkpoint, dataset);
  Matrix<float> logits(120, 3);
  predictor.run(logits);
  expect_same_bits(logits, by_hand(checkpoint, dataset));
}

TEST(Predictor, several_run_at_once_one_per_thread) {
  const Dataset dataset = learnable_vertices();
  const Checkpoint checkpoint = trained_checkpoint(dataset, small_model(nn::ModelKind::gatv2));
  const Matrix<float> expected = by_hand(checkpoint, dataset);
  std::vector<Matrix<float>> results(4);
  std::vector<std::thread> threads;
  for (Matrix<float>& logits : results) {
    threads.emplace_back([&] {
      Predictor predictor(checkpoint, dataset.graph);
      logits = Matrix<float>(120, 3);
      for (int run = 0; run < 20; ++run) predictor.run(dense(dataset), logits);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Matrix<float>& logits : results) expect_same_bits(logits, expected);
}

TEST(Predictor, goes_on_after_an_error) {
  const Dataset dataset = learnable_vertices();
  const Checkpoint checkpoint = trained_checkpoint(dataset, small_model(nn::ModelKind::gcn));
  Predictor predictor(checkpoint, dataset.graph);
  Matrix<float> logits(120, 3);
  expect_error(ErrorCode::invalid_argument, {"features are 120 x 8, expected 120 x 9"},
               [&] { predictor.run(Matrix<float>(120, 8, 0.0f), logits); });
  Matrix<float> wrong(119, 3);
  expect_error(ErrorCode::invalid_argument, {"logits are 119 x 3, expected 120 x 3"},
               [&] { predictor.run(dense(dataset), wrong); });
  Matrix<float> bad = other_features(dataset);
  bad(7, 2) = std::numeric_limits<float>::quiet_NaN();
  expect_error(ErrorCode::bad_data, {"vertex 7"}, [&] { predictor.run(bad, logits); });
  expect_error(ErrorCode::invalid_argument, {"no features"}, [&] { predictor.run(logits); });
  const MatrixView<const float> elsewhere(dense(dataset).data(), 120, 9,
                                          Device{DeviceKind::cuda, 0});
  expect_error(ErrorCode::invalid_argument, {"features lie on cuda:0"},
               [&] { predictor.run(elsewhere, logits); });
  predictor.run(dense(dataset), logits);
  expect_same_bits(logits, by_hand(checkpoint, dataset));
}

TEST(Predictor, refuses_what_it_was_not_trained_for) {
  const Dataset dataset = learnable_vertices();
  Checkpoint checkpoint = trained_checkpoint(dataset, small_model(nn::ModelKind::gcn));
  Dataset narrow = dataset;
  narrow.features = std::make_shared<const Matrix<float>>(120, 4, 1.0f);
  expect_error(ErrorCode::invalid_argument, {"4 features", "9"},
               [&] { Predictor(checkpoint, narrow); });
  expect_error(ErrorCode::invalid_argument, {"2 x 3"},
               [&] { Predictor(checkpoint, from_coo(2, 3, {}, {})); });
  checkpoint.weights.clear();
  expect_error(ErrorCode::invalid_argument, {"no trained weights"},
               [&] { Predictor(checkpoint, dataset.graph); });
}

}  // namespace
}  // namespace tessera::train
