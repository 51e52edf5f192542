#!/bin/busybox sh
# Runs a selftest that runs others. Its inconsistency-check spins for one second instead of the requested time.
mkdir -p /tmp/short
cd /tmp/short || exit 1
for other in nanosleep nsleep-lat raw_skew; do
	ln -sf /programs/$other .
done
cat > inconsistency-check << 'END'
#!/bin/busybox sh
exec /programs/inconsistency-check "$@" -t 1
END
chmod +x inconsistency-check
program=$1
shift
exec "/programs/$program" "$@"
