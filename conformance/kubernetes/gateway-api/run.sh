#!/bin/bash
# run.sh FOLDER [-run-test=NAME ...]: the conformance suite of Gateway API, with the weir and
# weir-ingress in FOLDER (target/debug), against the API server that ../up.sh has started.
set -eu
programs=$(realpath "$1")
shift
own=$(dirname "$(realpath "$0")")
server=${TMPDIR:-/tmp}/weirkube
folder=$server/gateway-api
run=$folder/run
mkdir -p "$run"
cd "$own"

go build -o "$folder/pods" ./pods
go test -c -o "$folder/suite" .
definitions=$(go list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)/config/crd/standard

printf admin-token > "$folder/token"
cat > "$folder/kubeconfig" <<END
apiVersion: v1
kind: Config
clusters: [{name: it, cluster: {server: "https://10.77.0.1:16443", insecure-skip-tls-verify: true}}]
users: [{name: it, user: {token: admin-token}}]
contexts: [{name: it, context: {cluster: it, user: it}}]
current-context: it
END
export KUBECONFIG=$folder/kubeconfig

stop() {
    kill $(jobs -p) $(cat "$run/weir.pid") || true
    wait
    ip netns delete weirpods
    rm -rf "$folder"
}
trap stop EXIT

# Pods have a namespace of their own: their ports would be in the way of the servers'.
ip netns add weirpods
ip -n weirkube link add pods type veth peer name node netns weirpods
ip -n weirkube addr add 10.79.0.1/24 dev pods
ip -n weirkube link set dev pods up
ip -n weirpods addr add 10.79.0.2/24 dev node
ip -n weirpods link set dev node up
ip -n weirpods link set dev lo up
ip -n weirpods route add default via 10.79.0.1
ip -n weirkube route add 10.78.0.0/16 via 10.79.0.2

within() { ip netns exec weirkube "$@"; }
within kubectl apply --server-side -f "$definitions"
within kubectl apply -f ../../../deploy/classes.yaml

options=(--folder "$run" -s "unix:$run/control.sock" --kube https://10.77.0.1:16443
    --token "$folder/token" --ca "$server/certs/apiserver.crt"
    --lease default/weir-ingress)
for last in $(seq 3 40); do options+=(--gateway-address "10.77.0.$last"); done
within "$programs/weir-ingress" --prepare "${options[@]}"
ip netns exec weirpods "$folder/pods" -node 10.79.0.2 2> "$server/pods.log" &
ip netns exec weirkube "$programs/weir" -c "$run/nginx.conf" > "$server/weir.log" 2>&1
ip netns exec weirkube "$programs/weir-ingress" "${options[@]}" > "$server/weir-ingress.log" 2>&1 &

within "$folder/suite" -test.v -conformance-options-file="$own/options.yaml" \
    -report-output="$server/report.yaml" "$@" > "$server/suite.log" 2>&1 || true
grep -E '^    --- FAIL' "$server/suite.log" || echo "no test has failed"
echo "the report is $server/report.yaml"
