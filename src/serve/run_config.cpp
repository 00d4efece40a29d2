// The config of a run, by its sections; what is as it would be without a word is dimmed.
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "config/train_config.h"
#include "core/files/json.h"
#include "core/files/recorded_json.h"
#include "page/html.h"
#include "serve/site.h"

namespace olmo::serve {
namespace {

using namespace page;

using Leaves = std::map<std::string, std::string>;

Leaves leaves_of(const Json& config) {
  Leaves leaves;
  for_each_leaf(config, "", [&](const std::string& place, const Json& value) {
    leaves[place] = value.is_string() ? value.get<std::string>() : json_text(value);
  });
  return leaves;
}

std::string section_of(const std::string& key) {
  const auto dot = key.find('.');
  return dot == std::string::npos ? "" : key.substr(0, dot);
}

std::string table_of(const Leaves& leaves, const std::string& part, const Leaves& defaults) {
  Table table({{"Key", false}, {"Value", false}});
  for (const auto& [key, value] : leaves) {
    if (section_of(key) != part) continue;
    const auto usual = defaults.find(key);
    const bool is_default = usual != defaults.end() && usual->second == value;
    table.row({code(clip(key, 120)), code(clip(value, 2000))}, is_default ? "usual" : "");
  }
  return table.html();
}

Response config_page(const RunEntry& run) {
  const Json config = recorded_json(run.summary.run.config);
  std::string body;
  if (!config.is_object() || config.empty()) {
    body = note(config.is_object() ? "No config is recorded." : "The config cannot be read.");
  } else {
    const Leaves leaves = leaves_of(config);
    const Leaves defaults = leaves_of(config::to_json(config::TrainConfig{}));
    std::set<std::string> parts;
    for (const auto& [key, value] : leaves) parts.insert(section_of(key));
    body = note("Dimmed: as without a word about it. <a href=\"/run/" + url_encoded(run.key) +
                "/config.json\">As JSON</a>, which <code>olmo-harness train</code> reads back.");
    for (const auto& part : parts)
      body += part.empty()
                  ? table_of(leaves, part, defaults)
                  : "<h2>" + shown(part, 80) + "</h2>\n" + table_of(leaves, part, defaults);
  }
  return html_response(framed({.title = "Config of " + clip(run.title(), 120),
                               .heading = run.title(),
                               .kicker_html = shown(run.place, 200),
                               .tabs = run_tabs(run, "/config")},
                              body));
}

Response config_json(const RunEntry& run) {
  Response response = html_response(run.summary.run.config + "\n");
  response.content_type = "application/json";
  return response;
}

}  // namespace

void add_run_config(Routes& routes, Catalog& catalog) {
  routes.add("/run/{}/config", [&catalog](const Request& request) {
    return config_page(catalog.run(request.parts.at(0)));
  });
  routes.add("/run/{}/config.json", [&catalog](const Request& request) {
    return config_json(catalog.run(request.parts.at(0)));
  });
}

}  // namespace olmo::serve
