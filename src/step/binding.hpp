// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "tessera/detail/ops/call_chain.hpp"
#include "tessera/step/execution.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {

/// Where the values of a program are.
class Binding {
 public:
  Binding(Program program, Placement placement, std::shared_ptr<Arena> arena);

  Program program;
  Placement placement;

  struct Slot {
    Shape shape;
    Input given;               ///< of an input
    Tensor* tensor = nullptr;  ///< of results, and of inputs that may be overwritten
    bool is_read = false;      ///< by a node, or after the run
    int group = -1;            ///< values that share a place; -1: not in the arena
  };
  /// Values that follow one another in the same place.
  struct Group {
    std::size_t first = 0, last = 0;  ///< the nodes between which it is in use, both counted in
    std::int64_t bytes = 0;
    std::int64_t offset = -1;
    int outside = -1;  ///< the value in whose tensor it lies instead; -1: in the arena
  };

  Slot& slot(Value value) { return slots[static_cast<std::size_t>(value.id)]; }
  const Slot& slot(Value value) const { return slots[static_cast<std::size_t>(value.id)]; }
  void keep(Value value, Tensor& result);
  /// Finds shapes, then places where these have changed. The graphs live until the last run.
  void prepare(const Context& new_context);
  void find_shapes(const Context& new_context);
  /// As `prepare`, but takes no memory: finds `arena_bytes`.
  void measure(const Context& new_context);
  ops::Operand place(Value value);
  Topology& graph(int number) const { return context.graph_number(number); }

  std::vector<Slot> slots;
  std::vector<Group> groups;
  Context context;       ///< whose graphs these are
  ops::CallChain chain;  ///< of the run in progress
  std::int64_t arena_bytes = 0, unshared_bytes = 0;

 private:
  void find_groups();
  void find_offsets();
  void take_memory();
  std::vector<std::size_t> last_readers() const;
  /// What the graphs of a step bring along.
  void find_edge_features(Value value);
  Shape shape_of_given(Value value) const;
  std::int64_t bytes_of(const Shape& shape) const;

  std::shared_ptr<Arena> arena_;
  /// What was recorded goes on with these.
  std::vector<std::shared_ptr<Buffer<std::byte>>> recorded_;
  std::vector<Shape> placed_shapes_;
  bool has_places_ = false;
};

}  // namespace tessera::step
