#include "serve/routes.h"

#include "core/error.h"
#include "serve/frame.h"

namespace olmo::serve {
namespace {

std::vector<std::string> words_of(const std::string& path) {
  std::vector<std::string> words;
  std::size_t begin = 1;
  while (begin < path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    words.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

bool fits(const std::vector<std::string>& pattern, const std::vector<std::string>& words,
          std::vector<std::string>& parts) {
  if (pattern.size() != words.size()) return false;
  parts.clear();
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (pattern[i] == "{}")
      parts.push_back(words[i]);
    else if (pattern[i] != words[i])
      return false;
  }
  return true;
}

Response failed(const Request& request, int status, const std::string& sentence) {
  if (request.wants_json()) return plain_response(status, sentence, true);
  Response response =
      html_response(sentence_page(status == 404 ? "Not here" : "This cannot be shown", sentence));
  response.status = status;
  return response;
}

}  // namespace

void Routes::add(std::string pattern, std::function<Response(const Request&)> answer) {
  routes_.push_back({std::move(pattern), std::move(answer)});
}

Response Routes::answer(const Request& request) const {
  const auto words = words_of(request.path);
  try {
    for (const Route& route : routes_) {
      Request asked = request;
      if (fits(words_of(route.pattern), words, asked.parts)) return route.answer(asked);
    }
  } catch (const NotFound& absent) {
    return failed(request, 404, absent.what());
  } catch (const Error& error) {
    // A database that is gone, damaged or of a newer version is no fault of this program's.
    return failed(request, error.kind() == ErrorKind::kFailure ? 500 : 422, error.what());
  }
  return failed(request, 404, "There is no page at this address.");
}

}  // namespace olmo::serve
