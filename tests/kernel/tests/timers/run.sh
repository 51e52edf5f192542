#!/bin/busybox sh
# Runs each line of /programs/list (name, seconds, words) with each of the states of TimerShield in $SHIELDS. Prints the
# exit status and the output of each.
cd /programs || exit 1
for shield in $SHIELDS; do
	[ "$shield" = none ] || echo "$shield" > /proc/sys/kernel/timershield || exit 1
	while read -r name seconds words; do
		echo "$name" >&"$MACROTICK_LIVE_FD"
		# shellcheck disable=SC2086 # a list of words
		timeout -s KILL "$seconds" $words < /dev/null > /tmp/said 2>&1
		echo "== $shield $name $?"
		cat /tmp/said
		echo
		if [ -e /tmp/json ]; then
			cat /tmp/json
			rm /tmp/json
		fi
		# Some programs change the clock's rate.
		adjtimex -q -f 0 -t 10000 > /dev/null || exit 1
	done < list
done
