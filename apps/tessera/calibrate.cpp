// SPDX-License-Identifier: Apache-2.0
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "device_profile_file.hpp"
#include "files.hpp"
#include "numbers.hpp"
#include "options.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/core/printable.hpp"
#include "tessera/io/device_profile.hpp"
#include "tessera/io/writing.hpp"
#include "tessera/ops/calibration.hpp"
#include "verb.hpp"

namespace tessera::app {
namespace {

struct CalibrateArguments {
  std::string device = "cuda";
  std::string output;
};

/// Before the work rather than after it: where plans look, a folder may have to be made first, and
/// a profile is replaced.
void check_default_place(const std::string& path) {
  if (path.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "there is no file to write to: TESSERA_DEVICE_PROFILE is off, or there is no "
                "user's data folder",
                "-o", "name a file with -o, and set TESSERA_DEVICE_PROFILE to it");
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;  // the check says what is wrong
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  check_files({{"-o", path, FileRole::state}}, false);
  std::ifstream file(path);
  std::string head;
  if (!std::getline(file, head) || head.starts_with("tessera device profile")) return;
  throw Error(ErrorCode::invalid_argument, "already exists, and is no profile of a GPU", path,
              "remove it, or name another file with -o");
}

ExitCode run_calibrate(Session& session, const CalibrateArguments& arguments) {
  const Device device = parse_device(arguments.device);
  std::string path = ops::measured_profile_path(device);
  if (arguments.output.empty()) {
    check_default_place(path);
  } else {
    path = arguments.output;
  }
  const Stopwatch watch;
  ops::CalibrationOptions options;
  options.device = device;
  options.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  options.progress = session.progress();
  const DeviceProfile expected = device_profile(device.index);
  const DeviceProfile found = ops::calibrate(options);
  const double seconds = watch.seconds();
  session.stage("writing");
  io::write_text_file(path, io::device_profile_text(found));
  session.deliver(
      profile_text(found, &expected) +
          fmt::format("measured in {}, written to {}\n", human_seconds(seconds), printable(path)),
      Json{{"verb", "calibrate"},
           {"device_profile", profile_json(found)},
           {"expected_profile", profile_json(expected)},
           {"calibrate_seconds", seconds},
           {"output", path}});
  return ExitCode::ok;
}

Action setup(Arguments& app) {
  auto arguments = std::make_shared<CalibrateArguments>();
  app.add_option("--device", arguments->device, "cuda or cuda:N (default cuda)")
      ->type_name("DEVICE")
      ->check(offers({"cuda"}));
  app.add_option("-o,--output", arguments->output,
                 "file to write (default: where plans look, in the user's data folder)")
      ->type_name("FILE");
  return {[arguments](Session& session) { return run_calibrate(session, *arguments); },
          [arguments] {
            return std::vector<FileUse>{{"-o", arguments->output, FileRole::output}};
          }};
}

}  // namespace

const Verb calibrate_verb{"calibrate", "measure what a GPU can do, by which plans then expect",
                          "[options]",
                          "tessera calibrate\n"
                          "tessera calibrate --device cuda:1 -o second.profile",
                          setup};

}  // namespace tessera::app
