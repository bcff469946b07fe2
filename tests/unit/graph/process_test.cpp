// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/process.hpp"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "graph/access.hpp"
#include "support/expect_error.hpp"
#include "support/random_coo.hpp"
#include "tessera/core/error.hpp"
#include "tessera/graph/normalise.hpp"
#include "tessera/graph/transform.hpp"

namespace tessera {
namespace {

using testing::Coo;

constexpr Device gpu{DeviceKind::cuda, 0};
constexpr EdgeRule all_rules[] = {EdgeRule::plain, EdgeRule::looped, EdgeRule::gcn};

Graph processed(const Coo& coo, const ProcessOptions& options, bool with_values) {
  return process_edges(coo.num_rows, coo.cols, coo.rows,
                       with_values ? std::span<const float>(coo.values) : std::span<const float>{},
                       options);
}

/// One step after the other, on the CPU.
Graph step_by_step(const Coo& coo, const ProcessOptions& options, bool with_values) {
  BuildOptions here = options;
  here.device = {};
  const Graph graph = coo.build(here, with_values);
  if (options.rule == EdgeRule::looped) return with_self_loops(graph.with_values({}));
  return options.rule == EdgeRule::gcn ? gcn_normalised(graph) : graph;
}

/// Square, with loops and repeated edges here and there, a hub among them.
std::vector<Coo> inputs() {
  std::vector<Coo> inputs = {{0, 0, {}, {}, {}}, {1, 1, {0}, {0}, {2.5f}}, {7, 7, {}, {}, {}}};
  std::uint64_t seed = 1;
  for (const VertexId vertices : {1, 2, 15, 16, 17, 33, 1000}) {
    inputs.push_back(testing::random_coo(vertices, vertices, 4 * vertices, seed++));
  }
  Coo hub{3000, 3000, {}, {}, {}};
  for (VertexId v = 2999; v >= 0; --v) {
    hub.rows.insert(hub.rows.end(), {5, v});
    hub.cols.insert(hub.cols.end(), {v, v % 3 == 0 ? v : 5});
    hub.values.insert(hub.values.end(), {static_cast<float>(v % 9) - 3.5f, 2});
  }
  inputs.push_back(hub);
  return inputs;
}

void expect_as_step_by_step(Device device) {
  for (const Coo& given : inputs()) {
    for (const Duplicates duplicates :
         {Duplicates::reject, Duplicates::sum, Duplicates::first, Duplicates::keep}) {
      const Coo coo = duplicates == Duplicates::reject ? testing::without_duplicates(given) : given;
      for (int flags = 0; flags < 4; ++flags) {
        for (const EdgeRule rule : all_rules) {
          SCOPED_TRACE(::testing::Message() << coo.num_rows << " vertices, " << coo.rows.size()
                                            << " edges, " << to_string(rule) << ", duplicates "
                                            << static_cast<int>(duplicates) << ", flags " << flags);
          ProcessOptions options;
          options.device = device;
          options.duplicates = duplicates;
          options.rule = rule;
          options.keep_edge_ids = (flags & 1) != 0;
          const bool with_values = (flags & 2) != 0;
          const Graph expected = step_by_step(coo, options, with_values);
          const Graph graph = processed(coo, options, with_values);
          EXPECT_EQ(graph.device(), device);
          EXPECT_EQ(graph, expected);
          EXPECT_EQ(graph.has_repeated_edges(), expected.has_repeated_edges());
          graph.validate();
          EXPECT_EQ(detail::GraphAccess::col_offsets(graph), expected.csc().col_offsets);
        }
      }
    }
  }
}

TEST(ProcessEdges, EqualsOneStepAfterTheOther) { expect_as_step_by_step({}); }

class CudaProcess : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  }
};

TEST_F(CudaProcess, EqualsTheCpu) { expect_as_step_by_step(gpu); }

TEST_F(CudaProcess, SaysTheSameOfWhatIsWrong) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<VertexId> sources = {0, 2, 0, 1}, targets = {1, 0, 1, 1}, wild = {0, 1, 9, -1};
  const std::vector<float> spoiled = {1, 2, 3, infinity};
  for (const Device device : {Device{}, gpu}) {
    for (const EdgeRule rule : all_rules) {
      ProcessOptions options;
      options.device = device;
      options.rule = rule;
      testing::expect_error(ErrorCode::bad_data, {"target 1", "source 0", "more than once"},
                            [&] { process_edges(3, sources, targets, {}, options); });
      testing::expect_error(ErrorCode::bad_data, {"target index 9", "position 2"},
                            [&] { process_edges(3, sources, wild, {}, options); });
      testing::expect_error(ErrorCode::bad_data, {"values[3] is inf"},
                            [&] { process_edges(3, sources, targets, spoiled, options); });
    }
  }
}

/// An edge that is given twice counts once where weights play no part, whatever loops weigh.
void expect_repeated_edges_once(Device device) {
  const std::vector<VertexId> sources = {0, 2, 0, 1}, targets = {1, 0, 1, 1};
  for (const float loop_weight : {0.5f, 1.0f, 2.0f}) {
    ProcessOptions options;
    options.device = device;
    options.rule = EdgeRule::looped;
    options.duplicates = Duplicates::sum;
    options.loop_weight = loop_weight;
    const Graph graph = process_edges(3, sources, targets, {}, options);
    ASSERT_EQ(graph.num_edges(), 5);
    EXPECT_EQ(graph.weight(1, graph.row_offsets()[1]), 1.0f) << loop_weight;
  }
}

TEST(ProcessEdges, CountRepeatedEdgesOnceWithoutWeights) { expect_repeated_edges_once({}); }
TEST_F(CudaProcess, CountsRepeatedEdgesOnceWithoutWeights) { expect_repeated_edges_once(gpu); }

TEST(ProcessEdges, NamesItsRules) {
  for (const EdgeRule rule : all_rules) EXPECT_EQ(parse_edge_rule(to_string(rule)), rule);
  testing::expect_error(ErrorCode::invalid_argument, {"'gat'", "plain, looped or gcn"},
                        [] { parse_edge_rule("gat"); });
}

TEST(ProcessEdges, LeavesTheOtherSideToWhoAsks) {
  const Coo coo = testing::without_duplicates(testing::random_coo(20, 20, 60, 3));
  ProcessOptions options;
  options.rule = EdgeRule::gcn;
  options.both_sides = false;
  EXPECT_EQ(processed(coo, options, true), step_by_step(coo, options, true));
}

}  // namespace
}  // namespace tessera
