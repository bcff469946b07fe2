// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/dense_backends.hpp"
#include "support/dense_workspace.hpp"
#include "support/expect_error.hpp"
#include "support/matrices.hpp"
#include "support/random_coo.hpp"
#include "tessera/core/recording.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/ops/pairs.hpp"

/// Which pairs are chosen and drawn: what must hold of them, and the same on every device.
namespace tessera::ops {
namespace {

using test::DeviceMatrix;
using test::same_bits;
using testing::random_graph;
using PairSet = std::set<std::pair<VertexId, VertexId>>;

constexpr Device gpu{DeviceKind::cuda, 0};
constexpr NegativeKind all_kinds[] = {NegativeKind::uniform, NegativeKind::by_source,
                                      NegativeKind::by_degree};

/// Pair k leads from k to 100 + 2 k, so that each shows where it stood.
Matrix<VertexId> numbered_pairs(std::int64_t count) {
  Matrix<VertexId> pairs(2, count);
  for (std::int64_t k = 0; k < count; ++k) {
    pairs(0, k) = static_cast<VertexId>(k);
    pairs(1, k) = static_cast<VertexId>(100 + 2 * k);
  }
  return pairs;
}

Matrix<VertexId> chosen_on(Device device, const Matrix<VertexId>& pairs, PairBatches batches) {
  DeviceMatrix<VertexId> from(pairs, device, 3);
  DeviceMatrix<VertexId> chosen(2, batches.size * (batches.both_ways ? 2 : 1), device, 3);
  choose_pairs(from, batches, chosen, device);
  return chosen.values();
}

Matrix<VertexId> drawn_on(Device device, const Graph& graph, const Matrix<VertexId>& positives,
                          const NegativeDraw& draw) {
  const NonEdges known(graph, Place(device));
  DeviceMatrix<VertexId> from(positives, device, 3);
  const std::int64_t ways = draw.both_ways ? 2 : 1;
  DeviceMatrix<VertexId> drawn(2, ways * positives.cols() * draw.per_positive, device, 3);
  draw_negatives(from, known, draw, drawn);
  return drawn.values();
}

/// Graphs in which some pairs are no edges, one of them not square and one with loops.
std::vector<Graph> graphs() {
  return {random_graph(12, 12, 60, 1), with_self_loops(random_graph(9, 9, 40, 2), 1),
          random_graph(7, 15, 30, 3), random_graph(10, 10, 0, 5), random_graph(300, 300, 4000, 6)};
}

Matrix<VertexId> some_positives(const Graph& graph, std::int64_t count) {
  Matrix<VertexId> positives(2, count);
  const Random random(9);
  for (std::int64_t k = 0; k < count; ++k) {
    const auto element = static_cast<std::uint64_t>(k);
    positives(0, k) =
        static_cast<VertexId>(random.below(element, static_cast<std::uint64_t>(graph.num_cols())));
    positives(1, k) = 0;
  }
  return positives;
}

TEST(PairChoice, has_every_pair_once_in_an_epoch) {
  for (const std::int64_t count : {1, 2, 7, 64, 1000}) {
    for (const std::int64_t size : {1, 2, 7, 30}) {
      if (size > count) continue;
      SCOPED_TRACE(::testing::Message() << count << " pairs in batches of " << size);
      const Matrix<VertexId> pairs = numbered_pairs(count);
      const std::int64_t steps = batches_of(count, size);
      std::vector<Matrix<VertexId>> firsts;
      for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
        PairSet seen;
        for (std::int64_t step = 0; step < steps; ++step) {
          const auto chosen = chosen_on({}, pairs, {size, 5, epoch * steps + step});
          if (step == 0) firsts.push_back(test::copy_of(chosen));
          for (std::int64_t i = 0; i < size; ++i) {
            EXPECT_EQ(chosen(1, i), 100 + 2 * chosen(0, i));
            EXPECT_TRUE(seen.insert({chosen(0, i), chosen(1, i)}).second);
          }
        }
        EXPECT_EQ(std::ssize(seen), steps * size);
      }
      EXPECT_TRUE(count < 1000 || !same_bits(firsts[0], firsts[1])) << "epochs differ";
    }
  }
}

TEST(PairChoice, lists_turned_pairs_behind_the_others) {
  const Matrix<VertexId> pairs = numbered_pairs(50);
  const auto once = chosen_on({}, pairs, {8, 3, 2});
  const auto both = chosen_on({}, pairs, {8, 3, 2, nullptr, true});
  for (std::int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(both(0, i), once(0, i));
    EXPECT_EQ(both(1, i), once(1, i));
    EXPECT_EQ(both(0, i + 8), once(1, i));
    EXPECT_EQ(both(1, i + 8), once(0, i));
  }
}

TEST(PairChoice, says_which_batches_cannot_be) {
  Matrix<VertexId> pairs = numbered_pairs(3), chosen(2, 4);
  testing::expect_error(ErrorCode::invalid_argument, {"batches of 4 pairs of 3"},
                        [&] { choose_pairs(pairs, {.size = 4}, chosen); });
  testing::expect_error(ErrorCode::invalid_argument, {"chosen", "2 x 2"},
                        [&] { choose_pairs(pairs, {.size = 2}, chosen); });
}

TEST(PairDraws, are_no_edges_and_turn_where_both_ways_are_asked_for) {
  for (const Graph& graph : graphs()) {
    PairSet edges;
    for (const auto& [entry, value] : testing::entries_of(graph)) {
      edges.insert({entry.second, entry.first});
    }
    const Matrix<VertexId> positives = some_positives(graph, 40);
    for (const NegativeKind kind : all_kinds) {
      const auto drawn = drawn_on({}, graph, positives, {kind, 3, 7, 2, nullptr, true});
      for (std::int64_t i = 0; i < 120; ++i) {
        EXPECT_FALSE(edges.contains({drawn(0, i), drawn(1, i)}));
        EXPECT_FALSE(graph.is_square() && drawn(0, i) == drawn(1, i));
        EXPECT_TRUE(kind == NegativeKind::uniform || drawn(0, i) == positives(0, i / 3));
        EXPECT_EQ(drawn(0, i), drawn(1, i + 120));
        EXPECT_EQ(drawn(1, i), drawn(0, i + 120));
      }
    }
  }
}

class PairsOnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
    test::workspace_on(gpu);
  }
};

TEST_F(PairsOnDevice, are_chosen_as_on_the_cpu) {
  for (const std::int64_t count : {1, 7, 1000, 100'003}) {
    for (const std::int64_t size : {std::int64_t{1}, (count + 2) / 3, count}) {
      for (const bool both_ways : {false, true}) {
        const PairBatches batches{size, 11, 4, nullptr, both_ways};
        const Matrix<VertexId> pairs = numbered_pairs(count);
        EXPECT_TRUE(same_bits(chosen_on({}, pairs, batches), chosen_on(gpu, pairs, batches)))
            << size << " of " << count;
      }
    }
  }
}

TEST_F(PairsOnDevice, are_drawn_as_on_the_cpu) {
  for (const Graph& graph : graphs()) {
    const Matrix<VertexId> positives = some_positives(graph, 333);
    for (const NegativeKind kind : all_kinds) {
      for (const std::int64_t per_positive : {1, 5}) {
        const NegativeDraw draw{kind, per_positive, 21, 6, nullptr, per_positive == 5};
        EXPECT_TRUE(
            same_bits(drawn_on({}, graph, positives, draw), drawn_on(gpu, graph, positives, draw)))
            << graph.num_rows() << " x " << graph.num_cols();
      }
    }
  }
}

/// All that a step does with pairs, which takes its number from a clock.
struct PairStep {
  explicit PairStep(const Graph& graph)
      : non_edges(graph, Place(gpu)), ends(graph.num_rows(), 2 * size, Place(gpu)) {
    set_step(0);
  }

  void set_step(std::int64_t step) {
    const StepClock now{step, 1};
    copy_bytes(clock.data(), &now, sizeof now, gpu);
    synchronise(gpu);
  }

  void run(Stream stream) {
    const auto* const workspace = test::workspace_on(gpu);
    const Operand list = pairs;
    Operand chosen = list, negatives = list;
    chosen.cols = negatives.cols = size;
    negatives.data = static_cast<VertexId*>(list.data) + size;
    choose_pairs(all, {size, 3, 0, clock.data()}, chosen, gpu, stream);
    draw_negatives(chosen, non_edges, {NegativeKind::uniform, 1, 3, 0, clock.data()}, negatives,
                   stream);
    ends.list(list, stream);
    pair_dot(x, x, list, scores, gpu, stream);
    pair_loss(scores, {.kind = PairLossKind::bpr, .positives = size}, scores, loss.data(), gpu,
              stream, workspace);
    pair_dot_backward(x, x, ends, scores, gradient, gradient, stream, workspace);
  }

  std::pair<double, Matrix<float>> results() {
    double value = 0;
    copy_bytes(&value, loss.data(), sizeof value, gpu);
    return {value, gradient.values()};
  }

  static constexpr std::int64_t size = 77;
  NonEdges non_edges;
  PairEnds ends;
  Buffer<StepClock> clock{1, Place(gpu)};
  Buffer<double> loss{1, Place(gpu)};
  DeviceMatrix<VertexId> all{numbered_pairs(90), gpu, 0}, pairs{2, 2 * size, gpu, 0};
  DeviceMatrix<float> x{test::normal_matrix<float>(300, 20, 1), gpu, 0};
  DeviceMatrix<float> scores{2 * size, 1, gpu, 0}, gradient{300, 20, gpu, 0};
};

TEST_F(PairsOnDevice, are_those_of_the_clock_when_a_step_is_replayed) {
  PairStep step(random_graph(300, 300, 4000, 6));
  step.run({});
  const Recording recording = Recording::of(gpu, [&](Stream stream) { step.run(stream); });
  std::set<double> losses;
  for (const std::int64_t number : {5, 1, 5, 100}) {
    step.set_step(number);
    step.run({});
    const auto [loss, gradient] = step.results();
    step.set_step(number);
    recording.replay();
    const auto [replayed_loss, replayed_gradient] = step.results();
    EXPECT_EQ(loss, replayed_loss);
    EXPECT_TRUE(same_bits(gradient, replayed_gradient));
    losses.insert(loss);
  }
  EXPECT_EQ(losses.size(), 3u) << "steps draw others";
}

}  // namespace
}  // namespace tessera::ops
