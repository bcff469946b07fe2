// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>

#include "step/ops/aggregate.hpp"
#include "step/ops/linear.hpp"
#include "step/rewrites/all.hpp"

namespace tessera::step {
namespace {

/// What leaves one scale of a derivation to others.
struct OneScale {
  Derivation rows, columns;
};

std::optional<OneScale> one_scale(Derivation derivation) {
  if (derivation == gcn_adjacency) return OneScale{gcn_rows, gcn_columns};
  if (derivation == gcn_adjacency_without_loops) {
    return OneScale{gcn_rows_without_loops, gcn_columns_without_loops};
  }
  return {};
}

bool has_many_edges(Topology& topology) {
  constexpr EdgeOffset many = 32;           // edges of a vertex
  if (topology.sums_edges()) return false;  // rows are not made to count them
  const Graph& graph = topology.graph();
  return !graph.has_values() && graph.num_edges() >= many * graph.num_rows();
}

bool has_both_scales(Topology& topology, Derivation derivation) {
  const Graph& graph = topology.derived(derivation);
  return graph.has_row_scale() && graph.has_col_scale() && !graph.has_values();
}

}  // namespace

// On graphs with many edges a kernel that sums 16-bit rows takes almost twice as long where it
// scales them.
std::int64_t scale_before_rounding(Program& program, const Surroundings& around) {
  if (around.placement.precision != Precision::bf16) return 0;
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto* sums = nodes[i].as<Aggregate>();
    if (sums == nullptr || !sums->is_sum() || sums->finishes()) continue;
    const Value between = nodes[i].in[Aggregate::x];
    const Aggregation aggregation = sums->aggregation();
    const auto scales = one_scale(aggregation.derivation);
    const Node* const product = program.producer(between);
    const auto* linear = product == nullptr ? nullptr : product->as<Linear>();
    if (!scales || linear == nullptr || !linear->is_plain() ||
        !product->in[Linear::bias].absent() || !has_one_reader(program, between, around)) {
      continue;
    }
    Topology& graph = around.context.graph_number(aggregation.graph);
    if (!has_many_edges(graph) || !has_both_scales(graph, aggregation.derivation)) continue;
    nodes[static_cast<std::size_t>(product - nodes.data())].op =
        std::make_shared<Linear>(Linear::Form{.is_wide = true});
    nodes[i].op = Aggregate::of_scaled(*sums, scales->rows, scales->columns);
    const Value scaled =
        program.append(std::make_shared<ScaleRows>(aggregation.derivation, aggregation.graph,
                                                   ScaleRows::Side::columns),
                       {between});
    Node scale = std::move(nodes.back());
    nodes.pop_back();
    nodes[i].in[Aggregate::x] = scaled;
    nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(i), std::move(scale));
    ++i;
    ++fired;
  }
  return fired;
}

}  // namespace tessera::step
