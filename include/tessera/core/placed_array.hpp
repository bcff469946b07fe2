// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "tessera/core/device.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/core/shared_array.hpp"

namespace tessera {

/// An immutable array in the place where it was made or given. One that lies on a GPU comes to this
/// process when somebody first asks for it here; copies share both. Any number of threads may ask
/// at once.
template <class T>
class PlacedArray {
 public:
  PlacedArray() = default;
  /// An array in memory of this process: anything that a `SharedArray` is made of.
  template <class Values>
  requires std::constructible_from<SharedArray<T>, Values &&> PlacedArray(Values&& values)
      : here_(std::forward<Values>(values)), size_(here_.size()) {}
  /// An array in any place, written in the order of the place's stream. `lend` hands it to what
  /// works in the order of another stream, and keeps it until that is done.
  PlacedArray(SharedArray<T> values, const Place& place,
              std::function<SharedArray<T>(Stream)> lend = {})
      : size_(values.size()) {
    if (place.device.kind == DeviceKind::cpu) {
      here_ = std::move(values);
      return;
    }
    elsewhere_ = std::make_shared<Elsewhere>();
    elsewhere_->values = std::move(values);
    elsewhere_->place = place;
    elsewhere_->lend = std::move(lend);
  }

  std::int64_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  Place place() const { return elsewhere_ == nullptr ? Place() : elsewhere_->place; }
  Device device() const noexcept {
    return elsewhere_ == nullptr ? Device{} : elsewhere_->place.device;
  }

  /// In memory of this process.
  const SharedArray<T>& here() const {
    return elsewhere_ == nullptr ? here_ : elsewhere_->fetched();
  }
  /// Where it lies, to be read by that device in the order of the stream.
  SharedArray<T> there(Stream stream = {}) const {
    if (elsewhere_ == nullptr) return here_;
    return elsewhere_->lend ? elsewhere_->lend(stream) : elsewhere_->values;
  }

 private:
  struct Elsewhere {
    SharedArray<T> values;
    Place place;
    std::function<SharedArray<T>(Stream)> lend;
    std::once_flag once;
    SharedArray<T> copy;

    const SharedArray<T>& fetched() {
      std::call_once(once, [this] {
        Buffer<T> buffer(values.size());
        copy_bytes(buffer.data(), values.data(),
                   static_cast<std::size_t>(values.size()) * sizeof(T), place.device, place.stream);
        synchronise(place.device, place.stream);
        copy = std::move(buffer);
      });
      return copy;
    }
  };

  SharedArray<T> here_;
  std::shared_ptr<Elsewhere> elsewhere_;
  std::int64_t size_ = 0;
};

}  // namespace tessera
