import fastify from "fastify";
import pg from "pg";
import { testProject } from "../../test/support/fixtures.ts";
import { testApi, testOrganization } from "../../test/support/test-platform.ts";

const columns = `select p.id, p.slug, p.name, p.hostname, p.port, p.health_path, p.replicas, p.created_at, p.updated_at, p.deleted_at,
  d.id as active_id, d.number as active_number, d.status as active_status, d.commit as active_commit, d.activated_at as active_activated_at
  from project p left join deployment d on d.project_id = p.id and d.status = 'active'`;
const query = `${columns} where p.org_id = $1 and p.slug = $2`;
const listQuery = `${columns} where p.org_id = $1 and p.deleted_at is null order by p.id desc`;

// One of the two servers that the API bench compares, in its own process. Prints its address and serves until its stdin ends.
const subjects = { ours: startOurs, bare: startBare };
const [, , which, asked] = process.argv;
const isList = asked === "list";
const path = isList ? "/v1/projects" : "/v1/projects/demo";

const { url, token, stop } = await subjects[which as keyof typeof subjects]();
console.log(JSON.stringify({ url, token }));
process.stdin.resume().on("end", () => void stop());

interface Started {
  readonly url: string;
  readonly token: string;
  readonly stop: () => Promise<void>;
}

async function startOurs(): Promise<Started> {
  const { api, org } = await startFilled();
  return { url: `${api.baseUrl}${path}`, token: org.member, stop: () => api.close() };
}

/** Fastify with the same query, but without tokens, rights, schemas and stripping of fields. */
async function startBare(): Promise<Started> {
  const { api, org } = await startFilled();
  const pool = new pg.Pool({ ...api.database.connection, max: 10 });
  // PostgreSQL may stop before the pool has closed its connections.
  pool.on("error", () => {});
  const app = fastify();
  app.get<{ Params: { slug: string } }>("/v1/projects/:slug", async (request) => {
    const { rows } = await pool.query({ name: "project", text: query, values: [org.id, request.params.slug] });
    return rows[0] as object;
  });
  app.get("/v1/projects", async () => {
    const { rows } = await pool.query({ name: "projects", text: listQuery, values: [org.id] });
    return { projects: rows as object[] };
  });
  const url = `${await app.listen({ host: "127.0.0.1", port: 0 })}${path}`;
  const stop = async () => {
    await app.close();
    await pool.end();
    await api.close();
  };
  return { url, token: org.member, stop };
}

async function startFilled() {
  const api = await testApi();
  const org = await testOrganization(api.database.db, "bench");
  for (let number = 0; number < (isList ? 1000 : 1); number += 1)
    await testProject(api.platform, org, isList ? `p-${number}` : "demo");
  return { api, org };
}
