# Writes build_info.cpp: git revision, compiler, flags and library versions of this build. Rewritten only when it changes.
execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse HEAD OUTPUT_VARIABLE revision ERROR_QUIET
                OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND git -C ${SOURCE_DIR} status --porcelain --untracked-files=no OUTPUT_VARIABLE dirty ERROR_QUIET)
execute_process(COMMAND git -C ${SOURCE_DIR} log -1 --format=%cs OUTPUT_VARIABLE date ERROR_QUIET
                OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT revision)
  set(revision "unknown")
elseif(dirty)
  string(APPEND revision "-dirty")
endif()
set(text "#include \"core/process/process.h\"

namespace olmo {
const BuildInfo& build_info() {
  static const BuildInfo kInfo{
      .version = \"${VERSION}\",
      .git_revision = \"${revision}\",
      .commit_date = \"${date}\",
      .compiler = \"${COMPILER}\",
      .flags = \"${FLAGS}\",
      .libtorch = \"${TORCH}\",
  };
  return kInfo;
}
}  // namespace olmo
")
file(WRITE ${OUT}.tmp "${text}")
execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different ${OUT}.tmp ${OUT})
