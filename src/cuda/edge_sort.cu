// SPDX-License-Identifier: Apache-2.0
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include "cuda/edge_arrays.hpp"
#include "cuda/launch.cuh"

namespace tessera::cuda {
namespace {

/// CUB's way: a first call says how much memory the second one needs.
template <class Call>
void with_workspace(const Place& place, const char* doing, Call&& call) {
  std::size_t bytes = 0;
  cuda_check(call(static_cast<void*>(nullptr), bytes), doing);
  // A pointer to nothing would be taken for the question.
  Buffer<char> workspace(static_cast<std::int64_t>(bytes) + 1, place);
  cuda_check(call(static_cast<void*>(workspace.data()), bytes), doing);
}

template <class Key>
void sort_by(Buffer<Key>& keys, Buffer<EdgeOffset>& positions, int bits, const Place& place) {
  const EdgeOffset count = keys.size();
  if (count < 2 || bits == 0) return;
  Buffer<Key> spare_keys(count, place);
  Buffer<EdgeOffset> spare_positions(positions.size(), place);
  cub::DoubleBuffer<Key> both_keys(keys.data(), spare_keys.data());
  cub::DoubleBuffer<EdgeOffset> both_positions(positions.data(), spare_positions.data());
  with_workspace(place, "sorting edges", [&](void* workspace, std::size_t& bytes) {
    return positions.empty()
               ? cub::DeviceRadixSort::SortKeys(workspace, bytes, both_keys, count, 0, bits,
                                                raw(place.stream))
               : cub::DeviceRadixSort::SortPairs(workspace, bytes, both_keys, both_positions, count,
                                                 0, bits, raw(place.stream));
  });
  if (both_keys.Current() != keys.data()) keys.swap(spare_keys);
  if (!positions.empty() && both_positions.Current() != positions.data()) {
    positions.swap(spare_positions);
  }
}

}  // namespace

void sort_keys(Buffer<EdgeKey>& keys, Buffer<EdgeOffset>& positions, int bits, const Place& place) {
  sort_by(keys, positions, bits, place);
}

void sort_columns(Buffer<std::uint32_t>& columns, Buffer<EdgeOffset>& positions, int bits,
                  const Place& place) {
  sort_by(columns, positions, bits, place);
}

void inclusive_scan(EdgeOffset* values, EdgeOffset count, const Place& place) {
  with_workspace(place, "adding up counts", [&](void* workspace, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(workspace, bytes, values, values, count,
                                         raw(place.stream));
  });
}

template <class Count>
void exclusive_scan(Count* values, EdgeOffset count, const Place& place) {
  with_workspace(place, "adding up counts", [&](void* workspace, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(workspace, bytes, values, values, count,
                                         raw(place.stream));
  });
}
template void exclusive_scan(EdgeOffset*, EdgeOffset, const Place&);
template void exclusive_scan(std::int32_t*, EdgeOffset, const Place&);

void keep_flagged(const VertexId* values, const std::uint8_t* flags, EdgeOffset count, VertexId* to,
                  const Place& place) {
  if (count == 0) return;
  Buffer<EdgeOffset> kept(1, place);
  with_workspace(place, "keeping edges", [&](void* workspace, std::size_t& bytes) {
    return cub::DeviceSelect::Flagged(workspace, bytes, values, flags, to, kept.data(), count,
                                      raw(place.stream));
  });
}

}  // namespace tessera::cuda
