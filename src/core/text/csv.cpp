#include "core/text/csv.h"

#include "core/error.h"

namespace olmo {

bool CsvReader::next(std::vector<std::string>& fields) {
  while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) {
    if (text_[at_++] == '\n') ++line_;
  }
  if (at_ >= text_.size()) return false;
  begin_ = line_;
  fields.assign(1, "");
  while (at_ < text_.size() && text_[at_] != '\n') {
    const char c = text_[at_];
    if (c == '"' && fields.back().empty()) {
      take_quoted(fields.back());
      continue;
    }
    if (c == ',') {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
    ++at_;
  }
  return true;
}

void CsvReader::take_quoted(std::string& field) {
  for (++at_; at_ < text_.size(); ++at_) {
    if (text_[at_] == '"') {
      if (text_.substr(at_ + 1, 1) != "\"") {
        ++at_;
        return;
      }
      ++at_;
    }
    if (text_[at_] == '\n') ++line_;
    field += text_[at_];
  }
  throw Error(ErrorKind::kInput,
              file_ + ":" + std::to_string(begin_) + ": has a quote that is never closed");
}

}  // namespace olmo
