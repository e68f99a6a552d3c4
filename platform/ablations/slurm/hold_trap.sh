# shellcheck shell=bash
# Part of every batch script, before the run. When several jobs of the array in a row die before training begins, or for
# their memory, the last of them holds the array. It needs only a shell, because what kills every job may be that there is
# no Python.
#
#   HOLD_FOLDER       each such end leaves a letter in `ends` here, a good end removes them, and `held` gets the cause;
#                     the first job that reaches our code makes `began`
#   HOLD_LOGS         the folder with the output of the jobs
#   HOLD_AFTER        so many ends in a row hold the array
#   HOLD_NEVER_BEGAN  the cause when no job has made `began`
#   HOLD_MEMORY       a pattern for what Slurm writes into the log of a job that it ends for its memory
#   HOLD_TOO_LARGE    the cause then
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
