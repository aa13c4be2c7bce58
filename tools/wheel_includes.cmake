# The ROS wheels' CMake exports name include directories of the machine they were built on. CMake refuses a target whose
# include directory does not exist, so drop those; the rest of the export is right. Runs after the project's own CMakeLists.txt.
function(drop_include_directories_of_the_build_machine)
  get_directory_property(targets IMPORTED_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(directories ${target} INTERFACE_INCLUDE_DIRECTORIES)
    if(directories)
      list(FILTER directories EXCLUDE REGEX "^/opt/python/")
      set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${directories}")
    endif()
  endforeach()
endfunction()
cmake_language(DEFER CALL drop_include_directories_of_the_build_machine)

# What is generated for C++ is a hundred small files that read the same large headers: compiled sixteen at a time it takes
# two thirds of the time. The other generated files repeat each other's static names and must stay apart.
function(compile_type_supports_together)
  get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    if(target MATCHES "typesupport_(c|cpp|fastrtps_c|fastrtps_cpp|introspection_c)$")
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
    endif()
  endforeach()
endfunction()
cmake_language(DEFER CALL compile_type_supports_together)

# Python uses the type supports of C alone. Those of C++ are built because the generators come together: not optimized, they
# take half the time.
function(do_not_optimize_what_only_cpp_uses)
  get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    if(target MATCHES "typesupport_(cpp|fastrtps_cpp|introspection_cpp)$")
      target_compile_options(${target} PRIVATE -O0)
    endif()
  endforeach()
endfunction()
cmake_language(DEFER CALL do_not_optimize_what_only_cpp_uses)
