// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tessera/step/context.hpp"
#include "tessera/step/input.hpp"
#include "tessera/step/program.hpp"

namespace tessera::ops {
class CallChain;
}

namespace tessera::step {

class Binding;

/// Tells an op the shapes of what it reads, and takes those of what it writes.
class Shapes {
 public:
  Shapes(Binding& binding, const Node& node) : binding_(binding), node_(node) {}

  bool has(std::size_t input) const;
  const Shape& in(std::size_t input) const;
  void set(std::size_t output, Shape shape);
  /// A matrix in the precision of the program's activations.
  void set(std::size_t output, std::int64_t rows, std::int64_t cols);
  Topology& graph(int index) const;
  /// How many the step asks for.
  std::int64_t num_pairs() const;
  const Placement& placement() const;

 private:
  Binding& binding_;
  const Node& node_;
};

/// What an op computes with in one run.
class Pass {
 public:
  Pass(Binding& binding, const Node& node, const Context& context, ops::CallChain* chain);

  const Context& context;
  Stream stream;
  Device device;
  /// Null: the op runs at once (tessera/detail/ops/call_chain.hpp).
  ops::CallChain* chain;

  bool has(std::size_t input) const;
  /// Absent where the node has no such input.
  ops::ConstOperand in(std::size_t input) const;
  /// Absent where no node needs that output.
  ops::Operand out(std::size_t output) const;
  /// Of a program's input: dense or sparse.
  const Input& given(std::size_t input) const;
  /// Whose value an input is; null where it is computed.
  Parameter* parameter(std::size_t input) const;
  /// The memory that an input stands for (`Program::state`).
  Tensor& state(std::size_t input) const;
  /// Whose gradient an output is, or null.
  Parameter* gradient_of(std::size_t output) const;
  Topology& graph(int index) const;
  const Placement& placement() const;

 private:
  Binding& binding_;
  const Node& node_;
};

/// What the adjoint rule of a node works with.
class Adjoint {
 public:
  struct State;
  Adjoint(State& state, const Node& node, std::size_t index)
      : state_(state), node_(node), index_(index) {}

  Program& program() const;
  Value in(std::size_t input) const { return node_.in[input]; }
  Value out(std::size_t output) const { return node_.out[output]; }
  bool has(std::size_t input) const;
  /// The gradient of an output; absent where nothing depends on it.
  Value gradient(std::size_t output = 0) const;
  /// Whether the gradient of an input is asked for.
  bool wants(std::size_t input) const;
  /// Adds to the gradient of an input.
  void give(std::size_t input, Value gradient);
  /// Puts another op in the place of this node's own: one that knows of its gradient.
  void replace(std::shared_ptr<const Op> op);
  /// The gradient that an input has so far, for a rule that adds to it by itself and gives the sum;
  /// absent where there is none yet.
  Value take(std::size_t input);

 private:
  State& state_;
  const Node& node_;
  std::size_t index_;
};

/// A kind of node. Ops are immutable and hold options alone.
class Op {
 public:
  virtual ~Op() = default;

  virtual std::string describe() const = 0;
  virtual std::size_t num_outputs() const { return 1; }
  /// How many matrices behind the outputs it needs while it runs.
  virtual std::size_t num_scratch() const { return 0; }
  virtual void shape(Shapes& shapes) const = 0;
  virtual void run(const Pass& pass) const = 0;
  /// Appends the nodes of the gradient. Without a rule: an `unsupported` error.
  virtual void differentiate(Adjoint& adjoint) const;
  /// The input that the first output is computed on top of; -1: none. Its numbers lie in the output
  /// when `run` begins, copied where another node still needs them.
  virtual int updates() const { return -1; }
  /// The input whose place the first output takes where no other node needs it; -1: none.
  virtual int replaces() const { return updates(); }
  /// Whether it reads the numbers of an input. One that it does not read stands for what others
  /// computed of it, and gradients go through it.
  virtual bool reads(std::size_t) const { return true; }
  /// The input that is added to every row of the first output at last, so that its gradient is the
  /// sum of the rows of that output's; -1: none.
  virtual int adds_last() const { return -1; }
  /// Whether it may run again and write the same: it changes nothing but what it writes.
  virtual bool may_repeat() const { return false; }
  /// Whether it is a dense op that joins `Pass::chain`, to run in one launch with the next ones
  /// where they are small.
  virtual bool joins_chain() const { return false; }
};

}  // namespace tessera::step
