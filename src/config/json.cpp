#include <charconv>

#include "config/file.h"
#include "config/node.h"
#include "core/text/text.h"

namespace olmo::config {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// A number that is too large or too small for a double. Its key says what would be right, which
/// "a value is expected" does not.
bool is_beyond_double(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc::result_out_of_range && read.ptr == end;
}

/// A recursive-descent reader that knows its line; nlohmann's has no line at the values, and no
/// trailing commas.
class JsonReader {
 public:
  JsonReader(std::string_view text, ConfigBuilder& builder) : text_(text), builder_(builder) {}

  void document() {
    skip_space();
    if (at_end()) fail("is empty");
    value(line_);
    skip_space();
    if (!at_end()) fail("has something after its closing brace");
  }

 private:
  [[nodiscard]] bool at_end() const { return position_ >= text_.size(); }
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[position_]; }
  [[noreturn]] void fail(const std::string& what) const { builder_.fail(line_, what); }

  char take() {
    const char c = peek();
    if (c == '\n') ++line_;
    ++position_;
    return c;
  }

  bool starts_with(std::string_view prefix) const {
    return text_.substr(position_, prefix.size()) == prefix;
  }

  void skip_space() {
    while (!at_end()) {
      if (is_space(peek())) {
        take();
      } else if (starts_with("//")) {
        while (!at_end() && peek() != '\n') take();
      } else if (starts_with("/*")) {
        skip_block_comment();
      } else {
        return;
      }
    }
  }

  void skip_block_comment() {
    const auto end = text_.find("*/", position_ + 2);
    if (end == std::string_view::npos) fail("has a comment /* that does not end");
    while (position_ < end + 2) take();
  }

  void value(int line) {
    if (at_end()) fail("ends where a value is expected");
    const char c = peek();
    if (c == '{') {
      object(line);
    } else if (c == '[') {
      array(line);
    } else if (c == '"') {
      builder_.scalar(line, string(), ConfigNode::Style::kJsonString);
    } else {
      word(line);
    }
  }

  void object(int line) {
    take();
    builder_.begin(line, ConfigNode::Kind::kMap);
    for (skip_space(); peek() != '}'; skip_space()) {
      if (peek() != '"')
        fail(at_end() ? "ends inside an object" : "expects a key in double quotes, or }");
      const int key_line = line_;
      builder_.key(key_line, string());
      skip_space();
      if (peek() != ':') fail("expects : after a key");
      take();
      skip_space();
      value(key_line);
      skip_space();
      if (peek() != ',') break;
      take();
    }
    if (peek() != '}')
      fail(at_end() ? "ends inside an object" : "expects , or } after the value before it");
    take();
    builder_.end();
  }

  void array(int line) {
    take();
    builder_.begin(line, ConfigNode::Kind::kList);
    for (skip_space(); peek() != ']'; skip_space()) {
      value(line_);
      skip_space();
      if (peek() != ',') break;
      take();
    }
    if (peek() != ']')
      fail(at_end() ? "ends inside a list" : "expects , or ] after the value before it");
    take();
    builder_.end();
  }

  void word(int line) {
    const auto begin = position_;
    while (!at_end() && !is_space(peek()) &&
           std::string_view(",]}:\"/").find(peek()) == std::string_view::npos)
      take();
    const std::string text(text_.substr(begin, position_ - begin));
    if (text == "null") {
      builder_.null(line);
    } else if (text == "true" || text == "false" || read_double(text) || is_beyond_double(text)) {
      builder_.scalar(line, text, ConfigNode::Style::kPlain);
    } else {
      fail("has `" + text.substr(0, 40) + "` where a value is expected; text needs double quotes");
    }
  }

  std::string string() {
    take();
    std::string out;
    for (;;) {
      if (at_end()) fail("has a string that does not end");
      const char c = take();
      if (c == '"') return out;
      if (static_cast<unsigned char>(c) < 0x20)
        fail("has a line break or control character inside a string");
      if (c == '\\') {
        escape(out);
      } else {
        out.push_back(c);
      }
    }
  }

  void escape(std::string& out) {
    static constexpr std::string_view kNames = "\"\\/bfnrt";
    static constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
    const char c = take();
    if (const auto found = kNames.find(c); found != std::string_view::npos) {
      out.push_back(kValues[found]);
    } else if (c == 'u') {
      code_point(out);
    } else {
      fail("has an unknown escape in a string");
    }
  }

  std::uint32_t hex4() {
    std::uint32_t unit = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = at_end() ? '\0' : take();
      const auto digit = std::string_view("0123456789abcdef")
                             .find(static_cast<char>(c >= 'A' && c <= 'F' ? c + 32 : c));
      if (c == '\0' || digit == std::string_view::npos)
        fail("has \\u without four hexadecimal digits");
      unit = unit * 16 + static_cast<std::uint32_t>(digit);
    }
    return unit;
  }

  void code_point(std::string& out) {
    std::uint32_t code = hex4();
    if (code >= 0xD800 && code < 0xDC00) {
      if (!starts_with("\\u")) fail("has half of a surrogate pair");
      position_ += 2;
      const auto low = hex4();
      if (low < 0xDC00 || low > 0xDFFF) fail("has half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code <= 0xDFFF) {
      fail("has half of a surrogate pair");
    }
    append_utf8(out, code);
  }

  std::string_view text_;
  ConfigBuilder& builder_;
  std::size_t position_ = 0;
  int line_ = 1;
};

}  // namespace

ConfigDocument parse_json_config(std::string_view text, const std::string& name) {
  ConfigBuilder builder(name);
  JsonReader(text, builder).document();
  return builder.finish();
}

}  // namespace olmo::config
