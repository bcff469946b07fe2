// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/csrc/stable/library.h>

#include "place.hpp"
#include "structure.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/plan.hpp"

namespace tessera::torch_ops {

/// Bits of the operators' argument `flags`.
enum Flags : std::int64_t {
  tune_by_measuring = 1,
  allow_tf32 = 2,
  only_strict = 4,
  cast_to_bf16 = 8,  ///< of operators that are layers: under autocast
  cast_to_fp16 = 16,
  each_edge_once = 32,  ///< of spmm: repeated edges are an error, as they are in sums of bits
  wide_result = 64,     ///< of layers under autocast: fp32, as PyG's are that multiply by fp32
  keep_sums = 128,      ///< of gat: one more result, where its backward run has a use for it
};
/// Those of them that the plans of layers know.
inline constexpr std::int64_t plan_flags = tune_by_measuring | allow_tf32 | only_strict;
/// From this bit on, `flags` holds the number of the kernel that a forward run must use: 1 is the
/// first of `kernel_names`. 0: the plan chooses.
inline constexpr int kernel_bit = 8;
/// All kernels of this library, sorted.
const std::vector<std::string>& kernel_names();

/// Whether a layer casts what it is given.
inline bool is_cast(std::int64_t flags) { return (flags & (cast_to_bf16 | cast_to_fp16)) != 0; }
/// The type of a layer's products and sums: the one of autocast, or that of the features.
inline ScalarType layer_type(const Tensor& features, std::int64_t flags) {
  if ((flags & cast_to_bf16) != 0) return ScalarType::BFloat16;
  if ((flags & cast_to_fp16) != 0) return ScalarType::Half;
  return features.scalar_type();
}
/// The type of what a layer returns.
inline ScalarType result_type(const Tensor& features, std::int64_t flags) {
  return (flags & wide_result) != 0 ? ScalarType::Float : layer_type(features, flags);
}

void register_spmm(torch::stable::detail::StableLibrary& library);
void register_spmm_linear(torch::stable::detail::StableLibrary& library);
void register_gin(torch::stable::detail::StableLibrary& library);
void register_edges(torch::stable::detail::StableLibrary& library);
void register_messages(torch::stable::detail::StableLibrary& library);
void register_attention(torch::stable::detail::StableLibrary& library);
void register_gat(torch::stable::detail::StableLibrary& library);
void register_gatv2(torch::stable::detail::StableLibrary& library);
void register_bits(torch::stable::detail::StableLibrary& library);
void register_pairs(torch::stable::detail::StableLibrary& library);
void register_top(torch::stable::detail::StableLibrary& library);
/// A GPU draws from what the CPU has found out.
void register_sampling(torch::stable::detail::StableLibrary& library);

inline void register_operators(torch::stable::detail::StableLibrary& library) {
  register_spmm(library);
  register_spmm_linear(library);
  register_gin(library);
  register_edges(library);
  register_messages(library);
  register_attention(library);
  register_gat(library);
  register_gatv2(library);
  register_bits(library);
  register_pairs(library);
  register_top(library);
  register_sampling(library);
}

/// The function, with errors of the library as ones that Python can tell apart by their first word.
template <auto function>
struct Guarded;
template <class Result, class... Arguments, Result (*function)(Arguments...)>
struct Guarded<function> {
  static Result run(Arguments... arguments) {
    try {
      return function(std::move(arguments)...);
    } catch (const Error& error) {
      throw std::runtime_error(std::string("tessera ") + to_string(error.code()) + ": " +
                               error.what());
    }
  }
};

/// Registers a kernel of an operator, and of its twin `…_run`, which has no derivatives.
inline void implement(torch::stable::detail::StableLibrary& library, const std::string& name,
                      void (*kernel)(StableIValue*, std::uint64_t, std::uint64_t)) {
  library.impl(name.c_str(), kernel);
  library.impl((name + "_run").c_str(), kernel);
}

/// The options that all plans share.
template <class Options>
void set_common(Options& options, const Place& place, std::int64_t flags) {
  options.device = place.device;
  options.memory = place.memory;
  options.stream = place.stream;
  options.own_workspace = place.device.kind == DeviceKind::cpu;
  options.tune = (flags & tune_by_measuring) != 0 ? ops::Tune::measured : ops::Tune::predicted;
  options.strict = (flags & only_strict) != 0;
}

/// Names the kernel that `flags` ask for.
inline void set_kernel(ops::PlanOptions& options, std::int64_t flags) {
  const auto number = static_cast<std::size_t>(flags >> kernel_bit);
  if (number > 0) options.kernel = kernel_names().at(number - 1);
}

/// The precision that a plan for these features has.
inline Precision planned_precision(const Tensor& features, std::int64_t flags) {
  const Precision precision = precision_of(features);
  const bool on_gpu = !features.is_cpu();
  return precision == Precision::fp32 && on_gpu && (flags & allow_tf32) != 0 ? Precision::tf32
                                                                             : precision;
}

/// The CPU has no arithmetic of fp16: such features are widened there, and the results narrowed.
inline bool is_widened(const Tensor& features) {
  return features.is_cpu() && features.scalar_type() == ScalarType::Half;
}

/// What a run borrows from torch, so that its counters see it and streams do not share it.
class BorrowedWorkspace {
 public:
  BorrowedWorkspace(const Tensor& beside, const ops::AnyPlan& plan) {
    if (beside.is_cpu() || plan.workspace_bytes() == 0) return;
    place_ = place_of(beside);
    view_ = {place_.memory->allocate(bytes_of(plan), place_.stream), plan.workspace_bytes()};
  }
  ~BorrowedWorkspace() {
    if (place_.memory == nullptr) return;
    place_.memory->deallocate(view_.data, static_cast<std::size_t>(view_.bytes), place_.stream);
  }
  BorrowedWorkspace(const BorrowedWorkspace&) = delete;
  BorrowedWorkspace& operator=(const BorrowedWorkspace&) = delete;
  operator Workspace() const { return view_; }

 private:
  static std::size_t bytes_of(const ops::AnyPlan& plan) {
    return static_cast<std::size_t>(plan.workspace_bytes());
  }

  Place place_ = {};
  Workspace view_;
};

}  // namespace tessera::torch_ops
