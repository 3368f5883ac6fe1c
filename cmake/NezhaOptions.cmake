# Compiler settings that hold for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

option(NEZHA_TESTS "Build the test programs" ON)
option(NEZHA_BENCH "Build the programs of make bench" OFF)
option(NEZHA_FUZZ "Build the libFuzzer targets (clang only)" OFF)
set(NEZHA_SANITIZE "" CACHE STRING "Sanitizers, e.g. address;undefined or thread")

# Checks (NEZHA_CHECK) stay on in release builds; -g1 keeps useful stack traces at little cost.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
add_compile_options(-Wall -Wextra -Wpedantic -Werror -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                    -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # g++ 12 raises these falsely inside coroutine frames and std::variant (GCC bugs 105562, 104475).
  add_compile_options(-Wno-maybe-uninitialized -Wno-restrict -Wno-mismatched-new-delete)
endif()
add_compile_options(-fstack-protector-strong)
add_compile_definitions(_GLIBCXX_ASSERTIONS)
# Coroutine frames are taken from a cache of their thread; a request nests deeper than its default of two.
add_compile_definitions(BOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE=32)
add_link_options(-Wl,-z,relro,-z,now)

# What is shipped and measured is optimised as a whole; tests are built faster without.
if(NOT NEZHA_TESTS AND NOT NEZHA_SANITIZE)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
endif()

# What the fuzzer is to explore has to tell it where it has been.
if(NEZHA_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

foreach(sanitizer IN LISTS NEZHA_SANITIZE)
  add_compile_options(-fsanitize=${sanitizer} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${sanitizer})
endforeach()

find_program(NEZHA_CCACHE ccache)
if(NEZHA_CCACHE)
  # Paths below the source folder count as relative, so that another clone finds the objects of the first.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${NEZHA_CCACHE})
  add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
endif()
find_program(NEZHA_MOLD mold)
if(NEZHA_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
