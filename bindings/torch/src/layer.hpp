// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "copies.hpp"
#include "dense.hpp"
#include "operators.hpp"
#include "spmm.hpp"

/// A layer as one step: neighbours are summed and multiplied by a matrix, in the order that has the
/// narrower sums, and what a vertex has itself, times another matrix, and a bias are added.
///
///     Y = B X W^T + R V^T + bias,    B the graph's matrix, or that plus (1 + own_scale) I
namespace tessera::torch_ops {

/// Bits of `needs`, and the order in which gradients are returned.
enum Needs : std::int64_t {
  need_x = 1,
  need_weight = 2,
  need_root = 4,
  need_root_weight = 8,
  need_bias = 16,
};

/// What a layer multiplies, in the type that it runs in. Features that are multiplied by both
/// matrices are multiplied once, by one above the other.
struct Factors {
  bool joined;
  bool cast_features;
  bool own_matrix;  ///< the matrix is none of the caller's

  Factors(const Tensor& x, const Tensor& weight, bool has_root, bool has_root_weight,
          bool sum_first, ScalarType type)
      : joined(!sum_first && has_root_weight && !has_root),
        cast_features(x.scalar_type() != type),
        own_matrix(joined || weight.scalar_type() != type) {}
};

/// The arguments of a layer in one, and how it runs.
struct Layer {
  Tensor x;
  Tensor weight;
  std::optional<Tensor> root, root_weight, own_scale, edge_weight;
  std::shared_ptr<Structure> structure;
  SpmmSettings settings;
  bool sum_first;
  bool cast;  ///< by autocast: otherwise all that is given has one type
  ScalarType type;
  ScalarType returned;  ///< the type of its results
  Factors factors;
  Dense dense;

  Layer(Tensor features, Tensor matrix, std::optional<Tensor> of_root,
        std::optional<Tensor> of_root_weight, std::optional<Tensor> of_own_scale,
        std::optional<Tensor> of_edge_weight, const GraphArguments& graph,
        const SpmmSettings& sum_settings, bool sums_go_first, std::int64_t flags)
      : x(std::move(features)),
        weight(std::move(matrix)),
        root(std::move(of_root)),
        root_weight(std::move(of_root_weight)),
        own_scale(std::move(of_own_scale)),
        edge_weight(std::move(of_edge_weight)),
        structure(structure_of(graph)),
        settings(sum_settings),
        sum_first(sums_go_first),
        cast(is_cast(flags)),
        type(layer_type(x, flags)),
        returned(result_type(x, flags)),
        factors(x, weight, root.has_value(), root_weight.has_value(), sum_first, type),
        dense(x, flags) {
    check();
  }

  /// Throws `invalid_argument` where the tensors do not fit each other.
  void check() const;
  /// The results, then what the backward pass takes: sums that went first, features and matrices
  /// that are none of the caller's. `copies` are made with those of the layer.
  std::vector<Tensor> forward(std::optional<Tensor> bias, bool relu, Copies& copies) const;
  /// Appends the gradients that `needs` asks for.
  void backward(Tensor grad, std::vector<Tensor>::const_iterator kept, std::int64_t needs,
                std::vector<Tensor>& gradients) const;
};

}  // namespace tessera::torch_ops
