#!/bin/sh
# Changes instances of the service `web`, step by step. Usage: services.sh URL [TOKEN]
set -eu
url=$1 token=${2:-}

put() { curl -sS --fail -X PUT -H "X-Consul-Token: $token" "$url/v1/agent/$1" ${2:+-d "$2"}; }
step() { echo "$*"; sleep 2; }
# An instance, its port and its weight; a check says how it is.
instance() {
    put service/register "{\"Name\": \"web\", \"ID\": \"$1\", \"Address\": \"10.0.0.1\",
        \"Port\": $2, \"Weights\": {\"Passing\": $3, \"Warning\": 1},
        \"Check\": {\"CheckID\": \"$1\", \"TTL\": \"10m\"}}"
}

instance a 81 1 && step "a is critical: none"
put check/pass/a && step "a passes: 81"
instance b 82 5 && put check/pass/b && step "a and b: 81, 82 with weight 5"
put check/warn/a && step "a warns: 82"
put check/fail/b && step "b fails too: 82 stays for --empty-after"
put check/pass/a && put check/pass/b && step "both pass: 81, 82"
instance b 83 2 && put check/pass/b && step "b moves: 81, 83 with weight 2"
put service/deregister/a && step "a is gone: 83"
put "service/maintenance/b?enable=true" && step "b is in maintenance: 83 stays for --empty-after"
put "service/maintenance/b?enable=false" && step "b is back: 83"
put service/deregister/b && step "all are gone: 83 stays for --empty-after"
