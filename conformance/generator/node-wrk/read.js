// Reads wrk's text with the parser of npm's package wrk, and prints what it found.
const parse = require("wrk/lib/parseWrk");
const found = parse(require("fs").readFileSync(0, "utf8"));
for (const name of Object.keys(found).sort()) console.log(`${name}=${found[name]}`);
