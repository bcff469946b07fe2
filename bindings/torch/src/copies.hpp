// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tensors.hpp"

/// Copies of matrices into other types and places that are made together. On a GPU small ones share
/// one kernel, since the host would take longer to ask for each than the GPU takes to make it;
/// large ones, as of features, have a kernel each.
namespace tessera::torch_ops {

struct Copy {
  Tensor into;
  Tensor source;
  /// Not 0: the source is one row, in one piece, of so many numbers for each row of `into`, which
  /// become blocks on its diagonal; zeros are around them.
  std::int64_t diagonal = 0;
};

/// Makes one, by torch.
void make_one(const Copy& copy);
/// Makes them all; none may write what another reads.
void make_all(const std::vector<Copy>& copies);

/// Collects copies.
class Copies {
 public:
  void add(const Tensor& into, const Tensor& source) { copies_.push_back({into, source}); }
  void add_diagonal(const Tensor& into, const Tensor& source, std::int64_t width) {
    copies_.push_back({into, source, width});
  }
  /// The tensor itself where it has the type, otherwise what will be its copy.
  Tensor in_type(const Tensor& tensor, ScalarType type);
  std::optional<Tensor> in_type(const std::optional<Tensor>& tensor, ScalarType type);
  /// Two matrices of one shape, one above the other.
  Tensor stacked(const Tensor& first, const Tensor& second, ScalarType type);
  void make() {
    make_all(copies_);
    copies_.clear();
  }

 private:
  std::vector<Copy> copies_;
};

}  // namespace tessera::torch_ops
