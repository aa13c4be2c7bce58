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
