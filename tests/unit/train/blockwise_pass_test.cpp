// SPDX-License-Identifier: Apache-2.0
#include "train/blockwise_pass.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/training_data.hpp"
#include "tessera/nn/input.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/predict.hpp"
#include "train/host.hpp"

namespace tessera::train {
namespace {

using nn::ModelKind;
using test::learnable_vertices;
using test::short_training;
using test::small_model;
using testing::expect_error;

constexpr ModelKind kinds[] = {ModelKind::gcn, ModelKind::sage,  ModelKind::gin,
                               ModelKind::gat, ModelKind::gatv2, ModelKind::sgc};

void expect_the_same(const nn::ModelConfig& config, const Dataset& data, std::int64_t rows) {
  SCOPED_TRACE(::testing::Message() << nn::describe(config) << ", " << rows << " rows");
  const Problem problem = prepare(data, config, short_training());
  nn::Model model(config, problem.num_features(), problem.outputs, 3);
  nn::InputFeatures features(problem.features, {}, !model.accepts_sparse());
  step::Topology whole(problem.graph);
  step::Context context;
  context.graph = &whole;
  const Matrix<float> expected = to_host(model.forward(features.input(), context));
  BlockwisePass pass(model, problem.graph, rows, {});
  for (int again = 0; again < 2; ++again) {
    const Matrix<float> found = to_host(pass.run(features.input(), {}, nullptr));
    ASSERT_EQ(found.rows(), expected.rows());
    ASSERT_EQ(found.cols(), expected.cols());
    for (std::int64_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found.data()[i], expected.data()[i], 1e-4) << "element " << i;
    }
  }
}

TEST(BlockwisePass, gives_what_a_pass_over_all_rows_does) {
  for (const ModelKind kind : kinds) {
    for (const std::int64_t rows : {1, 16, 119, 120, 1000}) {
      expect_the_same(small_model(kind), learnable_vertices(), rows);
      expect_the_same(small_model(kind), test::with_sparse_features(learnable_vertices()), rows);
    }
  }
  nn::ModelConfig deep = small_model(ModelKind::gcn);
  deep.layers = 4;
  deep.batch_norm = deep.residual = true;
  expect_the_same(deep, learnable_vertices(), 33);
}

TEST(BlockwisePass, evaluates_and_predicts) {
  for (const ModelKind kind : {ModelKind::gcn, ModelKind::gat}) {
    TrainOptions options = short_training(20);
    options.checkpoint.kept = std::make_shared<Checkpoint>();
    const TrainReport whole = fit(learnable_vertices(), small_model(kind), options);
    const Prediction expected = predict(*options.checkpoint.kept, learnable_vertices());
    options.rows_at_a_time = 17;
    const TrainReport blocks = fit(learnable_vertices(), small_model(kind), options);
    EXPECT_NEAR(whole.test.mean, blocks.test.mean, 0.03);
    EXPECT_NEAR(whole.runs[0].curve[19].evaluation.validation_loss,
                blocks.runs[0].curve[19].evaluation.validation_loss, 1e-4);
    PredictOptions by_rows;
    by_rows.rows_at_a_time = 7;
    const Prediction found = predict(*options.checkpoint.kept, learnable_vertices(), by_rows);
    ASSERT_EQ(found.logits.size(), expected.logits.size());
    for (std::int64_t i = 0; i < found.logits.size(); ++i) {
      EXPECT_NEAR(found.logits.data()[i], expected.logits.data()[i], 1e-3);
    }
    by_rows.embeddings = true;
    expect_error(ErrorCode::invalid_argument, {"last layer"},
                 [&] { predict(*options.checkpoint.kept, learnable_vertices(), by_rows); });
  }
}

TEST(BlockwisePass, refuses_models_that_it_cannot_run) {
  TrainOptions options = short_training(2);
  options.rows_at_a_time = 10;
  for (const Dataset& data : {learnable_vertices(), test::learnable_graphs()}) {
    const bool graphs = !data.graph_labels.empty();
    expect_error(ErrorCode::invalid_argument, {"rows"}, [&] {
      fit(data, small_model(graphs ? ModelKind::gin : ModelKind::cheb, graphs), options);
    });
  }
}

}  // namespace
}  // namespace tessera::train
