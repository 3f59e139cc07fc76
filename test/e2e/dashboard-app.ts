import type { TestPlatform } from "./platform.ts";
import { eventually } from "../support/eventually.ts";

// Goes into names, log lines, cells and commit messages; the dashboard must show it as text.
export const script = `<img src=x onerror="document.title='broken in'">`;
// Contains a bidirectional control character, which can make one name look like another.
const markedTable = "in\u202evoices";
export const branch = "<b>main</b>";
// git removes angle brackets from author names, and quotes at their ends.
export const author = `Ada" onmouseover="document.title='broken in'" x`;

/** A server that prints more lines than the log page loads first, and keeps printing. */
export const server = `
for (let line = 0; line < 1500; line += 1) console.log("early " + line);
setInterval(() => console.log("tick \\u001b[32m${script.replaceAll('"', '\\"')}\\u001b[0m"), 300);
const connect = (response) => {
  const client = new (require("pg").Client)({ connectionString: process.env.DATABASE_URL, application_name: "held" });
  client.on("error", () => {});
  client.connect().then(() => response.end("connected"));
};
require("node:http").createServer((request, response) => (request.url === "/connect" ? connect(response) : request.url === "/exit" ? process.exit(9) : response.end("one"))).listen(process.env.PORT, process.env.HOST);
`;

/** The test application: a database, a server, and a release command that waits for `openGate`. */
export const files = {
  "package.json": JSON.stringify({
    name: "demo",
    private: true,
    scripts: { start: "node server.js" },
    dependencies: { pg: "8.23.1" },
  }),
  "server.js": server,
  Procfile: "web: node server.js\nrelease: node migrate.js\n",
  "migrate.js": `
const { Client } = require("pg");
(async () => {
  if (!process.env.DATABASE_URL) return;
  const client = new Client({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  await client.query("create table if not exists orders (id int primary key, customer text not null)");
  await client.query("insert into orders values (1, $1) on conflict do nothing", [${JSON.stringify(script)}]);
  await client.query('create table if not exists "${markedTable}" (id int primary key)');
  await client.query("create table if not exists gate (id int primary key)");
  while ((await client.query("select from gate")).rowCount === 0) await new Promise((resolve) => setTimeout(resolve, 100));
  await client.end();
})();`,
};

/** Lets the release command end, after a test has checked the page of the running deployment. */
export async function openGate(platform: TestPlatform): Promise<void> {
  const rows = "/v1/projects/demo/data/tables/public/gate/rows";
  const isOpen = async () => (await platform.call("POST", rows, { values: { id: 1 } })).status === 201;
  await eventually(isOpen, "the release command waits");
}
