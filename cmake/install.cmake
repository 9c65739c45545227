# find_package(attnsim): libraries attnsim::model, attnsim::sim, ..., headers under include/attnsim, data under
# share/attnsim.
include(CMakePackageConfigHelpers)
get_property(libraries GLOBAL PROPERTY ATTNSIM_LIBRARIES)
install(TARGETS ${libraries} EXPORT attnsim_targets)
install(EXPORT attnsim_targets NAMESPACE attnsim:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/attnsim)
foreach(folder model sim ask sweep formats report calibrate reproduce kernels validate)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attnsim
          FILES_MATCHING PATTERN "*.hpp")
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/topologies DESTINATION ${CMAKE_INSTALL_DATADIR}/attnsim)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/attnsim-config.cmake.in
  ${PROJECT_BINARY_DIR}/attnsim-config.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/attnsim)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/attnsim-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/attnsim-config.cmake ${PROJECT_BINARY_DIR}/attnsim-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/attnsim)
