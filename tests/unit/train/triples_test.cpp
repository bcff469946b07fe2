// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/train/triples.hpp"
#include "train/triple_batch.hpp"

namespace tessera {
namespace {

using testing::expect_error;
using train::TripleOptions;

Names numbered(const std::string& prefix, std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(prefix + std::to_string(i));
  return Names(names);
}

/// Entity i is near the entities a few places on, in a ring: for each relation another number of
/// places. Of the last relation, which is the first one turned round, some facts are held out: they
/// follow from the others.
KnowledgeGraph ring(VertexId count) {
  KnowledgeGraph graph;
  graph.name = "ring";
  graph.entities = numbered("e", count);
  graph.relations = numbered("r", 3);
  const auto add = [](Triples& to, VertexId head, std::int32_t relation, VertexId tail) {
    to.heads.push_back(head);
    to.relations.push_back(relation);
    to.tails.push_back(tail);
  };
  for (VertexId i = 0; i < count; ++i) {
    add(graph.train, i, 0, (i + 1) % count);
    add(graph.train, i, 1, (i + 2) % count);
    Triples& part = i % 5 == 0 ? graph.validation : i % 5 == 1 ? graph.test : graph.train;
    add(part, (i + 1) % count, 2, i);
  }
  return graph;
}

TripleOptions small_options(std::int64_t layers) {
  TripleOptions options;
  options.model = {.width = 20, .layers = layers, .blocks = 4};
  options.triples_per_step = 40;
  options.negatives = 3;
  options.epochs = 12;
  options.evaluate_every = 4;
  return options;
}

TEST(TripleTraining, TrainingLearnsWhatFollowsAndSaysHowWell) {
  const KnowledgeGraph graph = ring(50);
  for (const std::int64_t layers : {0, 1, 2}) {
    SCOPED_TRACE(::testing::Message() << layers << " layers");
    TripleOptions options = small_options(layers);
    options.epochs = 40;
    const train::TripleResult result = train::fit_triples(graph, options);
    const train::TripleReport& report = result.report;
    ASSERT_EQ(report.curve.size(), 40u);
    EXPECT_LT(report.curve.back().loss, report.curve.front().loss);
    EXPECT_EQ(report.test.ranks, 2 * graph.test.size());
    // By chance the mean reciprocal rank of 50 is about 0.09.
    EXPECT_GT(report.test.filtered.mean_reciprocal_rank, 0.2);
    EXPECT_GE(report.test.filtered.mean_reciprocal_rank, report.test.raw.mean_reciprocal_rank);
    EXPECT_EQ(report.best_epoch % options.evaluate_every, 0);
  }
}

TEST(TripleTraining, TrainingIsTheSameForAnyNumberOfThreads) {
  const KnowledgeGraph graph = ring(40);
  const int before = num_threads();
  train::TripleResult results[2];
  for (int run = 0; run < 2; ++run) {
    set_num_threads(run == 0 ? 1 : 3);
    results[run] = train::fit_triples(graph, small_options(2));
  }
  set_num_threads(before);
  ASSERT_EQ(results[0].entities.size(), results[1].entities.size());
  for (std::int64_t k = 0; k < results[0].entities.size(); ++k) {
    ASSERT_EQ(results[0].entities.data()[k], results[1].entities.data()[k]) << k;
  }
}

TEST(TripleTraining, RanksLeaveOutWhatIsTrueAndShareTies) {
  // One number each: the score of (h, r, t) is their product.
  KnowledgeGraph graph;
  graph.entities = numbered("e", 4);
  graph.relations = numbered("r", 1);
  graph.train = {{0}, {0}, {3}};
  graph.test = {{0}, {0}, {1}};
  Matrix<float> entities(4, 1), relations(1, 1);
  const float values[] = {1, 2, 2, 3};
  std::copy(std::begin(values), std::end(values), entities.data());
  relations(0, 0) = 1;
  const train::TripleQuality quality =
      train::TripleJudge(graph).quality(entities, relations, graph.test);
  // Tails of 0: entity 3 is better and known, entity 2 ties. Heads of 1: 3 and both of 2 are
  // better.
  EXPECT_EQ(quality.ranks, 2);
  EXPECT_NEAR(quality.filtered.mean_reciprocal_rank, (1 / 1.5 + 1.0 / 4) / 2, 1e-12);
  EXPECT_NEAR(quality.raw.mean_reciprocal_rank, (1 / 2.5 + 1.0 / 4) / 2, 1e-12);
  EXPECT_EQ(quality.filtered.hits_at_1, 0);
  EXPECT_EQ(quality.filtered.hits_at_3, 0.5);
  EXPECT_EQ(quality.filtered.hits_at_10, 1);
  const train::TailLists lists =
      train::likely_tails(entities, relations, {0}, {0}, 3, &graph.train);
  EXPECT_EQ(lists.tails(0, 0), 1);
  EXPECT_EQ(lists.tails(0, 1), 2);
  EXPECT_EQ(lists.tails(0, 2), 0);
}

TEST(TripleTraining, EveryEpochAsksForEachTripleOnce) {
  const Triples all = ring(20).train;
  const train::TripleDraw draw{all.size() / 4, 2, 7};
  std::vector<int> seen(static_cast<std::size_t>(20 * 3 * 20), 0);
  const auto place = [](VertexId head, std::int32_t relation, VertexId tail) {
    return static_cast<std::size_t>((head * 3 + relation) * 20 + tail);
  };
  for (std::int64_t step = 0; step < 4; ++step) {
    const train::AskedTriples asked = train::drawn_triples(all, 20, draw, step);
    ASSERT_EQ(asked.ends.size(), 3 * draw.size);
    for (std::int64_t i = 0; i < draw.size; ++i) {
      const auto k = static_cast<std::size_t>(i);
      ++seen[place(asked.ends.sources[k], asked.relations[k], asked.ends.targets[k])];
      for (std::int64_t j = 0; j < 2; ++j) {
        const auto n = static_cast<std::size_t>(draw.size + 2 * i + j);
        EXPECT_EQ(asked.relations[n], asked.relations[k]);
        EXPECT_TRUE(asked.ends.sources[n] == asked.ends.sources[k] ||
                    asked.ends.targets[n] == asked.ends.targets[k]);
      }
    }
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 4 * draw.size);
  const Triples messages = train::message_triples(all, 3, 0, 7, 0);
  EXPECT_EQ(messages.size(), 2 * all.size());
  const Triples fewer = train::message_triples(all, 3, 0.5, 7, 0);
  EXPECT_LT(fewer.size(), messages.size());
  EXPECT_GT(fewer.size(), 0);
  EXPECT_NE(fewer, train::message_triples(all, 3, 0.5, 7, 1));
}

TEST(TripleTraining, WhatCannotBeTrainedIsAnError) {
  KnowledgeGraph graph = ring(10);
  const auto invalid = ErrorCode::invalid_argument;
  const auto with = [&](auto&& change) {
    TripleOptions options = small_options(1);
    change(options);
    return [&graph, options] { train::fit_triples(graph, options); };
  };
  expect_error(invalid, {"0 epochs"}, with([](auto& o) { o.epochs = 0; }));
  expect_error(invalid, {"edge dropout of 1"}, with([](auto& o) { o.edge_dropout = 1; }));
  expect_error(invalid, {"3 blocks"}, with([](auto& o) { o.model.blocks = 3; }));
  expect_error(invalid, {"0 negatives"}, with([](auto& o) { o.negatives = 0; }));
  expect_error(invalid, {"dropout of 1"}, with([](auto& o) { o.model.dropout = 1; }));
  graph.validation = {};
  expect_error(ErrorCode::bad_data, {"no validation triples", "train, valid and test"},
               with([](auto&) {}));
}

}  // namespace
}  // namespace tessera
