// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/messages/kernel.hpp"

namespace tessera::ops {

/// What a forward run on a GPU should take.
double predict_messages_us(const MessagesProblem& problem, const DeviceTraits& traits);

}  // namespace tessera::ops
