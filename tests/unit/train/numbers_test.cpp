// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/numbers.hpp"

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/errors.hpp"
#include "support/files.hpp"
#include "support/training_data.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/predict.hpp"
#include "tessera/train/predictor.hpp"

#include "train/run_position.hpp"

namespace tessera::train {
namespace {

using test::argument_problem;
using test::short_training;
using test::small_model;
using testing::HasSubstr;

constexpr float none = std::numeric_limits<float>::quiet_NaN();

/// Two numbers of each vertex that follow from its features, in units of their own; some missing.
Dataset vertices_with_numbers(VertexId vertices = 120) {
  Dataset dataset = test::learnable_vertices(vertices);
  const DenseFeatures features = std::get<DenseFeatures>(dataset.features);
  auto numbers = std::make_shared<Matrix<float>>(vertices, 2);
  for (std::int64_t v = 0; v < vertices; ++v) {
    (*numbers)(v, 0) = 2000 + 300 * (*features)(v, 0) - 100 * (*features)(v, 4);
    (*numbers)(v, 1) = v % 7 == 3 ? none : -0.001f * (*features)(v, 2);
  }
  dataset.labels = {};
  dataset.targets = {std::move(numbers), Names({"price", "loss, net"})};
  return dataset;
}

Dataset graphs_with_numbers() {
  Dataset dataset = test::learnable_graphs();
  auto numbers = std::make_shared<Matrix<float>>(dataset.num_graphs(), 1);
  for (std::int64_t g = 0; g < numbers->rows(); ++g) {
    (*numbers)(g, 0) =
        10 + 5 * static_cast<float>(dataset.graph_labels[g]) + 0.1f * static_cast<float>(g % 3);
  }
  dataset.graph_labels = {};
  dataset.graph_targets = {std::move(numbers), {}};
  return dataset;
}

nn::ModelConfig plain_model(nn::ModelKind kind = nn::ModelKind::gcn) {
  nn::ModelConfig config = small_model(kind);
  config.input_dropout = config.dropout = config.attention_dropout = 0;
  return config;
}

std::string problem_of(const Dataset& dataset, TrainOptions options = short_training(3),
                       const nn::ModelConfig& config = plain_model()) {
  options.task = Task::numbers;
  return argument_problem([&] { prepare(dataset, config, options); });
}

TEST(NumberQuality, HasTheNumbersOfScikitLearn) {
  // sklearn.metrics: mean_absolute_error, root_mean_squared_error and r2_score of each column.
  Matrix<float> truth(4, 3), predicted(4, 3);
  const float truths[] = {3, 1, 5, -0.5f, none, 5, 2, 4, 5, 7, 8, 5};
  const float answers[] = {2.5f, 2, 5, 0, 9, 5, 2, 4, 5, 8, 6, 6};
  std::copy(std::begin(truths), std::end(truths), truth.data());
  std::copy(std::begin(answers), std::end(answers), predicted.data());
  const std::vector<std::int64_t> all = {0, 1, 2, 3}, some = {0, 1, 2};
  const NumberQuality first = number_quality(predicted, truth, all, 0);
  EXPECT_DOUBLE_EQ(first.mae, 0.5);
  EXPECT_DOUBLE_EQ(first.rmse, 0.6123724356957945);
  EXPECT_DOUBLE_EQ(first.r2, 0.9486081370449679);
  EXPECT_EQ(first.count, 4);
  const NumberQuality second = number_quality(predicted, truth, all, 1);
  EXPECT_DOUBLE_EQ(second.mae, 1);
  EXPECT_DOUBLE_EQ(second.rmse, std::sqrt(5.0 / 3));
  EXPECT_EQ(second.count, 3);
  // Of equal targets: 0, and 1 where all are met.
  EXPECT_EQ(number_quality(predicted, truth, all, 2).r2, 0);
  EXPECT_EQ(number_quality(predicted, truth, some, 2).r2, 1);
  const NumberQuality mean = number_quality(predicted, truth, all);
  EXPECT_DOUBLE_EQ(mean.mae, (0.5 + 1 + 0.25) / 3);
  EXPECT_EQ(mean.count, 11);
  EXPECT_EQ(number_quality(predicted, truth, {}).count, 0);
}

TEST(Numbers, LessIsBetterOfErrors) {
  const Evaluation low{0, 0.5, 0, 1}, high{0, 0.9, 0, 1};
  EXPECT_TRUE(better(low, high, StopBy::either, Metric::rmse));
  EXPECT_FALSE(better(high, low, StopBy::metric, Metric::mae));
  EXPECT_TRUE(better(high, low, StopBy::either, Metric::r2));
  RunPosition position(StopBy::metric, 2, Metric::mae);
  for (const double error : {5.0, 3.0, 4.0, 4.0, 2.0, 2.5}) {
    position.advance({0, position.epoch + 1, 0, {0, error, 0, 0}, true});
  }
  EXPECT_EQ(position.best_epoch, 5);
  EXPECT_EQ(position.waited, 1);
  EXPECT_EQ(position.plateaus, 1);
  RunPosition negative(StopBy::metric, 0, Metric::r2);
  for (const double r2 : {-5.0, -3.0}) {
    negative.advance({0, negative.epoch + 1, 0, {0, r2, 0, 0}, true});
  }
  EXPECT_EQ(negative.best_epoch, 2);
  EXPECT_EQ(negative.waited, 0);
}

TEST(Numbers, AreLearnedAndPredictedInTheirUnits) {
  const Dataset dataset = vertices_with_numbers();
  for (const auto loss :
       {ops::NumberLoss::squared, ops::NumberLoss::absolute, ops::NumberLoss::huber}) {
    SCOPED_TRACE(to_string(loss));
    TrainOptions options = short_training(150);
    options.optimiser.weight_decay = 0;
    options.numbers.loss = loss;
    options.metric = Metric::r2;
    options.checkpoint.kept = std::make_shared<Checkpoint>();
    const TrainReport report = fit(dataset, plain_model(nn::ModelKind::sage), options);
    EXPECT_GT(report.validation.mean, 0.5);
    const Checkpoint& checkpoint = *options.checkpoint.kept;
    const Prediction prediction = predict(checkpoint, dataset);
    ASSERT_TRUE(prediction.numbers);
    EXPECT_EQ(prediction.numbers->name(1), "loss, net");
    EXPECT_TRUE(prediction.classes.empty());
    const NumberQuality quality =
        number_quality(prediction.logits, *dataset.targets.matrix, checkpoint.split.test);
    EXPECT_NEAR(quality.r2, report.runs[0].best.test, 1e-5);
    EXPECT_NEAR(prediction.logits(0, 0), 2100, 300);
    EXPECT_TRUE(std::isnan((*prediction.true_numbers)(3, 1)));
  }
}

TEST(Numbers, AreChosenWhereThereAreNoClasses) {
  const Dataset dataset = vertices_with_numbers();
  EXPECT_EQ(chosen_task(dataset, Task::automatic), Task::numbers);
  EXPECT_FALSE(is_graph_task(dataset, Task::automatic));
  EXPECT_TRUE(is_graph_task(graphs_with_numbers(), Task::numbers));
  EXPECT_EQ(chosen_task(test::learnable_vertices(), Task::automatic), Task::node);
  const Problem problem = prepare(dataset, plain_model(), short_training(3));
  EXPECT_EQ(problem.metric, Metric::rmse);
  EXPECT_THAT(problem.notes, testing::Contains(HasSubstr("predicted as numbers: 'price' and")));
}

TEST(Numbers, OfGraphsAreLearnedInBatches) {
  const Dataset dataset = graphs_with_numbers();
  nn::ModelConfig config = plain_model(nn::ModelKind::gin);
  config.readout = ops::Reduction::sum;
  for (const Batching batching : {Batching::full, Batching::graphs}) {
    TrainOptions options = short_training(30);
    options.batching = batching;
    options.graphs_per_batch = 7;
    options.numbers.loss = ops::NumberLoss::huber;
    options.checkpoint.kept = std::make_shared<Checkpoint>();
    const TrainReport report = fit(dataset, config, options);
    EXPECT_EQ(report.metric, Metric::mae);
    EXPECT_LT(report.runs[0].best.train, 3);
    const Prediction prediction = predict(*options.checkpoint.kept, dataset);
    EXPECT_EQ(prediction.logits.rows(), dataset.num_graphs());
    EXPECT_EQ(prediction.numbers->name(0), "value");
  }
}

/// One vertex after the other in clusters, folds and runs: the numbers stay with their vertices.
TEST(Numbers, StayWithTheirItems) {
  Dataset dataset = vertices_with_numbers();
  TrainOptions options = short_training(5);
  options.batching = Batching::clusters;
  options.parts = 4;
  EXPECT_GT(fit(dataset, plain_model(), options).validation.mean, 0);
  TrainOptions folds = short_training(5);
  folds.folds = 3;
  folds.runs = 3;
  folds.parallel_runs = true;
  const TrainReport report = fit(dataset, plain_model(), folds);
  EXPECT_EQ(report.runs.size(), 3u);
  // Of several runs the weights go with the scale of their own training items.
  folds.parallel_runs = false;
  folds.checkpoint.kept = std::make_shared<Checkpoint>();
  fit(dataset, plain_model(), folds);
  const Checkpoint& kept = *folds.checkpoint.kept;
  double mean = 0;
  for (const std::int64_t v : kept.split.train) mean += (*dataset.targets.matrix)(v, 0);
  EXPECT_NEAR(kept.numbers->means[0], mean / static_cast<double>(kept.split.train.size()), 1e-3);
}

/// A scale of the targets changes nothing but the units.
TEST(Numbers, AreTheSameInOtherUnits) {
  const Dataset dataset = vertices_with_numbers();
  Dataset scaled = dataset;
  auto numbers = std::make_shared<Matrix<float>>(120, 2);
  for (std::int64_t i = 0; i < numbers->size(); ++i) {
    numbers->data()[i] = 1024 * dataset.targets.matrix->data()[i];
  }
  scaled.targets.matrix = numbers;
  const auto rmse = [&](const Dataset& of, bool standardise) {
    TrainOptions options = short_training(20);
    options.numbers.standardise = standardise;
    return fit(of, plain_model(), options).validation.mean;
  };
  EXPECT_NEAR(rmse(scaled, true), 1024 * rmse(dataset, true), 1e-2 * rmse(scaled, true));
  EXPECT_GT(rmse(dataset, false), rmse(dataset, true));
}

TEST(Numbers, AreResumedToTheSameBytes) {
  const test::TemporaryFolder folder;
  const Dataset dataset = vertices_with_numbers();
  TrainOptions options = short_training(12);
  options.patience = 6;
  options.checkpoint.path = folder / "whole";
  fit(dataset, plain_model(), options);
  options.checkpoint.path = folder / "parted";
  options.pause_at = 5;
  fit(dataset, plain_model(), options);
  options.pause_at = 0;
  options.checkpoint.resume = true;
  fit(dataset, plain_model(), options);
  EXPECT_EQ(test::read_file(folder / "whole"), test::read_file(folder / "parted"));
  options.numbers.loss = ops::NumberLoss::absolute;
  EXPECT_THAT(argument_problem([&] { fit(dataset, plain_model(), options); }),
              HasSubstr("numbers.loss = squared, not absolute"));
  Dataset classes = test::learnable_vertices();
  EXPECT_THAT(argument_problem([&] { fit(classes, plain_model(), options); }),
              HasSubstr("the checkpoint predicts numbers, not classes"));
  const Checkpoint loaded = load_checkpoint(folder / "whole");
  ASSERT_TRUE(loaded.numbers);
  EXPECT_EQ(loaded.numbers->name(0), "price");
}

TEST(Numbers, OfAPredictorAreInTheirUnits) {
  const Dataset dataset = vertices_with_numbers();
  TrainOptions options = short_training(5);
  options.checkpoint.kept = std::make_shared<Checkpoint>();
  fit(dataset, plain_model(), options);
  Predictor predictor(*options.checkpoint.kept, dataset);
  Matrix<float> numbers(120, 2);
  predictor.run(numbers);
  const Prediction prediction = predict(*options.checkpoint.kept, dataset);
  EXPECT_TRUE(
      std::equal(numbers.data(), numbers.data() + numbers.size(), prediction.logits.data()));
  Matrix<float> other(120, 2);
  predictor.for_another_thread().run(other);
  EXPECT_TRUE(std::equal(numbers.data(), numbers.data() + numbers.size(), other.data()));
}

TEST(Numbers, AreWrittenUnderTheirNames) {
  const test::TemporaryFolder folder;
  const Dataset dataset = vertices_with_numbers();
  TrainOptions options = short_training(5);
  options.checkpoint.kept = std::make_shared<Checkpoint>();
  fit(dataset, plain_model(), options);
  const Prediction prediction = predict(*options.checkpoint.kept, dataset);
  save(prediction, folder / "n.csv");
  EXPECT_THAT(
      test::read_file(folder / "n.csv"),
      testing::StartsWith("id,price,true(price),\"loss, net\",\"true(loss, net)\",split\n"));
  save(prediction, folder / "s.csv", PredictionForm::brief);
  EXPECT_THAT(test::read_file(folder / "s.csv"), testing::StartsWith("id,price,\"loss, net\"\n"));
  save(prediction, folder / "n.json");
  EXPECT_THAT(test::read_file(folder / "n.json"), HasSubstr("\"true_values\": {\"price\": "));
  save(prediction, folder / "n.npz");
  EXPECT_THAT(argument_problem([&] { save(prediction, folder / "n.txt"); }),
              HasSubstr("numbers, do not fit"));
}

TEST(Numbers, AreLearnedOfClassesThatAreNumbers) {
  Dataset dataset = test::learnable_vertices();
  TrainOptions options = short_training(5);
  options.task = Task::numbers;
  EXPECT_LT(fit(dataset, plain_model(), options).validation.mean, 2);
  dataset.class_names = Names({"1.5", "2", "-7"});
  const Problem problem = prepare(dataset, plain_model(), options);
  const std::int64_t label = std::get<ClassLabels>(dataset.labels)[0];
  EXPECT_EQ((*problem.numbers.matrix)(0, 0), label == 0 ? 1.5f : label == 1 ? 2.0f : -7.0f);
  dataset.class_names = Names({"no", "yes", "maybe"});
  EXPECT_THAT(problem_of(dataset), HasSubstr("class 'no' is no number"));
}

TEST(Numbers, RejectWhatCannotBeLearned) {
  const Dataset good = vertices_with_numbers();
  const auto with = [&](float first, float second) {
    Dataset dataset = good;
    auto numbers = std::make_shared<Matrix<float>>(120, 2);
    for (std::int64_t v = 0; v < 120; ++v) {
      (*numbers)(v, 0) = first;
      (*numbers)(v, 1) = std::isnan(second) ? none : second + static_cast<float>(v);
    }
    dataset.targets.matrix = numbers;
    return dataset;
  };
  EXPECT_THAT(problem_of(with(none, none)), HasSubstr("all numbers to predict are missing"));
  EXPECT_THAT(problem_of(with(5, 1)), HasSubstr("'price' is 5 for all items to train on"));
  EXPECT_THAT(problem_of(with(none, 1)), HasSubstr("no item to train on has a 'price'"));
  Dataset bare = good;
  bare.targets = {};
  EXPECT_THAT(problem_of(bare), HasSubstr("has no numbers to predict"));
  TrainOptions options = short_training(3);
  options.metric = Metric::accuracy;
  EXPECT_THAT(problem_of(good, options), HasSubstr("accuracy of numbers"));
  options = short_training(3);
  options.class_weights.balanced = true;
  EXPECT_THAT(problem_of(good, options), HasSubstr("class_weights: does not go with numbers"));
  options = short_training(3);
  options.label_smoothing = 0.1;
  EXPECT_THAT(problem_of(good, options), HasSubstr("label_smoothing: does not go with numbers"));
  nn::ModelConfig bits = plain_model();
  bits.bits = {8};
  EXPECT_THAT(problem_of(good, short_training(3), bits), HasSubstr("bits: does not go"));
  options = short_training(3);
  options.numbers.huber_delta = 0;
  EXPECT_THAT(problem_of(good, options), HasSubstr("huber_delta is 0"));
  options = short_training(3);
  options.task = Task::node;
  EXPECT_THAT(argument_problem([&] { prepare(good, plain_model(), options); }),
              HasSubstr("the labels are numbers, not classes"));
  options.metric = Metric::rmse;
  EXPECT_THAT(
      argument_problem([&] { prepare(test::learnable_vertices(), plain_model(), options); }),
      HasSubstr("rmse of classes"));
}

/// Ages and the like are no classes where nobody said so.
TEST(Numbers, AreAskedForWhereClassesMakeNoSense) {
  Dataset dataset = test::learnable_vertices();
  std::vector<std::int64_t> ages(120);
  std::iota(ages.begin(), ages.end(), 3);
  dataset.labels = ClassLabels(std::move(ages));
  TrainOptions options = short_training(3);
  EXPECT_THAT(argument_problem([&] { prepare(dataset, plain_model(), options); }),
              HasSubstr("120 different whole numbers, which are hardly classes"));
  options.task = Task::node;
  EXPECT_EQ(prepare(dataset, plain_model(), options).outputs, 120);
}

}  // namespace
}  // namespace tessera::train
