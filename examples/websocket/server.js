// A WebSocket server that sends back what it receives, and a page to try it. Without packages:
// it understands short text messages only. Use a real implementation for anything else.
const http = require("node:http");
const { createHash } = require("node:crypto");

const page = `<!doctype html><title>Echo</title><pre id="log"></pre><script>
const log = (text) => (document.getElementById("log").textContent += text + "\\n");
const socket = new WebSocket("ws://" + location.host + "/chat");
socket.onopen = () => { log("open"); setInterval(() => socket.send(new Date().toString()), 1000); };
socket.onmessage = (event) => log(event.data);
socket.onclose = () => log("closed");
</script>`;

const server = http.createServer((request, response) => {
  response.writeHead(200, { "Content-Type": "text/html" });
  response.end(page);
});

server.on("upgrade", (request, socket) => {
  const key = request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  const accept = createHash("sha1").update(key).digest("base64");
  socket.write(
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
      `Sec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  let bytes = Buffer.alloc(0);
  socket.on("error", () => socket.destroy());
  socket.on("data", (data) => {
    bytes = Buffer.concat([bytes, data]);
    // Two bytes of header, four of mask, then up to 125 of text.
    while (bytes.length >= 6 && bytes.length >= 6 + (bytes[1] & 127)) {
      const length = bytes[1] & 127;
      const mask = bytes.subarray(2, 6);
      const text = bytes.subarray(6, 6 + length).map((byte, at) => byte ^ mask[at % 4]);
      if ((bytes[0] & 15) !== 1 || length > 125) {
        socket.end(Buffer.from([0x88, 0]));
        return;
      }
      socket.write(Buffer.concat([Buffer.from([0x81, length]), text]));
      bytes = bytes.subarray(6 + length);
    }
  });
});

server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`listening on 127.0.0.1:${server.address().port}`);
});
