#!/bin/bash
# run.sh FOLDER [-pre-stop=0s ...]: replaces pods under load for a minute, with the weir and
# weir-ingress in FOLDER (target/release), against the API server that ../up.sh has started.
set -eu
own=$(dirname "$(realpath "$0")")
. "$own/../serve.sh"
use "$1" rolling-update
shift
within kubectl apply -f "$own/objects.yaml"
(cd "$own/.." && go build -o "$folder/rolling" ./rolling-update)
serve --publish 10.77.0.2
ip netns exec weirkube "$folder/rolling" "$@" > "$folder/rolling.log" &
rolling=$!

for _ in $(seq 150); do
    code=$(within curl -s -o "$folder/answer" -w '%{http_code}' http://10.77.0.2:8080/) || true
    [ "$code" != 200 ] || break
    sleep 0.2
done
within "$programs/weir" load -c 16 --rate 500 -d 60s http://10.77.0.2:8080/ || true
kill $rolling
wait $rolling
cat "$folder/rolling.log"
