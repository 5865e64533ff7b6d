# shellcheck shell=bash
# Runs of all_reduce by a switch in a lab (bench/lab.sh), and what they must show. To be sourced after
# perf_support.sh.

# finish NAME EXIT: the run ends so
finish() {
  local code
  lab_wait 2>/dev/null
  code=$?
  if [ $code -eq "$2" ]; then ok "$1: exit status $2"; else
    not_ok "$1: exit status $code, not $2"
    tail -n 12 "$work/$1".[0-9].err | sed 's/^/  | /' # the rank that failed first may be any
  fi
}
# right NAME RANKS ARGUMENT...: nothing is wrong, and the switch did it
right() {
  local name=$1 ranks=$2
  shift 2
  lab_perf "$name" "$ranks" all_reduce --algo collnet -w 1 "$@"
  finish "$name" 0
  holds "$name.0" "len(r['rows']) > 0 and all(h['wrong'] == 0 for h in halves)" "0 wrong"
  says "$name.0" 'operations [1-9][0-9]*, sent [1-9]'
}
# count NAME RANK COUNTER: as this rank said at the end
count() { sed -nE "s/.*[ :]$3 ([0-9]+),.*/\1/p" "$work/$1.$2.err" | tail -n 1; }
# counted NAME RANK COUNTER: it is not 0
counted() {
  local number
  number=$(count "$@")
  if [ "${number:-0}" -gt 0 ]; then ok "$1: $3 $number"; else
    not_ok "$1: rank $2 counts no $3" "$work/$1.$2.err"
  fi
}
# begin NAME RANKS TYPE: a run that goes on until it is told to end
begin() {
  lab_perf "$1" "$2" all_reduce --algo collnet -d "$3" "${lasting[@]}"
  under_way "$1"
}
# end NAME: its ranks are told to, and nothing is wrong
end() {
  kill "${rank_pids[@]}"
  finish "$1" 0
  holds "$1.0" "len(r['rows']) > 0 and all(h['wrong'] == 0 for h in halves)" "0 wrong"
}
