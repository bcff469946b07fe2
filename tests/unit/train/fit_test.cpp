// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "support/expect_error.hpp"
#include "support/random_coo.hpp"
#include "support/training_data.hpp"
#include "tessera/ops/plan_store.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {
namespace {

using test::learnable_graphs;
using test::learnable_multi_labels;
using test::learnable_vertices;
using test::short_training;
using test::small_model;
using testing::expect_error;
using testing::ThreadScope;

/// Every number of a report that must not depend on time or threads.
std::vector<double> numbers_of(const TrainReport& report) {
  std::vector<double> numbers;
  for (const RunReport& run : report.runs) {
    for (const EpochRecord& record : run.curve) {
      const Evaluation& e = record.evaluation;
      numbers.insert(numbers.end(),
                     {record.loss, e.train, e.validation, e.test, e.validation_loss});
    }
  }
  return numbers;
}

TEST(Splits, runs_go_through_them_in_turns) {
  Dataset dataset = learnable_vertices();
  dataset.splits = {{dataset.train, dataset.validation, dataset.test},
                    {dataset.validation, dataset.test, dataset.train}};
  TrainOptions options = short_training(5);
  options.runs = 3;
  const nn::ModelConfig model = small_model(nn::ModelKind::gcn);
  const TrainReport all = fit(dataset, model, options);
  ASSERT_EQ(all.runs.size(), 3u);
  EXPECT_EQ(all.runs[0].split, 0);
  EXPECT_EQ(all.runs[1].split, 1);
  EXPECT_EQ(all.runs[2].split, 0);
  // A run is the one that its split and its seed alone make.
  options.runs = 1;
  options.seed += 1;
  options.split_index = 1;
  const TrainReport second = fit(dataset, model, options);
  EXPECT_EQ(second.runs[0].split, 1);
  EXPECT_EQ(second.runs[0].best, all.runs[1].best);
}

TEST(Splits, without_a_test_part_nothing_is_tested) {
  Dataset dataset = learnable_vertices();
  dataset.test = SharedArray<std::int64_t>();
  for (const Metric metric : {Metric::accuracy, Metric::roc_auc}) {
    if (metric == Metric::roc_auc) {
      std::vector<std::int64_t> two;
      for (const std::int64_t label : std::get<ClassLabels>(dataset.labels))
        two.push_back(label % 2);
      dataset.labels = ClassLabels(std::move(two));
    }
    TrainOptions options = short_training(20);
    options.metric = metric;
    const TrainReport report = fit(dataset, small_model(nn::ModelKind::gcn), options);
    EXPECT_FALSE(report.tested);
    EXPECT_EQ(report.test.mean, 0);
    EXPECT_GT(report.validation.mean, 0.5);
  }
}

class EveryModel : public ::testing::TestWithParam<nn::ModelKind> {};

TEST_P(EveryModel, learns_the_communities) {
  TrainOptions options = short_training(60);
  if (GetParam() == nn::ModelKind::sgc) options.optimiser.learning_rate = 0.2;
  const TrainReport report = fit(learnable_vertices(), small_model(GetParam()), options);
  ASSERT_EQ(report.runs.size(), 1u);
  EXPECT_GT(report.test.mean, 0.75) << report.model;
  EXPECT_LT(report.runs[0].curve.back().loss, report.runs[0].curve.front().loss);
  EXPECT_GT(report.parameters, 0);
}

TEST_P(EveryModel, same_bits_for_any_number_of_threads) {
  const auto with_threads = [&](int threads) {
    const ThreadScope scope(threads);
    return numbers_of(fit(learnable_vertices(), small_model(GetParam()), short_training(4)));
  };
  EXPECT_EQ(with_threads(1), with_threads(3));
}

TEST_P(EveryModel, classifies_graphs) {
  TrainOptions options = short_training(30);
  options.batching = Batching::graphs;
  options.graphs_per_batch = 16;
  const TrainReport report = fit(learnable_graphs(), small_model(GetParam(), true), options);
  EXPECT_GT(report.test.mean, 0.7) << report.model;
}

INSTANTIATE_TEST_SUITE_P(Models, EveryModel,
                         ::testing::Values(nn::ModelKind::gcn, nn::ModelKind::sage,
                                           nn::ModelKind::gin, nn::ModelKind::gat,
                                           nn::ModelKind::gatv2, nn::ModelKind::agnn,
                                           nn::ModelKind::sgc, nn::ModelKind::cheb),
                         [](const auto& instance) {
                           return std::string(to_string(instance.param));
                         });

TEST(Fit, several_labels_per_vertex) {
  const TrainReport report =
      fit(learnable_multi_labels(), small_model(nn::ModelKind::gcn), short_training(80));
  EXPECT_EQ(report.metric, Metric::micro_f1);
  EXPECT_GT(report.test.mean, 0.8);
}

TEST(Fit, processing_the_graph_in_every_step_changes_nothing) {
  TrainOptions kept = short_training(6);
  TrainOptions again = kept;
  again.process_every_step = true;
  for (const nn::ModelKind kind : {nn::ModelKind::gcn, nn::ModelKind::gat}) {
    const TrainReport a = fit(learnable_vertices(), small_model(kind), kept);
    const TrainReport b = fit(learnable_vertices(), small_model(kind), again);
    const auto &one = a.runs.at(0).curve, &other = b.runs.at(0).curve;
    ASSERT_EQ(one.size(), other.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_DOUBLE_EQ(one[i].loss, other[i].loss);
      EXPECT_EQ(one[i].evaluation, other[i].evaluation);
    }
  }
  again.batching = Batching::clusters;
  EXPECT_THROW(fit(learnable_vertices(), small_model(nn::ModelKind::gcn), again), Error);
  again.batching = Batching::full;
  EXPECT_THROW(fit(learnable_graphs(), small_model(nn::ModelKind::gin, true), again), Error);
}

TEST(Fit, edges_as_they_are_train_alike) {
  TrainOptions kept = short_training(6);
  TrainOptions scattered = kept;
  scattered.process_every_step = true;
  scattered.plans.allow_nondeterministic = true;
  for (const nn::ModelKind kind : {nn::ModelKind::gcn, nn::ModelKind::sage, nn::ModelKind::gin,
                                   nn::ModelKind::gat, nn::ModelKind::cheb}) {
    const TrainReport a = fit(learnable_vertices(), small_model(kind), kept);
    const TrainReport b = fit(learnable_vertices(), small_model(kind), scattered);
    const auto &one = a.runs.at(0).curve, &other = b.runs.at(0).curve;
    ASSERT_EQ(one.size(), other.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_NEAR(one[i].loss, other[i].loss, 2e-4) << to_string(kind) << ", epoch " << i;
    }
  }
}

TEST(Fit, clusters_reach_what_the_full_batch_reaches) {
  for (const std::int64_t together : {1, 2}) {
    TrainOptions options = short_training(40);
    options.batching = Batching::clusters;
    options.parts = 5;
    options.parts_per_batch = together;
    options.partition_method = "multilevel";
    const TrainReport report = fit(learnable_vertices(), small_model(nn::ModelKind::sage), options);
    EXPECT_GT(report.test.mean, 0.75) << together;
  }
}

TEST(Fit, a_given_partition_is_used) {
  TrainOptions options = short_training(2);
  options.batching = Batching::clusters;
  Partition halves;
  halves.parts = 2;
  for (int v = 0; v < 120; ++v) halves.assignment.push_back(v % 2);
  options.partition = halves;
  EXPECT_NO_THROW(fit(learnable_vertices(), small_model(nn::ModelKind::gcn), options));
  options.partition->assignment.pop_back();
  expect_error(ErrorCode::bad_data, {},
               [&] { fit(learnable_vertices(), small_model(nn::ModelKind::gcn), options); });
}

TEST(Fit, a_full_batch_of_graphs_works_too) {
  const TrainReport report =
      fit(learnable_graphs(), small_model(nn::ModelKind::gin, true), short_training(40));
  EXPECT_GT(report.test.mean, 0.7);
}

TEST(Fit, runs_differ_by_seed_and_are_summed_up) {
  TrainOptions options = short_training(5);
  options.runs = 3;
  options.seed = 11;
  const TrainReport report = fit(learnable_vertices(), small_model(nn::ModelKind::gcn), options);
  ASSERT_EQ(report.runs.size(), 3u);
  EXPECT_EQ(report.runs[2].seed, 13u);
  EXPECT_NE(report.runs[0].curve[0].loss, report.runs[1].curve[0].loss);
  const double mean =
      (report.runs[0].best.test + report.runs[1].best.test + report.runs[2].best.test) / 3;
  EXPECT_NEAR(report.test.mean, mean, 1e-12);
  EXPECT_EQ(report.epochs, 15);
}

TEST(Fit, runs_side_by_side_are_the_same_runs) {
  const ThreadScope scope(3);
  TrainOptions options = short_training(5);
  options.runs = 4;
  const auto one_by_one =
      numbers_of(fit(learnable_vertices(), small_model(nn::ModelKind::gat), options));
  options.parallel_runs = true;
  EXPECT_EQ(numbers_of(fit(learnable_vertices(), small_model(nn::ModelKind::gat), options)),
            one_by_one);
}

TEST(Fit, folds_test_every_graph_once) {
  TrainOptions options = short_training(2);
  options.folds = 5;
  options.runs = 5;
  const TrainReport report =
      fit(learnable_graphs(), small_model(nn::ModelKind::gin, true), options);
  EXPECT_EQ(report.runs.size(), 5u);
  EXPECT_NE(report.notes.back().find("5-fold"), std::string::npos);
}

TEST(Fit, stops_early) {
  TrainOptions options = short_training(500);
  options.patience = 5;
  const TrainReport report = fit(learnable_vertices(), small_model(nn::ModelKind::gcn), options);
  EXPECT_TRUE(report.runs[0].stopped_early);
  EXPECT_LT(report.runs[0].epochs, 500);
}

TEST(Fit, the_best_validation_epoch_counts) {
  const TrainReport report =
      fit(learnable_vertices(), small_model(nn::ModelKind::gcn), short_training(25));
  const RunReport& run = report.runs[0];
  for (const EpochRecord& record : run.curve) {
    EXPECT_FALSE(better(record.evaluation, run.best)) << record.epoch;
  }
  EXPECT_EQ(run.curve[static_cast<std::size_t>(run.best_epoch - 1)].evaluation, run.best);
}

TEST(Fit, evaluating_less_often_trains_the_same_model) {
  const nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  TrainOptions options = short_training(20);
  const RunReport whole = fit(learnable_vertices(), config, options).runs[0];
  options.evaluate_every = 3;
  const RunReport sparse = fit(learnable_vertices(), config, options).runs[0];
  ASSERT_EQ(sparse.curve.size(), 20u);
  Evaluation best;
  std::int64_t best_epoch = 0;
  for (std::size_t i = 0; i < 20; ++i) {
    const std::int64_t epoch = sparse.curve[i].epoch;
    EXPECT_EQ(sparse.curve[i].loss, whole.curve[i].loss);
    EXPECT_EQ(sparse.curve[i].evaluated, epoch % 3 == 0);
    EXPECT_EQ(sparse.curve[i].evaluation,
              epoch % 3 == 0 ? whole.curve[i].evaluation : Evaluation{});
    if (epoch % 3 != 0 || (best_epoch > 0 && !better(whole.curve[i].evaluation, best))) continue;
    best = whole.curve[i].evaluation;
    best_epoch = epoch;
  }
  EXPECT_EQ(sparse.best_epoch, best_epoch);
  EXPECT_EQ(sparse.best, best);
  options.evaluate_every = 21;
  expect_error(ErrorCode::invalid_argument, {"evaluate_every is 21", "20 epochs"},
               [&] { fit(learnable_vertices(), config, options); });
  options.evaluate_every = 0;
  expect_error(ErrorCode::invalid_argument, {"evaluate_every is 0"},
               [&] { fit(learnable_vertices(), config, options); });
}

TEST(Fit, early_stopping_looks_at_evaluated_epochs_alone) {
  TrainOptions options = short_training(500);
  options.patience = 7;
  options.evaluate_every = 4;
  const RunReport run = fit(learnable_vertices(), small_model(nn::ModelKind::gcn), options).runs[0];
  EXPECT_TRUE(run.stopped_early);
  EXPECT_EQ(run.epochs % 4, 0);
  // Eight epochs without progress, since the seventh is not looked at.
  double highest = -1, lowest = std::numeric_limits<double>::infinity();
  std::int64_t progress = 0;
  for (const EpochRecord& record : run.curve) {
    if (!record.evaluated) continue;
    const Evaluation& e = record.evaluation;
    if (e.validation >= highest || e.validation_loss <= lowest) progress = record.epoch;
    highest = std::max(highest, e.validation);
    lowest = std::min(lowest, e.validation_loss);
  }
  EXPECT_EQ(run.epochs - progress, 8);
}

TEST(Fit, a_trainer_starts_and_finishes_epochs) {
  const Dataset data = learnable_vertices();
  const nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  const TrainOptions options = short_training(5);
  const Problem problem = prepare(data, config, options);
  Trainer one(problem, problem.split, config, options, 1);
  Trainer other(problem, problem.split, config, options, 1);
  expect_error(ErrorCode::invalid_argument, {"no epoch was started"}, [&] { one.finish_epoch(); });
  for (int epoch = 0; epoch < 5; ++epoch) {
    one.start_epoch(epoch % 2 == 0);
    const EpochNumbers numbers = one.finish_epoch();
    EXPECT_EQ(numbers.loss, other.train_epoch());
    EXPECT_EQ(numbers.evaluation.has_value(), epoch % 2 == 0);
    if (numbers.evaluation) {
      EXPECT_EQ(*numbers.evaluation, other.evaluate());
    }
  }
  EXPECT_EQ(one.epoch(), 5);
  Trainer third(problem, problem.split, config, options, 1);
  EXPECT_EQ(third.train_epochs(6), other.train_epoch());
  EXPECT_EQ(third.epoch(), 6);
}

TEST(Fit, precomputed_features_change_nothing_but_rounding) {
  nn::ModelConfig sgc = small_model(nn::ModelKind::sgc);
  const TrainReport plain = fit(learnable_vertices(), sgc, short_training(10));
  sgc.precomputed = true;
  const TrainReport precomputed = fit(learnable_vertices(), sgc, short_training(10));
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(plain.runs[0].curve[i].loss, precomputed.runs[0].curve[i].loss, 1e-4);
  }
}

TEST(Fit, every_optimiser_lowers_the_loss) {
  for (const auto kind :
       {ops::OptimiserKind::adam, ops::OptimiserKind::adamw, ops::OptimiserKind::sgd}) {
    TrainOptions options = short_training(30);
    options.optimiser.kind = kind;
    options.optimiser.momentum = kind == ops::OptimiserKind::sgd ? 0.9 : 0;
    options.optimiser.learning_rate = kind == ops::OptimiserKind::sgd ? 0.2 : 0.02;
    nn::ModelConfig config = small_model(nn::ModelKind::gcn);
    config.dropout = config.input_dropout = 0;
    const TrainReport report = fit(learnable_vertices(), config, options);
    EXPECT_LT(report.runs[0].curve.back().loss, report.runs[0].curve.front().loss);
  }
}

TEST(Fit, tells_of_every_epoch_and_stops_when_told_to) {
  std::int64_t told = 0;
  TrainOptions options = short_training(10);
  options.on_epoch = [&](const EpochRecord& record) {
    EXPECT_EQ(record.epoch, ++told);
    if (told == 4) throw std::runtime_error("enough");
  };
  EXPECT_THROW(fit(learnable_vertices(), small_model(nn::ModelKind::gcn), options),
               std::runtime_error);
  EXPECT_EQ(told, 4);
}

TEST(Fit, divergence_is_an_error) {
  TrainOptions options = short_training(50);
  options.optimiser.kind = ops::OptimiserKind::sgd;
  options.optimiser.learning_rate = 1e30;
  expect_error(ErrorCode::invalid_argument, {"diverged", "lower the learning rate"},
               [&] { fit(learnable_vertices(), small_model(nn::ModelKind::gcn), options); });
}

TEST(Fit, a_device_that_is_not_there_is_an_error) {
  if (num_gpus() > 0) GTEST_SKIP() << "there is a GPU";
  expect_error(ErrorCode::backend_unavailable, {}, [] {
    require_available({DeviceKind::cuda, 0});
  });
}

TEST(Fit, what_no_memory_can_hold_is_an_error_at_once) {
  const auto expect_too_large = [](const std::string& option, auto change) {
    nn::ModelConfig config = small_model(nn::ModelKind::gcn);
    TrainOptions options = short_training(1);
    change(config, options);
    expect_error(ErrorCode::out_of_memory, {option},
                 [&] { fit(learnable_vertices(), config, options); });
  };
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  for (const std::int64_t count : {huge, std::int64_t{1} << 33}) {
    expect_too_large("--runs", [&](auto&, TrainOptions& o) { o.runs = count; });
    expect_too_large("--layers", [&](nn::ModelConfig& c, auto&) { c.layers = count; });
    expect_too_large("--hidden", [&](nn::ModelConfig& c, auto&) { c.hidden = count; });
    expect_too_large("--heads", [&](nn::ModelConfig& c, auto&) {
      c.kind = nn::ModelKind::gat;
      c.heads = count;
    });
  }
}

TEST(Fit, batches_larger_than_the_data_are_all_of_it) {
  TrainOptions options = short_training(2);
  options.batching = Batching::clusters;
  options.parts = 4;
  options.parts_per_batch = std::numeric_limits<std::int64_t>::max();
  const TrainReport report = fit(learnable_vertices(), small_model(nn::ModelKind::gcn), options);
  EXPECT_EQ(report.epochs, 2);
}

TEST(Fit, plans_are_made_as_the_options_say_and_kept_in_their_store) {
  const Dataset dataset = learnable_vertices();
  const nn::ModelConfig config = small_model(nn::ModelKind::gat);
  TrainOptions options = short_training();
  options.epochs = 3;
  options.plans.tune = ops::Tune::measured;
  options.plans.strict = true;
  options.plans.store = std::make_shared<ops::PlanStore>();
  const std::vector<double> measured = numbers_of(fit(dataset, config, options));
  EXPECT_GT(options.plans.store->size(), 0u);
  options.plans.tune = ops::Tune::predicted;
  options.plans.stored_only = true;
  EXPECT_EQ(numbers_of(fit(dataset, config, options)), measured) << "the same kernels again";
  options.plans.store = std::make_shared<ops::PlanStore>();
  expect_error(ErrorCode::bad_data, {"no stored plan"}, [&] { fit(dataset, config, options); });
}

TEST(Fit, reports_the_first_step_in_its_parts) {
  const FirstStep first =
      fit(learnable_vertices(), small_model(nn::ModelKind::gcn), short_training(2)).first_step;
  EXPECT_GT(first.upload, 0);
  EXPECT_GT(first.build, 0);
  EXPECT_GT(first.plan, 0);
  EXPECT_GT(first.step, 0);
  EXPECT_EQ(first.capture, 0) << "a CPU records nothing";
}

}  // namespace
}  // namespace tessera::train
