// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/step/tensor.hpp"
#include "tessera/step/topology.hpp"

namespace tessera::step {

/// What a layer reads: a dense matrix, or a sparse one kept sparse. Never owns; what it was made
/// from must live until the backward pass is over.
class Input {
 public:
  Input() = default;
  Input(const Tensor& dense) : dense_(&dense) {}
  /// `values` replaces the matrix's own, and has the shape of `Topology::values`.
  Input(Topology& sparse, const Tensor* values = nullptr) : sparse_(&sparse), values_(values) {}

  bool absent() const noexcept { return dense_ == nullptr && sparse_ == nullptr; }
  bool is_sparse() const noexcept { return sparse_ != nullptr; }
  std::int64_t rows() const;
  std::int64_t cols() const;
  /// Throws `unsupported` for a sparse input, naming the layer that cannot use it.
  const Tensor& dense(const char* layer) const;
  Topology& sparse() const noexcept { return *sparse_; }
  /// One value per stored entry, entries x 1; absent: the matrix's own.
  ops::ConstOperand values() const;

  friend bool operator==(const Input&, const Input&) = default;

 private:
  const Tensor* dense_ = nullptr;
  Topology* sparse_ = nullptr;
  const Tensor* values_ = nullptr;
};

}  // namespace tessera::step
