// All pages that are served, and what they share.
#pragma once

#include <filesystem>
#include <vector>

#include "serve/catalog.h"
#include "serve/frame.h"
#include "serve/routes.h"

namespace olmo::serve {

class Site {
 public:
  explicit Site(std::vector<std::filesystem::path> places);

  /// A Handler of server.h.
  [[nodiscard]] Response answer(const Request& request) const { return routes_.answer(request); }
  [[nodiscard]] Catalog& catalog() { return catalog_; }

 private:
  Catalog catalog_;
  Routes routes_;
};

// The pages by what they show, each in a file of its own. `catalog` lives as long as the routes.
void add_run_table(Routes& routes, Catalog& catalog);
void add_run_pages(Routes& routes, Catalog& catalog);
void add_run_config(Routes& routes, Catalog& catalog);
void add_reports(Routes& routes, Catalog& catalog);

/// The parts of a run's page, as tabs; `here`: the path of the one that is shown, as "/curves",
/// empty for the first.
std::vector<Link> run_tabs(const RunEntry& run, const std::string& here);

}  // namespace olmo::serve
