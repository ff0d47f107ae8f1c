"""Python's http.server, which knows no WebSockets. What it answers: see ../README.md."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

PIECE = b"x" * 65536


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = urlsplit(self.path)
        size = int(parse_qs(url.query).get("bytes", ["0"])[0])
        if url.path == "/sized":
            self.send_response(200)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            self.pieces(size, lambda piece: self.wfile.write(piece))
        elif url.path == "/chunked":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.pieces(size, self.chunk)
            self.wfile.write(b"0\r\n\r\n")
        elif url.path == "/range":
            self.answer(b"0123456789" * 100)
        else:
            self.answer(b"hello\n")

    def chunk(self, piece):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    def pieces(self, size, write):
        while size > 0:
            piece = PIECE[:size]
            write(piece)
            size -= len(piece)

    def do_PUT(self):
        left = length = int(self.headers["Content-Length"])
        while left > 0:
            left -= len(self.rfile.read(min(left, 1 << 20)))
        self.answer(b"%d\n" % length)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print("PORT", server.server_port, flush=True)
server.serve_forever()
