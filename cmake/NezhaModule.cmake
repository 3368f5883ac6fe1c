# One target per folder. Sources are listed by name, never globbed, so that a stray file cannot ship unseen.

# nezha_module(NAME SOURCES a.cc ... [DEPENDS other-modules] [LIBRARIES third-party] [PRIVATE_LIBRARIES third-party])
# makes the static library nezha_NAME. DEPENDS are public: they show in our headers.
function(nezha_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES;PRIVATE_LIBRARIES" ${ARGN})
  add_library(nezha_${name} STATIC ${ARG_SOURCES})
  target_include_directories(nezha_${name} PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR})
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_link_libraries(nezha_${name} PUBLIC nezha_${dependency})
  endforeach()
  target_link_libraries(nezha_${name} PUBLIC ${ARG_LIBRARIES} PRIVATE ${ARG_PRIVATE_LIBRARIES})
endfunction()

# nezha_program(NAME SOURCES main.cc [DEPENDS modules] [LIBRARIES third-party]) makes build/bin/NAME.
function(nezha_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_link_libraries(${name} PRIVATE nezha_${dependency})
  endforeach()
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES})
endfunction()

# nezha_test(NAME SOURCES ... [DEPENDS modules]) makes build/bin/test/NAME, a GoogleTest program.
# scripts/run-tests runs every program in that folder.
function(nezha_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_link_libraries(${name} PRIVATE nezha_${dependency})
  endforeach()
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} GTest::gmock GTest::gtest GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin/test)
endfunction()

# nezha_fuzz(NAME SOURCES ... [DEPENDS modules]) makes build/bin/fuzz/NAME, a libFuzzer target; the same
# sources replay their corpus under the ordinary compiler through test/fuzz/replay_main.cc.
function(nezha_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_link_libraries(${name} PRIVATE nezha_${dependency})
  endforeach()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin/fuzz)
  if(NEZHA_FUZZ)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/test/fuzz/replay_main.cc)
  endif()
endfunction()
