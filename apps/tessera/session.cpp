// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <unistd.h>

#include "colour.hpp"
#include "output.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/printable.hpp"

namespace tessera::app {
namespace {

/// Raised when a key of docs/json.md goes away or changes its meaning.
constexpr int schema_number = 1;

}  // namespace

Session::Session(const CommonOptions& options)
    : options_(options),
      line_(options.quiet ? ProgressLine::Style::hidden : ProgressLine::suitable()),
      interrupt_([this] { line_.tick(); }, [this] { line_.clear(); }),
      progress_([this](std::string_view words, std::int64_t done, std::int64_t total) {
        interrupt_.check();
        line_.update(words, done, total);
      }) {
  if (options_.threads > 0) set_num_threads(options_.threads);
}

void Session::deliver(const std::string& report, const Json& json) {
  const std::string text = printable(report, true);
  deliver_text(colour_on(STDOUT_FILENO) ? painted_report(text) : text, json);
}

void Session::deliver_text(const std::string& text, const Json& json) {
  interrupt_.check();
  line_.clear();
  const bool json_on_stdout = options_.json == "-";
  if (!options_.json.empty()) {
    Json numbered = Json::object();
    numbered["verb"];  // stands first, whatever else there is
    numbered["schema"] = schema_number;
    numbered.update(json);
    const std::string record = numbered.written();
    json_on_stdout ? write_stdout(record) : write_report(options_.json, record);
  }
  if (!json_on_stdout && !options_.quiet) write_stdout(text);
}

}  // namespace tessera::app
