// SPDX-License-Identifier: Apache-2.0
#include "nn/rectangular.hpp"

namespace tessera::nn {
namespace {

bool has_other_targets(const StepInputs& in) {
  if (in.own_targets) return *in.own_targets != in.sources;
  if (in.context == nullptr) return false;
  const Topology& graph = in.context->graph_number(in.program.absolute_graph(0));
  return graph.num_rows() != graph.num_cols();
}

}  // namespace

step::Value product_of_targets(const StepInputs& in, step::Value weight) {
  const bool is_sparse = in.program.info(in.sources).is_sparse;
  if (!is_sparse || in.own_targets) return step::linear(in.program, in.targets(), weight);
  return part_of_targets(in, step::linear(in.program, in.sources, weight));
}

step::Value part_of_targets(const StepInputs& in, step::Value of_sources) {
  return has_other_targets(in) ? step::first_rows(in.program, of_sources, 0) : of_sources;
}

Derivation unless_scaled(const StepInputs& in, Derivation derivation, int graph) {
  if (in.context == nullptr || in.context->graphs.empty()) return derivation;
  const Graph& given = in.context->graph_number(in.program.absolute_graph(graph)).graph();
  return given.has_row_scale() || given.has_col_scale() ? as_given : derivation;
}

}  // namespace tessera::nn
