// How the pages look and what the pointer shows.
#pragma once

namespace olmo::report::page {

/// CSS for screen (light and dark), phone and A4.
const char* style_sheet();
/// Reads the values under the pointer off a chart; the page is whole without it.
const char* hover_script();

}  // namespace olmo::report::page
