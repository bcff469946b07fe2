// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace tessera {

/// What kind of thing went wrong. The command line turns each into its own exit code.
enum class ErrorCode {
  invalid_argument,     ///< a call or an option that cannot mean anything
  bad_data,             ///< a file or a graph that contradicts itself
  io,                   ///< the operating system refused: missing file, full disk, no permission
  out_of_memory,        ///< more memory asked for than there is
  unsupported,          ///< understood, but not available for this shape, type or format
  backend_unavailable,  ///< needs a library or a device that is absent
  internal,             ///< our fault
};

const char* to_string(ErrorCode code) noexcept;

/// Every exception the library throws. `what()` is one line: what happened, where, how to fix it.
class Error : public std::runtime_error {
 public:
  /// @param where  the file, argument or position at fault; may be empty
  /// @param fix   what the user can do about it; may be empty
  Error(ErrorCode code, const std::string& problem, std::string where = {}, std::string fix = {});

  ErrorCode code() const noexcept { return code_; }
  const std::string& where() const noexcept { return where_; }
  const std::string& fix() const noexcept { return fix_; }

 private:
  ErrorCode code_;
  std::string where_;
  std::string fix_;
};

}  // namespace tessera
