// SPDX-License-Identifier: Apache-2.0
#include "ops/plan/workspace.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::ops {
namespace {

[[noreturn]] void reject(const std::string& problem, std::int64_t needed) {
  throw Error(ErrorCode::invalid_argument, problem, "workspace",
              fmt::format("lend {} bytes (workspace_bytes) on a boundary of {}", needed,
                          WorkspaceNeed::alignment));
}

void clear_counters(const WorkspaceNeed& need, void* memory, Device device, Stream stream) {
  fill_zero(memory, static_cast<std::size_t>(need.counter_bytes()), device, stream);
}

}  // namespace

PlanWorkspace::PlanWorkspace(const WorkspaceNeed& need, const Place& place, bool owned)
    : need_(need), place_(place), own_(owned ? need.total_bytes() : 0, place), uses_(place) {
  if (owned) clear_counters(need_, own_.data(), place_.device, place_.stream);
  if (place_.device.kind == DeviceKind::cpu) return;
  // Kernels that overlap the one before them read the plan ahead (docs/design/kernels.md). They
  // overlap nothing that writes it if something that overlaps nothing lies between.
  if (own_.empty()) last_ = Buffer<std::byte>(WorkspaceNeed::alignment, place_);
  if (!owned || need_.counter_bytes() == 0) {
    fill_zero(own_.empty() ? last_.data() : own_.data(), WorkspaceNeed::alignment, place_.device,
              place_.stream);
  }
  ready_.mark(place_);
}

WorkspaceUse::WorkspaceUse(const PlanWorkspace& workspace, const Workspace& lent, Stream stream)
    : workspace_(workspace), stream_(stream) {
  const WorkspaceNeed& need = workspace.need_;
  if (lent.absent() && workspace.own_.size() < need.total_bytes()) {
    reject("the plan has no workspace of its own, and the run brings none", need.total_bytes());
  }
  if (!lent.absent() && lent.bytes < need.total_bytes()) {
    reject(fmt::format("a workspace of {} bytes is too small", lent.bytes), need.total_bytes());
  }
  if (!lent.absent() &&
      reinterpret_cast<std::uintptr_t>(lent.data) % WorkspaceNeed::alignment != 0) {
    reject("the workspace is not aligned", need.total_bytes());
  }
  workspace.ready_.wait(stream);
  alone_ =
      workspace.place_.device.kind == DeviceKind::cpu || (lent.absent() && need.total_bytes() > 0);
  if (alone_) take();
  if (lent.absent()) {
    // Runs write to what the plan owns, one at a time.
    view_ = need.view(const_cast<std::byte*>(workspace.own_.data()));
    return;
  }
  clear_counters(need, lent.data, workspace.place_.device, stream);
  view_ = need.view(lent.data);
}

void WorkspaceUse::take() {
  if (!workspace_.taken_.exchange(true, std::memory_order_acquire)) return;
  const bool on_cpu = workspace_.place_.device.kind == DeviceKind::cpu;
  throw Error(ErrorCode::invalid_argument, "another thread is running this plan, or a copy of it",
              "plan",
              on_cpu ? "make a plan for each thread"
                     : "make a plan for each thread, or lend each run a workspace");
}

void TrialWorkspace::prepare(const WorkspaceNeed& need) {
  if (memory_.size() < need.total_bytes()) {
    memory_ = {};
    memory_ = Buffer<std::byte>(need.total_bytes(), place_);
  }
  clear_counters(need, memory_.data(), place_.device, place_.stream);
  view_ = need.view(memory_.data());
}

}  // namespace tessera::ops
