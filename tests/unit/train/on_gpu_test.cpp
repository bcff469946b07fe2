// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "support/files.hpp"
#include "support/training_data.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/predict.hpp"
#include "tessera/train/trainer.hpp"

/// Training on a GPU against training on the CPU.
namespace tessera::train {
namespace {

using test::learnable_graphs;
using test::learnable_multi_labels;
using test::learnable_vertices;
using test::short_training;
using test::small_model;

constexpr Device gpu{DeviceKind::cuda, 0};

TrainOptions on(Device device, std::int64_t epochs) {
  TrainOptions options = short_training(epochs);
  options.placement.memory = &default_memory(device);
  return options;
}

class OnGpu : public ::testing::TestWithParam<nn::ModelKind> {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  }

  static bool evaluates_alike() { return GetParam() != nn::ModelKind::gin; }
};

/// Steps diverge slowly, by rounding alone: masks and first weights are the same bits. But GIN has
/// a bias before its batch norm, which takes any shift away again: its gradient is rounding and
/// nothing else, and Adam makes whole steps of that. Training does not see them; evaluation does,
/// since running means lag behind.
void expect_same_curve(const TrainReport& cpu, const TrainReport& cuda, double tolerance,
                       bool evaluation = true) {
  ASSERT_EQ(cpu.runs.size(), cuda.runs.size());
  const auto &a = cpu.runs[0].curve, &b = cuda.runs[0].curve;
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i].loss, b[i].loss, tolerance * (1 + std::abs(a[i].loss))) << "epoch " << i + 1;
    if (!evaluation) continue;
    EXPECT_NEAR(a[i].evaluation.validation_loss, b[i].evaluation.validation_loss,
                tolerance * (1 + std::abs(a[i].evaluation.validation_loss)))
        << "epoch " << i + 1;
  }
}

bool has_note(const TrainReport& report, const std::string& part) {
  return std::any_of(report.notes.begin(), report.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

std::string joined_notes(const TrainReport& report) {
  std::string text;
  for (const std::string& note : report.notes) text += note + "; ";
  return text;
}

TEST_P(OnGpu, follows_the_curve_of_the_cpu) {
  const Dataset data = learnable_vertices();
  const nn::ModelConfig model = small_model(GetParam());
  const TrainReport cpu = fit(data, model, on({}, 12));
  const TrainReport cuda = fit(data, model, on(gpu, 12));
  expect_same_curve(cpu, cuda, 2e-4, evaluates_alike());
  EXPECT_TRUE(has_note(cuda, "recorded and replayed")) << joined_notes(cuda);
  EXPECT_FALSE(has_note(cpu, "recorded"));
  EXPECT_GT(cuda.first_step.capture, 0);
}

TEST_P(OnGpu, replays_what_it_would_have_done) {
  const Dataset data = learnable_vertices();
  const nn::ModelConfig model = small_model(GetParam());
  TrainOptions options = on(gpu, 20);
  options.schedule = Schedule::steps;
  options.rate_decay_every = 2;
  const TrainReport replayed = fit(data, model, options);
  options.record_steps = false;
  const TrainReport eager = fit(data, model, options);
  EXPECT_FALSE(has_note(eager, "recorded"));
  expect_same_curve(eager, replayed, 0);
}

/// Rates that follow the curve, factors that a device finds for itself, and means of the weights.
TEST_P(OnGpu, replays_the_rules_of_training) {
  const Dataset data = learnable_vertices();
  const nn::ModelConfig model = small_model(GetParam());
  for (const Schedule schedule : {Schedule::cosine, Schedule::plateau}) {
    TrainOptions options = on(gpu, 20);
    options.schedule = schedule;
    options.rate_decay_every = schedule == Schedule::plateau ? 1 : 0;
    options.stop_by = StopBy::metric;
    options.warm_up = 2;
    options.clip_gradients = 0.05;
    options.average_weights = 0.9;
    options.class_weights = {true, {}};
    options.label_smoothing = 0.1;
    const TrainReport replayed = fit(data, model, options);
    options.record_steps = false;
    expect_same_curve(fit(data, model, options), replayed, 0);
    if (schedule == Schedule::plateau) continue;  // rounding may tell when one begins
    options.placement = {};
    expect_same_curve(fit(data, model, options), replayed, 2e-4, evaluates_alike());
  }
}

/// The device is an epoch ahead of the numbers: what is decided by them must not depend on that.
TEST_P(OnGpu, stops_where_it_would_have_stopped) {
  const test::TemporaryFolder folder;
  const Dataset data = learnable_vertices();
  const nn::ModelConfig model = small_model(GetParam());
  for (const std::int64_t every : {1, 3}) {
    TrainOptions options = on(gpu, 300);
    options.patience = 5;
    options.evaluate_every = every;
    options.record_steps = false;
    const TrainReport eager = fit(data, model, options);
    options.record_steps = true;
    const TrainReport ahead = fit(data, model, options);
    options.checkpoint.path = folder / ("model" + std::to_string(every));
    const TrainReport kept = fit(data, model, options);
    for (const TrainReport* report : {&ahead, &kept}) {
      expect_same_curve(eager, *report, 0);
      EXPECT_EQ(report->runs[0].epochs, eager.runs[0].epochs);
      EXPECT_EQ(report->runs[0].best_epoch, eager.runs[0].best_epoch);
      EXPECT_EQ(report->runs[0].best, eager.runs[0].best);
      EXPECT_EQ(report->runs[0].stopped_early, eager.runs[0].stopped_early);
    }
    // The weights that were kept are those of the best epoch.
    const Checkpoint checkpoint = load_checkpoint(options.checkpoint.path);
    const RunReport& run = kept.runs[0];
    EXPECT_EQ(best_epoch(checkpoint).epoch, run.best_epoch);
    options.checkpoint.path.clear();
    const Problem problem = prepare(data, model, options);
    Trainer trainer(problem, problem.split, model, options, options.seed);
    for (std::int64_t epoch = 0; epoch < run.best_epoch; ++epoch) trainer.train_epoch();
    const auto expected = store(trainer.model().state());
    ASSERT_EQ(checkpoint.weights.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(std::equal(expected[i].array.bytes.begin(), expected[i].array.bytes.end(),
                             checkpoint.weights[i].array.bytes.begin()))
          << expected[i].path;
    }
  }
}

TEST_P(OnGpu, queued_epochs_do_what_single_ones_do) {
  const Dataset data = learnable_vertices();
  const nn::ModelConfig model = small_model(GetParam());
  const TrainOptions options = on(gpu, 12);
  const Problem problem = prepare(data, model, options);
  Trainer single(problem, problem.split, model, options, 1);
  Trainer queued(problem, problem.split, model, options, 1);
  std::vector<Evaluation> expected;
  std::vector<double> losses;
  for (int epoch = 0; epoch < 12; ++epoch) {
    losses.push_back(single.train_epoch());
    expected.push_back(single.evaluate());
  }
  std::size_t finished = 0;
  const auto finish = [&] {
    const EpochNumbers numbers = queued.finish_epoch();
    EXPECT_EQ(numbers.loss, losses[finished]);
    ASSERT_TRUE(numbers.evaluation.has_value());
    EXPECT_EQ(*numbers.evaluation, expected[finished]);
    EXPECT_GT(numbers.step_seconds, 0);
    EXPECT_GE(numbers.seconds, numbers.step_seconds);
    ++finished;
  };
  queued.start_epoch(true);
  for (int epoch = 1; epoch < 12; ++epoch) {
    queued.start_epoch(true);
    finish();
  }
  EXPECT_TRUE(queued.runs_ahead());
  finish();
  Trainer at_once(problem, problem.split, model, options, 1);
  EXPECT_EQ(at_once.train_epochs(12), losses.back());
  // One that is given up while its device works.
  at_once.start_epoch(false);
}

/// Before any step nothing of it is there to be recorded with the evaluation.
TEST_P(OnGpu, evaluates_before_it_trains) {
  const nn::ModelConfig model = small_model(GetParam());
  for (const Metric metric : {Metric::automatic, Metric::roc_auc}) {
    SCOPED_TRACE(to_string(metric));
    TrainOptions options = on(gpu, 40);
    options.metric = metric;
    const Problem problem = prepare(learnable_multi_labels(), model, options);
    Trainer recorded(problem, problem.split, model, options, 1);
    options.record_steps = false;
    Trainer eager(problem, problem.split, model, options, 1);
    EXPECT_EQ(recorded.evaluate(), eager.evaluate());
    EXPECT_FALSE(recorded.runs_ahead());
    EXPECT_EQ(recorded.evaluate(), eager.evaluate());
    EXPECT_EQ(recorded.train_epoch(), eager.train_epoch());
    EXPECT_EQ(recorded.evaluate(), eager.evaluate());
    EXPECT_EQ(recorded.runs_ahead(), metric != Metric::roc_auc);
    EXPECT_NE(recorded.recording_note().find("recorded and replayed"), std::string::npos)
        << recorded.recording_note();
    EXPECT_EQ(recorded.recording_note().find("not recorded"), std::string::npos)
        << recorded.recording_note();
    for (int epoch = 1; epoch < 40; ++epoch) {
      SCOPED_TRACE(epoch);
      recorded.start_epoch(true);
      eager.start_epoch(true);
      const EpochNumbers got = recorded.finish_epoch(), expected = eager.finish_epoch();
      EXPECT_EQ(got.loss, expected.loss);
      EXPECT_EQ(got.evaluation, expected.evaluation);
    }
  }
}

TEST_P(OnGpu, sparse_features) {
  const Dataset data = test::with_sparse_features(learnable_vertices());
  const nn::ModelConfig model = small_model(GetParam());
  expect_same_curve(fit(data, model, on({}, 6)), fit(data, model, on(gpu, 6)), 2e-4,
                    evaluates_alike());
}

INSTANTIATE_TEST_SUITE_P(Models, OnGpu,
                         ::testing::Values(nn::ModelKind::gcn, nn::ModelKind::sage,
                                           nn::ModelKind::gin, nn::ModelKind::gat,
                                           nn::ModelKind::gatv2, nn::ModelKind::agnn,
                                           nn::ModelKind::sgc, nn::ModelKind::cheb),
                         [](const auto& instance) {
                           return std::string(to_string(instance.param));
                         });

class GpuTraining : public OnGpu {};

TEST_P(GpuTraining, several_labels_clusters_and_graphs) {
  const nn::ModelConfig model = small_model(GetParam());
  expect_same_curve(fit(learnable_multi_labels(), model, on({}, 6)),
                    fit(learnable_multi_labels(), model, on(gpu, 6)), 2e-4, evaluates_alike());
  const auto in_clusters = [](Device device) {
    TrainOptions options = on(device, 4);
    options.batching = Batching::clusters;
    options.parts = 4;
    return options;
  };
  expect_same_curve(fit(learnable_vertices(), model, in_clusters({})),
                    fit(learnable_vertices(), model, in_clusters(gpu)), 2e-4, evaluates_alike());
  const auto processed = [](Device device) {
    TrainOptions options = on(device, 6);
    options.process_every_step = true;
    return options;
  };
  expect_same_curve(fit(learnable_vertices(), model, processed({})),
                    fit(learnable_vertices(), model, processed(gpu)), 2e-4, evaluates_alike());
  const auto scattered = [](Device device) {
    TrainOptions options = on(device, 6);
    options.process_every_step = true;
    options.plans.allow_nondeterministic = true;
    return options;
  };
  expect_same_curve(fit(learnable_vertices(), model, scattered({})),
                    fit(learnable_vertices(), model, scattered(gpu)), 2e-4, evaluates_alike());
  const auto in_graphs = [](Device device) {
    TrainOptions options = on(device, 4);
    options.batching = Batching::graphs;
    options.graphs_per_batch = 16;
    return options;
  };
  const nn::ModelConfig pooled = small_model(GetParam(), true);
  expect_same_curve(fit(learnable_graphs(), pooled, in_graphs({})),
                    fit(learnable_graphs(), pooled, in_graphs(gpu)), 2e-4, evaluates_alike());
}

/// Of the models whose sums have patterns: attention weighs edges anew in every step.
TEST_P(OnGpu, orders_vertices_as_the_cpu_does) {
  using nn::ModelKind;
  const bool attends = GetParam() == ModelKind::gat || GetParam() == ModelKind::gatv2 ||
                       GetParam() == ModelKind::agnn;
  if (attends) GTEST_SKIP() << "train --pattern is not for attention";
  const auto ordered = [](Device device, Batching batching) {
    TrainOptions options = on(device, 4);
    options.batching = batching;
    options.parts = 4;
    options.graphs_per_batch = 16;
    options.pattern = parse_pattern_choice("1:2:4");
    return options;
  };
  const nn::ModelConfig model = small_model(GetParam());
  for (const Batching batching : {Batching::full, Batching::clusters}) {
    expect_same_curve(fit(learnable_vertices(), model, ordered({}, batching)),
                      fit(learnable_vertices(), model, ordered(gpu, batching)), 2e-4,
                      evaluates_alike());
  }
  const nn::ModelConfig pooled = small_model(GetParam(), true);
  expect_same_curve(fit(learnable_graphs(), pooled, ordered({}, Batching::graphs)),
                    fit(learnable_graphs(), pooled, ordered(gpu, Batching::graphs)), 2e-4,
                    evaluates_alike());
}

/// Whatever is recorded, made ahead or kept: batches are what they would be, bit for bit.
TEST_P(GpuTraining, batches_train_the_same_bits_twice) {
  const auto curve = [](const Dataset& data, const nn::ModelConfig& model, TrainOptions options,
                        bool records) {
    options.record_steps = records;
    options.evaluate_every = 3;  // after some steps were recorded
    return fit(data, model, options).runs.at(0).curve;
  };
  const auto expect_same_bits = [&](const Dataset& data, const nn::ModelConfig& model,
                                    const TrainOptions& options) {
    const auto recorded = curve(data, model, options, true);
    const auto plain = curve(data, model, options, false);
    ASSERT_EQ(recorded.size(), plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(recorded[i].loss, plain[i].loss) << i;
  };
  TrainOptions clusters = on(gpu, 8);
  clusters.batching = Batching::clusters;
  clusters.parts = 4;
  expect_same_bits(learnable_vertices(), small_model(GetParam()), clusters);
  clusters.parts_per_batch = 2;
  expect_same_bits(learnable_vertices(), small_model(GetParam()), clusters);
  TrainOptions graphs = on(gpu, 8);
  graphs.batching = Batching::graphs;
  graphs.graphs_per_batch = 16;
  expect_same_bits(learnable_graphs(), small_model(GetParam(), true), graphs);
}

TEST_P(GpuTraining, checkpoints_travel_between_devices) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "model";
  const Dataset data = learnable_vertices();
  const nn::ModelConfig model = small_model(GetParam());
  TrainOptions half = on(gpu, 10);
  half.checkpoint.path = path;
  half.on_epoch = [](const EpochRecord& record) {
    if (record.epoch == 5) throw std::runtime_error("stop");
  };
  EXPECT_THROW(fit(data, model, half), std::runtime_error);
  PredictOptions there;
  there.placement.memory = &default_memory(gpu);
  const Checkpoint stored = load_checkpoint(path);
  const Prediction on_cpu = predict(stored, data), on_gpu = predict(stored, data, there);
  ASSERT_EQ(on_cpu.logits.size(), on_gpu.logits.size());
  for (std::int64_t i = 0; i < on_cpu.logits.size(); ++i) {
    ASSERT_NEAR(on_cpu.logits.data()[i], on_gpu.logits.data()[i], 1e-4);
  }
  // What began on the GPU goes on as if it had begun here.
  TrainOptions rest = on({}, 10);
  rest.checkpoint.path = path;
  rest.checkpoint.resume = true;
  const TrainReport resumed = fit(data, model, rest);
  expect_same_curve(fit(data, model, on({}, 10)), resumed, 5e-4, evaluates_alike());
}

INSTANTIATE_TEST_SUITE_P(Models, GpuTraining,
                         ::testing::Values(nn::ModelKind::gcn, nn::ModelKind::gin,
                                           nn::ModelKind::gat),
                         [](const auto& instance) {
                           return std::string(to_string(instance.param));
                         });

}  // namespace
}  // namespace tessera::train
