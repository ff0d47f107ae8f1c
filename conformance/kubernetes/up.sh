#!/bin/bash
# up.sh APISERVER start|stop: etcd and the API server in the network namespace weirkube.
set -eu
apiserver=$1
folder=${TMPDIR:-/tmp}/weirkube
address=10.77.0.1

start() {
    mkdir -p "$folder"
    ip netns add weirkube
    ip -n weirkube link set lo up
    for last in $(seq 40); do ip -n weirkube addr add "10.77.0.$last/32" dev lo; done
    openssl genrsa -out "$folder/sa.key" 2048 2>/dev/null
    echo 'admin-token,admin,1,"system:masters"' > "$folder/tokens.csv"
    within etcd etcd --data-dir "$folder/etcd" --unsafe-no-fsync \
        --listen-client-urls "http://$address:23790" --advertise-client-urls "http://$address:23790" \
        --listen-peer-urls "http://$address:23800" \
        --initial-advertise-peer-urls "http://$address:23800" \
        --initial-cluster "default=http://$address:23800"
    within apiserver "$apiserver" --etcd-servers="http://$address:23790" --bind-address=$address \
        --advertise-address=$address --secure-port=16443 --cert-dir="$folder/certs" \
        --service-account-key-file="$folder/sa.key" --service-account-signing-key-file="$folder/sa.key" \
        --service-account-issuer=https://kubernetes.default.svc \
        --token-auth-file="$folder/tokens.csv" --authorization-mode=RBAC \
        --service-cluster-ip-range=10.96.0.0/16 --disable-admission-plugins=ServiceAccount
}

within() {
    name=$1
    shift
    ip netns exec weirkube "$@" > "$folder/$name.log" 2>&1 &
    echo $! > "$folder/$name.pid"
}

stop() {
    for name in apiserver etcd; do kill "$(cat "$folder/$name.pid")" || true; done
    ip netns delete weirkube
    rm -rf "$folder"
}

"$2"
