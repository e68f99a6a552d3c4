# shellcheck shell=bash
# Part of every batch script, before the run. If several jobs of the array in a row die before training begins, or run out
# of memory, the last of them holds the array. Only a shell is needed, since a missing Python may be what kills the jobs.
#
#   HOLD_FOLDER       folder for `ends`, one letter per such end (a good end removes the file), for `held`, the cause,
#                     and for `began`, made by the first job that reaches our code
#   HOLD_LOGS         folder with the output of the jobs
#   HOLD_AFTER        number of ends in a row that hold the array
#   HOLD_NEVER_BEGAN  the cause if no job has made `began`
#   HOLD_MEMORY       a pattern for Slurm's message in the log of a job that it ended for its memory
#   HOLD_TOO_LARGE    the cause in that case
mkdir -p "$HOLD_FOLDER"
hold_at_the_end() {
  local code=$? job=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID} cause=
  [ -e "$HOLD_FOLDER/began" ] || cause=$HOLD_NEVER_BEGAN
  if grep -qsE "$HOLD_MEMORY" "$HOLD_LOGS/$job${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}_0_log.err"; then
    cause=$HOLD_TOO_LARGE
  fi
  if [ $code = 0 ]; then
    rm -f "$HOLD_FOLDER/ends"
  elif [ $code != 143 ] && [ -n "$cause" ]; then # 143 is SIGTERM: scancel
    printf x >> "$HOLD_FOLDER/ends"
    if [ "$(wc -c < "$HOLD_FOLDER/ends")" -ge "$HOLD_AFTER" ]; then
      printf %s "$cause" > "$HOLD_FOLDER/held"
      scontrol hold "$job"
    fi
  fi
  exit $code
}
trap hold_at_the_end EXIT
