// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/core/device.hpp"
#include "tessera/core/types.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/operand.hpp"
#include "tessera/ops/plan.hpp"

/// messages: every target sums what its sources and the edges between them say.
///
///     Y[i][f] = sum over edges e from j to i of  m(X[j][f], E[e][f])
///
///     sum      x + e
///     relu     max(x + e, 0)          GINE
///     product  x * e
///
/// Repeated edges are edges of their own, an empty row gives 0, and not-a-number stays so. The
/// graph's values and scales play no part. Nothing of the size of edges x features is made besides
/// the features of edges and their gradient.
namespace tessera::ops {

enum class Message { sum, relu, product };

const char* to_string(Message message) noexcept;
Message parse_message(const std::string& text);

struct MessagesOptions : PlanOptions {
  Message message = Message::relu;
  Precision precision = Precision::fp32;
  std::int64_t features = 0;

  friend bool operator==(const MessagesOptions&, const MessagesOptions&) = default;
};

using MessagesPlan = Plan<MessagesOptions>;

MessagesPlan plan_messages(const Graph& graph, const MessagesOptions& options);

struct MessagesInputs {
  ConstOperand x;              ///< num_cols x features
  ConstOperand edge_features;  ///< a row for each edge, x features
  /// Which row is that of each edge in CSR order, num_edges numbers where the plan's device reads
  /// them, each another: for features in the order in which the user lists edges. Null: row e is
  /// that of edge e.
  const EdgeOffset* edge_rows = nullptr;
};

/// `y`: num_rows x features.
void run(const MessagesPlan& plan, const MessagesInputs& inputs, Operand y, Stream stream = {},
         Workspace workspace = {});

struct MessagesGradOutputs {
  Operand x = {};              ///< each absent one is not computed
  Operand edge_features = {};  ///< in the order of the features; rows of no edge are not written
};

/// The gradients of a plan made with `backward`. Where a sum is 0 before relu, its gradient is 0.
void run_backward(const MessagesPlan& plan, const MessagesInputs& inputs, ConstOperand grad_y,
                  const MessagesGradOutputs& gradients, Stream stream = {},
                  Workspace workspace = {});

}  // namespace tessera::ops
