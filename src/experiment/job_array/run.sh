#!/bin/sh
# The runs of @NAME@ on this machine, so many at once:  sh run.sh [N]
#
# A run that is complete ends at once, and one that was broken off goes on from its last checkpoint, so this may be started again at any
# time. GNU parallel takes the same file, on several machines, too:  parallel --jobs N --sshloginfile machines < jobs.txt

cd @WORKING_QUOTED@ || exit 1
# A command has a line of its own; xargs is given lines that end with NUL, so that it leaves quotes to the shell.
tr '\n' '\000' < @FOLDER_QUOTED@/jobs.txt | xargs -0 -n 1 -P "${1:-@AT_ONCE@}" sh -c
status=$?
case "$status" in
    0) exit 0 ;;
    *) echo "some runs failed or have saved before their end; start this again to go on" >&2; exit 1 ;;
esac
