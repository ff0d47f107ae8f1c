#!/bin/bash
# run.sh FOLDER [-run-test=NAME ...]: the conformance suite of Gateway API, with the weir and
# weir-ingress in FOLDER (target/debug), against the API server that ../up.sh has started.
set -eu
own=$(dirname "$(realpath "$0")")
. "$own/../serve.sh"
use "$1" gateway-api
shift
cd "$own"

go build -o "$folder/pods" ./pods
go test -c -o "$folder/suite" .

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
ip netns exec weirpods "$folder/pods" -node 10.79.0.2 2> "$server/pods.log" &

addresses=()
for last in $(seq 3 40); do addresses+=(--gateway-address "10.77.0.$last"); done
serve "${addresses[@]}"

within "$folder/suite" -test.v -conformance-options-file="$own/options.yaml" \
    -report-output="$server/report.yaml" "$@" > "$server/suite.log" 2>&1 || true
grep -E '^    --- FAIL' "$server/suite.log" || echo "no test has failed"
echo "the report is $server/report.yaml"
