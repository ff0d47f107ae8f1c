#!/bin/sh
# Prepares the container as the official nginx image does, then runs the command: files in
# /docker-entrypoint.d are run (*.sh) or read into this shell (*.envsh), in order of their names,
# if the command is nginx.
set -e

say() {
    [ -n "${NGINX_ENTRYPOINT_QUIET_LOGS:-}" ] || echo "$0: $*"
}

case "${1-}" in
nginx | nginx-debug)
    for file in /docker-entrypoint.d/*; do
        case $file in
        *.envsh)
            if [ -x "$file" ]; then
                say "reading $file"
                . "$file"
            else
                say "ignoring $file, which is not executable"
            fi
            ;;
        *.sh)
            if [ -x "$file" ]; then
                say "running $file"
                "$file"
            else
                say "ignoring $file, which is not executable"
            fi
            ;;
        *'*') ;;
        *) say "ignoring $file" ;;
        esac
    done
    ;;
esac

exec "$@"
