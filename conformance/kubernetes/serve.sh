# Sourced by the scripts that test weir ingress: `use FOLDER NAME` prepares the API server that up.sh
# has started for a test, with the programs in FOLDER; `serve OPTION...` starts them. Once the script
# ends, they are ended and the test's folder is removed.
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
server=${TMPDIR:-/tmp}/weirkube

within() { ip netns exec weirkube "$@"; }

use() {
    programs=$(realpath "$1")
    folder=$server/$2
    run=$folder/run
    mkdir -p "$run"
    trap stop EXIT
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
    definitions=$(cd "$here/gateway-api" && go list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)
    within kubectl apply --server-side -f "$definitions/config/crd/standard"
    within kubectl apply -f "$here/../../deploy/classes.yaml"
}

serve() {
    options=(--folder "$run" -s "unix:$run/control.sock" --kube https://10.77.0.1:16443
        --token "$folder/token" --ca "$server/certs/apiserver.crt" --lease default/weir-ingress "$@")
    within "$programs/weir-ingress" --prepare "${options[@]}"
    ip netns exec weirkube "$programs/weir" -c "$run/nginx.conf" > "$server/weir.log" 2>&1
    ip netns exec weirkube "$programs/weir-ingress" "${options[@]}" > "$server/weir-ingress.log" 2>&1 &
}

stop() {
    kill $(jobs -p) $(cat "$run/weir.pid") || true
    wait
    [ ! -e /run/netns/weirpods ] || ip netns delete weirpods
    rm -rf "$folder"
}
