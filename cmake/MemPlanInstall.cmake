# Install rules: tools, plugin, static libraries, headers, the runtime headers
# that emitted code includes, and the package for find_package(memplan).

include(CMakePackageConfigHelpers)

get_property(memplan_libraries GLOBAL PROPERTY MEMPLAN_LIBRARIES)
set(memplan_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/memplan)

# The runtime is headers only: what emitted code includes, without MLIR.
add_library(MemPlanRuntime INTERFACE)
target_include_directories(MemPlanRuntime INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(TARGETS ${memplan_libraries} MemPlanRuntime
  EXPORT memplanTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT memplanTargets NAMESPACE memplan:: DESTINATION ${memplan_package_dir})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/memplan
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.td")
install(DIRECTORY ${PROJECT_BINARY_DIR}/include/memplan
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.inc")

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/memplanConfig.cmake.in
  ${PROJECT_BINARY_DIR}/cmake/memplanConfig.cmake
  INSTALL_DESTINATION ${memplan_package_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/cmake/memplanConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/cmake/memplanConfig.cmake
  ${PROJECT_BINARY_DIR}/cmake/memplanConfigVersion.cmake
  DESTINATION ${memplan_package_dir})
