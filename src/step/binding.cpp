// SPDX-License-Identifier: Apache-2.0
#include "step/binding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "tessera/core/error.hpp"
#include "tessera/core/recording.hpp"

namespace tessera::step {
namespace {

constexpr std::int64_t boundary = 256;  // of the values in the arena, in bytes

/// Calls `visit` with every value whose numbers a node reads.
template <class Visit>
void for_each_read(const Node& node, Visit&& visit) {
  for (std::size_t i = 0; i < node.in.size(); ++i) {
    if (!node.in[i].absent() && node.op->reads(i)) visit(node.in[i]);
  }
}

}  // namespace

Binding::Binding(Program program_to_run, Placement where, std::shared_ptr<Arena> arena)
    : program(std::move(program_to_run)),
      placement(where),
      slots(static_cast<std::size_t>(program.num_values())),
      arena_(arena ? std::move(arena) : std::make_shared<Arena>()),
      placed_shapes_(slots.size()) {}

void Binding::find_edge_features(Value value) {
  const std::optional<int>& graph = program.info(value).edges_of;
  if (!graph) return;
  const Tensor* const features = context.graph_number(*graph).edge_features();
  if (features == nullptr) {
    throw Error(ErrorCode::invalid_argument, "the edges of the graph have no features", "step",
                "give them some with Topology::set_edge_features");
  }
  slot(value).given = *features;
}

Shape Binding::shape_of_given(Value value) const {
  const ValueInfo& info = program.info(value);
  const Slot& own = slot(value);
  if (!info.like.absent()) return slot(info.like).shape;
  if (own.given.absent()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("the input '{}' is missing", info.name),
                "step", "bind it before the run");
  }
  return {own.given.rows(), own.given.cols(), placement.precision};
}

void Binding::prepare(const Context& new_context) {
  find_shapes(new_context);
  if (!has_places_ || !std::ranges::equal(slots, placed_shapes_, {}, &Slot::shape)) {
    has_places_ = false;
    find_groups();
    find_offsets();
    for (std::size_t i = 0; i < slots.size(); ++i) placed_shapes_[i] = slots[i].shape;
    has_places_ = true;
  }
  take_memory();
}

void Binding::measure(const Context& new_context) {
  find_shapes(new_context);
  find_groups();
  find_offsets();
}

void Binding::keep(Value value, Tensor& result) {
  slot(value).tensor = &result;
  has_places_ = false;
}

void Binding::find_shapes(const Context& new_context) {
  context = new_context;
  for (std::int32_t i = 0; i < program.num_values(); ++i) {
    const ValueInfo& info = program.info({i});
    if (info.parameter != nullptr) {
      const Tensor& used = info.parameter->used();
      slot({i}).shape = {used.rows(), used.cols(), used.precision()};
    } else if (info.state != nullptr) {
      slot({i}).shape = {info.state->rows(), info.state->cols(), info.state->precision()};
    } else if (info.is_input && info.like.absent()) {
      find_edge_features({i});
      slot({i}).shape = shape_of_given({i});
    }
  }
  for (const Node& node : program.nodes()) {
    for (const Value value : node.in) {
      if (value.absent()) continue;
      if (!program.info(value).like.absent()) slot(value).shape = shape_of_given(value);
    }
    Shapes shapes(*this, node);
    node.op->shape(shapes);
  }
}

std::vector<std::size_t> Binding::last_readers() const {
  std::vector<std::size_t> last(slots.size());
  const auto& nodes = program.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for_each_read(nodes[i], [&](Value value) { last[static_cast<std::size_t>(value.id)] = i; });
  }
  return last;
}

/// A value that takes another one's place joins its group; where a group lies in a tensor from
/// outside, all of its values do.
void Binding::find_groups() {
  const auto& nodes = program.nodes();
  const std::vector<std::size_t> last = last_readers();
  groups.clear();
  for (Slot& one : slots) {
    one.group = -1;
    one.is_read = one.tensor != nullptr;
  }
  for (const Node& node : nodes) {
    for_each_read(node, [&](Value value) { slot(value).is_read = true; });
  }
  const auto new_group = [&](Value value, std::size_t node) {
    slot(value).group = static_cast<int>(groups.size());
    const bool is_outside = slot(value).tensor != nullptr || program.info(value).may_be_overwritten;
    groups.push_back({node, std::max(node, last[static_cast<std::size_t>(value.id)]),
                      bytes_of(slot(value).shape), -1, is_outside ? value.id : -1});
  };
  for (std::int32_t i = 0; i < program.num_values(); ++i) {
    if (program.info({i}).may_be_overwritten) new_group({i}, 0);
  }
  unshared_bytes = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    for (std::size_t k = 0; k < node.out.size(); ++k) {
      const Value value = node.out[k];
      const bool is_needed = slot(value).is_read || k >= node.op->num_outputs();
      if (program.info(value).gradient_of != nullptr || !is_needed) continue;
      const int replaced = k == 0 ? node.op->replaces() : -1;
      const auto index = static_cast<std::size_t>(replaced);
      const bool replaces = replaced >= 0 && index < node.in.size() && !node.in[index].absent();
      if (slot(value).tensor == nullptr) unshared_bytes += bytes_of(slot(value).shape);
      if (replaces && slot(node.in[index]).group >= 0) {
        const Value before = node.in[index];
        Group& group = groups[static_cast<std::size_t>(slot(before).group)];
        const bool is_last = last[static_cast<std::size_t>(before.id)] == i &&
                             std::ranges::count(node.in, before) == 1;
        const bool has_one_tensor = slot(value).tensor == nullptr || group.outside < 0;
        const bool is_kept = slot(before).tensor != nullptr && !program.info(before).is_input;
        if (is_last && has_one_tensor && !is_kept && slot(before).shape == slot(value).shape) {
          slot(value).group = slot(before).group;
          group.last = std::max(group.last, last[static_cast<std::size_t>(value.id)]);
          if (slot(value).tensor != nullptr) group.outside = value.id;
          continue;
        }
      }
      new_group(value, i);
    }
  }
}

/// The largest first, each at the lowest place that is free for as long as it is needed.
void Binding::find_offsets() {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].outside < 0) order.push_back(i);
  }
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return groups[a].bytes > groups[b].bytes; });
  std::vector<const Group*> placed;
  arena_bytes = 0;
  for (const std::size_t i : order) {
    Group& group = groups[i];
    std::ranges::sort(placed, {}, &Group::offset);
    group.offset = 0;
    for (const Group* other : placed) {
      if (other->last < group.first || group.last < other->first) continue;
      if (other->offset - group.offset >= group.bytes) break;
      group.offset = std::max(group.offset, other->offset + other->bytes);
    }
    arena_bytes = std::max(arena_bytes, group.offset + group.bytes);
    placed.push_back(&group);
  }
}

void Binding::take_memory() {
  std::shared_ptr<Buffer<std::byte>>& memory = arena_->memory_;
  if (memory == nullptr || arena_bytes > memory->size()) {
    if (is_recording()) {
      throw Error(ErrorCode::invalid_argument, "the memory of a step cannot grow while recording",
                  "step", "make it before: Layer::prepare makes all plans and buffers of a model");
    }
    memory = nullptr;  // two at a time could be too many
    memory = std::make_shared<Buffer<std::byte>>(arena_bytes, placement.place());
  }
  if (is_recording() && !std::ranges::count(recorded_, memory)) recorded_.push_back(memory);
}

std::int64_t Binding::bytes_of(const Shape& shape) const {
  Placement own = placement;
  own.precision = shape.precision;
  const std::int64_t elements = checked_area(shape.rows, padded_stride(shape.cols, own));
  const auto bytes =
      static_cast<std::int64_t>(checked_bytes(elements, bytes_per_element(shape.precision)));
  return (bytes + boundary - 1) / boundary * boundary;
}

ops::Operand Binding::place(Value value) {
  Slot& own = slot(value);
  const ValueInfo& info = program.info(value);
  if (info.gradient_of != nullptr) {
    return info.gradient_of->upright_gradient();
  }
  if (own.group < 0) return {};
  const Group& group = groups[static_cast<std::size_t>(own.group)];
  if (group.outside >= 0) {
    Tensor& tensor = *slots[static_cast<std::size_t>(group.outside)].tensor;
    tensor.resize(own.shape.rows, own.shape.cols);
    return tensor;
  }
  Placement where = placement;
  where.precision = own.shape.precision;
  return {arena_->memory_->data() + group.offset,
          storage_of(own.shape.precision),
          placement.device(),
          own.shape.rows,
          own.shape.cols,
          padded_stride(own.shape.cols, where)};
}

}  // namespace tessera::step
