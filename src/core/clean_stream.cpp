#include "core/clean_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "core/safe_text.h"
#include "core/utf8.h"

namespace olmo {
namespace {

constexpr std::size_t kBuffer = 1 << 16;
constexpr std::size_t kLongestCharacter = 4;

bool is_plain(char c) { return (c >= ' ' && c < 0x7F) || c == '\n' || c == '\t'; }

std::string json_escape(char32_t point) {
  char text[16];
  if (point < 0x10000) {
    std::snprintf(text, sizeof text, "\\u%04x", static_cast<unsigned>(point));
  } else {
    const auto rest = static_cast<unsigned>(point - 0x10000);
    std::snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xD800 + (rest >> 10U),
                  0xDC00 + (rest & 0x3FFU));
  }
  return text;
}

}  // namespace

CleanStream::CleanStream(std::ostream& stream, int descriptor)
    : stream_(stream),
      before_(stream.rdbuf()),
      descriptor_(descriptor),
      closed_(::fcntl(descriptor, F_GETFD) < 0) {
  stream_.flush();
  stream_.rdbuf(this);
}

CleanStream::~CleanStream() {
  finish();
  stream_.rdbuf(before_);
}

int CleanStream::finish() {
  clean(/*at_end=*/true);
  write(out_);
  out_.clear();
  return error_;
}

std::streamsize CleanStream::xsputn(const char* text, std::streamsize size) {
  pending_.append(text, static_cast<std::size_t>(size));
  if (pending_.size() >= kBuffer) {
    clean(/*at_end=*/false);
    write(out_);
    out_.clear();
  }
  return error_ == 0 ? size : 0;
}

CleanStream::int_type CleanStream::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  return xsputn(&one, 1) == 1 ? c : traits_type::eof();
}

int CleanStream::sync() {
  clean(/*at_end=*/false);
  write(out_);
  out_.clear();
  return error_ == 0 ? 0 : -1;
}

void CleanStream::clean(bool at_end) {
  std::string_view rest = pending_;
  if (!begun_ && !rest.empty()) {
    begun_ = true;
    json_ = rest.starts_with('{') || rest.starts_with('[');
  }
  while (!rest.empty()) {
    const auto plain = static_cast<std::size_t>(
        std::find_if_not(rest.begin(), rest.end(), is_plain) - rest.begin());
    out_ += rest.substr(0, plain);
    rest.remove_prefix(plain);
    if (rest.empty()) break;
    const CodePoint point = decode_utf8(rest);
    const bool bad = point.code == kBadUtf8;
    if (bad && !at_end && rest.size() < kLongestCharacter) break;  // its end may follow
    if (json_ && !bad && !is_harmless(point.code)) {
      out_ += json_escape(point.code);
    } else {
      out_ += safe_text(rest.substr(0, point.size));
    }
    rest.remove_prefix(point.size);
  }
  pending_.erase(0, pending_.size() - rest.size());
}

void CleanStream::write(std::string_view bytes) {
  while (!bytes.empty() && error_ == 0) {
    const ssize_t written = closed_ ? -1 : ::write(descriptor_, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (closed_) {
      error_ = EBADF;
    } else if (errno == EAGAIN) {
      struct pollfd room {
        descriptor_, POLLOUT, 0
      };
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      error_ = written == 0 ? EIO : errno;
    }
  }
}

}  // namespace olmo
