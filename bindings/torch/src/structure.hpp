// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "place.hpp"
#include "tensors.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::torch_ops {

/// How tensors describe edges.
enum class Layout : std::int64_t {
  source_target = 0,  ///< index is 2 x E: sources, targets (PyG's edge_index)
  target_source = 1,  ///< the other way round
  by_target = 2,      ///< a CSR: offsets of the targets, index holds sources
  by_source = 3,      ///< offsets of the sources, index holds targets
};

/// What becomes of edges from a vertex to itself.
enum class Loops : std::int64_t {
  as_given = 0,
  one_each = 1,  ///< those given are dropped, and every vertex that is source and target gets one
  dropped = 2,
  one_more = 3,  ///< those given stay, and every vertex that is source and target gets one more
};

/// What entries are scaled by.
enum class Norm : std::int64_t {
  none = 0,
  symmetric = 1,            ///< d^-1/2 of both ends, d the sum of a target's row (GCN)
  mean = 2,                 ///< 1 / (edges of the target)
  symmetric_by_source = 3,  ///< as symmetric, with d the number of a source's edges (Laplacians)
};

/// The arguments by which every operator knows its graph.
struct GraphArguments {
  Tensor index;
  std::optional<Tensor> offsets;
  std::int64_t targets = 0;
  std::int64_t sources = 0;
  Layout layout = Layout::source_target;
  Loops loops = Loops::as_given;

  GraphArguments(Tensor of_index, std::optional<Tensor> of_offsets, std::int64_t num_targets,
                 std::int64_t num_sources, std::int64_t layout_number, std::int64_t loops_number);

  /// The same memory by tensors that are none of the caller's, whose own can go while these stay.
  GraphArguments own() const;
};

/// A plan, and who runs it: on the CPU one at a time.
template <class Plan>
struct Planned {
  Plan plan;
  std::mutex mutex;
};

using PlanNumbers = std::array<double, 12>;

/// A graph that tensors describe, and all that was made of it. Edges have two orders: the caller's,
/// in which values of edges come and go, and that of the rows, in which kernels see them.
class Structure {
 public:
  /// Of tensors of its own.
  explicit Structure(const GraphArguments& own_arguments);
  /// torch gives memory back to the stream that took it: what others run with it has to end first.
  ~Structure() {
    if (shared_) wait_for(built_at_.device);
  }
  Structure(const Structure&) = delete;
  Structure& operator=(const Structure&) = delete;

  /// As scaled by `norm`, with added loops of this weight.
  Graph graph(Norm norm, double loop_weight);
  /// The entries of that graph's matrix in the order of rows, one column, in double precision: the
  /// graph itself keeps its scales in single precision. For a graph on the CPU.
  Tensor entries(Norm norm, double loop_weight);
  /// Each edge once, for max and min, where weights of edges play no part.
  Graph unique_graph();

  /// Throws `invalid_argument` where edges are repeated, which sums of bits do not count.
  void require_each_edge_once() const;

  /// How many loops were added: to vertices 0, 1, …
  std::int64_t added_loops() const;
  /// How many values the caller has for edges: those given, then one for each loop that was added.
  std::int64_t caller_edges() const { return caller_edges_; }
  std::int64_t edges() const { return graph_.num_edges(); }
  std::int64_t targets() const { return arguments_.targets; }
  std::int64_t sources() const { return arguments_.sources; }

  /// Of each edge in rows, its position among the caller's; nothing: the same.
  const std::optional<Tensor>& order() const { return order_; }
  /// Values of the caller's edges (one or more for each) in the order of rows.
  Tensor in_rows(const Tensor& values) const;
  /// Back again; edges that were dropped get 0.
  Tensor to_caller(const Tensor& values) const;

  /// The plan of these numbers, made by `make` for the first who asks.
  template <class Plan, class Make>
  std::shared_ptr<Planned<Plan>> plan(const PlanNumbers& numbers, const Place& place, Make&& make) {
    const std::scoped_lock lock(mutex_);
    std::shared_ptr<void>& kept = plans_[numbers];
    if (!kept) {
      require_no_capture(place, "this operator was not planned for the graph before");
      auto made = std::make_shared<Planned<Plan>>();
      made->plan = make();
      kept = made;
      count_plan();
    }
    return std::static_pointer_cast<Planned<Plan>>(kept);
  }

  /// Notes who uses it.
  void used_at(const Place& place) {
    if (place.stream.handle != built_at_.stream.handle) shared_ = true;
  }
  /// Captured work uses its plans for as long as it is replayed, so they stay.
  void pin() { pinned_ = true; }
  bool pinned() const { return pinned_; }

 private:
  void require_square(Norm norm) const;
  static void require_no_capture(const Place& place, const char* what);
  static void count_plan();
  void build(const Tensor& targets, const Tensor& sources, const Tensor* caller_positions,
             const Place& place);
  Graph with_loop_weight(double weight) const;
  /// 1 for each edge given and this weight for each added loop, in the order of rows.
  Tensor loop_weights(double weight, ScalarType type) const;
  /// What rows are scaled by, and columns where the norm is symmetric.
  std::vector<double> scales(Norm norm, double loop_weight) const;

  GraphArguments arguments_;
  const Place built_at_ = place_of(arguments_.index);
  std::atomic<bool> shared_{false};  ///< by streams
  Graph graph_;
  std::optional<Tensor> order_;
  std::int64_t caller_edges_ = 0;
  std::atomic<bool> pinned_{false};
  std::recursive_mutex mutex_;  ///< making a plan asks for the graph
  std::map<std::pair<int, double>, Graph> graphs_;
  std::map<std::pair<int, double>, Tensor> entries_;
  std::optional<Graph> unique_;
  std::map<PlanNumbers, std::shared_ptr<void>> plans_;
};

/// The structure that the tensors describe: from the cache if they are the same, unchanged.
std::shared_ptr<Structure> structure_of(const GraphArguments& arguments);

/// By default any number of entries, and a share of the memory of each device.
void set_cache_limits(std::optional<std::int64_t> entries, std::optional<std::int64_t> bytes);
/// Drops what was made of indices in this memory, which are gone.
void forget_graphs(const void* memory);
void clear_cache();

struct CacheUse {
  std::int64_t entries = 0;
  std::int64_t bytes = 0;  ///< estimated
};
CacheUse cache_use();

}  // namespace tessera::torch_ops
