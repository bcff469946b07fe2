// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/checkpoint.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/training_data.hpp"
#include "tessera/io/open.hpp"
#include "tessera/ops/plan_store.hpp"
#include "tessera/reorder/permutation.hpp"
#include "tessera/train/fit.hpp"

namespace tessera::train {
namespace {

using test::learnable_vertices;
using test::read_file;
using test::short_training;
using test::small_model;
using test::TemporaryFolder;
using test::write_file;
using testing::expect_error;

struct Stop : std::runtime_error {
  Stop() : std::runtime_error("stop") {}
};

TrainOptions checkpointed(const std::string& path, std::int64_t epochs = 12) {
  TrainOptions options = short_training(epochs);
  options.runs = 2;
  options.checkpoint = {path, 3, true};
  return options;
}

/// Trains, interrupted after `epochs` epochs of the whole.
void train_until(TrainOptions options, const nn::ModelConfig& config, std::int64_t epochs) {
  options.on_epoch = [&](const EpochRecord&) {
    if (--epochs == 0) throw Stop();
  };
  EXPECT_THROW(fit(learnable_vertices(), config, options), Stop);
}

TEST(Checkpoint, a_resumed_run_ends_in_the_same_bits) {
  for (const auto kind : {nn::ModelKind::gcn, nn::ModelKind::gin, nn::ModelKind::gat}) {
    SCOPED_TRACE(nn::to_string(kind));
    const TemporaryFolder folder;
    const nn::ModelConfig config = small_model(kind);
    fit(learnable_vertices(), config, checkpointed(folder / "whole"));
    for (const std::int64_t epochs : {1, 5, 12, 13, 20}) {
      std::filesystem::remove(folder / "broken");
      train_until(checkpointed(folder / "broken"), config, epochs);
      fit(learnable_vertices(), config, checkpointed(folder / "broken"));
      EXPECT_EQ(read_file(folder / "whole"), read_file(folder / "broken")) << epochs;
    }
  }
}

TEST(Checkpoint, epochs_that_were_not_evaluated_are_kept_as_such) {
  const TemporaryFolder folder;
  const nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  const auto every_fifth = [](std::string path) {
    TrainOptions options = checkpointed(path);
    options.evaluate_every = 5;
    return options;
  };
  fit(learnable_vertices(), config, every_fifth(folder / "whole"));
  // Interrupted before the first evaluation, between two, and at one.
  for (const std::int64_t epochs : {2, 4, 5, 7, 14}) {
    std::filesystem::remove(folder / "broken");
    train_until(every_fifth(folder / "broken"), config, epochs);
    const auto curve = load_checkpoint(folder / "broken").runs[0].curve;
    for (const EpochRecord& record : curve) EXPECT_EQ(record.evaluated, record.epoch % 5 == 0);
    fit(learnable_vertices(), config, every_fifth(folder / "broken"));
    EXPECT_EQ(read_file(folder / "whole"), read_file(folder / "broken")) << epochs;
  }
}

TEST(Checkpoint, resuming_from_an_earlier_file_ends_in_the_same_bits) {
  const TemporaryFolder folder;
  const nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  TrainOptions options = checkpointed(folder / "file");
  options.on_epoch = [&](const EpochRecord& record) {
    // What a kill after this epoch would leave behind.
    if (record.run == 0 && record.epoch == 8) {
      std::filesystem::copy_file(folder / "file", folder / "killed");
    }
  };
  fit(learnable_vertices(), config, options);
  EXPECT_EQ(load_checkpoint(folder / "killed").runs[0].curve.size(), 6u);
  fit(learnable_vertices(), config, checkpointed(folder / "killed"));
  EXPECT_EQ(read_file(folder / "file"), read_file(folder / "killed"));
}

TEST(Checkpoint, the_report_of_a_resumed_run_is_that_of_an_unbroken_one) {
  const TemporaryFolder folder;
  const nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  const TrainReport whole = fit(learnable_vertices(), config, checkpointed(folder / "whole"));
  train_until(checkpointed(folder / "broken"), config, 17);
  const TrainReport resumed = fit(learnable_vertices(), config, checkpointed(folder / "broken"));
  ASSERT_EQ(resumed.runs.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(resumed.runs[i].best, whole.runs[i].best);
    EXPECT_EQ(resumed.runs[i].best_epoch, whole.runs[i].best_epoch);
  }
  EXPECT_EQ(resumed.runs[1].curve.size(), 12u);
  EXPECT_EQ(resumed.epochs, 7);
}

TEST(Checkpoint, more_runs_go_on_where_it_ended) {
  const TemporaryFolder folder;
  const nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  TrainOptions longer = checkpointed(folder / "whole");
  longer.runs = 3;
  fit(learnable_vertices(), config, longer);
  fit(learnable_vertices(), config, checkpointed(folder / "more"));
  longer.checkpoint.path = folder / "more";
  fit(learnable_vertices(), config, longer);
  EXPECT_EQ(read_file(folder / "whole"), read_file(folder / "more"));
}

TEST(Checkpoint, more_epochs_prolong_finished_runs_to_the_bits_of_unbroken_ones) {
  for (const auto kind : {nn::ModelKind::gcn, nn::ModelKind::gin, nn::ModelKind::gat}) {
    SCOPED_TRACE(nn::to_string(kind));
    const TemporaryFolder folder;
    const nn::ModelConfig config = small_model(kind);
    const TrainReport whole = fit(learnable_vertices(), config, checkpointed(folder / "whole", 20));
    fit(learnable_vertices(), config, checkpointed(folder / "more", 7));
    fit(learnable_vertices(), config, checkpointed(folder / "more", 12));
    const TrainReport more = fit(learnable_vertices(), config, checkpointed(folder / "more", 20));
    EXPECT_EQ(read_file(folder / "whole"), read_file(folder / "more"));
    EXPECT_EQ(more.epochs, 2 * 8);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(more.runs[i].curve.size(), 20u);
      EXPECT_EQ(more.runs[i].best, whole.runs[i].best);
    }
  }
}

TEST(Checkpoint, keeps_the_plans_it_was_trained_with) {
  const TemporaryFolder folder;
  const nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  fit(learnable_vertices(), config, checkpointed(folder / "file", 2));
  Checkpoint checkpoint = load_checkpoint(folder / "file");
  const ops::PlanStore plans = ops::PlanStore::parse(checkpoint.plans, "checkpoint");
  EXPECT_GT(plans.size(), 0u);
  // A choice that no planner would make is followed when training goes on.
  std::string other = checkpoint.plans;
  const std::string from = "spmm/cpu/rows", to = "spmm/cpu/tiles";
  const std::size_t place = other.find("\t" + from + "\n");
  ASSERT_NE(place, std::string::npos);
  other.replace(place + 1, from.size(), to);
  for (std::size_t line = 0; (line = other.find("candidate\t")) != std::string::npos;) {
    other.erase(line, other.find('\n', line) + 1 - line);  // they say that another was chosen
  }
  checkpoint.plans = other;
  save(checkpoint, folder / "file");
  TrainOptions longer = checkpointed(folder / "file", 4);
  longer.plans.store = std::make_shared<ops::PlanStore>();
  fit(learnable_vertices(), config, longer);
  EXPECT_NE(load_checkpoint(folder / "file").plans.find("\t" + to + "\n"), std::string::npos);
  EXPECT_NE(longer.plans.store->to_text().find("\t" + to + "\n"), std::string::npos);
}

TEST(Checkpoint, runs_that_stopped_early_stay_stopped) {
  const TemporaryFolder folder;
  const nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  TrainOptions options = checkpointed(folder / "file", 400);
  options.patience = 3;
  const TrainReport first = fit(learnable_vertices(), config, options);
  ASSERT_TRUE(first.runs[0].stopped_early && first.runs[1].stopped_early);
  options.epochs = 500;
  const TrainReport again = fit(learnable_vertices(), config, options);
  EXPECT_EQ(again.epochs, 0);
  EXPECT_EQ(again.runs[0].epochs, first.runs[0].epochs);
}

TEST(Checkpoint, fewer_epochs_or_runs_are_an_error) {
  const TemporaryFolder folder;
  const nn::ModelConfig config = small_model(nn::ModelKind::sgc);
  fit(learnable_vertices(), config, checkpointed(folder / "file", 4));
  expect_error(ErrorCode::invalid_argument, {"made for 4 epochs, not 3"},
               [&] { fit(learnable_vertices(), config, checkpointed(folder / "file", 3)); });
  TrainOptions fewer = checkpointed(folder / "file", 4);
  fewer.runs = 1;
  expect_error(ErrorCode::invalid_argument, {"made for 2 runs, not 1"},
               [&] { fit(learnable_vertices(), config, fewer); });
}

TEST(Checkpoint, other_data_of_the_same_size_is_an_error_that_names_the_difference) {
  const TemporaryFolder folder;
  const nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  const TrainOptions options = checkpointed(folder / "file", 3);
  fit(learnable_vertices(), config, options);
  const auto expect_named = [&](const char* part, const Dataset& other) {
    expect_error(ErrorCode::invalid_argument, {"other data", part},
                 [&] { fit(other, config, options); });
  };
  Dataset other = learnable_vertices();
  const DenseFeatures dense = std::get<DenseFeatures>(other.features);
  auto features = std::make_shared<Matrix<float>>(dense->rows(), dense->cols());
  std::copy_n(dense->data(), dense->size(), features->data());
  (*features)(7, 3) += 0.125f;
  other.features = DenseFeatures(std::move(features));
  expect_named("features", other);

  other = learnable_vertices();
  const ClassLabels labels = std::get<ClassLabels>(other.labels);
  std::vector<std::int64_t> changed(labels.begin(), labels.end());
  changed[5] = (changed[5] + 1) % 3;
  other.labels = ClassLabels(std::move(changed));
  expect_named("labels", other);

  other = learnable_vertices();
  std::swap(other.validation, other.test);
  expect_named("split", other);

  other = learnable_vertices();
  other.graph = permuted(other, Permutation::random(120, 3)).graph;
  expect_named("edges", other);

  other = learnable_vertices();
  std::vector<float> ones(static_cast<std::size_t>(other.graph.num_edges()), 1.0f);
  other.graph = other.graph.with_values(std::move(ones));
  expect_named("weights", other);
}

TEST(Checkpoint, a_finished_one_has_nothing_left_to_train) {
  const TemporaryFolder folder;
  const nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  const TrainReport first = fit(learnable_vertices(), config, checkpointed(folder / "file"));
  const TrainReport again = fit(learnable_vertices(), config, checkpointed(folder / "file"));
  EXPECT_EQ(again.epochs, 0);
  EXPECT_EQ(again.test.mean, first.test.mean);
  EXPECT_EQ(again.model, first.model);
}

TEST(Checkpoint, another_model_or_data_set_is_a_clear_error) {
  const TemporaryFolder folder;
  const nn::ModelConfig config = small_model(nn::ModelKind::gcn);
  const TrainOptions options = checkpointed(folder / "file", 3);
  fit(learnable_vertices(), config, options);
  expect_error(ErrorCode::invalid_argument, {"model.kind = gcn, not sage"},
               [&] { fit(learnable_vertices(), small_model(nn::ModelKind::sage), options); });
  nn::ModelConfig wider = config;
  wider.hidden = 9;
  expect_error(ErrorCode::invalid_argument, {"model.hidden = 8, not 9"},
               [&] { fit(learnable_vertices(), wider, options); });
  TrainOptions faster = options;
  faster.optimiser.learning_rate = 0.5;
  expect_error(ErrorCode::invalid_argument, {"training.learning_rate = 0.02, not 0.5"},
               [&] { fit(learnable_vertices(), config, faster); });
  expect_error(ErrorCode::invalid_argument, {"data.vertices = 120, not 90"},
               [&] { fit(learnable_vertices(90), config, options); });
}

TEST(Checkpoint, survives_writing_and_reading) {
  const TemporaryFolder folder;
  const nn::ModelConfig config = small_model(nn::ModelKind::gat);
  train_until(checkpointed(folder / "file"), config, 15);
  const Checkpoint loaded = load_checkpoint(folder / "file");
  EXPECT_EQ(loaded.model, config);
  ASSERT_EQ(loaded.runs.size(), 2u);
  EXPECT_EQ(loaded.runs[0].curve.size(), 12u);
  EXPECT_EQ(loaded.runs[1].curve.size(), 3u);
  save(loaded, folder / "copy");
  EXPECT_EQ(read_file(folder / "file"), read_file(folder / "copy"));
}

TEST(Checkpoint, widths_that_a_model_does_not_use_may_be_larger_than_its_tensors) {
  for (const auto kind : {nn::ModelKind::gcn, nn::ModelKind::sage, nn::ModelKind::gat,
                          nn::ModelKind::gatv2, nn::ModelKind::sgc, nn::ModelKind::cheb}) {
    SCOPED_TRACE(nn::to_string(kind));
    const TemporaryFolder folder;
    nn::ModelConfig config = small_model(kind);
    config.layers = 1;
    config.hidden = 1000;
    config.heads = 1000;
    fit(learnable_vertices(), config, checkpointed(folder / "file", 2));
    EXPECT_EQ(load_checkpoint(folder / "file").model, config);
  }
}

TEST(Checkpoint, damage_is_found_wherever_it_is) {
  const TemporaryFolder folder;
  TrainOptions options = checkpointed(folder / "file", 2);
  options.runs = 1;
  fit(learnable_vertices(), small_model(nn::ModelKind::sgc), options);
  const std::string whole = read_file(folder / "file");
  for (std::size_t place = 0; place < whole.size(); place += 37) {
    std::string damaged = whole;
    damaged[place] = static_cast<char>(damaged[place] ^ 0x10);
    write_file(folder / "damaged", damaged);
    EXPECT_THROW(load_checkpoint(folder / "damaged"), Error) << place;
    write_file(folder / "cut", whole.substr(0, place));
    EXPECT_THROW(load_checkpoint(folder / "cut"), Error) << place;
  }
}

TEST(Checkpoint, a_data_set_is_no_checkpoint_and_the_other_way_round) {
  const TemporaryFolder folder;
  io::save(learnable_vertices(), folder / "data.tsr");
  expect_error(ErrorCode::bad_data, {"is a data set, not a checkpoint"},
               [&] { load_checkpoint(folder / "data.tsr"); });
  TrainOptions options = checkpointed(folder / "run.tsr", 2);
  fit(learnable_vertices(), small_model(nn::ModelKind::sgc), options);
  expect_error(ErrorCode::bad_data, {"checkpoint"}, [&] { io::open(folder / "run.tsr"); });
}

}  // namespace
}  // namespace tessera::train
