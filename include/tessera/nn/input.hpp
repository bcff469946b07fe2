// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tessera/data/dataset.hpp"
#include "tessera/nn/names.hpp"

namespace tessera::nn {

/// Owns a data set's features in the form a model reads.
class InputFeatures {
 public:
  /// Sparse features stay sparse unless `densify`; `plans` says how products with them are planned.
  /// A data set without features is an `invalid_argument` error.
  explicit InputFeatures(const Features& features, Placement placement = {}, bool densify = false,
                         const ops::PlanOptions& plans = {});

  /// The features of some vertices, in this order, cut out where they lie: a batch. The work is
  /// queued on `stream`, in whose order they are made and released.
  InputFeatures of_vertices(std::span<const VertexId> vertices, Stream stream) const;

  Input input();
  /// Of sparse features, else null.
  Topology* sparse() noexcept { return sparse_ ? &*sparse_ : nullptr; }
  std::int64_t rows() const;
  std::int64_t cols() const;

 private:
  InputFeatures() = default;

  std::optional<Tensor> dense_;
  std::optional<Topology> sparse_;
};

/// Dropout on the features themselves: on the stored entries where they are sparse.
class InputDropout {
 public:
  InputDropout(double share, Placement placement) : share_(share), kept_(placement) {}

  /// The input itself outside training; otherwise a view of what this object holds.
  Input forward(const Input& input, std::uint32_t layer_number, const Context& context);
  /// In place; dense inputs only.
  void backward(const Input& input, Tensor& grad, std::uint32_t layer_number,
                const Context& context);

 private:
  double share_;
  Tensor kept_;
};

}  // namespace tessera::nn
