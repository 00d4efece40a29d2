// The first page: a table of all runs. What is shown is in the address: text and state to look for,
// columns, order, so that a link shows the same. Filtering happens here and not in the browser, so
// the page is whole without its script.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/text/text.h"
#include "page/html.h"
#include "serve/form.h"
#include "serve/lone_evaluations.h"
#include "serve/run_columns.h"
#include "serve/site.h"

namespace olmo::serve {
namespace {

using namespace page;
using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kRowsOfPage = 300;
constexpr int kRefreshSeconds = 4;

/// What the address asks for.
struct View {
  std::string text;        ///< words that must stand somewhere in the row
  std::string state, tag;  ///< empty: any
  std::vector<const RunColumn*> columns;
  const RunColumn* sort = nullptr;  ///< nothing: by name, or as they were found
  bool by_name = false;
  bool ascending = false;
  std::size_t first = 0;  ///< of the rows that fit
};

View view_of(const Request& request) {
  View view;
  view.text = request.value("q");
  view.state = request.value("status");
  view.tag = request.value("tag");
  const auto names = request.values("column");
  for (const RunColumn& column : run_columns()) {
    const bool named = std::find(names.begin(), names.end(), column.id) != names.end();
    if (names.empty() ? column.at_first : named) view.columns.push_back(&column);
  }
  std::string sort = request.value("sort");
  if (sort.empty()) sort = "-created";
  view.ascending = !sort.starts_with('-');
  if (!view.ascending) sort.erase(0, 1);
  view.by_name = sort == "name";
  view.sort = run_column(sort);
  const auto page = request.value("page");
  if (!page.empty() && page.size() < 7 && page.find_first_not_of("0123456789") == std::string::npos)
    view.first = std::max(1UL, std::stoul(page)) * kRowsOfPage - kRowsOfPage;
  return view;
}

bool fits(const View& view, const RunEntry& run) {
  if (!view.state.empty() && run.now.state != view.state) return false;
  const auto& tags = run.summary.tags;
  if (!view.tag.empty() && std::find(tags.begin(), tags.end(), view.tag) == tags.end())
    return false;
  if (view.text.empty()) return true;
  const auto& record = run.summary.run;
  const std::string text =
      ascii_lower(record.name + " " + record.run_id + " " + run.place + " " + run.now.state + " " +
                  run.summary.host + " " + joined(tags, " "));
  const std::string wanted = ascii_lower(view.text);
  const auto words = split_words(wanted);
  return std::all_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

std::vector<const RunEntry*> rows_of(const View& view, const Listing& listing) {
  std::vector<const RunEntry*> rows;
  for (const RunEntry& run : listing.runs)
    if (fits(view, run)) rows.push_back(&run);
  if (view.sort == nullptr && !view.by_name) return rows;
  std::vector<std::pair<SortValue, const RunEntry*>> keyed;
  for (const RunEntry* run : rows)
    keyed.emplace_back(view.by_name ? SortValue(ascii_lower(run->name())) : view.sort->value(*run),
                       run);
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    const bool none_a = a.first.index() == 0, none_b = b.first.index() == 0;
    if (none_a || none_b) return none_b && !none_a;
    return view.ascending ? a.first < b.first : b.first < a.first;
  });
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = keyed[i].second;
  return rows;
}

/// The address of this view with one value changed.
std::string address_with(const Request& request, const std::string& name,
                         const std::string& value) {
  Query query = request.query;
  query.erase("run");
  if (name == "sort") query.erase("page");
  if (value.empty())
    query.erase(name);
  else
    query[name] = {value};
  return address_of("/", query);
}

std::string head_cell(const View& view, const Request& request, const std::string& id,
                      const std::string& title, bool number) {
  const bool here = view.sort != nullptr ? view.sort->id == id : view.by_name && id == "name";
  const bool descend = here ? view.ascending : number || id == "created";
  return std::string("<th scope=\"col\"") + (number ? " class=\"n\"" : "") +
         (here ? std::string(" aria-sort=\"") + (view.ascending ? "ascending" : "descending") + "\""
               : "") +
         "><a class=\"sort\" href=\"" +
         escape(address_with(request, "sort", (descend ? "-" : "") + id)) + "\">" + escape(title) +
         "</a></th>";
}

std::string row_html(const View& view, const RunEntry& run, bool chosen) {
  const std::string name = shown(run.title(), 120);
  std::string html = "<tr><td class=\"pick\"><input type=\"checkbox\" name=\"run\" value=\"" +
                     escape(run.key) + "\" aria-label=\"Choose " + name + "\"" +
                     (chosen ? " checked" : "") + "></td><th scope=\"row\"><a href=\"/run/" +
                     url_encoded(run.key) + "\">" + name + "</a></th>";
  for (const RunColumn* column : view.columns)
    html += std::string("<td") + (column->number ? " class=\"n\"" : "") + " data-h=\"" +
            escape(column->title) + "\">" + column->html(run) + "</td>";
  return html + "</tr>\n";
}

std::string pages_html(const View& view, const Request& request, std::size_t rows) {
  if (rows <= kRowsOfPage) return {};
  const std::size_t last = (rows + kRowsOfPage - 1) / kRowsOfPage;
  std::string html = "Page";
  for (std::size_t i = 1; i <= last; ++i) {
    const std::string number = std::to_string(i);
    html += (i - 1) * kRowsOfPage == view.first
                ? " <b>" + number + "</b>"
                : " <a href=\"" + escape(address_with(request, "page", number)) + "\">" + number +
                      "</a>";
  }
  return paragraph(html);
}

std::string counts_html(const Listing& listing, std::size_t rows) {
  const auto total = static_cast<std::int64_t>(listing.runs.size());
  const auto evaluations =
      static_cast<std::int64_t>(listing.evaluations.size()) + listing.older_evaluations;
  std::string text =
      counted(total, "run") +
      (evaluations > 0 ? " and " + counted(evaluations, "evaluation") + " without one" : "") +
      " in " + counted(static_cast<std::int64_t>(listing.databases), "database");
  if (rows != listing.runs.size()) text = count(static_cast<std::int64_t>(rows)) + " of " + text;
  if (listing.read < listing.databases)
    text += "; reading, " + count(static_cast<std::int64_t>(listing.read)) + " databases so far";
  return note(escape(text));
}

std::string troubles_html(const Listing& listing) {
  std::string html;
  if (!listing.bad.empty()) {
    std::vector<std::string> texts;
    for (const auto& bad : listing.bad) texts.push_back(bad.place + ": " + bad.sentence);
    html += "<h2 class=\"warn\">Cannot be read</h2>\n" + list_of(texts);
  }
  if (!listing.warnings.empty()) html += list_of(listing.warnings);
  return html;
}

/// What the marks of records mean, where there are some.
std::string legend(const std::vector<const RunEntry*>& rows) {
  const auto any = [&](bool (report::RecordCheck::*is)() const) {
    return std::ranges::any_of(rows, [&](const RunEntry* run) { return (run->record.*is)(); });
  };
  std::string html;
  if (any(&report::RecordCheck::is_damaged))
    html += note(
        "damaged: the record contradicts itself or its config, so no figure of it is to be "
        "believed. The page of the run tells what is wrong.");
  if (any(&report::RecordCheck::is_unchecked))
    html += note(
        "unchecked: the record was not read yet, or cannot be checked. The page of the run "
        "tells why.");
  return html;
}

std::string table_html(const View& view, const Request& request, const Listing& listing) {
  const auto rows = rows_of(view, listing);
  const auto chosen = request.values("run");
  std::string html = counts_html(listing, rows.size());
  if (listing.databases == 0 && listing.warnings.empty())
    html += paragraph(
        "No run lies in these folders yet. A training that writes into one appears here by "
        "itself.");
  if (!rows.empty()) {
    html += "<div class=\"scroll\"><table class=\"every\">\n<thead><tr><th></th>" +
            head_cell(view, request, "name", "Run", false);
    for (const RunColumn* column : view.columns)
      html += head_cell(view, request, column->id, column->title, column->number);
    html += "</tr></thead>\n<tbody>";
    for (std::size_t i = view.first; i < std::min(rows.size(), view.first + kRowsOfPage); ++i) {
      const bool is_chosen = std::find(chosen.begin(), chosen.end(), rows[i]->key) != chosen.end();
      html += row_html(view, *rows[i], is_chosen);
    }
    html += "</tbody>\n</table></div>\n" + pages_html(view, request, rows.size()) + legend(rows);
  }
  // They have neither a state nor tags to be chosen by.
  const std::string wanted = ascii_lower(view.text);
  if (view.state.empty() && view.tag.empty())
    html += lone_evaluations_html(listing, split_words(wanted));
  return html + troubles_html(listing);
}

std::string choice_of(const char* name, const std::string& label,
                      const std::vector<std::pair<std::string, std::string>>& options,
                      const std::string& chosen) {
  std::string html;
  for (const auto& [value, text] : options) html += option(value, text, value == chosen);
  return choice(name, label, html);
}

std::vector<std::pair<std::string, std::string>> tags_of(const Listing& listing) {
  std::vector<std::string> tags;
  for (const auto& run : listing.runs)
    tags.insert(tags.end(), run.summary.tags.begin(), run.summary.tags.end());
  std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
  std::vector<std::pair<std::string, std::string>> options = {{"", "any"}};
  for (const auto& tag : tags) options.emplace_back(tag, tag);
  return options;
}

std::string tools_html(const View& view, const Request& request, const Listing& listing) {
  std::string html = "<div class=\"view\"><label>Find <input type=\"search\" name=\"q\" value=\"" +
                     escape(view.text) +
                     "\" placeholder=\"name, id, folder, host, tag\"></label>\n";
  html += choice_of("status", "Status",
                    {{"", "any"},
                     {"running", "running"},
                     {"not running", "not running"},
                     {"running by its record", "running by its record"},
                     {"finished", "finished"},
                     {"stopped", "stopped"},
                     {"diverged", "diverged"},
                     {"failed", "failed"},
                     {"imported", "imported"}},
                    view.state);
  const auto tags = tags_of(listing);
  if (tags.size() > 1) html += choice_of("tag", "Tag", tags, view.tag);
  std::vector<std::pair<std::string, std::string>> orders = {{"name", "Run"}};
  for (const RunColumn& column : run_columns())
    for (const char* direction : {"-", ""})
      orders.emplace_back(std::string(direction) + column.id,
                          std::string(column.title) + (*direction == '-' ? " ↓" : " ↑"));
  html += choice_of("sort", "Order", orders,
                    request.value("sort").empty() ? "-created" : request.value("sort"));
  html += "<details><summary>Columns</summary><div class=\"columns\">";
  for (const RunColumn& column : run_columns()) {
    const bool shows =
        std::find(view.columns.begin(), view.columns.end(), &column) != view.columns.end();
    html += std::string("<label><input type=\"checkbox\" name=\"column\" value=\"") + column.id +
            "\"" + (shows ? " checked" : "") + "> " + escape(column.title) + "</label>";
  }
  return html + "</div></details>\n<button class=\"apply\">Show</button></div>\n";
}

/// What can be done with the runs that are chosen; the script greys out what needs more or fewer.
constexpr char kActions[] =
    "<div class=\"actions\"><span>Of what is ticked:</span>"
    "<button formaction=\"/curves\" data-least=\"1\">Curves</button>"
    "<button formaction=\"/compare\" data-least=\"2\">Configs</button>"
    "<button formaction=\"/evaluations\" data-least=\"1\">Evaluations</button>"
    "<button formaction=\"/parity\" data-least=\"2\" data-most=\"2\">Parity</button></div>\n";

Response table_page(const Request& request, Catalog& catalog) {
  const auto listing = catalog.listing();
  const View view = view_of(request);
  std::string kicker;
  for (const auto& place : catalog.places()) {
    // "." says nothing to whoever reads the page.
    const auto named = place == "." ? std::filesystem::absolute(place).parent_path() : place;
    kicker += (kicker.empty() ? "" : ", ") + shown(named.string(), 200);
  }
  const std::string body = "<form id=\"view\" method=\"get\" action=\"/\">\n" +
                           tools_html(view, request, *listing) + kActions +
                           "<div id=\"runs\" data-live>" + table_html(view, request, *listing) +
                           "</div>\n</form>\n";
  return html_response(framed({.title = "Runs",
                               .heading = "Runs",
                               .kicker_html = kicker,
                               .refresh_seconds = kRefreshSeconds,
                               .wide = true},
                              body));
}

/// For programs: what the table shows.
Response table_json(Catalog& catalog) {
  const auto listing = catalog.listing();
  OrderedJson runs = OrderedJson::array();
  for (const auto& entry : listing->runs) {
    const auto& summary = entry.summary;
    OrderedJson run = {{"key", entry.key},
                       {"run_id", summary.run.run_id},
                       {"name", summary.run.name},
                       {"status", summary.run.status},
                       {"state", entry.now.state},
                       {"record", to_string(entry.record.state)},
                       {"record_reason", reason_json(entry.record)},
                       {"created_utc", summary.run.created_utc},
                       {"step", or_null<OrderedJson>(summary.step)},
                       {"max_steps", summary.run.max_steps},
                       {"tokens", or_null<OrderedJson>(summary.tokens)},
                       {"ce_loss", or_null<OrderedJson>(summary.ce_loss)},
                       {"tokens_per_second", or_null<OrderedJson>(summary.tokens_per_second)},
                       {"evaluations", summary.evaluations},
                       {"attempts", summary.attempts},
                       {"host", summary.host},
                       {"tags", summary.tags},
                       {"database", entry.place}};
    runs.push_back(std::move(run));
  }
  OrderedJson bad = OrderedJson::array();
  for (const auto& each : listing->bad)
    bad.push_back({{"database", each.place}, {"error", each.sentence}});
  return json_response({{"runs", runs},
                        {"evaluations", lone_evaluations_json(*listing)},
                        {"unreadable", bad},
                        {"databases", listing->databases},
                        {"read", listing->read}});
}

}  // namespace

void add_run_table(Routes& routes, Catalog& catalog) {
  routes.add("/", [&catalog](const Request& request) { return table_page(request, catalog); });
  routes.add("/api/runs", [&catalog](const Request&) { return table_json(catalog); });
}

}  // namespace olmo::serve
