// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/isa.hpp"

#include <atomic>
#include <cstdlib>

#include "tessera/core/error.hpp"

namespace tessera::ops {
namespace {

constexpr int not_forced = -1;
std::atomic<int> forced_isa{not_forced};

Isa choose_isa() {
  const std::vector<Isa> available = available_isas();
  const char* const wish = std::getenv("TESSERA_CPU");
  if (wish == nullptr || *wish == '\0') return available.back();
  for (const Isa isa : available) {
    if (std::string(wish) == to_string(isa)) return isa;
  }
  std::string names;
  for (const Isa isa : available)
    names += (names.empty() ? "" : ", ") + std::string(to_string(isa));
  throw Error(ErrorCode::invalid_argument,
              "unknown or absent instruction set '" + std::string(wish) + "'", "TESSERA_CPU",
              "this build on this CPU has " + names);
}

}  // namespace

const char* to_string(Isa isa) noexcept {
  switch (isa) {
    case Isa::baseline: return "baseline";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
  }
  return "unknown";
}

std::vector<Isa> available_isas() {
  std::vector<Isa> available = {Isa::baseline};
#ifdef TESSERA_ISA_X86
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    available.push_back(Isa::avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      available.push_back(Isa::avx512);
    }
  }
#endif
  return available;
}

Isa best_isa() {
  const int forced = forced_isa.load(std::memory_order_relaxed);
  if (forced != not_forced) return static_cast<Isa>(forced);
  static const Isa isa = choose_isa();
  return isa;
}

ForcedIsa::ForcedIsa(Isa isa) noexcept { forced_isa.store(static_cast<int>(isa)); }
ForcedIsa::~ForcedIsa() { forced_isa.store(not_forced); }

}  // namespace tessera::ops
