// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tessera/core/memory.hpp"
#include "tessera/step/context.hpp"
#include "tessera/step/input.hpp"
#include "tessera/step/program.hpp"

namespace tessera::step {

class Binding;

/// What an input of a program is.
struct Bound {
  Value input;
  Input given;
};

/// Notes the shapes that values have with these inputs and graphs (`ValueInfo::shape`).
void note_shapes(Program& program, const Placement& placement, std::span<const Bound> inputs,
                 const Context& context);

/// Memory for programs of which one runs at a time, such as the forms of a layer in training and in
/// prediction: the numbers of one are lost when another one runs. It is as large as the largest
/// wanted so far; what was recorded keeps the memory that it was recorded with.
class Arena {
 private:
  friend class Binding;
  std::shared_ptr<Buffer<std::byte>> memory_;
};

/// Runs a program: gives every value its place in one arena, for as long as a later node reads it,
/// and runs the nodes in order.
class Execution {
 public:
  Execution(Program program, Placement placement, std::shared_ptr<Arena> arena = nullptr);
  Execution(Execution&&) noexcept;
  Execution& operator=(Execution&&) noexcept;
  ~Execution();

  const Program& program() const noexcept;

  /// What an input is in the next run.
  void bind(Value input, const Input& given);
  /// The same for an input that the program may overwrite.
  void bind_scratch(Value input, Tensor& given);
  /// A value that others read after the run: it is written to `result`, which takes its shape.
  void keep(Value value, Tensor& result);

  /// Finds shapes and places for the graphs of a context, which live until the last run. Before the
  /// first run, and when inputs or graphs change.
  void prepare(const Context& context);
  /// Runs the nodes from `first` to before `last`.
  void run(std::size_t first, std::size_t last, const Context& context);

  /// Bytes of the arena, and what they would be without sharing.
  std::int64_t arena_bytes() const noexcept;
  std::int64_t unshared_bytes() const noexcept;

 private:
  std::unique_ptr<Binding> binding_;
};

}  // namespace tessera::step
