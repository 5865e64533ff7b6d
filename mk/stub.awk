# stub.awk -v library=NAME -v versions=FILE portable/glibc.symbols: writes in assembly a library that
# has the functions of the table and does nothing, and their versions to FILE. Programs are linked with
# it, and get the system's library of that name when they start.
$1 == library {
  for (i = 3; i <= NF; i++) {
    printf(".globl %s\n.type %s, @function\n%s:\n", $i, $i, $i)
    functions[$2] = functions[$2] " " $i ";"
  }
}
END {
  print ".section .note.GNU-stack, \"\", @progbits"
  for (version in functions) printf("%s { global:%s };\n", version, functions[version]) > versions
}
