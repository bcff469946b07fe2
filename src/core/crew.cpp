// SPDX-License-Identifier: Apache-2.0
#include "core/crew.hpp"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace tessera {
namespace {

thread_local bool at_work = false;

// Never destroyed: its threads wait for work until the process ends.
std::atomic<Crew*> crew_of_process{nullptr};
std::mutex making_crew;

void forget_crew() {
  crew_of_process.store(nullptr);
  new (&making_crew) std::mutex;
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

/// The next loop of a training step comes within microseconds, and to be woken takes about fifty.
constexpr auto patience = std::chrono::microseconds(100);
constexpr int pauses_per_look = 32;

/// More would only stand in each other's way.
constexpr int most_helpers = 4096;

/// OpenMP keeps a few bytes for each thread, and ends the process where it gets none.
bool has_memory_for_openmp() {
  constexpr std::size_t plenty = 4096;
  void* volatile memory = std::malloc(plenty);  // volatile: or else the compiler leaves it out
  std::free(memory);
  return memory != nullptr;
}

}  // namespace

Crew& Crew::own() {
  if (Crew* const crew = crew_of_process.load(std::memory_order_acquire)) return *crew;
  const std::scoped_lock lock(making_crew);
  if (crew_of_process.load() == nullptr) {
    static std::once_flag registered;
    std::call_once(registered, [] { pthread_atfork(nullptr, nullptr, forget_crew); });
    crew_of_process.store(new Crew, std::memory_order_release);
  }
  return *crew_of_process.load();
}

bool Crew::is_at_work() noexcept { return at_work; }

LoopsAlone::LoopsAlone(bool wanted) noexcept : before_(std::exchange(at_work, at_work || wanted)) {}
LoopsAlone::~LoopsAlone() { at_work = before_; }

bool Crew::run(int helpers, FunctionRef<void()> work) {
  if (taken_.exchange(true, std::memory_order_acquire)) return false;
  grow(std::min(helpers, most_helpers));
  helpers = std::min(helpers, num_threads_);
  work_ = &work;
  places_.store(static_cast<std::uint32_t>(helpers) * one_place, std::memory_order_release);
  loops_.fetch_add(1, std::memory_order_release);
  wake(helpers);
  at_work = true;
  work();
  at_work = false;
  places_.fetch_and(inside_mask, std::memory_order_acq_rel);
  // Who is inside may be waiting for this very core.
  for (int looks = 0; places_.load(std::memory_order_acquire) != 0; ++looks) {
    looks < pauses_per_look ? pause() : std::this_thread::yield();
  }
  taken_.store(false, std::memory_order_release);
  return true;
}

/// Where the system gives no more threads, those there are do the work.
void Crew::grow(int helpers) {
  try {
    for (; num_threads_ < helpers; ++num_threads_) std::thread([this] { help(); }).detach();
  } catch (const std::system_error&) {
  }
}

void Crew::wake(int helpers) {
  if (2 * helpers >= num_threads_) return loops_.notify_all();
  for (int i = 0; i < helpers; ++i) loops_.notify_one();
}

bool Crew::join() {
  std::uint32_t places = places_.load(std::memory_order_acquire);
  while (places >= one_place) {
    if (places_.compare_exchange_weak(places, places - one_place + one_inside,
                                      std::memory_order_acq_rel)) {
      return true;
    }
  }
  return false;
}

std::uint32_t Crew::next_loop(std::uint32_t last) const {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < patience) {
    for (int i = 0; i < pauses_per_look; ++i) {
      const std::uint32_t now = loops_.load(std::memory_order_acquire);
      if (now != last) return now;
      pause();
    }
  }
  loops_.wait(last, std::memory_order_acquire);
  return loops_.load(std::memory_order_acquire);
}

void Crew::help() {
  if (!has_memory_for_openmp()) return;
  at_work = true;
  omp_set_num_threads(1);  // for libraries that tasks call, such as OpenBLAS
  for (std::uint32_t last = 0;;) {
    last = next_loop(last);
    if (!join()) continue;
    (*work_)();
    places_.fetch_sub(one_inside, std::memory_order_acq_rel);
  }
}

}  // namespace tessera
