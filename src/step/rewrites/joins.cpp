// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "step/ops/aggregate.hpp"
#include "step/ops/batch_norm.hpp"
#include "step/ops/combine.hpp"
#include "step/ops/finish.hpp"
#include "step/ops/linear.hpp"
#include "step/rewrites/join.hpp"
#include "tessera/ops/linear.hpp"

/// A node and the only one that reads it become one.
namespace tessera::step {
namespace {

/// Whether `second` can be done in the pass of `first`: bias, activation and dropout in this order.
bool follows(const Finishing& first, const Finishing& second, bool second_has_bias) {
  if (second_has_bias || first.dropout > 0) return false;
  return first.kind.activation == ops::Activation::none ||
         second.kind.activation == ops::Activation::none;
}

Finishing merged(const Finishing& first, const Finishing& second) {
  Finishing both = second;
  if (second.kind.activation == ops::Activation::none) both.kind = first.kind;
  return both;
}

/// Of sums `a + b`: a node of type T that computes one of the two adds the other, which becomes its
/// input number `added`. `accept` says whether it takes one, and changes its op to one that adds.
template <class T, class Accept>
std::int64_t join_sums(Program& program, const Surroundings& around, std::size_t added,
                       Accept&& accept) {
  return join_pairs<T, Combine>(
      program, around, {1, 0},
      [&](const Node& first, const Node& sum, std::size_t operand) -> std::optional<Node> {
        Node joined = first;
        if (!sum.as<Combine>()->is_sum() || !accept(joined)) return {};
        joined.in[added] = sum.in[1 - operand];
        joined.out[0] = sum.out[0];
        return joined;
      });
}

}  // namespace

std::int64_t merge_finishes(Program& program, const Surroundings& around) {
  return join_next<Finish, Finish>(program, around, [](Node& first, const Node& second) {
    const Finishing& before = first.as<Finish>()->finishing();
    const Finishing& after = second.as<Finish>()->finishing();
    if (!follows(before, after, !second.in[1].absent())) return false;
    first.op = std::make_shared<Finish>(merged(before, after));
    return true;
  });
}

// The mean takes a bias away again: it only moves the running mean.
std::int64_t bias_in_norm(Program& program, const Surroundings& around) {
  return join_pairs<Finish, BatchNorm>(
      program, around, {BatchNorm::x},
      [](const Node& bias, const Node& norm, std::size_t) -> std::optional<Node> {
        if (!norm.in[BatchNorm::shift].absent() || bias.in[1].absent() ||
            !bias.as<Finish>()->finishing().is_linear()) {
          return {};
        }
        Node joined = norm;
        joined.in[BatchNorm::x] = bias.in[0];
        joined.in[BatchNorm::shift] = bias.in[1];
        return joined;
      });
}

std::int64_t finish_in_norm(Program& program, const Surroundings& around) {
  return join_next<BatchNorm, Finish>(program, around, [](Node& norm, const Node& end) {
    const auto& op = *norm.as<BatchNorm>();
    if (!op.finishing().is_linear() || !end.in[1].absent()) return false;
    norm.op = std::make_shared<BatchNorm>(op.kind(), end.as<Finish>()->finishing());
    return true;
  });
}

std::int64_t sum_in_aggregate(Program& program, const Surroundings& around) {
  return join_sums<Aggregate>(program, around, Aggregate::residual, [](const Node& node) {
    return !node.as<Aggregate>()->finishes() && node.in[Aggregate::residual].absent();
  });
}

std::int64_t finish_in_aggregate(Program& program, const Surroundings& around) {
  return join_next<Aggregate, Finish>(program, around, [](Node& sums, const Node& end) {
    const auto& aggregate = *sums.as<Aggregate>();
    const Finishing& finishing = end.as<Finish>()->finishing();
    if (aggregate.finishes() || !sums.in[Aggregate::scale].absent() ||
        !finishing.shows_derivative()) {
      return false;
    }
    sums.op = std::make_shared<Aggregate>(aggregate, finishing);
    sums.in[Aggregate::bias] = end.in[1];
    return true;
  });
}

std::int64_t finish_in_sparse_linear(Program& program, const Surroundings& around) {
  return join_next<SparseLinear, Finish>(program, around, [](Node& product, const Node& end) {
    const Finishing& finishing = end.as<Finish>()->finishing();
    if (product.as<SparseLinear>()->finishes() || !finishing.shows_derivative()) return false;
    product.op = std::make_shared<SparseLinear>(finishing);
    product.in[SparseLinear::bias] = end.in[1];
    return true;
  });
}

std::int64_t relu_in_linear(Program& program, const Surroundings& around) {
  return join_next<Linear, Finish>(program, around, [&](Node& product, const Node& end) {
    const Finishing& finishing = end.as<Finish>()->finishing();
    const bool is_relu =
        finishing.kind.activation == ops::Activation::relu && finishing.dropout == 0;
    if (!is_relu || !product.as<Linear>()->is_plain() || !product.in[Linear::bias].absent() ||
        !holds(ops::linear_activates, program, around, product.in[Linear::x],
               product.in[Linear::weight])) {
      return false;
    }
    product.op = std::make_shared<Linear>(Linear::Form{.relu = true});
    product.in[Linear::bias] = end.in[1];
    return true;
  });
}

std::int64_t bias_in_linear(Program& program, const Surroundings& around) {
  return join_next<Linear, Finish>(program, around, [](Node& product, const Node& end) {
    if (!product.as<Linear>()->is_plain() || !product.in[Linear::bias].absent() ||
        !end.as<Finish>()->finishing().is_linear()) {
      return false;
    }
    product.in[Linear::bias] = end.in[1];
    return true;
  });
}

// A bias would be added before the matrix: no op has both.
std::int64_t sum_in_linear(Program& program, const Surroundings& around) {
  return join_sums<Linear>(program, around, Linear::added, [](Node& node) {
    if (!node.as<Linear>()->is_plain() || !node.in[Linear::bias].absent()) return false;
    node.op = std::make_shared<Linear>(Linear::Form{.adds = true});
    return true;
  });
}

std::int64_t sum_in_linear_gradient(Program& program, const Surroundings& around) {
  return join_sums<LinearGradient>(program, around, LinearGradient::added, [](Node& node) {
    LinearGradient::Form form = node.as<LinearGradient>()->form();
    if (form.adds || form.reads_norm) return false;
    form.adds = true;
    node.op = std::make_shared<LinearGradient>(form);
    return true;
  });
}

std::int64_t scale_in_sum(Program& program, const Surroundings& around) {
  return join_pairs<Scale, Combine>(
      program, around, {0, 1},
      [](const Node& scaled, const Node& sum, std::size_t operand) -> std::optional<Node> {
        const double factor = scaled.as<Scale>()->alpha();
        const Combine& before = *sum.as<Combine>();
        Node joined = sum;
        joined.in[operand] = scaled.in[0];
        joined.op = std::make_shared<Combine>(before.alpha() * (operand == 0 ? factor : 1),
                                              before.beta() * (operand == 1 ? factor : 1));
        return joined;
      });
}

}  // namespace tessera::step
