/** Options of the application that a test pushes. */
export interface AppTraits {
  /** The body of every response; identifies the deployed version. */
  readonly version: string;
  /** On SIGTERM, `finish` completes the open requests before exiting; `exit` exits at once. */
  readonly onTerm?: "finish" | "exit";
  /** A word in the arguments of the application's processes, by which tests find them on the host. */
  readonly marker?: string;
  /** Delay between the start of the process and the moment it listens. */
  readonly listenAfterMs?: number;
  /** Adds a build script (`buildMs`) or a release command (`releaseMs`) that prints a line and takes this long. */
  readonly buildMs?: number;
  readonly releaseMs?: number;
}

/**
 * Returns an application without dependencies. `/` responds with the version and GREETING, if that is set; `/slow?ms=` does so after a
 * delay; `/replica` returns an id of the process. A WebSocket gets the version in reply to each message.
 */
export function liveApp(traits: AppTraits): Record<string, string> {
  const marker = traits.marker ?? "unmarked";
  const scripts = {
    start: `node server.js ${marker}`,
    ...(traits.buildMs === undefined ? {} : { build: `node wait.js building ${traits.buildMs} ${marker}` }),
  };
  return {
    "package.json": JSON.stringify({ name: "live", private: true, scripts }),
    "server.js": serverOf(traits),
    "wait.js": `console.log(process.argv[2] + " now"); setTimeout(() => console.log("done"), Number(process.argv[3]));\n`,
    Procfile: `web: node server.js ${marker}\n${traits.releaseMs === undefined ? "" : `release: node wait.js releasing ${traits.releaseMs} ${marker}\n`}`,
  };
}

const endings = {
  finish: `process.on("SIGTERM", () => { server.close(() => process.exit(0)); server.closeIdleConnections(); });`,
  exit: `process.on("SIGTERM", () => process.exit(0));`,
};

function serverOf({ version, onTerm = "finish", listenAfterMs = 0 }: AppTraits): string {
  return `const http = require("node:http");
const { createHash, randomUUID } = require("node:crypto");
const version = ${JSON.stringify(version)};
const replica = randomUUID();
const text = version + (process.env.GREETING ? " " + process.env.GREETING : "");
const server = http.createServer((request, response) => {
  const url = new URL(request.url, "http://app");
  if (url.pathname === "/replica") return response.end(replica);
  if (url.pathname === "/slow") return void setTimeout(() => response.end(text), Number(url.searchParams.get("ms")));
  if (url.pathname === "/exit") return process.exit(9);
  response.end(text);
});
server.on("upgrade", (request, socket) => {
  const key = createHash("sha1").update(request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: " + key + "\\r\\n\\r\\n");
  socket.on("error", () => {});
  // One chunk may contain several small masked frames, each with a header of six bytes.
  socket.on("data", (data) => {
    for (let at = 0; at < data.length; at += 6 + (data[at + 1] & 127)) {
      if ((data[at] & 15) === 8) return socket.end(Buffer.from([0x88, 0x02, 0x03, 0xe8]));
      socket.write(Buffer.concat([Buffer.from([0x81, Buffer.byteLength(text)]), Buffer.from(text)]));
    }
  });
});
${endings[onTerm]}
setTimeout(() => server.listen(process.env.PORT, process.env.HOST), ${listenAfterMs});
`;
}

/** An application that keeps rows and a file; `/add` adds one. */
export const notesApp = {
  "package.json": JSON.stringify({
    name: "notes",
    private: true,
    scripts: { start: "node server.js" },
    dependencies: { pg: "8.23.1" },
  }),
  "server.js": `const fs = require("node:fs");
const pool = new (require("pg").Pool)({ connectionString: process.env.DATABASE_URL });
const file = process.env.STORAGE_DIR + "/file";
pool.on("error", () => {});
require("node:http").createServer(async (request, response) => {
  try {
    if (request.url === "/add") ["file", "gone"].forEach((name) => fs.writeFileSync(process.env.STORAGE_DIR + "/" + name, "kept"));
    await pool.query("create table if not exists note (id serial)");
    if (request.url === "/add") await pool.query("insert into note default values");
    const { rows } = await pool.query("select count(*)::int as n from note");
    response.end("rows " + rows[0].n + " file " + (fs.existsSync(file) ? fs.readFileSync(file) : "none"));
  } catch (error) {
    response.writeHead(500).end(String(error));
  }
}).listen(process.env.PORT, process.env.HOST);
`,
};
