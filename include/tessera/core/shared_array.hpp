// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tessera/core/memory.hpp"

namespace tessera {

/// An immutable array that several owners share: copying it costs a pointer. Its bytes lie in a
/// `Buffer`, in a `std::vector`, or in a mapped file; the owner is kept alive either way.
template <class T>
class SharedArray {
 public:
  SharedArray() = default;
  SharedArray(Buffer<T>&& buffer) {
    auto owner = std::make_shared<const Buffer<T>>(std::move(buffer));
    *this = SharedArray(owner, owner->data(), owner->size());
  }
  SharedArray(std::vector<T> values) {
    auto owner = std::make_shared<const std::vector<T>>(std::move(values));
    *this = SharedArray(owner, owner->data(), static_cast<std::int64_t>(owner->size()));
  }
  /// Borrows `size` values at `data`, which live as long as `owner` does.
  SharedArray(std::shared_ptr<const void> owner, const T* data, std::int64_t size)
      : owner_(std::move(owner)), data_(data), size_(size) {}

  const T* data() const noexcept { return data_; }
  std::int64_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  const T& operator[](std::int64_t i) const noexcept { return data_[i]; }
  const T& back() const noexcept { return data_[size_ - 1]; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  std::span<const T> span() const noexcept { return {data_, static_cast<std::size_t>(size_)}; }
  operator std::span<const T>() const noexcept { return span(); }

  friend bool operator==(const SharedArray& a, const SharedArray& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::shared_ptr<const void> owner_;
  const T* data_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace tessera
