// SPDX-License-Identifier: Apache-2.0
#include "graph/edge_sort.hpp"

namespace tessera::detail {
namespace {

void sort_with_positions(SortedEdges& edges, EdgeOffset begin, EdgeOffset end) {
  thread_local std::vector<std::pair<VertexId, EdgeOffset>> scratch;
  scratch.clear();
  for (EdgeOffset k = begin; k < end; ++k) {
    scratch.emplace_back(edges.minors[k], edges.positions[k]);
  }
  std::sort(scratch.begin(), scratch.end());
  for (const auto& [minor, position] : scratch) {
    edges.minors[begin] = minor;
    edges.positions[begin++] = position;
  }
  // A hub's scratch is not worth keeping for the life of the thread.
  constexpr std::size_t worth_keeping = 1 << 16;
  if (scratch.capacity() > worth_keeping) scratch = {};
}

}  // namespace

void sort_minors(SortedEdges& edges, EdgeOffset begin, EdgeOffset end) {
  VertexId* const first = edges.minors.data() + begin;
  VertexId* const last = edges.minors.data() + end;
  if (std::is_sorted(first, last)) return;
  if (edges.positions.empty()) {
    std::sort(first, last);
  } else {
    sort_with_positions(edges, begin, end);
  }
}

}  // namespace tessera::detail
