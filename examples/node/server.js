// The application: it says who asked for what, and sends events. Without packages.
const http = require("node:http");

const server = http.createServer((request, response) => {
  if (request.url === "/events") {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    let count = 0;
    const timer = setInterval(() => {
      response.write(`data: event ${++count}\n\n`);
      if (count === 3) {
        clearInterval(timer);
        response.end();
      }
    }, 200);
    return;
  }
  response.setHeader("Content-Type", "text/plain");
  response.end(
    `Node answers ${request.url}\n` +
      `host: ${request.headers.host}\n` +
      `client: ${request.headers["x-forwarded-for"]}\n`,
  );
});

server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`listening on 127.0.0.1:${server.address().port}`);
});
