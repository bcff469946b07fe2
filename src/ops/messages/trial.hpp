// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <fmt/format.h>

#include "ops/messages/kernel.hpp"
#include "ops/plan/trial_operands.hpp"

namespace tessera::ops {

/// What a measuring plan needs of messages.
class MessagesTrial : public TrialOperands {
 public:
  MessagesTrial(const MessagesProblem& problem, const Place& place)
      : TrialOperands(place),
        backward_(problem.options.backward),
        x_(rows(problem, problem.graph.num_cols())),
        edge_features_(rows(problem, problem.graph.num_edges())),
        y_(rows(problem, problem.graph.num_rows())) {
    if (!backward_) return;
    gradients_.x = rows(problem, problem.graph.num_cols());
    gradients_.edge_features = rows(problem, problem.graph.num_edges());
  }

  void run(const PreparedMessages& prepared, Stream stream) {
    const MessagesInputs inputs{x_, edge_features_};
    prepared.run(inputs, y_, stream, workspace());
    if (backward_) prepared.run_backward(inputs, y_, gradients_, stream, workspace());
  }

  static std::string op(const MessagesProblem&) { return "messages"; }
  static std::string details(const MessagesProblem& problem) {
    return fmt::format("{} message, features {}, {}", to_string(problem.options.message),
                       problem.options.features, to_string(problem.options.precision));
  }

 private:
  Operand rows(const MessagesProblem& problem, std::int64_t count) {
    return matrix(problem.options.precision, count, problem.options.features);
  }

  bool backward_;
  Operand x_, edge_features_, y_;
  MessagesGradOutputs gradients_;
};

}  // namespace tessera::ops
