// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "interrupt.hpp"
#include "progress_line.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/core/progress.hpp"

namespace tessera::app {

/// Keeps its keys in the order they were added, so that reports read well and compare as text.
using Json = nlohmann::ordered_json;

/// Options that every verb has.
struct CommonOptions {
  std::string json;  ///< a file, "-" for stdout, or empty
  int threads = 0;
  std::optional<std::uint64_t> seed;
  bool quiet = false;
};

/// One run of one verb: its progress display, Ctrl-C, and where its report goes.
class Session {
 public:
  /// Sets the number of threads. Throws where the JSON report could not be written later.
  explicit Session(const CommonOptions& options);

  std::optional<std::uint64_t> given_seed() const { return options_.seed; }
  std::uint64_t seed() const { return options_.seed.value_or(1); }

  /// Handed down to the library; throws Interrupted after Ctrl-C.
  const Progress& progress() const { return progress_; }
  /// Announces work of unknown length.
  void stage(std::string_view words) { progress_(words, 0, 0); }

  /// Ends the progress display and hands over the results: the report for people on stdout unless
  /// it is unwanted, the JSON where it was asked for.
  void deliver(const std::string& report, const Json& json);

 private:
  CommonOptions options_;
  ProgressLine line_;
  InterruptWatch interrupt_;
  Progress progress_;
};

}  // namespace tessera::app
