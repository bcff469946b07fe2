// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/kept.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/core/placed_array.hpp"

namespace tessera::cuda {

/// A copy of host values on a GPU, queued on the place's stream. Ordinary values have been read
/// when the call returns; those in pinned memory must stay until the stream has been waited for.
template <class T>
Buffer<T> to_device(std::span<const T> values, const Place& place) {
  Buffer<T> copy(static_cast<std::int64_t>(values.size()), place);
  copy_bytes(copy.data(), values.data(), values.size_bytes(), place.device, place.stream);
  return copy;
}

template <class T>
Buffer<T> to_device(const std::vector<T>& values, const Place& place) {
  return to_device(std::span<const T>(values), place);
}

/// A copy of a GPU's values, in a `Buffer` or a `SharedArray`, in this process; made in the order
/// of the stream, which it waits for.
template <template <class> class Array, class T>
Buffer<T> to_host(const Array<T>& there, const Place& place) {
  Buffer<T> copy(there.size());
  if (there.empty()) return copy;
  copy_bytes(copy.data(), there.data(), static_cast<std::size_t>(there.size()) * sizeof(T),
             place.device, place.stream);
  synchronise(place.device, place.stream);
  return copy;
}

/// One of a GPU's values, in this process; waits for the stream.
template <class T>
T value_at(const T* there, const Place& place) {
  T value{};
  copy_bytes(&value, there, sizeof(value), place.device, place.stream);
  synchronise(place.device, place.stream);
  return value;
}

/// The first `count` of some values, which were as many as there might have been.
template <class T>
SharedArray<T> first_of(Buffer<T> values, std::int64_t count) {
  const auto whole = std::make_shared<const Buffer<T>>(std::move(values));
  return SharedArray<T>(whole, whole->data(), count);
}

/// Sets all of an array to 0, in the order of the place's stream.
template <class T>
void clear(Buffer<T>& values, const Place& place) {
  fill_zero(values.data(), static_cast<std::size_t>(values.size()) * sizeof(T), place.device,
            place.stream);
}

/// An array that was made in a place, to be shared: what uses it on other streams holds it.
template <class T>
PlacedArray<T> placed(SharedArray<T> values, const Place& place) {
  if (values.empty()) return {};
  const T* const data = values.data();
  const std::int64_t size = values.size();
  auto kept = std::make_shared<const Kept<SharedArray<T>>>(std::move(values), place);
  const auto lend = [kept, data, size](Stream stream) {
    return SharedArray<T>(Kept<SharedArray<T>>::use(kept, stream), data, size);
  };
  return PlacedArray<T>(SharedArray<T>(kept, data, size), place, lend);
}
template <class T>
PlacedArray<T> placed(Buffer<T> values, const Place& place) {
  return placed(SharedArray<T>(std::move(values)), place);
}

/// An array on a GPU: as it lies there, or a copy. Those that lie on another device come through
/// this process.
template <class T>
SharedArray<T> array_in(const PlacedArray<T>& array, const Place& place) {
  if (array.device() == place.device) return array.there(place.stream);
  return to_device(array.here().span(), place);
}

}  // namespace tessera::cuda
