// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tessera/core/memory.hpp"

namespace tessera::cuda {

/// A copy of host values on a GPU. Has arrived when the call returns, for any stream.
template <class T>
Buffer<T> to_device(std::span<const T> values, Device device) {
  Buffer<T> copy(static_cast<std::int64_t>(values.size()), default_memory(device));
  if (values.empty()) return copy;  // nothing to wait for
  copy_bytes(copy.data(), values.data(), values.size_bytes(), device);
  synchronise(device);
  return copy;
}

/// A copy of a GPU's values in this process.
template <class T>
Buffer<T> to_host(const Buffer<T>& there, Device device) {
  Buffer<T> copy(there.size());
  copy_bytes(copy.data(), there.data(), static_cast<std::size_t>(there.size()) * sizeof(T), device);
  synchronise(device);
  return copy;
}

}  // namespace tessera::cuda
