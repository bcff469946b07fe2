// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tessera/core/memory.hpp"

namespace tessera::cuda {

/// A copy of host values on a GPU, queued on the place's stream. Ordinary values have been read
/// when the call returns; those in pinned memory must stay until the stream has been waited for.
template <class T>
Buffer<T> to_device(std::span<const T> values, const Place& place) {
  Buffer<T> copy(static_cast<std::int64_t>(values.size()), place);
  copy_bytes(copy.data(), values.data(), values.size_bytes(), place.device, place.stream);
  return copy;
}

/// A copy of a GPU's values in this process, made in the order of the stream, which it waits for.
template <class T>
Buffer<T> to_host(const Buffer<T>& there, const Place& place) {
  Buffer<T> copy(there.size());
  if (there.empty()) return copy;
  copy_bytes(copy.data(), there.data(), static_cast<std::size_t>(there.size()) * sizeof(T),
             place.device, place.stream);
  synchronise(place.device, place.stream);
  return copy;
}

/// Sets all of an array to 0, in the order of the place's stream.
template <class T>
void clear(Buffer<T>& values, const Place& place) {
  fill_zero(values.data(), static_cast<std::size_t>(values.size()) * sizeof(T), place.device,
            place.stream);
}

}  // namespace tessera::cuda
