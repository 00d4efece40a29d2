// What pages that are served have beyond those that are files: navigation, tables of runs, parts
// that are fetched again. They come after style_sheet() and script() of page/html.h.
#pragma once

namespace olmo::page {

const char* site_style_sheet();
const char* site_script();

}  // namespace olmo::page
