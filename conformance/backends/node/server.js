// Node's http server, with WebSockets by `ws`. What it answers: see ../README.md.
import http from "node:http";
import { WebSocketServer } from "ws";

const piece = Buffer.alloc(64 * 1024, "x");

function upload(request, response) {
  let bytes = 0;
  request.on("data", (data) => (bytes += data.length));
  request.on("end", () => response.end(`${bytes}\n`));
}

function download(response, bytes) {
  while (bytes > 0) {
    const next = bytes < piece.length ? piece.subarray(0, bytes) : piece;
    bytes -= next.length;
    if (!response.write(next)) {
      response.once("drain", () => download(response, bytes));
      return;
    }
  }
  response.end();
}

const server = http.createServer((request, response) => {
  const url = new URL(request.url, "http://backend");
  const bytes = Number(url.searchParams.get("bytes"));
  if (url.pathname === "/upload") return upload(request, response);
  if (url.pathname === "/sized") response.setHeader("Content-Length", bytes);
  if (url.pathname === "/sized" || url.pathname === "/chunked") return download(response, bytes);
  if (url.pathname === "/range") return response.end("0123456789".repeat(100));
  response.end("hello\n");
});
new WebSocketServer({ server, path: "/ws" }).on("connection", (socket) => {
  socket.on("message", (data, binary) => socket.send(data, { binary }));
});
server.listen(0, "127.0.0.1", () => console.log(`PORT ${server.address().port}`));
