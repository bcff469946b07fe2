// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tessera/core/device.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/aggregate_update.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/messages.hpp"
#include "tessera/ops/spmm.hpp"
#include "tessera/step/tensor.hpp"

namespace tessera::step {

/// Makes the matrix a layer multiplies with from the graph it is given. The function itself is the
/// name under which the result is kept, so all layers of a model share one.
using Derivation = Graph (*)(const Graph& graph);

Graph as_given(const Graph& graph);
/// Without values and scales.
Graph pattern(const Graph& graph);
/// The pattern with every self loop present. Rectangular: i to i for i below both sizes, as PyG.
Graph pattern_with_self_loops(const Graph& graph);
/// D^-1/2 (A + I) D^-1/2, and the same without adding loops.
Graph gcn_adjacency(const Graph& graph);
Graph gcn_adjacency_without_loops(const Graph& graph);
/// The same with one of both D^-1/2, that of the rows or that of the columns: for features that
/// have been scaled by the other.
Graph gcn_rows(const Graph& graph);
Graph gcn_rows_without_loops(const Graph& graph);
Graph gcn_columns(const Graph& graph);
Graph gcn_columns_without_loops(const Graph& graph);
/// -D^-1/2 A D^-1/2 without self loops, D the weighted out-degree: Chebyshev's L - I.
Graph negated_laplacian_rest(const Graph& graph);

/// One row per graph of a union, listing its vertices: what a readout multiplies with.
Graph pooling_graph(std::span<const std::int32_t> graph_ids, std::int64_t num_graphs);

/// Which plans layers asked for on one graph: those that they will ask for on another of the same
/// kind, the next batch.
struct PlanRequests {
  struct Spmm {
    Derivation derivation;
    ops::SpmmOptions options;
  };
  struct Attention {
    Derivation derivation;
    ops::AttentionOptions options;
  };

  struct AggregateUpdate {
    Derivation derivation;
    ops::AggregateUpdateOptions options;
  };

  std::vector<Spmm> spmm = {};
  std::vector<Attention> attention = {};
  std::vector<AggregateUpdate> aggregate_update = {};
  std::vector<ops::MessagesOptions> messages = {};
};

/// When layers sum and multiply by one op: where the cost model expects a fused kernel to be
/// faster, always, by whatever kernel the op's plan chooses, or never.
enum class Fusing { by_cost, always, never };

/// A graph as layers see it, with what they derive from it and the plans they made: each on first
/// use, then kept. One thread at a time.
class Topology {
 public:
  /// Plans, and what they keep of the graph on a GPU, are made in the place; a device is one.
  /// `plans` says how; its place and kernel play no part.
  explicit Topology(Graph graph, const Place& place = {}, ops::PlanOptions plans = {});
  /// Of edges in no order, which lie in the place: for a graph that is seen once. With
  /// `plans.allow_nondeterministic` sums over it may read the edges as they are; whatever else asks
  /// for rows makes them.
  explicit Topology(Coo edges, const Place& place, ops::PlanOptions plans);
  /// The part of a square topology between some vertices, which become 0, 1, … in this order.
  /// Whatever is derived is cut out of what the whole derives, so that degrees stay those of the
  /// whole, which must outlive it. Edges bring their features along. Plans are made for few runs,
  /// and measure nothing.
  Topology(Topology& whole, std::span<const VertexId> vertices);
  Topology(Topology&&) noexcept;
  Topology& operator=(Topology&&) noexcept;
  ~Topology();

  const Graph& graph() const;
  VertexId num_rows() const noexcept;
  VertexId num_cols() const noexcept;
  const Graph& derived(Derivation derivation);
  /// Whether sums may read edges in no order, so that nobody needs rows for them.
  bool sums_edges() const noexcept;
  /// The graph's values (1 where it has none) in CSR order, as a matrix of `values_width` columns
  /// whose last row is filled up with zeros.
  const Tensor& values(const Placement& placement);
  static constexpr std::int64_t values_width = 256;

  /// What is known of the edges: a row for each edge of the graph, in its order, in memory of the
  /// topology's device; null: nothing. Topologies may share it.
  const Tensor* edge_features() const noexcept;
  void set_edge_features(std::shared_ptr<const Tensor> features);
  /// Those of some edges of another topology, in this order: of a part of its graph. The work is
  /// queued on `stream`.
  void take_edge_features(const Topology& whole, std::span<const EdgeOffset> edges, Stream stream);

  /// The scales of what is derived, vertices x 1 in fp32; null where it has none.
  const Tensor* row_scale(Derivation derivation, const Placement& placement);
  const Tensor* col_scale(Derivation derivation, const Placement& placement);

  /// What all plans of the topology have in common.
  const ops::PlanOptions& plan_options() const noexcept;

  /// The plan of an op on what is derived, made if there is none with these options yet. What they
  /// have in common with all plans is the topology's own, except whether there is a backward pass;
  /// a plan that has one serves those who do not need it, too.
  ops::SpmmPlan spmm(Derivation derivation, ops::SpmmOptions options);
  /// A plan that has the backward pass of these options, whatever its epilogue: that plays no part
  /// in gradients.
  ops::SpmmPlan spmm_gradient(Derivation derivation, ops::SpmmOptions options);
  ops::AttentionPlan attention(Derivation derivation, ops::AttentionOptions options);
  /// Of the edges as they are given.
  ops::MessagesPlan messages(ops::MessagesOptions options);

  void set_fusing(Fusing fusing);
  /// An empty plan where layers are to keep to the stages that they have themselves.
  ops::AggregateUpdatePlan fused_update(Derivation derivation, ops::AggregateUpdateOptions options);

  /// What was planned so far; and the same planned ahead, by whoever has the topology then.
  PlanRequests requests() const;
  void plan(const PlanRequests& requests);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::step
