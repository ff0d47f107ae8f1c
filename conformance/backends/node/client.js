// A WebSocket client by `ws`: texts and a megabyte of bytes there and back, a ping, a close.
import WebSocket from "ws";

const socket = new WebSocket(process.argv[2]);
const large = Buffer.alloc(1024 * 1024, "y");
const expected = ["one", "two", large];
socket.on("open", () => {
  socket.send("one");
  socket.send("two");
  socket.send(large);
});
socket.on("message", (data) => {
  const next = expected.shift();
  if (Buffer.compare(Buffer.from(next), data) !== 0) throw new Error("another message came back");
  if (expected.length === 0) socket.ping("p");
});
socket.on("pong", () => socket.close(1000, "done"));
socket.on("close", (code) => process.exit(code === 1000 && expected.length === 0 ? 0 : 1));
setTimeout(() => process.exit(2), 20000);
