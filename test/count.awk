# Reads the log of one GoogleTest binary. First line of the output: "passed failed skipped"; then
# one line per skipped or failed test. Variables: status (exit status), ending (the same in words).
# The log rather than the XML, because GoogleTest writes XML only when it lives to the end.

/^\[ RUN      \] / { running = $4; reason = ""; next }
/^\[       OK \] .* \([0-9]+ ms\)$/ { ok++; running = ""; next }
/^\[  FAILED  \] .* \([0-9]+ ms\)$/ { sub(/,$/, "", $4); failures[++bad] = $4; running = ""; next }
/^\[  SKIPPED \] .* \([0-9]+ ms\)$/ {
  skipped[++skips] = $4 ": " (reason == "" ? "no reason given" : reason)
  running = ""
  next
}
running != "" && /: Skipped$/ { getline reason; next }

END {
  if (running != "") failures[++bad] = running ": " ending
  else if (status != 0 && bad == 0) failures[++bad] = "the program, after its tests: " ending
  else if (ok + bad + skips == 0) failures[++bad] = "the program holds no test"
  printf "%d %d %d\n", ok, bad, skips
  for (i = 1; i <= skips; i++) print "  SKIPPED " skipped[i]
  for (i = 1; i <= bad; i++) print "  FAILED " failures[i]
}
