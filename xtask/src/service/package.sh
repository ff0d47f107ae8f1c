#!/bin/bash
# What the scripts of the Debian package must do where systemd runs. It prints "done" if they do.
set -eu
. /said/common.sh
export DEBIAN_FRONTEND=noninteractive

is_installed() { dpkg --install "$1" >/tmp/dpkg 2>&1 || { cat /tmp/dpkg; fail "dpkg $1"; }; }
is_active() { [ "$(systemctl is-active "$unit")" = active ]; }
is_enabled() { [ "$(systemctl is-enabled "$unit")" = enabled ]; }

installs() {
    is_installed /said/weir.deb
    is_active || fail "a new package does not start it"
    is_enabled || fail "it would not start at boot"
    answers 80 "Weir runs" || fail "started, and does not answer"
    systemctl reload "$unit" || fail "does not reload"
}

# The same package again is an upgrade to its scripts.
upgrades() {
    local old
    old=$(show MainPID)
    is_installed /said/weir.deb
    eventually is_replaced "$old"
    eventually shows MainPID "$(pid)"
    answers 80 "Weir runs" || fail "the new program does not serve"
    shows NRestarts 0 || fail "the upgrade was a restart"
    is_enabled || fail "the upgrade disabled it"
}

# What an administrator has stopped or disabled stays so.
respects_the_administrator() {
    systemctl disable --now "$unit" 2>/dev/null
    is_installed /said/weir.deb
    ! is_active || fail "an upgrade starts what was stopped"
    ! is_enabled || fail "an upgrade enables what was disabled"
    systemctl enable --now "$unit" 2>/dev/null
    is_active || fail "does not start again"
}

is_removed() {
    dpkg --remove weir >/dev/null 2>&1 || fail "dpkg --remove"
    ! pgrep -f 'weir: ' >/dev/null || fail "left processes"
    ! is_active || fail "is active without a program"
    [ -e /etc/weir/nginx.conf ] || fail "the configuration is gone"
    is_installed /said/weir.deb
    answers 80 "Weir runs" || fail "installed again, it does not answer"
}

is_purged() {
    dpkg --purge weir >/dev/null 2>&1 || fail "dpkg --purge"
    ! systemctl cat "$unit" >/dev/null 2>&1 || fail "left its unit"
    [ ! -e /etc/weir ] && [ ! -e /var/log/weir ] && [ ! -e /var/lib/weir ] || fail "left files"
    ! systemctl list-unit-files --no-legend | grep -q '^weir' || fail "left a state of its unit"
}

unit=weir
ip link set lo up
for step in installs upgrades respects_the_administrator is_removed is_purged; do
    "$step"
    echo "package $step"
done
echo "done"
