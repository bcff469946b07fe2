// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/parallel.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <utility>

#include "tessera/core/error.hpp"

#include "core/crew.hpp"
#include "core/loop_origin.hpp"
#include "core/openmp_limit.hpp"

namespace tessera {
namespace {

std::atomic<int> requested_threads{0};

/// What OpenMP allowed this thread before a `OneOpenMpThread` took it; 0 where there is none.
thread_local int allowed_before = 0;

thread_local const void* origin = nullptr;

/// Keeps the exception of the lowest task, so that the error a user sees does not depend on timing.
class FirstFailure {
 public:
  bool happened_before(std::int64_t task) const noexcept {
    return task_.load(std::memory_order_relaxed) < task;
  }
  void keep(std::int64_t task) noexcept {
    const std::scoped_lock lock(mutex_);
    if (task < task_.load(std::memory_order_relaxed)) {
      task_.store(task, std::memory_order_relaxed);
      exception_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::atomic<std::int64_t> task_{std::numeric_limits<std::int64_t>::max()};
  std::mutex mutex_;
  std::exception_ptr exception_;
};

}  // namespace

const void* loop_origin() noexcept { return origin; }

LoopOrigin::LoopOrigin(const void* what) noexcept : before_(std::exchange(origin, what)) {}
LoopOrigin::~LoopOrigin() { origin = before_; }

int num_threads() noexcept {
  const int requested = requested_threads.load(std::memory_order_relaxed);
  if (requested > 0) return requested;
  return allowed_before > 0 ? allowed_before : omp_get_max_threads();
}

OneOpenMpThread::OneOpenMpThread() noexcept
    : openmp_before_(omp_get_max_threads()), ours_before_(allowed_before) {
  if (ours_before_ == 0) allowed_before = openmp_before_;
  omp_set_num_threads(1);
}

OneOpenMpThread::~OneOpenMpThread() {
  omp_set_num_threads(openmp_before_);
  allowed_before = ours_before_;
}

void set_num_threads(int threads) {
  if (threads < 0) {
    throw Error(ErrorCode::invalid_argument, "negative number of threads", "threads",
                "use 0 for as many as OpenMP allows");
  }
  requested_threads.store(threads, std::memory_order_relaxed);
}

void parallel_tasks(std::int64_t count, FunctionRef<void(std::int64_t)> task) {
  const auto one_by_one = [&] {
    for (std::int64_t i = 0; i < count; ++i) task(i);
  };
  if (count <= 1 || Crew::is_at_work() || omp_in_parallel()) return one_by_one();
  const int threads = num_threads();
  if (threads <= 1) return one_by_one();
  std::atomic<std::int64_t> next{0};
  FirstFailure failure;
  const auto work = [&, origin_here = loop_origin()]() noexcept {
    const LoopOrigin inherited(origin_here);
    for (std::int64_t i = next.fetch_add(1, std::memory_order_relaxed); i < count;
         i = next.fetch_add(1, std::memory_order_relaxed)) {
      if (failure.happened_before(i)) continue;
      try {
        task(i);
      } catch (...) {
        failure.keep(i);
      }
    }
  };
  const auto helpers = static_cast<int>(std::min<std::int64_t>(threads - 1, count - 1));
  if (!Crew::own().run(helpers, work)) return one_by_one();
  failure.rethrow();
}

void parallel_ranges(std::int64_t count, std::int64_t grain,
                     FunctionRef<void(std::int64_t, std::int64_t)> body) {
  if (count <= 0) return;
  if (grain < 1) throw Error(ErrorCode::invalid_argument, "grain must be positive");
  parallel_tasks((count - 1) / grain + 1, [&](std::int64_t range) {
    const std::int64_t begin = range * grain;
    body(begin, std::min(begin + grain, count));
  });
}

std::int64_t even_grain(std::int64_t count, std::int64_t at_least) {
  constexpr std::int64_t ranges_per_thread = 8;
  return std::max(at_least, count / (ranges_per_thread * num_threads()) + 1);
}

}  // namespace tessera
