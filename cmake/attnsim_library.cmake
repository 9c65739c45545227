# What all of the project's targets share: warnings, sanitizers, precompiled headers.
#
# attnsim_library(NAME SOURCES... [PUBLIC libs...] [PRIVATE libs...] [READS|LOOPS]): the static library attnsim_NAME, also
# known as attnsim::NAME, with the project's include root and warnings. READS: it reads, writes or asks others rather than computes, and
# is compiled with few optimizations, a third of the time to build and none to run. LOOPS: programs spend most of their time in it,
# and it has all optimizations: without, large rings are simulated a quarter slower; of model/ they are a quarter of the time to build.
add_library(attnsim_options INTERFACE)
target_compile_options(attnsim_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-missing-field-initializers>)
if(CMAKE_UNITY_BUILD AND NOT CMAKE_UNITY_BUILD_BATCH_SIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 64)  # larger units take more memory and little less time
endif()
if(NOT CMAKE_UNITY_BUILD)  # where sources share a unit, a local name may be another source's
  target_compile_options(attnsim_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wshadow>)
endif()
if(ATTNSIM_SANITIZE)
  # A null pointer ends a program without a check too, and AddressSanitizer finds what a pointer out of bounds is used for: these
  # checks are two fifths of the time to build.
  target_compile_options(attnsim_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${ATTNSIM_SANITIZE} -fno-sanitize=null,alignment,pointer-overflow,object-size
                              -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  target_link_options(attnsim_options INTERFACE -fsanitize=${ATTNSIM_SANITIZE})
endif()

# attnsim_precompiled(NAME [HEADERS...] [LIBRARIES...] [OPTIONS...]): headers that many sources include, parsed once;
# targets with the same compile options take them with REUSE_FROM attnsim_precompiled_NAME. Sources still include what
# they use: they compile without (CMAKE_DISABLE_PRECOMPILE_HEADERS).
set(ATTNSIM_COMMON_HEADERS
  <algorithm> <array> <cmath> <cstdint> <filesystem> <fstream> <functional> <map> <memory> <numeric> <optional> <random>
  <set> <span> <sstream> <string> <string_view> <thread> <tuple> <unordered_map> <variant> <vector> <fmt/format.h>
  <fmt/ranges.h>)
function(attnsim_precompiled name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LIBRARIES;OPTIONS" ${ARGN})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/precompiled_${name}.cpp)
  file(GENERATE OUTPUT ${source} CONTENT "// Compiled only for its precompiled headers.\n")
  add_library(attnsim_precompiled_${name} OBJECT ${source})
  target_link_libraries(attnsim_precompiled_${name} PRIVATE attnsim_options $<TARGET_NAME_IF_EXISTS:fmt::fmt> ${ARG_LIBRARIES})
  target_compile_options(attnsim_precompiled_${name} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(attnsim_precompiled_${name} PRIVATE ${ATTNSIM_COMMON_HEADERS} ${ARG_HEADERS})
endfunction()
attnsim_precompiled(libraries)
set_target_properties(attnsim_precompiled_libraries PROPERTIES POSITION_INDEPENDENT_CODE ON)
if(ATTNSIM_SANITIZE)  # what reads is compiled without optimizations there: two fifths less time
  attnsim_precompiled(readers OPTIONS -O0)
  set_target_properties(attnsim_precompiled_readers PROPERTIES POSITION_INDEPENDENT_CODE ON)
endif()

function(attnsim_library name)
  cmake_parse_arguments(ARG "READS;LOOPS" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(attnsim_${name} STATIC ${ARG_SOURCES})
  add_library(attnsim::${name} ALIAS attnsim_${name})
  set_target_properties(attnsim_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_include_directories(attnsim_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/attnsim>)
  target_compile_features(attnsim_${name} PUBLIC cxx_std_20)
  target_link_libraries(attnsim_${name}
    PUBLIC ${ARG_PUBLIC} PRIVATE $<BUILD_INTERFACE:attnsim_options> ${ARG_PRIVATE})
  set_property(GLOBAL APPEND PROPERTY ATTNSIM_LIBRARIES attnsim_${name})
  set(headers libraries)
  if(ARG_READS AND ATTNSIM_SANITIZE)
    target_compile_options(attnsim_${name} PRIVATE -O0)
    set(headers readers)
  elseif(ARG_READS)
    target_compile_options(attnsim_${name} PRIVATE -O1)
  elseif(NOT ARG_LOOPS)
    target_compile_options(attnsim_${name} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O2>)
  endif()
  target_precompile_headers(attnsim_${name} REUSE_FROM attnsim_precompiled_${headers})
endfunction()
