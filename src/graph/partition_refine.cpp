// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "graph/partition_methods.hpp"

namespace tessera::detail {
namespace {

/// An assignment with the sizes of its parts, and a view of one vertex's neighbouring parts.
class PartSizes {
 public:
  PartSizes(const PartitionTask& task, Assignment& assignment)
      : task_(task),
        assignment_(assignment),
        sizes_(static_cast<std::size_t>(task.parts)),
        links_(static_cast<std::size_t>(task.parts)) {
    for (const std::int32_t part : assignment) ++sizes_[static_cast<std::size_t>(part)];
  }

  std::int32_t part_of(VertexId vertex) const {
    return assignment_[static_cast<std::size_t>(vertex)];
  }
  VertexId size(std::int32_t part) const { return sizes_[static_cast<std::size_t>(part)]; }
  bool has_room(std::int32_t part) const { return size(part) < task_.largest; }

  void move(VertexId vertex, std::int32_t part) {
    --sizes_[static_cast<std::size_t>(part_of(vertex))];
    ++sizes_[static_cast<std::size_t>(part)];
    assignment_[static_cast<std::size_t>(vertex)] = part;
  }

  struct Choice {
    std::int32_t part = -1;  ///< -1: no other part with room is near
    EdgeOffset gain = 0;     ///< by how much the cut falls, in edges
  };

  /// The neighbouring part with room that has most edges to `vertex`; of equals the smallest, then
  /// the lowest.
  Choice best_neighbouring_part(VertexId vertex) {
    const std::int32_t own = part_of(vertex);
    for (const VertexId neighbour : task_.graph.neighbours(vertex)) {
      const std::int32_t part = part_of(neighbour);
      if (neighbour != vertex && links_[static_cast<std::size_t>(part)]++ == 0) {
        touched_.push_back(part);
      }
    }
    const EdgeOffset own_links = links_[static_cast<std::size_t>(own)];
    Choice best;
    for (const std::int32_t part : touched_) {
      const EdgeOffset gain = links_[static_cast<std::size_t>(part)] - own_links;
      links_[static_cast<std::size_t>(part)] = 0;
      if (part == own || !has_room(part)) continue;
      const auto rank = [&](std::int32_t of, EdgeOffset of_gain) {
        return std::pair{-of_gain, std::pair{size(of), of}};
      };
      if (best.part < 0 || rank(part, gain) < rank(best.part, best.gain)) best = {part, gain};
    }
    touched_.clear();
    return best;
  }

 private:
  const PartitionTask& task_;
  Assignment& assignment_;
  std::vector<VertexId> sizes_;
  std::vector<EdgeOffset> links_;
  std::vector<std::int32_t> touched_;
};

}  // namespace

void refine(const PartitionTask& task, Assignment& assignment) {
  constexpr int most_passes = 10;
  PartSizes sizes(task, assignment);
  for (int pass = 0; pass < most_passes; ++pass) {
    report(task.progress, "refining parts", pass, most_passes);
    VertexId moved = 0;
    for (VertexId vertex = 0; vertex < task.graph.num_rows(); ++vertex) {
      const std::int32_t own = sizes.part_of(vertex);
      if (sizes.size(own) <= 1) continue;
      const auto [part, gain] = sizes.best_neighbouring_part(vertex);
      const bool evens_out = part >= 0 && gain == 0 && sizes.size(part) + 1 < sizes.size(own);
      if (part < 0 || (gain <= 0 && !evens_out)) continue;
      sizes.move(vertex, part);
      ++moved;
    }
    if (moved == 0) break;
  }
  report(task.progress, "refining parts", most_passes, most_passes);
}

bool rebalance(const PartitionTask& task, Assignment& assignment) {
  PartSizes sizes(task, assignment);
  std::vector<std::int32_t> empty;
  for (std::int32_t part = task.parts - 1; part >= 0; --part) {
    if (sizes.size(part) == 0) empty.push_back(part);
  }
  bool moved = false;
  const auto move = [&](VertexId vertex, std::int32_t part) {
    sizes.move(vertex, part);
    moved = true;
  };
  std::int32_t with_room = 0;
  for (VertexId vertex = 0; vertex < task.graph.num_rows(); ++vertex) {
    if (sizes.size(sizes.part_of(vertex)) <= task.largest) continue;
    if (!empty.empty()) {
      move(vertex, empty.back());
      empty.pop_back();
      continue;
    }
    const std::int32_t near = sizes.best_neighbouring_part(vertex).part;
    while (near < 0 && !sizes.has_room(with_room)) ++with_room;
    move(vertex, near >= 0 ? near : with_room);
  }
  for (VertexId vertex = 0; !empty.empty(); ++vertex) {
    if (sizes.size(sizes.part_of(vertex)) <= 1) continue;
    move(vertex, empty.back());
    empty.pop_back();
  }
  return moved;
}

}  // namespace tessera::detail
