// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/error.hpp"

#include "sample/placed.hpp"

namespace tessera::sample::on_gpu {
namespace {

[[noreturn]] void refuse(const Place& place) {
  require_available(place.device);
  throw Error(ErrorCode::internal, "work for a GPU in a build without", to_string(place.device));
}

}  // namespace

PlacedGraph placed_graph(const Graph&, const EdgeKnowledge&, EdgeMemory, const Place& place) {
  refuse(place);
}
PlacedHops draw_hops(const Candidates&, const HopOptions&, std::span<const VertexId>, std::uint64_t,
                     std::span<const std::int64_t>, bool, const Place& place) {
  refuse(place);
}
NeighbourSample sample_of(PlacedHops&&, const PlacedGraph&, std::size_t, bool, const Place& place) {
  refuse(place);
}

}  // namespace tessera::sample::on_gpu
