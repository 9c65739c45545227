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

# cpack in the build tree makes a package of Debian and Ubuntu (scripts/package); configure with CMAKE_INSTALL_PREFIX=/usr.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_PACKAGE_CONTACT "The attnsim developers")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_STRIP_FILES ON)
include(CPack)
