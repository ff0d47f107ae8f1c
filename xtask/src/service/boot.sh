#!/bin/sh
# boot.sh FOLDER PROJECT: boots systemd in a root of its own, an overlay over the running system,
# and has it run scenario.sh. To be run in new namespaces. Exits with 75 where that is not possible.
# What the scenario says is in FOLDER/log.
set -eu
folder=$1 project=$2 root=$1/root

unavailable() {
    echo "service: $*" >&2
    exit 75
}

mkdir -p "$folder/layer" "$root"
mount -t tmpfs tmpfs "$folder/layer" || unavailable "no tmpfs"
mkdir "$folder/layer/upper" "$folder/layer/work"
mount -t overlay -o "lowerdir=/,upperdir=$folder/layer/upper,workdir=$folder/layer/work" \
    overlay "$root" || unavailable "no overlay"
mount -t proc proc "$root/proc" || unavailable "no /proc"
mount -t sysfs sysfs "$root/sys" || unavailable "no /sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup" || unavailable "no control groups"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/shm" "$root/dev/pts" "$root/said"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount --bind "$folder" "$root/said"
# The file that forbids packages to start services is common in containers.
rm -f "$root/etc/fstab" "$root/usr/sbin/policy-rc.d"

# As docs/install.md says; a package brings its own.
if [ ! -e "$folder/weir.deb" ]; then
    install -m 755 "$folder/weir" "$root/usr/bin/weir"
    install -d "$root/etc/weir/conf.d" "$root/usr/share/weir/html"
    install -m 644 "$project"/packaging/etc/* "$project"/conf/* "$root/etc/weir/"
    install -m 644 "$project"/packaging/html/* "$root/usr/share/weir/html/"
    install -m 644 "$project/packaging/sysusers.conf" "$root/usr/lib/sysusers.d/weir.conf"
    install -m 644 "$project/packaging/tmpfiles.conf" "$root/usr/lib/tmpfiles.d/weir.conf"
    install -m 644 "$project"/packaging/systemd/*.service "$root/etc/systemd/system/"
fi

cat >"$root/etc/systemd/system/scenario.service" <<'UNIT'
[Unit]
DefaultDependencies=no
After=sysinit.target
[Service]
Type=oneshot
ExecStart=/bin/bash /said/scenario.sh
StandardOutput=append:/said/log
StandardError=inherit
ExecStopPost=/bin/systemctl --force --force poweroff
UNIT
cat >"$root/etc/systemd/system/scenario.target" <<'UNIT'
[Unit]
Requires=sysinit.target
Wants=scenario.service
AllowIsolate=yes
UNIT
exec env -i container=scenario PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    chroot "$root" /lib/systemd/systemd --unit=scenario.target --show-status=no
