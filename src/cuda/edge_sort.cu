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
void with_workspace(Device device, const char* doing, Call&& call) {
  std::size_t bytes = 0;
  cuda_check(call(static_cast<void*>(nullptr), bytes), doing);
  // A pointer to nothing would be taken for the question.
  Buffer<char> workspace(static_cast<std::int64_t>(bytes) + 1, default_memory(device));
  cuda_check(call(static_cast<void*>(workspace.data()), bytes), doing);
}

template <class Key>
void sort_by(Buffer<Key>& keys, Buffer<EdgeOffset>& positions, int bits, Device device) {
  const EdgeOffset count = keys.size();
  if (count < 2 || bits == 0) return;
  Buffer<Key> spare_keys(count, default_memory(device));
  Buffer<EdgeOffset> spare_positions(positions.size(), default_memory(device));
  cub::DoubleBuffer<Key> both_keys(keys.data(), spare_keys.data());
  cub::DoubleBuffer<EdgeOffset> both_positions(positions.data(), spare_positions.data());
  with_workspace(device, "sorting edges", [&](void* workspace, std::size_t& bytes) {
    return positions.empty()
               ? cub::DeviceRadixSort::SortKeys(workspace, bytes, both_keys, count, 0, bits)
               : cub::DeviceRadixSort::SortPairs(workspace, bytes, both_keys, both_positions, count,
                                                 0, bits);
  });
  if (both_keys.Current() != keys.data()) keys.swap(spare_keys);
  if (!positions.empty() && both_positions.Current() != positions.data()) {
    positions.swap(spare_positions);
  }
  synchronise(device);
}

template <class Count>
void scan_before(Count* values, EdgeOffset count, Device device) {
  with_workspace(device, "adding up counts", [&](void* workspace, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(workspace, bytes, values, values, count);
  });
}

}  // namespace

void sort_keys(Buffer<EdgeKey>& keys, Buffer<EdgeOffset>& positions, int bits, Device device) {
  sort_by(keys, positions, bits, device);
}

void sort_columns(Buffer<std::uint32_t>& columns, Buffer<EdgeOffset>& positions, int bits,
                  Device device) {
  sort_by(columns, positions, bits, device);
}

void inclusive_scan(EdgeOffset* values, EdgeOffset count, Device device) {
  with_workspace(device, "adding up counts", [&](void* workspace, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(workspace, bytes, values, values, count);
  });
}

void exclusive_scan(EdgeOffset* values, EdgeOffset count, Device device) {
  scan_before(values, count, device);
}

void exclusive_scan(std::int32_t* values, EdgeOffset count, Device device) {
  scan_before(values, count, device);
}

void keep_flagged(const VertexId* values, const std::uint8_t* flags, EdgeOffset count, VertexId* to,
                  Device device) {
  if (count == 0) return;
  Buffer<EdgeOffset> kept(1, default_memory(device));
  with_workspace(device, "keeping edges", [&](void* workspace, std::size_t& bytes) {
    return cub::DeviceSelect::Flagged(workspace, bytes, values, flags, to, kept.data(), count);
  });
}

}  // namespace tessera::cuda
