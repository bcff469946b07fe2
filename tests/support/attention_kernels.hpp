// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ops/attention/kernel.hpp"
#include "ops/simd/isa.hpp"
#include "support/comparisons.hpp"
#include "support/kernel_names.hpp"
#include "support/odd_graphs.hpp"
#include "tessera/ops/attention.hpp"

/// The registered attention kernels, and what each of them takes.
namespace tessera::test {

using ops::AttentionForm;
using ops::AttentionOptions;

inline constexpr AttentionForm all_forms[] = {AttentionForm::gat, AttentionForm::gatv2,
                                              AttentionForm::dot};

inline AttentionOptions options_of(const std::string& kernel, AttentionForm form,
                                   std::int64_t heads, std::int64_t width, double dropout) {
  AttentionOptions options;
  options.kernel = kernel;
  options.form = form;
  options.heads = heads;
  options.features = heads * width;
  options.dropout = dropout;
  options.device = testing::device_of(kernel);
  return options;
}

inline std::string describe(const AttentionOptions& options) {
  return options.kernel + " " + to_string(options.form) + " " + std::to_string(options.heads) +
         " heads, " + std::to_string(options.features) + " features, dropout " +
         std::to_string(options.dropout);
}

inline bool supports(const std::string& name, const AttentionOptions& options) {
  for (const ops::AttentionKernel& kernel : ops::attention_kernels()) {
    if (kernel.info.name != name) continue;
    return kernel.why_not({testing::path_graph(3), options}).empty();
  }
  return false;
}

/// The forms that a kernel takes in any precision.
inline std::vector<AttentionForm> forms_of_any(const std::string& kernel) {
  std::vector<AttentionForm> forms;
  for (const AttentionForm form : all_forms) {
    bool takes = supports(kernel, options_of(kernel, form, 1, 1, 0));
    for (const std::int64_t width : {8, 32, 64}) {
      AttentionOptions narrow = options_of(kernel, form, 1, width, 0);
      narrow.precision = Precision::bf16;
      takes = takes || supports(kernel, narrow);
    }
    if (takes) forms.push_back(form);
  }
  return forms;
}

/// The forms that a kernel takes in fp32.
inline std::vector<AttentionForm> forms_of(const std::string& kernel) {
  std::vector<AttentionForm> forms;
  for (const AttentionForm form : all_forms) {
    if (supports(kernel, options_of(kernel, form, 1, 1, 0))) forms.push_back(form);
  }
  return forms;
}

/// Every form of a kernel with every width of a head.
inline std::vector<std::pair<AttentionForm, std::int64_t>> forms_and_widths(
    const std::string& kernel, const std::vector<std::int64_t>& widths) {
  std::vector<std::pair<AttentionForm, std::int64_t>> pairs;
  for (const AttentionForm form : forms_of(kernel)) {
    for (const std::int64_t width : widths) pairs.emplace_back(form, width);
  }
  return pairs;
}

inline bool on_cpu(const std::string& kernel) {
  return testing::device_of(kernel).kind == DeviceKind::cpu;
}

/// A test for each kernel.
class AttentionKernelTest : public testing::KernelTest {
 protected:
  /// Calls body(kernel name): on the CPU for every instruction set.
  template <class Body>
  void for_instruction_sets(Body&& body) {
    if (!on_cpu(GetParam())) return body(GetParam());
    for (const ops::Isa isa : ops::available_isas()) {
      SCOPED_TRACE(to_string(isa));
      const ops::ForcedIsa forced(isa);
      body(GetParam());
    }
  }
};

/// The kernels whose edges bring no terms; attention_terms_test.cpp has the others.
inline std::vector<std::string> kernels_without_terms() {
  std::vector<std::string> names = testing::kernel_names("attention");
  std::erase_if(names, [](const std::string& name) { return name.ends_with("/terms"); });
  return names;
}

/// The kernels that take a form in fp32.
inline std::vector<std::string> kernels_for(AttentionForm form) {
  std::vector<std::string> names = testing::kernel_names("attention");
  std::erase_if(names, [&](const std::string& name) {
    return !supports(name, options_of(name, form, 1, 1, 0));
  });
  return names;
}

}  // namespace tessera::test
