# The functions of all tests of container engines: they start, find and remove a container of each engine.
groups=/sys/fs/cgroup
engines="runc crun podman podman-runc containerd containerd-systemd"
spin='while :; do :; done'
macrotick hook install > /dev/null
mkdir /tmp/bundle && cd /tmp/bundle && runc spec
sed -i 's,"path": "rootfs","path": "/srv/busybox",; s,"terminal": true,"terminal": false,; s,"readonly": true,"readonly": false,' config.json && mv config.json plain.json

# The network namespace of containers that start from now on. Empty: each has its own, without an interface.
network=

# configure ANNOTATIONS PROGRAM: writes the OCI configuration of a container that runs a shell's PROGRAM.
configure() {
    local options=(); for one in $1; do options+=(--annotation "$one"); done
    sed "s,\"type\": \"network\",&${network:+\, \"path\": \"/run/netns/$network\"},
        s,^\([[:space:]]*\)\"sh\"\$,\1\"sh\"\, \"-c\"\, \"$2\"," plain.json | macrotick hook add "${options[@]}" > config.json
}

# share: adds the host's programs and libraries, read-only, to an OCI configuration.
host=(/usr /lib /lib64)
mkdir -p "${host[@]/#//srv/busybox}"
share() {
    sed "s|\"mounts\": \[|& $(for one in "${host[@]}"; do
        printf '{"destination":"%s","source":"%s","type":"bind","options":["rbind","ro"]},' $one $one; done)|"
}

# start ENGINE NAME ANNOTATIONS PROGRAM
start() {
    local options=(--network "${network:+ns:/run/netns/}${network:-none}"); for one in $3; do options+=(--annotation "$one"); done
    configure "$3" "$4"
    case $1 in
        runc) runc --systemd-cgroup run --detach "$2" < /dev/null ;;
        crun) crun --systemd-cgroup run --detach "$2" < /dev/null ;;
        podman) podman --runtime crun run --detach --name "$2" "${options[@]}" --rootfs /srv/busybox sh -c "$4" ;;
        podman-runc) podman --runtime runc run --detach --name "$2" "${options[@]}" --rootfs /srv/busybox sh -c "$4" ;;
        containerd) ctr run --detach --null-io --config config.json "$2" ;;
        containerd-systemd)
            sed -i "s,\"linux\": {,&\"cgroupsPath\": \"system.slice:ctr:$2\"\,," config.json
            ctr run --detach --null-io --runc-systemd-cgroup --cgroup "system.slice:ctr:$2" --config config.json "$2" ;;
    esac
}

# remove ENGINE NAME
remove() {
    case $1 in
        runc | crun) "$1" delete --force "$2" ;;
        podman*) podman rm --force --time 0 "$2" ;;
        containerd*) ctr tasks rm --force "$2"; ctr containers rm "$2" ;;
    esac
}

# Prints the groups with a budget, and the budget.
budgets() { find $groups -name cpu.ds.budget -exec grep -Hvx 0 {} + | sed "s,^$groups/,,; s,/cpu.ds.budget:, ,"; }
# Prints their directories.
served() { budgets | sed "s,^\(.*\) [^ ]*\$,$groups/\1,"; }
