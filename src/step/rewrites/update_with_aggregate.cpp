// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "step/ops/aggregate.hpp"
#include "step/ops/aggregate_update.hpp"
#include "step/ops/batch_norm.hpp"
#include "step/ops/combine.hpp"
#include "step/ops/linear.hpp"
#include "step/rewrites/join.hpp"

namespace tessera::step {
namespace {

/// Whether a node is a sum over neighbours alone, or with the own rows of what it sums.
bool sums_neighbours(const Node& node) {
  const auto* op = node.as<Aggregate>();
  if (op == nullptr || !op->is_sum() || op->finishes()) return false;
  const Value residual = node.in[Aggregate::residual];
  return residual.absent() ||
         (!node.in[Aggregate::scale].absent() && residual == node.in[Aggregate::x]);
}

/// A product of its own finds the moments that a batch norm in training wants.
bool is_normed_in_training(const Program& program, Value value) {
  return std::ranges::any_of(program.nodes(), [&](const Node& node) {
    const auto* norm = node.as<BatchNorm>();
    return norm != nullptr && norm->kind().training && node.in[BatchNorm::x] == value;
  });
}

/// The place of the node that computes a value and nothing but that, if it is a T that takes no
/// part of its neighbours yet and has one reader.
template <class T>
std::optional<std::size_t> own_producer(const Program& program, Value value,
                                        const Surroundings& around) {
  const Node* const node = program.producer(value);
  if (node == nullptr || node->as<T>() == nullptr) return {};
  if (node->out[0] != value || !has_one_reader(program, value, around)) return {};
  for (std::size_t i = 2; i < node->in.size(); ++i) {
    if (!node->in[i].absent()) return {};
  }
  return static_cast<std::size_t>(node - program.nodes().data());
}

/// Of a product whose factor is a sum over neighbours: the two as one node, in the product's place.
bool join_product(Program& program, std::size_t i, const Surroundings& around) {
  auto& nodes = program.nodes();
  const auto* product = nodes[i].as<Linear>();
  if (product == nullptr || !product->is_plain() || !nodes[i].in[2].absent()) return false;
  const Value summed = nodes[i].in[Linear::x], y = nodes[i].out[0];
  const Node* const sums = program.producer(summed);
  if (sums == nullptr || !sums_neighbours(*sums) || !has_one_reader(program, summed, around) ||
      is_normed_in_training(program, y)) {
    return false;
  }
  const auto place = static_cast<std::size_t>(sums - nodes.data());
  const Value x = sums->in[Aggregate::x], scale = sums->in[Aggregate::scale];
  const auto joined =
      program.append_all(std::make_shared<AggregateUpdate>(sums->as<Aggregate>()->aggregation()),
                         {x, nodes[i].in[Linear::weight], {}, {}, scale});
  Node node = std::move(nodes.back());
  nodes.pop_back();
  node.out = {y, joined[1]};
  nodes[i] = std::move(node);
  erase(program, place);
  return true;
}

/// Of a sum of such a node and a product of the same rows: the product becomes its root.
bool join_root(Program& program, std::size_t i, const Surroundings& around) {
  auto& nodes = program.nodes();
  const auto* sum = nodes[i].as<Combine>();
  if (sum == nullptr || !sum->is_sum()) return false;
  for (const std::size_t operand : {std::size_t{0}, std::size_t{1}}) {
    const auto update = own_producer<AggregateUpdate>(program, nodes[i].in[operand], around);
    const auto root = own_producer<Linear>(program, nodes[i].in[1 - operand], around);
    if (!update || !root || nodes[*update].in[0] != nodes[*root].in[0]) continue;
    Node node = nodes[*update];
    node.in[AggregateUpdate::root] = nodes[*root].in[1];
    node.out[0] = nodes[i].out[0];
    nodes[i] = std::move(node);
    for (const std::size_t gone : {std::max(*update, *root), std::min(*update, *root)}) {
      erase(program, gone);
    }
    return true;
  }
  return false;
}

/// Of such a node and what follows it.
void join_finishes(Program& program, const Surroundings& around) {
  join_next<AggregateUpdate, Finish>(program, around, [](Node& node, const Node& end) {
    const auto& update = *node.as<AggregateUpdate>();
    const Finishing& finishing = end.as<Finish>()->finishing();
    if (update.finishes() || !finishing.shows_derivative()) return false;
    node.op = std::make_shared<AggregateUpdate>(update, finishing);
    node.in[AggregateUpdate::bias] = end.in[1];
    return true;
  });
}

}  // namespace

std::int64_t update_with_aggregate(Program& program, const Surroundings& around) {
  std::int64_t fired = 0;
  for (const auto join : {join_product, join_root}) {
    for (std::size_t i = 0; i < program.nodes().size();) {
      if (join(program, i, around)) {
        fired += join == join_product ? 1 : 0;
        i = 0;
      } else {
        ++i;
      }
    }
  }
  join_finishes(program, around);
  return fired;
}

}  // namespace tessera::step
