// SPDX-License-Identifier: Apache-2.0
#include "tessera/step/topology.hpp"

#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/parts_clock.hpp"
#include "graph/access.hpp"
#include "graph/induced_edges.hpp"
#include "step/one_side.hpp"
#include "tessera/core/error.hpp"
#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/ops/gather.hpp"
#include "tessera/step/context.hpp"

namespace tessera::step {
namespace {

/// What is kept under a key, made by `make` if it is not there.
template <class Map, class Make>
auto& found_or_made(Map& map, const typename Map::key_type& key, Make&& make) {
  const auto found = map.find(key);
  if (found != map.end()) return found->second;
  return map.emplace(key, make()).first->second;
}

/// Whether a derivation is made where the graph lies; any other reads the graph in this process.
bool follows_graph(Derivation derivation, const Graph& graph) {
  if (derivation == pattern_with_self_loops) return graph.is_square();
  return derivation == as_given || derivation == pattern || derivation == gcn_adjacency ||
         derivation == gcn_adjacency_without_loops;
}

/// A plan for what a derivation makes of the graph. Its options are the rest of its key.
template <class Plan>
struct Derived {
  Derivation derivation;
  Plan plan;
};

/// The same where there may be none: nothing is planned, and that is remembered.
struct DerivedUpdate {
  Derivation derivation;
  ops::AggregateUpdateOptions options;
  ops::AggregateUpdatePlan plan;
};

template <class Plan, class Make>
Plan planned(std::vector<Derived<Plan>>& plans, Derivation derivation,
             const typename Plan::Options& options, Make&& make) {
  typename Plan::Options with_backward = options;
  with_backward.backward = true;
  for (const Derived<Plan>& known : plans) {
    const bool fits = known.plan.options() == options || known.plan.options() == with_backward;
    if (known.derivation == derivation && fits) return known.plan;
  }
  plans.push_back({derivation, make()});
  return plans.back().plan;
}

/// Choices that are measured, or kept, are for graphs that come again.
ops::PlanOptions for_few_runs(ops::PlanOptions plans) {
  plans.epochs = 1;
  plans.tune = ops::Tune::predicted;
  plans.store = nullptr;
  plans.stored_only = false;
  return plans;
}

/// A scale as a matrix of one column.
Tensor as_tensor(const SharedArray<float>& scale, const Placement& placement) {
  const ops::PlanOnly scales_are_kept(false);
  Placement in_fp32 = placement;
  in_fp32.precision = Precision::fp32;
  Tensor tensor(in_fp32);
  tensor.upload(MatrixView<const float>(scale.data(), scale.size(), 1), placement.stream);
  return tensor;
}

/// Rows of a matrix, wherever it lies. Numbers of rows have 32 bits there, as those of vertices.
void gather_edges(const Tensor& all, std::span<const EdgeOffset> edges, Tensor& chosen,
                  Stream stream) {
  const Placement& placement = chosen.placement();
  const std::vector<VertexId> numbers(edges.begin(), edges.end());
  Buffer<VertexId> rows(std::ssize(numbers), placement.place());
  copy_bytes(rows.data(), numbers.data(), std::span(numbers).size_bytes(), placement.device(),
             stream);
  ops::gather_rows(all, MatrixView<const VertexId>(rows.data(), rows.size(), 1, all.device()),
                   chosen, placement.device(), stream);
}

}  // namespace

struct Topology::State {
  std::optional<Coo> edges;
  std::optional<Graph> graph;  ///< made of the edges when it is first asked for
  Topology* whole = nullptr;   ///< that it is a part of: between these vertices
  std::vector<VertexId> vertices;
  std::map<Derivation, Graph> derived;
  ops::PlanOptions plans;
  std::vector<Derived<ops::SpmmPlan>> spmm;
  std::vector<Derived<ops::AttentionPlan>> attention;
  std::vector<DerivedUpdate> aggregate_update;
  std::vector<Derived<ops::MessagesPlan>> messages;
  Fusing fusing = Fusing::by_cost;
  std::optional<Tensor> values;
  std::map<Derivation, Tensor> row_scales, col_scales;
  std::shared_ptr<const Tensor> edge_features;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  /// Graphs may live on, but not with what the plans made of them: the memory that it came from may
  /// end first.
  ~State() {
    spmm.clear();
    attention.clear();
    aggregate_update.clear();
    messages.clear();
    if (graph) tessera::detail::GraphAccess::release_unused(*graph);
    for (const auto& [derivation, of_graph] : derived) {
      tessera::detail::GraphAccess::release_unused(of_graph);
    }
  }

  void set_plans(ops::PlanOptions how, const Place& place) {
    plans = std::move(how);
    plans.device = place.device;
    plans.memory = place.memory;
    plans.stream = place.stream;
    plans.kernel.clear();
  }

  /// The edges as a derivation means them; nothing where there are none, or where no rule says it.
  std::optional<Coo> ruled(Derivation derivation) const {
    if (!edges) return std::nullopt;
    if (derivation == as_given) return edges;
    if (edges->num_rows() != edges->num_cols()) return std::nullopt;
    if (derivation == pattern) return edges->with_rule(EdgeRule::looped, 0);
    if (derivation == pattern_with_self_loops) return edges->with_rule(EdgeRule::looped);
    if (derivation == gcn_adjacency) return edges->with_rule(EdgeRule::gcn);
    if (derivation == gcn_adjacency_without_loops) return edges->with_rule(EdgeRule::gcn, 0);
    return std::nullopt;
  }

  /// The options of a plan, of which the topology has most.
  template <class Options>
  Options own(Options options) const {
    const bool backward = options.backward;
    static_cast<ops::PlanOptions&>(options) = plans;
    options.backward = backward;
    return options;
  }
};

Topology::Topology(Graph graph, const Place& place, ops::PlanOptions plans)
    : state_(std::make_unique<State>()) {
  state_->graph = std::move(graph);
  state_->set_plans(std::move(plans), place);
}
Topology::Topology(Coo edges, const Place& place, ops::PlanOptions plans)
    : state_(std::make_unique<State>()) {
  state_->edges = std::move(edges);
  state_->set_plans(std::move(plans), place);
}
Topology::Topology(Topology& whole, std::span<const VertexId> vertices)
    : Topology(
          induced_subgraph(whole.graph(), vertices),
          {whole.plan_options().device, whole.plan_options().memory, whole.plan_options().stream},
          for_few_runs(whole.plan_options())) {
  state_->whole = &whole;
  state_->vertices.assign(vertices.begin(), vertices.end());
  if (whole.edge_features() == nullptr) return;
  take_edge_features(whole, detail::induced_edges(in_place(whole.graph(), {}), vertices),
                     whole.plan_options().stream);
}
Topology::Topology(Topology&&) noexcept = default;
Topology& Topology::operator=(Topology&&) noexcept = default;
Topology::~Topology() = default;

const Graph& Topology::graph() const {
  if (!state_->graph) state_->graph = state_->edges->graph();
  return *state_->graph;
}

VertexId Topology::num_rows() const noexcept {
  return state_->graph ? state_->graph->num_rows() : state_->edges->num_rows();
}
VertexId Topology::num_cols() const noexcept {
  return state_->graph ? state_->graph->num_cols() : state_->edges->num_cols();
}

const Graph& Topology::derived(Derivation derivation) {
  return found_or_made(state_->derived, derivation, [&] {
    if (const auto side = one_side(derivation)) return side->keep(derived(side->both));
    const TimedPart part("building");
    if (state_->whole != nullptr) {
      return induced_subgraph(state_->whole->derived(derivation), state_->vertices);
    }
    if (const std::optional<Coo> edges = state_->ruled(derivation)) return edges->graph();
    if (!follows_graph(derivation, graph())) return derivation(graph());
    // Where plans are made: a GPU derives and plans sooner than this process, copying included.
    const ops::PlanOptions& plans = state_->plans;
    return derivation(in_place(graph(), {plans.device, plans.memory, plans.stream}));
  });
}

bool Topology::sums_edges() const noexcept {
  return state_->edges && state_->plans.allow_nondeterministic;
}

const Tensor& Topology::values(const Placement& placement) {
  std::optional<Tensor>& kept = state_->values;
  if (kept && kept->precision() == placement.precision && kept->device() == placement.device()) {
    return *kept;
  }
  const ops::PlanOnly values_are_kept(false);
  const std::int64_t entries = graph().num_edges();
  Matrix<float> padded((entries + values_width - 1) / values_width, values_width, 0.0f);
  for (std::int64_t k = 0; k < entries; ++k) {
    padded.data()[k] = graph().has_values() ? graph().values()[k] : 1.0f;
  }
  kept.emplace(placement);
  kept->upload(padded, placement.stream);
  return *kept;
}

const Tensor* Topology::edge_features() const noexcept { return state_->edge_features.get(); }

void Topology::set_edge_features(std::shared_ptr<const Tensor> features) {
  if (features != nullptr && features->rows() != graph().num_edges()) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} rows of features for {} edges", features->rows(), graph().num_edges()),
        "features of edges", "give a row for each edge, in the order of the graph");
  }
  state_->edge_features = std::move(features);
}

void Topology::take_edge_features(const Topology& whole, std::span<const EdgeOffset> edges,
                                  Stream stream) {
  const Tensor& all = *whole.edge_features();
  Placement placement = all.placement();
  placement.stream = stream;
  auto chosen = std::make_shared<Tensor>(std::ssize(edges), all.cols(), placement);
  if (!ops::plans_only()) gather_edges(all, edges, *chosen, stream);
  set_edge_features(std::move(chosen));
}

const Tensor* Topology::row_scale(Derivation derivation, const Placement& placement) {
  const Graph& graph = derived(derivation);
  if (!graph.has_row_scale()) return nullptr;
  return &found_or_made(state_->row_scales, derivation,
                        [&] { return as_tensor(graph.row_scale(), placement); });
}

const Tensor* Topology::col_scale(Derivation derivation, const Placement& placement) {
  const Graph& graph = derived(derivation);
  if (!graph.has_col_scale()) return nullptr;
  return &found_or_made(state_->col_scales, derivation,
                        [&] { return as_tensor(graph.col_scale(), placement); });
}

const ops::PlanOptions& Topology::plan_options() const noexcept { return state_->plans; }

ops::SpmmPlan Topology::spmm(Derivation derivation, ops::SpmmOptions options) {
  const ops::SpmmOptions own = state_->own(std::move(options));
  return planned(state_->spmm, derivation, own, [&] {
    // A default plan would make rows of the edges itself: those that are derived are kept.
    const std::optional<Coo> edges =
        own.allow_nondeterministic ? state_->ruled(derivation) : std::nullopt;
    return edges ? ops::plan_spmm(*edges, own) : ops::plan_spmm(derived(derivation), own);
  });
}

ops::SpmmPlan Topology::spmm_gradient(Derivation derivation, ops::SpmmOptions options) {
  options.backward = true;
  const ops::SpmmOptions own = state_->own(std::move(options));
  for (const Derived<ops::SpmmPlan>& known : state_->spmm) {
    ops::SpmmOptions same = known.plan.options();
    same.epilogue = own.epilogue;
    if (known.derivation == derivation && same == own) return known.plan;
  }
  return spmm(derivation, own);
}

ops::AttentionPlan Topology::attention(Derivation derivation, ops::AttentionOptions options) {
  const ops::AttentionOptions own = state_->own(std::move(options));
  return planned(state_->attention, derivation, own,
                 [&] { return ops::plan_attention(derived(derivation), own); });
}

ops::MessagesPlan Topology::messages(ops::MessagesOptions options) {
  const ops::MessagesOptions own = state_->own(std::move(options));
  return planned(state_->messages, pattern, own,
                 [&] { return ops::plan_messages(derived(pattern), own); });
}

void Topology::set_fusing(Fusing fusing) {
  state_->fusing = fusing;
  state_->aggregate_update.clear();
}

ops::AggregateUpdatePlan Topology::fused_update(Derivation derivation,
                                                ops::AggregateUpdateOptions options) {
  const ops::AggregateUpdateOptions own = state_->own(std::move(options));
  for (const DerivedUpdate& known : state_->aggregate_update) {
    if (known.derivation == derivation && known.options == own) return known.plan;
  }
  const Graph& graph = derived(derivation);
  const Fusing fusing = state_->fusing;
  ops::AggregateUpdatePlan plan;
  if (fusing == Fusing::always || (fusing == Fusing::by_cost && ops::fusing_pays(graph, own))) {
    plan = ops::plan_aggregate_update(graph, own);
  }
  state_->aggregate_update.push_back({derivation, own, plan});
  return plan;
}

PlanRequests Topology::requests() const {
  PlanRequests requests;
  for (const auto& [derivation, plan] : state_->spmm) {
    requests.spmm.push_back({derivation, plan.options()});
  }
  for (const auto& [derivation, plan] : state_->attention) {
    requests.attention.push_back({derivation, plan.options()});
  }
  for (const DerivedUpdate& known : state_->aggregate_update) {
    requests.aggregate_update.push_back({known.derivation, known.options});
  }
  for (const auto& known : state_->messages) requests.messages.push_back(known.plan.options());
  return requests;
}

void Topology::plan(const PlanRequests& requests) {
  for (const auto& [derivation, options] : requests.spmm) spmm(derivation, options);
  for (const auto& [derivation, options] : requests.attention) attention(derivation, options);
  for (const auto& [derivation, options] : requests.aggregate_update) {
    fused_update(derivation, options);
  }
  for (const ops::MessagesOptions& options : requests.messages) messages(options);
}

Topology& Context::graph_number(int number) const {
  if (number == pooled) {
    if (pooling != nullptr) return *pooling;
    throw Error(ErrorCode::invalid_argument, "nothing says which vertices belong to which graph",
                "step", "set Context::pooling before the pass");
  }
  const auto index = static_cast<std::size_t>(number);
  Topology* const found =
      graphs.empty() ? graph : (index < graphs.size() ? graphs[index] : nullptr);
  if (found != nullptr) return *found;
  throw Error(ErrorCode::invalid_argument, fmt::format("graph {} is missing", number), "step",
              "set Context::graph, or a graph for each layer that has neighbours, before the pass");
}

}  // namespace tessera::step
