// The pages of `report parity` and `report run`, for runs that are served.
#include <algorithm>

#include "core/error.h"
#include "core/hash.h"
#include "core/process/process.h"
#include "page/html.h"
#include "report/comparability/assumptions.h"
#include "report/page/pages.h"
#include "serve/page_maker.h"
#include "serve/site.h"
#include "store/evaluations/evaluation_labels.h"

namespace olmo::serve {
namespace {

std::string base64(const std::array<std::uint8_t, 32>& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t j = 0; j < 3; ++j)
      three = three << 8U | (i + j < bytes.size() ? bytes[i + j] : 0U);
    for (const int shift : {18, 12, 6, 0})
      out += kDigits[three >> static_cast<unsigned>(shift) & 63U];
  }
  return out.replace(out.size() - 1, 1, "=");  // 32 bytes are ten threes and two
}

/// Style and script are part of a report's page. Of scripts the browser runs those alone whose
/// digest is named here.
std::string policy_of(const std::string& html) {
  std::string scripts;
  const std::string begin = "<script>", end = "</script>";
  for (auto at = html.find(begin); at != std::string::npos; at = html.find(begin, at)) {
    at += begin.size();
    const auto length = html.find(end, at) - at;
    scripts += " 'sha256-" + base64(sha256(std::string_view(html).substr(at, length)).bytes) + "'";
    at += length;
  }
  return "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
         "form-action 'none'; frame-ancestors 'none'; script-src" +
         (scripts.empty() ? " 'none'" : scripts);
}

Response report_response(std::string html) {
  Response response = html_response(std::move(html));
  response.content_policy = policy_of(response.body);
  return response;
}

/// A run or an evaluation of which a report is made.
struct Reported {
  std::filesystem::path database;
  std::string argument;  ///< as the command line names it
  std::string name;
};

/// The database alone where it holds nothing else of that kind, as the command line names a run.
std::string argument_of(const auto& entries, const auto& one, const std::string& id) {
  const auto in_database = std::ranges::count_if(
      entries, [&](const auto& each) { return each.database == one.database; });
  return one.database.string() + (in_database == 1 ? "" : ":" + id);
}

Reported reported(Catalog& catalog, const std::string& key) {
  const auto listing = catalog.listing_with({key});
  if (const auto* lone = listing->find_evaluation(key)) {
    const bool alone = std::ranges::find(listing->runs, lone->database, &RunEntry::database) ==
                       listing->runs.end();
    const std::string& id = lone->entry.evaluation_id;
    return {.database = lone->database,
            .argument = alone ? argument_of(listing->evaluations, *lone, id)
                              : lone->database.string() + ":" + id,
            .name = page::clip(store::model_of(lone->entry), 60)};
  }
  const RunEntry run = catalog.run(key);
  return {.database = run.database,
          .argument = argument_of(listing->runs, run, run.summary.run.run_id),
          .name = page::clip(run.title(), 60)};
}

/// Two keys: `a` and `b`, or `run` twice, as ticked in the table.
std::pair<std::string, std::string> two_keys(const Request& request) {
  const auto runs = request.values("run");
  const std::string a = request.value("a"), b = request.value("b");
  if (!a.empty() && !b.empty()) return {a, b};
  if (runs.size() == 2) return {runs[0], runs[1]};
  throw NotFound("A comparison needs two runs: tick two in the table of runs.");
}

/// An option without a value: `&NAME`, or `&NAME=1`.
bool is_set(const Request& request, const char* name) {
  const auto values = request.values(name);
  if (values.empty()) return false;
  if (values.back().empty() || values.back() == "1") return true;
  throw Error(ErrorKind::kUsage, std::string(name) + ": is given as &" + name +
                                     "=1, or left out; received `" + values.back() + "`");
}

Response parity_page(const Request& request, Catalog& catalog, PageMaker& maker) {
  const auto [key_a, key_b] = two_keys(request);
  const Reported a = reported(catalog, key_a), b = reported(catalog, key_b);
  const std::string run_a = a.argument, run_b = b.argument;
  const std::string kind = request.value("kind"), margin = request.value("margin");
  report::ParityOptions options;
  options.reading = store::OpenMode::kGlance;
  options.version = build_info().version;
  options.command = "olmo-harness report parity " + shell_quoted(run_a) + " " + shell_quoted(run_b);
  if (!kind.empty()) {
    options.kind = report::kind_named(kind);
    options.command += " --kind " + shell_quoted(kind);
  }
  if (!margin.empty()) {
    options.margins = report::parse_margins(margin);
    options.command += " --margin " + shell_quoted(margin);
  }
  if (is_set(request, "skip-evaluations")) {
    options.skip_evaluations = true;
    options.command += " --skip-evaluations";
  }
  const auto assumed = request.values("assume");
  options.assume = report::parse_assumptions(assumed);
  for (const auto& fact : assumed) options.command += " --assume " + shell_quoted(fact);
  return maker.page(options.command, a.name + " and " + b.name, {a.database, b.database}, [=] {
    return report_response(report::parity_html(report::compare(run_a, run_b, options)));
  });
}

Response report_page(const Request& request, Catalog& catalog, PageMaker& maker) {
  const Reported run = reported(catalog, request.value("run"));
  const std::string command = "olmo-harness report run " + shell_quoted(run.argument);
  return maker.page(command, run.name, {run.database}, [=] {
    auto found = report::report_run(run.argument, "", store::OpenMode::kGlance);
    found.command = command;
    found.version = build_info().version;
    return report_response(report::run_html(found));
  });
}

}  // namespace

void add_reports(Routes& routes, Catalog& catalog) {
  // Gone with the routes, which wait for what it makes.
  const auto maker = std::make_shared<PageMaker>();
  routes.add("/parity", [&catalog, maker](const Request& request) {
    return parity_page(request, catalog, *maker);
  });
  routes.add("/report", [&catalog, maker](const Request& request) {
    return report_page(request, catalog, *maker);
  });
}

}  // namespace olmo::serve
