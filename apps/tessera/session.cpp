// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include "output.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/printable.hpp"

namespace tessera::app {
Session::Session(const CommonOptions& options)
    : options_(options),
      line_(!options.quiet && stderr_can_redraw()),
      interrupt_([this] { line_.tick(); }, [this] { line_.clear(); }),
      progress_([this](std::string_view words, std::int64_t done, std::int64_t total) {
        interrupt_.check();
        line_.update(words, done, total);
      }) {
  if (options_.threads > 0) set_num_threads(options_.threads);
}

void Session::deliver(const std::string& report, const Json& json) {
  interrupt_.check();
  line_.clear();
  const bool json_on_stdout = options_.json == "-";
  if (!options_.json.empty()) {
    // File names may hold bytes that are no UTF-8; JSON may not.
    const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
    json_on_stdout ? write_stdout(text) : write_report(options_.json, text);
  }
  if (!json_on_stdout && !options_.quiet) write_stdout(printable(report, true));
}

}  // namespace tessera::app
