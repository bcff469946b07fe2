// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "tessera/core/parallel.hpp"

namespace tessera {

/// Threads that help with loops. Whoever has a loop works on it himself, and is done when no task
/// is left and nobody is in the middle of one: a helper that the system does not let run is not
/// waited for. OpenMP's teams meet at the end of every loop instead, which takes many times as long
/// where another process wants the same cores.
class Crew {
 public:
  /// That of this process: after a fork a new one, since threads stay with the parent.
  static Crew& own();

  /// Runs `work` here and on up to `helpers` threads at once. False, and nothing has run, while
  /// another thread's loop is under way.
  bool run(int helpers, FunctionRef<void()> work);

  /// Whether the calling thread is in the middle of a loop.
  static bool is_at_work() noexcept;

 private:
  void grow(int helpers);
  void wake(int helpers);
  void help();
  std::uint32_t next_loop(std::uint32_t last) const;
  bool join();

  /// How many are inside, how many more may come: one word, so that nobody comes in after the loop
  /// was closed.
  static constexpr std::uint32_t one_inside = 1;
  static constexpr std::uint32_t one_place = 1 << 16;
  static constexpr std::uint32_t inside_mask = one_place - 1;

  std::atomic<bool> taken_{false};
  std::atomic<std::uint32_t> places_{0};
  std::atomic<std::uint32_t> loops_{0};  ///< how many there have been
  const FunctionRef<void()>* work_ = nullptr;
  int num_threads_ = 0;
};

/// While one of these lives, loops of its thread run on it alone, if so wanted: for threads that
/// are several already, and whose loops are too short to be worth waking others.
class LoopsAlone {
 public:
  explicit LoopsAlone(bool wanted = true) noexcept;
  ~LoopsAlone();
  LoopsAlone(const LoopsAlone&) = delete;
  LoopsAlone& operator=(const LoopsAlone&) = delete;

 private:
  bool before_;
};

}  // namespace tessera
