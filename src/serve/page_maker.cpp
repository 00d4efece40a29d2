#include "serve/page_maker.h"

#include <algorithm>

#include "core/clock.h"
#include "page/html.h"
#include "serve/frame.h"

namespace olmo::serve {
namespace {

constexpr std::size_t kKeptPages = 16;
constexpr std::size_t kWaitingPages = 8;

/// Asks again by itself, with or without a script.
Response making_page(const std::string& what, double seconds) {
  Response response = html_response(framed(
      {.title = what, .heading = what},
      page::paragraph("This is being computed, " + page::count(static_cast<std::int64_t>(seconds)) +
                      " s so far. The page comes by itself.")));
  response.headers.emplace_back("Refresh", "2");
  return response;
}

}  // namespace

PageMaker::~PageMaker() {
  {
    const std::lock_guard held(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Response PageMaker::page(const std::string& name, const std::string& what,
                         const std::vector<std::filesystem::path>& databases,
                         const std::function<Response()>& make,
                         std::chrono::milliseconds patience) {
  std::vector<Stamp> stamps;
  for (const auto& database : databases) stamps.push_back(stamp_of(database));
  std::unique_lock held(mutex_);
  const auto now = Clock::now();
  auto& kept = pages_[name];
  const bool old = kept && kept->done && kept->stamps != stamps && now > kept->ended + stays_fresh_;
  if (!kept || old || (kept->done && kept->error)) {
    if (waiting_.size() >= kWaitingPages) {
      pages_.erase(name);
      return plain_response(503, "Other pages are being computed. Try again in a moment.");
    }
    kept = std::make_shared<Page>();
    kept->make = make;
    kept->stamps = stamps;
    kept->asked = now;
    waiting_.push_back(kept);
    changed_.notify_all();
  }
  const auto page = kept;
  forget_oldest();
  changed_.wait_for(held, patience, [&] { return page->done || ending_; });
  if (!page->done) return making_page(what, seconds_since(page->asked));
  if (page->error) std::rethrow_exception(page->error);
  return page->response;
}

void PageMaker::work() {
  std::unique_lock held(mutex_);
  while (true) {
    changed_.wait(held, [&] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    const auto page = waiting_.front();
    waiting_.pop_front();
    held.unlock();
    Response response;
    std::exception_ptr error;
    try {
      response = page->make();
    } catch (...) {
      error = std::current_exception();
    }
    held.lock();
    page->response = std::move(response);
    page->error = error;
    page->ended = Clock::now();
    page->done = true;
    changed_.notify_all();
  }
}

void PageMaker::forget_oldest() {
  while (pages_.size() > kKeptPages) {
    const auto oldest =
        std::min_element(pages_.begin(), pages_.end(), [](const auto& a, const auto& b) {
          return std::pair(!a.second->done, a.second->asked) <
                 std::pair(!b.second->done, b.second->asked);
        });
    if (!oldest->second->done) return;
    pages_.erase(oldest);
  }
}

}  // namespace olmo::serve
