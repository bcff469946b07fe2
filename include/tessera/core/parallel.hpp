// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace tessera {

/// Threads that parallel loops use: what `set_num_threads` said, or else what OpenMP allows the
/// calling thread (`omp_set_num_threads`, OMP_NUM_THREADS), which is one per core by default. A
/// process that was forked off this one counts as many: threads do not survive a fork, and its
/// loops start threads of their own.
int num_threads() noexcept;

/// 0 means as many as OpenMP allows.
void set_num_threads(int threads);

/// A callable passed down without owning it: what `std::function` costs, less the allocation.
template <class Signature>
class FunctionRef;

template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class Callable>
  requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef>)
      FunctionRef(Callable&& callable)
  noexcept
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Arguments... arguments) -> Result {
          return (*static_cast<std::add_pointer_t<Callable>>(object))(
              std::forward<Arguments>(arguments)...);
        }) {}
  Result operator()(Arguments... arguments) const {
    return call_(object_, std::forward<Arguments>(arguments)...);
  }

 private:
  void* object_;
  Result (*call_)(void*, Arguments...);
};

/// Runs `task(0) … task(count - 1)`, each once, in any order, on all threads; tasks are handed out
/// one by one, so they may differ in cost. An exception of the lowest task that threw is rethrown
/// after all threads have stopped. A nested call runs on the calling thread alone.
void parallel_tasks(std::int64_t count, FunctionRef<void(std::int64_t task)> task);

/// Splits [0, count) into ranges of at most `grain` and runs them as tasks. The split depends on
/// `grain` alone, never on the number of threads: per-range results combine to the same bits.
void parallel_ranges(std::int64_t count, std::int64_t grain,
                     FunctionRef<void(std::int64_t begin, std::int64_t end)> body);

/// Runs `body(i)` for every i in [0, count).
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) {
  parallel_ranges(count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

/// A grain that gives each thread a few ranges. Use it where the split does not affect the result.
std::int64_t even_grain(std::int64_t count, std::int64_t at_least = 1024);

/// Combines `map(begin, end)` over ranges of `grain`, in order, so that floating-point results do
/// not depend on the number of threads.
template <class Value, class Map, class Combine>
Value parallel_reduce(std::int64_t count, std::int64_t grain, Value initial, Map&& map,
                      Combine&& combine) {
  if (count <= 0) return initial;
  struct Slot {
    Value value;
  };
  std::vector<Slot> partial(static_cast<std::size_t>((count + grain - 1) / grain), Slot{initial});
  parallel_ranges(count, grain, [&](std::int64_t begin, std::int64_t end) {
    partial[static_cast<std::size_t>(begin / grain)].value = map(begin, end);
  });
  Value result = initial;
  for (const Slot& slot : partial) result = combine(result, slot.value);
  return result;
}

/// Replaces counts by the sum of those before each, and returns the sum of all.
template <class Integer>
Integer exclusive_scan(std::span<Integer> values) {
  constexpr std::int64_t grain = 1 << 16;
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<Integer> sums(static_cast<std::size_t>((count + grain - 1) / grain));
  const auto range_sum = [&](std::int64_t begin, std::int64_t end) {
    Integer sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += values[static_cast<std::size_t>(i)];
    sums[static_cast<std::size_t>(begin / grain)] = sum;
  };
  parallel_ranges(count, grain, range_sum);
  Integer total = 0;
  for (Integer& sum : sums) total += std::exchange(sum, total);
  parallel_ranges(count, grain, [&](std::int64_t begin, std::int64_t end) {
    Integer running = sums[static_cast<std::size_t>(begin / grain)];
    for (std::int64_t i = begin; i < end; ++i) {
      running += std::exchange(values[static_cast<std::size_t>(i)], running);
    }
  });
  return total;
}

}  // namespace tessera
