#include "serve/site.h"

#include "serve/compare.h"
#include "serve/curves.h"
#include "serve/evaluations.h"
#include "serve/instances.h"

namespace olmo::serve {

std::vector<Link> run_tabs(const RunEntry& run, const std::string& here) {
  struct Part {
    const char* text;
    const char* path;
  };
  constexpr Part kParts[] = {{"Overview", ""},
                             {"Curves", "/curves"},
                             {"Evaluations", "/evaluations"},
                             {"Config", "/config"},
                             {"Checkpoints", "/checkpoints"},
                             {"Events", "/events"},
                             {"Energy and ranks", "/energy"},
                             {"Record", "/record"}};
  std::vector<Link> tabs;
  for (const Part& part : kParts)
    tabs.push_back({.text = part.text,
                    .address = "/run/" + url_encoded(run.key) + part.path,
                    .here = here == part.path});
  return tabs;
}

Site::Site(std::vector<std::filesystem::path> places) : catalog_(std::move(places)) {
  routes_.add("/style.css", [](const auto&) { return style_response(); });
  routes_.add("/script.js", [](const auto&) { return common_script_response(); });
  add_run_table(routes_, catalog_);
  add_run_pages(routes_, catalog_);
  add_run_config(routes_, catalog_);
  add_reports(routes_, catalog_);
  add_curves(routes_, catalog_);
  add_compare(routes_, catalog_);
  add_evaluations(routes_, catalog_);
  add_instances(routes_, catalog_);
}

}  // namespace olmo::serve
