// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/training_data.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/class_report.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/trainer.hpp"
#include "train/class_weights.hpp"
#include "train/run_position.hpp"
#include "train/schedule.hpp"

/// Schedules, clipping, averages, weights of classes, and what training stops by.
namespace tessera::train {
namespace {

using test::learnable_graphs;
using test::learnable_multi_labels;
using test::learnable_vertices;
using test::read_file;
using test::short_training;
using test::small_model;
using test::TemporaryFolder;
using testing::expect_error;

TEST(Schedules, multiply_the_rate) {
  TrainOptions options = short_training(10);
  options.warm_up = 3;
  EXPECT_DOUBLE_EQ(rate_factor(options, 0, 0), 0.25);
  EXPECT_DOUBLE_EQ(rate_factor(options, 2, 0), 0.75);
  EXPECT_EQ(rate_factor(options, 3, 7), 1);
  options.schedule = Schedule::cosine;
  options.warm_up = 2;
  EXPECT_EQ(rate_factor(options, 2, 0), 1);
  EXPECT_NEAR(rate_factor(options, 6, 0), 0.5, 1e-15);
  EXPECT_GT(rate_factor(options, 9, 0), 0);
  options.schedule = Schedule::steps;
  options.rate_decay_every = 4;
  EXPECT_EQ(rate_factor(options, 8, 0), 0.25);
  options.schedule = Schedule::plateau;
  EXPECT_EQ(rate_factor(options, 8, 3), 0.125);
}

TEST(Schedules, need_options_that_go_together) {
  const auto problem = [](auto&& change, std::vector<std::string> words) {
    TrainOptions options = short_training(10);
    change(options);
    expect_error(ErrorCode::invalid_argument, words, [&] { validate(options); });
  };
  problem([](TrainOptions& o) { o.rate_decay_every = 5; },
          {"rate_decay_every is 5, but the schedule is constant", "steps or plateau"});
  problem([](TrainOptions& o) { o.schedule = Schedule::plateau; }, {"rate_decay_every is 0"});
  problem([](TrainOptions& o) { o.warm_up = 10; }, {"warm_up is 10", "10 epochs", "fewer"});
  problem([](TrainOptions& o) { o.average_weights = 1.5; }, {"average_weights is 1.5", "0.99"});
  problem([](TrainOptions& o) { o.label_smoothing = 1; }, {"label_smoothing is 1", "0.1"});
  problem([](TrainOptions& o) { o.clip_gradients = -1; }, {"clip_gradients is -1"});
}

/// Epochs with these metrics and losses.
RunPosition after(const std::vector<std::pair<double, double>>& numbers, RunPosition begin) {
  for (const auto& [metric, loss] : numbers) {
    EpochRecord record;
    record.evaluation.validation = metric;
    record.evaluation.validation_loss = loss;
    begin.advance(record);
  }
  return begin;
}

TEST(RunPosition, follows_what_training_stops_by) {
  const std::vector<std::pair<double, double>> curve = {{0.5, 2},   {0.7, 1},   {0.7, 1.5},
                                                        {0.6, 0.9}, {0.6, 1.1}, {0.6, 1.2}};
  const RunPosition either = after(curve, RunPosition());
  EXPECT_EQ(either.best_epoch, 2);
  EXPECT_EQ(either.waited, 2);
  const RunPosition metric = after(curve, RunPosition(StopBy::metric));
  EXPECT_EQ(metric.best_epoch, 2);
  EXPECT_EQ(metric.waited, 4);
  const RunPosition loss = after(curve, RunPosition(StopBy::loss));
  EXPECT_EQ(loss.best_epoch, 4);
  EXPECT_EQ(loss.waited, 2);
  EXPECT_EQ(loss.plateaus, 0) << "none is asked for";
  EXPECT_EQ(after(curve, RunPosition(StopBy::metric, 2)).plateaus, 2);
  EXPECT_EQ(after(curve, RunPosition(StopBy::loss, 2)).plateaus, 1);
}

using Change = std::function<void(TrainOptions&)>;

std::map<std::string, Change> rules() {
  return {{"cosine",
           [](TrainOptions& o) {
             o.schedule = Schedule::cosine;
             o.warm_up = 4;
           }},
          {"plateau",
           [](TrainOptions& o) {
             o.schedule = Schedule::plateau;
             o.rate_decay_every = 2;
             o.stop_by = StopBy::metric;
             o.optimiser.learning_rate = 0.5;
           }},
          {"clipped", [](TrainOptions& o) { o.clip_gradients = 0.01; }},
          {"averaged", [](TrainOptions& o) { o.average_weights = 0.8; }},
          {"by loss",
           [](TrainOptions& o) {
             o.stop_by = StopBy::loss;
             o.patience = 3;
             o.optimiser.learning_rate = 0.2;
           }},
          {"weighed",
           [](TrainOptions& o) {
             o.class_weights = {true, {}};
             o.label_smoothing = 0.2;
             o.metric = Metric::macro_f1;
           }},
          {"in clusters", [](TrainOptions& o) {
             o.batching = Batching::clusters;
             o.parts = 4;
             o.class_weights = {true, {}};
             o.clip_gradients = 0.1;
             o.average_weights = 1;
             o.warm_up = 5;
           }}};
}

struct Stop : std::runtime_error {
  Stop() : std::runtime_error("stop") {}
};

TEST(Rules, resumed_runs_end_in_the_same_bits) {
  const Dataset data = learnable_vertices();
  const nn::ModelConfig model = small_model(nn::ModelKind::gin);
  for (const auto& [name, change] : rules()) {
    SCOPED_TRACE(name);
    const TemporaryFolder folder;
    const auto options_for = [&, change = change](const std::string& path) {
      TrainOptions options = short_training(12);
      options.runs = 2;
      options.checkpoint = {path, 3, true};
      change(options);
      return options;
    };
    const TrainReport whole = fit(data, model, options_for(folder / "whole"));
    TrainOptions plain = options_for({});
    plain.checkpoint = {};
    const TrainReport unwritten = fit(data, model, plain);
    EXPECT_EQ(unwritten.runs[1].best, whole.runs[1].best);
    TrainOptions broken = options_for(folder / "broken");
    std::int64_t left = 7;
    broken.on_epoch = [&](const EpochRecord&) {
      if (--left == 0) throw Stop();
    };
    EXPECT_THROW(fit(data, model, broken), Stop);
    fit(data, model, options_for(folder / "broken"));
    EXPECT_EQ(read_file(folder / "whole"), read_file(folder / "broken"));
    for (const std::int64_t pause : {4, 9, 0}) {
      TrainOptions paused = options_for(folder / "paused");
      paused.pause_at = pause;
      const TrainReport report = fit(data, model, paused);
      EXPECT_LE(report.runs[0].epochs, pause == 0 ? 12 : pause);
    }
    EXPECT_EQ(read_file(folder / "whole"), read_file(folder / "paused"));
  }
}

TEST(Rules, are_learned_with) {
  for (const auto& [name, change] : rules()) {
    SCOPED_TRACE(name);
    TrainOptions options = short_training(60);
    change(options);
    options.patience = 0;
    options.optimiser.learning_rate = 0.02;
    EXPECT_GT(fit(learnable_vertices(), small_model(nn::ModelKind::gcn), options).test.mean, 0.7);
  }
  TrainOptions options = short_training(30);
  options.batching = Batching::graphs;
  options.graphs_per_batch = 16;
  options.class_weights = {true, {}};
  options.clip_gradients = 1;
  options.average_weights = 0.9;
  options.metric = Metric::average_precision;
  const auto graphs = fit(learnable_graphs(), small_model(nn::ModelKind::gin, true), options);
  EXPECT_GT(graphs.test.mean, 0.7);
}

TEST(Rules, a_cosine_has_its_number_of_epochs) {
  const TemporaryFolder folder;
  TrainOptions options = short_training(6);
  options.schedule = Schedule::cosine;
  options.checkpoint = {folder / "run", 3, true};
  const nn::ModelConfig model = small_model(nn::ModelKind::gcn);
  fit(learnable_vertices(), model, options);
  options.epochs = 8;
  expect_error(ErrorCode::invalid_argument, {"training.epochs = 6, not 8"},
               [&] { fit(learnable_vertices(), model, options); });
}

/// All numbers of a layer, one behind another.
std::vector<float> numbers_in(const std::vector<nn::NamedTensor>& tensors) {
  std::vector<float> numbers;
  for (const auto& [path, tensor] : tensors) {
    const MatrixView<const float> values = std::as_const(*tensor).as<float>();
    numbers.insert(numbers.end(), values.data, values.data + tensor->size());
  }
  return numbers;
}

TEST(Averages, are_means_over_the_steps) {
  TrainOptions options = short_training(5);
  options.average_weights = 1;
  const nn::ModelConfig model = small_model(nn::ModelKind::gin);
  const Problem problem = prepare(learnable_vertices(), model, options);
  Trainer trainer(problem, problem.split, model, options, 1);
  trainer.evaluate();  // there is no mean yet
  std::vector<double> sums;
  for (int epoch = 0; epoch < 5; ++epoch) {
    trainer.train_epoch();
    const std::vector<float> now = numbers_in(trainer.model().state());
    sums.resize(now.size());
    for (std::size_t i = 0; i < now.size(); ++i) sums[i] += static_cast<double>(now[i]) / 5;
  }
  const std::vector<float> before = numbers_in(trainer.model().state());
  trainer.evaluate();
  EXPECT_EQ(numbers_in(trainer.model().state()), before);
  trainer.optimiser().put_means_in();
  const std::vector<float> means = numbers_in(trainer.model().state());
  for (std::size_t i = 0; i < means.size(); ++i) ASSERT_NEAR(means[i], sums[i], 1e-5) << i;
  trainer.optimiser().take_means_out();
  EXPECT_EQ(numbers_in(trainer.model().state()), before);
}

TEST(Clipping, bounds_a_step) {
  TrainOptions options = short_training(1);
  options.optimiser.kind = ops::OptimiserKind::sgd;
  options.optimiser.learning_rate = 1;
  options.optimiser.weight_decay = 0;
  options.clip_gradients = 1e-3;
  const nn::ModelConfig model = small_model(nn::ModelKind::gcn);
  const Problem problem = prepare(learnable_vertices(), model, options);
  Trainer trainer(problem, problem.split, model, options, 1);
  const std::vector<float> before = numbers_in(trainer.model().state());
  trainer.train_epoch();
  const std::vector<float> after = numbers_in(trainer.model().state());
  double squares = 0;
  for (std::size_t i = 0; i < before.size(); ++i) squares += std::pow(after[i] - before[i], 2);
  EXPECT_NEAR(std::sqrt(squares), 1e-3, 1e-5);
}

TEST(ClassWeights, are_read) {
  EXPECT_TRUE(parse_class_weights("none").none());
  EXPECT_TRUE(parse_class_weights("balanced").balanced);
  EXPECT_EQ(to_string(parse_class_weights("a=2,b=c=0.5")), "a=2,b=c=0.5");
  for (const char* text : {"", "a", "a=", "a=x", "=1", "a=-1", "a=1,,b=2", "a=inf"}) {
    expect_error(ErrorCode::invalid_argument, {"is no weight of a class", "spam=5,ham=1"},
                 [&] { parse_class_weights(text); });
  }
  expect_error(ErrorCode::invalid_argument, {"class 'a' has two weights"},
               [&] { parse_class_weights("a=1,b=1,a=1"); });
}

TEST(ClassWeights, fit_the_classes) {
  Dataset data = learnable_vertices();
  TrainOptions options = short_training(20);
  options.class_weights = {true, {}};
  const nn::ModelConfig model = small_model(nn::ModelKind::gcn);
  const Problem problem = prepare(data, model, options);
  const TrainLoss loss = train_loss(problem, problem.split, options);
  std::vector<double> weights(3, 0.0);
  for (const std::int64_t item : problem.split.train) {
    const auto k = static_cast<std::size_t>(problem.labels[static_cast<std::size_t>(item)]);
    weights[k] += static_cast<double>(loss.class_weights[k]);
  }
  for (const double weight : weights) {
    EXPECT_NEAR(weight, static_cast<double>(problem.split.train.size()) / 3, 1e-4);
  }
  options.class_weights = parse_class_weights("0=1000");
  options.checkpoint.kept = std::make_shared<Checkpoint>();
  fit(data, model, options);
  const Prediction prediction = predict(*options.checkpoint.kept, data);
  EXPECT_GT(std::count(prediction.classes.begin(), prediction.classes.end(), 0), 60);
  options.class_weights = parse_class_weights("red=2");
  expect_error(ErrorCode::invalid_argument, {"there is no class 'red'", "such as 0"},
               [&] { prepare(data, model, options); });
  options.class_weights = {true, {}};
  expect_error(ErrorCode::invalid_argument, {"several labels"},
               [&] { prepare(learnable_multi_labels(), model, options); });
}

/// What training reports is what a report on the kept weights says.
TEST(Metrics, are_those_of_the_report_by_class) {
  const Dataset data = learnable_vertices();
  for (const Metric metric :
       {Metric::macro_f1, Metric::weighted_f1, Metric::roc_auc, Metric::average_precision}) {
    SCOPED_TRACE(to_string(metric));
    TrainOptions options = short_training(6);
    options.metric = metric;
    options.checkpoint.kept = std::make_shared<Checkpoint>();
    const TrainReport trained = fit(data, small_model(nn::ModelKind::gcn), options);
    const Checkpoint& kept = *options.checkpoint.kept;
    const ClassReport report = report_on(predict(kept, data), kept.split.test);
    const double expected = metric == Metric::macro_f1      ? report.macro.f1
                            : metric == Metric::weighted_f1 ? report.weighted.f1
                            : metric == Metric::roc_auc     ? *report.macro.roc_auc
                                                            : *report.macro.average_precision;
    EXPECT_NEAR(trained.test.mean, expected, 1e-12);
  }
}

}  // namespace
}  // namespace tessera::train
