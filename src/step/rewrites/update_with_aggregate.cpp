// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "step/ops/aggregate.hpp"
#include "step/ops/aggregate_update.hpp"
#include "step/ops/combine.hpp"
#include "step/ops/linear.hpp"
#include "step/rewrites/all.hpp"

namespace tessera::step {
namespace {

bool sums_neighbours(const Aggregate& op) {
  const ops::Reduction reduction = op.aggregation().reduction;
  return !op.finishes() && (reduction == ops::Reduction::sum || reduction == ops::Reduction::mean);
}

/// The place of the node that computes a value and nothing but that, if it is a T that takes no
/// part of its neighbours yet and has one reader.
template <class T>
std::optional<std::size_t> own_producer(const Program& program, Value value,
                                        std::span<const Value> kept) {
  const Node* const node = program.producer(value);
  if (node == nullptr || node->as<T>() == nullptr) return {};
  if (node->out[0] != value || !has_one_reader(program, value, kept)) return {};
  for (std::size_t i = 2; i < node->in.size(); ++i) {
    if (!node->in[i].absent()) return {};
  }
  return static_cast<std::size_t>(node - program.nodes().data());
}

/// Of a product whose factor is a sum over neighbours: the two as one node, in the product's place.
bool join_product(Program& program, std::size_t i, std::span<const Value> kept) {
  auto& nodes = program.nodes();
  const auto* product = nodes[i].as<Linear>();
  if (product == nullptr || !product->is_plain() || !nodes[i].in[2].absent()) return false;
  const auto sums = own_producer<Aggregate>(program, nodes[i].in[0], kept);
  if (!sums || !nodes[*sums].in[1].absent()) return false;
  const auto& op = *nodes[*sums].as<Aggregate>();
  if (!sums_neighbours(op)) return false;
  const Value x = nodes[*sums].in[0], weight = nodes[i].in[1], y = nodes[i].out[0];
  const auto joined =
      program.append_all(std::make_shared<AggregateUpdate>(op.aggregation()), {x, weight, {}, {}});
  Node node = std::move(nodes.back());
  nodes.pop_back();
  node.out = {y, joined[1]};
  nodes[i] = std::move(node);
  nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(*sums));
  return true;
}

/// Of a sum of such a node and a product of the same rows: the product becomes its root.
bool join_root(Program& program, std::size_t i, std::span<const Value> kept) {
  auto& nodes = program.nodes();
  const auto* sum = nodes[i].as<Combine>();
  if (sum == nullptr || !sum->is_sum()) return false;
  for (const std::size_t operand : {std::size_t{0}, std::size_t{1}}) {
    const auto update = own_producer<AggregateUpdate>(program, nodes[i].in[operand], kept);
    const auto root = own_producer<Linear>(program, nodes[i].in[1 - operand], kept);
    if (!update || !root || nodes[*update].in[0] != nodes[*root].in[0]) continue;
    Node node = nodes[*update];
    node.in[AggregateUpdate::root] = nodes[*root].in[1];
    node.out[0] = nodes[i].out[0];
    nodes[i] = std::move(node);
    for (const std::size_t gone : {std::max(*update, *root), std::min(*update, *root)}) {
      nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(gone));
    }
    return true;
  }
  return false;
}

/// Of such a node and what follows it.
bool join_finish(Program& program, std::size_t i, std::span<const Value> kept) {
  auto& nodes = program.nodes();
  const auto* finish = nodes[i].as<Finish>();
  if (finish == nullptr || !finish->finishing().shows_derivative()) return false;
  const Node* const before = program.producer(nodes[i].in[0]);
  const auto* update = before == nullptr ? nullptr : before->as<AggregateUpdate>();
  if (update == nullptr || update->finishes() || !has_one_reader(program, before->out[0], kept)) {
    return false;
  }
  const auto place = static_cast<std::ptrdiff_t>(before - nodes.data());
  Node node = *before;
  node.op = std::make_shared<AggregateUpdate>(*update, finish->finishing());
  node.in[AggregateUpdate::bias] = nodes[i].in[1];
  node.out[0] = nodes[i].out[0];
  nodes[i] = std::move(node);
  nodes.erase(nodes.begin() + place);
  return true;
}

}  // namespace

std::int64_t update_with_aggregate(Program& program, std::span<const Value> kept) {
  std::int64_t fired = 0;
  for (const auto join : {join_product, join_root, join_finish}) {
    for (std::size_t i = 0; i < program.nodes().size();) {
      if (join(program, i, kept)) {
        fired += join == join_product ? 1 : 0;
        i = 0;
      } else {
        ++i;
      }
    }
  }
  return fired;
}

}  // namespace tessera::step
