// SPDX-License-Identifier: Apache-2.0
#include "step/rewrites/all.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tessera/core/error.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {
namespace {

constexpr std::array<Rewrite, 22> all = {{
    {"sums-first", "a sum over neighbours goes before the product where that is narrower",
     Side::before, sums_first},
    {"merge-finishes", "bias, activation and dropout in one pass", Side::before, merge_finishes},
    {"bias-in-norm", "batch norm adds the bias that comes before it", Side::before, bias_in_norm},
    {"finish-in-norm", "what follows batch norm is done in its pass", Side::before, finish_in_norm},
    {"update-with-aggregate", "a sum over neighbours and the product behind it may be one kernel",
     Side::before, update_with_aggregate},
    {"scale-before-rounding", "rows are scaled before they are rounded to 16 bits, not by the sum",
     Side::before, scale_before_rounding},
    {"sum-in-aggregate", "a matrix is added to a sum over neighbours by its kernel", Side::before,
     sum_in_aggregate},
    {"finish-in-aggregate", "what follows a sum over neighbours is done by its kernel",
     Side::before, finish_in_aggregate},
    {"finish-in-sparse-linear", "what follows the product of a sparse matrix is done by its kernel",
     Side::before, finish_in_sparse_linear},
    {"relu-in-linear", "a dense product of many short rows ends in ReLU", Side::before,
     relu_in_linear},
    {"bias-in-linear", "a dense product adds its bias", Side::before, bias_in_linear},
    {"sum-in-linear", "a dense product is added to a matrix as it is written", Side::before,
     sum_in_linear},
    {"moments-in-linear", "a dense product finds the moments for batch norm", Side::before,
     moments_in_linear},
    {"norm-in-linear", "a dense product normalises what it reads", Side::before, norm_in_linear},
    {"scale-in-sum", "a scaled matrix is scaled as it is added", Side::after, scale_in_sum},
    {"sum-in-linear-gradient", "a product's gradient is added to a matrix as it is written",
     Side::after, sum_in_linear_gradient},
    {"gradient-as-factors", "a gradient of few factors is multiplied by the one that reads it",
     Side::after, gradient_as_factors},
    {"relu-in-linear-gradient", "a product's gradient goes through the ReLU before it", Side::after,
     relu_in_linear_gradient},
    {"norm-gradient-in-linear", "a product makes its gradient of that of batch norm behind it",
     Side::after, norm_gradient_in_linear},
    {"norm-sums-in-linear", "a product's gradient finds the sums for that of batch norm before it",
     Side::after, norm_sums_in_linear},
    {"bias-gradient-in-loss", "the loss sums the columns of its gradient, for the bias before it",
     Side::after, bias_gradient_in_loss},
    {"small-ops-in-one-launch", "small dense ops on the same rows wait for one another", Side::both,
     small_ops_in_one_launch},
}};

}  // namespace

std::span<const Rewrite> rewrites() { return all; }

bool has_one_reader(const Program& program, Value value, const Surroundings& around) {
  return std::ranges::find(around.kept, value) == around.kept.end() &&
         program.info(value).gradient_of == nullptr && program.num_readers(value) == 1;
}

std::optional<std::size_t> only_reader(const Program& program, Value value,
                                       const Surroundings& around) {
  if (!has_one_reader(program, value, around)) return {};
  const auto& nodes = program.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (std::ranges::find(nodes[i].in, value) != nodes[i].in.end()) return i;
  }
  return {};
}

bool is_read(const Program& program, Value value, const Surroundings& around) {
  return std::ranges::find(around.kept, value) != around.kept.end() ||
         program.info(value).gradient_of != nullptr || program.num_readers(value) > 0;
}

bool holds(bool (*test)(Device, ElementType, std::int64_t rows, std::int64_t in, std::int64_t out),
           const Program& program, const Surroundings& around, Value x, Value weight) {
  const Shape& shape = program.info(weight).shape;
  return test(around.placement.device(), storage_of(around.placement.precision),
              program.info(x).shape.rows, shape.cols, shape.rows);
}

std::int64_t bytes_moved(const Program& program) {
  std::vector<bool> is_needed(static_cast<std::size_t>(program.num_values()));
  std::int64_t bytes = 0;
  const auto add = [&](Value value) {
    const Shape& shape = program.info(value).shape;
    bytes +=
        shape.rows * shape.cols * static_cast<std::int64_t>(bytes_per_element(shape.precision));
  };
  for (const Node& node : program.nodes()) {
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      if (node.in[i].absent() || !node.op->reads(i)) continue;
      is_needed[static_cast<std::size_t>(node.in[i].id)] = true;
      add(node.in[i]);
    }
  }
  // The first output is what a node is for; of the others only those that somebody reads are there.
  for (const Node& node : program.nodes()) {
    for (std::size_t k = 0; k < node.out.size(); ++k) {
      if (k == 0 || is_needed[static_cast<std::size_t>(node.out[k].id)]) add(node.out[k]);
    }
  }
  return bytes;
}

void require_rewrites(std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (std::ranges::find(all, name, [](const Rewrite& one) { return std::string(one.name); }) !=
        all.end()) {
      continue;
    }
    std::vector<std::string> known;
    for (const Rewrite& one : all) known.emplace_back(one.name);
    throw Error(ErrorCode::invalid_argument, fmt::format("there is no rewrite '{}'", name),
                "rewrites", fmt::format("use some of: {}", fmt::join(known, ", ")));
  }
}

void erase(Program& program, std::size_t node) {
  program.nodes().erase(program.nodes().begin() + static_cast<std::ptrdiff_t>(node));
}

std::vector<Fired> rewrite(Program& program, const Surroundings& around, Side side,
                           std::span<const std::string> off) {
  std::vector<Fired> fired;
  for (const Rewrite& one : all) {
    if (one.side != side && one.side != Side::both) continue;
    if (std::ranges::find(off, one.name) != off.end()) continue;
    const auto nodes_before = std::ssize(program.nodes());
    const std::int64_t bytes_before = bytes_moved(program);
    const std::int64_t times = one.apply(program, around);
    if (times == 0) continue;
    fired.push_back({one.name, times, nodes_before - std::ssize(program.nodes()),
                     bytes_before - bytes_moved(program)});
  }
  return fired;
}

}  // namespace tessera::step
