# For the runners of tests that a machine of their own is made for.
# finish PASSED FAILED SKIPPED: the last line, and a row of SLIME_TOTALS_FILE where that is set
finish() {
  [ -z "${totals_of_all:-}" ] || echo "$*" >>"$totals_of_all"
  echo "$1 passed, $2 failed, $3 skipped"
}
