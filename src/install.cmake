# `cmake --install BUILD --prefix DIR`: the program, what it reads, what shells and `man` read, documents, and a package for other
# projects' find_package(olmo-harness). DESTDIR puts all of it below another root. scripts/package.sh takes its tree from here.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Where LibTorch and libraries outside the system's folders are, as when it was built. Those of the cache are static.
set_target_properties(olmo-harness olmo_whole PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS olmo_whole RUNTIME DESTINATION lib/olmo-harness)  # where the other one looks for it
install(TARGETS olmo-harness EXPORT olmo-harness-targets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs ${PROJECT_SOURCE_DIR}/evals DESTINATION ${CMAKE_INSTALL_DATADIR}/olmo-harness)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})

# What the program prints about itself: asked at the installation, so that scripts/build.sh need not build more than the program.
set(printed "${PROJECT_BINARY_DIR}/printed")
set(ask "execute_process(COMMAND ${CMAKE_CROSSCOMPILING_EMULATOR} \"$<TARGET_FILE:olmo-harness>\"")
file(MAKE_DIRECTORY "${printed}")
function(install_printed file folder)
  list(JOIN ARGN " " words)
  install(CODE "${ask} ${words} OUTPUT_FILE \"${printed}/${file}\" COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES "${printed}/${file}" DESTINATION ${folder})
endfunction()
install_printed(olmo-harness.1 ${CMAKE_INSTALL_MANDIR}/man1 man)
install_printed(olmo-harness ${CMAKE_INSTALL_DATADIR}/bash-completion/completions completion bash)
install_printed(_olmo-harness ${CMAKE_INSTALL_DATADIR}/zsh/site-functions completion zsh)
install_printed(olmo-harness.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d completion fish)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/olmo-harness)
install(EXPORT olmo-harness-targets NAMESPACE olmo-harness:: DESTINATION ${package})
configure_package_config_file(${CMAKE_CURRENT_SOURCE_DIR}/olmo-harness-config.cmake.in ${PROJECT_BINARY_DIR}/olmo-harness-config.cmake
  INSTALL_DESTINATION ${package} PATH_VARS CMAKE_INSTALL_DATADIR NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Before 1.0 a second number is what a first one is later.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/olmo-harness-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/olmo-harness-config.cmake ${PROJECT_BINARY_DIR}/olmo-harness-config-version.cmake DESTINATION ${package})
