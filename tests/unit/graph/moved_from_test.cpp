// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <utility>

#include "support/expect_error.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/fingerprint.hpp"
#include "tessera/graph/normalise.hpp"
#include "tessera/graph/partition.hpp"
#include "tessera/graph/stats.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/ops/aggregate_update.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/bits.hpp"
#include "tessera/ops/edge_softmax.hpp"
#include "tessera/ops/sddmm.hpp"
#include "tessera/ops/spmm.hpp"
#include "tessera/reorder/layout.hpp"
#include "tessera/reorder/nm.hpp"
#include "tessera/reorder/orders.hpp"

namespace tessera {
namespace {

Graph ring() {
  const std::vector<VertexId> sources = {0, 1, 2, 3}, targets = {1, 2, 3, 0};
  return from_edges(4, sources, targets);
}

/// A graph whose arrays are gone with the one that they were moved to.
Graph moved_from() {
  Graph graph = ring();
  { const Graph gone = std::move(graph); }
  return graph;  // NOLINT(bugprone-use-after-move): what is tested
}

using Use = std::function<void(const Graph&)>;

template <class Options>
Options of_width_4() {
  Options options;
  options.features = 4;
  return options;
}

class MovedFromGraph : public ::testing::TestWithParam<std::pair<const char*, Use>> {};

TEST_P(MovedFromGraph, IsAnErrorThatSaysSo) {
  testing::expect_error(ErrorCode::invalid_argument, {"moved from"},
                        [] { GetParam().second(moved_from()); });
}

const std::pair<const char*, Use> uses[] = {
    {"Validate", [](const Graph& graph) { graph.validate(); }},
    {"Csc", [](const Graph& graph) { graph.csc(); }},
    {"WithValues", [](const Graph& graph) { graph.with_values({}); }},
    {"WithScales", [](const Graph& graph) { graph.with_scales({}, {}); }},
    {"Fingerprint", [](const Graph& graph) { fingerprint(graph); }},
    {"Stats", [](const Graph& graph) { compute_stats(graph); }},
    {"Components", [](const Graph& graph) { connected_components(graph); }},
    {"Loops", [](const Graph& graph) { with_self_loops(graph); }},
    {"Transposed", [](const Graph& graph) { transposed(graph); }},
    {"Rows",
     [](const Graph& graph) {
       selected_rows(graph, std::array<VertexId, 2>{0, 1});
     }},
    {"Gcn", [](const Graph& graph) { gcn_normalised(graph); }},
    {"Mean", [](const Graph& graph) { mean_normalised(graph); }},
    {"Partition", [](const Graph& graph) { partition(graph, {}); }},
    {"Permuted", [](const Graph& graph) { permuted(graph, Permutation::identity(4)); }},
    {"Rcm", [](const Graph& graph) { reorder::compute("rcm", graph); }},
    {"Loa", [](const Graph& graph) { reorder::loa(graph); }},
    {"Layout", [](const Graph& graph) { reorder::best_layout(graph); }},
    {"Nm", [](const Graph& graph) { reorder::order_nm(graph, {}); }},
    {"Spmm", [](const Graph& graph) { plan_spmm(graph, of_width_4<ops::SpmmOptions>()); }},
    {"Sddmm", [](const Graph& graph) { plan_sddmm(graph, of_width_4<ops::SddmmOptions>()); }},
    {"EdgeSoftmax", [](const Graph& graph) { ops::plan_edge_softmax(graph, {}); }},
    {"Attention",
     [](const Graph& graph) { plan_attention(graph, of_width_4<ops::AttentionOptions>()); }},
    {"AggregateUpdate",
     [](const Graph& graph) {
       ops::AggregateUpdateOptions options;
       options.in = options.out = 4;
       plan_aggregate_update(graph, options);
     }},
    {"Bits",
     [](const Graph& graph) {
       ops::BitOptions options;
       options.cols = 4;
       ops::plan_bit_aggregate(graph, options);
     }},
};

INSTANTIATE_TEST_SUITE_P(Uses, MovedFromGraph, ::testing::ValuesIn(uses),
                         [](const auto& use) { return std::string(use.param.first); });

TEST(MovedFromGraphs, TakeAnother) {
  Graph graph = moved_from();
  graph = ring();
  EXPECT_EQ(graph, ring());
  EXPECT_EQ(transposed(graph).num_edges(), 4);
}

}  // namespace
}  // namespace tessera
