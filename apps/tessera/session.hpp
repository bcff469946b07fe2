// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interrupt.hpp"
#include "json.hpp"
#include "progress_line.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/core/progress.hpp"

namespace tessera::app {

/// Options that every verb has.
struct CommonOptions {
  std::string json;  ///< a file, "-" for stdout, or empty
  int threads = 0;
  std::optional<std::uint64_t> seed;
  std::string color = "auto";
  bool quiet = false;
  bool force = false;
};

/// One run of one verb: its progress display, Ctrl-C, and where its report goes.
class Session {
 public:
  /// Sets the number of threads.
  explicit Session(const CommonOptions& options);

  std::optional<std::uint64_t> given_seed() const { return options_.seed; }
  std::uint64_t seed() const { return options_.seed.value_or(1); }
  /// Whether anyone reads what only the JSON says.
  bool wants_json() const { return !options_.json.empty(); }

  /// Handed down to the library; throws Interrupted after Ctrl-C.
  const Progress& progress() const { return progress_; }
  /// Announces work of unknown length.
  void stage(std::string_view words) { progress_(words, 0, 0); }

  /// For work that writes its own state as it goes on: Ctrl-C stops it all the same, until the
  /// results are complete.
  void files_are_progress() { interrupt_.set_files_are_progress(); }
  /// After the first Ctrl-C such work may take its time to the next look at the progress.
  void has_results_to_keep() { interrupt_.set_has_results_to_keep(); }
  void results_are_complete() { interrupt_.set_results_complete(); }

  /// `kept` says after Ctrl-C what is kept of the work and how to go on; any thread may call it.
  /// Without it, nothing is kept.
  void on_interrupt(std::function<std::string()> kept);

  /// What was guessed, dropped or decided for the user, one sentence each. The report shows them
  /// once, in the order in which they came.
  void add_notes(const std::vector<std::string>& notes);

  /// Ends the progress display and hands over the results: the report for people on stdout unless
  /// it is unwanted, the JSON where it was asked for, with the number of its schema. Both with the
  /// notes.
  void deliver(const std::string& report, const Json& json);
  /// The same with text for other programs, which has no colours.
  void deliver_text(const std::string& text, const Json& json);

 private:
  std::string kept() const;

  CommonOptions options_;
  ProgressLine line_;
  mutable std::mutex kept_mutex_;
  std::function<std::string()> kept_;
  InterruptWatch interrupt_;
  Progress progress_;
  std::optional<std::vector<std::string>> notes_;  ///< none: nothing was read
};

}  // namespace tessera::app
