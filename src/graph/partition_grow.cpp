// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "tessera/core/random.hpp"

#include "graph/partition_methods.hpp"

namespace tessera::detail {
namespace {

class Growth {
 public:
  explicit Growth(const PartitionTask& task)
      : graph_(task.graph),
        assignment_(static_cast<std::size_t>(graph_.num_rows()), unassigned),
        queued_for_(assignment_.size(), unassigned),
        next_seed_(static_cast<VertexId>(
            Random(task.seed).below(0, static_cast<std::uint64_t>(graph_.num_rows())))) {}

  /// Takes `size` vertices, breadth-first from the edge of the part before.
  void grow(std::int32_t part, VertexId size) {
    const VertexId seed = frontier_vertex();
    queue_.clear();
    head_ = 0;
    enqueue(seed, part);
    for (VertexId taken = 0; taken < size; ++taken) {
      if (head_ == queue_.size()) enqueue(unassigned_vertex(), part);
      const VertexId vertex = queue_[head_++];
      assignment_[static_cast<std::size_t>(vertex)] = part;
      for (const VertexId neighbour : graph_.neighbours(vertex)) {
        if (is_free(neighbour)) enqueue(neighbour, part);
      }
    }
  }

  Assignment finish() && { return std::move(assignment_); }

 private:
  static constexpr std::int32_t unassigned = -1;

  bool is_free(VertexId vertex) const {
    return assignment_[static_cast<std::size_t>(vertex)] == unassigned;
  }

  void enqueue(VertexId vertex, std::int32_t part) {
    if (queued_for_[static_cast<std::size_t>(vertex)] == part) return;
    queued_for_[static_cast<std::size_t>(vertex)] = part;
    queue_.push_back(vertex);
  }

  /// A vertex the part before reached but did not take; keeps the rest of the graph in one piece.
  VertexId frontier_vertex() { return head_ < queue_.size() ? queue_[head_] : unassigned_vertex(); }

  VertexId unassigned_vertex() {
    while (!is_free(next_seed_)) next_seed_ = (next_seed_ + 1) % graph_.num_rows();
    return next_seed_;
  }

  const Graph& graph_;
  Assignment assignment_;
  std::vector<std::int32_t> queued_for_;
  VertexId next_seed_;
  std::vector<VertexId> queue_;
  std::size_t head_ = 0;
};

}  // namespace

Assignment partition_grow(const PartitionTask& task) {
  Growth growth(task);
  const VertexId vertices = task.graph.num_rows();
  for (std::int32_t part = 0; part < task.parts; ++part) {
    report(task.progress, "growing parts", part, task.parts);
    growth.grow(part, range_begin(vertices, task.parts, part + 1) -
                          range_begin(vertices, task.parts, part));
  }
  report(task.progress, "growing parts", task.parts, task.parts);
  Assignment assignment = std::move(growth).finish();
  refine(task, assignment);
  return assignment;
}

}  // namespace tessera::detail
