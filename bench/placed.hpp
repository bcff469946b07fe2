// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/ops/operand.hpp"

#include "bench/inputs.hpp"
#include "bench/sample.hpp"

namespace tessera::bench {

/// Inputs on a GPU repeat a block of this many random numbers, so that large ones need neither to
/// be drawn nor to be copied as a whole. A prime: rows begin at different places of it.
constexpr std::int64_t block_elements = 1048573;

/// A matrix where an op runs, and as much of it in this process as somebody asks for. On the CPU
/// both are the same.
template <class T>
class Placed {
 public:
  /// An output, zero until an op writes it.
  Placed(std::int64_t rows, std::int64_t cols, Device device)
      : device_(device), rows_(rows), cols_(cols) {
    if (on_host()) {
      host_ = zero_matrix<T>(rows, cols);
      return;
    }
    there_ = Buffer<T>(rows * cols, default_memory(device));
    fill_zero(there_.data(), num_bytes(), device_);
    synchronise(device_);
  }

  /// An input.
  static Placed random(std::int64_t rows, std::int64_t cols, std::uint64_t seed, Device device) {
    Placed input(0, 0, device);
    input.rows_ = rows;
    input.cols_ = cols;
    if (input.on_host()) {
      input.host_ = random_matrix<T>(rows, cols, seed);
    } else {
      input.block_ = random_matrix<T>(1, std::min(rows * cols, block_elements), seed);
      input.repeat_block();
    }
    return input;
  }

  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t cols() const noexcept { return cols_; }
  std::int64_t bytes() const noexcept {
    return rows_ * cols_ * static_cast<std::int64_t>(sizeof(T));
  }

  MatrixView<T> view() { return {on_host() ? host_.data() : there_.data(), rows_, cols_, device_}; }
  operator ops::Operand() { return ops::Operand(view()); }
  operator ops::ConstOperand() { return ops::ConstOperand(view()); }

  /// The whole, as it was drawn or as it was last fetched.
  const Matrix<T>& host() const {
    if (block_.size() > 0 && host_.size() == 0) {
      host_ = Matrix<T>(rows_, cols_);
      parallel_for(host_.size(), 1 << 14,
                   [&](std::int64_t i) { host_.data()[i] = block_.data()[i % block_.size()]; });
    }
    return host_;
  }

  /// Brings what ops wrote to this process.
  const Matrix<T>& fetch() {
    if (on_host()) return host_;
    synchronise(device_);
    host_ = Matrix<T>(rows_, cols_);
    copy_bytes(host_.data(), there_.data(), num_bytes(), device_);
    synchronise(device_);
    return host_;
  }

  /// Some rows of an input.
  template <class Index>
  Matrix<double> input_rows(const std::vector<Index>& rows) const {
    if (on_host()) return gather(host_.view(), rows);
    Matrix<double> result(static_cast<std::int64_t>(rows.size()), cols_);
    parallel_for(result.rows(), 256, [&](std::int64_t i) {
      const auto row = static_cast<std::int64_t>(rows[static_cast<std::size_t>(i)]);
      for (std::int64_t j = 0; j < cols_; ++j) {
        result(i, j) = static_cast<double>(block_.data()[(row * cols_ + j) % block_.size()]);
      }
    });
    return result;
  }

  /// Some rows of an output, in increasing order; neighbours come in one copy.
  template <class Index>
  Matrix<double> result_rows(const std::vector<Index>& rows) {
    if (on_host()) return gather(host_.view(), rows);
    synchronise(device_);
    const auto count = static_cast<std::int64_t>(rows.size());
    Matrix<T> found(count, cols_);
    for (std::int64_t begin = 0, end = 0; begin < count; begin = end) {
      const auto first = static_cast<std::int64_t>(rows[static_cast<std::size_t>(begin)]);
      for (end = begin + 1; end < count; ++end) {
        if (static_cast<std::int64_t>(rows[static_cast<std::size_t>(end)]) != first + end - begin) {
          break;
        }
      }
      copy_bytes(found.row(begin), there_.data() + first * cols_,
                 static_cast<std::size_t>((end - begin) * cols_) * sizeof(T), device_);
    }
    synchronise(device_);
    Matrix<double> result(count, cols_);
    std::transform(found.span().begin(), found.span().end(), result.data(),
                   [](const T& value) { return static_cast<double>(value); });
    return result;
  }

 private:
  bool on_host() const noexcept { return device_.kind == DeviceKind::cpu; }
  std::size_t num_bytes() const noexcept { return static_cast<std::size_t>(bytes()); }

  /// What is there is copied behind itself, twice as much each time.
  void repeat_block() {
    there_ = Buffer<T>(rows_ * cols_, default_memory(device_));
    const auto first = static_cast<std::size_t>(block_.size()) * sizeof(T);
    auto* const memory = reinterpret_cast<std::byte*>(there_.data());
    copy_bytes(memory, block_.data(), first, device_);
    for (std::size_t done = first; done > 0 && done < num_bytes(); done *= 2) {
      copy_bytes(memory + done, memory, std::min(done, num_bytes() - done), device_);
    }
    synchronise(device_);
  }

  mutable Matrix<T> host_;
  Matrix<T> block_;
  Device device_;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  Buffer<T> there_;
};

/// An input with random numbers.
template <class T>
Placed<T> random_placed(std::int64_t rows, std::int64_t cols, std::uint64_t seed, Device device) {
  return Placed<T>::random(rows, cols, seed, device);
}

}  // namespace tessera::bench
