// Asks for a URL over one protocol, several times on one connection.
const fs = require('fs');
const [url, root, protocol] = process.argv.slice(2);
const ca = fs.readFileSync(root);

function collect(stream, done) {
  let text = '';
  stream.setEncoding('utf8').on('data', (piece) => (text += piece)).on('end', () => done(text));
}

function http1(left) {
  const https = require('https');
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1, ca });
  const ask = (left) => {
    if (left === 0) return agent.destroy();
    https.get(url, { agent }, (response) => {
      if (response.statusCode !== 200) throw new Error(response.statusCode);
      collect(response, (text) => {
        process.stdout.write(text);
        ask(left - 1);
      });
    });
  };
  ask(left);
}

function http2(left) {
  const session = require('http2').connect(new URL(url).origin, { ca });
  session.on('error', (error) => {
    throw error;
  });
  let open = left;
  for (; left > 0; left--) {
    const stream = session.request({ ':path': new URL(url).pathname });
    collect(stream, (text) => {
      process.stdout.write(text);
      if (--open === 0) session.close();
    });
  }
}

(protocol === 'HTTP/2.0' ? http2 : http1)(10);
