// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>
#include <memory>
#include <system_error>
#include <utility>

namespace tessera {

/// Does `work` on a thread of its own; where the system makes none, as its result is asked for.
template <class Work>
auto meanwhile(Work work) {
  const auto run = [work = std::make_shared<Work>(std::move(work))] { return (*work)(); };
  try {
    return std::async(std::launch::async, run);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, run);
  }
}

}  // namespace tessera
