# Build rules shared by every folder: compile flags, one function per kind of
# target. MLIR comes as the one shared library that the distribution ships.

list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

# TableGen takes its include paths from the directory.
include_directories(${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS})

find_program(MEMPLAN_LLD NAMES ld.lld-22 ld.lld)
if(MEMPLAN_LLD)
  add_link_options(-fuse-ld=lld -B${LLVM_TOOLS_BINARY_DIR})
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter)
if(MEMPLAN_WERROR)
  add_compile_options(-Werror)
endif()
if(MEMPLAN_SANITIZE)
  # -fno-sanitize=vptr: the shared MLIR is built without RTTI.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr
                      -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
if(MEMPLAN_FUZZ)
  # Coverage that libFuzzer steers by; its main() is linked into fuzzers alone.
  # -fno-sanitize=bool: MLIR's pass statistics leave an atomic bool unset.
  add_compile_options(-fsanitize=fuzzer-no-link -fno-sanitize=bool)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

# memplan_add_library(NAME sources... [LINK libs...])
# A static library of the project. Public headers live in include/.
function(memplan_add_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  target_compile_options(${name} PRIVATE -fno-rtti -fno-exceptions)
  set_property(GLOBAL APPEND PROPERTY MEMPLAN_LIBRARIES ${name})
endfunction()

# memplan_use_mlir(TARGET): MLIR's headers (as system headers) and the shared
# MLIR and LLVM libraries.
function(memplan_use_mlir name)
  target_include_directories(${name} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_link_libraries(${name} PUBLIC MLIR LLVM)
  add_dependencies(${name} MemPlanDialectIncGen MemPlanPassesIncGen)
endfunction()

# memplan_add_unittest(NAME sources... [LINK libs...])
# A GoogleTest program, registered with CTest as unit/NAME.
function(memplan_add_unittest name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gtest_main)
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
  add_test(NAME unit/${name} COMMAND ${name})
endfunction()

# memplan_add_fuzzer(NAME sources... [LINK libs...])
# A libFuzzer program. It is registered with CTest as fuzz/NAME, where it goes
# through its seeds and the inputs that once failed, then through MEMPLAN_FUZZ_RUNS
# mutations of them, always the same ones.
function(memplan_add_fuzzer name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  target_compile_options(${name} PRIVATE -fno-rtti)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_test(NAME fuzz/${name}
    COMMAND ${PROJECT_SOURCE_DIR}/test/fuzz/run.sh $<TARGET_FILE:${name}> ${MEMPLAN_FUZZ_RUNS})
endfunction()
