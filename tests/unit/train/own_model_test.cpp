// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>

#include "support/expect_error.hpp"
#include "support/training_data.hpp"
#include "tessera/nn/dense.hpp"
#include "tessera/nn/gcn.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {
namespace {

using test::learnable_graphs;
using test::learnable_vertices;
using test::short_training;
using test::small_model;
using testing::expect_error;

/// The library's model as if it were somebody else's.
ModelMaker ours(const nn::ModelConfig& config) {
  return [config](const nn::DataShape& shape, const step::Placement& placement) {
    return std::make_unique<nn::Model>(config, shape.features, shape.outputs, 0, placement);
  };
}

void expect_same_numbers(const TrainReport& a, const TrainReport& b) {
  ASSERT_EQ(a.runs.size(), b.runs.size());
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(a.model, b.model);
  for (std::size_t run = 0; run < a.runs.size(); ++run) {
    ASSERT_EQ(a.runs[run].curve.size(), b.runs[run].curve.size());
    for (std::size_t i = 0; i < a.runs[run].curve.size(); ++i) {
      EXPECT_EQ(a.runs[run].curve[i].loss, b.runs[run].curve[i].loss);
      EXPECT_EQ(a.runs[run].curve[i].evaluation, b.runs[run].curve[i].evaluation);
    }
  }
}

TEST(OwnModel, fit_trains_it_to_the_bits_of_the_librarys_own) {
  TrainOptions options = short_training(5);
  options.runs = 2;
  for (const auto kind : {nn::ModelKind::gcn, nn::ModelKind::gat}) {
    const nn::ModelConfig config = small_model(kind);
    expect_same_numbers(fit(learnable_vertices(), ours(config), options),
                        fit(learnable_vertices(), config, options));
  }
  const nn::ModelConfig pooled = small_model(nn::ModelKind::gin, true);
  expect_same_numbers(fit(learnable_graphs(), ours(pooled), options),
                      fit(learnable_graphs(), pooled, options));
}

TEST(OwnModel, layers_in_a_row_learn) {
  const auto maker = [](const nn::DataShape& shape, const step::Placement& placement) {
    auto model = std::make_unique<nn::Sequential>(placement);
    nn::GcnOptions first;
    first.in = shape.features;
    first.out = 8;
    first.output.activation = ops::Activation::relu;
    nn::LinearOptions second;
    second.in = 8;
    second.out = shape.outputs;
    model->add("first", std::make_unique<nn::Gcn>(first, placement));
    model->add("second", std::make_unique<nn::Linear>(second, placement));
    return model;
  };
  const TrainReport report = fit(learnable_vertices(), maker, short_training(60));
  EXPECT_GT(report.test.mean, 0.6);
  EXPECT_EQ(report.model, "GCN(9, 8, relu) > Linear(8, 3)");
}

TEST(OwnModel, a_trainer_trains_it_and_its_weights_can_be_kept) {
  const Dataset dataset = learnable_vertices();
  const nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  const TrainOptions options = short_training(3);
  const Problem problem = prepare(dataset, options);
  Trainer own(problem, problem.split, ours(config)(problem.shape(), {}), options, 7);
  Trainer known(problem, problem.split, config, options, 7);
  EXPECT_EQ(own.train_epochs(3), known.train_epochs(3));
  const auto stored = store(own.model().state());
  Trainer other(problem, problem.split, ours(config)(problem.shape(), {}), options, 8);
  restore(stored, other.model().state(), "kept");
  EXPECT_EQ(other.evaluate(), own.evaluate());
}

TEST(OwnModel, what_does_not_fit_is_an_error) {
  const Dataset dataset = learnable_vertices();
  const nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  TrainOptions options = short_training(3);
  const auto of_widths = [&](std::int64_t in, std::int64_t out, step::Placement placement = {}) {
    return [=](const nn::DataShape&, const step::Placement&) {
      return std::make_unique<nn::Model>(config, in, out, 0, placement);
    };
  };
  expect_error(ErrorCode::invalid_argument, {"maps 8 features to 3", "9"},
               [&] { fit(dataset, of_widths(8, 3), options); });
  expect_error(ErrorCode::invalid_argument, {"maps 9 features to 4", "3 outputs"},
               [&] { fit(dataset, of_widths(9, 4), options); });
  step::Placement in_double;
  in_double.precision = Precision::fp64;
  expect_error(ErrorCode::invalid_argument, {"fp64", "fp32"},
               [&] { fit(dataset, of_widths(9, 3, in_double), options); });
  expect_error(ErrorCode::invalid_argument, {"no model"}, [&] {
    fit(
        dataset,
        [](const nn::DataShape&, const step::Placement&) { return std::unique_ptr<nn::Layer>(); },
        options);
  });
  options.checkpoint.path = "somewhere.tsr";
  expect_error(ErrorCode::unsupported, {"checkpoint", "CheckpointOptions::kept"},
               [&] { fit(dataset, ours(config), options); });
}

}  // namespace
}  // namespace tessera::train
