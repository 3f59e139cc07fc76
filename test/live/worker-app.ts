/**
 * An application with a job queue: `web` acknowledges a job when pg-boss has stored it; `worker` runs it and inserts a row for each run. A
 * worker that starts while another one still runs records the overlap.
 */
export const workerApp: Readonly<Record<string, string>> = {
  "package.json": JSON.stringify({
    ...{ name: "queue", private: true, type: "module" },
    dependencies: { "pg-boss": "12.38.0", pg: "8.23.1" },
  }),
  Procfile: "release: node migrate.js\nweb: node web.js\nworker: node worker.js\n",
  "migrate.js": `import { boss, pool, queue } from "./queue.js";
await pool.query("create table if not exists done (job uuid not null, worker text not null)");
await pool.query("create table if not exists overlap (worker text not null)");
await boss.start();
await boss.createQueue(queue);
await boss.stop();
await pool.end();
`,
  "queue.js": `import pg from "pg";
import { PgBoss } from "pg-boss";
export const queue = "letters";
export const pool = new pg.Pool({ max: 3 });
export const boss = new PgBoss({ connectionString: process.env.DATABASE_URL, max: 3 });
boss.on("error", (error) => console.error(error.message));
`,
  "web.js": `import { createServer } from "node:http";
import { boss, pool, queue } from "./queue.js";
await boss.start();
const answers = {
  "POST /jobs": async () => ({ job: await boss.send(queue, {}) }),
  "GET /done": async () => ({
    done: (await pool.query("select job, count(*)::int as times from done group by job")).rows,
    workers: (await pool.query("select count(distinct worker)::int as workers from done")).rows[0].workers,
    overlaps: (await pool.query("select count(*)::int as overlaps from overlap")).rows[0].overlaps,
  }),
};
const server = createServer(async (request, response) => {
  const answer = answers[request.method + " " + request.url] ?? (async () => ({}));
  try {
    response.end(JSON.stringify(await answer()));
  } catch (error) {
    response.writeHead(500).end(error.message);
  }
}).listen(process.env.PORT);
process.on("SIGTERM", () => server.close(() => process.exit()));
`,
  "worker.js": `import { boss, pool, queue } from "./queue.js";
const own = await pool.connect();
const { rows } = await own.query("select pg_try_advisory_lock(7) as alone");
if (!rows[0].alone) await own.query("insert into overlap values ($1)", [process.env.BERTH_DEPLOYMENT]);
await boss.start();
await boss.work(queue, { pollingIntervalSeconds: 0.5, batchSize: 5 }, async (jobs) => {
  await new Promise((resolve) => setTimeout(resolve, 200));
  for (const { id } of jobs) await pool.query("insert into done values ($1, $2)", [id, process.env.BERTH_DEPLOYMENT]);
});
process.on("SIGTERM", async () => {
  await boss.stop({ graceful: true, timeout: 8000 });
  process.exit();
});
`,
};
