#include "serve/form.h"

#include "support/catch.h"

namespace olmo::serve {

TEST_CASE("fields of forms are as the address has them, whatever it has", "[serve]") {
  CHECK(option("a\"b", "<x>", true) == "<option value=\"a&quot;b\" selected>&lt;x&gt;</option>");
  CHECK(option("", "any", false) == "<option value=\"\">any</option>");
  CHECK(hidden_field("run", "<") == "<input type=\"hidden\" name=\"run\" value=\"&lt;\">");
  CHECK(choice("x", "Axis", option("step", "step", true)) ==
        "<label>Axis <select name=\"x\" autocomplete=\"off\"><option value=\"step\" "
        "selected>step</option></select></label>\n");
}

}  // namespace olmo::serve
