// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/step/tensor.hpp"

/// A training or prediction step as a program: matrices ("values") and what computes one from
/// others
/// ("nodes"). A layer is a function that appends nodes (step/nodes.hpp); gradients, fusion and
/// memory follow from the program.
namespace tessera::step {

class Op;

/// A matrix of a program. Its shape is known once the program is bound to inputs and graphs.
struct Value {
  std::int32_t id = -1;

  bool absent() const noexcept { return id < 0; }
  friend bool operator==(Value, Value) = default;
};

/// One computation. Values that are not there (an optional bias) are absent among `in`; each of
/// `out` is written by this node alone.
struct Node {
  std::shared_ptr<const Op> op;
  std::vector<Value> in;
  std::vector<Value> out;
  bool is_chained = false;  ///< may wait for the next nodes, to run in one launch with them

  /// The op if it is a T, else null.
  template <class T>
  const T* as() const noexcept {
    return dynamic_cast<const T*>(op.get());
  }
};

struct Shape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Precision precision = Precision::fp32;

  friend bool operator==(const Shape&, const Shape&) = default;
};

struct ValueInfo {
  std::string name;
  bool is_input = false;             ///< given from outside
  bool has_gradient = false;         ///< inputs: whether their gradient is asked for
  bool is_sparse = false;            ///< inputs: a sparse matrix is bound to it
  Value like = {};                   ///< inputs: has the shape of this value
  bool may_be_overwritten = false;   ///< inputs: after the last node that reads it
  Parameter* parameter = nullptr;    ///< whose value it is
  Parameter* gradient_of = nullptr;  ///< whose gradient it is
  Tensor* state = nullptr;           ///< memory that outlives steps
  std::optional<int> edges_of = {};  ///< inputs: the graph that brings it (`edge_features`)
  /// What the program was compiled for, which rewrites look at (`note_shapes`); no rows: unknown.
  Shape shape = {};
};

class Program {
 public:
  /// A value that is bound before each run. `has_gradient`: whether `differentiate` goes on to it.
  Value input(std::string name, bool has_gradient = false);
  /// A sparse one; it has no gradient.
  Value sparse_input(std::string name);
  /// One of the shape of another value, such as the gradient of an output, that the program may
  /// overwrite after its last use.
  Value scratch_input(std::string name, Value like);
  /// The value of a parameter, which must live as long as the program; the same one every time.
  Value parameter(Parameter& parameter);
  /// Memory that outlives steps, which nodes read and may update in their order: running means.
  Value state(std::string name, Tensor& tensor);
  /// The features of the edges of a graph of the step (`Topology::edge_features`); the same value
  /// every time. They have no gradient.
  Value edge_features(int graph = 0);
  /// Appends a node and returns its first output.
  Value append(std::shared_ptr<const Op> op, std::vector<Value> in);
  /// Appends a node and returns all of its outputs.
  std::vector<Value> append_all(std::shared_ptr<const Op> op, std::vector<Value> in);

  /// What nodes that are appended from now on (step/nodes.hpp) take for graph 0: of the graphs of a
  /// step, each layer has its own.
  void set_first_graph(int number) noexcept { first_graph_ = number; }
  int first_graph() const noexcept { return first_graph_; }
  int absolute_graph(int number) const noexcept {
    return number < 0 ? number : first_graph_ + number;
  }

  const std::vector<Node>& nodes() const noexcept { return nodes_; }
  /// For rewrites.
  std::vector<Node>& nodes() noexcept { return nodes_; }
  std::int64_t num_values() const noexcept { return static_cast<std::int64_t>(values_.size()); }
  const ValueInfo& info(Value value) const { return values_[static_cast<std::size_t>(value.id)]; }
  ValueInfo& info(Value value) { return values_[static_cast<std::size_t>(value.id)]; }

  /// How many nodes read a value.
  std::int64_t num_readers(Value value) const;
  /// The node that computes a value, or null.
  const Node* producer(Value value) const;
  /// Of each value, whether it depends on a trainable parameter or on an input whose gradient is
  /// asked for: gradients go on to these.
  std::vector<bool> wanted_values() const;

  /// A value that is read after the run beside the results; absent: none.
  void keep(Value value) noexcept { kept_ = value; }
  Value kept() const noexcept { return kept_; }

  /// Removes nodes that contribute to none of these values and to no parameter's gradient.
  void remove_unused(std::span<const Value> wanted);

  /// A line for each node: "sums 2708 x 16 fp32: aggregate sum (product)"; the shape where it was
  /// noted.
  std::string describe() const;

 private:
  Value add_value(std::string name);

  std::vector<ValueInfo> values_;
  std::vector<Node> nodes_;
  int first_graph_ = 0;
  Value kept_;
};

/// Appends the nodes that compute gradients, given that of `output`, and says which value holds the
/// gradient of each of `of`: absent where `output` does not depend on it. Every trainable parameter
/// gets its gradient; that of one on which `output` does not depend is 0.
std::vector<Value> differentiate(Program& program, Value output, Value output_gradient,
                                 std::span<const Value> of);

}  // namespace tessera::step
