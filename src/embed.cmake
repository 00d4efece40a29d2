# For the scripts that write a file's text into a C++ source.

# Sets `result` to the text of a file as a C++ literal.
function(olmo_literal file result)
  file(READ "${file}" text)
  # Compilers need not take longer literals than 64 KiB.
  string(LENGTH "${text}" length)
  if(length GREATER 60000)
    message(FATAL_ERROR "${file} is too long to be embedded: ${length} characters")
  endif()
  set(${result} "R\"text~(${text})text~\"" PARENT_SCOPE)
endfunction()
