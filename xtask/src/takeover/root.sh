# A Debian to try things in: what this machine has, with nginx-full, all modules of nginx, and php-fpm
# on top. Called in namespaces of its own for mounts and processes: `sh root.sh FOLDER`. All that is
# written is in memory below FOLDER, and gone when this ends. FOLDER/tools has what is run in there.
#
# The exit code is 75 if packages or mounts are not to be had, and else that of the run. This shell
# stays as the first process, which waits for those that have lost their parent.
set -eu
folder=$1
root=$folder/root

unavailable() {
    echo "UNAVAILABLE: $*"
    exit 75
}

# `set -e` means nothing in a function whose failure is looked at, hence the chains.
make_root() {
    mount --make-rprivate / &&
        mount -t tmpfs -o mode=755 weir-root "$folder/memory" &&
        mkdir "$folder/memory/upper" "$folder/memory/work" &&
        mount -t overlay weir-root "$root" \
            -o "lowerdir=/,upperdir=$folder/memory/upper,workdir=$folder/memory/work" &&
        mount -t proc proc "$root/proc" &&
        mount --rbind /dev "$root/dev" &&
        mount -t tmpfs -o mode=755 run "$root/run" &&
        mount -t tmpfs -o mode=1777 tmp "$root/tmp"
}

# /etc/resolv.conf may be a link to what is in the other /run.
prepare_apt() {
    rm -f "$root/etc/resolv.conf" &&
        cp -L /etc/resolv.conf "$root/etc/resolv.conf" &&
        printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" &&
        chmod 755 "$root/usr/sbin/policy-rc.d" &&
        chroot "$root" apt-get -qq update
}

# At the end, the package of nginx: later there is no network, and an update is tried.
install_packages() {
    modules=$(chroot "$root" apt-cache search --names-only '^libnginx-mod-' |
        sed 's/ .*//' | grep -v -e '-dev$')
    # shellcheck disable=SC2086 # They are words.
    [ -n "$modules" ] &&
        chroot "$root" apt-get -qq -y --no-install-recommends install \
            nginx-full $modules php-fpm curl iproute2 openssl procps sudo &&
        chroot "$root" sh -c 'cd /root && apt-get -qq download nginx'
}

add_admin() {
    chroot "$root" useradd --create-home --shell /bin/bash weir-admin
    echo 'weir-admin ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/weir-admin"
    chmod 440 "$root/etc/sudoers.d/weir-admin"
    echo "127.0.0.1 localhost $(hostname)" >"$root/etc/hosts"
    install -m 755 "$folder/tools/weir" "$root/usr/local/bin/weir"
    # There is no systemd: its command is that of the init script.
    printf '#!/bin/sh\nexec service "$2" "$1"\n' >"$root/usr/local/bin/systemctl"
    chmod 755 "$root/usr/local/bin/systemctl"
    cp -r "$folder/tools" "$root/opt/weir-tools"
}

mkdir "$folder/memory" "$root"
export DEBIAN_FRONTEND=noninteractive
make_root >"$folder/log" 2>&1 || unavailable "no overlay: $(tail -n 1 "$folder/log")"
for part in prepare_apt install_packages; do
    "$part" >"$folder/log" 2>&1 || unavailable "no packages: $(tail -n 1 "$folder/log")"
done
add_admin
status=0
unshare --net chroot "$root" /opt/weir-tools/xtask takeover --in-root || status=$?
exit "$status"
