# What the scenarios share: questions to systemd and to the server. $unit is the one asked about.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin SYSTEMD_PAGER=

fail() {
    echo "$unit: FAILED: $*"
    systemctl status "$unit" --no-pager || true
    journalctl -u "$unit" --no-pager | tail -30 || true
    exit 1
}

# Awaits a condition, which is a command.
eventually() {
    local tries
    for tries in {1..150}; do
        ! "$@" || return 0
        sleep 0.1
    done
    fail "after $tries tries: $*"
}

show() { systemctl show "$unit" -p "$1" --value; }
shows() { [[ $(show "$1") == $2 ]]; }
answers() { [[ $(curl -s --max-time 5 "http://127.0.0.1:$1/") == *"$2"* ]]; }
pid() { cat /run/weir/weir.pid 2>/dev/null || true; }

# Between two masters there is no pid file for a moment.
is_replaced() {
    local new
    new=$(pid)
    [ -n "$new" ] && [ "$new" != "$1" ]
}
