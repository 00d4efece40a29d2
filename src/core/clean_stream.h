#pragma once

#include <ostream>
#include <streambuf>
#include <string>

namespace olmo {

/// Redirects `stream` to a descriptor for as long as the object lives, and makes its text safe to
/// show on the way (core/safe_text.h). Output that begins as JSON keeps unsafe characters as
/// escapes (`\u202e`), so that nothing is lost. Errors of writing are kept, not thrown.
class CleanStream : private std::streambuf {
 public:
  /// A descriptor that is closed now is never written to: a file may be opened under its number.
  CleanStream(std::ostream& stream, int descriptor);
  ~CleanStream() override;
  CleanStream(const CleanStream&) = delete;
  CleanStream& operator=(const CleanStream&) = delete;

  /// Writes what is left. Returns the errno of the first write that failed, 0 if all is out.
  int finish();

 private:
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int_type overflow(int_type c) override;
  int sync() override;

  void clean(bool at_end);
  void write(std::string_view bytes);

  std::ostream& stream_;
  std::streambuf* before_;
  int descriptor_;
  bool closed_;
  int error_ = 0;
  bool begun_ = false;
  bool json_ = false;
  std::string pending_;  ///< not yet looked at
  std::string out_;
};

}  // namespace olmo
