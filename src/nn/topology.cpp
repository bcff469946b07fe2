// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/topology.hpp"

#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "tessera/core/error.hpp"
#include "tessera/nn/context.hpp"

namespace tessera::nn {
namespace {

using SpmmKey =
    std::tuple<Derivation, ops::Reduction, Precision, std::int64_t, bool, bool, ops::SpmmEpilogue>;
using AttentionKey = std::tuple<Derivation, ops::AttentionForm, Precision, std::int64_t,
                                std::int64_t, double, double>;

SpmmKey key_of(Derivation derivation, const ops::SpmmOptions& options) {
  return {derivation,       options.reduction,          options.precision,
          options.features, options.edge_values_at_run, options.edge_values_expected,
          options.epilogue};
}

AttentionKey key_of(Derivation derivation, const ops::AttentionOptions& options) {
  return {derivation,       options.form,           options.precision, options.heads,
          options.features, options.negative_slope, options.dropout};
}

/// What is kept under a key, made by `make` if it is not there.
template <class Map, class Make>
auto& found_or_made(Map& map, const typename Map::key_type& key, Make&& make) {
  const auto found = map.find(key);
  if (found != map.end()) return found->second;
  return map.emplace(key, make()).first->second;
}

}  // namespace

struct Topology::State {
  Graph graph;
  Place place;
  std::map<Derivation, Graph> derived;
  std::map<SpmmKey, ops::SpmmPlan> spmm;
  std::map<SpmmKey, ops::SpmmBackwardPlan> spmm_backward;
  std::map<AttentionKey, ops::AttentionPlan> attention;
  std::optional<Tensor> values;

  template <class Options>
  Options own(Options options) const {
    options.device = place.device;
    options.memory = place.memory;
    options.stream = place.stream;
    options.kernel.clear();
    return options;
  }
};

Topology::Topology(Graph graph, const Place& place) : state_(std::make_unique<State>()) {
  state_->graph = std::move(graph);
  state_->place = place;
}
Topology::Topology(Topology&&) noexcept = default;
Topology& Topology::operator=(Topology&&) noexcept = default;
Topology::~Topology() = default;

const Graph& Topology::graph() const noexcept { return state_->graph; }

const Graph& Topology::derived(Derivation derivation) {
  return found_or_made(state_->derived, derivation, [&] { return derivation(state_->graph); });
}

const Tensor& Topology::values(const Placement& placement) {
  std::optional<Tensor>& kept = state_->values;
  if (kept && kept->precision() == placement.precision && kept->device() == placement.device()) {
    return *kept;
  }
  const std::int64_t entries = graph().num_edges();
  Matrix<float> padded((entries + values_width - 1) / values_width, values_width, 0.0f);
  for (std::int64_t k = 0; k < entries; ++k) {
    padded.data()[k] = graph().has_values() ? graph().values()[k] : 1.0f;
  }
  kept.emplace(placement);
  kept->upload(padded, placement.stream);
  return *kept;
}

const ops::SpmmPlan& Topology::spmm(Derivation derivation, ops::SpmmOptions options) {
  return found_or_made(state_->spmm, key_of(derivation, options),
                       [&] { return ops::plan_spmm(derived(derivation), state_->own(options)); });
}

const ops::SpmmBackwardPlan& Topology::spmm_backward(Derivation derivation,
                                                     ops::SpmmOptions options) {
  options.edge_value_gradient = false;
  return found_or_made(state_->spmm_backward, key_of(derivation, options), [&] {
    return ops::plan_spmm_backward(derived(derivation), state_->own(options));
  });
}

const ops::AttentionPlan& Topology::attention(Derivation derivation,
                                              ops::AttentionOptions options) {
  return found_or_made(state_->attention, key_of(derivation, options), [&] {
    return ops::plan_attention(derived(derivation), state_->own(options));
  });
}

Topology& Context::required_graph(const char* layer) const {
  if (graph != nullptr) return *graph;
  throw Error(ErrorCode::invalid_argument, "the context has no graph", layer,
              "set Context::graph before the pass");
}

}  // namespace tessera::nn
