// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/random_coo.hpp"
#include "support/training_data.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/link_predictor.hpp"
#include "tessera/train/link_trainer.hpp"
#include "tessera/train/predict.hpp"

namespace tessera::train {
namespace {

using links::LinkPart;
using testing::expect_error;
using testing::ThreadScope;

/// Two rings of neighbours, so that a link is between vertices that are near.
Dataset rings(bool directed = false) {
  constexpr VertexId vertices = 60, near = 4;
  std::vector<VertexId> sources, targets;
  for (VertexId v = 0; v < vertices; ++v) {
    const VertexId ring = v / 30 * 30;
    for (VertexId step = 1; step <= near; ++step) {
      const VertexId other = ring + (v - ring + step) % 30;
      sources.push_back(v);
      targets.push_back(other);
      if (directed) continue;
      sources.push_back(other);
      targets.push_back(v);
    }
  }
  Dataset dataset;
  dataset.name = "rings";
  dataset.graph = from_edges(vertices, sources, targets);
  return dataset;
}

TrainOptions link_options(std::int64_t epochs) {
  TrainOptions options = link_training();
  options.epochs = epochs;
  return options;
}

std::vector<double> numbers_of(const TrainReport& report) {
  std::vector<double> numbers;
  for (const RunReport& run : report.runs) {
    for (const EpochRecord& record : run.curve) {
      const Evaluation& e = record.evaluation;
      numbers.insert(numbers.end(),
                     {record.loss, e.train, e.validation, e.test, e.validation_loss, e.test_other});
    }
  }
  if (report.links) {
    numbers.push_back(report.links->roc_auc);
    numbers.push_back(report.links->mean_reciprocal_rank.value_or(-1));
  }
  return numbers;
}

const nn::ModelConfig encoder = link_encoder(nn::ModelKind::gcn);

TEST(Links, are_learned_by_every_decoder_and_loss) {
  for (const auto kind :
       {nn::LinkDecoderKind::dot, nn::LinkDecoderKind::distmult, nn::LinkDecoderKind::mlp}) {
    for (const LinkLoss loss : {LinkLoss::bce, LinkLoss::bpr, LinkLoss::margin}) {
      TrainOptions options = link_options(60);
      options.links.decoder = kind;
      options.links.loss = loss;
      const TrainReport report = fit(rings(), encoder, options);
      EXPECT_GT(report.test.mean, 0.8) << nn::to_string(kind) << ", " << to_string(loss);
      EXPECT_EQ(report.metric, Metric::roc_auc);
      ASSERT_TRUE(report.links);
      EXPECT_EQ(report.links->roc_auc, report.test.mean);
      EXPECT_EQ(report.links->average_precision, report.test_other.mean);
    }
  }
}

TEST(Links, get_the_same_bits_for_any_number_of_threads) {
  for (const auto kind :
       {nn::LinkDecoderKind::dot, nn::LinkDecoderKind::distmult, nn::LinkDecoderKind::mlp}) {
    const auto with_threads = [&](int threads) {
      const ThreadScope scope(threads);
      TrainOptions options = link_options(4);
      options.links.decoder = kind;
      options.links.shares.supervision = 0.3;
      options.links.pairs_per_batch = 20;
      return numbers_of(fit(rings(), encoder, options));
    };
    EXPECT_EQ(with_threads(1), with_threads(3)) << nn::to_string(kind);
  }
}

void expect_resumes_to_the_same_bits(std::int64_t pairs_per_batch) {
  const test::TemporaryFolder folder;
  TrainOptions options = link_options(12);
  options.links.pairs_per_batch = pairs_per_batch;
  options.runs = 2;
  options.average_weights = 0.9;
  const std::vector<double> whole = numbers_of(fit(rings(), encoder, options));
  options.checkpoint.path = folder / "links.tsr";
  options.pause_at = 5;
  fit(rings(), encoder, options);
  options.pause_at = 0;
  options.checkpoint.resume = true;
  EXPECT_EQ(numbers_of(fit(rings(), encoder, options)), whole);
}

TEST(Links, resume_to_the_same_bits) {
  expect_resumes_to_the_same_bits(0);
  expect_resumes_to_the_same_bits(50);
}

TEST(Links, are_asked_for_in_batches_as_even_as_they_can_be) {
  const Dataset dataset = rings();
  for (const auto kind : {nn::LinkDecoderKind::dot, nn::LinkDecoderKind::mlp}) {
    TrainOptions options = link_options(60);
    options.links.decoder = kind;
    options.links.pairs_per_batch = 50;
    const Problem problem = prepare(dataset, encoder, options);
    ASSERT_EQ(problem.split.train.size(), 204u);  // of which five steps ask for 40 each
    LinkTrainer trainer(
        problem, std::make_unique<nn::Model>(encoder, problem.num_features(), 16, 1), options, 1);
    const double first = trainer.train_epoch();
    EXPECT_EQ(trainer.step(), 5);
    EXPECT_EQ(trainer.optimiser().steps(), 5);
    for (int epoch = 1; epoch < 60; ++epoch) trainer.train_epoch();
    EXPECT_EQ(trainer.step(), 300);
    EXPECT_LT(trainer.train_epoch(), 0.8 * first);
    EXPECT_GT(trainer.evaluate().test, 0.8);
  }
}

/// The options of a run on a GPU and on the CPU, of which the first replays its steps.
TEST(LinksOnDevice, are_learned_as_on_the_cpu_and_replayed) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  for (const auto kind :
       {nn::LinkDecoderKind::dot, nn::LinkDecoderKind::distmult, nn::LinkDecoderKind::mlp}) {
    for (const LinkLoss loss : {LinkLoss::bce, LinkLoss::bpr, LinkLoss::margin}) {
      for (const std::int64_t pairs_per_batch : {0, 50}) {
        SCOPED_TRACE(std::string(nn::to_string(kind)) + ", " + to_string(loss) + ", " +
                     std::to_string(pairs_per_batch));
        TrainOptions options = link_options(6);
        options.links.decoder = kind;
        options.links.loss = loss;
        options.links.pairs_per_batch = pairs_per_batch;
        options.links.negatives = links::NegativeKind::by_degree;
        options.links.per_positive = 2;
        const Dataset dataset = rings();
        const auto losses = [&](const step::Placement& placement, bool records) {
          options.placement = placement;
          options.record_steps = records;
          const Problem problem = prepare(dataset, encoder, options);
          LinkTrainer trainer(
              problem,
              std::make_unique<nn::Model>(encoder, problem.num_features(), 16, 1, placement),
              options, 1);
          std::vector<double> found;
          for (int epoch = 0; epoch < 6; ++epoch) found.push_back(trainer.train_epoch());
          if (records) {
            EXPECT_NE(trainer.recording_note().find("replayed"), std::string::npos)
                << trainer.recording_note();
          }
          const Evaluation evaluation = trainer.evaluate();
          found.insert(found.end(), {evaluation.validation_loss, evaluation.test});
          return found;
        };
        step::Placement gpu;
        gpu.memory = &default_memory({DeviceKind::cuda, 0});
        const std::vector<double> on_cpu = losses({}, false), on_gpu = losses(gpu, false);
        EXPECT_EQ(losses(gpu, true), on_gpu) << "replayed";
        for (std::size_t i = 0; i + 1 < on_cpu.size(); ++i) {
          EXPECT_NEAR(on_cpu[i], on_gpu[i], 1e-2 * (1 + std::abs(on_cpu[i])));
        }
      }
    }
  }
}

TEST(Links, hold_nothing_back_that_messages_give_away) {
  Dataset dataset = rings();
  const Problem problem = prepare(dataset, encoder, link_options(1));
  const links::LinkSplit split = links::split_links(dataset.graph, problem.link_parts);
  EXPECT_EQ(std::ssize(problem.split.train), split.train.size());
  EXPECT_EQ(std::ssize(problem.split.validation), split.validation.size());
  EXPECT_EQ(std::ssize(problem.split.test), split.test.size());
  EXPECT_EQ(2 * split.train.size(), split.train_graph.num_edges());
  for (std::size_t k = 0; k < split.test.sources.size(); ++k) {
    const auto row = split.test_graph.neighbours(split.test.targets[k]);
    EXPECT_FALSE(std::binary_search(row.begin(), row.end(), split.test.sources[k]));
  }
}

TEST(Links, go_by_the_time_of_a_column_and_by_parts_of_ones_own) {
  Dataset dataset = rings(true);
  const EdgeOffset edges = dataset.graph.num_edges();
  Matrix<float> times(edges, 1);
  for (EdgeOffset k = 0; k < edges; ++k) times(k, 0) = static_cast<float>(edges - k);
  dataset.edge_features = {std::make_shared<const Matrix<float>>(std::move(times)),
                           Names(std::vector<std::string>{"day"})};
  TrainOptions options = link_options(1);
  options.links.time = "day";
  const Problem by_time = prepare(dataset, encoder, options);
  EXPECT_EQ(by_time.link_parts.front(), LinkPart::test);
  EXPECT_EQ(by_time.link_parts.back(), LinkPart::train);
  options.links.time = "hour";
  expect_error(ErrorCode::invalid_argument, {"'day'"}, [&] { prepare(dataset, encoder, options); });
  options.links.time.clear();
  options.links.parts.assign(static_cast<std::size_t>(edges), LinkPart::train);
  options.links.parts[3] = LinkPart::validation;
  const Problem given = prepare(dataset, encoder, options);
  EXPECT_EQ(given.split.validation, std::vector<std::int64_t>{3});
  EXPECT_FALSE(fit(given, encoder, options).tested);
}

TEST(Links, reject_what_cannot_be) {
  const auto rejects = [](const std::string& words, const std::function<void(TrainOptions&)>& ask,
                          const Dataset& dataset, ErrorCode code = ErrorCode::invalid_argument) {
    TrainOptions options = link_options(1);
    ask(options);
    expect_error(code, {words}, [&] { prepare(dataset, encoder, options); });
  };
  const auto nothing = [](TrainOptions&) {};
  Dataset empty;
  empty.graph = from_edges(3, std::vector<VertexId>{}, std::vector<VertexId>{});
  rejects("no edges", nothing, empty);
  Dataset complete;
  complete.graph = from_edges(3, std::vector<VertexId>{0, 0, 1, 1, 2, 2},
                              std::vector<VertexId>{1, 2, 0, 2, 0, 1});
  rejects("every pair", nothing, complete, ErrorCode::bad_data);
  Dataset single;
  single.graph = from_edges(3, std::vector<VertexId>{0}, std::vector<VertexId>{1});
  rejects("none to train on", nothing, single);
  rejects(
      "accuracy", [](TrainOptions& o) { o.metric = Metric::accuracy; }, rings());
  rejects(
      "folds", [](TrainOptions& o) { o.folds = 3; }, rings());
  rejects(
      "embeddings", [](TrainOptions& o) { o.links.embedding = 0; }, rings());
  rejects(
      "validation", [](TrainOptions& o) { o.links.shares.validation = 0; }, rings());
  rejects(
      "-1 pairs in a batch", [](TrainOptions& o) { o.links.pairs_per_batch = -1; }, rings());
  rejects(
      "margin of -2", [](TrainOptions& o) { o.links.margin = -2; }, rings());
  const auto smoothed_margin = [](TrainOptions& o) {
    o.links.loss = LinkLoss::margin;
    o.label_smoothing = 0.1;
  };
  rejects("no labels to smooth", smoothed_margin, rings());
  nn::ModelConfig precomputed = encoder;
  precomputed.precomputed = true;
  expect_error(ErrorCode::invalid_argument, {"held out"},
               [&] { prepare(rings(), precomputed, link_options(1)); });
}

/// A checkpoint of a short training.
Checkpoint trained(const Dataset& dataset, nn::LinkDecoderKind kind) {
  TrainOptions options = link_options(5);
  options.links.decoder = kind;
  options.checkpoint.kept = std::make_shared<Checkpoint>();
  fit(dataset, encoder, options);
  return *options.checkpoint.kept;
}

TEST(LinkPredictor, lists_what_scores_best) {
  for (const bool directed : {false, true}) {
    const Dataset dataset = rings(directed);
    for (const auto kind :
         {nn::LinkDecoderKind::dot, nn::LinkDecoderKind::distmult, nn::LinkDecoderKind::mlp}) {
      LinkPredictor predictor(trained(dataset, kind), dataset);
      constexpr VertexId source = 7;
      const std::vector<VertexId> sources{source};
      const links::TopLists lists = predictor.top(sources, 100);
      links::Pairs all;
      for (VertexId v = 0; v < dataset.graph.num_rows(); ++v) {
        const auto row = dataset.graph.neighbours(v);
        if (v == source || std::binary_search(row.begin(), row.end(), source)) continue;
        all.sources.push_back(source);
        all.targets.push_back(v);
      }
      std::vector<float> scores = predictor.scores(all);
      std::sort(scores.begin(), scores.end(), std::greater<>());
      for (std::size_t i = 0; i < scores.size(); ++i) {
        EXPECT_NEAR(lists.scores(0, static_cast<std::int64_t>(i)), scores[i], 1e-5);
      }
      // K is larger than the graph: the list ends.
      EXPECT_EQ(lists.candidates(0, std::ssize(scores)), -1) << nn::to_string(kind);
      const links::TopLists known = predictor.top(sources, 100, true);
      EXPECT_EQ(known.candidates(0, dataset.graph.num_rows() - 1), -1);
      EXPECT_GE(known.candidates(0, dataset.graph.num_rows() - 2), 0);
    }
  }
}

TEST(LinkPredictor, has_no_direction_where_the_graph_has_none) {
  const Dataset dataset = rings();
  LinkPredictor predictor(trained(dataset, nn::LinkDecoderKind::mlp), dataset);
  const std::vector<float> scores = predictor.scores({{1, 9}, {9, 1}});
  EXPECT_EQ(scores[0], scores[1]);
}

TEST(LinkPredictor, reads_its_checkpoint_from_a_file_and_no_other) {
  const test::TemporaryFolder folder;
  const Dataset dataset = rings();
  const Checkpoint checkpoint = trained(dataset, nn::LinkDecoderKind::distmult);
  save(checkpoint, folder / "links.tsr");
  const Checkpoint loaded = load_checkpoint(folder / "links.tsr");
  EXPECT_EQ(loaded.decoder, nn::LinkDecoderKind::distmult);
  const links::Pairs pairs{{0, 3}, {1, 50}};
  EXPECT_EQ(LinkPredictor(loaded, dataset).scores(pairs),
            LinkPredictor(checkpoint, dataset).scores(pairs));
  expect_error(ErrorCode::invalid_argument, {"predicts links"},
               [&] { predict(checkpoint, dataset); });
  expect_error(ErrorCode::invalid_argument, {"vertex 60"}, [&] {
    LinkPredictor(checkpoint, dataset).scores({{60}, {0}});
  });
}

}  // namespace
}  // namespace tessera::train
