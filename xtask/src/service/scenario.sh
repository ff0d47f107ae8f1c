#!/bin/bash
# What a service of Weir must do, asked of a systemd that runs. It prints "done" if it does.
set -eu
. /said/common.sh

status_has() { [[ $(show StatusText) == *"$1"* ]]; }
write() { echo "server { listen 8081; $1 }" >/etc/weir/conf.d/site.conf; }

starts_ready() {
    systemctl start "$unit" || fail "does not start"
    answers 80 "Weir runs" || fail "started, and does not answer"
    status_has "Serving configuration 1" || fail "status: $(show StatusText)"
}

reloads() {
    write "return 200 second;"
    systemctl reload "$unit" || fail "does not reload"
    answers 8081 second || fail "reloaded, and serves the old configuration"
    write "no_such_directive;"
    ! systemctl reload "$unit" || fail "reloads a bad configuration"
    status_has "the last reload failed" || fail "status: $(show StatusText)"
    answers 8081 second || fail "a bad configuration ended the old one"
    write "return 200 third;"
    kill -HUP "$(show MainPID)"
    eventually answers 8081 third
    eventually shows SubState running
}

reopens_logs() {
    mv /var/log/weir/access.log /var/log/weir/access.log.1
    kill -USR1 "$(pid)"
    eventually test -e /var/log/weir/access.log
}

is_upgraded() {
    local old new
    old=$(show MainPID)
    kill -USR2 "$old"
    eventually is_replaced "$old"
    new=$(pid)
    eventually status_has "new binary process $new"
    shows MainPID "$old" || fail "the old master may resume, and is not the main process"
    kill -QUIT "$old"
    eventually shows MainPID "$new"
    eventually status_has "Serving configuration 1"
    answers 8081 third || fail "the new binary does not serve"
    systemctl reload "$unit" || fail "the new binary does not reload"
    shows NRestarts 0 || fail "the upgrade was a restart"
}

# A master that hangs, and one that is killed.
comes_back() {
    mkdir -p "/run/systemd/system/$unit.service.d"
    printf '[Service]\nWatchdogSec=2\n' >"/run/systemd/system/$unit.service.d/watchdog.conf"
    systemctl daemon-reload
    systemctl restart "$unit"
    sleep 3
    shows NRestarts 0 || fail "the watchdog was not told"
    kill -STOP "$(show MainPID)"
    eventually shows NRestarts 1
    eventually answers 80 "Weir runs"
    kill -KILL "$(show MainPID)"
    eventually shows NRestarts 2
    eventually answers 80 "Weir runs"
}

stops() {
    systemctl stop "$unit"
    shows Result success || fail "ended with $(show Result)"
    ! pgrep -f 'weir: ' >/dev/null || fail "left processes"
}

refuses_to_start() {
    write "no_such_directive;"
    ! systemctl start "$unit" || fail "starts with a bad configuration"
    systemctl stop "$unit"
    rm /etc/weir/conf.d/site.conf
}

unit=setup
ip link set lo up
systemd-sysusers weir.conf
systemd-tmpfiles --create weir.conf
for unit in weir weir-unprivileged; do
    for step in starts_ready reloads reopens_logs is_upgraded comes_back stops refuses_to_start; do
        "$step"
        echo "$unit $step"
    done
    [ "$unit" != weir ] || [ "$(stat -c %U:%G /var/log/weir)" = root:adm ] ||
        fail "the folder of the logs is not root's and adm's any more"
done
echo "done"
