// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "tessera/core/matrix.hpp"
#include "tessera/ops/operand.hpp"

#include "bench/inputs.hpp"

namespace tessera::bench {

/// A matrix where an op runs, and a copy of it in this process: one and the same on the CPU.
template <class T>
class Placed {
 public:
  /// An input.
  Placed(Matrix<T> values, Device device)
      : host_(std::move(values)), device_(device), rows_(host_.rows()), cols_(host_.cols()) {
    if (on_host()) return;
    allocate();
    copy_bytes(there_.data(), host_.data(), num_bytes(), device_);
    synchronise(device_);
  }
  /// An output, zero until an op writes it.
  Placed(std::int64_t rows, std::int64_t cols, Device device)
      : device_(device), rows_(rows), cols_(cols) {
    if (on_host()) {
      host_ = zero_matrix<T>(rows, cols);
      return;
    }
    allocate();
    fill_zero(there_.data(), num_bytes(), device_);
    synchronise(device_);
  }

  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t cols() const noexcept { return cols_; }
  std::int64_t bytes() const noexcept {
    return rows_ * cols_ * static_cast<std::int64_t>(sizeof(T));
  }

  MatrixView<T> view() { return {on_host() ? host_.data() : there_.data(), rows_, cols_}; }
  operator ops::Operand() { return ops::Operand(view()); }
  operator ops::ConstOperand() { return ops::ConstOperand(view()); }

  /// As it was given, or as it was last fetched.
  const Matrix<T>& host() const noexcept { return host_; }

  /// Brings what ops wrote to this process.
  const Matrix<T>& fetch() {
    if (on_host()) return host_;
    synchronise(device_);
    host_ = Matrix<T>(rows_, cols_);
    copy_bytes(host_.data(), there_.data(), num_bytes(), device_);
    synchronise(device_);
    return host_;
  }

 private:
  bool on_host() const noexcept { return device_.kind == DeviceKind::cpu; }
  void allocate() { there_ = Buffer<T>(rows_ * cols_, default_memory(device_)); }
  std::size_t num_bytes() const noexcept { return static_cast<std::size_t>(bytes()); }

  Matrix<T> host_;
  Device device_;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  Buffer<T> there_;
};

/// An input with random numbers.
template <class T>
Placed<T> random_placed(std::int64_t rows, std::int64_t cols, std::uint64_t seed, Device device) {
  return {random_matrix<T>(rows, cols, seed), device};
}

}  // namespace tessera::bench
