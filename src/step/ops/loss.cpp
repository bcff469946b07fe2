// SPDX-License-Identifier: Apache-2.0
#include "step/ops/loss.hpp"

#include <memory>

#include "tessera/core/error.hpp"
#include "tessera/detail/ops/call_chain.hpp"
#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/ops/loss.hpp"

namespace tessera::step {

void LossGradient::shape(Shapes& shapes) const {
  const Shape& logits = shapes.in(0);
  shapes.set(gradient, logits);
  shapes.set(sums, {1, logits.cols, logits.precision});
}

void LossGradient::run(const Pass& pass) const {
  if (ops::plans_only()) return;
  const Context& context = pass.context;
  if ((context.targets == nullptr && context.pair_loss == nullptr) || context.loss == nullptr) {
    throw Error(ErrorCode::invalid_argument, "a step of training has nothing to compare with",
                "step", "set targets and loss of the context");
  }
  if (context.pair_loss != nullptr) {
    if (pass.chain != nullptr) pass.chain->run();  // which may have the scores still to compute
    return ops::pair_loss(pass.in(0), *context.pair_loss, pass.out(gradient), context.loss,
                          pass.device, pass.stream, context.workspace, pass.out(sums));
  }
  ops::loss(pass.in(0), *context.targets, pass.out(gradient), context.loss, pass.stream,
            context.workspace, pass.out(sums), pass.chain);
}

Value loss_gradient(Program& program, Value logits) {
  return program.append(std::make_shared<LossGradient>(), {logits});
}

}  // namespace tessera::step
