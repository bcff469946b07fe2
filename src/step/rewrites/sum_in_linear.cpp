// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "step/ops/combine.hpp"
#include "step/ops/linear.hpp"
#include "step/rewrites/all.hpp"

namespace tessera::step {
namespace {

constexpr std::size_t added = 3;  // the input of both ops that is added to what they compute

/// Of `a + b` the operand that a product of type `Product` alone computes, and for nothing else;
/// the product is then put in the place of the sum. Returns how often.
template <class Product>
std::int64_t sum_in(Program& program, std::span<const Value> kept) {
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto* sum = nodes[i].as<Combine>();
    if (sum == nullptr || !sum->is_sum()) continue;
    for (const std::size_t operand : {std::size_t{1}, std::size_t{0}}) {
      const Value product = nodes[i].in[operand];
      const Node* const producer = program.producer(product);
      if (producer == nullptr || producer->out[0] != product) continue;
      const auto* const op = producer->as<Product>();
      if (op == nullptr || !op->is_plain() || !has_one_reader(program, product, kept)) continue;
      // A bias would be added before the matrix: no op has both.
      if constexpr (std::is_same_v<Product, Linear>) {
        if (!producer->in[2].absent()) continue;
      }
      const auto place = static_cast<std::ptrdiff_t>(producer - nodes.data());
      Node joined = *producer;
      joined.op = std::make_shared<Product>(true);
      joined.in[added] = nodes[i].in[1 - operand];
      joined.out[0] = nodes[i].out[0];
      nodes[i] = std::move(joined);
      nodes.erase(nodes.begin() + place);
      --i;
      ++fired;
      break;
    }
  }
  return fired;
}

}  // namespace

std::int64_t sum_in_linear(Program& program, std::span<const Value> kept) {
  return sum_in<Linear>(program, kept);
}

std::int64_t sum_in_linear_gradient(Program& program, std::span<const Value> kept) {
  return sum_in<LinearGradient>(program, kept);
}

}  // namespace tessera::step
