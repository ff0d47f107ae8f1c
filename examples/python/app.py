"""The application: a WSGI function on the server of Python's standard library."""

import os
from wsgiref.simple_server import make_server


def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    text = (
        f"Python answers {environ['PATH_INFO']}\n"
        f"host: {environ.get('HTTP_HOST')}\n"
        f"client: {environ.get('HTTP_X_FORWARDED_FOR')}\n"
    )
    return [text.encode()]


if __name__ == "__main__":
    server = make_server("127.0.0.1", int(os.environ.get("PORT", "8000")), app)
    print(f"listening on 127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
