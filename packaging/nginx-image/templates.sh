#!/bin/sh
# Makes configurations of templates: /etc/nginx/templates/DIR/NAME.template becomes
# /etc/nginx/conf.d/DIR/NAME with the values of environment variables in it.
set -e

templates=${NGINX_ENVSUBST_TEMPLATE_DIR:-/etc/nginx/templates}
suffix=${NGINX_ENVSUBST_TEMPLATE_SUFFIX:-.template}
output=${NGINX_ENVSUBST_OUTPUT_DIR:-/etc/nginx/conf.d}
filter=${NGINX_ENVSUBST_FILTER:-}
stream_suffix=${NGINX_ENVSUBST_STREAM_TEMPLATE_SUFFIX:-.stream-template}
stream_output=${NGINX_ENVSUBST_STREAM_OUTPUT_DIR:-/etc/nginx/stream-conf.d}

# Only names of variables that exist: nginx's own begin with a dollar sign, too.
names=$(awk -v filter="$filter" '
    BEGIN { for (name in ENVIRON) if (name ~ filter) printf "${%s} ", name }
')

# convert SUFFIX FOLDER
convert() {
    find "$templates" -follow -type f -name "*$1" | sort | while read -r template; do
        name=${template#"$templates"/}
        name=${name%"$1"}
        mkdir -p "$2/$(dirname "$name")"
        envsubst "$names" <"$template" >"$2/$name"
    done
}

[ -d "$templates" ] || exit 0
if [ ! -w "$output" ]; then
    echo "$0: $output is not writable: templates are not used" >&2
    exit 0
fi
convert "$suffix" "$output"

if [ -n "$(find "$templates" -follow -type f -name "*$stream_suffix")" ]; then
    mkdir -p "$stream_output"
    convert "$stream_suffix" "$stream_output"
    if ! grep -q '^stream *{' /etc/nginx/nginx.conf; then
        printf '\nstream {\n    include %s/*.conf;\n}\n' "$stream_output" >>/etc/nginx/nginx.conf
    fi
fi
