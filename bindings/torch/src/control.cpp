// SPDX-License-Identifier: Apache-2.0
// What Python calls through ctypes: no tensors, nothing that torch needs to know.
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "counters.hpp"
#include "operators.hpp"
#include "structure.hpp"
#include "tessera/ops/kernels.hpp"

namespace tessera::torch_ops {
namespace {

std::mutex trace_mutex;
std::atomic<bool> tracing{false};
std::string trace;

}  // namespace

Counters& counters() {
  static Counters instance;
  return instance;
}

void note_run(const ops::AnyPlan& plan, const char* pass) {
  ++counters().runs;
  if (!tracing.load(std::memory_order_relaxed)) return;
  const std::scoped_lock lock(trace_mutex);
  trace += plan.kernel().name + " " + pass + "\n";
}

const std::vector<std::string>& kernel_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const ops::KernelInfo& kernel : ops::kernels()) found.push_back(kernel.name);
    return found;
  }();
  return names;
}

}  // namespace tessera::torch_ops

#define TESSERA_EXPORT extern "C" __attribute__((visibility("default")))

namespace torch_ops = tessera::torch_ops;

/// 0: runs of kernels, 1: graphs built, 2: plans made.
TESSERA_EXPORT std::int64_t tessera_counter(int which) {
  const torch_ops::Counters& counts = torch_ops::counters();
  return which == 0 ? counts.runs.load() : which == 1 ? counts.graphs.load() : counts.plans.load();
}

/// A limit below 0 is the default.
TESSERA_EXPORT void tessera_set_cache_limits(std::int64_t entries, std::int64_t bytes) {
  const auto given = [](std::int64_t limit) {
    return limit < 0 ? std::nullopt : std::optional(limit);
  };
  torch_ops::set_cache_limits(given(entries), given(bytes));
}

/// 0: entries of the cache, 1: bytes.
TESSERA_EXPORT std::int64_t tessera_cache_use(int which) {
  const torch_ops::CacheUse use = torch_ops::cache_use();
  return which == 0 ? use.entries : use.bytes;
}

TESSERA_EXPORT void tessera_forget_graphs(const void* memory) { torch_ops::forget_graphs(memory); }

/// The names of all kernels, a line each.
TESSERA_EXPORT const char* tessera_kernels() {
  static const std::string lines = [] {
    std::string text;
    for (const std::string& name : torch_ops::kernel_names()) text += name + "\n";
    return text;
  }();
  return lines.c_str();
}

TESSERA_EXPORT void tessera_clear_cache() { torch_ops::clear_cache(); }

/// Begins to note which kernels run.
TESSERA_EXPORT void tessera_begin_trace() {
  const std::scoped_lock lock(torch_ops::trace_mutex);
  torch_ops::trace.clear();
  torch_ops::tracing = true;
}

/// Ends it; a line for each run. Valid until the next trace begins.
TESSERA_EXPORT const char* tessera_end_trace() {
  const std::scoped_lock lock(torch_ops::trace_mutex);
  torch_ops::tracing = false;
  return torch_ops::trace.c_str();
}
